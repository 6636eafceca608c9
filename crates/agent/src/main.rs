//! `memcached-agent`: runs beside memcached. See `--help`.

use std::process::ExitCode;

use clap::Parser;
use memcached_agent::args::{Cli, Command};
use memcached_agent::{Chain, exporter, log};

fn main() -> ExitCode {
    let Cli { command } = Cli::parse();
    log::init();
    let outcome = match command {
        Command::Exporter(exporter) => exporter::run(exporter),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", Chain(&error));
            ExitCode::FAILURE
        }
    }
}
