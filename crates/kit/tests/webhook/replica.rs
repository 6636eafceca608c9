//! A replica of an operator: its webhook server, on a port of its own, in this process.

use std::path::Path;
use std::time::Duration;

use kube::Client;
use operator_kit::certificate::{self, Configuration, Mounted, Registration, SelfManaged, Serving, Times};
use operator_kit::lease::{self, Election, Leadership, LeaseConfig};
use operator_kit::metrics::Metrics;
use operator_kit::shutdown::{self, Shutdown, Trigger};
use operator_kit::task::{self, Tasks};
use operator_kit::webhook::{self, Answer, Cause, Request, WebhookServer, Webhooks};
use serde_json::{Value, json};
use testbed::wait;

use crate::harness::{DEADLINE, SECRET, Stage};

/// Certificates live as long as ever, but others are quick to follow.
pub const TIMES: Times = Times {
    serving: Duration::from_secs(90 * 24 * 3600),
    authority: Duration::from_secs(3652 * 24 * 3600),
    settle: Duration::from_secs(5),
    overlap: Duration::from_secs(15),
    reach: Duration::from_secs(1),
    linger: Duration::from_secs(15),
};

pub struct Replica {
    pub server: WebhookServer,
    pub metrics: Metrics,
    stop: Trigger,
    tasks: Tasks,
}

impl Replica {
    /// The first, which keeps its certificates itself.
    pub async fn start(stage: &Stage, leadership: Leadership) -> Self {
        Self::start_nth(stage, 0, leadership).await
    }

    /// Any of them.
    pub async fn start_nth(stage: &Stage, number: usize, leadership: Leadership) -> Self {
        let config = SelfManaged {
            namespace: stage.name().to_owned(),
            secret: SECRET.to_owned(),
            labels: [("kept-by".to_owned(), "kit".to_owned())].into(),
            names: vec!["127.0.0.1".to_owned(), "widgets.operators.svc".to_owned()],
            registrations: registrations(stage),
            manager: "kit".to_owned(),
            times: TIMES,
        };
        let client = stage.client().await;
        let port = stage.ports[number];
        Self::serve(port, |tasks, shutdown| {
            certificate::self_managed(config, client, leadership, tasks, shutdown).unwrap()
        })
    }

    /// The first, with certificates in a directory.
    pub async fn start_mounted(stage: &Stage, directory: &Path, registrations: Vec<Registration>) -> Self {
        let config = Mounted {
            directory: directory.to_owned(),
            host: "127.0.0.1".to_owned(),
            registrations,
            manager: "kit".to_owned(),
            times: TIMES,
        };
        let (client, alone) = (stage.client().await, Leadership::always());
        Self::serve(stage.ports[0], |tasks, shutdown| {
            certificate::mounted(config, client, alone, tasks, shutdown).unwrap()
        })
    }

    fn serve(port: u16, certificate: impl FnOnce(&Tasks, Shutdown) -> Serving) -> Self {
        let (stop, shutdown) = shutdown::channel();
        let (tasks, _) = task::tasks();
        let metrics = Metrics::new("widget_operator", &[]);
        let webhooks = Webhooks::default().route("/validate", answer).route("/mutate", answer);
        let address = format!("127.0.0.1:{port}").parse().unwrap();
        let serving = certificate(&tasks, shutdown.clone());
        let server = webhook::serve(&address, webhooks, serving, &metrics, shutdown).unwrap().unwrap();
        Self { server, metrics, stop, tasks }
    }

    pub fn port(&self) -> u16 {
        self.server.address().port()
    }

    pub fn is_ready(&self) -> bool {
        self.server.readiness()()
    }

    pub async fn ready(&self) {
        let asked = async || if self.is_ready() { Ok(()) } else { Err("not ready".to_owned()) };
        wait::until("the replica to be ready", DEADLINE, asked).await.unwrap();
    }

    pub async fn end(self) {
        self.stop.fire();
        self.tasks.cancel();
        self.server.ended().await.unwrap();
    }
}

/// What replicas tell the API server.
pub fn registrations(stage: &Stage) -> Vec<Registration> {
    let name = || stage.name().to_owned();
    vec![
        Registration { configuration: Configuration::Validating(name()), webhooks: stage.webhooks("/validate") },
        Registration { configuration: Configuration::Mutating(name()), webhooks: stage.webhooks("/mutate") },
    ]
}

/// A replica that follows until its election runs.
pub async fn follower(stage: &Stage, number: usize) -> (Replica, Election) {
    let identity = lease::unique_identity("replica");
    let client: Client = stage.admin.clone();
    let (leadership, election) = lease::candidate(LeaseConfig::new(stage.name(), "kit", &identity), client).unwrap();
    (Replica::start_nth(stage, number, leadership).await, election)
}

/// Does what the object says.
#[allow(clippy::unused_async, reason = "reviewers are async")]
async fn answer(request: Request) -> Answer {
    let object = serde_json::to_value(&request.object).unwrap();
    match object["data"]["verdict"].as_str().unwrap_or_default() {
        "deny" => Answer::invalid([Cause::invalid("data.verdict", "must not be deny")]),
        "warn" => Answer::allow().warn("careful\nnow").warn("w".repeat(1000)),
        "panic" => panic!("on purpose"),
        "sleep" => std::future::pending().await,
        "patch" => {
            let mut changed: Value = object.clone();
            changed["data"]["patched"] = json!("yes");
            Answer::change(&object, &changed)
        }
        _ => Answer::allow(),
    }
}
