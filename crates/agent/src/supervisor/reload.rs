//! Certificates and passwords that change while memcached runs: taken live, and believed only once a client sees them.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use memcached_wire::{Credentials, Error, first_certificate, shown_certificate};
use rustix::process::Signal;
use tokio::time::{sleep, timeout};
use x509_parser::prelude::{FromDer, X509Certificate};

use super::argument::{CertificateFiles, certificate_files, password_file};
use super::child::Child;
use super::file::Fingerprint;
use super::state::{ReloadStatus, State};
use crate::Chain;
use crate::exporter::{Source, SourceError};

/// memcached keeps no more users, and drops the others in silence.
const MOST_USERS: usize = 8;
/// memcached looks at signals once a second; how long it is asked whether it has taken what it was told to take.
const RELOAD_TIMEOUT: Duration = Duration::from_secs(4);
const PAUSE: Duration = Duration::from_millis(50);
/// What was not taken is tried again after this, and after longer each time.
const FIRST_RETRY: Duration = Duration::from_secs(5);
const LONGEST_RETRY: Duration = Duration::from_secs(60);

/// The files that memcached has read, as they were when they were last taken.
#[derive(Debug, Default)]
pub struct Reloader {
    /// Where TLS is served; none if that cannot be looked at.
    tls_address: Option<String>,
    certificates: CertificateFiles,
    certificates_seen: Vec<Option<Fingerprint>>,
    /// The authority of clients as memcached has read it.
    authority: Option<Vec<u8>>,
    certificates_retry: Retry,
    passwords: Option<PathBuf>,
    passwords_seen: Option<Fingerprint>,
    passwords_retry: Retry,
    /// Who is let in by what memcached has read.
    users: Vec<Credentials>,
}

/// When to try again.
#[derive(Debug, Default)]
struct Retry {
    at: Option<Instant>,
    pause: Duration,
}

impl Retry {
    fn is_due(&self) -> bool {
        self.at.is_some_and(|at| at <= Instant::now())
    }

    fn note(&mut self, is_taken: bool) {
        self.pause = if is_taken { Duration::ZERO } else { (self.pause * 2).clamp(FIRST_RETRY, LONGEST_RETRY) };
        self.at = (!is_taken).then(|| Instant::now() + self.pause);
    }
}

/// What a client gets to see of what was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Look {
    /// This certificate.
    Certificate { serial: String, not_after: i64 },
    /// Everybody who should be is let in, and nobody else.
    LetIn,
    /// Nothing: there is no place to look at.
    Unseen,
}

impl Reloader {
    /// Nothing is known before memcached starts.
    pub fn new(tls_address: Option<String>) -> Self {
        Self { tls_address, ..Self::default() }
    }

    /// memcached is about to start with these arguments, and reads its files then.
    pub fn starting(&mut self, arguments: &[String], state: &State) {
        *self = Self::new(self.tls_address.take());
        self.certificates = certificate_files(arguments);
        self.passwords = password_file(arguments);
        self.certificates_seen = self.certificates_now();
        self.authority = self.authority_now();
        self.passwords_seen = self.passwords_now();
        self.users = self.passwords.as_deref().and_then(|path| users(path).ok()).unwrap_or_default();
        let (has_certificates, has_passwords) = (!self.certificates.all.is_empty(), self.passwords.is_some());
        state.update(|status| {
            status.certificates = status.certificates.take().filter(|_| has_certificates);
            status.credentials = status.credentials.take().filter(|_| has_passwords);
        });
    }

    /// memcached answers: what it shows is what it has read.
    pub async fn started(&mut self, source: &Source, state: &State) {
        if !self.certificates.all.is_empty() {
            let looked = self.shown().await;
            self.certificates_retry.note(looked.is_ok());
            state.update(|status| status.certificates.get_or_insert_default().observe(looked, None));
        }
        if self.passwords.is_some() {
            let let_in = source.connect().await.map(|_| Look::LetIn).map_err(|error| Chain(&error).to_string());
            self.passwords_retry.note(let_in.is_ok());
            state.update(|status| status.credentials.get_or_insert_default().observe(let_in, None));
        }
    }

    /// Takes what has changed, and tries again what was not taken.
    pub async fn poll(&mut self, child: &Child, source: &Source, state: &State) {
        let certificates = self.certificates_now();
        let is_new = certificates != self.certificates_seen;
        if is_new || self.certificates_retry.is_due() {
            self.certificates_seen = certificates;
            let looked = self.reload_certificates(child, source).await;
            self.certificates_retry.note(looked.is_ok());
            tell("certificates", looked.as_ref().err(), is_new);
            state.update(|status| status.certificates.get_or_insert_default().observe(looked, Some(is_new)));
        }
        let passwords = self.passwords_now();
        let is_new = passwords != self.passwords_seen;
        if is_new || self.passwords_retry.is_due() {
            self.passwords_seen = passwords;
            let looked = self.reload_passwords(child, source).await;
            self.passwords_retry.note(looked.is_ok());
            tell("passwords", looked.as_ref().err(), is_new);
            state.update(|status| status.credentials.get_or_insert_default().observe(looked, Some(is_new)));
        }
    }

    async fn reload_certificates(&self, child: &Child, source: &Source) -> Result<Look, String> {
        // The command works in every version; the signal from 1.6.40, and also where no login is to be had.
        let told = async { source.connect_anyhow().await?.refresh_certs().await.map_err(SourceError::from) };
        match timeout(RELOAD_TIMEOUT, told).await {
            Ok(Ok(())) => {}
            Ok(Err(SourceError::Connect(Error::Answered { answer, .. }))) => {
                let files: Vec<String> = self.certificates.all.iter().map(|file| file.display().to_string()).collect();
                return Err(format!("memcached does not take {}: it says {answer:?}", files.join(", ")));
            }
            _ => child.signal(Signal::HUP),
        }
        let looked = until_taken(async || self.shown().await).await?;
        match &self.certificates.authority {
            // Seen with 1.6.45: clients of the one before are let in, and those of the new one are not.
            Some(file) if self.authority_now() != self.authority => Err(format!(
                "{} has changed, which memcached reads only when it starts: restart it, by kubectl rollout restart",
                file.display()
            )),
            _ => Ok(looked),
        }
    }

    /// The certificate that a client gets to see, which has to be the one in the file.
    async fn shown(&self) -> Result<Look, String> {
        let (Some(address), Some(chain)) = (&self.tls_address, &self.certificates.chain) else {
            return Ok(Look::Unseen);
        };
        let pem = fs::read(chain).map_err(|error| format!("{}: {error}", chain.display()))?;
        let wanted = first_certificate(&pem).map_err(|error| format!("{}: {}", chain.display(), Chain(&error)))?;
        let shown = shown_certificate(address).await.map_err(|error| Chain(&error).to_string())?;
        let (_, certificate) = X509Certificate::from_der(&shown).map_err(|error| error.to_string())?;
        let serial = certificate.raw_serial_as_string();
        if shown != wanted {
            return Err(format!("memcached goes on with the certificate {serial}, and not with {}", chain.display()));
        }
        Ok(Look::Certificate { serial, not_after: certificate.validity().not_after.timestamp() })
    }

    async fn reload_passwords(&mut self, child: &Child, source: &Source) -> Result<Look, String> {
        let Some(path) = &self.passwords else { return Ok(Look::Unseen) };
        let users = users(path)?;
        child.signal(Signal::HUP);
        let gone: Vec<&Credentials> = self.users.iter().filter(|user| !users.contains(user)).collect();
        let look = until_taken(async || {
            for user in &users {
                source.connect_as(user.clone()).await.map_err(|error| format!("{}: {}", user.user(), Chain(&error)))?;
            }
            for user in &gone {
                if source.connect_as((*user).clone()).await.is_ok() {
                    return Err(format!("{} is still let in with the old password", user.user()));
                }
            }
            Ok(Look::LetIn)
        });
        let look = look.await;
        if look.is_ok() {
            self.users = users;
            // So that it is known what lets us in, should the next file be a bad one.
            source.connect().await.ok();
        }
        look
    }

    fn authority_now(&self) -> Option<Vec<u8>> {
        self.certificates.authority.as_ref().and_then(|file| fs::read(file).ok())
    }

    fn certificates_now(&self) -> Vec<Option<Fingerprint>> {
        self.certificates.all.iter().map(|file| Fingerprint::of(file)).collect()
    }

    fn passwords_now(&self) -> Option<Fingerprint> {
        self.passwords.as_deref().and_then(Fingerprint::of)
    }
}

/// Looks until it is as it should be, or for as long as memcached may take.
async fn until_taken(mut look: impl AsyncFnMut() -> Result<Look, String>) -> Result<Look, String> {
    let deadline = Instant::now() + RELOAD_TIMEOUT;
    let mut last = Err("memcached does not answer".to_owned());
    while Instant::now() < deadline {
        match timeout(deadline - Instant::now(), look()).await {
            Ok(Ok(look)) => return Ok(look),
            Ok(outcome) => last = outcome,
            Err(_) => break,
        }
        sleep(PAUSE).await;
    }
    last
}

impl ReloadStatus {
    /// Notes what was looked at. A reload counts, and its failure only when the files are new.
    fn observe(&mut self, looked: Result<Look, String>, reload: Option<bool>) {
        match looked {
            Ok(look) => {
                self.reloads += u64::from(reload.is_some());
                self.error = None;
                self.in_force = (look != Look::Unseen).then_some(true);
                if let Look::Certificate { serial, not_after } = look {
                    (self.serial, self.not_after) = (Some(serial), Some(not_after));
                }
            }
            Err(why) => {
                self.failures += u64::from(reload == Some(true));
                self.error = Some(why);
                self.in_force = Some(false);
            }
        }
    }
}

fn tell(what: &str, error: Option<&String>, is_new: bool) {
    match error {
        None => tracing::info!("new {what} are in force"),
        Some(error) if is_new => tracing::error!(error, "new {what} are not in force: the old ones stay"),
        Some(error) => tracing::debug!(error, "new {what} are still not in force"),
    }
}

/// The users of a password file, if memcached would take it as it is.
fn users(path: &Path) -> Result<Vec<Credentials>, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let users = Credentials::all_of(&text).map_err(|error| Chain(&error).to_string())?;
    match users.len() {
        0 => Err("the password file has no user".into()),
        count if count > MOST_USERS => {
            Err(format!("the password file has {count} users, and memcached takes {MOST_USERS}"))
        }
        _ => Ok(users),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> Result<usize, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), text).unwrap();
        users(file.path()).map(|users| users.len())
    }

    #[test]
    fn what_memcached_would_refuse_or_drop_in_silence_is_told() {
        assert_eq!(check("a:1\nb:2\n"), Ok(2));
        assert!(check("").unwrap_err().contains("no user"));
        assert!(check("a 1\n").unwrap_err().contains("not user:password"));
        assert!(check("a:1\n\nb:2\n").is_err());
        let nine: String = (0..9).map(|number| format!("u{number}:x\n")).collect();
        assert!(check(&nine).unwrap_err().contains("9 users"));
    }

    fn certificate(serial: &str) -> Look {
        Look::Certificate { serial: serial.into(), not_after: 7 }
    }

    #[test]
    fn a_failure_keeps_what_is_known_of_the_certificate_in_force() {
        let mut status = ReloadStatus::default();
        status.observe(Ok(certificate("01")), None);
        assert_eq!((status.in_force, status.reloads, status.serial.as_deref()), (Some(true), 0, Some("01")));
        status.observe(Err("no".into()), Some(true));
        status.observe(Err("no".into()), Some(false));
        assert_eq!((status.in_force, status.failures, status.serial.as_deref()), (Some(false), 1, Some("01")));
        status.observe(Ok(certificate("02")), Some(false));
        assert_eq!((status.in_force, status.reloads, status.error), (Some(true), 1, None));
    }

    #[test]
    fn what_nobody_can_look_at_is_not_said_to_be_in_force() {
        let mut status = ReloadStatus::default();
        status.observe(Ok(Look::Unseen), Some(true));
        assert_eq!((status.in_force, status.reloads), (None, 1));
    }

    #[test]
    fn what_was_not_taken_is_tried_again_later_and_later() {
        let mut retry = Retry::default();
        let mut pauses = Vec::new();
        for _ in 0..6 {
            retry.note(false);
            pauses.push(retry.pause.as_secs());
        }
        assert_eq!(pauses, [5, 10, 20, 40, 60, 60]);
        assert!(!retry.is_due());
        retry.note(true);
        assert!(retry.at.is_none() && retry.pause.is_zero());
    }
}
