//! The command line.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
use jiff::SignedDuration;
use memcached_api::memcached::spec::WorkloadType;
use operator_kit::admin::BindAddress;
use operator_kit::telemetry::LogFormat;

/// Runs the caches that people declare as `Memcached` objects, and keeps them warm.
///
/// Without a subcommand it runs as the operator, against the cluster that KUBECONFIG names or the one it runs in.
#[derive(Debug, Parser)]
#[command(name = "memcached-operator", version, after_help = EXAMPLES, args_override_self = true)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Option<Command>,
    #[command(flatten)]
    pub operator: Operator,
}

const EXAMPLES: &str = "\
Examples:
  memcached-operator crd | kubectl apply --server-side -f -
  memcached-operator explain -f cache.yaml      the objects a cache would become, offline
  memcached-operator explain -f cache.yaml --against sessions
                                                what it would do to the pods of that cache, and what they hold
  memcached-operator --watch-namespaces shop    in one namespace, with a Role alone
  RUST_LOG=debug memcached-operator --log-format json";

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Print the CustomResourceDefinition
    Crd,
    /// Print the objects that a Memcached would become, without a cluster; or what it would do to one that runs
    Explain(Explain),
}

#[derive(Debug, Args)]
pub struct Explain {
    /// A file with a Memcached; `-` for standard input
    #[arg(long, short)]
    pub filename: PathBuf,
    /// A cache that runs: tells, pod by pod, what the declaration would do to it, instead. The namespace is that of the
    /// file, else the current one
    #[arg(long, value_name = "CACHE")]
    pub against: Option<String>,
}

#[derive(Debug, Clone, Args)]
pub struct Operator {
    /// Namespaces to work in, separated by commas; all if empty
    #[arg(long, env = "WATCH_NAMESPACES", value_delimiter = ',')]
    pub watch_namespaces: Vec<String>,
    /// Let one of several replicas lead; the others wait. Without it no other operator of the same namespaces is noticed
    #[arg(long, default_value_t = true, action = ArgAction::Set, num_args = 0..=1, default_missing_value = "true")]
    pub leader_elect: bool,
    /// The operator's own namespace; of an operator of all namespaces, its Lease is there
    #[arg(long, env = "POD_NAMESPACE", default_value = "memcached-operator-system")]
    pub leader_election_namespace: String,
    /// The name of this release. Replicas of the same name and namespace hand leadership over to each other; another
    /// release waits while this one works in its namespaces
    #[arg(long, default_value = "memcached-operator")]
    pub release_name: String,
    /// The ServiceAccount under which the operator runs, in its own namespace. By its rights other releases of all
    /// namespaces tell that this one may claim them
    #[arg(long, env = "POD_SERVICE_ACCOUNT", default_value = "memcached-operator")]
    pub service_account: String,
    /// Where metrics are served over TLS, to those whose token may get /metrics; 0 turns them off
    #[arg(long, default_value = ":8443")]
    pub metrics_bind_address: BindAddress,
    /// false serves metrics in plaintext to everybody
    #[arg(long, default_value_t = true, action = ArgAction::Set, num_args = 0..=1, default_missing_value = "true")]
    pub metrics_secure: bool,
    /// Where /healthz and /readyz are served; 0 turns them off
    #[arg(long, default_value = ":8081")]
    pub health_probe_bind_address: BindAddress,
    /// Serve admission webhooks: defaults are filled in, mistakes refused as they are made. Without them the rules
    /// in the CustomResourceDefinition still hold, and the status tells the rest
    #[arg(long, default_value_t = true, action = ArgAction::Set, num_args = 0..=1, default_missing_value = "true")]
    pub enable_webhooks: bool,
    /// Where admission webhooks are served
    #[arg(long, default_value = ":9443")]
    pub webhook_bind_address: BindAddress,
    /// The Service through which the API server reaches them, in the operator's namespace
    #[arg(long, default_value = "memcached-operator-webhook")]
    pub webhook_service: String,
    /// The address by which the API server reaches them instead, with the scheme https and a port, for an operator
    /// that runs outside of the cluster
    #[arg(long)]
    pub webhook_url: Option<String>,
    /// The webhook configurations (mutating and validating, of one name) that the operator registers its webhooks in,
    /// once it serves them; empty where somebody else registers them, for example OLM
    #[arg(long, default_value = "memcached-operator")]
    pub webhook_configuration: String,
    /// What the API server does with changes of caches while no replica answers
    #[arg(long, value_enum, default_value_t = FailurePolicy::Fail)]
    pub webhook_failure_policy: FailurePolicy,
    /// How long the API server waits for an answer, in seconds
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u8).range(1..=30))]
    pub webhook_timeout_seconds: u8,
    /// The Secret with the certificates that the operator makes and renews by itself, in its own namespace
    #[arg(long, default_value = "memcached-operator-webhook-cert")]
    pub webhook_secret: String,
    /// A directory with tls.crt, tls.key and ca.crt to use instead, for example mounted from cert-manager; read again
    /// when they change
    #[arg(long)]
    pub webhook_cert_dir: Option<PathBuf>,
    /// What runs the pods of new caches that do not say it
    #[arg(long, value_enum, default_value_t = DefaultWorkload::Deployment)]
    pub default_workload: DefaultWorkload,
    /// The image with our agent, which keeps caches warm and exports the metrics of those with passwords: the operator's own
    #[arg(long, env = "AGENT_IMAGE")]
    pub agent_image: Option<String>,
    /// How many caches are reconciled at once, of all namespaces together
    #[arg(long, default_value_t = 12, value_parser = clap::value_parser!(u16).range(1..))]
    pub concurrency: u16,
    /// How often everything is looked at without being told, like 30s or 10h
    #[arg(long, default_value = "10h")]
    pub resync_interval: Interval,
    /// How logs are written
    #[arg(long, value_enum, default_value_t = LogFormat::Human)]
    pub log_format: LogFormat,
}

/// What the API server does when a webhook does not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
pub enum FailurePolicy {
    Fail,
    Ignore,
}

impl FailurePolicy {
    /// As Kubernetes spells it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fail => "Fail",
            Self::Ignore => "Ignore",
        }
    }
}

/// What can run the pods of a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
pub enum DefaultWorkload {
    Deployment,
    StatefulSet,
}

impl Operator {
    /// The same, without namespaces that have no name: an empty variable means all, as OLM writes it.
    #[must_use]
    pub fn without_blanks(mut self) -> Self {
        self.watch_namespaces.retain(|namespace| !namespace.is_empty());
        self
    }
}

impl From<DefaultWorkload> for WorkloadType {
    fn from(workload: DefaultWorkload) -> Self {
        match workload {
            DefaultWorkload::Deployment => Self::Deployment,
            DefaultWorkload::StatefulSet => Self::StatefulSet,
        }
    }
}

/// A span of time of at least a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval(pub Duration);

impl FromStr for Interval {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let span: SignedDuration = text.parse().map_err(|error: jiff::Error| error.to_string())?;
        let span = Duration::try_from(span).map_err(|error| error.to_string())?;
        if span < Duration::from_secs(1) { Err("at least 1s".into()) } else { Ok(Self(span)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_can_be_given_with_and_without_a_value() {
        let parse = |words: &[&str]| Cli::try_parse_from([&["memcached-operator"], words].concat()).unwrap().operator;
        assert!(parse(&[]).leader_elect);
        assert!(!parse(&["--leader-elect=false"]).leader_elect);
        assert!(parse(&["--leader-elect"]).leader_elect);
        assert!(parse(&[]).enable_webhooks && !parse(&["--enable-webhooks=false"]).enable_webhooks);
    }

    #[test]
    fn an_interval_is_a_number_with_a_unit_and_never_nothing() {
        assert_eq!("30s".parse(), Ok(Interval(Duration::from_secs(30))));
        assert_eq!("10h".parse(), Ok(Interval(Duration::from_secs(36_000))));
        for bad in ["", "0s", "-1s", "1", "soon"] {
            assert!(bad.parse::<Interval>().is_err(), "{bad}");
        }
    }

    #[test]
    fn several_namespaces_are_separated_by_commas() {
        let cli = Cli::try_parse_from(["memcached-operator", "--watch-namespaces=a,b"]).unwrap();
        assert_eq!(cli.operator.watch_namespaces, ["a", "b"]);
    }

    #[test]
    fn an_empty_list_of_namespaces_is_all_of_them() {
        let cli = Cli::try_parse_from(["memcached-operator", "--watch-namespaces="]).unwrap();
        assert_eq!(cli.operator.without_blanks().watch_namespaces, [""; 0]);
    }
}
