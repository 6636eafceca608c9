//! Requests to the API server with as little around them as possible.
//! The bare subject is made of them, and everything that the benchmark itself does to objects.

use futures::stream::{self, StreamExt, TryStreamExt};
use http::Request;
use http::header::{ACCEPT, CONTENT_TYPE};
use kube::Client;
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;

use crate::error::Result;

/// How many requests are under way at once.
pub const CONCURRENCY: usize = 16;
/// How many objects a page of a list has.
const PAGE: usize = 500;
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// The kinds that have a part in this.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Memcached,
    Namespace,
    Secret,
    ServiceAccount,
    ControllerRevision,
    Service,
    Deployment,
    PodDisruptionBudget,
}

impl Kind {
    /// Where its API is, and its name there.
    const fn place(self) -> (&'static str, &'static str) {
        match self {
            Self::Memcached => ("/apis/memcached.c5c3.io/v1beta1", "memcacheds"),
            Self::Namespace => ("/api/v1", "namespaces"),
            Self::Secret => ("/api/v1", "secrets"),
            Self::ServiceAccount => ("/api/v1", "serviceaccounts"),
            Self::ControllerRevision => ("/apis/apps/v1", "controllerrevisions"),
            Self::Service => ("/api/v1", "services"),
            Self::Deployment => ("/apis/apps/v1", "deployments"),
            Self::PodDisruptionBudget => ("/apis/policy/v1", "poddisruptionbudgets"),
        }
    }

    /// The path of all its objects.
    pub fn everywhere(self) -> String {
        let (api, plural) = self.place();
        format!("{api}/{plural}")
    }

    /// The path of its objects in a namespace.
    pub fn within(self, namespace: &str) -> String {
        let (api, plural) = self.place();
        format!("{api}/namespaces/{namespace}/{plural}")
    }

    /// As people call it.
    pub const fn plural(self) -> &'static str {
        self.place().1
    }
}

/// What we read of an object's metadata.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Metadata {
    pub name: String,
    pub namespace: String,
    pub uid: String,
    pub generation: i64,
    pub resource_version: String,
}

/// An object of which nothing but the metadata is read.
#[derive(Debug, Clone, Deserialize)]
pub struct Answer {
    #[serde(default)]
    pub metadata: Metadata,
}

/// A page of a list.
#[derive(Debug, Deserialize)]
struct Page<T> {
    #[serde(default)]
    metadata: PageMetadata,
    /// An empty list of metadata has none at all.
    items: Option<Vec<T>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PageMetadata {
    resource_version: String,
    #[serde(rename = "continue")]
    token: String,
}

/// A client of which each method is one request.
#[derive(Clone)]
pub struct Requests {
    client: Client,
}

impl Requests {
    /// Requests by this client.
    pub fn by(client: Client) -> Self {
        Self { client }
    }

    /// The client itself.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Creates an object below the path of its kind.
    pub async fn create(&self, path: &str, object: &Value) -> Result<Metadata> {
        let request = Request::post(path).header(CONTENT_TYPE, "application/json").body(bytes(object))?;
        Ok(self.client.request::<Answer>(request).await?.metadata)
    }

    /// Changes an object, or its subresource, by a merge patch.
    pub async fn merge(&self, path: &str, change: &Value) -> Result<Metadata> {
        let request = Request::patch(path).header(CONTENT_TYPE, "application/merge-patch+json").body(bytes(change))?;
        Ok(self.client.request::<Answer>(request).await?.metadata)
    }

    /// Deletes an object; its children are deleted in the background.
    pub async fn delete(&self, path: &str) -> Result<()> {
        let options = serde_json::json!({
            "apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background",
        });
        let request = Request::delete(path).header(CONTENT_TYPE, "application/json").body(bytes(&options))?;
        self.client.request::<IgnoredAny>(request).await?;
        Ok(())
    }

    /// Whether there is any object below a path; `query` narrows it down.
    pub async fn has_any(&self, path: &str, query: &str) -> Result<bool> {
        let request = Request::get(format!("{path}?limit=1{query}")).header(ACCEPT, METADATA_LIST).body(Vec::new())?;
        Ok(!self.client.request::<Page<IgnoredAny>>(request).await?.items.is_none_or(|items| items.is_empty()))
    }

    /// The metadata of all objects below a path.
    pub async fn list_metadata(&self, path: &str) -> Result<Vec<Metadata>> {
        let (objects, _) = self.list::<Answer>(path, METADATA_LIST).await?;
        Ok(objects.into_iter().map(|object| object.metadata).collect())
    }

    /// All objects below a path, page by page, and the version of the list.
    pub async fn list_objects<T: DeserializeOwned>(&self, path: &str) -> Result<(Vec<T>, String)> {
        self.list(path, "application/json").await
    }

    async fn list<T: DeserializeOwned>(&self, path: &str, accept: &str) -> Result<(Vec<T>, String)> {
        let mut objects = Vec::new();
        let mut token = String::new();
        loop {
            // The token is made of letters, digits, dashes and underscores: it needs no escaping.
            let next = if token.is_empty() { String::new() } else { format!("&continue={token}") };
            let request = Request::get(format!("{path}?limit={PAGE}{next}")).header(ACCEPT, accept).body(Vec::new())?;
            let page: Page<T> = self.client.request(request).await?;
            objects.extend(page.items.into_iter().flatten());
            token = page.metadata.token;
            if token.is_empty() {
                return Ok((objects, page.metadata.resource_version));
            }
        }
    }
}

fn bytes(value: &Value) -> Vec<u8> {
    value.to_string().into_bytes()
}

/// Does the same for every item, so many at once as [`CONCURRENCY`] says; the first error ends it.
pub async fn for_each<T, R, F, Work>(items: Vec<T>, work: F) -> Result<Vec<R>>
where
    F: Fn(T) -> Work,
    Work: Future<Output = Result<R>>,
{
    stream::iter(items).map(work).buffer_unordered(CONCURRENCY).try_collect().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_those_of_the_api() {
        assert_eq!(Kind::Service.everywhere(), "/api/v1/services");
        assert_eq!(
            Kind::Memcached.within("bench-0001"),
            "/apis/memcached.c5c3.io/v1beta1/namespaces/bench-0001/memcacheds"
        );
    }

    #[test]
    fn a_page_says_whether_there_is_another() {
        let text = r#"{"kind":"List","metadata":{"resourceVersion":"7","continue":"abc","remainingItemCount":3},
            "items":[{"metadata":{"name":"a","namespace":"b","uid":"c","generation":2,"labels":{}}}]}"#;
        let page: Page<Answer> = serde_json::from_str(text).unwrap();
        assert_eq!((page.metadata.resource_version.as_str(), page.metadata.token.as_str()), ("7", "abc"));
        assert_eq!(page.items.unwrap()[0].metadata.generation, 2);
        let last: Page<Answer> = serde_json::from_str(r#"{"metadata":{},"items":[]}"#).unwrap();
        assert!(last.metadata.token.is_empty());
    }

    #[tokio::test]
    async fn the_first_error_ends_it() {
        let odd = |number: u32| async move {
            if number % 2 == 1 { Ok(number) } else { Err(crate::Error::Other(format!("{number} is even"))) }
        };
        assert_eq!(for_each(vec![1, 3, 5], odd).await.unwrap().len(), 3);
        assert_eq!(for_each(vec![1, 2], odd).await.unwrap_err().to_string(), "2 is even");
    }
}
