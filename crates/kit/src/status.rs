//! Status writes: by server-side apply with the object's uid, only on change, numbers on the way not too often.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use kube::api::{Api, Patch, PatchParams};
use kube::{Client, ResourceExt};
use serde::Serialize;
use serde_json::json;

use crate::REQUEST_TIMEOUT;
use crate::children::{Applier, status_code};
use crate::controller::{CustomResource, Error};

/// Numbers that move while pods come up are written this often at most.
const PACING_INTERVAL: Duration = Duration::from_secs(10);

/// What became of a status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Published<K> {
    /// It is as it was.
    Unchanged,
    /// It was written a moment ago: to be published again after this.
    Later(Duration),
    /// It was written; the object as it is now, if it still exists.
    Written(Option<Box<K>>),
}

/// When the status of objects was written, by uid.
#[derive(Debug, Default)]
pub struct Pacing {
    writes: Mutex<Writes>,
}

#[derive(Debug, Default)]
struct Writes {
    last: HashMap<String, Instant>,
    /// How many are remembered before old ones are forgotten.
    forgets_at: usize,
}

/// So many take no memory worth speaking of.
const FEW: usize = 256;

impl Pacing {
    /// How long to wait before a write that is not urgent.
    fn wait(&self, uid: &str) -> Option<Duration> {
        let writes = self.writes.lock().unwrap_or_else(PoisonError::into_inner);
        PACING_INTERVAL.checked_sub(writes.last.get(uid)?.elapsed()).filter(|left| !left.is_zero())
    }

    fn written(&self, uid: String) {
        let mut writes = self.writes.lock().unwrap_or_else(PoisonError::into_inner);
        // Only the last few seconds count: departed objects take no memory. Not at every write, which would walk all
        // recent ones each time.
        if writes.last.len() >= writes.forgets_at.max(FEW) {
            writes.last.retain(|_, at| at.elapsed() < PACING_INTERVAL);
            writes.forgets_at = writes.last.len().saturating_mul(2);
        }
        writes.last.insert(uid, Instant::now());
    }
}

/// Writes a status if it has changed; one without news waits until the last write is some seconds ago.
pub async fn publish<K: CustomResource, S: Serialize + PartialEq>(
    applier: &Applier,
    pacing: &Pacing,
    object: &K,
    old: Option<&S>,
    new: &S,
    is_news: bool,
) -> Result<Published<K>, Error> {
    if old == Some(new) {
        return Ok(Published::Unchanged);
    }
    let uid = object.uid().unwrap_or_default();
    if let Some(left) = pacing.wait(&uid).filter(|_| !is_news) {
        return Ok(Published::Later(left));
    }
    let written = write(applier, object, new).await?;
    pacing.written(uid);
    Ok(Published::Written(written.map(Box::new)))
}

async fn write<K: CustomResource>(applier: &Applier, object: &K, status: &impl Serialize) -> Result<Option<K>, Error> {
    let (namespace, name) = (object.namespace().unwrap_or_default(), object.name_any());
    let api: Api<K> = Api::namespaced(Client::clone(applier.client()), &namespace);
    let document = json!({
        "apiVersion": K::api_version(&()),
        "kind": K::kind(&()),
        // The uid: an object that was deleted and made anew under this name must not get this status.
        "metadata": {"name": name, "uid": object.uid()},
        "status": status,
    });
    let params = PatchParams::apply(applier.manager()).force();
    applier.check(&namespace)?;
    let document = Patch::Apply(document);
    let written = tokio::time::timeout(REQUEST_TIMEOUT, api.patch_status(&name, &params, &document)).await;
    match written.map_err(|_| Error::Timeout)? {
        Ok(written) => Ok(Some(written)),
        // Deleted: nothing to tell.
        Err(error) if status_code(&error) == Some(404) => Ok(None),
        // Another one by now, or somebody was faster: the next reconcile finds out.
        Err(error) if status_code(&error) == Some(409) => Err(Error::Conflict),
        Err(error) => Err(Error::Status(Box::new(error))),
    }
}
