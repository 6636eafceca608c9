//! Whole objects, as they go to the API server, in their smallest and their largest shape.

use insta::assert_yaml_snapshot;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use memcached_api::memcached::spec::{HighAvailability, PodDisruptionBudget};
use memcached_core::memcached::build::Child;
use serde_json::json;

use crate::fixture::{
    accepted, child, children, merged, sessions, with_autoscaling, with_client_certificates, with_everything,
    with_monitoring, with_policy, with_sasl, with_tls,
};

#[test]
fn a_plain_cache_is_a_deployment_a_service_and_a_revision() {
    let children = children(&accepted(&json!({})));
    let kinds: Vec<Child> = children.keys().copied().collect();
    assert_eq!(kinds, [Child::Revision, Child::Service, Child::Deployment]);
    assert_yaml_snapshot!("plain_deployment", children[&Child::Deployment]);
    assert_yaml_snapshot!("plain_service", children[&Child::Service]);
    assert_yaml_snapshot!("plain_revision", children[&Child::Revision]);
}

#[test]
fn a_cache_with_everything() {
    let mut cache = sessions(&with_everything());
    let trigger = ("memcached.c5c3.io/restart-trigger".to_owned(), "monday".to_owned());
    cache.metadata.annotations = Some([trigger].into());
    let children = children(&memcached_core::memcached::validate(&cache).unwrap());
    assert_yaml_snapshot!("full_deployment", children[&Child::Deployment]);
    assert_yaml_snapshot!("full_service", children[&Child::Service]);
    assert_yaml_snapshot!("full_client_service", children[&Child::ClientService]);
    assert_yaml_snapshot!("full_budget", children[&Child::Budget]);
    assert_yaml_snapshot!("full_network_policy", children[&Child::NetworkPolicy]);
    assert_yaml_snapshot!("full_service_monitor", children[&Child::ServiceMonitor]);
    let revision = &children[&Child::Revision];
    assert_eq!(revision["data"]["template"], children[&Child::Deployment]["spec"]["template"]);
    assert_eq!(revision["data"]["inputs"]["trigger"], "monday");
    assert_eq!(revision["data"]["inputs"]["secrets"], "5ec7e7");
}

#[test]
fn tls_beside_plaintext_with_an_exporter() {
    let spec = merged(&with_tls(), &with_monitoring());
    assert_yaml_snapshot!("tls_alongside_pod", child(Child::Deployment, &spec)["spec"]["template"]);
}

#[test]
fn binary_sasl() {
    let spec = merged(&with_sasl(), &json!({"security": {"sasl": {"mode": "SASL"}}}));
    assert_yaml_snapshot!("binary_sasl_pod", child(Child::Deployment, &spec)["spec"]["template"]);
}

#[test]
fn the_disk_tier_on_a_claim_and_on_the_node() {
    let on_node = json!({"extstore": {"size": "10Gi"}});
    let on_claim = json!({"extstore": {"size": "10Gi", "volumeClaim": {"storageClassName": "nvme"}}});
    let on_default = json!({"extstore": {"size": "10Gi", "volumeClaim": {}}});
    for (name, spec) in [("node", on_node), ("claim", on_claim), ("default_claim", on_default)] {
        let pod = child(Child::Deployment, &spec)["spec"]["template"]["spec"].clone();
        let server = &pod["containers"][0];
        let shown = json!([pod["volumes"], server["volumeMounts"], server["command"], server["args"]]);
        assert_yaml_snapshot!(format!("extstore_on_{name}"), shown);
    }
}

#[test]
fn autoscalers_default_and_custom() {
    let custom = json!({"autoscaling": {
        "enabled": true, "minReplicas": 2, "maxReplicas": 9,
        "metrics": [{"type": "Resource", "resource":
            {"name": "memory", "target": {"type": "Utilization", "averageUtilization": 70}}}],
        "behavior": {"scaleUp": {"stabilizationWindowSeconds": 5}},
    }});
    assert_yaml_snapshot!("default_autoscaler", child(Child::Autoscaler, &with_autoscaling()));
    assert_yaml_snapshot!("custom_autoscaler", child(Child::Autoscaler, &custom));
}

#[test]
fn budgets_by_what_stays_and_by_what_goes() {
    let budget = |limit| json!({"highAvailability": {"podDisruptionBudget": limit}});
    let stays = budget(json!({"enabled": true, "minAvailable": "50%"}));
    let goes = budget(json!({"enabled": true, "maxUnavailable": 1}));
    assert_yaml_snapshot!("budget_by_minimum", child(Child::Budget, &stays));
    assert_yaml_snapshot!("budget_by_maximum", child(Child::Budget, &goes));
}

#[test]
fn a_budget_of_nothing_keeps_one_server() {
    // The rules refuse this; objects that were stored before the rules existed still have to be built.
    let mut cache = accepted(&json!({}));
    let budget = PodDisruptionBudget { enabled: true, ..PodDisruptionBudget::default() };
    let availability = HighAvailability { pod_disruption_budget: Some(budget), ..HighAvailability::default() };
    cache.spec.high_availability = Some(availability);
    let built = children(&cache)[&Child::Budget]["spec"].clone();
    assert_eq!(built["minAvailable"], json!(IntOrString::Int(1)));
    assert_eq!(built.get("maxUnavailable"), None);
}

#[test]
fn network_policies_in_all_combinations() {
    let sources = json!([{"podSelector": {"matchLabels": {"app": "web"}}}]);
    let scrapers = json!([{"namespaceSelector": {"matchLabels": {"team": "metrics"}}}]);
    let mut shown = serde_json::Map::new();
    for bits in 0..16_u8 {
        let (tls, monitoring) = (bits & 1 != 0, bits & 2 != 0);
        let (allowed, metrics) = (bits & 4 != 0, bits & 8 != 0);
        let mut spec = with_policy();
        if tls {
            spec = merged(&spec, &with_tls());
        }
        if monitoring {
            spec = merged(&spec, &with_monitoring());
        }
        if allowed {
            spec = merged(&spec, &json!({"security": {"networkPolicy": {"allowedSources": sources}}}));
        }
        if metrics {
            spec = merged(&spec, &json!({"security": {"networkPolicy": {"metricsSources": scrapers}}}));
        }
        let parts = [(tls, "tls"), (monitoring, "monitoring"), (allowed, "allowed"), (metrics, "metrics")];
        let name: Vec<&str> = parts.iter().filter(|(is_on, _)| *is_on).map(|(_, name)| *name).collect();
        let policy = child(Child::NetworkPolicy, &spec);
        shown.insert(format!("with {}", name.join("+")), policy["spec"]["ingress"].clone());
    }
    assert_yaml_snapshot!("policy_ingress_of_all_combinations", shown);
    assert_yaml_snapshot!("plain_network_policy", child(Child::NetworkPolicy, &with_policy()));
}

#[test]
fn a_service_monitor_without_wishes() {
    let spec = merged(&with_monitoring(), &json!({"monitoring": {"serviceMonitor": {}}}));
    assert_yaml_snapshot!("plain_service_monitor", child(Child::ServiceMonitor, &spec));
}

#[test]
fn certificates_of_an_issuer() {
    let issued = |issuer| json!({"security": {"tls": {"enabled": true, "issuerRef": issuer}}});
    let plain = issued(json!({"name": "ca"}));
    let custom = issued(json!({"name": "root", "kind": "ClusterIssuer", "group": "issuers.example.org"}));
    assert_yaml_snapshot!("plain_certificate", child(Child::Certificate, &plain));
    assert_yaml_snapshot!("custom_certificate", child(Child::Certificate, &custom));
    let volumes = child(Child::Deployment, &plain)["spec"]["template"]["spec"]["volumes"].clone();
    assert_eq!(volumes[0]["secret"]["secretName"], "sessions-tls", "the Secret that cert-manager writes");
}

#[test]
fn client_certificates_without_anything_else() {
    let pod = child(Child::Deployment, &with_client_certificates())["spec"]["template"]["spec"].clone();
    let server = &pod["containers"][0];
    let shown = json!([pod["volumes"], server["volumeMounts"], server["command"], server["args"], server["ports"]]);
    assert_yaml_snapshot!("client_certificates_server", shown);
}
