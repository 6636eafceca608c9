//! `memcached-operator`: declares nothing itself; makes what people declare come true. See `--help`.

use std::process::ExitCode;

use memcached_core::memcached::PodDefaults;

fn main() -> ExitCode {
    memcached_operator::main(&PodDefaults::default())
}
