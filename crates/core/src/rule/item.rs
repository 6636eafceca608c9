//! Item sizes that memcached would not start with.

use memcached_api::spec::MemcachedSpec;

use super::Violation;

const FIELD: &str = "spec.memcached.maxItemSize";
const HALF_MEBIBYTE: u64 = 512 << 10;

pub fn check(spec: &MemcachedSpec) -> Option<Violation> {
    let server = spec.memcached.clone().unwrap_or_default();
    let refuse = |message: String| Some(Violation::new(FIELD, message));
    let Some(size) = bytes(&server.max_item_size) else {
        return refuse(format!("{:?} is no size: give a number with the unit k or m", server.max_item_size));
    };
    let memory = u64::try_from(server.max_memory_mb).unwrap_or(0) << 20;
    // memcached's slab chunks are 512k, and an item size that is no multiple of them ends the server at start.
    if size == 0 || (!sets_chunk_size(&server.extra_args) && size % HALF_MEBIBYTE != 0) {
        return refuse(format!(
            "memcached does not start with {:?}: give a multiple of 512k, for example 512k, 1m or 1536k",
            server.max_item_size
        ));
    }
    if size > memory / 2 {
        return refuse(format!(
            "{} is more than half of maxMemoryMB {}: memcached does not start; at most {}k",
            server.max_item_size,
            server.max_memory_mb,
            memory / 2 / 1024
        ));
    }
    if size > 1 << 30 {
        return refuse(format!("{} is more than memcached allows: at most 1024m", server.max_item_size));
    }
    None
}

/// A size as memcached reads it.
fn bytes(text: &str) -> Option<u64> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let number: u64 = number.parse().ok()?;
    match unit {
        "k" => number.checked_mul(1 << 10),
        "m" => number.checked_mul(1 << 20),
        _ => None,
    }
}

fn sets_chunk_size(arguments: &[String]) -> bool {
    arguments.iter().any(|argument| argument.contains("slab_chunk_max"))
}

#[cfg(test)]
mod tests {
    use memcached_api::spec::Server;

    use super::*;

    fn refusal(size: &str, memory: i32, extra_args: &[&str]) -> Option<String> {
        let server = Server {
            max_item_size: size.into(),
            max_memory_mb: memory,
            extra_args: extra_args.iter().map(ToString::to_string).collect(),
            ..Server::default()
        };
        let spec = MemcachedSpec { memcached: Some(server), ..MemcachedSpec::default() };
        check(&spec).map(|violation| violation.message)
    }

    #[test]
    fn sizes_that_memcached_starts_with_pass() {
        for (size, memory) in [("512k", 64), ("1m", 64), ("1536k", 64), ("32m", 64), ("1024m", 4096)] {
            assert_eq!(refusal(size, memory, &[]), None, "{size}");
        }
        assert_eq!(refusal("17k", 64, &["-o", "slab_chunk_max=16k"]), None);
    }

    #[test]
    fn sizes_that_end_memcached_are_refused_with_a_remedy() {
        for (size, memory) in [("0k", 64), ("0m", 64), ("17k", 64), ("700k", 64), ("33m", 64), ("1025m", 4096)] {
            assert!(refusal(size, memory, &[]).is_some(), "{size}");
        }
        assert!(refusal("33m", 64, &[]).unwrap().contains("at most 32768k"));
    }
}
