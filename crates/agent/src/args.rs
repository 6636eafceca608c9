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
        let Command::Exporter(exporter) =
            Cli::try_parse_from([&["memcached-agent", "exporter"], words].concat())?.command;
        Ok(exporter)
    }

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn defaults_are_those_of_the_stock_exporter() {
        let exporter = parse(&[]).unwrap();
        assert_eq!(exporter.listen, Listen::Every(9150));
        assert_eq!(exporter.memcached, "127.0.0.1:11211");
    }

    #[test]
    fn durations_have_a_unit() {
        assert_eq!(parse(&["--timeout=250ms"]).unwrap().timeout, Duration::from_millis(250));
        assert_eq!(parse(&["--timeout=2s"]).unwrap().timeout, Duration::from_secs(2));
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
    fn an_address_has_a_port() {
        assert_eq!("127.0.0.1:1".parse(), Ok(Listen::One("127.0.0.1:1".into())));
        assert!("9150".parse::<Listen>().is_err());
        assert!(":port".parse::<Listen>().is_err());
    }
}
