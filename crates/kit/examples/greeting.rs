//! A whole operator for a toy kind: a `Greeting` becomes a `ConfigMap`.
//!
//! A kind brings what differs: what it observes, its rules, its builders, its status, its gauges. Watching, queueing,
//! leading, comparing, applying, retrying and reporting are the kit's. The test `greeting` runs it on a real API
//! server.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::ResourceExt;
use kube::{Config, CustomResource, CustomResourceExt, Resource};
use operator_kit::admin::Readiness;
use operator_kit::client::Clients;
use operator_kit::controller::{self, Context, Controllers, Error, Kind, Outcome, Unreadable};
use operator_kit::lease::{self, LeaseConfig};
use operator_kit::metrics::{GaugeFamily, Metrics};
use operator_kit::shutdown::{self, Shutdown};
use operator_kit::status::Published;
use operator_kit::{task, telemetry};
use operator_model::condition::Assessment;
use operator_model::problem::{Problem, class_of};
use operator_model::reason;
use operator_model::resource::{Applied, CONFIG_MAP, ChildRef, Prepared, ResourceType, Resources};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

const NAME: &str = "greeting-operator";

/// Something to be said.
#[derive(CustomResource, Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(group = "example.org", version = "v1", kind = "Greeting", namespaced, status = "GreetingStatus")]
pub struct GreetingSpec {
    /// To whom.
    pub to: String,
}

/// What became of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GreetingStatus {
    /// `Ready`.
    pub conditions: Vec<Condition>,
}

struct Greetings {
    letters: GaugeFamily,
}

impl Kind for Greetings {
    type Object = Greeting;
    const NAME: &'static str = "Greeting";
    const CHILDREN: &'static [ResourceType] = &[CONFIG_MAP];
    const UNREADABLE: &'static [Unreadable] = &[("Ready", false, reason::INVALID)];

    fn gauges(&self) -> Vec<GaugeFamily> {
        vec![self.letters.clone()]
    }

    async fn reconcile(&self, greeting: Arc<Greeting>, context: &Context<Greeting>) -> Result<Outcome, Error> {
        let identity = |_| labels();
        let children = context.children(&greeting, &identity);
        let resources = match validate(&greeting) {
            Ok(validated) => build(&greeting, &validated),
            Err(problem) => Resources::refused(problem),
        };
        let applied = children.apply(resources).await;
        let status = status(&greeting, &applied, Timestamp::now());
        let length = u32::try_from(greeting.spec.to.len()).unwrap_or(u32::MAX);
        self.letters.set(&greeting.namespace().unwrap_or_default(), &greeting.name_any(), &[], f64::from(length));
        let published = context.publish_status(&greeting, greeting.status.as_ref(), &status, true).await?;
        if let (Published::Written(_), Some(problem)) = (published, applied.problems().next()) {
            context.warn(&greeting, problem.reason, &problem.message).await;
        }
        Ok(Outcome { class: class_of(applied.problems()), requeue: None })
    }
}

/// A greeting that can be built.
struct Validated {
    text: String,
}

fn validate(greeting: &Greeting) -> Result<Validated, Problem> {
    match greeting.spec.to.as_str() {
        "" => Err(Problem::new(reason::INVALID, "spec.to: required: say who is greeted", None)),
        name => Ok(Validated { text: format!("Hello, {name}!") }),
    }
}

fn build(greeting: &Greeting, validated: &Validated) -> Resources<Prepared> {
    let name = greeting.name_any();
    let object = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": name,
            "namespace": greeting.namespace(),
            "labels": labels(),
            "ownerReferences": greeting.controller_owner_ref(&()).map(|owner| [owner]),
        },
        "data": {"text": validated.text},
    });
    Resources { children: vec![Prepared { child: ChildRef::new(CONFIG_MAP, name), object }], ..Resources::default() }
}

fn status(greeting: &Greeting, applied: &Resources<Applied>, now: Timestamp) -> GreetingStatus {
    let old = greeting.status.clone().unwrap_or_default().conditions;
    let (status, reason, message) = match applied.problems().find(|problem| !problem.is_transient) {
        Some(problem) => (false, problem.reason, problem.message.clone()),
        None => (true, "Said", "the ConfigMap is as desired".into()),
    };
    let ready = Assessment { type_: "Ready", status, reason, message };
    GreetingStatus { conditions: vec![ready.into_condition(&old, greeting.meta().generation.unwrap_or(0), now)] }
}

fn labels() -> BTreeMap<String, String> {
    [("app.kubernetes.io/managed-by".to_owned(), NAME.to_owned())].into()
}

/// One replica of the operator, until the shutdown; of several one leads.
pub async fn run(config: Config, identity: &str, shutdown: Shutdown) -> Result<(), Box<dyn std::error::Error>> {
    let lease = LeaseConfig::new("default", NAME, identity);
    let (leadership, election) = lease::candidate(lease, lease::client(config.clone())?)?;
    let (resign, resigned) = shutdown::channel();
    let election = tokio::spawn(election.run(resigned));
    let settings = controller::Config {
        manager: NAME,
        predecessors: &[],
        digest: "example.org/last-applied-hash",
        labels: format!("app.kubernetes.io/managed-by={NAME}"),
        namespaces: Vec::new(),
        concurrency: 4,
        resync: Duration::from_secs(36_000),
    };
    let metrics = Metrics::new("greeting_operator", &[]);
    metrics.show_leadership(leadership.clone());
    let greetings = Greetings { letters: metrics.gauge_family("letters", "The letters of a greeting") };
    let (tasks, mut failures) = task::tasks();
    let clients = Clients::new(config, &metrics)?;
    let controllers = Controllers::new(settings, clients, metrics, leadership, Readiness::default(), tasks);
    tokio::select! {
        () = controllers.with(greetings).run(shutdown) => {}
        failure = failures.first() => return Err(failure.into()),
    }
    // The lease is released last, when nobody writes any more.
    resign.fire();
    election.await?;
    Ok(())
}

/// The CustomResourceDefinition, to be applied before the operator runs.
pub fn definition() -> serde_json::Value {
    json!(Greeting::crd())
}

#[tokio::main]
pub async fn main() -> Result<(), Box<dyn std::error::Error>> {
    if std::env::args().nth(1).as_deref() == Some("crd") {
        println!("{}", definition());
        return Ok(());
    }
    telemetry::init(telemetry::LogFormat::Human)?;
    run(Config::infer().await?, &lease::unique_identity(NAME), shutdown::on_signals()?).await
}
