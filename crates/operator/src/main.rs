//! `memcached-operator`: declares nothing itself; makes what people declare come true. See `--help`.

mod args;
mod explain;
mod memcached;
mod run;

use std::process::ExitCode;

use clap::Parser;
use operator_kit::telemetry::Chain;

fn main() -> ExitCode {
    let cli = args::Cli::parse();
    let outcome = match &cli.command {
        Some(args::Command::Crd) => explain::print_crd(),
        Some(args::Command::Explain(explain)) => explain::explain(explain),
        None => run::run(cli.operator),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", Chain(error.as_ref()));
            ExitCode::FAILURE
        }
    }
}
