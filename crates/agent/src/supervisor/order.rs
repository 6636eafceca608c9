//! What the operator asks for, through annotations of the pod. An order that makes no sense changes nothing, and is told.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use super::annotation;
use super::file::Fingerprint;

/// memcached's arguments, as a JSON list of words: they win over those of the container.
pub const ARGS: &str = "memcached.c5c3.io/args";
/// Another value restarts memcached in place.
pub const RESTART: &str = "memcached.c5c3.io/restart";
/// The hash of the Secrets whose files memcached should have in force.
pub const SECRET_HASH: &str = "memcached.c5c3.io/secret-hash";

/// More arguments, and longer ones, than any command line has.
const MOST_ARGUMENTS: usize = 256;
const LONGEST_ARGUMENT: usize = 4096;

/// What is asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Orders {
    /// memcached's arguments; none leaves those of the container in force.
    pub args: Option<Vec<String>>,
    /// The token of the restart that was last asked for.
    pub restart: Option<String>,
    /// The hash of the Secrets, as announced.
    pub secret_hash: Option<String>,
    /// What makes no sense.
    pub error: Option<String>,
}

impl Orders {
    /// The orders among annotations.
    pub fn of(annotations: &BTreeMap<String, String>) -> Self {
        let restart = annotations.get(RESTART).cloned();
        let secret_hash = annotations.get(SECRET_HASH).cloned();
        match annotations.get(ARGS).map(|text| arguments(text)).transpose() {
            Ok(args) => Self { args, restart, secret_hash, error: None },
            Err(why) => Self { args: None, restart, secret_hash, error: Some(format!("annotation {ARGS}: {why}")) },
        }
    }
}

fn arguments(text: &str) -> Result<Vec<String>, String> {
    let words: Vec<String> = serde_json::from_str(text).map_err(|error| format!("no JSON list of words: {error}"))?;
    if words.len() > MOST_ARGUMENTS {
        return Err(format!("{} arguments are more than {MOST_ARGUMENTS}", words.len()));
    }
    if words.iter().any(|word| word.contains('\0')) {
        return Err("an argument has a zero byte in it".into());
    }
    if words.iter().any(|word| word.len() > LONGEST_ARGUMENT) {
        return Err(format!("an argument is longer than {LONGEST_ARGUMENT} bytes"));
    }
    // It would leave us, and hold port and memory while another one is started.
    if words.iter().any(|word| is_daemon(word)) {
        return Err("memcached cannot be a daemon here: remove -d".into());
    }
    Ok(words)
}

/// Whether a word makes memcached a daemon: `-d`, alone or behind other flags, `--daemon`, or a beginning of it that
/// getopt takes for it.
fn is_daemon(word: &str) -> bool {
    const FLAGS: &str = "ACFLMSUVXZhikrv";
    match word.strip_prefix("--") {
        Some(name) => name.len() > 1 && "daemon".starts_with(name),
        None => {
            word.strip_prefix('-').is_some_and(|flags| flags.trim_start_matches(|c| FLAGS.contains(c)).starts_with('d'))
        }
    }
}

/// The file with the pod's annotations.
#[derive(Debug)]
pub struct OrderFile {
    path: Option<PathBuf>,
    seen: Option<Fingerprint>,
}

impl OrderFile {
    /// The file at `path`; without one nothing is ever asked for.
    pub fn new(path: Option<PathBuf>) -> Self {
        Self { path, seen: None }
    }

    /// The orders, if the file has changed since it was last looked at.
    pub fn poll(&mut self) -> Option<Orders> {
        let path = self.path.as_ref()?;
        let now = Fingerprint::of(path);
        if now == self.seen {
            return None;
        }
        // What is being written is read again when it is whole.
        let text = fs::read_to_string(path).ok()?;
        self.seen = now;
        Some(Orders::of(&annotation::parse(&text)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn orders(args: &str) -> Orders {
        Orders::of(&[(ARGS.to_owned(), args.to_owned())].into())
    }

    #[test]
    fn arguments_are_a_list_of_words() {
        assert_eq!(orders(r#"["-m","64"]"#).args, Some(vec!["-m".to_owned(), "64".to_owned()]));
        assert_eq!(Orders::of(&BTreeMap::new()), Orders::default());
    }

    #[test]
    fn what_only_looks_like_a_daemon_is_none() {
        for good in ["--disable-cas", "--disable-evictions", "-D", "-m", "d", "--"] {
            assert!(orders(&format!("[{good:?}]")).args.is_some(), "{good}");
        }
    }

    #[test]
    fn garbage_is_told_and_orders_nothing() {
        let many = format!("[{}\"x\"]", "\"x\",".repeat(300));
        let long = format!("[\"{}\"]", "x".repeat(5000));
        for bad in [
            "",
            "-m 64",
            "{}",
            "[1]",
            "[\"a\\u0000\"]",
            "[[\"-m\"]]",
            "[\"-d\"]",
            "[\"-vd\"]",
            "[\"--daemon\"]",
            "[\"--da\"]",
            &many,
            &long,
        ] {
            let orders = orders(bad);
            assert_eq!(orders.args, None, "{bad}");
            assert!(orders.error.unwrap().starts_with("annotation memcached.c5c3.io/args: "), "{bad}");
        }
    }

    #[test]
    fn a_file_is_read_when_it_has_changed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("annotations");
        let mut file = OrderFile::new(Some(path.clone()));
        assert_eq!(file.poll(), None, "not there yet");
        fs::write(&path, "memcached.c5c3.io/restart=\"1\"").unwrap();
        assert_eq!(file.poll().unwrap().restart.as_deref(), Some("1"));
        assert_eq!(file.poll(), None);
        fs::write(&path, "memcached.c5c3.io/restart=\"22\"").unwrap();
        assert_eq!(file.poll().unwrap().restart.as_deref(), Some("22"));
        fs::write(&path, "memcached.c5c3.io/args=\"no list\"\nmemcached.c5c3.io/secret-hash=\"5ec7e7\"").unwrap();
        let orders = file.poll().unwrap();
        assert!(orders.error.is_some());
        assert_eq!(orders.secret_hash.as_deref(), Some("5ec7e7"), "one order does not stop another");
    }
}
