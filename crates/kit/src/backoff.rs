//! How long to leave an object alone after an error: by the error's class, and longer each time it fails again.
//! Deterministic: the same object waits the same, and objects that failed together do not come back together.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use operator_model::problem::Class;

/// The first pause of [`Class::Retry`]; it doubles up to [`RETRY_MOST`].
const RETRY_FIRST: Duration = Duration::from_millis(500);
const RETRY_MOST: Duration = Duration::from_secs(5 * 60);
const WAIT: Duration = Duration::from_secs(30);
const INVALID: Duration = Duration::from_secs(10 * 60);
const BUG: Duration = Duration::from_secs(5 * 60);

/// The part of a pause that an object's jitter may take away.
const JITTER: f64 = 0.2;

/// The failures of objects, by key.
///
/// ```
/// use operator_kit::backoff::Backoff;
/// use operator_model::problem::Class;
///
/// let backoff = Backoff::default();
/// let first = backoff.next("default/cache", Class::Retry);
/// assert!(backoff.next("default/cache", Class::Retry) > first);
/// backoff.reset("default/cache");
/// assert_eq!(backoff.next("default/cache", Class::Retry), first);
/// ```
#[derive(Debug, Default)]
pub struct Backoff {
    /// Only objects that fail with [`Class::Retry`] are remembered.
    failures: Mutex<HashMap<String, u32>>,
}

impl Backoff {
    /// How long to wait after this failure.
    pub fn next(&self, key: &str, class: Class) -> Duration {
        match class {
            Class::Wait => jittered(WAIT, &key),
            Class::Invalid => jittered(INVALID, &key),
            Class::Bug => jittered(BUG, &key),
            Class::Retry => retry_pause(key, self.count(key)),
        }
    }

    /// The object succeeded, or is gone.
    pub fn reset(&self, key: &str) {
        self.failed().remove(key);
    }

    /// What made objects fail is over for all of them.
    pub fn reset_all(&self) {
        self.failed().clear();
    }

    /// How often an object has failed in a row.
    pub fn failures(&self, key: &str) -> u32 {
        self.failed().get(key).copied().unwrap_or(0)
    }

    /// The number of failures before this one, which is counted.
    fn count(&self, key: &str) -> u32 {
        let mut failures = self.failed();
        let count = failures.entry(key.to_owned()).or_default();
        let before = *count;
        *count = before.saturating_add(1);
        before
    }

    fn failed(&self) -> MutexGuard<'_, HashMap<String, u32>> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn retry_pause(key: &str, failures: u32) -> Duration {
    let factor = 2_u32.checked_pow(failures).unwrap_or(u32::MAX);
    let pause = RETRY_FIRST.saturating_mul(factor).min(RETRY_MOST);
    jittered(pause, &key)
}

/// A pause less some part of it, the same part for the same key: pauses of one key never shrink, and those of several
/// do not end together.
pub(crate) fn jittered(pause: Duration, key: &impl Hash) -> Duration {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    let share = f64::from(u16::try_from(hasher.finish() % 1000).unwrap_or_default()) / 1000.0;
    pause.mul_f64(1.0 - JITTER * share)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn keys() -> impl Iterator<Item = String> {
        (0..500).map(|number| format!("namespace-{}/object-{number}", number % 7))
    }

    #[test]
    fn retries_grow_from_half_a_second_to_five_minutes() {
        for key in keys() {
            let backoff = Backoff::default();
            let pauses: Vec<_> = (0..40).map(|_| backoff.next(&key, Class::Retry)).collect();
            assert!(pauses.is_sorted(), "{key}: {pauses:?}");
            assert!((0.4..=0.5).contains(&pauses[0].as_secs_f64()), "{key}: {pauses:?}");
            assert!((240.0..=300.0).contains(&pauses[39].as_secs_f64()), "{key}: {pauses:?}");
            for pair in pauses.windows(2).take(9) {
                let growth = pair[1].as_secs_f64() / pair[0].as_secs_f64();
                assert!((growth - 2.0).abs() < 1e-6, "{key}: {pauses:?}");
            }
        }
    }

    #[test]
    fn objects_that_failed_together_come_back_apart() {
        let backoff = Backoff::default();
        let pauses: HashSet<_> = keys().map(|key| backoff.next(&key, Class::Retry)).collect();
        assert!(pauses.len() > 300, "only {} different pauses", pauses.len());
    }

    #[test]
    fn the_same_history_gives_the_same_pauses() {
        let (one, two) = (Backoff::default(), Backoff::default());
        for key in keys() {
            assert_eq!(one.next(&key, Class::Retry), two.next(&key, Class::Retry));
        }
    }

    #[test]
    fn objects_do_not_slow_each_other_down() {
        let backoff = Backoff::default();
        let first = backoff.next("default/quiet", Class::Retry);
        for _ in 0..20 {
            backoff.next("default/noisy", Class::Retry);
        }
        backoff.reset("default/quiet");
        assert_eq!(backoff.next("default/quiet", Class::Retry), first);
    }

    #[test]
    fn the_other_classes_are_constant_and_leave_the_count_alone() {
        let backoff = Backoff::default();
        let first = backoff.next("default/cache", Class::Retry);
        for _ in 0..5 {
            for (class, most) in [(Class::Wait, 30.0), (Class::Invalid, 600.0), (Class::Bug, 300.0)] {
                let pause = backoff.next("default/cache", class);
                assert!((0.8 * most..=most).contains(&pause.as_secs_f64()), "{class:?}: {pause:?}");
                assert_eq!(pause, backoff.next("default/cache", class));
            }
        }
        let waits: HashSet<_> = keys().map(|key| backoff.next(&key, Class::Wait)).collect();
        assert!(waits.len() > 300, "only {} different pauses", waits.len());
        let second = backoff.next("default/cache", Class::Retry);
        assert!((second.as_secs_f64() / first.as_secs_f64() - 2.0).abs() < 1e-6, "{first:?} then {second:?}");
    }

    #[test]
    fn an_object_that_is_gone_is_forgotten() {
        let backoff = Backoff::default();
        backoff.next("default/gone", Class::Retry);
        backoff.reset("default/gone");
        assert!(backoff.failed().is_empty());
    }
}
