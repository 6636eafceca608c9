//! etcd, the API server and its controllers: how they are started, in whichever shape.

use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Api;
use tokio::net::TcpStream;

use super::Cluster;
use super::process::Processes;
use crate::artifact::{Artifact, etcd};
use crate::audit;
use crate::error::{Error, Result};
use crate::pki::{Pki, User, write_secret};
use crate::store::Store;
use crate::wait;

/// How long a component may take to come up on a busy machine, in seconds.
pub const DEADLINE: u64 = 180;

/// Where a control plane listens and what it hands out.
#[derive(Debug, Clone)]
pub struct Plan {
    pub dir: PathBuf,
    pub api_port: u16,
    pub etcd_port: u16,
    pub etcd_peer_port: u16,
    pub services: String,
    /// The addresses that clients may use, besides loopback.
    pub addresses: Vec<Ipv4Addr>,
    /// What pods are told; none where no pod can run.
    pub advertise: Option<Ipv4Addr>,
}

impl Plan {
    fn pki(&self) -> Result<Pki> {
        Pki::open(self.dir.join("pki"))
    }

    /// The API server as its neighbours see it.
    pub fn local_url(&self) -> String {
        format!("https://127.0.0.1:{}", self.api_port)
    }

    /// A kubeconfig for a component that runs beside the API server.
    pub fn component_kubeconfig(&self, file: &str, user: &User) -> Result<PathBuf> {
        let path = self.dir.join("kubeconfigs").join(file);
        write_secret(&path, &self.pki()?.kubeconfig(&self.local_url(), user)?)?;
        Ok(path)
    }

    fn etcd_arguments(&self) -> Vec<String> {
        let client = format!("http://127.0.0.1:{}", self.etcd_port);
        let peer = format!("http://127.0.0.1:{}", self.etcd_peer_port);
        vec![
            format!("--data-dir={}", self.dir.join("etcd").display()),
            format!("--listen-client-urls={client}"),
            format!("--advertise-client-urls={client}"),
            format!("--listen-peer-urls={peer}"),
            format!("--initial-advertise-peer-urls={peer}"),
            format!("--initial-cluster=default={peer}"),
            // Its default of 2 GiB is too little for the versions of ten thousand objects and their pods.
            format!("--quota-backend-bytes={}", 8_u64 << 30),
        ]
    }

    fn api_server_arguments(&self) -> Result<Vec<String>> {
        let pki = self.pki()?;
        let mut addresses: Vec<IpAddr> = vec![IpAddr::V4(Ipv4Addr::LOCALHOST)];
        addresses.extend(self.addresses.iter().copied().map(IpAddr::V4));
        let names = ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"];
        let (certificate, key) = pki.server("kube-apiserver", &names, &addresses)?;
        let (kubelet_certificate, kubelet_key) = pki.client("apiserver-kubelet", &User::admin())?;
        let policy = self.dir.join("audit-policy.yaml");
        fs::write(&policy, audit::POLICY).map_err(Error::file("write", &policy))?;
        let file = |flag: &str, path: &Path| format!("--{flag}={}", path.display());
        let mut arguments = vec![
            format!("--etcd-servers=http://127.0.0.1:{}", self.etcd_port),
            format!("--secure-port={}", self.api_port),
            file("tls-cert-file", &certificate),
            file("tls-private-key-file", &key),
            file("client-ca-file", &pki.ca()),
            file("service-account-key-file", &pki.service_account_public_key()),
            file("service-account-signing-key-file", &pki.service_account_key()),
            "--service-account-issuer=https://kubernetes.default.svc".into(),
            format!("--service-cluster-ip-range={}", self.services),
            "--authorization-mode=Node,RBAC".into(),
            "--allow-privileged=true".into(),
            file("kubelet-client-certificate", &kubelet_certificate),
            file("kubelet-client-key", &kubelet_key),
            "--kubelet-preferred-address-types=InternalIP".into(),
            file("audit-policy-file", &policy),
            file("audit-log-path", &self.dir.join("logs/audit.log")),
            // Counting needs the whole log: far above the size at which it would be rotated away.
            "--audit-log-maxsize=8192".into(),
        ];
        arguments.extend(match self.advertise {
            Some(address) => vec!["--bind-address=0.0.0.0".into(), format!("--advertise-address={address}")],
            // Endpoints must not name loopback, so here the Service `kubernetes` has none.
            None => ["--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none"]
                .map(str::to_owned)
                .to_vec(),
        });
        Ok(arguments)
    }

    fn controller_manager_arguments(&self) -> Result<Vec<String>> {
        let pki = self.pki()?;
        let kubeconfig =
            self.component_kubeconfig("kube-controller-manager", &User::new("system:kube-controller-manager"))?;
        Ok(vec![
            format!("--kubeconfig={}", kubeconfig.display()),
            format!("--service-account-private-key-file={}", pki.service_account_key().display()),
            format!("--root-ca-file={}", pki.ca().display()),
            format!("--cluster-signing-cert-file={}", pki.ca().display()),
            format!("--cluster-signing-key-file={}", pki.ca_key().display()),
            "--use-service-account-credentials=true".into(),
            "--leader-elect=false".into(),
            // No port of its own: several control planes share the machine.
            "--secure-port=0".into(),
            "--kube-api-qps=200".into(),
            "--kube-api-burst=400".into(),
            "--concurrent-deployment-syncs=20".into(),
            "--concurrent-replicaset-syncs=20".into(),
            // A busy machine may keep a kubelet or kwok from reporting for a minute; that is no failure of a node.
            "--node-monitor-grace-period=600s".into(),
        ])
    }
}

/// Starts etcd and the API server and waits until it is ready.
pub async fn start(plan: &Plan, cluster: &Cluster, store: &Store, processes: &mut Processes) -> Result<()> {
    let program = store.ensure(&etcd())?.join("etcd");
    processes.start("etcd", &program, &plan.etcd_arguments())?;
    wait_for_port(("127.0.0.1", plan.etcd_port), processes, "etcd").await?;
    start_api_server(plan, cluster, store, processes).await
}

/// Starts the API server alone and waits until it is ready.
pub async fn start_api_server(plan: &Plan, cluster: &Cluster, store: &Store, processes: &mut Processes) -> Result<()> {
    let program = kubernetes(store, "kube-apiserver")?;
    processes.start("kube-apiserver", &program, &plan.api_server_arguments()?)?;
    let client = cluster.client().await?;
    until_alive("the API server", processes, async || {
        let request = http_get("/readyz")?;
        client.request_text(request).await.map(drop).map_err(|e| e.to_string())
    })
    .await
}

/// Starts the controllers and waits until they have done their first deed.
pub async fn start_controllers(plan: &Plan, cluster: &Cluster, store: &Store, processes: &mut Processes) -> Result<()> {
    let program = kubernetes(store, "kube-controller-manager")?;
    processes.start("kube-controller-manager", &program, &plan.controller_manager_arguments()?)?;
    let accounts: Api<ServiceAccount> = Api::namespaced(cluster.client().await?, "default");
    until_alive("the default service account", processes, async || {
        accounts.get("default").await.map(drop).map_err(|e| e.to_string())
    })
    .await
}

/// Starts the scheduler; pods wait for it, nobody else does.
pub fn start_scheduler(plan: &Plan, store: &Store, processes: &mut Processes) -> Result<()> {
    let kubeconfig = plan.component_kubeconfig("kube-scheduler", &User::new("system:kube-scheduler"))?;
    let arguments = [
        format!("--kubeconfig={}", kubeconfig.display()),
        "--leader-elect=false".into(),
        "--secure-port=0".into(),
        "--kube-api-qps=200".into(),
        "--kube-api-burst=400".into(),
    ];
    processes.start("kube-scheduler", &kubernetes(store, "kube-scheduler")?, &arguments)
}

/// The path of a program of Kubernetes, built first if need be.
pub fn kubernetes(store: &Store, program: &'static str) -> Result<PathBuf> {
    Ok(store.ensure(&Artifact::kubernetes(program))?.join(program))
}

/// Waits until a port accepts connections.
pub async fn wait_for_port(
    address: impl tokio::net::ToSocketAddrs + Copy,
    processes: &mut Processes,
    what: &str,
) -> Result<()> {
    until_alive(what, processes, async || TcpStream::connect(address).await.map(drop).map_err(|e| e.to_string())).await
}

/// Waits for `probe`, but not for what has died.
pub async fn until_alive<T>(
    what: &str,
    processes: &mut Processes,
    mut probe: impl AsyncFnMut() -> Result<T, String>,
) -> Result<T> {
    let answer = wait::until(what, DEADLINE, async || match processes.check() {
        Err(dead) => Ok(Err(dead)),
        Ok(()) => probe().await.map(Ok),
    });
    answer.await?
}

fn http_get(path: &str) -> Result<http::Request<Vec<u8>>, String> {
    http::Request::get(path).body(Vec::new()).map_err(|e| e.to_string())
}
