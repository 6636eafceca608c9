//! The operator as a library: `main` is this with the defaults of this version.

mod args;
mod explain;
mod memcached;
mod run;
mod webhook;

use std::process::ExitCode;

use clap::Parser;
use memcached_core::memcached::PodDefaults;
use operator_kit::telemetry::Chain;

/// Our name: in managed fields, on leases, to those who watch.
const NAME: &str = "memcached-operator";

/// Does what the command line says, building pods by these defaults.
pub fn main(settings: &PodDefaults) -> ExitCode {
    let cli = args::Cli::parse();
    let agent_image = cli.operator.agent_image.clone().unwrap_or_else(|| settings.agent_image.clone());
    let settings = &PodDefaults {
        agent_image,
        workload: cli.operator.default_workload.into(),
        operator_namespace: cli.operator.leader_election_namespace.clone(),
        ..settings.clone()
    };
    let outcome = match &cli.command {
        Some(args::Command::Crd) => explain::print_crds(),
        Some(args::Command::Explain(explain)) => explain::explain(explain, settings),
        None => run::run(cli.operator.without_blanks(), settings),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", Chain(error.as_ref()));
            ExitCode::FAILURE
        }
    }
}
