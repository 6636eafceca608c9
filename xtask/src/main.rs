//! Writes the generated files of this repository, or checks that they are current.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use xtask::{Error, Repository, Result, sbom};

/// Writes the generated files of this repository.
#[derive(Debug, Parser)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    /// Change nothing; fail if a file is not what would be written, or is wrong in itself
    #[arg(long)]
    check: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Write down what programs are made of, as CycloneDX
    Sbom(Sbom),
}

#[derive(Debug, Args)]
struct Sbom {
    /// The packages of the programs
    #[arg(required = true)]
    packages: Vec<String>,
    /// The target they are built for
    #[arg(long)]
    target: String,
    /// Where it is written
    #[arg(long, short)]
    output: PathBuf,
}

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Cli) -> Result<()> {
    let repository = Repository::here();
    if let Some(Command::Sbom(sbom)) = &cli.command {
        return sbom::write(&repository, &sbom.packages, &sbom.target, &sbom.output);
    }
    let outputs = xtask::outputs(&repository)?;
    if !cli.check {
        return xtask::write(&repository, &outputs);
    }
    let files = xtask::drifted(&repository, &outputs);
    if !files.is_empty() {
        return Err(Error::Drift { files });
    }
    let complaints = xtask::audit(&repository)?;
    if complaints.is_empty() { Ok(()) } else { Err(Error::Wrong { complaints }) }
}
