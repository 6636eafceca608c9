//! Where this process stands beside other operators: what readiness, metrics and logs tell.

use std::fmt;

use super::mark::Rival;

/// What an election has come to, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScopeStatus {
    /// Nothing is known yet, or it cannot be found out; why.
    Unknown(String),
    /// The Leases are claimed; others may still object.
    Claiming,
    /// This process leads, or another replica of its release does.
    Settled,
    /// Other releases work in the same namespaces.
    Waiting(Vec<Rival>),
}

impl ScopeStatus {
    /// An error unless this process leads or could lead as soon as a replica of its own release ends.
    pub fn check(&self) -> Result<(), String> {
        if *self == Self::Settled { Ok(()) } else { Err(self.to_string()) }
    }
}

impl fmt::Display for ScopeStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(why) => f.write_str(why),
            Self::Claiming => f.write_str("claiming the Lease: other operators have time to object"),
            Self::Settled => f.write_str("settled"),
            Self::Waiting(rivals) => {
                let rivals: Vec<_> = rivals.iter().map(ToString::to_string).collect();
                write!(f, "waiting for {}", rivals.join("; "))
            }
        }
    }
}
