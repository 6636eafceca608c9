//! The hash of the Secrets that an annotation announces, and when it is told: once their files were compared.
//!
//! The kubelet refreshes annotations and Secrets within milliseconds of each other, but in no fixed order. Files that
//! are compared a second after the hash was read are those that it was made of.

use std::time::{Duration, Instant};

use super::life::{Life, Supervisor};

/// How far apart the two readings of a hash are, at least.
const SETTLING: Duration = Duration::from_secs(1);

/// The hash as the annotations have it.
#[derive(Debug, Default)]
pub struct Announcement {
    hash: Option<String>,
    /// When it was first read.
    since: Option<Instant>,
    is_settled: bool,
}

impl Announcement {
    /// Notes a reading; whether it is another hash than that of the last one.
    pub fn note(&mut self, hash: Option<&String>, now: Instant) -> bool {
        if self.hash.as_ref() != hash {
            *self = Self { hash: hash.cloned(), since: Some(now), is_settled: false };
            return true;
        }
        self.is_settled |= self.since.is_some_and(|since| now.saturating_duration_since(since) >= SETTLING);
        false
    }

    /// The hash, once it was read twice, far enough apart.
    pub fn settled(&self) -> Option<&String> {
        self.hash.as_ref().filter(|_| self.is_settled)
    }
}

impl Supervisor<'_> {
    /// Takes changed files, and tells for which hash they were compared.
    pub(super) async fn take_files(&mut self, life: &Life) {
        // Settled before the files are looked at, not while they are.
        let settled = self.announcement.settled().cloned();
        self.reloader.poll(&life.child, &self.settings.source, self.state).await;
        // Before memcached is ready, `inForce` is that of its last life.
        if life.is_ready && settled.is_some() {
            self.state.update(|status| status.orders.secret_hash = settled);
        }
    }

    /// memcached starts anew: what was compared before says nothing about the files that it reads now.
    pub(super) fn forget_announcement(&mut self) {
        self.announcement = Announcement::default();
        self.state.update(|status| status.orders.secret_hash = None);
    }

    /// Notes the hash of this reading; another one than before is not told until it has settled.
    pub(super) fn note_announcement(&mut self) {
        if self.announcement.note(self.orders.secret_hash.as_ref(), Instant::now()) {
            self.state.update(|status| status.orders.secret_hash = None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_settles_when_it_is_read_again_a_second_later() {
        let (old, new) = ("old".to_owned(), "new".to_owned());
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let mut announcement = Announcement::default();
        assert!(!announcement.note(None, at(0)));
        assert!(!announcement.note(None, at(5000)));
        assert_eq!(announcement.settled(), None, "there is none");
        assert!(announcement.note(Some(&old), at(6000)));
        assert!(!announcement.note(Some(&old), at(6999)));
        assert_eq!(announcement.settled(), None, "too early");
        assert!(!announcement.note(Some(&old), at(7000)));
        assert_eq!(announcement.settled(), Some(&old));
        assert!(announcement.note(Some(&new), at(7250)));
        assert_eq!(announcement.settled(), None, "another one starts anew");
        assert!(announcement.note(Some(&old), at(7500)));
        assert!(!announcement.note(Some(&old), at(8250)));
        assert_eq!(announcement.settled(), None, "and so does one that comes back");
        assert!(!announcement.note(Some(&old), at(8500)));
        assert_eq!(announcement.settled(), Some(&old));
        assert!(announcement.note(None, at(9000)));
        assert_eq!(announcement.settled(), None, "it is taken away");
    }
}
