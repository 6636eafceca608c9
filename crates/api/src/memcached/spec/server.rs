//! How the server runs.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the server runs: memory, connections, threads, item size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Server {
    /// Memory for items, in megabytes (`-m`). The process needs more: connections, threads and the hash
    /// table come on top.
    #[serde(rename = "maxMemoryMB")]
    #[schemars(range(min = 16, max = 65536))]
    pub max_memory_mb: i32,
    /// How many clients may be connected at once (`-c`).
    #[schemars(range(min = 1, max = 65536))]
    pub max_connections: i32,
    /// Worker threads (`-t`).
    #[schemars(range(min = 1, max = 128))]
    pub threads: i32,
    /// The largest item, with the unit `k` or `m` (`-I`), for example `512k` or `2m`.
    #[schemars(regex(pattern = r"^[0-9]+(k|m)$"), length(max = 12))]
    pub max_item_size: String,
    /// How much the server logs: 0 nothing, 1 errors and warnings (`-v`), 2 also commands (`-vv`).
    #[schemars(range(min = 0, max = 2))]
    pub verbosity: i32,
    /// More arguments, passed on as they are, after all others. Ports, listeners and whatever else the
    /// operator decides are refused.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(max = 512)), extend("x-kubernetes-list-type" = "atomic"))]
    pub extra_args: Vec<String>,
}

impl Default for Server {
    fn default() -> Self {
        Self {
            max_memory_mb: 64,
            max_connections: 1024,
            threads: 4,
            max_item_size: "1m".into(),
            verbosity: 0,
            extra_args: Vec::new(),
        }
    }
}

/// A second, larger tier of the cache on disk (memcached's extstore). Not together with `warmRestart`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Extstore {
    /// How much disk each server uses, for example `10Gi`; at least 64Mi.
    pub size: Quantity,
    /// Takes the disk from a volume claim that lives and dies with its pod; without it, from the node's
    /// own disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume_claim: Option<VolumeClaim>,
}

/// A claim for the disk of a server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VolumeClaim {
    /// The storage class; without it, the cluster's default class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = super::OBJECT_NAME), length(max = 253))]
    pub storage_class_name: Option<String>,
}
