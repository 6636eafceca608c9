//! What memcached's arguments say that the agent has to know: where its memory is kept, and which files it has read.

use std::path::PathBuf;

/// The file that keeps memcached's memory across restarts (`-e`); none if it does not.
pub fn memory_file(arguments: &[String]) -> Option<PathBuf> {
    value(arguments, "-e", "--memory-file").map(PathBuf::from)
}

/// The file with users and passwords (`-Y`).
pub fn password_file(arguments: &[String]) -> Option<PathBuf> {
    value(arguments, "-Y", "--auth-file").map(PathBuf::from)
}

/// The files of TLS.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The certificate that is shown, with its chain.
    pub chain: Option<PathBuf>,
    /// The authority of clients.
    pub authority: Option<PathBuf>,
    /// All of them: chain, key, authority of clients.
    pub all: Vec<PathBuf>,
}

/// The files of TLS; none without.
pub fn certificate_files(arguments: &[String]) -> CertificateFiles {
    let mut files = CertificateFiles::default();
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let options = match word.as_str() {
            "-o" | "--extended" => words.next().map(String::as_str),
            other => other.strip_prefix("--extended=").or_else(|| other.strip_prefix("-o")),
        };
        for option in options.into_iter().flat_map(|options| options.split(',')) {
            let Some((name, file)) = option.split_once('=') else { continue };
            if ["ssl_chain_cert", "ssl_key", "ssl_ca_cert"].contains(&name) {
                files.all.push(file.into());
            }
            match name {
                "ssl_chain_cert" => files.chain = Some(file.into()),
                "ssl_ca_cert" => files.authority = Some(file.into()),
                _ => {}
            }
        }
    }
    files
}

/// The value of an option, in the spellings that getopt takes; the last one counts.
fn value<'a>(arguments: &'a [String], short: &str, long: &str) -> Option<&'a str> {
    let mut found = None;
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        if word == short || word == long {
            found = words.next().map(String::as_str).or(found);
        } else if let Some(attached) = word.strip_prefix(long).and_then(|rest| rest.strip_prefix('=')) {
            found = Some(attached);
        } else if let Some(attached) = word.strip_prefix(short).filter(|_| !word.starts_with("--")) {
            found = Some(attached);
        }
    }
    found
}

/// Letters of memcached that take no value, from `shortopts` in memcached.c: another one may follow in the same word.
const FLAGS: &str = "AZMkhiVrvdLCSFXW";
/// The long name of `-e`, and what has to be left of it: `getopt_long` takes a name that is cut short, unless another
/// one begins so too (`--memory-limit`).
const MEMORY_FILE: &str = "memory-file";
const SHORTEST_MEMORY_FILE: &str = "memory-f";

/// What a word is to somebody who looks for the memory file.
enum Word<'a> {
    /// Its option, behind these flags; if it is open, the next word names the file.
    MemoryFile { flags: &'a str, is_open: bool },
    /// An option whose value is the next word, whatever that looks like.
    Open,
    /// Anything else.
    Other,
}

impl<'a> Word<'a> {
    fn of(word: &'a str) -> Self {
        if let Some(long) = word.strip_prefix("--") {
            let name = long.split_once('=').map_or(long, |(name, _)| name);
            let is_memory_file = name.starts_with(SHORTEST_MEMORY_FILE) && MEMORY_FILE.starts_with(name);
            // Which others take the next word differs between versions. So it is looked at, too: no memory may be
            // touched.
            return if is_memory_file { Self::MemoryFile { flags: "", is_open: name == long } } else { Self::Other };
        }
        let Some(letters) = word.strip_prefix('-') else { return Self::Other };
        let rest = letters.trim_start_matches(|letter: char| FLAGS.contains(letter));
        let flags = word.strip_suffix(rest).unwrap_or_default();
        let mut rest = rest.chars();
        match rest.next() {
            Some('e') => Self::MemoryFile { flags, is_open: rest.as_str().is_empty() },
            Some(_) if rest.as_str().is_empty() => Self::Open,
            _ => Self::Other,
        }
    }
}

/// The arguments without the memory file, in whichever spelling getopt takes.
pub fn without_memory_file(arguments: &[String]) -> Vec<String> {
    let mut kept = Vec::with_capacity(arguments.len());
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match Word::of(word) {
            // One without its value is for memcached to refuse.
            Word::MemoryFile { is_open: true, .. } if words.as_slice().is_empty() => kept.push(word.clone()),
            Word::MemoryFile { flags, is_open } => {
                if is_open {
                    words.next();
                }
                if flags.len() > 1 {
                    kept.push(flags.to_owned());
                }
            }
            Word::Open => {
                kept.push(word.clone());
                kept.extend(words.next().cloned());
            }
            Word::Other => kept.push(word.clone()),
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn an_option_is_found_in_every_spelling() {
        for spelling in
            [&["-e", "/m/file"][..], &["-e/m/file"], &["--memory-file", "/m/file"], &["--memory-file=/m/file"]]
        {
            let arguments = words(&[&["-m", "64"], spelling, &["-c", "10"]].concat());
            assert_eq!(memory_file(&arguments), Some("/m/file".into()), "{spelling:?}");
            assert_eq!(password_file(&arguments), None);
        }
        assert_eq!(memory_file(&words(&["-e", "/a", "-e", "/b"])), Some("/b".into()));
        assert_eq!(memory_file(&words(&["-e"])), None);
    }

    #[test]
    fn the_memory_file_is_left_out_in_every_spelling() {
        for spelling in [
            &["-e", "/m/file"][..],
            &["-e/m/file"],
            &["--memory-file", "/m/file"],
            &["--memory-file=/m/file"],
            &["--memory-f", "/m/file"],
            &["--memory-fil=/m/file"],
            &["-e", "/m/file", "-e/m/other"],
            &["-e", "-m"],
        ] {
            let arguments = words(&[&["-m", "64"], spelling, &["-c", "10"]].concat());
            assert_eq!(without_memory_file(&arguments), ["-m", "64", "-c", "10"], "{spelling:?}");
        }
        assert!(without_memory_file(&words(&["-e", "/m/file"])).is_empty());
    }

    #[test]
    fn flags_in_the_same_word_stay() {
        for spelling in [&["-vvZe", "/m/file"][..], &["-vvZe/m/file"]] {
            assert_eq!(without_memory_file(&words(spelling)), ["-vvZ"], "{spelling:?}");
        }
    }

    #[test]
    fn what_only_looks_like_a_memory_file_stays() {
        for arguments in [
            &["-o", "ssl_key=/e/e,modern", "-ossl_chain_cert=/e", "-Ye", "-vvP/e", "-l127.0.0.1"][..],
            // Values, however they look.
            &["-Y", "-e", "-vP", "-e/x"],
            // For memcached to refuse: ambiguous, unknown, without a value.
            &["--memory-=/x", "--memory-limit=64", "--memory-files=/x", "-", "--", "x", "-e"],
            &["-m", "64", "--memory-file"],
            &["-vm"],
        ] {
            assert_eq!(without_memory_file(&words(arguments)), arguments, "{arguments:?}");
        }
    }

    #[test]
    fn no_memory_is_touched_behind_another_program_either() {
        let arguments = words(&["--pdeathsig", "KILL", "--", "memcached", "-e", "/m/file", "-m", "64"]);
        assert_eq!(without_memory_file(&arguments), ["--pdeathsig", "KILL", "--", "memcached", "-m", "64"]);
    }

    #[test]
    fn the_files_of_tls_are_found_among_other_options() {
        let arguments =
            words(&["-Z", "-o", "ssl_chain_cert=/t/tls.crt,modern", "-ossl_key=/t/tls.key", "-o", "hashpower=20"]);
        let files = certificate_files(&arguments);
        assert_eq!(files.chain, Some("/t/tls.crt".into()));
        assert_eq!(files.all, [PathBuf::from("/t/tls.crt"), "/t/tls.key".into()]);
        assert_eq!(certificate_files(&words(&["-m", "64"])), CertificateFiles::default());
    }
}
