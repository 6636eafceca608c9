//! `memcached-operator`: declares nothing itself; makes what people declare come true. See `--help`.

use std::process::ExitCode;

use memcached_core::memcached::Settings;

fn main() -> ExitCode {
    memcached_operator::main(&Settings::default())
}
