//! Certificates and passwords that change while memcached runs: taken live, and believed only once a client sees them.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use memcached_wire::{first_certificate, shown_certificate};
use rustix::process::Signal;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::argument::{CertificateFiles, certificate_files, password_file};
use super::child::Child;
use super::file::Fingerprint;
use super::state::{ReloadStatus, State};
use crate::Chain;
use crate::exporter::Source;

/// memcached keeps no more users, and drops the others in silence.
const MOST_USERS: usize = 8;
/// How often memcached is asked whether it has taken what it was told to take.
const ATTEMPTS: u32 = 20;
const PAUSE: Duration = Duration::from_millis(50);

/// The files that memcached has read, as they were when they were last taken.
#[derive(Debug)]
pub struct Reloader {
    /// Where TLS is served; none if that cannot be looked at.
    tls_address: Option<String>,
    certificates: CertificateFiles,
    certificates_seen: Vec<Option<Fingerprint>>,
    passwords: Option<PathBuf>,
    passwords_seen: Option<Fingerprint>,
}

impl Reloader {
    /// Nothing is known before memcached starts.
    pub fn new(tls_address: Option<String>) -> Self {
        Self {
            tls_address,
            certificates: CertificateFiles::default(),
            certificates_seen: Vec::new(),
            passwords: None,
            passwords_seen: None,
        }
    }

    /// memcached is about to start with these arguments, and reads its files then.
    pub fn starting(&mut self, arguments: &[String]) {
        self.certificates = certificate_files(arguments);
        self.passwords = password_file(arguments);
        self.certificates_seen = self.certificates_now();
        self.passwords_seen = self.passwords_now();
    }

    /// memcached answers: what it shows is what it has read.
    pub async fn started(&self, state: &State) {
        if !self.certificates.all.is_empty() {
            let shown = self.shown().await;
            state.update(|status| status.certificates.get_or_insert_default().observe(shown, false));
        }
        if self.passwords.is_some() {
            // Whoever asks memcached has just logged in.
            state.update(|status| status.credentials.get_or_insert_default().in_force = true);
        }
    }

    /// Takes what has changed.
    pub async fn poll(&mut self, child: &Child, source: &Source, state: &State) {
        let certificates = self.certificates_now();
        if certificates != self.certificates_seen {
            self.certificates_seen = certificates;
            let outcome = self.reload_certificates(child, source).await;
            tell("certificates", outcome.as_ref().err());
            state.update(|status| status.certificates.get_or_insert_default().observe(outcome, true));
        }
        let passwords = self.passwords_now();
        if passwords != self.passwords_seen {
            self.passwords_seen = passwords;
            let outcome = self.reload_passwords(child, source).await;
            tell("passwords", outcome.as_ref().err());
            state.update(|status| status.credentials.get_or_insert_default().observe(outcome.map(|()| None), true));
        }
    }

    async fn reload_certificates(&self, child: &Child, source: &Source) -> Result<Option<Shown>, String> {
        // The command works in every version; the signal from 1.6.40, and also where no login is to be had.
        let told = async { source.connect().await.ok()?.refresh_certs().await.ok() };
        if told.await.is_none() {
            child.signal(Signal::HUP);
        }
        let mut last = Err("memcached has not taken them".to_owned());
        for _ in 0..ATTEMPTS {
            last = self.shown().await;
            if last.is_ok() {
                return last;
            }
            tokio::time::sleep(PAUSE).await;
        }
        last
    }

    /// The certificate that a client gets to see, which has to be the one in the file; none if it cannot be looked at.
    async fn shown(&self) -> Result<Option<Shown>, String> {
        let (Some(address), Some(chain)) = (&self.tls_address, &self.certificates.chain) else { return Ok(None) };
        let pem = fs::read(chain).map_err(|error| format!("{}: {error}", chain.display()))?;
        let wanted = first_certificate(&pem).map_err(|error| format!("{}: {}", chain.display(), Chain(&error)))?;
        let shown = shown_certificate(address).await.map_err(|error| Chain(&error).to_string())?;
        let (_, certificate) = X509Certificate::from_der(&shown).map_err(|error| error.to_string())?;
        let serial = certificate.raw_serial_as_string();
        if shown != wanted {
            return Err(format!(
                "memcached goes on with the certificate {serial}, for it could not use that in {}",
                chain.display()
            ));
        }
        Ok(Some(Shown { serial, not_after: certificate.validity().not_after.timestamp() }))
    }

    async fn reload_passwords(&self, child: &Child, source: &Source) -> Result<(), String> {
        if let Some(path) = &self.passwords {
            check_passwords(path)?;
        }
        child.signal(Signal::HUP);
        let mut last = String::new();
        for _ in 0..ATTEMPTS {
            // A new connection logs in as the first user of the file as it is now.
            match source.connect().await {
                Ok(_) => return Ok(()),
                Err(error) => last = Chain(&error).to_string(),
            }
            tokio::time::sleep(PAUSE).await;
        }
        Err(last)
    }

    fn certificates_now(&self) -> Vec<Option<Fingerprint>> {
        self.certificates.all.iter().map(|file| Fingerprint::of(file)).collect()
    }

    fn passwords_now(&self) -> Option<Fingerprint> {
        self.passwords.as_deref().and_then(Fingerprint::of)
    }
}

/// A certificate that is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    serial: String,
    not_after: i64,
}

impl ReloadStatus {
    fn observe(&mut self, outcome: Result<Option<Shown>, String>, is_reload: bool) {
        self.in_force = outcome.is_ok();
        match outcome {
            Ok(shown) => {
                self.reloads += u64::from(is_reload);
                self.error = None;
                (self.serial, self.not_after) = shown.map(|shown| (shown.serial, shown.not_after)).unzip();
            }
            Err(why) => {
                self.failures += u64::from(is_reload);
                self.error = Some(why);
            }
        }
    }
}

fn tell(what: &str, error: Option<&String>) {
    match error {
        None => tracing::info!("new {what} are in force"),
        Some(error) => tracing::error!(error, "new {what} are not in force: the old ones stay"),
    }
}

/// Whether memcached would take the file as it is.
fn check_passwords(path: &Path) -> Result<(), String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let users: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    match users.len() {
        0 => Err("the password file has no user".into()),
        count if count > MOST_USERS => {
            Err(format!("the password file has {count} users, and memcached takes {MOST_USERS}"))
        }
        _ if users.iter().any(|line| !line.contains(':')) => Err("a line of the password file has no colon".into()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> Result<(), String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), text).unwrap();
        check_passwords(file.path())
    }

    #[test]
    fn what_memcached_would_refuse_or_drop_in_silence_is_told() {
        assert_eq!(check("a:1\nb:2\n"), Ok(()));
        assert!(check("").unwrap_err().contains("no user"));
        assert!(check("a 1\n").unwrap_err().contains("no colon"));
        let nine: String = (0..9).map(|number| format!("u{number}:x\n")).collect();
        assert!(check(&nine).unwrap_err().contains("9 users"));
    }

    #[test]
    fn a_failure_keeps_what_is_known_of_the_certificate_in_force() {
        let mut status = ReloadStatus::default();
        status.observe(Ok(Some(Shown { serial: "01".into(), not_after: 7 })), false);
        assert_eq!((status.in_force, status.reloads, status.serial.as_deref()), (true, 0, Some("01")));
        status.observe(Err("no".into()), true);
        assert_eq!((status.in_force, status.failures, status.serial.as_deref()), (false, 1, Some("01")));
        status.observe(Ok(Some(Shown { serial: "02".into(), not_after: 8 })), true);
        assert_eq!((status.in_force, status.reloads, status.error), (true, 1, None));
    }
}
