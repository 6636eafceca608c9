//! Names, labels, tags and arguments: whatever is accepted works.

use memcached_core::memcached::build::Child;
use memcached_core::memcached::revision::decide;
use memcached_core::memcached::validate;
use operator_model::image::tag;
use operator_model::name::is_label_value;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use serde_json::{Map, Value, json};

use crate::fixture::{accepted, built, children, first_template, refused, sessions, with_everything};
use crate::generator::word;

const OURS: [(&str, &str); 3] = [
    ("app.kubernetes.io/name", "memcached"),
    ("app.kubernetes.io/instance", "sessions"),
    ("app.kubernetes.io/managed-by", "memcached-operator"),
];

/// Kubernetes' DNS-1035 label, spelled out once more.
fn is_dns_label(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_word = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    (1..=63).contains(&bytes.len())
        && bytes[0].is_ascii_lowercase()
        && is_word(&bytes[bytes.len() - 1])
        && bytes.iter().all(|byte| is_word(byte) || *byte == b'-')
}

fn has_our_labels(labels: &Value) -> bool {
    OURS.iter().all(|(key, value)| labels[key] == *value)
}

fn is_within(selector: &Value, labels: &Value) -> bool {
    selector.as_object().is_some_and(|all| !all.is_empty() && all.iter().all(|(key, value)| labels[key] == *value))
}

/// Mostly near the rule, sometimes far from it.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![4 => "[a-z0-9][a-z0-9-]{0,60}", 1 => "[a-zA-Z0-9._-]{0,60}", 1 => any::<String>()]
}

fn labels() -> impl Strategy<Value = Map<String, Value>> {
    let key = prop_oneof![
        2 => "[a-z]{1,8}",
        1 => "[a-z]{1,8}\\.org/[a-z]{1,8}",
        3 => proptest::sample::select(vec![
            "app.kubernetes.io/part-of", "app.kubernetes.io/version", "memcached.c5c3.io/secret-hash", "memcached.c5c3.io/restart-trigger",
        ]).prop_map(str::to_owned),
    ];
    proptest::collection::btree_map(key, "[a-z0-9]{0,10}", 0..6)
        .prop_map(|all| all.into_iter().map(|(key, value)| (key, Value::String(value))).collect())
}

fn check_names(name: &str) -> Result<(), TestCaseError> {
    let mut cache = sessions(&with_everything());
    cache.metadata.name = Some(name.to_owned());
    let Ok(cache) = validate(&cache) else {
        return Ok(());
    };
    prop_assert!(is_dns_label(name) && name.len() <= 56, "{name:?} was accepted");
    prop_assert!(is_label_value(name));
    for (kind, object) in children(&cache) {
        let child = object["metadata"]["name"].as_str().unwrap_or_default();
        // A revision's name becomes neither a Service nor a label.
        prop_assert!(is_dns_label(child) || kind == Child::Revision && child.len() <= 253, "{kind:?} {child:?}");
    }
    // A pod of the Deployment is called after it, a hash and five letters more.
    prop_assert!(name.len() + "-0123456789-abcde".len() <= 253);
    Ok(())
}

fn check_labels(user: &Map<String, Value>) -> Result<(), TestCaseError> {
    let over = json!({
        "podLabels": user, "podAnnotations": user, "nodeSelector": user,
        "monitoring": {"serviceMonitor": {"additionalLabels": user}},
    });
    let cache = accepted(&crate::fixture::merged(&with_everything(), &over));
    let all = children(&cache);
    let template = &all[&Child::Deployment]["spec"]["template"];
    let pod_labels = &template["metadata"]["labels"];
    prop_assert!(has_our_labels(pod_labels));
    prop_assert_eq!(&pod_labels["app.kubernetes.io/version"], "1.6.45-alpine");
    for (key, value) in user {
        let is_ours = key == "app.kubernetes.io/version";
        prop_assert!(is_ours || &pod_labels[key] == value, "{} got lost", key);
    }
    for (kind, object) in &all {
        prop_assert!(*kind == Child::Revision || has_our_labels(&object["metadata"]["labels"]), "{:?}", kind);
    }
    for selector in [
        &all[&Child::Deployment]["spec"]["selector"]["matchLabels"],
        &all[&Child::Service]["spec"]["selector"],
        &all[&Child::ClientService]["spec"]["selector"],
        &all[&Child::Budget]["spec"]["selector"]["matchLabels"],
        &all[&Child::NetworkPolicy]["spec"]["podSelector"]["matchLabels"],
        &template["spec"]["topologySpreadConstraints"][0]["labelSelector"]["matchLabels"],
        &template["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0]["labelSelector"]
            ["matchLabels"],
    ] {
        prop_assert!(is_within(selector, pod_labels), "{}", selector);
    }
    let monitored = &all[&Child::ServiceMonitor]["spec"]["selector"]["matchLabels"];
    prop_assert!(is_within(monitored, &all[&Child::Service]["metadata"]["labels"]));
    Ok(())
}

/// Feeding a new revision back asks for no other, with labels and annotations as odd as they come.
fn check_settled(user: &Map<String, Value>) -> Result<(), TestCaseError> {
    let cache = accepted(&json!({"podLabels": user, "podAnnotations": user}));
    let first = first_template(&cache);
    let again = decide(&cache, None, first.new_revision.as_slice(), None);
    prop_assert_eq!(again.template, first.template);
    prop_assert!(again.new_revision.is_none() && again.newer_defaults.is_empty());
    Ok(())
}

fn check_version_label(image: &str) -> Result<(), TestCaseError> {
    let Ok(cache) = validate(&sessions(&json!({"image": image}))) else {
        return Ok(());
    };
    let Some(object) = built(&cache).remove(&Child::Deployment) else {
        return Err(TestCaseError::fail("no Deployment"));
    };
    for labels in [&object["metadata"]["labels"], &object["spec"]["template"]["metadata"]["labels"]] {
        match labels.get("app.kubernetes.io/version") {
            Some(version) => {
                let version = version.as_str().unwrap_or_default();
                prop_assert!(is_label_value(version) && cache.version.as_deref() == Some(version), "{version:?}");
            }
            None => prop_assert!(cache.version.as_ref().is_none_or(|version| !is_label_value(version))),
        }
    }
    Ok(())
}

fn image() -> impl Strategy<Value = String> {
    prop_oneof!["([a-z]{1,5}(:[0-9]{1,4})?/)?[a-z]{1,8}(:[A-Za-z0-9_.-]{0,70})?(@sha256:[0-9a-f]{8})?", "\\PC{0,80}",]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_accepted_name_is_good_for_every_child(name in name()) {
        check_names(&name)?;
    }

    #[test]
    fn our_labels_are_on_everything_and_select_the_pods(user in labels()) {
        check_labels(&user)?;
    }

    #[test]
    fn odd_labels_and_annotations_settle_at_once(user in labels()) {
        check_settled(&user)?;
    }

    #[test]
    fn a_version_label_is_valid_or_absent(image in image()) {
        check_version_label(&image)?;
    }

    #[test]
    fn a_tag_is_found_where_it_was_put(tag_ in "[A-Za-z0-9_][A-Za-z0-9_.-]{0,30}", has_digest: bool) {
        let digest = if has_digest { "@sha256:00ff" } else { "" };
        for name in ["memcached", "registry:5000/memcached", "example.org/a/b"] {
            let (tagged, untagged) = (format!("{name}:{tag_}{digest}"), format!("{name}{digest}"));
            prop_assert_eq!(tag(&tagged), Some(tag_.as_str()));
            prop_assert_eq!(tag(&untagged), None);
        }
    }

    #[test]
    fn any_arguments_get_an_answer(words in proptest::collection::vec(word(), 0..8)) {
        let fields = refused(&json!({"memcached": {"extraArgs": words}}));
        prop_assert!(fields.iter().all(|field| field.starts_with("spec.memcached.")), "{:?}", fields);
    }

    #[test]
    fn what_the_operator_decides_is_refused_behind_any_flags(
        flags in "[AMkrvLCFXW]{0,4}",
        letter in proptest::sample::select("mctIYSZplsaUeduPhVi".chars().collect::<Vec<_>>()),
        rest in "[a-z0-9:/]{0,6}",
        before in proptest::collection::vec(
            proptest::sample::select(vec!["-M", "-C", "-X", "-r", "-v", "-F", "-L", "-k", "-W", "--disable-cas"]), 0..3),
    ) {
        let mut words: Vec<String> = before.into_iter().map(str::to_owned).collect();
        words.push(format!("-{flags}{letter}{rest}"));
        prop_assert!(!refused(&json!({"memcached": {"extraArgs": words}})).is_empty(), "{:?}", words);
    }

    #[test]
    fn a_refused_suboption_is_found_in_every_spelling(
        spelling in proptest::sample::select(vec!["-o", "--extended", "--exte", "--ex"]),
        family in proptest::sample::select(vec!["ssl_", "proxy_"]),
        rest in "[a-z_]{1,8}", first in "([a-z_=0-9]{1,8},)?", is_attached: bool,
    ) {
        let list = format!("{first}{family}{rest}");
        let words = match (is_attached, spelling) {
            (false, _) => vec![spelling.to_owned(), list],
            (true, "-o") => vec![format!("-o{list}")],
            (true, long) => vec![format!("{long}={list}")],
        };
        prop_assert!(!refused(&json!({"memcached": {"extraArgs": words}})).is_empty(), "{:?}", words);
    }

    #[test]
    fn long_names_are_refused_however_short(
        name in proptest::sample::select(vec![
            "memory-limit", "conn-limit", "threads", "max-item-size", "auth-file", "enable-sasl", "enable-ssl",
            "port", "udp-port", "listen", "unix-socket", "unix-mask", "memory-file", "daemon", "user", "pidfile",
        ]),
        cut in 1_usize..14, has_value: bool,
        before in proptest::sample::select(vec![&[][..], &["--verbose"], &["--slab-growth-factor", "-f"], &["-C"]]),
    ) {
        let name: String = name.chars().take(cut).collect();
        let value = if has_value { "=1" } else { "" };
        let mut words: Vec<String> = before.iter().map(ToString::to_string).collect();
        words.push(format!("--{name}{value}"));
        prop_assert!(!refused(&json!({"memcached": {"extraArgs": words}})).is_empty(), "{:?}", words);
    }
}
