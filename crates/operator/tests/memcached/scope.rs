//! Several releases of the operator: side by side where they share no namespace, one after the other where they do.
//! Each runs under a ServiceAccount of its own with exactly the shipped RBAC: the audit log tells who wrote what.

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

fn bind(arena: &Arena, kind: &str, (home, user): (&str, &str), role: &str, rest: &[&str]) {
    let name = format!("{home}-{user}-{}", role.split('=').next_back().unwrap());
    let subject = format!("--serviceaccount={home}:{user}");
    let create = [&["create", kind, &name, &subject, role], rest].concat();
    // One release may be started twice.
    arena.cluster.kubectl(&create).ok();
}

impl Release {
    /// Starts a release in its own namespace that watches these namespaces, or all.
    fn start(arena: &Arena, user: &'static str, home: &Place<'_>, watches: &[&Place<'_>]) -> Self {
        Self::start_with(arena, user, home, watches, "2s")
    }

    /// The same, which looks at everything so often without being told.
    fn start_with(arena: &Arena, user: &'static str, home: &Place<'_>, watches: &[&Place<'_>], resync: &str) -> Self {
        let home = home.name();
        let subject = (home, user);
        let base = std::fs::read_to_string(manifest("config/rbac/base.yaml")).unwrap();
        let role = std::fs::read_to_string(manifest("config/rbac/namespaced/role.yaml")).unwrap();
        let names: Vec<&str> = watches.iter().map(|place| place.name()).collect();
        for name in &names {
            apply(arena, &role, name);
            bind(arena, "rolebinding", subject, "--role=memcached-operator", &["--namespace", name]);
        }
        if names.is_empty() {
            apply(arena, &base.replace("memcached-operator-system", home), home);
            bind(arena, "rolebinding", subject, "--role=memcached-operator-leader", &["--namespace", home]);
            bind(arena, "clusterrolebinding", subject, "--clusterrole=memcached-operator", &[]);
            bind(arena, "clusterrolebinding", subject, "--clusterrole=memcached-operator-scope", &[]);
        }
        let (health, metrics) = (free_port(), free_port());
        let arguments = [
            format!("--leader-election-namespace={home}"),
            format!("--release-name={user}"),
            format!("--service-account={user}"),
            format!("--watch-namespaces={}", names.join(",")),
            format!("--health-probe-bind-address=127.0.0.1:{health}"),
            format!("--metrics-bind-address=127.0.0.1:{metrics}"),
            "--metrics-secure=false".to_owned(),
            format!("--resync-interval={resync}"),
        ];
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let program = env!("CARGO_BIN_EXE_memcached-operator");
        let operator = Operator::start_as(&User::service_account(home, user), program, &arena.cluster, &arguments);
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

    /// Waits until it says that it works, but not in this namespace, because of whom.
    async fn does_without(&self, namespace: &str, release: &str) {
        self.ready().await;
        let series = format!("scope_unavailable{{lease_namespace=\"{namespace}\"}} 1");
        let shown = eventually(self.metrics, "/metrics", "the metric", |answer| answer.contains(&series)).await;
        assert!(shown.contains("memcached_operator_leader 1"), "{shown}");
        let log = self.operator.log();
        let words = format!("no Lease in namespace {namespace}: objects there are not managed; waiting for {release}");
        assert!(log.contains(&words), "{log}");
        assert!(get(self.health, "/readyz").unwrap().starts_with("HTTP/1.1 200"), "it is ready");
    }

    /// Waits until it does without no namespace any more.
    async fn has_all(&self) {
        eventually(self.metrics, "/metrics", "all Leases", |answer| !answer.contains("scope_unavailable{")).await;
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
    let names = writes.filter_map(|r| r.user.rsplit(':').next().map(str::to_owned));
    let mut users_that_wrote: Vec<String> = names.filter(|user| users.contains(&user.as_str())).collect();
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
async fn the_second_release_in_a_namespace_waits_there_and_says_for_whom() {
    let arena = Arena::without_operator().await;
    let (north, south) = (arena.namespace("north").await, arena.namespace("south").await);
    let (one, shared, two) =
        (arena.namespace("one").await, arena.namespace("shared").await, arena.namespace("two").await);
    let mark = arena.cluster.audit().mark().unwrap();
    let first = Release::start(&arena, "first", &north, &[&one, &shared]);
    works(&shared, "before").await;
    first.ready().await;
    let second = Release::start(&arena, "second", &south, &[&shared, &two]);
    second.does_without(shared.name(), &format!("{}/first (", first.home)).await;
    works(&two, "at-once").await;
    works(&shared, "meanwhile").await;
    let users = ["first", "second"];
    assert_eq!(turns(&arena, mark, &users, shared.name()), ["first"]);

    first.terminate().await;
    second.has_all().await;
    works(&shared, "after").await;
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
    let account = format!("--as=system:serviceaccount:{}:everywhere", north.name());
    let may = |what: &[&str]| arena.cluster.kubectl(&[&["auth", "can-i", &account], what].concat()).is_ok();
    assert!(may(&["update", "leases/memcached-operator", "--namespace", shop.name()]));
    assert!(!may(&["update", "leases/another", "--namespace", shop.name()]), "only Leases of its own name");
    assert!(!may(&["list", "leases", "--all-namespaces"]), "only Leases of its own name");

    // Killed, so that its Leases expire.
    drop(everywhere);
    tenant.ready().await;
    works(&shop, "third").await;
    let everywhere = Release::start(&arena, "everywhere", &north, &[]);
    everywhere.does_without(shop.name(), &format!("{}/tenant (", tenant.home)).await;
    works(&south, "elsewhere").await;
    works(&shop, "fourth").await;
    assert_eq!(turns(&arena, mark, &users, shop.name()), ["everywhere", "tenant"]);
    assert_eq!(turns(&arena, mark, &users, south.name()), ["everywhere"]);

    tenant.terminate().await;
    everywhere.has_all().await;
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

/// A Lease in the name of a release that says that it works in all namespaces, and for as long as there are seconds.
fn forge(arena: &Arena, namespace: &str, release: &str, holder: &str) {
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "memcached-operator", "annotations": {
            "memcached.c5c3.io/release": release,
            "memcached.c5c3.io/watch-namespaces": "*",
            "memcached.c5c3.io/phase": "Leading",
            "memcached.c5c3.io/service-account": "default",
        }},
        "spec": {
            "holderIdentity": holder, "leaseDurationSeconds": i32::MAX,
            "acquireTime": "2020-01-01T00:00:00.000000Z", "renewTime": "2030-01-01T00:00:00.000000Z",
        },
    });
    apply(arena, &lease.to_string(), namespace);
}

#[tokio::test]
async fn whoever_forges_a_lease_in_a_namespace_stops_the_work_in_that_one_only() {
    let arena = Arena::without_operator().await;
    let (north, tenant, shop) =
        (arena.namespace("north").await, arena.namespace("tenant").await, arena.namespace("shop").await);
    let mark = arena.cluster.audit().mark().unwrap();
    let victim = format!("{}/everywhere", north.name());
    forge(&arena, tenant.name(), &victim, "somebody");
    // Nothing but the return of the Lease makes it look again.
    let everywhere = Release::start_with(&arena, "everywhere", &north, &[], "1h");
    works(&shop, "first").await;
    everywhere.does_without(tenant.name(), &format!("{victim} (somebody)")).await;
    tenant.declare("sessions", json!({"replicas": 1})).await;
    // Again, while it leads.
    forge(&arena, tenant.name(), "another/release", "somebody-else");
    works(&shop, "second").await;
    assert!(tenant.get("deployment", "sessions").is_none());
    assert_eq!(turns(&arena, mark, &["everywhere"], tenant.name()), [""; 0]);
    assert!(get(everywhere.health, "/readyz").unwrap().starts_with("HTTP/1.1 200"));

    tenant.namespace.kubectl(&["delete", "lease", "memcached-operator"]).unwrap();
    everywhere.has_all().await;
    tenant.ready("sessions").await;
}
