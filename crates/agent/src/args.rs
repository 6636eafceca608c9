//! The command line.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;
use std::{fmt, io};

use clap::{Args, Parser, Subcommand};

/// Runs beside memcached in its pod.
#[derive(Debug, Parser)]
#[command(name = "memcached-agent", version)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve memcached's statistics as Prometheus metrics, behind passwords and TLS too
    Exporter(Exporter),
    /// Run memcached as a child: its memory outlives its restarts, certificates and passwords are taken live
    Run(Run),
    /// Start memcached once to see whether it starts with these arguments, and stop it again
    Try(Trial),
    /// Copy this program into a directory, for containers whose image does not have it
    Install(Install),
}

const RUN_EXAMPLES: &str = "\
Examples:
  memcached-agent run -- memcached -m 1024 -e /memory/cache
      memcached, whose items outlive its restarts
  memcached-agent run --annotations-file /etc/podinfo/annotations -- memcached -m 1024
      the same in a pod, where memcached.c5c3.io/args, a JSON list, replaces its arguments

memcached is stopped so that it keeps its items, never started in the second in which it
stopped, and started empty where what it left would make it abort. One that ends by itself
is started again. Changed certificates and passwords are taken live.
http://localhost:9151/status tells what is in force, /healthz and /readyz how it is.";

/// Run memcached as a child: its memory outlives its restarts, certificates and passwords are taken live.
#[derive(Debug, Clone, Args)]
#[command(after_help = RUN_EXAMPLES)]
pub struct Run {
    /// Where /metrics is served; without a host at every address, IPv6 and IPv4
    #[arg(long, default_value = ":9150", value_name = "[HOST]:PORT")]
    pub listen: Listen,
    /// Where /status, /healthz and /readyz are served
    #[arg(long, default_value = ":9151", value_name = "[HOST]:PORT")]
    pub status_listen: Listen,
    /// The pod's annotations, as a downward-API volume holds them
    #[arg(long, value_name = "FILE")]
    pub annotations_file: Option<PathBuf>,
    /// Where memcached speaks TLS: the certificate that it shows there is compared with its file
    #[arg(long, value_name = "HOST:PORT")]
    pub tls_address: Option<String>,
    /// How long memcached goes on serving after SIGTERM, until clients know
    #[arg(long, default_value = "0s", value_parser = maybe_duration)]
    pub stop_delay: Duration,
    /// How long memcached may take to stop before it is killed
    #[arg(long, default_value = "25s", value_parser = duration)]
    pub stop_timeout: Duration,
    #[command(flatten)]
    pub target: Target,
    /// memcached and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

const TRY_EXAMPLES: &str = "\
Examples:
  memcached-agent try -- memcached -m 1024 -c 2000
      ends with 0, and says so, once memcached has answered; with 1, and says why, if it does not
  memcached-agent try --timeout 10s --credentials-file users -- memcached -Y users
      the same with a login, for at most ten seconds

The memory file (-e) is left out, so that no memory is touched.";

/// Start memcached once to see whether it starts with these arguments, and stop it again.
#[derive(Debug, Clone, Args)]
#[command(after_help = TRY_EXAMPLES)]
// The flag of the others, for more than one question here: memcached may take its time to start.
#[command(mut_arg("timeout", |timeout| timeout.default_value("30s").help(TRY_TIMEOUT)))]
pub struct Trial {
    #[command(flatten)]
    pub target: Target,
    /// memcached and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

const TRY_TIMEOUT: &str = "How long memcached may take until it answers, for example 500ms or 30s";

/// Copy this program into a directory.
#[derive(Debug, Clone, Args)]
pub struct Install {
    /// Where to
    pub directory: PathBuf,
}

const EXAMPLES: &str = "\
Examples:
  memcached-agent exporter
      a memcached on this machine, metrics at http://localhost:9150/metrics
  memcached-agent exporter --credentials-file /etc/memcached/sasl/password-file
      one that wants a login: the first user of the file it runs with (-Y)
  memcached-agent exporter --memcached cache.shop.svc:11212 --tls --tls-ca-file ca.crt
      one that speaks TLS
  memcached-agent exporter --memcached 10.0.0.7:11211 --tls --tls-ca-file ca.crt \\
      --tls-cert-file tls.crt --tls-key-file tls.key --tls-server-name cache.shop.svc
      one that wants a client's certificate, by an address that its own does not name

memcached_up is 0, and the only metric, while memcached is not there, hangs, or wants
something else. Files are read at every new connection: what is rotated is taken.
RUST_LOG=debug says more.";

/// Serve memcached's statistics as Prometheus metrics, behind passwords and TLS too.
///
/// Names, types and labels are those of the stock exporter, so dashboards and alerts stay as they are.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct Exporter {
    /// Where /metrics and /healthz are served; without a host at every address, IPv6 and IPv4
    #[arg(long, alias = "web.listen-address", default_value = ":9150", value_name = "[HOST]:PORT")]
    pub listen: Listen,
    #[command(flatten)]
    pub target: Target,
}

/// A memcached, and how to get in.
#[derive(Debug, Clone, Args)]
pub struct Target {
    /// The memcached to ask
    #[arg(long, alias = "memcached.address", default_value = "127.0.0.1:11211", value_name = "HOST:PORT")]
    pub memcached: String,
    /// A password file as memcached's -Y takes it, `user:password` a line; logs in as the first user
    #[arg(long, value_name = "FILE")]
    pub credentials_file: Option<PathBuf>,
    /// Speak TLS to memcached
    #[arg(long, requires = "tls_ca_file")]
    pub tls: bool,
    /// The authorities that may vouch for memcached, in PEM
    #[arg(long, requires = "tls", value_name = "FILE")]
    pub tls_ca_file: Option<PathBuf>,
    /// The certificate to show to memcached, in PEM
    #[arg(long, requires = "tls", requires = "tls_key_file", value_name = "FILE")]
    pub tls_cert_file: Option<PathBuf>,
    /// The key of that certificate, in PEM
    #[arg(long, requires = "tls", requires = "tls_cert_file", value_name = "FILE")]
    pub tls_key_file: Option<PathBuf>,
    /// The name that memcached's certificate has to have, if it is not the host
    #[arg(long, requires = "tls", value_name = "NAME")]
    pub tls_server_name: Option<String>,
    /// How long a scrape may take altogether, for example 500ms or 5s
    #[arg(long, default_value = "5s", value_parser = duration)]
    pub timeout: Duration,
}

/// Where to listen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listen {
    /// At a port of every address, IPv6 and IPv4: `:9150`.
    Every(u16),
    /// At one address: `127.0.0.1:9150`, `[::1]:9150`.
    One(String),
}

impl Listen {
    /// Listens there.
    pub fn bind(&self) -> io::Result<TcpListener> {
        match self {
            // The IPv6 socket takes IPv4 as well; the other is for machines without IPv6.
            Self::Every(port) => {
                let every: [SocketAddr; 2] =
                    [(Ipv6Addr::UNSPECIFIED, *port).into(), (Ipv4Addr::UNSPECIFIED, *port).into()];
                TcpListener::bind(every.as_slice())
            }
            Self::One(address) => TcpListener::bind(address),
        }
    }
}

impl FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let invalid = || format!("{text:?} is neither host:port nor :port");
        let (host, port) = text.rsplit_once(':').ok_or_else(invalid)?;
        let port = port.parse().map_err(|_| invalid())?;
        Ok(if host.is_empty() { Self::Every(port) } else { Self::One(text.to_owned()) })
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Every(port) => write!(f, ":{port}"),
            Self::One(address) => f.write_str(address),
        }
    }
}

fn maybe_duration(text: &str) -> Result<Duration, String> {
    if text == "0s" { Ok(Duration::ZERO) } else { duration(text) }
}

fn duration(text: &str) -> Result<Duration, String> {
    let invalid = || format!("{text:?} is no duration: say 500ms or 5s");
    let (number, milliseconds) = match text.strip_suffix("ms") {
        Some(number) => (number, 1),
        None => (text.strip_suffix('s').ok_or_else(invalid)?, 1000),
    };
    let number: u32 = number.parse().map_err(|_| invalid())?;
    match u64::from(number) * milliseconds {
        0 => Err("no time at all is too little".into()),
        milliseconds => Ok(Duration::from_millis(milliseconds)),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn parse(words: &[&str]) -> Result<Exporter, clap::Error> {
        match Cli::try_parse_from([&["memcached-agent", "exporter"], words].concat())?.command {
            Command::Exporter(exporter) => Ok(exporter),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn defaults_are_those_of_the_stock_exporter() {
        let exporter = parse(&[]).unwrap();
        assert_eq!(exporter.listen, Listen::Every(9150));
        assert_eq!(exporter.target.memcached, "127.0.0.1:11211");
    }

    #[test]
    fn durations_have_a_unit() {
        assert_eq!(parse(&["--timeout=250ms"]).unwrap().target.timeout, Duration::from_millis(250));
        assert_eq!(parse(&["--timeout=2s"]).unwrap().target.timeout, Duration::from_secs(2));
        for wrong in ["5", "0s", "-1s", "1m", "s", "99999999999s"] {
            assert!(parse(&[&format!("--timeout={wrong}")]).is_err(), "{wrong}");
        }
    }

    #[test]
    fn half_of_what_tls_takes_is_refused() {
        assert!(parse(&["--tls", "--tls-ca-file=ca"]).is_ok());
        for wrong in [
            &["--tls"][..],
            &["--tls-ca-file=ca"],
            &["--tls", "--tls-ca-file=ca", "--tls-cert-file=crt"],
            &["--tls", "--tls-ca-file=ca", "--tls-key-file=key"],
            &["--tls-server-name=x"],
        ] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn memcached_has_its_arguments_to_itself() {
        let words = ["memcached-agent", "run", "--stop-delay=0s", "--", "memcached", "--listen", "-m", "64"];
        match Cli::try_parse_from(words).unwrap().command {
            Command::Run(run) => assert_eq!(run.command, ["memcached", "--listen", "-m", "64"]),
            other => panic!("{other:?}"),
        }
        assert!(Cli::try_parse_from(["memcached-agent", "run"]).is_err());
    }

    #[test]
    fn a_trial_has_half_a_minute_unless_told_otherwise() {
        let timeout = |words: &[&str]| {
            let words = [&["memcached-agent", "try"], words, &["--", "memcached", "--timeout=1s"]].concat();
            match Cli::try_parse_from(words).unwrap().command {
                Command::Try(trial) => {
                    assert_eq!(trial.command, ["memcached", "--timeout=1s"]);
                    trial.target.timeout
                }
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(timeout(&[]), Duration::from_secs(30));
        assert_eq!(timeout(&["--timeout=10s"]), Duration::from_secs(10));
        assert_eq!(parse(&[]).unwrap().target.timeout, Duration::from_secs(5), "the others keep theirs");
        assert!(Cli::try_parse_from(["memcached-agent", "try"]).is_err());
    }

    #[test]
    fn an_address_has_a_port() {
        assert_eq!("127.0.0.1:1".parse(), Ok(Listen::One("127.0.0.1:1".into())));
        assert!("9150".parse::<Listen>().is_err());
        assert!(":port".parse::<Listen>().is_err());
    }
}
