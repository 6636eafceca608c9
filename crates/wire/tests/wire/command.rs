//! Every command, answered by the real server.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use memcached_wire::{ErrorClass, Expiry, Limits, Meta, MetaKey, MetaStatus, Report};
use testbed::{Server, wait};

use super::{connect, endpoint, key};

#[tokio::test]
async fn the_version_is_the_servers() {
    let server = Server::start(&[]).await.unwrap();
    assert_eq!(connect(&server).await.version().await.unwrap(), testbed::artifact::MEMCACHED);
}

#[tokio::test]
async fn what_is_set_can_be_got_touched_and_deleted() {
    let server = Server::start(&[]).await.unwrap();
    let mut connection = connect(&server).await;
    let greeting = key("greeting");
    assert_eq!(connection.get(&greeting).await.unwrap(), None);
    connection.set(&greeting, b"hello\r\nEND\r\n", 42, Expiry::NEVER).await.unwrap();
    let value = connection.get(&greeting).await.unwrap().unwrap();
    assert_eq!((value.flags, &value.data[..]), (42, &b"hello\r\nEND\r\n"[..]));
    assert!(connection.touch(&greeting, Expiry::after(Duration::from_secs(600)).unwrap()).await.unwrap());
    assert!(connection.delete(&greeting).await.unwrap());
    assert!(!connection.delete(&greeting).await.unwrap());
    assert!(!connection.touch(&greeting, Expiry::NEVER).await.unwrap());
}

#[tokio::test]
async fn a_time_to_go_is_kept() {
    let server = Server::start(&[]).await.unwrap();
    let mut connection = connect(&server).await;
    let next_year = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() + 365 * 24 * 3600;
    connection.set(&key("dated"), b"x", 0, Expiry::at(next_year)).await.unwrap();
    connection.set(&key("over"), b"x", 0, Expiry::after(Duration::ZERO).unwrap()).await.unwrap();
    connection.set(&key("stays"), b"x", 0, Expiry::NEVER).await.unwrap();
    let left = connection.meta(&Meta::get(key("dated")).flag('t')).await.unwrap();
    let left: u64 = left.flag('t').unwrap().parse().unwrap();
    assert!(left > 364 * 24 * 3600, "{left}");
    assert_eq!(connection.get(&key("over")).await.unwrap(), None);
    assert_eq!(connection.meta(&Meta::get(key("stays")).flag('t')).await.unwrap().flag('t'), Some("-1"));
}

#[tokio::test]
async fn any_bytes_come_back_as_they_went() {
    let server = Server::start(&[]).await.unwrap();
    let mut connection = connect(&server).await;
    let every_byte: Vec<u8> = (0..=u8::MAX).collect();
    for size in [0, 1, 255, 4096, 16 << 10, 100_000, 900_000] {
        let value: Vec<u8> = every_byte.iter().copied().cycle().take(size).collect();
        connection.set(&key("any"), &value, 0, Expiry::NEVER).await.unwrap();
        assert!(connection.get(&key("any")).await.unwrap().unwrap().data == value, "{size} bytes");
    }
}

#[tokio::test]
async fn meta_commands_take_any_key_and_give_flags() {
    let server = Server::start(&[]).await.unwrap();
    let mut connection = connect(&server).await;
    for name in [&b"plain"[..], b"with space", b"\0\x01\r\n", &[0xff; 186]] {
        let name = MetaKey::new(name).unwrap();
        let get = Meta::get(name.clone()).flag('v').flag('f').flag('s');
        assert_eq!(connection.meta(&get).await.unwrap().status, MetaStatus::Miss);
        let add = Meta::set(name.clone(), "hello").with('F', 7).with('M', 'E');
        assert_eq!(connection.meta(&add).await.unwrap().status, MetaStatus::Done);
        assert_eq!(connection.meta(&add).await.unwrap().status, MetaStatus::NotStored);
        let got = connection.meta(&get).await.unwrap();
        assert_eq!((got.status, got.flag('f'), got.flag('s')), (MetaStatus::Value, Some("7"), Some("5")));
        assert_eq!(got.data.unwrap(), "hello");
        let stale = Meta::set(name.clone(), "other").with('C', 1);
        assert_eq!(connection.meta(&stale).await.unwrap().status, MetaStatus::Exists);
        assert_eq!(connection.meta(&Meta::delete(name.clone())).await.unwrap().status, MetaStatus::Done);
        assert_eq!(connection.meta(&Meta::delete(name)).await.unwrap().status, MetaStatus::NotFound);
    }
    connection.noop().await.unwrap();
}

#[tokio::test]
async fn a_key_can_be_looked_at() {
    let server = Server::start(&[]).await.unwrap();
    let mut connection = connect(&server).await;
    assert_eq!(connection.debug(&key("k")).await.unwrap(), None);
    connection.set(&key("k"), b"x", 0, Expiry::NEVER).await.unwrap();
    let seen = connection.debug(&key("k")).await.unwrap().unwrap();
    assert_eq!((seen.get("exp"), seen.get("fetch")), (Some("-1"), Some("no")));
}

#[tokio::test]
async fn a_batch_is_answered_in_order_and_a_refusal_stops_nothing() {
    let server = Server::start(&["-m", "64"]).await.unwrap();
    let wide = Limits { reply: 16 << 20, ..Limits::default() };
    let mut connection = endpoint(server.address()).with_limits(wide).connect().await.unwrap();
    let mut commands: Vec<Meta> =
        (0..500).map(|n| Meta::set(key(&format!("k{n}")), format!("{n}").repeat(100))).collect();
    commands.insert(250, Meta::set(key("large"), vec![0; 2 << 20]));
    let replies = connection.batch(&commands).await.unwrap();
    assert_eq!(replies.len(), 501);
    let refused: Vec<usize> = (0..501).filter(|&n| replies[n].is_err()).collect();
    assert_eq!(refused, [250], "{:?}", replies[250]);
    // The answers are far larger than what sockets hold: reading and writing go on together.
    let gets: Vec<Meta> = (0..500).cycle().take(20_000).map(|n| Meta::get(key(&format!("k{n}"))).flag('v')).collect();
    for (n, reply) in connection.batch(&gets).await.unwrap().into_iter().enumerate() {
        assert_eq!(reply.unwrap().data.unwrap(), format!("{}", n % 500).repeat(100));
    }
    assert!(connection.batch(&[]).await.unwrap().is_empty());
}

#[tokio::test]
async fn every_report_has_what_it_is_known_for() {
    let server = Server::start(&["-m", "32", "-c", "200"]).await.unwrap();
    let mut connection = connect(&server).await;
    connection.set(&key("k"), b"x", 0, Expiry::NEVER).await.unwrap();
    let general = connection.stats(Report::General).await.unwrap();
    assert_eq!((general.number("curr_items"), general.number("limit_maxbytes")), (Some(1), Some(32 << 20)));
    assert_eq!(connection.stats(Report::Settings).await.unwrap().get("maxconns"), Some("200"));
    assert_eq!(connection.stats(Report::Items).await.unwrap().get("items:1:number"), Some("1"));
    assert_eq!(connection.stats(Report::Slabs).await.unwrap().get("1:used_chunks"), Some("1"));
    let connections = connection.stats(Report::Connections).await.unwrap();
    assert!(connections.iter().any(|(name, value)| name.ends_with(":state") && value == "conn_listening"));
}

#[tokio::test]
async fn all_keys_are_listed_whatever_bytes_they_have() {
    let server = Server::start(&[]).await.unwrap();
    let mut connection = connect(&server).await;
    let mut names: Vec<Vec<u8>> = (0..2000).map(|n| format!("key-{n}").into_bytes()).collect();
    names.extend([b"with space".to_vec(), vec![0, 1, b'%', b'\n'], "ключ".as_bytes().to_vec()]);
    names.sort();
    let sets: Vec<Meta> =
        names.iter().map(|name| Meta::set(MetaKey::new(name).unwrap(), "x").with('T', 3600)).collect();
    connection.batch(&sets).await.unwrap();
    // The crawler passes over what a client has just in hand.
    wait::until("all keys", 300, async || {
        let mut listing = connection.metadump().await.map_err(|e| e.to_string())?;
        let mut seen = Vec::new();
        while let Some(item) = listing.next().await.map_err(|e| e.to_string())? {
            assert!(item.expires.is_some() && item.size > 40 && item.class > 0, "{item:?}");
            seen.push(item.key);
        }
        assert_eq!(listing.next().await.unwrap(), None, "after the end there is nothing");
        seen.sort();
        if seen == names { Ok(()) } else { Err(format!("{} keys", seen.len())) }
    })
    .await
    .unwrap();
    connection.version().await.expect("the connection goes on");
}

#[tokio::test]
async fn a_listing_given_up_closes_the_connection() {
    let server = Server::start(&[]).await.unwrap();
    let mut connection = connect(&server).await;
    for n in 0..10 {
        connection.set(&key(&format!("k{n}")), b"x", 0, Expiry::NEVER).await.unwrap();
    }
    connection.metadump().await.unwrap().next().await.unwrap();
    assert!(!connection.is_usable());
    assert_eq!(connection.version().await.unwrap_err().class(), ErrorClass::Closed);
}

#[tokio::test]
async fn the_server_is_changed_while_it_runs() {
    let server = Server::start(&["-m", "64"]).await.unwrap();
    let mut connection = connect(&server).await;
    connection.cache_memlimit(128).await.unwrap();
    assert_eq!(connection.stats(Report::General).await.unwrap().number("limit_maxbytes"), Some(128 << 20));
    let error = connection.cache_memlimit(1).await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Answered, "{error}");
    connection.verbosity(2).await.unwrap();
    assert_eq!(connection.stats(Report::Settings).await.unwrap().get("verbosity"), Some("2"));
    connection.set(&key("k"), b"x", 0, Expiry::NEVER).await.unwrap();
    connection.flush_all().await.unwrap();
    assert_eq!(connection.get(&key("k")).await.unwrap(), None);
    let error = connection.refresh_certs().await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Answered, "{error}");
    connection.version().await.expect("a no is no reason to part");
}

#[tokio::test]
async fn a_value_larger_than_the_server_takes_is_refused_and_the_connection_goes_on() {
    let server = Server::start(&["-m", "64"]).await.unwrap();
    let mut connection = connect(&server).await;
    let error = connection.set(&key("k"), &vec![0; 2 << 20], 0, Expiry::NEVER).await.unwrap_err();
    assert!(error.to_string().contains("too large"), "{error}");
    connection.version().await.unwrap();
}

#[tokio::test]
async fn a_value_larger_than_we_take_is_an_error_and_not_memory() {
    let server = Server::start(&[]).await.unwrap();
    connect(&server).await.set(&key("k"), &[0; 5000], 0, Expiry::NEVER).await.unwrap();
    let narrow = Limits { value: 4999, ..Limits::default() };
    let mut connection = endpoint(server.address()).with_limits(narrow).connect().await.unwrap();
    assert_eq!(connection.get(&key("k")).await.unwrap_err().class(), ErrorClass::Protocol);
}

#[tokio::test]
async fn counters_tell_what_was_done() {
    let server = Server::start(&[]).await.unwrap();
    let mut connection = connect(&server).await;
    connection.set(&key("k"), b"x", 0, Expiry::NEVER).await.unwrap();
    connection.get(&key("k")).await.unwrap();
    connection.get(&key("other")).await.unwrap();
    let stats = connection.stats(Report::General).await.unwrap();
    let counted: BTreeMap<&str, &str> =
        stats.iter().filter(|(name, _)| ["cmd_set", "get_hits", "get_misses"].contains(name)).collect();
    assert_eq!(counted, [("cmd_set", "1"), ("get_hits", "1"), ("get_misses", "1")].into());
}
