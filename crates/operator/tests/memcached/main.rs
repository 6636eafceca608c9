//! The kind `Memcached` on a real API server with real controllers, by the operator's own program and RBAC.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![allow(clippy::needless_pass_by_value, reason = "a JSON literal reads best without a reference")]

mod basics;
mod change;
mod contest;
mod deletion;
mod drift;
mod fault;
mod feature;
mod harness;
mod idle;
mod optional;
mod ownership;
mod program;
mod rollback;
mod rollout;
mod scale;
mod scope;
mod secret;
mod several;
mod takeover;
mod watch;
