//! What a memcached of some age cannot do: told now, and not by a container that ends again and again.
//!
//! Only a tag that begins with a version says how old an image is; of others nothing is known.

use memcached_api::memcached::spec::{MemcachedSpec, SaslMode, WorkloadType};

use operator_model::image;
use operator_model::violation::Violation;

type Version = (u32, u32, u32);

const TLS: Version = (1, 5, 13);
const PASSWORD_FILE: Version = (1, 5, 15);
const DISK: Version = (1, 5, 18);
const WARM_RESTART: Version = (1, 5, 18);
/// The oldest that was tried with a protocol for one listener alone.
const LISTENER_PROTOCOL: Version = (1, 6, 18);

/// The version that a spec asks for, as far as it says, and the field that says it.
fn asked_for(spec: &MemcachedSpec) -> Option<(&'static str, Version)> {
    let (field, tag) = match (&spec.version, &spec.image) {
        (Some(version), _) => ("spec.version", Some(version.as_str())),
        (None, image) => ("spec.image", image.as_deref().and_then(image::tag)),
    };
    Some((field, tag.and_then(parse)?))
}

/// Whether memcached can keep its memory across a restart.
pub fn can_keep_memory(spec: &MemcachedSpec) -> bool {
    asked_for(spec).is_none_or(|(_, version)| version >= WARM_RESTART)
}

pub fn check(spec: &MemcachedSpec, workload: WorkloadType) -> Vec<Violation> {
    let Some((field, version)) = asked_for(spec) else {
        return Vec::new();
    };
    let security = spec.security.clone().unwrap_or_default();
    let sasl = security.sasl.filter(|sasl| sasl.enabled).map(|sasl| sasl.mode);
    // By an exporter, or by the agent.
    let is_scraped =
        workload == WorkloadType::StatefulSet || spec.monitoring.as_ref().is_some_and(|monitoring| monitoring.enabled);
    let needs = [
        ("TLS", TLS, security.tls.is_some_and(|tls| tls.enabled)),
        ("passwords in ASCII mode", PASSWORD_FILE, sasl == Some(SaslMode::ASCII)),
        ("monitoring beside SASL", LISTENER_PROTOCOL, sasl == Some(SaslMode::SASL) && is_scraped),
        ("extstore", DISK, spec.extstore.is_some()),
        ("warm restart", WARM_RESTART, spec.warm_restart.as_ref().is_some_and(|warm| warm.enabled)),
    ];
    let unmet = needs.into_iter().filter(|(_, least, is_wanted)| *is_wanted && version < *least);
    unmet.map(|(what, least, _)| Violation::new(field, says(what, version, least))).collect()
}

fn says(what: &str, version: Version, least: Version) -> String {
    let show = |(major, minor, patch): Version| format!("{major}.{minor}.{patch}");
    format!("memcached {} cannot do {what}: use {} or later", show(version), show(least))
}

/// `1.6.45-alpine` → 1.6.45. With less than three numbers a tag is the newest of its line.
fn parse(tag: &str) -> Option<Version> {
    let mut numbers = tag.split('-').next()?.split('.').map(|part| part.parse::<u32>().ok());
    Some((numbers.next()??, numbers.next()??, numbers.next()??))
}

#[cfg(test)]
mod tests {
    use memcached_api::memcached::spec::Monitoring;

    use super::*;
    use crate::memcached::fixture::{with_sasl, with_tls};

    fn said(change: impl FnOnce(&mut MemcachedSpec)) -> Vec<String> {
        let mut spec = MemcachedSpec::default();
        change(&mut spec);
        check(&spec, WorkloadType::Deployment).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_an_old_server_cannot_do_is_told() {
        let tls = |image: &str| {
            said(|spec| {
                with_tls(spec, "certs", false);
                spec.image = Some(image.into());
            })
        };
        assert_eq!(tls("memcached:1.5.12"), ["spec.image: memcached 1.5.12 cannot do TLS: use 1.5.13 or later"]);
        for new_enough in
            ["memcached:1.5.13", "memcached:1.6", "memcached:1.6.45-alpine", "memcached@sha256:0", "own:x"]
        {
            assert!(tls(new_enough).is_empty(), "{new_enough}");
        }
        let password = said(|spec| {
            with_sasl(spec, "creds");
            spec.version = Some("1.5.14".into());
        });
        assert_eq!(password, ["spec.version: memcached 1.5.14 cannot do passwords in ASCII mode: use 1.5.15 or later"]);
    }

    #[test]
    fn only_what_is_wanted_counts() {
        assert!(said(|spec| spec.version = Some("1.4.0".into())).is_empty());
        let sasl = |is_scraped: bool| {
            said(|spec| {
                with_sasl(spec, "creds");
                spec.security.as_mut().unwrap().sasl.as_mut().unwrap().mode = SaslMode::SASL;
                spec.monitoring = Some(Monitoring { enabled: is_scraped, ..Monitoring::default() });
                spec.version = Some("1.6.17".into());
            })
        };
        assert!(sasl(false).is_empty());
        assert_eq!(sasl(true).len(), 1);
    }
}
