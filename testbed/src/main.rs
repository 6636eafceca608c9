//! `testbed`: a real Kubernetes on one machine. See `testbed --help`.

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    testbed::cli::main().await
}
