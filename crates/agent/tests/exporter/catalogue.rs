//! Names, types and labels are the stock exporter's, and the figures are memcached's.

use std::collections::BTreeSet;

use testbed::Server;

use super::harness::{Exporter, Scrape, client, text, traffic};

/// Name, type and labels of every metric of the stock exporter.
fn stock() -> BTreeSet<(String, String, String)> {
    let family = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let mut labels: Vec<&str> = words[2].split(',').filter(|label| *label != "-").collect();
        labels.sort_unstable();
        (words[0].to_owned(), words[1].to_owned(), labels.join(","))
    };
    include_str!("stock-metrics.txt").lines().filter(|line| !line.starts_with('#')).map(family).collect()
}

#[tokio::test]
async fn names_types_and_labels_are_those_of_the_stock_exporter() {
    let dir = tempfile::tempdir().unwrap();
    let flash = format!("ext_path={}:128m", dir.path().join("flash").display());
    let cache = Server::start(&["-m", "64", "-o", &flash, "-o", "temporary_ttl=61"]).await.unwrap();
    traffic(&mut client(cache.address()).await).await;
    let of_cache = Exporter::of(cache.address(), &[]).await.eventually("figures", Scrape::is_up).await;

    let port = cache.address().port();
    let lua = dir.path().join("proxy.lua");
    let pools = format!("pools{{ main = {{ backends = {{ {{ host = \"127.0.0.1\", port = {port} }} }} }} }}\n");
    std::fs::write(&lua, pools + "routes{ default = route_direct{ child = \"main\" } }\n").unwrap();
    let config = format!("proxy_config=routelib,proxy_arg={}", text(&lua));
    let proxy = Server::start(&["-o", &config]).await.unwrap();
    let of_proxy = Exporter::of(proxy.address(), &[]).await.eventually("figures", Scrape::is_up).await;

    let ours: BTreeSet<_> = of_cache.families.union(&of_proxy.families).cloned().collect();
    let missing: Vec<_> = stock().difference(&ours).cloned().collect();
    let added: Vec<_> = ours.difference(&stock()).cloned().collect();
    assert!(missing.is_empty() && added.is_empty(), "missing: {missing:#?}\nadded: {added:#?}");
}

#[tokio::test]
async fn counters_rise_with_traffic() {
    let server = Server::start(&["-m", "32", "-c", "333"]).await.unwrap();
    let exporter = Exporter::of(server.address(), &[]).await;
    let mut connection = client(server.address()).await;
    traffic(&mut connection).await;
    let before = exporter.scrape();
    for (series, value) in [
        ("memcached_up", 1.0),
        ("memcached_current_items", 1.0),
        ("memcached_limit_bytes", f64::from(32 << 20)),
        ("memcached_max_connections", 333.0),
        ("memcached_lru_crawler_enabled", 1.0),
        ("memcached_lru_crawler_hot_max_factor", 0.2),
        ("memcached_commands_total{command=\"set\",status=\"hit\"}", 1.0),
        ("memcached_commands_total{command=\"get\",status=\"hit\"}", 2.0),
        ("memcached_commands_total{command=\"get\",status=\"miss\"}", 1.0),
        ("memcached_slab_commands_total{command=\"get\",slab=\"1\",status=\"hit\"}", 2.0),
        ("memcached_slab_current_items{slab=\"1\"}", 1.0),
        ("memcached_slab_chunks_used{slab=\"1\"}", 1.0),
        ("memcached_malloced_bytes", f64::from(1 << 20)),
    ] {
        assert!((before.value(series) - value).abs() < 1e-9, "{series} is {}", before.value(series));
    }
    let version = format!("memcached_version{{version=\"{}\"}}", testbed::artifact::MEMCACHED);
    assert!(before.value(&version) > 0.5);
    traffic(&mut connection).await;
    let after = exporter.scrape();
    for series in [
        "memcached_commands_total{command=\"set\",status=\"hit\"}",
        "memcached_commands_total{command=\"get\",status=\"hit\"}",
        "memcached_items_total",
        "memcached_read_bytes_total",
        "memcached_written_bytes_total",
    ] {
        assert!(after.value(series) > before.value(series), "{series} stays at {}", after.value(series));
    }
}

#[tokio::test]
async fn a_set_by_cas_is_not_counted_twice() {
    let server = Server::start(&[]).await.unwrap();
    let mut connection = client(server.address()).await;
    traffic(&mut connection).await;
    let key = memcached_wire::Key::new("k").unwrap();
    let stale = memcached_wire::Meta::set(key, "y").with('C', 999_999);
    connection.meta(&stale).await.unwrap();
    let scrape = Exporter::of(server.address(), &[]).await.scrape();
    assert!((scrape.value("memcached_commands_total{command=\"cas\",status=\"badval\"}") - 1.0).abs() < 1e-9);
    assert!((scrape.value("memcached_commands_total{command=\"set\",status=\"hit\"}") - 1.0).abs() < 1e-9);
}
