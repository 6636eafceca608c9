//! Reasons of conditions, Events and metrics that every kind shares: a closed set, never variable text.

/// The spec cannot work.
pub const INVALID: &str = "Invalid";
/// A Secret that the object refers to is missing.
pub const SECRET_NOT_FOUND: &str = "SecretNotFound";
/// A Secret that the object refers to cannot be read.
pub const SECRET_UNREADABLE: &str = "SecretUnreadable";
/// An object of that name exists and has another owner.
pub const NAME_TAKEN: &str = "NameTaken";
/// The API server refused a child.
pub const REFUSED: &str = "Refused";
/// A kind that the spec asks for is not installed in this cluster.
pub const KIND_MISSING: &str = "KindMissing";
/// Another field manager undoes what we apply, again and again.
pub const CONTESTED: &str = "Contested";
/// A write met another write, several times in a row.
pub const CONFLICT: &str = "Conflict";
/// The API server does not answer, or is overloaded, several times in a row.
pub const API_UNAVAILABLE: &str = "APIServerUnavailable";
