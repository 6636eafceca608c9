//! The server's statistics.

/// A list of statistics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Report {
    /// The server as a whole.
    General,
    /// What it runs with.
    Settings,
    /// Items, by slab class: `items:<class>:<name>`.
    Items,
    /// Memory, by slab class: `<class>:<name>`.
    Slabs,
    /// Connections: `<descriptor>:<name>`.
    Connections,
}

impl Report {
    /// The word after `stats`.
    pub(crate) fn name(self) -> Option<&'static str> {
        match self {
            Self::General => None,
            Self::Settings => Some("settings"),
            Self::Items => Some("items"),
            Self::Slabs => Some("slabs"),
            Self::Connections => Some("conns"),
        }
    }
}

/// Statistics, in the order in which the server gave them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stats {
    entries: Vec<(String, String)>,
}

impl Stats {
    pub(crate) fn push(&mut self, name: &str, value: &str) {
        self.entries.push((name.to_owned(), value.to_owned()));
    }

    /// The value of a name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// The value of a name, if it is a number.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.get(name)?.parse().ok()
    }

    /// All names with their values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.entries.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}
