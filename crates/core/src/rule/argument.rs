//! Arguments that fight the operator, in every spelling that `getopt_long` takes.

use memcached_api::spec::MemcachedSpec;

use super::Violation;

/// Options the operator decides, by letter, with the field to use instead.
const LETTERS: [(char, &str); 18] = [
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
    ('V', "it would end the server"),
];

/// Other letters that take a value: what follows them is no option.
const WITH_VALUE: &str = "rfnRCbBDoOxXGqK";

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

pub fn check(spec: &MemcachedSpec) -> Vec<Violation> {
    let arguments = spec.memcached.as_ref().map(|server| server.extra_args.as_slice()).unwrap_or_default();
    let mut violations = Vec::new();
    let mut value_of = None;
    for (index, argument) in arguments.iter().enumerate() {
        let found = match value_of.take() {
            Some('o') => refused_extended(argument),
            Some(_) => None,
            None => {
                value_of = awaits_value(argument);
                refused(argument)
            }
        };
        if let Some(why) = found {
            let field = format!("spec.memcached.extraArgs[{index}]");
            violations.push(Violation::new(field, format!("{argument:?} is decided by the operator: {why}")));
        }
    }
    violations
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
    if name.len() > 1 && "extended".starts_with(name) {
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

/// The option whose value is the next word, if any.
fn awaits_value(argument: &str) -> Option<char> {
    if argument.starts_with("--") {
        return (argument == "--extended").then_some('o');
    }
    let letters = argument.strip_prefix('-')?;
    let position = letters.find(|letter| WITH_VALUE.contains(letter))?;
    let (_, rest) = letters.split_at_checked(position)?;
    let mut rest = rest.chars();
    let letter = rest.next()?;
    rest.as_str().is_empty().then_some(letter)
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
}
