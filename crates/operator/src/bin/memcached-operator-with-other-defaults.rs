//! The operator as another version of it might be: the same program with other defaults. For tests of upgrades.

use std::process::ExitCode;

use memcached_core::memcached::PodDefaults;

fn main() -> ExitCode {
    let settings = PodDefaults { image: "memcached:1.6.45".into(), readiness_seconds: 3, ..PodDefaults::default() };
    memcached_operator::main(&settings)
}
