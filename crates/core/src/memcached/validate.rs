//! From a declaration to something that can be built: defaults filled in, contradictions refused.

use k8s_openapi::api::autoscaling::v2::{HorizontalPodAutoscalerBehavior, MetricSpec};
use memcached_api::Memcached;
use memcached_api::memcached::spec::{
    AntiAffinityPreset, Autoscaling, IssuerRef, MemcachedSpec, Monitoring, NetworkPolicy, STOCK_EXPORTER, Sasl,
    SaslMode, Security, Server, Tls, TlsMode, WorkloadType,
};

use crate::memcached::observed::Observed;
use crate::memcached::pod_defaults::PodDefaults;
use crate::memcached::rule::{self, Violation};
use operator_model::autoscaling::is_memory;
use operator_model::image;
use operator_model::managed::is_owned;

/// A declaration that Kubernetes has no reason to refuse the children of.
#[derive(Debug, Clone, PartialEq)]
pub struct Validated {
    pub name: String,
    pub namespace: String,
    pub uid: String,
    pub generation: i64,
    /// The value of the restart trigger, copied to the pods.
    pub restart_trigger: Option<String>,
    /// What runs the pods.
    pub workload: WorkloadType,
    pub image: String,
    /// The image's tag.
    pub version: Option<String>,
    pub server: Server,
    pub scale: Scale,
    pub sasl: Option<SaslPlan>,
    pub tls: Option<TlsPlan>,
    pub monitoring: Option<Monitoring>,
    pub network_policy: Option<NetworkPolicy>,
    pub paused: bool,
    /// What is built where the declaration is silent.
    pub settings: PodDefaults,
    /// The declaration itself, for what needs no resolving.
    pub spec: MemcachedSpec,
}

/// Who decides the number of servers.
#[derive(Debug, Clone, PartialEq)]
pub enum Scale {
    /// The declaration.
    Fixed(i32),
    /// A HorizontalPodAutoscaler.
    Auto(AutoScale),
}

/// What the autoscaler is told.
#[derive(Debug, Clone, PartialEq)]
pub struct AutoScale {
    pub min: i32,
    pub max: i32,
    pub metrics: Vec<MetricSpec>,
    pub behavior: Option<HorizontalPodAutoscalerBehavior>,
}

/// How clients authenticate.
#[derive(Debug, Clone, PartialEq)]
pub struct SaslPlan {
    pub mode: SaslMode,
    pub secret: String,
}

/// How connections are encrypted.
#[derive(Debug, Clone, PartialEq)]
pub struct TlsPlan {
    pub mode: TlsMode,
    /// The mode that the declaration alone stands for.
    pub declared: TlsMode,
    /// The mode that was found running, while no mode is declared.
    pub found: Option<TlsMode>,
    pub secret: String,
    pub client_certificates: bool,
    pub issuer: Option<IssuerRef>,
}

/// The Secret that cert-manager writes for a cache.
pub fn issued_secret(cache: &str) -> String {
    format!("{cache}-tls")
}

/// Checks every rule; all violations at once, each naming its field. Fills in this version's own defaults.
pub fn validate(cache: &Memcached) -> Result<Validated, Vec<Violation>> {
    validate_with(cache, &PodDefaults::default())
}

/// Checks every rule, and fills in these defaults where the declaration is silent. Nothing is known of what runs.
pub fn validate_with(cache: &Memcached, settings: &PodDefaults) -> Result<Validated, Vec<Violation>> {
    validate_observed(cache, settings, &Observed::default())
}

/// Checks every rule. Where the declaration is silent, what was found running decides, and then these defaults.
pub fn validate_observed(
    cache: &Memcached,
    settings: &PodDefaults,
    observed: &Observed,
) -> Result<Validated, Vec<Violation>> {
    let name = cache.metadata.name.clone().unwrap_or_default();
    let running = observed.running_workload();
    let workload = resolve_workload(cache, settings, running);
    let mut violations = rule::check(&name, &cache.spec, workload);
    violations.extend(running.filter(|running| *running != workload).map(|_| rule::other_workload()));
    if !violations.is_empty() {
        return Err(violations);
    }
    let annotations = cache.metadata.annotations.as_ref();
    let image = resolve_image(&cache.spec, settings);
    let security = cache.spec.security.clone().unwrap_or_default();
    let Security { pod_security_context: _, container_security_context: _, sasl, tls, network_policy } = security;
    Ok(Validated {
        namespace: cache.metadata.namespace.clone().unwrap_or_default(),
        uid: cache.metadata.uid.clone().unwrap_or_default(),
        generation: cache.metadata.generation.unwrap_or_default(),
        restart_trigger: annotations.and_then(|all| all.get(memcached_api::label::RESTART_TRIGGER).cloned()),
        workload,
        version: image::tag(&image).map(str::to_owned),
        image,
        server: cache.spec.memcached.clone().unwrap_or_default(),
        scale: resolve_scale(&cache.spec),
        sasl: sasl.and_then(resolve_sasl),
        tls: tls.and_then(|tls| resolve_tls(&name, tls, observed)),
        monitoring: cache.spec.monitoring.clone().filter(|monitoring| monitoring.enabled),
        network_policy: network_policy.filter(|policy| policy.enabled),
        paused: cache.spec.paused.unwrap_or(false),
        settings: settings.clone(),
        spec: declared(cache),
        name,
    })
}

/// What people declared. Webhooks and schemas of earlier versions wrote `antiAffinityPreset: soft` down: such a value
/// has no owner in `metadata.managedFields`, and is no more than the default.
fn declared(cache: &Memcached) -> MemcachedSpec {
    let mut spec = cache.spec.clone();
    if let Some(availability) = &mut spec.high_availability {
        let managers = cache.metadata.managed_fields.as_deref().unwrap_or_default();
        let is_default = availability.anti_affinity_preset == Some(AntiAffinityPreset::default());
        if is_default
            && !managers.is_empty()
            && !is_owned(managers, &["spec", "highAvailability", "antiAffinityPreset"])
        {
            availability.anti_affinity_preset = None;
        }
    }
    spec
}

/// What runs the pods: what is declared, else what does, else what the status says of it. Objects that have a status
/// without it are older than the choice.
fn resolve_workload(cache: &Memcached, settings: &PodDefaults, running: Option<WorkloadType>) -> WorkloadType {
    let declared = cache.spec.workload.as_ref().and_then(|workload| workload.type_);
    let told = || {
        let status = cache.status.as_ref()?;
        status.workload_type.or_else(|| status.observed_generation.map(|_| WorkloadType::Deployment))
    };
    declared.or(running).or_else(told).unwrap_or(settings.workload)
}

fn resolve_image(spec: &MemcachedSpec, settings: &PodDefaults) -> String {
    match (&spec.version, &spec.image) {
        // A defaulted image gives way to a version.
        (Some(version), _) => format!("memcached:{version}"),
        (None, Some(image)) if !image.is_empty() => image.clone(),
        (None, _) => settings.image.clone(),
    }
}

fn resolve_scale(spec: &MemcachedSpec) -> Scale {
    let Some(Autoscaling { enabled: true, min_replicas, max_replicas, metrics, behavior }) = spec.autoscaling.clone()
    else {
        return Scale::Fixed(spec.replicas.unwrap_or(1));
    };
    let min = min_replicas.unwrap_or(1);
    Scale::Auto(AutoScale { min, max: max_replicas.unwrap_or(min), metrics, behavior })
}

fn resolve_sasl(sasl: Sasl) -> Option<SaslPlan> {
    let Sasl { enabled, mode, credentials_secret_ref } = sasl;
    enabled.then(|| SaslPlan { mode, secret: credentials_secret_ref.unwrap_or_default().name })
}

fn resolve_tls(cache: &str, tls: Tls, observed: &Observed) -> Option<TlsPlan> {
    let Tls { enabled, mode, certificate_secret_ref, issuer_ref, enable_client_cert } = tls;
    let default = if enable_client_cert { TlsMode::Required } else { TlsMode::Alongside };
    let declared = mode.unwrap_or(default);
    let found = observed.found_tls_mode().filter(|_| mode.is_none());
    let named = certificate_secret_ref.map(|secret| secret.name).filter(|name| !name.is_empty());
    enabled.then(|| TlsPlan {
        // Client certificates leave no plaintext port open, whatever was found.
        mode: found.filter(|_| !enable_client_cert).unwrap_or(declared),
        declared,
        found,
        secret: named.unwrap_or_else(|| issued_secret(cache)),
        client_certificates: enable_client_cert,
        issuer: issuer_ref,
    })
}

impl Validated {
    /// Whether pods are changed in place, by an agent that is their first process.
    pub fn has_agent(&self) -> bool {
        self.workload == WorkloadType::StatefulSet
    }

    /// Whether memory outlives memcached.
    pub fn is_warm(&self) -> bool {
        let declared = self.spec.warm_restart.as_ref().map(|warm| warm.enabled);
        self.has_agent() && declared.unwrap_or_else(|| self.is_warm_by_default())
    }

    /// With the agent memory outlives memcached, unless something excludes it.
    pub fn is_warm_by_default(&self) -> bool {
        let by_memory = matches!(&self.scale, Scale::Auto(scale) if scale.metrics.iter().any(is_memory));
        self.has_agent() && self.spec.extstore.is_none() && !by_memory && rule::can_keep_memory(&self.spec)
    }

    /// The exporter's image; none where there is no exporter beside memcached.
    pub fn exporter_image(&self) -> Option<&str> {
        let monitoring = self.monitoring.as_ref()?;
        let named = monitoring.exporter_image.as_deref().filter(|image| !image.is_empty());
        if self.has_agent() {
            // The agent tells the same, unless somebody wants another one.
            return named.filter(|image| *image != STOCK_EXPORTER);
        }
        if self.is_exported_by_agent() {
            return Some(&self.settings.agent_image);
        }
        Some(named.unwrap_or(&self.settings.exporter_image))
    }

    /// Whether our own exporter takes the stock one's place, which cannot log in.
    pub fn is_exported_by_agent(&self) -> bool {
        let Some(monitoring) = &self.monitoring else { return false };
        let named = monitoring.exporter_image.as_deref().filter(|image| !image.is_empty());
        !self.has_agent() && self.sasl.is_some() && named.is_none_or(|image| image == STOCK_EXPORTER)
    }

    /// How many servers the declaration asks for; none where an autoscaler decides.
    pub fn fixed_replicas(&self) -> Option<i32> {
        match self.scale {
            Scale::Fixed(count) => Some(count),
            Scale::Auto(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use memcached_api::memcached::spec::HighAvailability;
    use serde_json::{Value, json};

    use super::*;
    use crate::memcached::fixture;
    use crate::memcached::pod_defaults::DEFAULT_IMAGE;

    #[test]
    fn an_empty_declaration_is_one_server_of_the_default_image() {
        let cache = fixture::validated(|_| {});
        assert_eq!(cache.image, "memcached:1.6");
        assert_eq!(cache.version.as_deref(), Some("1.6"));
        assert_eq!(cache.scale, Scale::Fixed(1));
    }

    #[test]
    fn a_version_is_an_image_and_a_defaulted_image_gives_way() {
        let cache = fixture::validated(|spec| {
            spec.version = Some("1.6.45".into());
            spec.image = Some(DEFAULT_IMAGE.into());
        });
        assert_eq!(cache.image, "memcached:1.6.45");
    }

    #[test]
    fn a_preset_that_nobody_owns_was_not_declared() {
        let mut cache = fixture::memcached(|spec| {
            let preset = Some(AntiAffinityPreset::Soft);
            spec.high_availability =
                Some(HighAvailability { anti_affinity_preset: preset, ..HighAvailability::default() });
        });
        let preset = |cache: &Memcached| validate(cache).unwrap().spec.high_availability.unwrap().anti_affinity_preset;
        assert_eq!(preset(&cache), Some(AntiAffinityPreset::Soft), "a manifest has no owners");
        let entry = |fields: Value| serde_json::from_value(json!({"manager": "a-user", "fieldsV1": fields})).unwrap();
        let budget = json!({"f:spec": {"f:highAvailability": {"f:podDisruptionBudget": {}}}});
        cache.metadata.managed_fields = Some(vec![entry(budget)]);
        assert_eq!(preset(&cache), None, "written by a webhook");
        let own = json!({"f:spec": {"f:highAvailability": {"f:antiAffinityPreset": {}}}});
        cache.metadata.managed_fields.as_mut().unwrap().push(entry(own));
        assert_eq!(preset(&cache), Some(AntiAffinityPreset::Soft));
    }

    #[test]
    fn client_certificates_require_tls() {
        let cache = fixture::validated(|spec| fixture::with_tls(spec, "certs", true));
        assert_eq!(cache.tls.unwrap().mode, TlsMode::Required);
        let cache = fixture::validated(|spec| fixture::with_tls(spec, "certs", false));
        assert_eq!(cache.tls.unwrap().mode, TlsMode::Alongside);
    }
}
