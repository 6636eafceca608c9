//! What of memcached's arguments decides whether it can take up the memory it left behind.

use std::collections::BTreeMap;

/// Options with a value that memory was laid out by, with their long names.
const LAYOUT: [(char, &str); 4] =
    [('m', "memory-limit"), ('f', "slab-growth-factor"), ('n', "slab-min-size"), ('I', "max-item-size")];

/// The option without a value that memory was laid out by: `-C`.
const NO_CAS: (char, &str) = ('C', "disable-cas");

/// The extended options that memory was laid out by.
const EXTENDED: [&str; 4] = ["slab_chunk_max", "slab_sizes", "slab_reassign", "no_slab_reassign"];

/// In what two lists of arguments lay memory out differently: with another one memcached starts empty.
pub fn layout_changes(from: &[String], to: &[String]) -> Vec<String> {
    let (from, to) = (layout(from), layout(to));
    let keys = from.keys().chain(to.keys().filter(|key| !from.contains_key(*key)));
    keys.filter(|key| from.get(*key) != to.get(*key)).cloned().collect()
}

/// Whether memory outlives memcached.
pub fn keeps_memory(arguments: &[String]) -> bool {
    arguments.iter().any(|word| {
        word == "--memory-file"
            || word.starts_with("--memory-file=")
            || (word.starts_with("-e") && !word.starts_with("--"))
    })
}

/// The options that memory is laid out by, as they are in force: the last one of a kind counts.
fn layout(arguments: &[String]) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut words = arguments.iter().map(String::as_str);
    while let Some(word) = words.next() {
        for (short, long) in LAYOUT {
            if let Some(value) = value(word, short, long, &mut words) {
                found.insert(format!("-{short}"), value.to_owned());
            }
        }
        if word == format!("-{}", NO_CAS.0) || word == format!("--{}", NO_CAS.1) {
            found.insert(format!("-{}", NO_CAS.0), String::new());
        }
        if let Some(options) = value(word, 'o', "extended", &mut words) {
            for option in options.split(',') {
                let (name, value) = option.split_once('=').unwrap_or((option, ""));
                if EXTENDED.contains(&name) {
                    found.insert(format!("-o {name}"), value.to_owned());
                }
            }
        }
    }
    found
}

/// The value of an option if this word is that option: attached, or the next word.
fn value<'a>(word: &'a str, short: char, long: &str, rest: &mut impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if let Some(name) = word.strip_prefix("--") {
        return match name.strip_prefix(long)? {
            "" => rest.next(),
            attached => attached.strip_prefix('='),
        };
    }
    match word.strip_prefix('-')?.strip_prefix(short)? {
        "" => rest.next(),
        attached => Some(attached),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(ToOwned::to_owned).collect()
    }

    fn changes(from: &str, to: &str) -> Vec<String> {
        layout_changes(&words(from), &words(to))
    }

    #[test]
    fn what_memory_is_laid_out_by_starts_empty() {
        assert_eq!(changes("-m 64 -c 10", "-m 128 -c 10"), ["-m"]);
        assert_eq!(changes("-m 64 -I 1m", "-m 64 -I 2m"), ["-I"]);
        assert_eq!(changes("-m 64", "-m 64 -f 1.5 -n 96 -C"), ["-C", "-f", "-n"]);
        assert_eq!(changes("-m 64", "-m 64 -o modern,no_slab_reassign"), ["-o no_slab_reassign"]);
    }

    #[test]
    fn everything_else_keeps_it() {
        assert_eq!(changes("-m 64 -c 10 -t 4", "-m 64 -c 1024 -t 8 -vv -M -R 50 -D : -o hashpower=20"), [""; 0]);
        assert_eq!(changes("-m 64 -o modern", "-m 64 -o no_modern"), [""; 0]);
    }

    #[test]
    fn spellings_do_not_matter_and_the_last_one_counts() {
        assert_eq!(changes("-m 64", "-m64"), [""; 0]);
        assert_eq!(changes("-m 64", "--memory-limit=64"), [""; 0]);
        assert_eq!(changes("-m 64", "-m 128 --memory-limit 64"), [""; 0]);
        assert_eq!(changes("-o slab_chunk_max=512k", "--extended=slab_chunk_max=1m"), ["-o slab_chunk_max"]);
    }

    #[test]
    fn memory_is_kept_with_a_file_for_it() {
        assert!(keeps_memory(&words("-m 64 -e /memory/cache")) && keeps_memory(&words("--memory-file=/memory/cache")));
        assert!(!keeps_memory(&words("-m 64 --extended modern")));
    }
}
