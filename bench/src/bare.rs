//! The limit: the same children and statuses, written without reading, watching or deciding anything.
//! No operator can be faster against the same API server with as many requests under way.

use crate::error::Result;
use crate::object::{self, Target};
use crate::request::{Kind, Requests, for_each};

/// Creates the children of every object and writes its status.
pub async fn create(requests: Requests, targets: Vec<Target>, has_secrets: bool) -> Result<()> {
    let write = |target: Target| {
        let requests = requests.clone();
        async move {
            for (kind, child) in object::children(&target, has_secrets) {
                requests.create(&kind.within(&target.namespace), &child).await?;
            }
            write_status(&requests, &target, 1).await
        }
    };
    for_each(targets, write).await.map(drop)
}

/// Changes every object, as its user would, and then what it has become.
pub async fn change(user: Requests, requests: Requests, targets: Vec<Target>) -> Result<()> {
    let write = |target: Target| {
        let (user, requests) = (user.clone(), requests.clone());
        async move {
            let declared = user.merge(&target.path(), &object::change()).await?;
            let (revision, deployment) = object::changed_children(&target);
            requests.create(&Kind::ControllerRevision.within(&target.namespace), &revision).await?;
            requests.merge(&target.path_of(Kind::Deployment), &deployment).await?;
            write_status(&requests, &target, declared.generation).await
        }
    };
    for_each(targets, write).await.map(drop)
}

async fn write_status(requests: &Requests, target: &Target, generation: i64) -> Result<()> {
    requests.merge(&format!("{}/status", target.path()), &object::status(target, generation)).await.map(drop)
}
