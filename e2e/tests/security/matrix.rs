//! {no TLS, Alongside, Required, client certificates} × {no login, ASCII, SASL} × {monitoring off, on} × {Deployment,
//! StatefulSet}: every port answers or refuses as the contract's table says.

use std::fmt;
use std::net::SocketAddr;

use e2e::pod::address;
use e2e::scrape::scrape;
use e2e::stage::Stage;
use serde_json::{Value, json};
use testbed::Node;
use testbed::artifact::SASL as SASL_IMAGE;

use crate::attempt::{Login, attempt, binary_without_login};
use crate::keyring::{Keyring, PASSWORD, Shown, USER};
use crate::set;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encryption {
    None,
    Alongside,
    Required,
    ClientCertificates,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Authentication {
    None,
    Ascii,
    Sasl,
}

/// One cell of the table.
#[derive(Debug, Clone, Copy)]
struct Cell {
    encryption: Encryption,
    authentication: Authentication,
    is_monitored: bool,
    is_stateful: bool,
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let monitoring = if self.is_monitored { "monitored" } else { "unmonitored" };
        let workload = if self.is_stateful { "-stateful" } else { "" };
        write!(f, "{:?}-{:?}-{monitoring}{workload}", self.encryption, self.authentication)
    }
}

impl Cell {
    fn name(self) -> String {
        self.to_string().to_lowercase()
    }

    fn spec(self) -> Value {
        let mut security = json!({"networkPolicy": {"enabled": true}});
        let tls = json!({"enabled": true, "certificateSecretRef": {"name": "certs"}});
        match self.encryption {
            Encryption::None => {}
            Encryption::Alongside => security["tls"] = tls,
            Encryption::Required => {
                security["tls"] = tls;
                security["tls"]["mode"] = json!("Required");
            }
            Encryption::ClientCertificates => {
                security["tls"] = tls;
                security["tls"]["enableClientCert"] = json!(true);
            }
        }
        let sasl = json!({"enabled": true, "credentialsSecretRef": {"name": "creds"}});
        let mut spec = json!({"replicas": 1, "monitoring": {"enabled": self.is_monitored}});
        match self.authentication {
            Authentication::None => {}
            Authentication::Ascii => security["sasl"] = sasl,
            Authentication::Sasl => {
                security["sasl"] = sasl;
                security["sasl"]["mode"] = json!("SASL");
                spec["image"] = json!(SASL_IMAGE);
            }
        }
        spec["security"] = security;
        spec["workload"]["type"] = json!(if self.is_stateful { "StatefulSet" } else { "Deployment" });
        spec
    }

    fn is_encrypted(self, port: u16) -> bool {
        match self.encryption {
            Encryption::None => false,
            Encryption::Alongside => port == 11212,
            Encryption::Required | Encryption::ClientCertificates => true,
        }
    }

    fn right(self) -> Login<'static> {
        match self.authentication {
            Authentication::None => Login::Nobody,
            Authentication::Ascii => Login::Ascii(USER, PASSWORD),
            Authentication::Sasl => Login::Sasl(USER, PASSWORD),
        }
    }

    fn wrong(self) -> Vec<Login<'static>> {
        match self.authentication {
            Authentication::None => vec![],
            Authentication::Ascii => {
                vec![Login::Nobody, Login::Ascii(USER, "wrong"), Login::Ascii("nobody@shop", PASSWORD)]
            }
            Authentication::Sasl => vec![
                Login::Nobody,
                Login::Ascii(USER, PASSWORD),
                Login::Sasl(USER, "wrong"),
                Login::Sasl("nobody@shop", PASSWORD),
            ],
        }
    }

    /// What a client has to show where it is encrypted.
    fn shown(self) -> Shown {
        if self.encryption == Encryption::ClientCertificates { Shown::Ours } else { Shown::Nothing }
    }
}

/// What went otherwise than the table says.
#[derive(Default)]
struct Findings(Vec<String>);

impl Findings {
    fn works(&mut self, what: String, tried: Result<(), String>) {
        if let Err(why) = tried {
            self.0.push(format!("{what} should work: {why}"));
        }
    }

    fn is_refused(&mut self, what: String, tried: Result<(), String>) {
        if tried.is_ok() {
            self.0.push(format!("{what} should be refused, and works"));
        }
    }
}

async fn check(cell: Cell, host: SocketAddr, keyring: &Keyring, findings: &mut Findings) {
    for port in [11211, 11212] {
        let at = SocketAddr::new(host.ip(), port);
        if port == 11212 && cell.encryption == Encryption::None {
            findings.is_refused(format!("{cell} {port}, which is closed"), attempt(at, None, cell.right()).await);
            continue;
        }
        let is_encrypted = cell.is_encrypted(port);
        let tls = || is_encrypted.then(|| keyring.tls(cell.shown()));
        findings.works(format!("{cell} {port}"), attempt(at, tls(), cell.right()).await);
        for wrong in cell.wrong() {
            findings.is_refused(format!("{cell} {port} as {wrong:?}"), attempt(at, tls(), wrong).await);
        }
        if cell.authentication == Authentication::Sasl {
            findings.is_refused(format!("{cell} {port} without a login"), binary_without_login(at, tls()).await);
        }
        if is_encrypted {
            findings.is_refused(format!("{cell} {port} in plaintext"), attempt(at, None, cell.right()).await);
            let distrusting = Some(keyring.distrusting());
            findings.is_refused(format!("{cell} {port} distrusted"), attempt(at, distrusting, cell.right()).await);
        } else {
            let tls = Some(keyring.tls(Shown::Ours));
            findings.is_refused(format!("{cell} {port} in TLS"), attempt(at, tls, cell.right()).await);
        }
        if cell.encryption == Encryption::ClientCertificates {
            for shown in [Shown::Nothing, Shown::Untrusted, Shown::Expired] {
                let tls = Some(keyring.tls(shown));
                findings.is_refused(format!("{cell} {port} showing {shown:?}"), attempt(at, tls, cell.right()).await);
            }
        }
    }
    let loopback = SocketAddr::new(host.ip(), 11213);
    findings.is_refused(format!("{cell} 11213 from outside"), attempt(loopback, None, Login::Nobody).await);
}

/// The exporter sees the server, and sees it being used.
async fn check_metrics(cell: Cell, host: SocketAddr, keyring: &Keyring, findings: &mut Findings) {
    let at = SocketAddr::new(host.ip(), 9150);
    let before = scrape(at).await.unwrap_or_default();
    if !cell.is_monitored {
        if !before.is_empty() {
            findings.0.push(format!("{cell}: metrics without monitoring"));
        }
        return;
    }
    let tls = cell.is_encrypted(11211).then(|| keyring.tls(cell.shown()));
    findings.works(format!("{cell} a write"), attempt(SocketAddr::new(host.ip(), 11211), tls, cell.right()).await);
    let after = scrape(at).await.unwrap_or_default();
    if after.value("memcached_up") != Some(1.0) {
        findings.0.push(format!("{cell}: memcached_up is {:?}", after.value("memcached_up")));
    }
    let sets = r#"memcached_commands_total{command="set",status="hit"}"#;
    if after.value(sets) <= before.value(sets) {
        findings.0.push(format!("{cell}: {sets} stays {:?}", after.value(sets)));
    }
    findings.0.extend(after.missing_names().into_iter().map(|name| format!("{cell}: no metric {name}")));
}

async fn row(encryption: Encryption) {
    let node = Node::shared().await.unwrap();
    let stage: Stage = set(&node, &format!("{encryption:?}").to_lowercase()).await;
    let keyring = Keyring::make(&stage);
    let modes = [Authentication::None, Authentication::Ascii, Authentication::Sasl];
    let cells: Vec<Cell> = modes
        .into_iter()
        .flat_map(|authentication| {
            let cell = |is_monitored, is_stateful| Cell { encryption, authentication, is_monitored, is_stateful };
            [cell(false, false), cell(true, false), cell(false, true), cell(true, true)]
        })
        .collect();
    for cell in &cells {
        stage.declare(&cell.name(), &cell.spec()).unwrap();
    }
    let mut findings = Findings::default();
    for cell in cells {
        stage.ready(&cell.name()).await.unwrap();
        let servers = stage.servers(&cell.name()).await.unwrap();
        let host = address(&servers[0], 11211).unwrap();
        check(cell, host, &keyring, &mut findings).await;
        check_metrics(cell, host, &keyring, &mut findings).await;
    }
    assert!(findings.0.is_empty(), "{}", findings.0.join("\n"));
}

#[tokio::test]
async fn without_tls() {
    row(Encryption::None).await;
}

#[tokio::test]
async fn tls_alongside_plaintext() {
    row(Encryption::Alongside).await;
}

#[tokio::test]
async fn tls_required() {
    row(Encryption::Required).await;
}

#[tokio::test]
async fn client_certificates() {
    row(Encryption::ClientCertificates).await;
}
