//! `memcached-operator`: declares nothing itself; makes what people declare come true. See `--help`.

use std::process::ExitCode;

use memcached_core::memcached::PodDefaults;

/// musl's own takes one lock for all threads, and a third of the processor time of a busy operator. Its second version:
/// the third one keeps twice the memory after lists have come in.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    memcached_operator::main(&PodDefaults::default())
}
