//! What pods of a StatefulSet have besides memcached: our agent as the first process, put there by an init container,
//! with a view of the pod's annotations, and memory that outlives memcached.

use k8s_openapi::api::core::v1::{
    Container, DownwardAPIVolumeFile, DownwardAPIVolumeSource, EmptyDirVolumeSource, HTTPGetAction,
    ObjectFieldSelector, Probe, Volume, VolumeMount,
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
pub const DIRECTORY: &str = "/opt/memcached-agent";
/// Where the pod's annotations are.
pub const PODINFO_DIRECTORY: &str = "/etc/memcached/podinfo";
/// Where memcached's memory is.
pub const MEMORY_DIRECTORY: &str = "/var/lib/memcached/memory";

/// The volume with the agent.
pub const PROGRAM: &str = "memcached-agent";
/// The volume with the pod's annotations.
pub const PODINFO: &str = "memcached-podinfo";
/// The volume with memcached's memory.
pub const MEMORY: &str = "memcached-memory";

/// The port at which the agent is asked.
pub const PORT: (&str, i32) = ("agent", 9151);

/// What separates the agent's words from memcached's.
pub const COMMAND_SEPARATOR: &str = "--";

/// The API server's default of `terminationGracePeriodSeconds`.
pub const DEFAULT_GRACE: i64 = 30;

/// Clients that ask who is ready are to know soon that a server is back.
pub const READINESS_SECONDS: i32 = 2;

/// Beside `-m`: with exactly as much, memcached's stop writes an empty file, and its next start aborts.
const HEADROOM_MB: i64 = 8;

/// How a pod stops, in seconds.
#[derive(Debug, Clone, Copy)]
pub struct Stop {
    /// How long memcached goes on serving.
    pub delay: i64,
    /// When the kubelet loses its patience.
    pub grace: i64,
}

/// Copies the agent into the pod.
pub fn init_container(cache: &Validated) -> Container {
    Container {
        name: PROGRAM.into(),
        image: Some(cache.settings.agent_image.clone()),
        command: Some([AGENT, "install", DIRECTORY].map(str::to_owned).into()),
        volume_mounts: Some(vec![mount(PROGRAM, DIRECTORY, false)]),
        // As much as the server: a pod needs the larger of the two, so it costs nothing, and quotas and the quality of
        // service see no difference.
        resources: cache.spec.resources.clone(),
        ..Container::default()
    }
}

/// The command of the container: the agent with what it has to know, and behind it memcached with what correctness adds.
pub fn command(cache: &Validated, memcached: Option<Vec<String>>, stop: Stop) -> Vec<String> {
    let mut words = vec![
        format!("{DIRECTORY}{AGENT}"),
        "run".into(),
        format!("--annotations-file={PODINFO_DIRECTORY}/annotations"),
        format!("--stop-delay={}s", stop.delay),
        // Before the kubelet loses its patience.
        format!("--stop-timeout={}s", (stop.grace - stop.delay - 2).max(1)),
    ];
    if cache.monitoring.is_none() || cache.exporter_image().is_some() {
        // Nobody asks for its metrics, or somebody else serves some at that port.
        words.push("--listen=127.0.0.1:9149".into());
    }
    words.extend(target(cache));
    words.extend(cache.tls.as_ref().map(|_| "--tls-address=127.0.0.1:11212".to_owned()));
    words.push(COMMAND_SEPARATOR.into());
    words.extend(memcached.unwrap_or_else(|| vec!["memcached".into()]));
    if cache.is_warm() {
        words.extend(["-e".into(), format!("{MEMORY_DIRECTORY}/cache")]);
    }
    words
}

/// How the agent gets in.
fn target(cache: &Validated) -> Vec<String> {
    let mut words = vec![format!("--memcached=127.0.0.1:{}", loopback_port(cache).unwrap_or(11211))];
    if cache.sasl.is_some() && !is_binary(cache) {
        words.push(format!("--credentials-file={SASL_DIRECTORY}/{PASSWORD_FILE}"));
    }
    words
}

pub fn volumes(cache: &Validated) -> Vec<Volume> {
    let annotations = DownwardAPIVolumeFile {
        path: "annotations".into(),
        field_ref: Some(ObjectFieldSelector {
            api_version: Some("v1".into()),
            field_path: "metadata.annotations".into(),
        }),
        ..DownwardAPIVolumeFile::default()
    };
    let empty = |name: &str, medium: Option<&str>, size: Option<Quantity>| Volume {
        name: name.into(),
        empty_dir: Some(EmptyDirVolumeSource { medium: medium.map(str::to_owned), size_limit: size }),
        ..Volume::default()
    };
    let mut volumes = vec![
        empty(PROGRAM, None, None),
        Volume {
            name: PODINFO.into(),
            downward_api: Some(DownwardAPIVolumeSource { items: Some(vec![annotations]), default_mode: None }),
            ..Volume::default()
        },
    ];
    if cache.is_warm() {
        let size = quantity::mebibytes(i64::from(cache.server.max_memory_mb) + HEADROOM_MB);
        volumes.push(empty(MEMORY, Some("Memory"), Some(size)));
    }
    volumes
}

pub fn mounts(cache: &Validated) -> Vec<VolumeMount> {
    let mut mounts = vec![mount(PROGRAM, DIRECTORY, true), mount(PODINFO, PODINFO_DIRECTORY, true)];
    mounts.extend(cache.is_warm().then(|| mount(MEMORY, MEMORY_DIRECTORY, false)));
    mounts
}

fn mount(volume: &str, path: &str, is_read_only: bool) -> VolumeMount {
    let read_only = is_read_only.then_some(true);
    VolumeMount { name: volume.into(), mount_path: path.into(), read_only, ..VolumeMount::default() }
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
        timeout_seconds: Some(2),
        ..Probe::default()
    }
}
