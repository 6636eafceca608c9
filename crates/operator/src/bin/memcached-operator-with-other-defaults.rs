//! The operator as another version of it might be: the same program with other defaults. For tests of upgrades.

use std::process::ExitCode;

use memcached_core::memcached::Settings;

fn main() -> ExitCode {
    let settings = Settings { image: "memcached:1.6.45".into(), readiness_seconds: 3, ..Settings::default() };
    memcached_operator::main(&settings)
}
