//! Arguments that fight the operator, in every spelling that `getopt_long` takes.

use memcached_api::memcached::rule;
use memcached_api::memcached::rule::server::argument::{EXTENDED, FAMILIES, LETTERS, NAMES, WITH_VALUE};
use memcached_api::memcached::spec::MemcachedSpec;
use operator_model::violation::Violation;

/// What a word may be, after the words before it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expected {
    Option,
    Value,
    /// The value of `-o`; or either, as which long options take a value differs between versions of memcached.
    Anything,
}

pub fn check(spec: &MemcachedSpec) -> Vec<Violation> {
    let arguments = spec.memcached.as_ref().map(|server| server.extra_args.as_slice()).unwrap_or_default();
    let mut violations = Vec::new();
    if arguments.iter().any(|argument| argument.contains('\n')) {
        violations.push(Violation::of(&rule::ARGUMENT_LINES, &[]));
    }
    let mut expected = Expected::Option;
    for (index, argument) in arguments.iter().enumerate() {
        let next = expected_after(argument);
        let (found, then) = match expected {
            Expected::Option => (refused(argument), next),
            Expected::Value => (None, Expected::Option),
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
        let option = option.trim_start_matches([' ', '\t']);
        FAMILIES.iter().find(|(family, _)| option.starts_with(family)).map(|(_, why)| *why)
    })
}

/// What the word behind an option is.
fn expected_after(argument: &str) -> Expected {
    if let Some(long) = argument.strip_prefix("--") {
        return if long.contains('=') { Expected::Option } else { Expected::Anything };
    }
    let letters = argument.strip_prefix('-').unwrap_or_default();
    match letters.split_once(|letter| WITH_VALUE.contains(letter)) {
        Some((_, "")) if letters.ends_with('o') => Expected::Anything,
        Some((_, "")) => Expected::Value,
        _ => Expected::Option,
    }
}

fn is_extended(name: &str) -> bool {
    name.len() > 1 && EXTENDED.starts_with(name)
}

#[cfg(test)]
mod tests {
    use memcached_api::memcached::spec::Server;

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
