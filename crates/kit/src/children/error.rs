//! Why a child is not as desired.

use operator_model::problem::{Class, Problem};
use operator_model::reason;

use super::applier::Desired;
use crate::REQUEST_TIMEOUT;
use crate::lease::NotLeader;

/// Why a child is not as desired.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// It has another owner.
    #[error(
        "{kind} {name:?} exists and is not owned by this object: {owner}; delete or rename it, or choose another name here"
    )]
    NotOwned {
        /// The kind.
        kind: &'static str,
        /// The name.
        name: String,
        /// Whose it is, in words.
        owner: String,
    },
    /// An object of the same name that was deleted has it still.
    #[error("{kind} {name:?} belongs to a deleted object of this name: waiting for garbage collection to delete it")]
    Departed {
        /// The kind.
        kind: &'static str,
        /// The name.
        name: String,
    },
    /// Another field manager undoes our applies.
    #[error(
        "{kind} {name:?} is changed back by {} again and again, so it is applied less and less often: stop that \
         controller, or exclude this object from it",
        writer(manager)
    )]
    Contested {
        /// The kind.
        kind: &'static str,
        /// The name.
        name: String,
        /// Who changes it; empty if that is not known.
        manager: String,
    },
    /// The API server did not accept it.
    #[error("failed to {action} {kind} {name:?}: {source}")]
    Api {
        /// What was tried.
        action: &'static str,
        /// The kind.
        kind: &'static str,
        /// The name.
        name: String,
        /// What the API server said.
        source: Box<kube::Error>,
    },
    /// The API server did not answer in time.
    #[error("failed to {action} {kind} {name:?}: no answer within {} s", REQUEST_TIMEOUT.as_secs())]
    Timeout {
        /// What was tried.
        action: &'static str,
        /// The kind.
        kind: &'static str,
        /// The name.
        name: String,
    },
    /// What the API server has cannot be read.
    #[error("failed to read {kind} {name:?}: {error}")]
    Unreadable {
        /// The kind.
        kind: &'static str,
        /// The name.
        name: String,
        /// What is wrong with it.
        error: kube::core::dynamic::ParseDynamicObjectError,
    },
    /// Another process leads.
    #[error(transparent)]
    NotLeader(#[from] NotLeader),
}

impl ApplyError {
    pub(super) fn not_owned(desired: &Desired<'_>, owner: String) -> Self {
        Self::NotOwned { kind: desired.resource.kind, name: desired.name.to_owned(), owner }
    }

    pub(super) fn departed(desired: &Desired<'_>) -> Self {
        Self::Departed { kind: desired.resource.kind, name: desired.name.to_owned() }
    }

    /// The API server's status code, if it answered.
    pub fn code(&self) -> Option<u16> {
        match self {
            Self::Api { source, .. } => status_code(source),
            _ => None,
        }
    }

    /// What it asks for; none if a watch or another event will tell.
    pub fn class(&self) -> Option<Class> {
        match self {
            Self::NotOwned { .. } | Self::Contested { .. } => Some(Class::Wait),
            Self::Api { .. } | Self::Timeout { .. } | Self::Departed { .. } | Self::Unreadable { .. } => {
                Some(Class::Retry)
            }
            // Whoever leads does it; leadership that comes back reconciles everything.
            Self::NotLeader(_) => None,
        }
    }

    /// Why, out of a closed set.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::NotOwned { .. } | Self::Departed { .. } => reason::NAME_TAKEN,
            Self::Contested { .. } => reason::CONTESTED,
            Self::Api { .. } if self.is_conflict() => reason::CONFLICT,
            Self::Api { source, .. } if !is_transient(source) => reason::REFUSED,
            Self::Unreadable { .. } => reason::REFUSED,
            Self::Api { .. } | Self::Timeout { .. } | Self::NotLeader(_) => reason::API_UNAVAILABLE,
        }
    }

    /// Whether it passes by itself as a rule: another writer was faster, the API server is overloaded or restarting.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Api { source, .. } => self.is_conflict() || is_transient(source),
            Self::Timeout { .. } | Self::NotLeader(_) | Self::Departed { .. } => true,
            Self::NotOwned { .. } | Self::Contested { .. } | Self::Unreadable { .. } => false,
        }
    }

    /// A JSON patch whose test fails is answered with 422, not with 409.
    pub(super) fn is_conflict(&self) -> bool {
        self.code() == Some(409) || matches!(self, Self::Api { action: "take over", .. } if self.code() == Some(422))
    }
}

impl From<&ApplyError> for Problem {
    fn from(error: &ApplyError) -> Self {
        Self {
            reason: error.reason(),
            message: error.to_string(),
            class: error.class(),
            is_transient: error.is_transient(),
        }
    }
}

fn writer(manager: &str) -> String {
    match manager {
        "" => "an unknown writer, perhaps another release of this operator".into(),
        _ => format!("the field manager {manager:?}"),
    }
}

/// The API server's status code, if it answered.
pub fn status_code(error: &kube::Error) -> Option<u16> {
    match error {
        kube::Error::Api(status) => Some(status.code),
        _ => None,
    }
}

/// Whether a request failed for want of an API server that has time for it.
pub fn is_transient(error: &kube::Error) -> bool {
    status_code(error).is_none_or(|code| code == 429 || code >= 500)
}
