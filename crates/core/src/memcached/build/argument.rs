//! The command line of memcached: `args` are the contract, `command` has what correctness adds.

use memcached_api::memcached::spec::{SaslMode, TlsMode};

use crate::memcached::validate::Validated;
use operator_model::quantity;

/// Where the password file is mounted.
pub const SASL_DIRECTORY: &str = "/etc/memcached/sasl";
/// Where certificates are mounted.
pub const TLS_DIRECTORY: &str = "/etc/memcached/tls";
/// Where the disk tier is mounted.
pub const EXTSTORE_DIRECTORY: &str = "/var/lib/memcached/extstore";

/// Where the exporter is talked to where clients are not.
const LOOPBACK_PORT: u16 = 11213;

/// The contract's arguments, in the contract's order.
pub fn arguments(cache: &Validated) -> Vec<String> {
    let server = &cache.server;
    let mut arguments: Vec<String> = vec![
        "-m".into(),
        server.max_memory_mb.to_string(),
        "-c".into(),
        server.max_connections.to_string(),
        "-t".into(),
        server.threads.to_string(),
        "-I".into(),
        server.max_item_size.clone(),
    ];
    match server.verbosity {
        1 => arguments.push("-v".into()),
        2 => arguments.push("-vv".into()),
        _ => {}
    }
    if cache.sasl.as_ref().is_some_and(|sasl| sasl.mode == SaslMode::ASCII) {
        arguments.extend(["-Y".into(), format!("{SASL_DIRECTORY}/password-file")]);
    }
    if let Some(tls) = &cache.tls {
        arguments.push("-Z".into());
        arguments.extend(["-o".into(), format!("ssl_chain_cert={TLS_DIRECTORY}/tls.crt")]);
        arguments.extend(["-o".into(), format!("ssl_key={TLS_DIRECTORY}/tls.key")]);
        if tls.client_certificates {
            arguments.extend(["-o".into(), format!("ssl_ca_cert={TLS_DIRECTORY}/ca.crt")]);
        }
    }
    arguments.extend(server.extra_args.iter().cloned());
    arguments
}

/// What correctness needs beyond the contract; none where the image's own entry point will do.
pub fn command(cache: &Validated) -> Option<Vec<String>> {
    let mut words: Vec<String> = Vec::new();
    if let Some(tls) = &cache.tls {
        // ssl_ca_cert alone only asks for a certificate; 2 refuses whoever has none.
        if tls.client_certificates {
            words.extend(["-o".into(), "ssl_verify_mode=2".into()]);
        }
    }
    if let Some(listeners) = listeners(cache) {
        words.extend(["-l".into(), listeners]);
    }
    if is_binary(cache) {
        words.push("-S".into());
    }
    if let Some(extstore) = &cache.spec.extstore {
        let mebibytes = quantity::bytes(&extstore.size).unwrap_or(0) >> 20;
        words.extend(["-o".into(), format!("ext_path={EXTSTORE_DIRECTORY}/store:{mebibytes}m")]);
    }
    if words.is_empty() {
        return None;
    }
    words.insert(0, "memcached".into());
    Some(words)
}

/// Whether clients log in by SASL, which takes the binary protocol.
pub fn is_binary(cache: &Validated) -> bool {
    cache.sasl.as_ref().is_some_and(|sasl| sasl.mode == SaslMode::SASL)
}

/// The port on loopback at which the exporter gets plain text, if not at the clients' own.
pub fn loopback_port(cache: &Validated) -> Option<u16> {
    let is_encrypted = cache.tls.as_ref().is_some_and(|tls| tls.mode == TlsMode::Required);
    (is_encrypted || is_text_needed(cache)).then_some(LOOPBACK_PORT)
}

/// Whether somebody in the pod speaks text to a server that takes binary alone.
fn is_text_needed(cache: &Validated) -> bool {
    is_binary(cache) && (cache.monitoring.is_some() || cache.has_agent())
}

/// Where to listen; none where the server's own default is right.
fn listeners(cache: &Validated) -> Option<String> {
    // Text for the exporter, which speaks no binary; nobody else is on a pod's loopback. Prefixes in this order: the
    // other way round memcached takes the second for a host name.
    let protocol = if is_text_needed(cache) { "proto[ascii]:" } else { "" };
    let transport = if cache.tls.is_some() { "notls:" } else { "" };
    let loopback = loopback_port(cache).map(|port| format!("{transport}{protocol}127.0.0.1:{port}"));
    // -Z alone would put TLS on 11211 and leave 11212 closed.
    let clients = match cache.tls.as_ref().map(|tls| tls.mode) {
        None if loopback.is_none() => return None,
        None => "*:11211",
        Some(TlsMode::Alongside) => "notls:*:11211,*:11212",
        Some(TlsMode::Required) => "*:11211,*:11212",
    };
    Some(loopback.into_iter().chain([clients.to_owned()]).collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
    use memcached_api::memcached::spec::{Extstore, Monitoring, Server};

    use super::*;
    use crate::memcached::fixture::{validated, with_sasl, with_tls};

    fn joined(words: &[String]) -> String {
        words.join(" ")
    }

    #[test]
    fn defaults_are_spelled_out() {
        let cache = validated(|_| {});
        assert_eq!(joined(&arguments(&cache)), "-m 64 -c 1024 -t 4 -I 1m");
        assert_eq!(command(&cache), None);
    }

    #[test]
    fn everything_comes_in_the_contracts_order() {
        let cache = validated(|spec| {
            with_sasl(spec, "creds");
            with_tls(spec, "certs", true);
            spec.memcached =
                Some(Server { verbosity: 2, extra_args: vec!["-o".into(), "modern".into()], ..Server::default() });
        });
        assert_eq!(
            joined(&arguments(&cache)),
            "-m 64 -c 1024 -t 4 -I 1m -vv -Y /etc/memcached/sasl/password-file -Z \
             -o ssl_chain_cert=/etc/memcached/tls/tls.crt -o ssl_key=/etc/memcached/tls/tls.key \
             -o ssl_ca_cert=/etc/memcached/tls/ca.crt -o modern"
        );
        assert_eq!(
            joined(&command(&cache).unwrap()),
            "memcached -o ssl_verify_mode=2 -l notls:127.0.0.1:11213,*:11211,*:11212"
        );
    }

    #[test]
    fn plaintext_stays_beside_tls_unless_it_is_required() {
        let cache = validated(|spec| with_tls(spec, "certs", false));
        assert_eq!(joined(&command(&cache).unwrap()), "memcached -l notls:*:11211,*:11212");
    }

    #[test]
    fn an_exporter_gets_plain_text_on_loopback_whatever_clients_have_to_do() {
        let listen = |mode, is_scraped: bool, tls: Option<TlsMode>| {
            let cache = validated(|spec| {
                with_sasl(spec, "creds");
                if let Some(tls) = tls {
                    with_tls(spec, "certs", false);
                    spec.security.as_mut().unwrap().tls.as_mut().unwrap().mode = Some(tls);
                }
                spec.security.as_mut().unwrap().sasl.as_mut().unwrap().mode = mode;
                spec.monitoring = Some(Monitoring { enabled: is_scraped, ..Monitoring::default() });
            });
            listeners(&cache).unwrap_or_default()
        };
        let (sasl, ascii) = (SaslMode::SASL, SaslMode::ASCII);
        assert_eq!(listen(ascii, true, None), "");
        assert_eq!(listen(sasl, false, None), "");
        assert_eq!(listen(sasl, true, None), "proto[ascii]:127.0.0.1:11213,*:11211");
        let alongside = Some(TlsMode::Alongside);
        assert_eq!(listen(ascii, true, alongside), "notls:*:11211,*:11212");
        assert_eq!(listen(sasl, true, alongside), "notls:proto[ascii]:127.0.0.1:11213,notls:*:11211,*:11212");
        let required = Some(TlsMode::Required);
        assert_eq!(listen(ascii, true, required), "notls:127.0.0.1:11213,*:11211,*:11212");
        assert_eq!(listen(sasl, false, required), "notls:127.0.0.1:11213,*:11211,*:11212");
        assert_eq!(listen(sasl, true, required), "notls:proto[ascii]:127.0.0.1:11213,*:11211,*:11212");
    }

    #[test]
    fn the_disk_tier_is_measured_in_mebibytes() {
        let cache = validated(|spec| {
            spec.extstore = Some(Extstore { size: Quantity("2Gi".into()), volume_claim: None });
        });
        assert_eq!(joined(&command(&cache).unwrap()), "memcached -o ext_path=/var/lib/memcached/extstore/store:2048m");
    }
}
