//! Item sizes that memcached would not start with.

use memcached_api::memcached::rule;
use memcached_api::memcached::spec::MemcachedSpec;
use operator_model::violation::Violation;

const FIELD: &str = "spec.memcached.maxItemSize";
const MEBIBYTE: u64 = 1 << 20;
/// memcached's own `slab_chunk_max`, in kibibytes.
const CHUNK: u64 = 512;
/// The write buffer of the disk tier (`ext_wbuf_size`), which every item must fit into.
const WRITE_BUFFER: u64 = 4 << 20;

pub fn check(spec: &MemcachedSpec) -> Option<Violation> {
    let server = spec.memcached.clone().unwrap_or_default();
    let refuse = |message: String| Some(Violation::new(FIELD, message));
    let Some(size) = bytes(&server.max_item_size) else {
        return refuse(format!("{:?} is no size: give a number with the unit k or m", server.max_item_size));
    };
    let Some(chunk) = chunk_kibibytes(&server.extra_args) else {
        let message = "slab_chunk_max is a number of kibibytes that divides 1024, without a unit: 512, 256, 16";
        return Some(Violation::new("spec.memcached.extraArgs", message));
    };
    // Items are made of whole slab chunks; another size ends the server at start.
    if size == 0 || !size.is_multiple_of(chunk << 10) {
        return match chunk {
            CHUNK => Some(Violation::of(&rule::ITEM_SIZE, &[])),
            _ => refuse(format!("memcached would not start: give a multiple of {chunk}k, which is slab_chunk_max")),
        };
    }
    if spec.extstore.is_some() && size > WRITE_BUFFER {
        return Some(Violation::of(&rule::ITEM_ON_DISK, &[]));
    }
    let memory = i64::from(server.max_memory_mb);
    if size > u64::try_from(memory << 19).unwrap_or(0) {
        return Some(Violation::of(&rule::ITEM_IN_MEMORY, &[memory, memory * 512]));
    }
    (size > 1 << 30).then(|| Violation::of(&rule::ITEM_AT_MOST, &[]))
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

/// The chunk size in force, the last one given; none if memcached would not take it.
fn chunk_kibibytes(arguments: &[String]) -> Option<u64> {
    let mut given = arguments.iter().flat_map(|argument| argument.split(',')).filter_map(|option| {
        let (name, value) = option.split_once('=')?;
        name.ends_with("slab_chunk_max").then_some(value).or_else(|| value.strip_prefix("slab_chunk_max="))
    });
    let Some(last) = given.next_back() else {
        return Some(CHUNK);
    };
    last.parse().ok().filter(|chunk: &u64| (1..=1024).contains(chunk) && MEBIBYTE.is_multiple_of(chunk << 10))
}

#[cfg(test)]
mod tests {
    use memcached_api::memcached::spec::Server;

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
        for arguments in
            [&["-o", "slab_chunk_max=16"][..], &["-omodern,slab_chunk_max=16"], &["--ext=slab_chunk_max=16"]]
        {
            assert_eq!(refusal("32k", 64, arguments), None, "{arguments:?}");
        }
    }

    #[test]
    fn sizes_that_end_memcached_are_refused_with_a_remedy() {
        for (size, memory) in [("0k", 64), ("0m", 64), ("17k", 64), ("700k", 64), ("33m", 64), ("1025m", 4096)] {
            assert!(refusal(size, memory, &[]).is_some(), "{size}");
        }
        assert!(refusal("33m", 64, &[]).unwrap().contains("at most 32768k"));
    }

    // Each was tried with memcached 1.6.45, and ends it.
    #[test]
    fn chunks_that_end_memcached_are_refused() {
        for (size, chunk) in [
            ("32k", "slab_chunk_max=16k"),
            ("32k", "slab_chunk_max=16384"),
            ("17k", "slab_chunk_max=16"),
            ("32k", "slab_chunk_max=64"),
            ("60k", "slab_chunk_max=15"),
            ("2m", "slab_chunk_max=0"),
            ("32k", "slab_chunk_max=16,slab_chunk_max=512"),
        ] {
            assert!(refusal(size, 64, &["-o", chunk]).is_some(), "{size} {chunk}");
        }
    }
}
