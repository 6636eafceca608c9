//! Logs on stderr; `RUST_LOG` names the level.

use std::env;
use std::io::{self, IsTerminal};

use tracing::level_filters::LevelFilter;

/// Sets up logging for the whole process.
pub fn init() {
    let level = env::var("RUST_LOG").ok().and_then(|level| level.parse().ok()).unwrap_or(LevelFilter::INFO);
    let ansi = io::stderr().is_terminal() && env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    tracing_subscriber::fmt().with_max_level(level).with_ansi(ansi).with_writer(io::stderr).init();
}
