//! The webhook server of the operator: its certificate, its address, when it is ready, and how the API server finds it.

use std::error::Error;

use kube::Client;
use memcached_api::admission::{self, Webhook};
use memcached_core::memcached::PodDefaults;
use operator_kit::admin::Readiness;
use operator_kit::certificate::{self, Configuration, Mounted, Registration, SelfManaged, Serving, Times};
use operator_kit::lease::Leadership;
use operator_kit::metrics::Metrics;
use operator_kit::shutdown::Shutdown;
use operator_kit::task::Tasks;
use operator_kit::webhook::{self, WebhookServer};
use serde_json::{Value, json};

use crate::args::Operator;
use crate::memcached;

/// Serves admission, if it is wanted; the operator is ready only when the API server can be answered.
pub fn serve(
    operator: &Operator,
    client: Client,
    metrics: &Metrics,
    leadership: Leadership,
    readiness: &Readiness,
    tasks: &Tasks,
    shutdown: &Shutdown,
) -> Result<Option<WebhookServer>, Box<dyn Error>> {
    if !operator.enable_webhooks {
        return Ok(None);
    }
    let serving = certificate(operator, client, leadership, tasks, shutdown)?;
    let webhooks =
        memcached::webhooks(PodDefaults { workload: operator.default_workload.into(), ..PodDefaults::default() });
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
    tasks: &Tasks,
    shutdown: &Shutdown,
) -> Result<Serving, Box<dyn Error>> {
    let (service, namespace) = (&operator.webhook_service, &operator.leader_election_namespace);
    let host = format!("{service}.{namespace}.svc");
    let (manager, times, registrations) = (crate::NAME.into(), Times::default(), registrations(operator)?);
    if let Some(directory) = &operator.webhook_cert_dir {
        let host = operator.webhook_url.as_deref().and_then(host_of).unwrap_or(host);
        let config = Mounted { directory: directory.clone(), host, registrations, manager, times };
        return Ok(certificate::mounted(config, client, leadership, tasks, shutdown.clone())?);
    }
    let mut names = vec![host.clone(), format!("{host}.cluster.local"), "localhost".into()];
    names.extend(operator.webhook_url.as_deref().and_then(host_of).filter(|name| name != "localhost"));
    let config = SelfManaged {
        namespace: namespace.clone(),
        secret: operator.webhook_secret.clone(),
        labels: [("app.kubernetes.io/name".to_owned(), crate::NAME.to_owned())].into(),
        names,
        registrations,
        manager,
        times,
    };
    Ok(certificate::self_managed(config, client, leadership, tasks, shutdown.clone())?)
}

/// What the API server is told to ask us; nothing if somebody else tells it.
fn registrations(operator: &Operator) -> Result<Vec<Registration>, String> {
    let name = &operator.webhook_configuration;
    if name.is_empty() {
        return Ok(Vec::new());
    }
    let entries = |webhooks: Vec<Webhook>| -> Result<Vec<Value>, String> {
        let complete = |webhook: Webhook| Ok(complete(webhook.entry, client_config(operator, webhook.path)?, operator));
        webhooks.into_iter().map(complete).collect()
    };
    Ok(vec![
        Registration {
            configuration: Configuration::Mutating(name.clone()),
            webhooks: entries(admission::mutating())?,
        },
        Registration {
            configuration: Configuration::Validating(name.clone()),
            webhooks: entries(admission::validating())?,
        },
    ])
}

/// The way to us.
fn client_config(operator: &Operator, path: &str) -> Result<Value, String> {
    let Some(url) = &operator.webhook_url else {
        let (name, namespace) = (&operator.webhook_service, &operator.leader_election_namespace);
        return Ok(json!({"service": {"name": name, "namespace": namespace, "path": path, "port": 443}}));
    };
    match host_of(url) {
        Some(_) => Ok(json!({"url": format!("{}{path}", url.trim_end_matches('/'))})),
        None => Err(format!("--webhook-url: {url:?} is no address like https://example.org:9443")),
    }
}

/// The host of an address with TLS.
fn host_of(url: &str) -> Option<String> {
    let uri: http::Uri = url.parse().ok()?;
    let host = uri.host().filter(|_| uri.scheme_str() == Some("https"))?;
    Some(host.trim_matches(['[', ']']).to_owned())
}

/// An entry with what flags decide. The selectors are left out, for they are the cluster's to set: some platforms write
/// them into every webhook, and would be fought. Which namespaces are ours is therefore a condition.
fn complete(mut webhook: Value, client_config: Value, operator: &Operator) -> Value {
    if let Some(fields) = webhook.as_object_mut() {
        fields.insert("clientConfig".into(), client_config);
        fields.insert("failurePolicy".into(), json!(operator.webhook_failure_policy.as_str()));
        fields.insert("timeoutSeconds".into(), json!(operator.webhook_timeout_seconds));
        let conditions = fields.get_mut("matchConditions").and_then(Value::as_array_mut);
        if let (Some(conditions), false) = (conditions, operator.watch_namespaces.is_empty()) {
            let namespaces: Vec<String> = operator.watch_namespaces.iter().map(|name| format!("'{name}'")).collect();
            let expression = format!("request.namespace in [{}]", namespaces.join(", "));
            conditions.push(json!({"name": "namespace-is-watched", "expression": expression}));
        }
    }
    webhook
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::Cli;

    fn registered(words: &[&str]) -> Result<Vec<Value>, String> {
        let operator = Cli::try_parse_from([&["memcached-operator"], words].concat()).unwrap().operator;
        Ok(registrations(&operator)?.into_iter().flat_map(|registration| registration.webhooks).collect())
    }

    #[test]
    fn flags_decide_how_and_about_what_the_operator_is_asked() {
        let words = [
            "--webhook-failure-policy=Ignore",
            "--webhook-timeout-seconds=7",
            "--webhook-service=hooks",
            "--leader-election-namespace=ops",
            "--watch-namespaces=one,two",
        ];
        for webhook in registered(&words).unwrap() {
            assert_eq!(webhook["failurePolicy"], "Ignore");
            assert_eq!(webhook["timeoutSeconds"], 7);
            let service = &webhook["clientConfig"]["service"];
            assert_eq!((&service["name"], &service["namespace"]), (&json!("hooks"), &json!("ops")));
            assert_eq!(webhook["matchConditions"][2]["expression"], "request.namespace in ['one', 'two']");
            assert!(webhook.get("namespaceSelector").is_none(), "that is for others to set");
        }
        let plain = registered(&[]).unwrap();
        assert_eq!(plain.len(), 2);
        assert_eq!(plain[0]["failurePolicy"], "Fail");
        assert_eq!(plain[0]["matchConditions"].as_array().unwrap().len(), 2);
    }

    #[test]
    fn an_operator_outside_of_the_cluster_is_called_by_its_address() {
        let webhooks = registered(&["--webhook-url=https://[::1]:9443/"]).unwrap();
        let url = format!("https://[::1]:9443{}", admission::mutating()[0].path);
        assert_eq!(webhooks[0]["clientConfig"], json!({"url": url}));
        assert_eq!(host_of("https://[::1]:9443"), Some("::1".into()));
        for bad in ["http://example.org", "example.org", "", "https://"] {
            assert!(registered(&[&format!("--webhook-url={bad}")]).is_err(), "{bad}");
        }
    }

    #[test]
    fn without_a_configuration_nothing_is_registered() {
        assert_eq!(registered(&["--webhook-configuration="]).unwrap(), [Value::Null; 0]);
    }
}
