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
            if name == "ssl_chain_cert" {
                files.chain = Some(file.into());
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
    fn the_files_of_tls_are_found_among_other_options() {
        let arguments =
            words(&["-Z", "-o", "ssl_chain_cert=/t/tls.crt,modern", "-ossl_key=/t/tls.key", "-o", "hashpower=20"]);
        let files = certificate_files(&arguments);
        assert_eq!(files.chain, Some("/t/tls.crt".into()));
        assert_eq!(files.all, [PathBuf::from("/t/tls.crt"), "/t/tls.key".into()]);
        assert_eq!(certificate_files(&words(&["-m", "64"])), CertificateFiles::default());
    }
}
