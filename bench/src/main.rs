//! The command line of the benchmark.
//! Everything it does is in the library, where it can be tested.

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    bench::cli::main().await
}
