//! A control plane that all tests share, and for each of them a namespace with webhooks of its own.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::sync::{Arc, Weak};

use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use operator_kit::certificate::Material;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use testbed::namespace::Namespace;
use testbed::{ControlPlane, User, wait};
use tokio::sync::Mutex;

pub const DEADLINE: u64 = 300;
pub const SECRET: &str = "webhook-certificates";

pub fn object<K: DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).unwrap()
}

/// A namespace, and the webhooks that are called for it.
pub struct Stage {
    pub namespace: Namespace,
    pub admin: Client,
    pub cluster: Arc<ControlPlane>,
    /// Where the replicas of this test serve.
    pub ports: Vec<u16>,
}

impl Stage {
    /// For one replica, with a configuration that has no entries, as packages ship it.
    pub async fn new(prefix: &str) -> Self {
        Self::with_replicas(prefix, 1).await
    }

    /// The same for so many.
    pub async fn with_replicas(prefix: &str, replicas: usize) -> Self {
        let stage = Self::unshipped(prefix, replicas).await;
        stage.ship().await;
        stage
    }

    /// For so many replicas, with no configuration yet.
    pub async fn unshipped(prefix: &str, replicas: usize) -> Self {
        static SHARED: Mutex<Weak<ControlPlane>> = Mutex::const_new(Weak::new());
        let mut shared = SHARED.lock().await;
        let cluster = match shared.upgrade() {
            Some(cluster) => cluster,
            None => Arc::new(ControlPlane::start().await.unwrap()),
        };
        *shared = Arc::downgrade(&cluster);
        drop(shared);
        let (namespace, admin) = (cluster.namespace(prefix).await.unwrap(), cluster.client().await.unwrap());
        let listeners: Vec<_> = (0..replicas).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let ports = listeners.iter().map(|listener| listener.local_addr().unwrap().port()).collect();
        let stage = Self { namespace, admin, cluster, ports };
        stage.grant().await;
        stage
    }

    /// Its name, which is the webhook configuration's too.
    pub fn name(&self) -> &str {
        self.namespace.name()
    }

    /// Exactly the rights that keeping certificates takes, and no others.
    async fn grant(&self) {
        let name = self.name();
        let role: ClusterRole = object(json!({"metadata": {"name": name}, "rules": self.rules(true)}));
        let binding: ClusterRoleBinding = object(json!({
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": "kit", "namespace": name}],
        }));
        Api::all(self.admin.clone()).create(&PostParams::default(), &role).await.unwrap();
        Api::all(self.admin.clone()).create(&PostParams::default(), &binding).await.unwrap();
    }

    fn rules(&self, has_secrets: bool) -> Value {
        let secrets = [
            json!({"apiGroups": [""], "resources": ["secrets"], "verbs": ["create"]}),
            json!({"apiGroups": [""], "resources": ["secrets"], "resourceNames": [SECRET],
                   "verbs": ["get", "list", "watch", "update"]}),
        ];
        let configurations = json!({
            "apiGroups": ["admissionregistration.k8s.io"], "resourceNames": [self.name()],
            "resources": ["validatingwebhookconfigurations", "mutatingwebhookconfigurations"],
            "verbs": ["list", "watch", "patch"],
        });
        let secrets = secrets.into_iter().filter(|_| has_secrets);
        secrets.chain([configurations]).collect()
    }

    /// Takes the rights on Secrets away, or gives them back.
    pub async fn allow_secrets(&self, is_allowed: bool) {
        let roles: Api<ClusterRole> = Api::all(self.admin.clone());
        let patch = Patch::Merge(json!({"rules": self.rules(is_allowed)}));
        roles.patch(self.name(), &PatchParams::default(), &patch).await.unwrap();
    }

    fn user(&self) -> User {
        User::service_account(self.name(), "kit")
    }

    /// The client of a replica.
    pub async fn client(&self) -> Client {
        self.cluster.client_as(&self.user()).await.unwrap()
    }

    /// What the replicas wrote since a mark.
    pub fn writes_since(&self, mark: testbed::audit::Mark) -> Vec<String> {
        let requests = self.cluster.audit().requests_since(mark).unwrap();
        let writes = requests.into_iter().filter(|r| r.user == self.user().name() && r.is_write());
        // The name of an object that is created is in the request's body only, which the audit log does not keep.
        writes.map(|r| format!("{} {} {}", r.verb, r.resource, r.name).trim_end().to_owned()).collect()
    }

    /// The entries for all replicas of this test.
    pub fn webhooks(&self, path: &str) -> Vec<Value> {
        let webhook = |port: &u16| {
            json!({
                "name": format!("port-{port}.example.com"),
                "clientConfig": {"url": format!("https://127.0.0.1:{port}{path}")},
                "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"],
                           "resources": ["configmaps"], "scope": "Namespaced"}],
                "matchConditions": [
                    {"name": "namespace", "expression": format!("request.namespace == '{}'", self.name())},
                    {"name": "reviewed", "expression": "has(object.metadata.labels) && 'reviewed' in object.metadata.labels"},
                ],
                "admissionReviewVersions": ["v1"], "sideEffects": "None", "timeoutSeconds": 5,
            })
        };
        self.ports.iter().map(webhook).collect()
    }

    /// Installs the configuration as a package does: without entries.
    pub async fn ship(&self) {
        let shipped: ValidatingWebhookConfiguration = object(json!({"metadata": {"name": self.name()}}));
        self.validating().create(&PostParams::default(), &shipped).await.unwrap();
    }

    /// The same, for changes.
    pub async fn ship_mutating(&self) {
        let shipped: MutatingWebhookConfiguration = object(json!({"metadata": {"name": self.name()}}));
        Api::all(self.admin.clone()).create(&PostParams::default(), &shipped).await.unwrap();
    }

    /// Installs the configuration with the entries that an earlier replica has applied.
    pub async fn ship_registered(&self, bundle: &str) {
        self.ship().await;
        let mut webhooks = self.webhooks("/validate");
        for webhook in &mut webhooks {
            webhook["clientConfig"]["caBundle"] = json!(ByteString(bundle.as_bytes().to_vec()));
        }
        let desired = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": self.name()}, "webhooks": webhooks,
        });
        self.validating().patch(self.name(), &PatchParams::apply("kit"), &Patch::Apply(desired)).await.unwrap();
    }

    /// The entries as they are.
    pub async fn entries(&self) -> Vec<Value> {
        let live = self.validating().get(self.name()).await.unwrap();
        let entries = live.webhooks.unwrap_or_default();
        entries.iter().map(|entry| serde_json::to_value(entry).unwrap()).collect()
    }

    pub fn validating(&self) -> Api<ValidatingWebhookConfiguration> {
        Api::all(self.admin.clone())
    }

    pub fn secrets(&self) -> Api<Secret> {
        self.namespace.api()
    }

    /// The bundle of the first webhook.
    pub async fn bundle(&self) -> Option<String> {
        let webhooks = self.validating().get(self.name()).await.unwrap().webhooks.unwrap_or_default();
        let bundle = webhooks.first()?.client_config.ca_bundle.clone()?;
        Some(String::from_utf8(bundle.0).unwrap())
    }

    /// Replaces the first webhook's bundle, as somebody with `kubectl edit` would.
    pub async fn edit_bundle(&self, bundle: Option<&str>) {
        let value = bundle.map(|bundle| ByteString(bundle.as_bytes().to_vec()));
        self.edit("/clientConfig/caBundle", json!(value)).await;
    }

    /// Sets a field of the first entry in the same way.
    pub async fn edit(&self, field: &str, value: Value) {
        let place = format!("/webhooks/0{field}");
        let patch: json_patch::Patch = object(json!([{"op": "add", "path": place, "value": value}]));
        let patch: Patch<()> = Patch::Json(patch);
        let params = PatchParams { field_manager: Some("somebody".into()), ..PatchParams::default() };
        self.validating().patch(self.name(), &params, &patch).await.unwrap();
    }

    /// Waits for a bundle as it should be.
    pub async fn bundle_is(&self, what: &str, is_so: impl Fn(&str) -> bool) -> String {
        wait::until(format!("the bundle: {what}"), DEADLINE, async || match self.bundle().await {
            Some(bundle) if is_so(&bundle) => Ok(bundle),
            other => Err(format!("{other:?}")),
        })
        .await
        .unwrap()
    }

    /// Puts keys and certificates into the Secret, whether it exists or not.
    pub async fn keep(&self, data: BTreeMap<String, ByteString>) {
        self.secrets().delete(SECRET, &DeleteParams::default()).await.ok();
        let mut secret: Secret = object(json!({"metadata": {"name": SECRET}, "type": "kubernetes.io/tls"}));
        secret.data = Some(data);
        self.secrets().create(&PostParams::default(), &secret).await.unwrap();
    }

    /// Changes the Secret in place, as somebody with `kubectl edit` would.
    pub async fn overwrite(&self, change: impl Fn(&mut BTreeMap<String, ByteString>)) {
        wait::until("the Secret to be overwritten", DEADLINE, async || {
            let mut secret = self.secrets().get(SECRET).await.map_err(|e| e.to_string())?;
            change(secret.data.get_or_insert_default());
            let written = self.secrets().replace(SECRET, &PostParams::default(), &secret).await;
            written.map(drop).map_err(|e| e.to_string())
        })
        .await
        .unwrap();
    }

    /// Waits for a sound Secret that is as it should be.
    pub async fn secret_is(&self, what: &str, is_so: impl Fn(&Kept) -> bool) -> Kept {
        wait::until(format!("the Secret: {what}"), DEADLINE, async || {
            let secret = self.secrets().get(SECRET).await.map_err(|e| e.to_string())?;
            let kept = Kept::of(&secret)?;
            if is_so(&kept) { Ok(kept) } else { Err(format!("{kept:#?}")) }
        })
        .await
        .unwrap()
    }

    /// Tries to create a ConfigMap that says what the reviewer is to do.
    pub async fn submit(&self, verdict: &str) -> kube::Result<ConfigMap> {
        let wanted: ConfigMap = object(config_map(verdict));
        let params = PostParams { dry_run: true, ..PostParams::default() };
        Api::namespaced(self.admin.clone(), self.name()).create(&params, &wanted).await
    }

    /// Waits until the API server calls the webhook and understands its answer.
    pub async fn in_force(&self) {
        wait::until("the webhook to be in force", DEADLINE, async || match self.submit("deny").await {
            Err(kube::Error::Api(status)) if status.code == 422 => Ok(()),
            other => Err(format!("{other:?}")),
        })
        .await
        .unwrap();
    }
}

/// A ConfigMap that says what the reviewer is to do.
pub fn config_map(verdict: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "one", "labels": {"reviewed": "yes"}},
        "data": {"verdict": verdict},
    })
}

/// What a Secret holds, as far as tests look at it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    pub authority: String,
    pub serving: String,
    pub previous: Option<String>,
    pub bundle: String,
}

impl Kept {
    fn of(secret: &Secret) -> Result<Self, String> {
        let data = secret.data.clone().unwrap_or_default();
        let bundle = Material::read(&data).map_err(|unsound| unsound.to_string())?.bundle();
        let text = |key: &str| data.get(key).map(|value| String::from_utf8(value.0.clone()).unwrap());
        let (authority, serving) = (text("ca.crt").unwrap(), text("tls.crt").unwrap());
        Ok(Self { authority, serving, previous: text("ca-previous.crt"), bundle })
    }
}
