//! What the operator may do in one namespace: the same as in all of them, as a Role, and hold a Lease there.

use crate::NOTICE;
use crate::error::Result;
use crate::manifest::{self, Manifest};
use crate::output::Output;
use crate::repository::Repository;

pub const NAME: &str = "memcached-operator";
pub const LEADER: &str = "memcached-operator-leader";
pub const SCOPE: &str = "memcached-operator-scope";

pub fn outputs(repository: &Repository) -> Result<Vec<Output>> {
    let caches = rules(repository, "cluster", "ClusterRole", NAME)?;
    // One Lease in each namespace that is watched by name.
    let leader = rules(repository, "base", "Role", LEADER)?;
    let content = format!(
        "{NOTICE}# What the operator may do in one namespace: apply it with --namespace to each one it watches, instead
# of cluster.yaml.
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: memcached-operator
rules:
{caches}
{leader}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: memcached-operator
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: memcached-operator
subjects:
- kind: ServiceAccount
  name: memcached-operator
  namespace: memcached-operator-system
"
    );
    Ok(vec![Output::new("config/rbac/namespaced/role.yaml", content)])
}

/// The rules of a role, as they are written.
pub fn rules(repository: &Repository, file: &str, kind: &str, name: &str) -> Result<String> {
    role(repository, file, kind, name)?.last_section("rules").map(str::to_owned)
}

/// A role below config/rbac.
pub fn role(repository: &Repository, file: &str, kind: &str, name: &str) -> Result<Manifest> {
    let manifests = manifest::read(repository, &format!("config/rbac/{file}.yaml"))?;
    manifest::find(&manifests, kind, name).cloned()
}
