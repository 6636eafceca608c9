//! Arguments that fight the operator, as tables and as one regular expression for the API server.

/// Where [`refused`] belongs in a rule.
pub const PLACEHOLDER: &str = "{arguments}";

/// Options the operator decides, by letter, with the field to use instead.
pub const LETTERS: [(char, &str); 19] = [
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
pub const WITH_VALUE: &str = "fnRbBDoN";

/// The same options by their long names.
pub const NAMES: [(&str, &str); 19] = [
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

/// Families of what `-o` takes that the operator decides.
pub const FAMILIES: [(&str, &str); 3] =
    [("ssl_", "use security.tls"), ("proxy_", "use a MemcachedCluster"), ("ext_", "use extstore")];

/// The long name of `-o`; two letters of it are enough.
pub const EXTENDED: &str = "extended";

/// Matches arguments, joined by line breaks, of which one is decided by the operator.
///
/// It goes through them as `getopt_long` does, a step at a time: a word, or an option with the word that is its
/// value. Which long options take a value differs between versions of memcached, so what follows one may be either.
pub fn refused() -> String {
    let valued = WITH_VALUE;
    let taking = WITH_VALUE.replace('o', "");
    let decided: String = LETTERS.iter().map(|(letter, _)| *letter).collect();
    // Flags in front: `-vv`.
    let flags = format!("-(?:[^-\n{valued}][^\n{valued}]*)?");
    let taker = format!("(?:{flags}[{valued}]|--[^=\n]+)");
    let open = format!("(?:{flags}o|--[^=\n]+)(?:\n{taker})*");
    let steps = [
        "(?:[^-\n][^\n]*)?".to_owned(),
        format!("{flags}[{taking}]\n[^\n]*"),
        format!("{flags}[{valued}][^\n]+"),
        flags.clone(),
        open.clone(),
        "--[^=\n]*=[^\n]*".to_owned(),
    ];
    let families: Vec<&str> = FAMILIES.iter().map(|(family, _)| *family).collect();
    let list = format!("(?:[^\n]*,)?[ \t]*(?:{})[^\n]*", families.join("|"));
    let names: Vec<String> = NAMES.iter().map(|(name, _)| abbreviated(name)).collect();
    let extended = EXTENDED.split_at_checked(1).map(|(first, rest)| format!("{first}{}", abbreviated(rest)));
    let found = [
        format!("{flags}[{decided}][^\n]*"),
        format!("{flags}o{list}"),
        format!("--(?:{})?(?:=[^\n]*)?", names.join("|")),
        format!("--{}={list}", extended.unwrap_or_default()),
        format!("{open}\n{list}"),
    ];
    format!("^(?:(?:{})\n)*(?:{})(?:\n|$)", steps.join("|"), found.join("|"))
}

/// Matches a name and what is left of it when it is cut short: `t(?:h(?:e)?)?`.
fn abbreviated(name: &str) -> String {
    let mut letters = name.chars();
    let first: String = letters.next().into_iter().collect();
    let rest = letters.as_str();
    if rest.is_empty() { first } else { format!("{first}(?:{})?", abbreviated(rest)) }
}
