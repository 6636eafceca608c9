//! A namespace of a test with an operator that looks at nothing else, and the caches in it.

use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use serde_json::{Value, json};
use testbed::namespace::Namespace;
use testbed::{Error, Node, Result, wait};

use crate::background::Background;
use crate::operator;
use crate::pod::{DEADLINE, is_ready};

/// Asks the namespace to enforce the restricted Pod Security Standard.
const RESTRICTED: &[(&str, &str)] = &[("pod-security.kubernetes.io/enforce", "restricted")];

/// Where a test plays.
pub struct Stage {
    /// Its namespace, which enforces the restricted Pod Security Standard.
    pub namespace: Namespace,
    operator: Background,
    arguments: Vec<String>,
    scratch: PathBuf,
}

impl Stage {
    /// Sets one; `scratch` is where files may be left.
    pub async fn set(node: &Node, name: &str, scratch: &str, arguments: &[&str]) -> Result<Self> {
        operator::install(node, &[]).await?;
        let namespace = Namespace::create_labelled(node, name, RESTRICTED).await?;
        let scratch = Path::new(scratch).join(namespace.name());
        let all = ["--watch-namespaces", namespace.name()].into_iter().chain(arguments.iter().copied());
        let arguments: Vec<String> = all.map(ToOwned::to_owned).collect();
        let operator = start(node, &arguments, &scratch)?;
        Ok(Self { namespace, operator, arguments, scratch })
    }

    /// Kills the operator as it stands, and starts another one.
    pub fn replace_operator(&mut self, node: &Node) -> Result<()> {
        self.operator.kill();
        self.operator = start(node, &self.arguments, &self.scratch)?;
        Ok(())
    }

    /// Applies a cache as a user would.
    pub fn declare(&self, name: &str, spec: &Value) -> Result<()> {
        self.apply(&json!({
            "apiVersion": "memcached.c5c3.io/v1beta1", "kind": "Memcached",
            "metadata": {"name": name}, "spec": spec,
        }))
    }

    /// Applies any object.
    pub fn apply(&self, object: &Value) -> Result<()> {
        let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or("object");
        let file = self.scratch.join(format!("{name}.json"));
        std::fs::write(&file, object.to_string()).map_err(Error::file("write", &file))?;
        let file = file.display().to_string();
        self.namespace.kubectl(&["apply", "--server-side", "--force-conflicts", "--filename", &file]).map(drop)
    }

    /// Waits until a cache's status is about its declaration, and as it should be.
    pub async fn until(&self, name: &str, what: &str, is_so: impl Fn(&Value) -> bool) -> Result<Value> {
        let found = wait::until(format!("cache {name} to be {what}"), DEADLINE, async || {
            let text = self.namespace.kubectl(&["get", "memcached", name, "--output", "json"]);
            let cache: Value = text.ok().and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
            let is_seen = cache.pointer("/status/observedGeneration") == cache.pointer("/metadata/generation");
            let status = || cache.get("status").map(|status| format!("{status:#}")).unwrap_or_default();
            if is_seen && is_so(&cache) { Ok(cache.clone()) } else { Err(status()) }
        });
        found.await.map_err(|error| Error::Other(format!("{error}\n{}", self.operator.log_tail(20))))
    }

    /// Waits until a cache is ready.
    pub async fn ready(&self, name: &str) -> Result<Value> {
        self.until(name, "ready", |cache| verdict(cache, "Ready") == ("True".into(), "MemcachedReady".into())).await
    }

    /// The servers of a cache, those that are going left out.
    pub async fn servers(&self, name: &str) -> Result<Vec<Pod>> {
        let all = ListParams::default().labels(&format!("app.kubernetes.io/instance={name}"));
        let pods = self.namespace.api::<Pod>().list(&all).await?.items;
        Ok(pods.into_iter().filter(|pod| pod.metadata.deletion_timestamp.is_none() && is_ready(pod)).collect())
    }
}

fn start(node: &Node, arguments: &[String], scratch: &Path) -> Result<Background> {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    operator::start(node, &arguments, &scratch.join("operator.log"))
}

/// A condition's status and reason.
pub fn verdict(cache: &Value, type_: &str) -> (String, String) {
    (condition(cache, type_, "status"), condition(cache, type_, "reason"))
}

/// What a condition says.
pub fn message(cache: &Value, type_: &str) -> String {
    condition(cache, type_, "message")
}

fn condition(cache: &Value, type_: &str, field: &str) -> String {
    let all = cache.pointer("/status/conditions").and_then(Value::as_array);
    let is_it = |condition: &&Value| condition.get("type").and_then(Value::as_str) == Some(type_);
    let found = all.into_iter().flatten().find(is_it).and_then(|condition| condition.get(field));
    found.and_then(Value::as_str).unwrap_or_default().to_owned()
}
