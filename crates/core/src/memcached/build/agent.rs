//! What pods of a StatefulSet have besides memcached: our agent as the first process, put there by an init container,
//! with a view of the pod's annotations, and memory that outlives memcached.

use k8s_openapi::api::core::v1::{
    Container, ContainerPort, DownwardAPIVolumeFile, DownwardAPIVolumeSource, EmptyDirVolumeSource, HTTPGetAction,
    ObjectFieldSelector, Probe, ResourceRequirements, Volume, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use operator_model::quantity;

use super::argument::{SASL_DIRECTORY, is_binary, loopback_port};
use crate::memcached::secret::PASSWORD_FILE;
use crate::memcached::validate::Validated;

/// Where the agent is in its image.
const AGENT: &str = "/memcached-agent";
/// Where it is in the container of memcached.
const DIRECTORY: &str = "/opt/memcached-agent";
/// Where the pod's annotations are.
const PODINFO: &str = "/etc/podinfo";
/// Where memcached's memory is.
pub const MEMORY_DIRECTORY: &str = "/var/lib/memcached/memory";
/// The port at which the agent is asked.
pub const PORT: (&str, i32) = ("agent", 9151);

/// The names of its volumes.
pub const VOLUMES: [&str; 3] = ["agent", "podinfo", "memory"];

/// Beside `-m`: with exactly as much, memcached's stop writes an empty file, and its next start aborts.
const HEADROOM_MB: i64 = 8;

/// Copies the agent into the pod.
pub fn init_container(cache: &Validated) -> Container {
    let amounts = |memory: &str| Some([("memory".to_owned(), Quantity(memory.into()))].into());
    Container {
        name: "agent".into(),
        image: Some(cache.settings.agent_image.clone()),
        command: Some([AGENT, "install", DIRECTORY].map(str::to_owned).into()),
        volume_mounts: Some(vec![mount("agent", DIRECTORY, false)]),
        resources: Some(ResourceRequirements {
            requests: amounts("16Mi"),
            limits: amounts("32Mi"),
            ..ResourceRequirements::default()
        }),
        ..Container::default()
    }
}

/// The command of the container: the agent with what it has to know, and behind it memcached with what correctness adds.
pub fn command(cache: &Validated, memcached: Option<Vec<String>>, stop: (i64, i64)) -> Vec<String> {
    let (delay, grace) = stop;
    let mut words = vec![
        format!("{DIRECTORY}{AGENT}"),
        "run".into(),
        format!("--annotations-file={PODINFO}/annotations"),
        format!("--memcached=127.0.0.1:{}", loopback_port(cache).unwrap_or(11211)),
        format!("--stop-delay={delay}s"),
        // Before the kubelet loses its patience.
        format!("--stop-timeout={}s", (grace - delay - 2).max(1)),
    ];
    if cache.sasl.is_some() && !is_binary(cache) {
        words.push(format!("--credentials-file={SASL_DIRECTORY}/{PASSWORD_FILE}"));
    }
    words.extend(cache.tls.as_ref().map(|_| "--tls-address=127.0.0.1:11212".to_owned()));
    words.push("--".into());
    words.extend(memcached.unwrap_or_else(|| vec!["memcached".into()]));
    if is_warm(cache) {
        words.extend(["-e".into(), format!("{MEMORY_DIRECTORY}/cache")]);
    }
    words
}

/// Whether memory outlives memcached: it does unless something excludes it.
pub fn is_warm(cache: &Validated) -> bool {
    let is_asked_for = cache.spec.warm_restart.as_ref().is_none_or(|warm| warm.enabled);
    is_asked_for && cache.spec.extstore.is_none()
}

pub fn volumes(cache: &Validated) -> Vec<Volume> {
    let annotations = DownwardAPIVolumeFile {
        path: "annotations".into(),
        field_ref: Some(ObjectFieldSelector { field_path: "metadata.annotations".into(), ..Default::default() }),
        ..DownwardAPIVolumeFile::default()
    };
    let empty = |name: &str, medium: Option<&str>, size: Option<Quantity>| Volume {
        name: name.into(),
        empty_dir: Some(EmptyDirVolumeSource { medium: medium.map(str::to_owned), size_limit: size }),
        ..Volume::default()
    };
    let mut volumes = vec![
        empty("agent", None, None),
        Volume {
            name: "podinfo".into(),
            downward_api: Some(DownwardAPIVolumeSource { items: Some(vec![annotations]), default_mode: None }),
            ..Volume::default()
        },
    ];
    if is_warm(cache) {
        let size = quantity::mebibytes(i64::from(cache.server.max_memory_mb) + HEADROOM_MB);
        volumes.push(empty("memory", Some("Memory"), Some(size)));
    }
    volumes
}

pub fn mounts(cache: &Validated) -> Vec<VolumeMount> {
    let mut mounts = vec![mount("agent", DIRECTORY, true), mount("podinfo", PODINFO, true)];
    mounts.extend(is_warm(cache).then(|| mount("memory", MEMORY_DIRECTORY, false)));
    mounts
}

fn mount(volume: &str, path: &str, is_read_only: bool) -> VolumeMount {
    let read_only = is_read_only.then_some(true);
    VolumeMount { name: volume.into(), mount_path: path.into(), read_only, ..VolumeMount::default() }
}

pub fn port() -> ContainerPort {
    let (name, number) = PORT;
    ContainerPort {
        name: Some(name.into()),
        container_port: number,
        protocol: Some("TCP".into()),
        ..ContainerPort::default()
    }
}

/// Asks the agent.
pub fn probe(path: &str, seconds: i32) -> Probe {
    Probe {
        http_get: Some(HTTPGetAction {
            path: Some(path.into()),
            port: IntOrString::String(PORT.0.into()),
            ..HTTPGetAction::default()
        }),
        period_seconds: Some(seconds),
        ..Probe::default()
    }
}
