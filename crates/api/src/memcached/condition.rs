//! The four conditions of a `Memcached`, in the order in which they appear.

/// At least one server answers.
pub const AVAILABLE: &str = "Available";
/// A rollout is under way.
pub const PROGRESSING: &str = "Progressing";
/// Something is not as declared.
pub const DEGRADED: &str = "Degraded";
/// Everything is as declared.
pub const READY: &str = "Ready";

/// All of them, in order.
pub const ALL: [&str; 4] = [AVAILABLE, PROGRESSING, DEGRADED, READY];
