//! The node is a real one: containers, pod addresses, Services, names, restarts, resizes.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::net::SocketAddr;

use e2e::memcached::Connection;
use e2e::pod::{self, address, container, create_ready, memcached_container};
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use testbed::namespace::Namespace;
use testbed::oci::{Config, image_of_binaries};
use testbed::{Node, wait};

const PORT: u16 = 11211;

async fn service(namespace: &Namespace, name: &str, spec: Value) -> Service {
    let service = serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec})).unwrap();
    namespace.api::<Service>().create(&PostParams::default(), &service).await.unwrap()
}

#[tokio::test]
async fn a_pod_answers_on_its_address_on_a_service_and_by_name() {
    let node = Node::shared().await.unwrap();
    let namespace = node.namespace("sockets").await.unwrap();
    let spec = json!({"containers": [memcached_container("memcached", "memcached:1.6", PORT)]});
    let (cache, _client) =
        tokio::join!(create_ready(&namespace, "cache", spec.clone()), create_ready(&namespace, "client", spec.clone()));
    let by_pod = address(&cache.unwrap(), PORT).unwrap();
    Connection::open(&node, by_pod).await.unwrap().set("greeting", "hello").await.unwrap();

    let ports = json!([{"port": PORT}]);
    let plain = service(&namespace, "plain", json!({"selector": {"app": "cache"}, "ports": ports})).await;
    let ip = plain.spec.unwrap().cluster_ip.unwrap().parse().unwrap();
    let by_service = wait::until("the Service to lead to the pod", 60, async || {
        let mut connection = Connection::open(&node, SocketAddr::new(ip, PORT)).await.map_err(|e| e.to_string())?;
        connection.get("greeting").await.map_err(|e| e.to_string())
    });
    assert_eq!(by_service.await.unwrap().as_deref(), Some("hello"));

    let headless = json!({"clusterIP": "None", "selector": {"app": "cache"}, "ports": ports});
    service(&namespace, "headless", headless).await;
    let script = format!("printf 'get greeting\\r\\nquit\\r\\n' | nc headless.{} {PORT}", namespace.name());
    let by_name = wait::until("the name to lead to the pod", 60, async || {
        let said = namespace.kubectl(&["exec", "client", "--", "sh", "-c", &script]).map_err(|e| e.to_string())?;
        if said.contains("hello") { Ok(said) } else { Err(said) }
    });
    assert!(by_name.await.unwrap().starts_with("VALUE greeting 0 5"));
}

#[tokio::test]
async fn logs_and_exec_work() {
    let node = Node::shared().await.unwrap();
    let namespace = node.namespace("kubectl").await.unwrap();
    let mut talker = memcached_container("memcached", "memcached:1.6.38", PORT);
    talker["args"] = json!(["-vv"]);
    create_ready(&namespace, "talker", json!({"containers": [talker]})).await.unwrap();
    let log = namespace.kubectl(&["logs", "talker"]).unwrap();
    assert!(log.contains("slab class"), "{log}");
    let version = namespace.kubectl(&["exec", "talker", "--", "memcached", "-V"]).unwrap();
    assert_eq!(version.trim(), "memcached 1.6.38");
    let failed = namespace.kubectl(&["exec", "talker", "--", "sh", "-c", "exit 7"]).unwrap_err().to_string();
    assert!(failed.contains("exit code 7"), "{failed}");
}

#[tokio::test]
async fn memory_volumes_survive_a_container_restart() {
    let node = Node::shared().await.unwrap();
    let namespace = node.namespace("memory").await.unwrap();
    let mut cache = memcached_container("memcached", "memcached:1.6", PORT);
    cache["volumeMounts"] = json!([{"name": "memory", "mountPath": "/memory"}]);
    let spec = json!({
        "containers": [cache],
        "volumes": [{"name": "memory", "emptyDir": {"medium": "Memory", "sizeLimit": "8Mi"}}],
        "securityContext": {"fsGroup": 11211},
    });
    create_ready(&namespace, "cache", spec).await.unwrap();
    let exec = |script: &str| namespace.kubectl(&["exec", "cache", "--", "sh", "-c", script]);
    exec("echo precious >/memory/file").unwrap();
    // The server is the container's first process and ends when told to; the kubelet starts it again.
    exec("kill 1").unwrap();
    let restarted = |pod: &Pod| pod::is_ready(pod) && container(pod, "memcached").is_ok_and(|c| c.restart_count == 1);
    pod::wait_for(&namespace, "cache", "restarted", restarted).await.unwrap();
    assert_eq!(exec("cat /memory/file").unwrap(), "precious\n");
    let mount = exec("cat /proc/mounts").unwrap();
    assert!(mount.lines().any(|line| line.starts_with("tmpfs /memory ")), "{mount}");
}

#[tokio::test]
async fn a_resize_takes_effect_without_a_restart() {
    let node = Node::shared().await.unwrap();
    let namespace = node.namespace("resize").await.unwrap();
    let mut cache = memcached_container("memcached", "memcached:1.6", PORT);
    let memory = |size: &str| json!({"requests": {"memory": size}, "limits": {"memory": size}});
    cache["resources"] = memory("64Mi");
    let before = create_ready(&namespace, "cache", json!({"containers": [cache]})).await.unwrap();
    let mut connection = Connection::open(&node, address(&before, PORT).unwrap()).await.unwrap();
    connection.set("kept", "yes").await.unwrap();

    let patch = json!({"spec": {"containers": [{"name": "memcached", "resources": memory("96Mi")}]}});
    let pods = namespace.api::<Pod>();
    pods.patch_subresource("resize", "cache", &PatchParams::default(), &Patch::Strategic(patch)).await.unwrap();
    let limit = "cat /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/memory.max 2>/dev/null || true";
    wait::until("the kernel's limit", pod::DEADLINE, async || {
        let seen = namespace.kubectl(&["exec", "cache", "--", "sh", "-c", limit]).map_err(|e| e.to_string())?;
        if seen.trim() == (96 << 20).to_string() { Ok(()) } else { Err(seen) }
    })
    .await
    .unwrap();
    let after = pods.get("cache").await.unwrap();
    let (then, now) = (container(&before, "memcached").unwrap(), container(&after, "memcached").unwrap());
    assert_eq!((now.restart_count, &now.container_id), (0, &then.container_id));
    assert_eq!(connection.get("kept").await.unwrap().as_deref(), Some("yes"), "the same connection still answers");
}

#[tokio::test]
async fn an_image_patch_restarts_that_container_alone_and_keeps_the_address() {
    let node = Node::shared().await.unwrap();
    let namespace = node.namespace("image").await.unwrap();
    let containers = json!([
        memcached_container("memcached", "memcached:1.6.38", PORT),
        memcached_container("neighbour", "memcached:1.6.38", PORT + 1),
    ]);
    let before = create_ready(&namespace, "cache", json!({"containers": containers})).await.unwrap();
    let there = address(&before, PORT).unwrap();
    assert_eq!(Connection::open(&node, there).await.unwrap().version().await.unwrap(), "1.6.38");

    let patch = json!({"spec": {"containers": [{"name": "memcached", "image": "memcached:1.6.45"}]}});
    namespace.api::<Pod>().patch("cache", &PatchParams::default(), &Patch::Strategic(patch)).await.unwrap();
    let upgraded = |pod: &Pod| pod::is_ready(pod) && container(pod, "memcached").is_ok_and(|c| c.restart_count == 1);
    let after = pod::wait_for(&namespace, "cache", "upgraded", upgraded).await.unwrap();
    assert_eq!(address(&after, PORT).unwrap(), there);
    assert_eq!(after.metadata.uid, before.metadata.uid);
    assert_eq!(Connection::open(&node, there).await.unwrap().version().await.unwrap(), "1.6.45");
    let id = |pod: &Pod| container(pod, "neighbour").unwrap().container_id;
    assert_eq!(id(&after), id(&before), "the neighbour was left alone");
}

#[tokio::test]
async fn a_loaded_image_of_a_static_binary_runs() {
    let node = Node::shared().await.unwrap();
    let namespace = node.namespace("load").await.unwrap();
    let store =
        testbed::store::Store::new(testbed::home::Home::locate().unwrap(), testbed::progress::Progress::hidden());
    let busybox = store.ensure(&testbed::artifact::Artifact::debian("busybox-static", &["busybox"])).unwrap();
    let archive = std::env::temp_dir().join(format!("e2e-load-{}.tar", std::process::id()));
    image_of_binaries(&[busybox.join("busybox")], Config::new(&["example.org/own/tool:1"]), &archive).unwrap();
    node.load(&archive).unwrap();
    std::fs::remove_file(&archive).unwrap();
    let tool = json!({
        "name": "tool", "image": "example.org/own/tool:1", "imagePullPolicy": "Never", "args": ["sleep", "3600"],
        "securityContext": {"runAsNonRoot": true},
    });
    create_ready(&namespace, "tool", json!({"containers": [tool]})).await.unwrap();
}

#[tokio::test]
async fn nothing_leads_out_of_the_node() {
    let node = Node::shared().await.unwrap();
    let ip = std::path::Path::new("ip");
    let routes = node.inside(ip).unwrap().args(["route", "show", "table", "all"]).output().unwrap();
    let routes = String::from_utf8_lossy(&routes.stdout).into_owned();
    assert!(routes.contains("pods0"), "this is the node's own table: {routes}");
    assert!(!routes.contains("default"), "{routes}");
}
