//! Certificates as far as they matter here: until when, for whom, and signed by whom.

use std::collections::BTreeSet;
use std::net::IpAddr;

use jiff::Timestamp;
use rcgen::{KeyPair, PublicKeyData};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::parse_x509_certificate;

use super::Validity;

const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
const END: &str = "-----END CERTIFICATE-----";

/// A certificate that could be read.
#[derive(Debug, Clone)]
pub(crate) struct Certificate {
    pub(crate) pem: String,
    pub(crate) der: CertificateDer<'static>,
    pub(crate) validity: Validity,
    pub(crate) names: BTreeSet<String>,
    pub(crate) is_authority: bool,
}

/// However it is written down.
impl PartialEq for Certificate {
    fn eq(&self, other: &Self) -> bool {
        self.der == other.der
    }
}

impl Eq for Certificate {}

impl Certificate {
    /// The certificates in a text; none if one of them, or what is around them, makes no sense.
    pub(crate) fn read_all(text: &str) -> Option<Vec<Self>> {
        let blocks = text.split_inclusive(END).map(str::trim).filter(|block| !block.is_empty());
        blocks.map(Self::read).collect()
    }

    /// The certificates in a text that people may have written notes into (RFC 7468, 5.2); none if one makes no sense.
    pub(crate) fn read_annotated(text: &str) -> Option<Vec<Self>> {
        let blocks = text.split_inclusive(END).filter_map(|part| part.get(part.find(BEGIN)?..));
        blocks.map(Self::read).collect()
    }

    fn read(block: &str) -> Option<Self> {
        if !block.starts_with(BEGIN) || !block.ends_with(END) {
            return None;
        }
        let der = CertificateDer::from_pem_slice(block.as_bytes()).ok()?;
        let (rest, parsed) = parse_x509_certificate(&der).ok()?;
        let validity = validity(&parsed)?;
        let (names, is_authority, is_whole) = (names(&parsed), parsed.is_ca(), rest.is_empty());
        is_whole.then(|| Self { pem: format!("{block}\n"), der: der.clone(), validity, names, is_authority })
    }

    /// Whether that one's key has signed this.
    pub(crate) fn is_signed_by(&self, authority: &Self) -> bool {
        let (Ok((_, ours)), Ok((_, theirs))) =
            (parse_x509_certificate(&self.der), parse_x509_certificate(&authority.der))
        else {
            return false;
        };
        ours.issuer() == theirs.subject() && ours.verify_signature(Some(theirs.public_key())).is_ok()
    }

    /// Whether this key is the one it speaks of.
    pub(crate) fn belongs_to(&self, key: &KeyPair) -> bool {
        parse_x509_certificate(&self.der)
            .is_ok_and(|(_, parsed)| parsed.public_key().raw == key.subject_public_key_info())
    }
}

/// Until when a certificate is good.
pub(crate) fn expiry(der: &CertificateDer<'_>) -> Option<Timestamp> {
    let (_, parsed) = parse_x509_certificate(der).ok()?;
    validity(&parsed).map(|validity| validity.not_after)
}

fn validity(parsed: &X509Certificate<'_>) -> Option<Validity> {
    let seconds = |time: x509_parser::time::ASN1Time| Timestamp::from_second(time.timestamp()).ok();
    let (not_before, not_after) = (parsed.validity().not_before, parsed.validity().not_after);
    Some(Validity { not_before: seconds(not_before)?, not_after: seconds(not_after)? })
}

/// The host names and addresses it is for.
fn names(parsed: &X509Certificate<'_>) -> BTreeSet<String> {
    let names = parsed.subject_alternative_name().ok().flatten();
    let names = names.iter().flat_map(|extension| &extension.value.general_names);
    names
        .filter_map(|name| match name {
            GeneralName::DNSName(name) => Some((*name).to_owned()),
            GeneralName::IPAddress(bytes) => address(bytes).map(|address| address.to_string()),
            _ => None,
        })
        .collect()
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    let four = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    four.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from)).ok()
}
