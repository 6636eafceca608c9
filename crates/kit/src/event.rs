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

/// What was done, and to whom. The recorder counts Events of one reason as one, with the first note, unless these differ.
#[derive(Debug, Clone)]
pub struct Deed<'a> {
    /// A word for it.
    pub action: &'a str,
    /// Another object that it was done to.
    pub related: Option<ObjectReference>,
}

impl Default for Deed<'_> {
    fn default() -> Self {
        Self { action: "Reconcile", related: None }
    }
}

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
        self.publish(about, EventType::Normal, Deed::default(), reason, note).await;
    }

    /// Something needs somebody's attention.
    pub async fn warning(&self, about: &ObjectReference, reason: &str, note: &str) {
        self.publish(about, EventType::Warning, Deed::default(), reason, note).await;
    }

    /// Something was done to another object on behalf of this one.
    pub async fn done(&self, about: &ObjectReference, deed: Deed<'_>, is_warning: bool, reason: &str, note: &str) {
        let type_ = if is_warning { EventType::Warning } else { EventType::Normal };
        self.publish(about, type_, deed, reason, note).await;
    }

    async fn publish(&self, about: &ObjectReference, type_: EventType, deed: Deed<'_>, reason: &str, note: &str) {
        if self.leadership.check_in(about.namespace.as_deref().unwrap_or_default()).is_err() {
            return;
        }
        let note = Some(shorten(note));
        let Deed { action, related } = deed;
        let event = Event { type_, reason: reason.to_owned(), note, action: action.into(), secondary: related };
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
