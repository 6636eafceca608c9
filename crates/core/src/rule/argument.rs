//! Arguments that fight the operator, in every spelling that `getopt_long` takes.

use memcached_api::spec::MemcachedSpec;

use super::Violation;

/// Options the operator decides, by letter, with the field to use instead.
const LETTERS: [(char, &str); 19] = [
    ('m', "use memcached.maxMemoryMB"),
    ('c', "use memcached.maxConnections"),
    ('t', "use memcached.threads"),
    ('I', "use memcached.maxItemSize"),
    ('Y', "use security.sasl"),
    ('S', "use security.sasl"),
    ('Z', "use security.tls"),
    ('p', "the ports are fixed"),
    ('U', "the ports are fixed"),
    ('l', "the listeners are fixed"),
    ('s', "the listeners are fixed"),
    ('a', "the listeners are fixed"),
    ('e', "use warmRestart"),
    ('d', "the container runs one process in the foreground"),
    ('u', "use security.containerSecurityContext"),
    ('P', "the container runs one process in the foreground"),
    ('h', "it would end the server"),
    ('i', "it would end the server"),
    ('V', "it would end the server"),
];

/// Other letters that take a value: what follows them is no option. From memcached.c's `shortopts`; a letter too
/// many here would hide the option behind it.
const WITH_VALUE: &str = "fnRbBDoN";

/// The same options by their long names.
const NAMES: [(&str, &str); 19] = [
    ("memory-limit", "use memcached.maxMemoryMB"),
    ("conn-limit", "use memcached.maxConnections"),
    ("threads", "use memcached.threads"),
    ("max-item-size", "use memcached.maxItemSize"),
    ("auth-file", "use security.sasl"),
    ("enable-sasl", "use security.sasl"),
    ("enable-ssl", "use security.tls"),
    ("port", "the ports are fixed"),
    ("udp-port", "the ports are fixed"),
    ("listen", "the listeners are fixed"),
    ("unix-socket", "the listeners are fixed"),
    ("unix-mask", "the listeners are fixed"),
    ("memory-file", "use warmRestart"),
    ("daemon", "the container runs one process in the foreground"),
    ("user", "use security.containerSecurityContext"),
    ("pidfile", "the container runs one process in the foreground"),
    ("help", "it would end the server"),
    ("license", "it would end the server"),
    ("version", "it would end the server"),
];

/// What a word may be, after the words before it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expected {
    Option,
    Value,
    /// The value of `-o`.
    Extended,
    /// Which long options take a value differs between versions of memcached, so it may be either.
    Anything,
}

pub fn check(spec: &MemcachedSpec) -> Vec<Violation> {
    let arguments = spec.memcached.as_ref().map(|server| server.extra_args.as_slice()).unwrap_or_default();
    let mut violations = Vec::new();
    let mut expected = Expected::Option;
    for (index, argument) in arguments.iter().enumerate() {
        let next = expected_after(argument);
        let (found, then) = match expected {
            Expected::Option => (refused(argument), next),
            Expected::Value => (None, Expected::Option),
            Expected::Extended => (refused_extended(argument), Expected::Option),
            Expected::Anything if next == Expected::Option => (refused_anywhere(argument), Expected::Option),
            Expected::Anything => (refused_anywhere(argument), Expected::Anything),
        };
        expected = then;
        if let Some(why) = found {
            let field = format!("spec.memcached.extraArgs[{index}]");
            violations.push(Violation::new(field, format!("{argument:?} is decided by the operator: {why}")));
        }
    }
    violations
}

fn refused_anywhere(argument: &str) -> Option<&'static str> {
    refused(argument).or_else(|| refused_extended(argument))
}

/// Why one word cannot be passed on.
fn refused(argument: &str) -> Option<&'static str> {
    if let Some(long) = argument.strip_prefix("--") {
        return refused_long(long);
    }
    let mut letters = argument.strip_prefix('-')?.chars();
    while let Some(letter) = letters.next() {
        if let Some((_, why)) = LETTERS.iter().find(|(known, _)| *known == letter) {
            return Some(why);
        }
        if letter == 'o' {
            return refused_extended(letters.as_str());
        }
        if WITH_VALUE.contains(letter) {
            return None;
        }
    }
    None
}

/// Long options may be abbreviated as long as they are unique; a bare `--` ends the options.
fn refused_long(long: &str) -> Option<&'static str> {
    let (name, value) = long.split_once('=').unwrap_or((long, ""));
    if name.is_empty() {
        return Some("it ends the options");
    }
    if is_extended(name) {
        return refused_extended(value);
    }
    NAMES.iter().find(|(known, _)| known.starts_with(name)).map(|(_, why)| *why)
}

/// `-o` takes a comma-separated list.
fn refused_extended(list: &str) -> Option<&'static str> {
    list.split(',').find_map(|option| {
        let option = option.trim();
        if option.starts_with("ssl_") {
            return Some("use security.tls");
        }
        if option.starts_with("proxy_") {
            return Some("use a MemcachedCluster");
        }
        option.starts_with("ext_").then_some("use extstore")
    })
}

/// What the word behind an option is.
fn expected_after(argument: &str) -> Expected {
    if let Some(long) = argument.strip_prefix("--") {
        return match long {
            _ if long.contains('=') => Expected::Option,
            _ if is_extended(long) => Expected::Extended,
            _ => Expected::Anything,
        };
    }
    let letters = argument.strip_prefix('-').unwrap_or_default();
    match letters.split_once(|letter| WITH_VALUE.contains(letter)) {
        Some((_, "")) if letters.ends_with('o') => Expected::Extended,
        Some((_, "")) => Expected::Value,
        _ => Expected::Option,
    }
}

fn is_extended(name: &str) -> bool {
    name.len() > 1 && "extended".starts_with(name)
}

#[cfg(test)]
mod tests {
    use memcached_api::spec::Server;

    use super::*;

    fn refused_at(arguments: &[&str]) -> Vec<String> {
        let extra_args = arguments.iter().map(ToString::to_string).collect();
        let server = Server { extra_args, ..Server::default() };
        let spec = MemcachedSpec { memcached: Some(server), ..MemcachedSpec::default() };
        check(&spec).into_iter().map(|violation| violation.field).collect()
    }

    #[test]
    fn what_does_not_fight_the_operator_passes() {
        for arguments in [
            &["-o", "modern"][..],
            &["-o", "hashpower=20,slab_automove=1"],
            &["-f", "1.25", "-n", "48"],
            &["-M"],
            &["-R", "40", "-b", "2048"],
            &["--extended=modern"],
            &["-D", ":"],
        ] {
            assert_eq!(refused_at(arguments), [""; 0], "{arguments:?}");
        }
    }

    #[test]
    fn every_spelling_of_what_the_operator_decides_is_refused() {
        for arguments in [
            &["-m", "128"][..],
            &["-m128"],
            &["-vm", "128"],
            &["--memory-limit=128"],
            &["--memory-l", "128"],
            &["-p", "11311"],
            &["-U0"],
            &["-l127.0.0.1"],
            &["--listen=127.0.0.1"],
            &["-Z"],
            &["-o", "ssl_verify_mode=0"],
            &["-ossl_verify_mode=0"],
            &["-o", "modern,ssl_ca_cert=/x"],
            &["--extended=proxy_config=/x"],
            &["--ext", "x", "-S"],
            &["-d"],
            &["-u", "root"],
            &["-e/tmp/x"],
            &["--"],
        ] {
            assert!(!refused_at(arguments).is_empty(), "{arguments:?}");
        }
    }

    #[test]
    fn a_value_that_looks_like_an_option_is_none() {
        assert_eq!(refused_at(&["-D", "-p"]), [""; 0]);
        assert_eq!(refused_at(&["-M", "-p", "1"]), ["spec.memcached.extraArgs[1]"]);
    }

    #[test]
    fn a_flag_hides_nothing_behind_it() {
        for arguments in [
            &["-C", "-p", "1"][..],
            &["-X", "-l", "0.0.0.0"],
            &["-rm128"],
            &["--ext", "ssl_verify_mode=0"],
            &["--slab-growth-factor", "-f", "-m", "128"],
            &["--protocol", "-o", "ssl_verify_mode=0"],
        ] {
            assert!(!refused_at(arguments).is_empty(), "{arguments:?}");
        }
        assert_eq!(refused_at(&["--slab-growth-factor", "1.5", "--disable-cas", "-o", "modern"]), [""; 0]);
    }
}
