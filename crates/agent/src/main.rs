//! `memcached-agent`: runs beside memcached. See `--help`.

use std::error::Error;
use std::process::ExitCode;

use clap::Parser;
use memcached_agent::args::{Cli, Command};
use memcached_agent::{Chain, exporter, install, log, supervisor, trial};

fn main() -> ExitCode {
    let Cli { command } = Cli::parse();
    log::init();
    let outcome: Result<ExitCode, Box<dyn Error>> = match command {
        Command::Exporter(exporter) => exporter::run(exporter).map(|()| ExitCode::SUCCESS).map_err(Into::into),
        Command::Run(run) => supervisor::run(run).map_err(Into::into),
        Command::Try(trial) => trial::run(&trial).map(|()| ExitCode::SUCCESS).map_err(Into::into),
        Command::Install(install) => install::run(&install.directory).map(|()| ExitCode::SUCCESS).map_err(Into::into),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("error: {}", Chain(&*error));
        ExitCode::FAILURE
    })
}
