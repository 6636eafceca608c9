//! Several releases of the operator: side by side where they share no namespace, one after the other where they do.
//! Each runs under a user of its own with exactly the shipped RBAC, so that the audit log tells who wrote what.

use std::process::Command;

use serde_json::json;
use testbed::audit::Mark;
use testbed::{User, wait};

use crate::harness::{Arena, DEADLINE, Operator, Place, manifest};
use crate::program::{eventually, free_port, get};

/// A release that runs.
struct Release {
    operator: Operator,
    user: &'static str,
    home: String,
    health: u16,
    metrics: u16,
}

fn apply(arena: &Arena, text: &str, namespace: &str) {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    let path = file.path().to_str().unwrap();
    let apply = ["apply", "--server-side", "--force-conflicts", "--namespace", namespace, "--filename", path];
    arena.cluster.kubectl(&apply).unwrap();
}

fn bind(arena: &Arena, kind: &str, user: &str, role: &str, rest: &[&str]) {
    let (name, subject) = (format!("{user}-{}", role.split('=').next_back().unwrap()), format!("--user={user}"));
    let create = [&["create", kind, &name, &subject, role], rest].concat();
    // One release may be started twice.
    arena.cluster.kubectl(&create).ok();
}

impl Release {
    /// Starts a release in its own namespace that watches these namespaces, or all.
    fn start(arena: &Arena, user: &'static str, home: &Place<'_>, watches: &[&Place<'_>]) -> Self {
        let home = home.name();
        let base = std::fs::read_to_string(manifest("config/rbac/base.yaml")).unwrap();
        let role = std::fs::read_to_string(manifest("config/rbac/namespaced/role.yaml")).unwrap();
        let names: Vec<&str> = watches.iter().map(|place| place.name()).collect();
        for name in &names {
            apply(arena, &role, name);
            bind(arena, "rolebinding", user, "--role=memcached-operator", &["--namespace", name]);
        }
        if names.is_empty() {
            apply(arena, &base.replace("memcached-operator-system", home), home);
            bind(arena, "rolebinding", user, "--role=memcached-operator-leader", &["--namespace", home]);
            bind(arena, "clusterrolebinding", user, "--clusterrole=memcached-operator", &[]);
            bind(arena, "clusterrolebinding", user, "--clusterrole=memcached-operator-scope", &[]);
        }
        let (health, metrics) = (free_port(), free_port());
        let arguments = [
            format!("--leader-election-namespace={home}"),
            format!("--release-name={user}"),
            format!("--watch-namespaces={}", names.join(",")),
            format!("--health-probe-bind-address=127.0.0.1:{health}"),
            format!("--metrics-bind-address=127.0.0.1:{metrics}"),
            "--metrics-secure=false".to_owned(),
            "--resync-interval=2s".to_owned(),
        ];
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let program = env!("CARGO_BIN_EXE_memcached-operator");
        let operator = Operator::start_as(&User::new(user), program, &arena.cluster, &arguments);
        Self { operator, user, home: home.to_owned(), health, metrics }
    }

    async fn ready(&self) {
        eventually(self.health, "/readyz", "readiness", |answer| answer.starts_with("HTTP/1.1 200")).await;
    }

    /// Waits until it says in all three places for whom it waits, and about which namespace.
    async fn waits_for(&self, other: &Self, namespace: &str) {
        let release = format!("{}/{}", other.home, other.user);
        let words = [format!("scope: waiting for {release} ("), format!("holds the Lease in namespace {namespace}")];
        let is_told = |answer: &str| answer.starts_with("HTTP/1.1 503") && words.iter().all(|w| answer.contains(w));
        eventually(self.health, "/readyz", "readiness to say for whom it waits", is_told).await;
        let series = format!("scope_waiting{{lease_namespace=\"{namespace}\",release=\"{release}\",holder=\"");
        let shown = eventually(self.metrics, "/metrics", "the metric", |answer| answer.contains(&series)).await;
        assert!(shown.contains("memcached_operator_leader 0"), "{shown}");
        let log = self.operator.log();
        assert!(log.contains(&format!("waiting for {release} (")), "{log}");
        assert!(get(other.health, "/readyz").unwrap().starts_with("HTTP/1.1 200"), "the first stays ready");
    }

    /// Ends in an orderly way.
    async fn terminate(mut self) {
        assert!(Command::new("kill").arg(self.operator.pid().to_string()).status().unwrap().success());
        wait::until("the operator to end", DEADLINE, async || {
            if self.operator.is_running() { Err(self.operator.log()) } else { Ok(()) }
        })
        .await
        .unwrap();
    }
}

/// Who wrote in a namespace, in turns; Leases and Events do not count.
fn turns(arena: &Arena, mark: Mark, users: &[&str], namespace: &str) -> Vec<String> {
    let requests = arena.cluster.audit().requests_since(mark).unwrap();
    let writes = requests.into_iter().filter(|r| r.is_write() && r.namespace == namespace);
    let writes = writes.filter(|r| !["leases", "events"].contains(&r.resource.as_str()));
    let mut users_that_wrote: Vec<String> =
        writes.map(|r| r.user).filter(|user| users.contains(&user.as_str())).collect();
    users_that_wrote.dedup();
    users_that_wrote
}

async fn works(place: &Place<'_>, name: &str) {
    place.declare(name, json!({"replicas": 1})).await;
    place.ready(name).await;
}

#[tokio::test]
async fn two_releases_of_one_namespace_work_side_by_side_where_they_watch_different_ones() {
    let arena = Arena::without_operator().await;
    let (home, one, two) = (arena.namespace("home").await, arena.namespace("one").await, arena.namespace("two").await);
    let mark = arena.cluster.audit().mark().unwrap();
    let first = Release::start(&arena, "first", &home, &[&one]);
    let second = Release::start(&arena, "second", &home, &[&two]);
    works(&one, "sessions").await;
    works(&two, "sessions").await;
    first.ready().await;
    second.ready().await;
    let users = ["first", "second"];
    assert_eq!(turns(&arena, mark, &users, one.name()), ["first"]);
    assert_eq!(turns(&arena, mark, &users, two.name()), ["second"]);
}

#[tokio::test]
async fn the_second_release_in_a_namespace_waits_and_says_for_whom() {
    let arena = Arena::without_operator().await;
    let (north, south) = (arena.namespace("north").await, arena.namespace("south").await);
    let (one, shared, two) =
        (arena.namespace("one").await, arena.namespace("shared").await, arena.namespace("two").await);
    let mark = arena.cluster.audit().mark().unwrap();
    let first = Release::start(&arena, "first", &north, &[&one, &shared]);
    works(&shared, "before").await;
    first.ready().await;
    let second = Release::start(&arena, "second", &south, &[&shared, &two]);
    second.waits_for(&first, shared.name()).await;
    // Something to do for whoever thinks it is theirs.
    two.declare("later", json!({"replicas": 1})).await;
    works(&shared, "meanwhile").await;
    let users = ["first", "second"];
    assert_eq!(turns(&arena, mark, &users, shared.name()), ["first"]);

    first.terminate().await;
    second.ready().await;
    works(&shared, "after").await;
    two.ready("later").await;
    assert_eq!(turns(&arena, mark, &users, shared.name()), ["first", "second"]);
    assert_eq!(turns(&arena, mark, &users, two.name()), ["second"]);
}

#[tokio::test]
async fn a_release_for_all_namespaces_and_one_for_some_take_turns() {
    let arena = Arena::without_operator().await;
    let (north, south, shop) =
        (arena.namespace("north").await, arena.namespace("south").await, arena.namespace("shop").await);
    let mark = arena.cluster.audit().mark().unwrap();
    let everywhere = Release::start(&arena, "everywhere", &north, &[]);
    works(&shop, "first").await;
    everywhere.ready().await;
    let tenant = Release::start(&arena, "tenant", &south, &[&shop]);
    tenant.waits_for(&everywhere, shop.name()).await;
    works(&shop, "second").await;
    let users = ["everywhere", "tenant"];
    assert_eq!(turns(&arena, mark, &users, shop.name()), ["everywhere"]);
    let may = |what: &[&str]| arena.cluster.kubectl(&[&["auth", "can-i", "--as=everywhere"], what].concat()).is_ok();
    assert!(may(&["update", "leases/memcached-operator", "--namespace", shop.name()]));
    assert!(!may(&["update", "leases/another", "--namespace", shop.name()]), "only Leases of its own name");
    assert!(!may(&["list", "leases", "--all-namespaces"]), "only Leases of its own name");

    // Killed, so that its Leases expire.
    drop(everywhere);
    tenant.ready().await;
    works(&shop, "third").await;
    let everywhere = Release::start(&arena, "everywhere", &north, &[]);
    everywhere.waits_for(&tenant, shop.name()).await;
    works(&shop, "fourth").await;
    assert_eq!(turns(&arena, mark, &users, shop.name()), ["everywhere", "tenant"]);

    tenant.terminate().await;
    everywhere.ready().await;
    works(&shop, "fifth").await;
    assert_eq!(turns(&arena, mark, &users, shop.name()), ["everywhere", "tenant", "everywhere"]);
}

#[tokio::test]
async fn of_two_releases_for_all_namespaces_one_works_and_the_other_waits() {
    let arena = Arena::without_operator().await;
    let (north, south, shop) =
        (arena.namespace("north").await, arena.namespace("south").await, arena.namespace("shop").await);
    let mark = arena.cluster.audit().mark().unwrap();
    // At once: either may win.
    let one = Release::start(&arena, "one", &north, &[]);
    let two = Release::start(&arena, "two", &south, &[]);
    works(&shop, "first").await;
    let users = ["one", "two"];
    let winner = turns(&arena, mark, &users, shop.name());
    assert_eq!(winner.len(), 1, "{winner:?}");
    let (first, second) = if winner == ["one"] { (one, two) } else { (two, one) };
    first.ready().await;
    let lease = first.home.clone();
    second.waits_for(&first, &lease).await;
    works(&shop, "second").await;
    assert_eq!(turns(&arena, mark, &users, shop.name()), winner);

    let expected = [first.user, second.user];
    first.terminate().await;
    second.ready().await;
    works(&shop, "third").await;
    assert_eq!(turns(&arena, mark, &users, shop.name()), expected);
}
