//! What the Secret holds: an authority, the serving certificate it has signed, and authorities that still count.
//! Pure: the time is given, and what was read is either sound as a whole or not used at all.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::ByteString;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};
use rustls::ServerConfig;
use rustls::pki_types::PrivatePkcs8KeyDer;

use super::plan::{BACKDATE, CertificateState, Signer};
use super::x509::Certificate;
use super::{Times, Validity};
use crate::admin::{TlsError, server_config};

const SERVING: &str = "tls.crt";
const SERVING_KEY: &str = "tls.key";
const AUTHORITY: &str = "ca.crt";
const AUTHORITY_KEY: &str = "ca.key";
/// Authorities that are trusted beside the one that signs.
const PREVIOUS: &str = "ca-previous.crt";

/// Keys and certificates of a webhook, as they are kept in a Secret.
///
/// ```
/// use operator_kit::certificate::{Material, Times};
///
/// let now = jiff::Timestamp::now();
/// let made = Material::make(&["widgets.operators.svc".to_owned()], &Times::default(), now).unwrap();
/// let read = Material::read(&made.data()).unwrap();
/// assert_eq!(read.bundle(), made.bundle());
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Material {
    authority: Certificate,
    authority_key: String,
    /// The newest first.
    previous: Vec<Certificate>,
    serving: Certificate,
    serving_key: String,
    signer: Signer,
}

/// Why the content of a Secret is of no use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unsound {
    /// A key is missing, or is no text.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// A value is not what it should be.
    #[error("{0} makes no sense")]
    Nonsense(&'static str),
    /// A key does not fit its certificate.
    #[error("{0} does not fit its certificate")]
    Mismatch(&'static str),
    /// Nobody whom we know has signed the serving certificate.
    #[error("tls.crt is signed by none of the authorities")]
    Unsigned,
}

impl Material {
    /// A new authority and a serving certificate for these names.
    pub fn make(names: &[String], times: &Times, now: Timestamp) -> Result<Self, rcgen::Error> {
        let (authority, authority_key) = new_authority(times.authority, now)?;
        let (serving, serving_key) = new_serving(&authority, &authority_key, names, times, now)?;
        Ok(Self { authority, authority_key, previous: Vec::new(), serving, serving_key, signer: Signer::Authority })
    }

    /// What a Secret holds, if all of it fits together.
    pub fn read(data: &BTreeMap<String, ByteString>) -> Result<Self, Unsound> {
        let text = |key: &'static str| {
            let value = data.get(key).ok_or(Unsound::Missing(key))?;
            String::from_utf8(value.0.clone()).map_err(|_| Unsound::Nonsense(key))
        };
        let all = |key: &'static str, text: &str| Certificate::read_all(text).ok_or(Unsound::Nonsense(key));
        let one = |key: &'static str| {
            let [one] = <[Certificate; 1]>::try_from(all(key, &text(key)?)?).map_err(|_| Unsound::Nonsense(key))?;
            Ok(one)
        };
        let key = |name: &'static str, certificate: &Certificate| {
            let text = text(name)?;
            let pair = KeyPair::from_pem(&text).map_err(|_| Unsound::Nonsense(name))?;
            if certificate.belongs_to(&pair) { Ok(text) } else { Err(Unsound::Mismatch(name)) }
        };
        let (authority, serving) = (one(AUTHORITY)?, one(SERVING)?);
        let previous = if data.contains_key(PREVIOUS) { all(PREVIOUS, &text(PREVIOUS)?)? } else { Vec::new() };
        if !authority.is_authority {
            return Err(Unsound::Nonsense(AUTHORITY));
        }
        let signer = if serving.is_signed_by(&authority) {
            Signer::Authority
        } else {
            let signer = previous.iter().position(|previous| serving.is_signed_by(previous));
            Signer::Previous(signer.ok_or(Unsound::Unsigned)?)
        };
        let (authority_key, serving_key) = (key(AUTHORITY_KEY, &authority)?, key(SERVING_KEY, &serving)?);
        Ok(Self { authority, authority_key, previous, serving, serving_key, signer })
    }

    /// What goes into the Secret.
    pub fn data(&self) -> BTreeMap<String, ByteString> {
        let mut all = vec![
            (SERVING, self.serving.pem.clone()),
            (SERVING_KEY, self.serving_key.clone()),
            (AUTHORITY, self.authority.pem.clone()),
            (AUTHORITY_KEY, self.authority_key.clone()),
        ];
        if !self.previous.is_empty() {
            all.push((PREVIOUS, self.previous.iter().map(|previous| previous.pem.as_str()).collect()));
        }
        all.into_iter().map(|(key, text)| (key.to_owned(), ByteString(text.into_bytes()))).collect()
    }

    /// The authorities that whoever calls the webhook has to trust.
    pub fn bundle(&self) -> String {
        self.trusted().map(|authority| authority.pem.as_str()).collect()
    }

    /// Whether serving with it makes sense at that time.
    pub fn is_valid(&self, now: Timestamp) -> bool {
        self.serving.validity.contains(now) && self.issuer().validity.contains(now)
    }

    /// Until when the serving certificate is good.
    pub fn expiry(&self) -> Timestamp {
        self.serving.validity.not_after
    }

    pub(super) fn trusted(&self) -> impl Iterator<Item = &Certificate> {
        std::iter::once(&self.authority).chain(&self.previous)
    }

    /// Who has signed the serving certificate.
    pub(super) fn issuer(&self) -> &Certificate {
        match self.signer {
            Signer::Authority => &self.authority,
            Signer::Previous(index) => self.previous.get(index).unwrap_or(&self.authority),
        }
    }

    pub(super) fn serving(&self) -> &Certificate {
        &self.serving
    }

    /// What the plan has to know.
    pub(super) fn certificates(&self, names: &[String], published: Option<Timestamp>) -> CertificateState {
        CertificateState {
            authority: self.authority.validity,
            serving: self.serving.validity,
            signer: self.signer,
            has_previous: !self.previous.is_empty(),
            has_names: names.iter().all(|name| self.serving.names.contains(&canonical(name))),
            published,
        }
    }

    /// With a new authority that has signed nothing yet; the old one stays trusted.
    pub(super) fn with_new_authority(self, times: &Times, now: Timestamp) -> Result<Self, rcgen::Error> {
        let (authority, authority_key) = new_authority(times.authority, now)?;
        let previous = std::iter::once(self.authority).chain(self.previous).collect();
        let signer = match self.signer {
            Signer::Authority => Signer::Previous(0),
            Signer::Previous(index) => Signer::Previous(index + 1),
        };
        Ok(Self { authority, authority_key, previous, signer, ..self })
    }

    /// With a new serving certificate.
    pub(super) fn with_new_serving(
        self,
        names: &[String],
        times: &Times,
        now: Timestamp,
    ) -> Result<Self, rcgen::Error> {
        let (serving, serving_key) = new_serving(&self.authority, &self.authority_key, names, times, now)?;
        Ok(Self { serving, serving_key, signer: Signer::Authority, ..self })
    }

    /// Trusting one more authority.
    pub(super) fn with_previous(mut self, authority: Certificate) -> Self {
        self.previous.push(authority);
        self
    }

    /// Trusting nobody but the authority that signs.
    pub(super) fn without_previous(self) -> Self {
        Self { previous: Vec::new(), ..self }
    }

    /// A configuration to serve with.
    pub(super) fn server_config(&self) -> Result<ServerConfig, TlsError> {
        let key = PrivatePkcs8KeyDer::from(KeyPair::from_pem(&self.serving_key)?.serialize_der());
        Ok(server_config(vec![self.serving.der.clone()], key.into())?)
    }
}

/// Without the keys: this may end up in a log.
impl std::fmt::Debug for Material {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Material").field("expiry", &self.expiry()).field("signer", &self.signer).finish_non_exhaustive()
    }
}

/// An address as a certificate spells it.
fn canonical(name: &str) -> String {
    name.parse::<IpAddr>().map_or_else(|_| name.to_owned(), |address| address.to_string())
}

fn new_authority(lifetime: Duration, now: Timestamp) -> Result<(Certificate, String), rcgen::Error> {
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::default();
    // The time tells authorities apart that follow each other.
    params.distinguished_name.push(DnType::CommonName, format!("webhook authority of {now:.0}"));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    Validity::starting(now, lifetime).write(&mut params);
    made(&params.self_signed(&key)?, &key)
}

fn new_serving(
    authority: &Certificate,
    authority_key: &str,
    names: &[String],
    times: &Times,
    now: Timestamp,
) -> Result<(Certificate, String), rcgen::Error> {
    let issuer = Issuer::from_ca_cert_der(&authority.der, KeyPair::from_pem(authority_key)?)?;
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name.push(DnType::CommonName, "webhook");
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    let mut validity = Validity::starting(now, times.serving);
    // Longer than its authority it would be worth nothing.
    validity.not_after = validity.not_after.min(authority.validity.not_after);
    validity.write(&mut params);
    made(&params.signed_by(&key, &issuer)?, &key)
}

fn made(certificate: &rcgen::Certificate, key: &KeyPair) -> Result<(Certificate, String), rcgen::Error> {
    let read = Certificate::read_all(&certificate.pem()).and_then(|mut all| all.pop());
    Ok((read.ok_or(rcgen::Error::CouldNotParseCertificate)?, key.serialize_pem()))
}

impl Validity {
    /// From now on, and a little before: clocks differ.
    fn starting(now: Timestamp, lifetime: Duration) -> Self {
        let not_after = now.checked_add(lifetime).unwrap_or(Timestamp::MAX);
        Self { not_before: now.checked_sub(BACKDATE).unwrap_or(now), not_after }
    }

    fn write(self, params: &mut CertificateParams) {
        let date = |time: Timestamp| {
            let seconds = u64::try_from(time.as_second()).unwrap_or_default();
            rcgen::date_time_ymd(1970, 1, 1) + Duration::from_secs(seconds)
        };
        params.not_before = date(self.not_before);
        params.not_after = date(self.not_after);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Vec<String> {
        ["widgets.operators.svc", "127.0.0.1", "0:0::1"].map(str::to_owned).to_vec()
    }

    fn now() -> Timestamp {
        "2026-03-01T12:00:00Z".parse().unwrap()
    }

    fn made() -> Material {
        Material::make(&names(), &Times::default(), now()).unwrap()
    }

    fn changed(change: impl Fn(&mut BTreeMap<String, ByteString>)) -> Unsound {
        let mut data = made().data();
        change(&mut data);
        Material::read(&data).unwrap_err()
    }

    #[test]
    fn what_is_kept_is_read_again_through_all_stages() {
        let times = Times::default();
        let mut stages = vec![made()];
        stages.push(stages[0].clone().with_new_authority(&times, now()).unwrap());
        assert_eq!(stages[1].issuer(), &stages[0].authority, "a new authority signs nothing by itself");
        stages.push(stages[1].clone().with_new_authority(&times, now()).unwrap());
        assert_eq!(stages[2].issuer(), &stages[0].authority, "nor does the next one");
        stages.push(stages[1].clone().with_new_serving(&names(), &times, now()).unwrap());
        assert_eq!(stages[3].issuer(), &stages[3].authority);
        stages.push(stages[3].clone().without_previous());
        for stage in stages {
            assert_eq!(Material::read(&stage.data()).as_ref(), Ok(&stage));
            assert!(stage.server_config().is_ok());
            assert!(stage.certificates(&names(), None).has_names);
        }
    }

    #[test]
    fn a_part_that_does_not_fit_spoils_the_whole() {
        let other = made().data();
        for key in [SERVING, SERVING_KEY, AUTHORITY, AUTHORITY_KEY] {
            assert_eq!(changed(|data| drop(data.remove(key))), Unsound::Missing(key));
            let nonsense =
                |data: &mut BTreeMap<_, _>| drop(data.insert(key.to_owned(), ByteString(b"nonsense".into())));
            assert_eq!(changed(nonsense), Unsound::Nonsense(key));
            let binary = |data: &mut BTreeMap<_, _>| drop(data.insert(key.to_owned(), ByteString(vec![0xff, 0])));
            assert_eq!(changed(binary), Unsound::Nonsense(key));
        }
        let swap = |keys: &'static [&str]| {
            changed(|data| keys.iter().for_each(|key| drop(data.insert((*key).to_owned(), other[*key].clone()))))
        };
        assert_eq!(swap(&[SERVING]), Unsound::Unsigned);
        assert_eq!(swap(&[SERVING_KEY]), Unsound::Mismatch(SERVING_KEY));
        assert_eq!(swap(&[AUTHORITY]), Unsound::Unsigned);
        assert_eq!(swap(&[AUTHORITY_KEY]), Unsound::Mismatch(AUTHORITY_KEY));
        assert_eq!(swap(&[AUTHORITY, AUTHORITY_KEY]), Unsound::Unsigned);
        assert!(Material::read(&BTreeMap::new()).is_err());
    }

    #[test]
    fn a_leaf_is_no_authority_and_a_certificate_outlives_none() {
        let times = Times { authority: Duration::from_secs(3600), ..Times::default() };
        let made = Material::make(&names(), &times, now()).unwrap();
        assert_eq!(made.expiry(), made.authority.validity.not_after);
        assert!(made.is_valid(now()) && !made.is_valid(made.expiry()));
        let mut data = made.data();
        for (to, from) in [(AUTHORITY, SERVING), (AUTHORITY_KEY, SERVING_KEY)] {
            data.insert(to.to_owned(), data[from].clone());
        }
        assert_eq!(Material::read(&data), Err(Unsound::Nonsense(AUTHORITY)));
    }

    #[test]
    fn names_that_are_missing_show() {
        assert!(made().certificates(&names(), None).has_names);
        assert!(!made().certificates(&["other.operators.svc".to_owned()], None).has_names);
    }

    #[test]
    fn a_log_does_not_tell_keys() {
        assert!(!format!("{:?}", made()).contains("PRIVATE"));
    }
}
