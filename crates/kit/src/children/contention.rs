//! Recognises that another field manager undoes our applies: two controllers on one object would otherwise write
//! against each other as fast as the API server takes it, and nobody would be told.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use kube::ResourceExt;
use kube::api::DynamicObject;

use super::applier::Desired;
use super::error::ApplyError;

/// How often the same apply may be repeated before it is called a contest.
const TOLERATED: u32 = 5;
/// Repeats that are further apart are no contest.
const WINDOW: Duration = Duration::from_secs(5 * 60);
/// The first pause; it doubles up to the longest.
const FIRST_PAUSE: Duration = Duration::from_secs(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(4 * 60);

/// What was applied to an object, and how often again.
#[derive(Debug)]
struct Repeats {
    digest: u64,
    count: u32,
    last: Instant,
    manager: String,
}

impl Repeats {
    fn pause(&self) -> Option<Duration> {
        let beyond = self.count.checked_sub(TOLERATED)?;
        Some(FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(beyond)).min(LONGEST_PAUSE))
    }

    fn count(&mut self, digest: u64, manager: String, now: Instant) {
        let is_repeat = self.digest == digest && now.duration_since(self.last) < WINDOW;
        *self = Self { digest, count: if is_repeat { self.count + 1 } else { 0 }, last: now, manager };
    }
}

/// The repeated applies of all objects, by uid.
#[derive(Debug, Default)]
pub struct Contention {
    objects: Mutex<HashMap<String, Repeats>>,
    /// How many are remembered before old ones are forgotten.
    forgets_at: AtomicUsize,
}

impl Contention {
    /// Whether an object is close to being left alone.
    pub fn is_suspected(&self, desired: &Desired<'_>, live: &DynamicObject) -> bool {
        let objects = self.objects();
        let repeats = live.metadata.uid.as_ref().and_then(|uid| objects.get(uid));
        repeats.is_some_and(|repeats| repeats.pause().is_some() && repeats.digest == digest(desired))
    }

    /// An error while an object is left alone because its changes are undone.
    pub fn check(&self, desired: &Desired<'_>, live: &DynamicObject, ours: &str) -> Result<(), ApplyError> {
        match self.pause_at(desired, live, ours, Instant::now()) {
            Some((_, manager)) => {
                Err(ApplyError::Contested { kind: desired.resource.kind, name: desired.name.to_owned(), manager })
            }
            None => Ok(()),
        }
    }

    /// An apply changed an object, which was `live` before.
    pub fn updated(&self, desired: &Desired<'_>, live: &DynamicObject) {
        self.updated_at(desired, live, Instant::now());
    }

    /// How long an object is left alone, and because of whom.
    fn pause_at(
        &self,
        desired: &Desired<'_>,
        live: &DynamicObject,
        ours: &str,
        now: Instant,
    ) -> Option<(Duration, String)> {
        let mut objects = self.objects();
        let repeats = objects.get_mut(&live.uid().unwrap_or_default())?;
        if repeats.digest != digest(desired) {
            // Something else is desired now: that is tried at once.
            return None;
        }
        if let Some(manager) = last_writer(live, ours) {
            repeats.manager = manager;
        }
        let left = repeats.pause()?.checked_sub(now.duration_since(repeats.last))?;
        (!left.is_zero()).then(|| (left, repeats.manager.clone()))
    }

    fn updated_at(&self, desired: &Desired<'_>, live: &DynamicObject, now: Instant) {
        let Some(uid) = live.uid() else { return };
        let mut objects = self.objects();
        let digest = digest(desired);
        // What nobody has undone for longer than the longest pause is forgotten, so that only contested objects take
        // memory. Not at every write: that would walk all recent ones each time.
        if objects.len() >= self.forgets_at.load(Ordering::Relaxed).max(FEW) {
            objects.retain(|_, repeats| now.duration_since(repeats.last) < WINDOW);
            self.forgets_at.store(objects.len().saturating_mul(2), Ordering::Relaxed);
        }
        let repeats = objects.entry(uid).or_insert_with(|| Repeats {
            digest: !digest,
            count: 0,
            last: now,
            manager: String::new(),
        });
        let manager = std::mem::take(&mut repeats.manager);
        repeats.count(digest, manager, now);
    }

    fn objects(&self) -> MutexGuard<'_, HashMap<String, Repeats>> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// So many take no memory worth speaking of.
const FEW: usize = 256;

fn digest(desired: &Desired<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    desired.object.to_string().hash(&mut hasher);
    hasher.finish()
}

/// Who wrote to an object last, apart from us and from those who only report its status.
fn last_writer(live: &DynamicObject, ours: &str) -> Option<String> {
    let others = live.managed_fields().iter().filter(|entry| {
        let is_status = entry.subresource.as_deref() == Some("status");
        let is_ours = entry.manager.as_deref() == Some(ours) && entry.operation.as_deref() == Some("Apply");
        !is_status && !is_ours
    });
    // The other operator may go by our own name, but that may also be what we created.
    let rank =
        |entry: &&ManagedFieldsEntry| (entry.manager.as_deref() != Some(ours), entry.time.as_ref().map(|time| time.0));
    others.max_by_key(rank)?.manager.clone()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
    use operator_model::resource::DEPLOYMENT;
    use serde_json::{Value, json};

    use super::*;

    fn live() -> DynamicObject {
        serde_json::from_value(json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "a", "uid": "1", "managedFields": [
                {"manager": "us", "operation": "Apply", "time": "2026-01-01T00:00:09Z"},
                {"manager": "kubelet", "operation": "Update", "subresource": "status", "time": "2026-01-01T00:00:08Z"},
                {"manager": "other-operator", "operation": "Update", "time": "2026-01-01T00:00:07Z"},
                {"manager": "kubectl", "operation": "Update", "time": "2026-01-01T00:00:01Z"},
            ]},
        }))
        .unwrap()
    }

    fn desired<'a>(object: &'a Value, owner: &'a OwnerReference) -> Desired<'a> {
        Desired { resource: DEPLOYMENT, namespace: "shop", name: "a", object, owner, labels: &[] }
    }

    #[test]
    fn a_change_that_is_undone_again_and_again_is_a_contest_and_backed_off() {
        let (owner, object, other) = (OwnerReference::default(), json!({"spec": 1}), json!({"spec": 2}));
        let (wanted, contention) = (desired(&object, &owner), Contention::default());
        let mut now = Instant::now();
        let mut last = Duration::ZERO;
        for apply in 0..12 {
            match contention.pause_at(&wanted, &live(), "us", now) {
                None => assert!(apply <= TOLERATED, "apply {apply} was let through"),
                Some((pause, manager)) => {
                    assert_eq!(manager, "other-operator");
                    assert!(apply > TOLERATED && pause >= last && pause <= LONGEST_PAUSE, "{apply}: {pause:?}");
                    last = pause;
                    now += pause;
                    assert_eq!(contention.pause_at(&wanted, &live(), "us", now), None, "the pause has passed");
                }
            }
            let another = contention.pause_at(&desired(&other, &owner), &live(), "us", now);
            assert_eq!(another, None, "another spec is tried");
            contention.updated_at(&wanted, &live(), now);
            now += Duration::from_millis(10);
        }
        assert!(last >= Duration::from_secs(100), "{last:?}");
    }

    #[test]
    fn changes_that_are_far_apart_are_no_contest() {
        let (owner, object) = (OwnerReference::default(), json!({"spec": 1}));
        let (wanted, contention) = (desired(&object, &owner), Contention::default());
        let mut now = Instant::now();
        for _ in 0..20 {
            assert_eq!(contention.pause_at(&wanted, &live(), "us", now), None);
            contention.updated_at(&wanted, &live(), now);
            now += WINDOW;
        }
    }
}
