//! What OLM's scorecard and validators look at, without a cluster.

use serde_json::Value;

use crate::crd;
use crate::error::{Error, Result};
use crate::manifest;
use crate::repository::Repository;

const CSV: &str = "bundle/manifests/memcached-operator.clusterserviceversion.yaml";
const CAPABILITIES: [&str; 5] = ["Basic Install", "Seamless Upgrades", "Full Lifecycle", "Deep Insights", "Auto Pilot"];
const MODES: [&str; 4] = ["OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces"];

pub fn audit(repository: &Repository) -> Result<Vec<String>> {
    let csv: Value = serde_saphyr::from_str(&repository.read(CSV)?).map_err(Error::generate(CSV))?;
    let mut complaints = Vec::new();
    for definition in crd::all()? {
        let packed = manifest::read(repository, &format!("bundle/manifests/{}", definition.file()))?;
        let packed = packed.into_iter().next().map(|manifest| manifest.object).unwrap_or_default();
        complaints.extend(check(&csv, &packed, &definition.schema()?));
    }
    Ok(complaints.into_iter().map(|complaint| format!("{CSV}: {complaint}")).collect())
}

fn check(csv: &Value, definition: &Value, schema: &Value) -> Vec<String> {
    let mut complaints = missing(csv);
    complaints.extend(check_names(csv, definition));
    complaints.extend(check_examples(csv, schema));
    complaints.extend(check_descriptors(csv, schema));
    complaints.extend(check_webhooks(csv));
    complaints
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn list<'a>(value: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    value.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}

/// What must be there at all.
fn missing(csv: &Value) -> Vec<String> {
    let needed = [
        "/metadata/annotations/containerImage",
        "/metadata/annotations/description",
        "/spec/displayName",
        "/spec/description",
        "/spec/version",
        "/spec/provider/name",
        "/spec/minKubeVersion",
    ];
    needed
        .iter()
        .filter(|pointer| text(csv, pointer).is_empty())
        .map(|pointer| format!("{pointer} is missing"))
        .collect()
}

fn check_names(csv: &Value, definition: &Value) -> Vec<String> {
    let mut complaints = Vec::new();
    let (name, version) = (text(csv, "/metadata/name"), text(csv, "/spec/version"));
    if name != format!("memcached-operator.v{version}") {
        complaints.push(format!("the name {name} does not end with the version {version}"));
    }
    let capability = text(csv, "/metadata/annotations/capabilities");
    if !CAPABILITIES.contains(&capability) {
        complaints.push(format!("{capability:?} is no level of capability"));
    }
    let modes: Vec<&str> = list(csv, "/spec/installModes").map(|mode| text(mode, "/type")).collect();
    if modes != MODES {
        complaints.push(format!("the install modes {modes:?} are not all four"));
    }
    let deployment = text(csv, "/spec/install/spec/deployments/0/spec/template/spec/serviceAccountName");
    for permissions in ["permissions", "clusterPermissions"] {
        let account = text(csv, &format!("/spec/install/spec/{permissions}/0/serviceAccountName"));
        if account != deployment {
            complaints.push(format!("{permissions} are for {account:?}, the Deployment runs as {deployment:?}"));
        }
    }
    let served: Vec<&str> = list(definition, "/spec/versions").map(|version| text(version, "/name")).collect();
    for owned in list(csv, "/spec/customresourcedefinitions/owned") {
        if text(owned, "/name") != text(definition, "/metadata/name") || !served.contains(&text(owned, "/version")) {
            complaints.push(format!("{} is not what the definition defines", text(owned, "/name")));
        }
    }
    complaints
}

/// Every owned kind has an example, and examples use fields that exist.
fn check_examples(csv: &Value, schema: &Value) -> Vec<String> {
    let examples = text(csv, "/metadata/annotations/alm-examples");
    let Ok(Value::Array(examples)) = serde_json::from_str(examples) else {
        return vec!["alm-examples are no JSON list".into()];
    };
    let mut complaints = Vec::new();
    for owned in list(csv, "/spec/customresourcedefinitions/owned") {
        if !examples.iter().any(|example| example.get("kind") == owned.get("kind")) {
            complaints.push(format!("{} has no example", text(owned, "/kind")));
        }
    }
    for example in &examples {
        let fields = example.get("spec").and_then(Value::as_object).into_iter().flatten();
        for (field, _) in
            fields.filter(|(field, _)| schema.pointer(&format!("/properties/spec/properties/{field}")).is_none())
        {
            complaints.push(format!("example {} has an unknown field spec.{field}", text(example, "/metadata/name")));
        }
    }
    complaints
}

/// Descriptors speak of fields that exist, and of all at the top.
fn check_descriptors(csv: &Value, schema: &Value) -> Vec<String> {
    let mut complaints = Vec::new();
    for part in ["spec", "status"] {
        let pointer = format!("/spec/customresourcedefinitions/owned/0/{part}Descriptors");
        let paths: Vec<&str> = list(csv, &pointer).map(|descriptor| text(descriptor, "/path")).collect();
        for path in &paths {
            let field = format!("/properties/{part}/properties/{}", path.replace('.', "/properties/"));
            if schema.pointer(&field).is_none() {
                complaints.push(format!("{part}.{path} is described and does not exist"));
            }
        }
        let fields = schema.pointer(&format!("/properties/{part}/properties")).and_then(Value::as_object);
        for (field, _) in fields.into_iter().flatten() {
            if !paths.iter().any(|path| path.split('.').next() == Some(field)) {
                complaints.push(format!("{part}.{field} is not described"));
            }
        }
    }
    complaints
}

/// Webhooks are served by a Deployment of the bundle, on a port that it has.
fn check_webhooks(csv: &Value) -> Vec<String> {
    let mut complaints = Vec::new();
    for webhook in list(csv, "/spec/webhookdefinitions") {
        let name = text(webhook, "/generateName");
        let mut deployments = list(csv, "/spec/install/spec/deployments");
        let Some(deployment) = deployments.find(|d| d.get("name") == webhook.get("deploymentName")) else {
            complaints.push(format!("webhook {name} belongs to no Deployment"));
            continue;
        };
        let mut ports = list(deployment, "/spec/template/spec/containers/0/ports");
        if !ports.any(|port| port.get("name") == webhook.get("targetPort")) {
            complaints.push(format!("webhook {name} has a port that the Deployment lacks"));
        }
        let mut arguments = list(deployment, "/spec/template/spec/containers/0/args");
        if !arguments.any(|argument| argument == "--webhook-configuration=") {
            complaints.push(format!("webhook {name} would be registered by the operator too"));
        }
        if !text(webhook, "/webhookPath").starts_with('/') || list(webhook, "/rules").next().is_none() {
            complaints.push(format!("webhook {name} has no path or no rules"));
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn sound() -> (Value, Value, Value) {
        let repository = Repository::here();
        let csv = serde_saphyr::from_str(&repository.read(CSV).unwrap()).unwrap();
        let definition = &crd::all().unwrap()[0];
        let file = repository.read(&format!("bundle/manifests/{}", definition.file())).unwrap();
        (csv, serde_saphyr::from_str(&file).unwrap(), definition.schema().unwrap())
    }

    #[test]
    fn every_kind_of_mistake_is_found() {
        let arguments = "/spec/install/spec/deployments/0/spec/template/spec/containers/0/args";
        let mistakes: [(&str, Value, &str); 8] = [
            ("/metadata/name", json!("memcached-operator.v9"), "does not end with the version"),
            ("/metadata/annotations/capabilities", json!("Perfect"), "no level of capability"),
            ("/metadata/annotations/alm-examples", json!("[]"), "has no example"),
            ("/spec/provider/name", json!(""), "/spec/provider/name is missing"),
            ("/spec/installModes", json!([]), "not all four"),
            (arguments, json!([]), "would be registered by the operator too"),
            ("/spec/webhookdefinitions/0/targetPort", json!("nowhere"), "a port that the Deployment lacks"),
            ("/spec/customresourcedefinitions/owned/0/specDescriptors/0/path", json!("spec.no"), "does not exist"),
        ];
        for (pointer, value, complaint) in mistakes {
            let (mut csv, definition, schema) = sound();
            *csv.pointer_mut(pointer).unwrap() = value;
            let complaints = check(&csv, &definition, &schema).join("\n");
            assert!(complaints.contains(complaint), "{pointer}: {complaints}");
        }
    }

    #[test]
    fn the_bundle_is_sound() {
        let (csv, definition, schema) = sound();
        assert_eq!(check(&csv, &definition, &schema), [""; 0]);
    }
}
