//! The webhook server of the operator: its certificate, its address, when it is ready.

use std::error::Error;

use kube::Client;
use operator_kit::admin::Readiness;
use operator_kit::certificate::{self, Configuration, SelfManaged, Serving, Times};
use operator_kit::lease::Leadership;
use operator_kit::metrics::Metrics;
use operator_kit::shutdown::Shutdown;
use operator_kit::webhook::{self, WebhookServer};

use crate::args::Operator;
use crate::memcached;

/// Serves admission, if it is wanted; the operator is ready only when the API server can be answered.
pub fn serve(
    operator: &Operator,
    client: Client,
    metrics: &Metrics,
    leadership: Leadership,
    readiness: &Readiness,
    shutdown: &Shutdown,
) -> Result<Option<WebhookServer>, Box<dyn Error>> {
    if !operator.enable_webhooks {
        return Ok(None);
    }
    let serving = certificate(operator, client, leadership, shutdown)?;
    let webhooks = memcached::webhooks(operator.default_workload.into());
    let server = webhook::serve(&operator.webhook_bind_address, webhooks, serving, metrics, shutdown.clone())?;
    if let Some(server) = &server {
        readiness.register("webhook", server.readiness());
    }
    Ok(server)
}

fn certificate(
    operator: &Operator,
    client: Client,
    leadership: Leadership,
    shutdown: &Shutdown,
) -> Result<Serving, Box<dyn Error>> {
    if let Some(directory) = &operator.webhook_cert_dir {
        return Ok(certificate::mounted(directory, shutdown.clone())?);
    }
    let (service, namespace) = (&operator.webhook_service, &operator.leader_election_namespace);
    let host = format!("{service}.{namespace}.svc");
    let name = operator.webhook_configuration.clone();
    let config = SelfManaged {
        namespace: namespace.clone(),
        secret: operator.webhook_secret.clone(),
        labels: [("app.kubernetes.io/name".to_owned(), crate::NAME.to_owned())].into(),
        names: vec![host.clone(), format!("{host}.cluster.local"), "localhost".into()],
        configurations: vec![Configuration::Mutating(name.clone()), Configuration::Validating(name)],
        manager: crate::NAME.into(),
        times: Times::default(),
    };
    Ok(certificate::self_managed(config, client, leadership, shutdown.clone())?)
}
