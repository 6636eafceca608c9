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
