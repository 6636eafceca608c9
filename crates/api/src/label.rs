//! Labels and annotations, and who they belong to.

/// The product; part of every selector.
pub const NAME: &str = "app.kubernetes.io/name";
/// The cache; part of every selector.
pub const INSTANCE: &str = "app.kubernetes.io/instance";
/// Who looks after the object; part of every selector.
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// The image's tag, where it is a valid label value.
pub const VERSION: &str = "app.kubernetes.io/version";

/// The value of [`NAME`].
pub const NAME_VALUE: &str = "memcached";
/// The value of [`MANAGED_BY`].
pub const MANAGED_BY_VALUE: &str = "memcached-operator";

/// On the `Memcached` and copied to its pods: another value restarts them, with today's defaults.
pub const RESTART_TRIGGER: &str = "memcached.c5c3.io/restart-trigger";
/// On pods: a hash over the mounted keys of the Secrets they use.
pub const SECRET_HASH: &str = "memcached.c5c3.io/secret-hash";
/// On the children of a cache: a hash of what was sent when they were created or last applied.
pub const LAST_APPLIED_HASH: &str = "memcached.c5c3.io/last-applied-hash";
/// On pods of a StatefulSet: memcached's arguments, a JSON list. They win over the container's.
pub const ARGS: &str = "memcached.c5c3.io/args";
/// On pods of a StatefulSet: another value restarts memcached in place.
pub const RESTART: &str = "memcached.c5c3.io/restart";
/// On pods of a StatefulSet: a change in place that is not confirmed yet.
pub const CHANGE: &str = "memcached.c5c3.io/change";
/// On pods of a StatefulSet: the hash over the Secrets that its server was seen to have taken.
pub const SECRET_HASH_IN_FORCE: &str = "memcached.c5c3.io/secret-hash-in-force";
/// On pods of a StatefulSet: when a change in place was confirmed.
pub const CHANGED_AT: &str = "memcached.c5c3.io/changed-at";
/// On pods of a StatefulSet: a change that was undone because the pod did not come back.
pub const REFUSED: &str = "memcached.c5c3.io/refused";
/// Annotations of pods that are the operator's alone.
pub const ORDERS: [&str; 6] = [ARGS, RESTART, CHANGE, CHANGED_AT, SECRET_HASH_IN_FORCE, REFUSED];
/// The value of [`NAME`] on short-lived pods that try whether an image and its arguments start on a node.
pub const PROOF_VALUE: &str = "memcached-proof";
/// On Leases: the release that holds it, its namespace and name.
pub const LEASE_RELEASE: &str = "memcached.c5c3.io/release";
/// On Leases: the namespaces that this release watches; `*` for all.
pub const LEASE_WATCH_NAMESPACES: &str = "memcached.c5c3.io/watch-namespaces";
/// On Leases: how far its holder has come.
pub const LEASE_PHASE: &str = "memcached.c5c3.io/phase";
/// On Leases: the ServiceAccount of its holder, in the Lease's own namespace.
pub const LEASE_SERVICE_ACCOUNT: &str = "memcached.c5c3.io/service-account";
/// On ControllerRevisions: the cache whose pod template they keep.
pub const TEMPLATE_OF: &str = "memcached.c5c3.io/template-of";
