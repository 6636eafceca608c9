//! The ClusterServiceVersion: the Deployment, rights and webhooks of config/, in OLM's words.

use memcached_api::admission;
use serde_json::{Map, Value, json};

use super::{descriptor, sample};
use crate::crd::{self, Definition};
use crate::error::{Error, Result};
use crate::manifest;
use crate::output::Output;
use crate::rbac::{self, NAME};
use crate::repository::Repository;
use crate::{NOTICE, VERSION};

const PATH: &str = "bundle/manifests/memcached-operator.clusterserviceversion.yaml";
/// Where OLM mounts the certificate that it makes for webhooks.
const CERTIFICATES: &str = "/tmp/k8s-webhook-server/serving-certs";

const DESCRIPTION: &str = "\
Declare a cache as a `Memcached` object; the operator runs it and keeps it true to its declaration.

* a set of memcached servers behind a headless Service, with TLS, passwords, network policy and autoscaling
* pods that change only when the declaration does: an upgrade of the operator restarts nothing
* metrics, alerts with runbooks, and dashboards
* mistakes are refused when they are made, with the field and what to do

The level of capability is the second: the operator upgrades without touching caches; a new memcached version is rolled
out server by server, and each new server begins empty.
";

pub fn output(repository: &Repository) -> Result<Output> {
    let deployment = deployment(repository)?;
    let image = deployment.pointer("/template/spec/containers/0/image").cloned().unwrap_or_default();
    let document = json!({
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": {
            "name": format!("{NAME}.v{VERSION}"),
            "namespace": "placeholder",
            "annotations": {
                "alm-examples": examples(repository)?,
                "capabilities": "Seamless Upgrades",
                "categories": "Database",
                "certified": "false",
                "containerImage": image,
                "description": "Runs the caches that people declare as Memcached objects, and keeps them warm",
            },
        },
        "spec": spec(repository, &deployment)?,
    });
    let text = serde_saphyr::to_string(&document).map_err(Error::generate(PATH))?;
    Ok(Output::new(PATH, format!("{NOTICE}{text}")))
}

fn examples(repository: &Repository) -> Result<String> {
    serde_json::to_string_pretty(&sample::caches(repository)?).map_err(Error::generate(PATH))
}

fn spec(repository: &Repository, deployment: &Value) -> Result<Value> {
    let modes = ["OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces"];
    let modes = modes.map(|kind| json!({"type": kind, "supported": true}));
    Ok(json!({
        "displayName": "Memcached Operator",
        "description": DESCRIPTION,
        "keywords": ["memcached", "cache"],
        "version": VERSION,
        "maturity": "alpha",
        "minKubeVersion": "1.30.0",
        "provider": {"name": "memcached-operator"},
        // WATCH_NAMESPACES takes what OLM writes down as the targets: none for all, one, or several.
        "installModes": modes,
        "customresourcedefinitions": {"owned": crd::all()?.iter().map(owned).collect::<Result<Vec<_>>>()?},
        "install": {
            "strategy": "deployment",
            "spec": {
                "deployments": [{"name": NAME, "spec": deployment}],
                // OLM gives these in the target namespaces, or in all of them.
                "permissions": [permissions(repository, &[
                    ("cluster", "ClusterRole", NAME),
                    ("cluster", "ClusterRole", rbac::SCOPE),
                    ("base", "Role", rbac::LEADER),
                ])?],
                "clusterPermissions": [permissions(repository, &[("metrics", "ClusterRole", "memcached-operator-metrics-auth")])?],
            },
        },
        "webhookdefinitions": webhooks(),
    }))
}

fn owned(definition: &Definition) -> Result<Value> {
    let schema = definition.schema()?;
    let part = |name: &str| schema.pointer(&format!("/properties/{name}")).map(descriptor::of).unwrap_or_default();
    Ok(json!({
        "kind": definition.kind(),
        "name": definition.name(),
        "version": definition.version(),
        "displayName": definition.kind(),
        "description": schema.get("description").cloned().unwrap_or_default(),
        "resources": [
            {"kind": "Deployment", "version": "v1"},
            {"kind": "Service", "version": "v1"},
            {"kind": "Pod", "version": "v1"},
            {"kind": "PodDisruptionBudget", "version": "v1"},
            {"kind": "HorizontalPodAutoscaler", "version": "v2"},
            {"kind": "NetworkPolicy", "version": "v1"},
            {"kind": "ControllerRevision", "version": "v1"},
            {"kind": "ServiceMonitor", "version": "v1"},
            {"kind": "Certificate", "version": "v1"},
        ],
        "specDescriptors": part("spec"),
        "statusDescriptors": part("status"),
    }))
}

fn permissions(repository: &Repository, roles: &[(&str, &str, &str)]) -> Result<Value> {
    let mut all = Vec::new();
    for (file, kind, name) in roles {
        let role = rbac::role(repository, file, kind, name)?.object;
        all.extend(role.get("rules").and_then(Value::as_array).cloned().unwrap_or_default());
    }
    Ok(json!({"serviceAccountName": NAME, "rules": all}))
}

/// The Deployment of config/manager; OLM tells it where to work, and makes the webhooks' certificate.
fn deployment(repository: &Repository) -> Result<Value> {
    let manifests = manifest::read(repository, "config/manager/manager.yaml")?;
    let mut spec = manifest::find(&manifests, "Deployment", NAME)?.object.get("spec").cloned().unwrap_or_default();
    if let Some(Value::Object(container)) = spec.pointer_mut("/template/spec/containers/0") {
        // OLM registers the webhooks: an empty name keeps the operator from doing it a second time.
        let arguments = [format!("--webhook-cert-dir={CERTIFICATES}"), "--webhook-configuration=".into()];
        container.insert("args".into(), json!(arguments));
        if let Some(Value::Array(env)) = container.get_mut("env") {
            let targets = json!({"fieldRef": {"fieldPath": "metadata.annotations['olm.targetNamespaces']"}});
            env.push(json!({"name": "WATCH_NAMESPACES", "valueFrom": targets}));
        }
    }
    Ok(spec)
}

/// The webhooks. OLM registers them under names of its own, and has no match conditions: the operator is asked more
/// often, and lets the same pass.
fn webhooks() -> Vec<Value> {
    let mutating = admission::mutating().into_iter().map(|webhook| (webhook, "MutatingAdmissionWebhook"));
    let validating = admission::validating().into_iter().map(|webhook| (webhook, "ValidatingAdmissionWebhook"));
    let fields = |entry: &Value| entry.as_object().cloned().unwrap_or_default();
    let all = mutating.chain(validating);
    all.map(|(webhook, type_)| webhook_definition(&fields(&webhook.entry), type_, webhook.path)).collect()
}

fn webhook_definition(webhook: &Map<String, Value>, type_: &str, path: &str) -> Value {
    let kept = ["admissionReviewVersions", "matchPolicy", "reinvocationPolicy", "rules", "sideEffects"];
    let mut definition: Map<String, Value> =
        kept.iter().filter_map(|key| Some(((*key).to_owned(), webhook.get(*key)?.clone()))).collect();
    for (key, value) in [
        ("type", json!(type_)),
        ("generateName", webhook.get("name").cloned().unwrap_or_default()),
        ("deploymentName", json!(NAME)),
        ("containerPort", json!(443)),
        ("targetPort", json!("webhook")),
        ("webhookPath", json!(path)),
        ("failurePolicy", json!("Fail")),
        ("timeoutSeconds", json!(5)),
    ] {
        definition.insert(key.into(), value);
    }
    Value::Object(definition)
}
