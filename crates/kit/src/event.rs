//! Events: what people see in `kubectl describe`. Best effort, never in the way of the work.

use std::sync::{Arc, Mutex, PoisonError};

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};

use crate::REQUEST_TIMEOUT;
use crate::lease::Leadership;

/// The API server refuses longer notes, and the Event with them.
const LONGEST_NOTE: usize = 1024;

/// A recorder remembers every Event for minutes, to count repetitions, and looks through all of them each time: it is
/// replaced after so many.
const EVENTS_A_RECORDER: usize = 256;

/// Publishes Events while this process leads.
#[derive(Clone)]
pub struct Events {
    client: Client,
    reporter: Reporter,
    recorder: Arc<Mutex<(Recorder, usize)>>,
    leadership: Leadership,
}

impl Events {
    /// Events of the controller of that name.
    pub fn new(client: Client, controller: &str, leadership: Leadership) -> Self {
        let reporter = Reporter { controller: controller.into(), instance: None };
        let recorder = Recorder::new(client.clone(), reporter.clone());
        Self { client, reporter, recorder: Arc::new(Mutex::new((recorder, 0))), leadership }
    }

    fn recorder(&self) -> Recorder {
        let mut current = self.recorder.lock().unwrap_or_else(PoisonError::into_inner);
        let (recorder, count) = &mut *current;
        *count += 1;
        if *count > EVENTS_A_RECORDER {
            (*recorder, *count) = (Recorder::new(self.client.clone(), self.reporter.clone()), 1);
        }
        recorder.clone()
    }

    /// Something went as it should.
    pub async fn normal(&self, about: &ObjectReference, reason: &str, note: &str) {
        self.publish(about, EventType::Normal, reason, note).await;
    }

    /// Something needs somebody's attention.
    pub async fn warning(&self, about: &ObjectReference, reason: &str, note: &str) {
        self.publish(about, EventType::Warning, reason, note).await;
    }

    async fn publish(&self, about: &ObjectReference, type_: EventType, reason: &str, note: &str) {
        if self.leadership.check_in(about.namespace.as_deref().unwrap_or_default()).is_err() {
            return;
        }
        let note = Some(shorten(note));
        let event = Event { type_, reason: reason.to_owned(), note, action: "Reconcile".into(), secondary: None };
        match tokio::time::timeout(REQUEST_TIMEOUT, self.recorder().publish(&event, about)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, reason, "failed to publish an Event"),
            Err(_) => tracing::debug!(reason, "failed to publish an Event: no answer"),
        }
    }
}

/// A note that the API server takes, cut between two characters.
fn shorten(note: &str) -> String {
    if note.len() <= LONGEST_NOTE {
        return note.to_owned();
    }
    let most = LONGEST_NOTE - '…'.len_utf8();
    let end = (0..=most).rev().find(|end| note.is_char_boundary(*end)).unwrap_or_default();
    format!("{}…", note.get(..end).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_note_is_cut_where_the_api_server_would_refuse_it() {
        assert_eq!(shorten("short"), "short");
        for letter in ["a", "ä", "→", "🦀"] {
            let cut = shorten(&letter.repeat(2000));
            assert!(cut.len() <= LONGEST_NOTE && cut.len() > LONGEST_NOTE - 8, "{}", cut.len());
            assert!(cut.ends_with('…') && cut.starts_with(letter));
        }
    }
}
