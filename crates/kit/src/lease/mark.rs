//! What a Lease says beside its spec: which release holds it, what that release watches, how far it has come.
//! Replicas of one release hand a Lease over among themselves; another release waits, and can say for whom.

use std::collections::BTreeSet;
use std::fmt;

use k8s_openapi::api::coordination::v1::Lease;

/// The namespaces in which an operator works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// Every namespace, also those that do not exist yet.
    All,
    /// These, and no other.
    Namespaces(BTreeSet<String>),
}

impl Scope {
    /// The scope of a list of namespaces, where an empty list means all.
    ///
    /// ```
    /// use operator_kit::lease::Scope;
    ///
    /// assert_eq!(Scope::of(&[]), Scope::All);
    /// assert_eq!(Scope::of(&["shop".into(), "bank".into()]).to_string(), "bank,shop");
    /// ```
    pub fn of(namespaces: &[String]) -> Self {
        if namespaces.is_empty() { Self::All } else { Self::Namespaces(namespaces.iter().cloned().collect()) }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("*"),
            Self::Namespaces(namespaces) => {
                f.write_str(&namespaces.iter().map(String::as_str).collect::<Vec<_>>().join(","))
            }
        }
    }
}

/// How far the holder of a Lease has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// It does not lead yet: a leader of every namespace may still take the Lease away.
    Claiming,
    /// It leads, or may. No leader of every namespace is beside it.
    Leading,
    /// A leader of every namespace keeps others out. This Lease alone makes nobody lead.
    Blocking,
}

impl Phase {
    const fn name(self) -> &'static str {
        match self {
            Self::Claiming => "Claiming",
            Self::Leading => "Leading",
            Self::Blocking => "Blocking",
        }
    }
}

/// The keys of the annotations on Leases: the same in every release of a product.
#[derive(Debug, Clone, Copy)]
pub struct MarkKeys {
    /// Which release holds the Lease.
    pub release: &'static str,
    /// What it watches.
    pub scope: &'static str,
    /// How far it has come.
    pub phase: &'static str,
    /// Under which ServiceAccount of the Lease's own namespace it works.
    pub account: &'static str,
}

/// What only an operator of every namespace may do, in every namespace.
#[derive(Debug, Clone, Copy)]
pub struct Right {
    /// The verb.
    pub verb: &'static str,
    /// The API group.
    pub group: &'static str,
    /// The resource.
    pub resource: &'static str,
    /// The subresource; empty for the resource itself.
    pub subresource: &'static str,
}

/// What this process writes on its Leases, as annotations.
#[derive(Debug, Clone)]
pub struct Mark {
    /// The keys of the annotations.
    pub keys: MarkKeys,
    /// The release that this process is a replica of; unique in the cluster.
    pub release: String,
    /// Where it works.
    pub scope: Scope,
    /// The ServiceAccount, in its own namespace, under which it works.
    pub account: String,
    /// What that ServiceAccount has to be allowed for a claim of every namespace to be believed.
    pub right: Right,
}

impl Mark {
    /// How far the holder has come, if the Lease says so.
    pub(super) fn phase(&self, lease: &Lease) -> Option<Phase> {
        let name = annotation(lease, self.keys.phase)?;
        [Phase::Claiming, Phase::Leading, Phase::Blocking].into_iter().find(|phase| phase.name() == name)
    }

    /// Which release holds the Lease or held it last.
    pub(super) fn release<'a>(&self, lease: &'a Lease) -> Option<&'a str> {
        annotation(lease, self.keys.release)
    }

    /// What the holder watches.
    pub(super) fn watched<'a>(&self, lease: &'a Lease) -> Option<&'a str> {
        annotation(lease, self.keys.scope)
    }

    /// The ServiceAccount under which the holder says it works.
    pub(super) fn account<'a>(&self, lease: &'a Lease) -> Option<&'a str> {
        annotation(lease, self.keys.account)
    }

    /// Whether the Lease claims every namespace. Who has taken it from a claimant claims nothing by it.
    pub(super) fn claims_all(&self, lease: &Lease) -> bool {
        let is_claim = matches!(self.phase(lease), Some(Phase::Claiming | Phase::Leading));
        is_claim && self.watched(lease) == Some(Scope::All.to_string().as_str())
    }

    /// Whether the Lease is, or was last, in the hands of our own release.
    pub(super) fn is_own(&self, lease: &Lease) -> bool {
        self.release(lease) == Some(&self.release)
    }

    /// Says on the Lease that it is ours.
    pub(super) fn put(&self, lease: &mut Lease, phase: Phase) {
        let annotations = lease.metadata.annotations.get_or_insert_default();
        annotations.insert(self.keys.release.to_owned(), self.release.clone());
        annotations.insert(self.keys.scope.to_owned(), self.scope.to_string());
        annotations.insert(self.keys.phase.to_owned(), phase.name().to_owned());
        annotations.insert(self.keys.account.to_owned(), self.account.clone());
    }

    /// Takes everything away that a release has said on the Lease: nobody can take it up without a claim.
    pub(super) fn strip(&self, lease: &mut Lease) {
        let Some(annotations) = lease.metadata.annotations.as_mut() else { return };
        for key in [self.keys.release, self.keys.scope, self.keys.phase, self.keys.account] {
            annotations.remove(key);
        }
    }
}

fn annotation<'a>(lease: &'a Lease, key: &str) -> Option<&'a str> {
    lease.metadata.annotations.as_ref()?.get(key).map(String::as_str)
}

/// Whom another release waits for, and where.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rival {
    /// The namespace of the Lease in question.
    pub namespace: String,
    /// The replica that holds it; empty if it was released and is kept for the next replica of that release.
    pub holder: String,
    /// Its release; empty if the Lease does not say.
    pub release: String,
    /// What that release watches: `*` for every namespace; empty if the Lease does not say.
    pub watches: String,
}

impl fmt::Display for Rival {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { namespace, holder, release, watches } = self;
        let release = if release.is_empty() { "an unknown release" } else { release };
        write!(f, "{release}")?;
        if !holder.is_empty() {
            write!(f, " ({holder})")?;
        }
        match watches.as_str() {
            "" => {}
            "*" => f.write_str(", which watches all namespaces")?,
            some => write!(f, ", which watches {some}")?,
        }
        write!(f, " and holds the Lease in namespace {namespace}")
    }
}
