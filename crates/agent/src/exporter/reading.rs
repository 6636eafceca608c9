//! What memcached said about itself, as numbers; what is no number is no memcached.

use std::collections::BTreeMap;

use memcached_wire::Stats;

/// The reports of one scrape.
#[derive(Debug, Default)]
pub struct Reading {
    pub general: Stats,
    pub settings: Stats,
    pub items: Stats,
    pub slabs: Stats,
}

/// A figure that is none.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("failed to understand the statistic {name:?}: {value:?}")]
pub struct Nonsense {
    name: String,
    value: String,
}

impl Nonsense {
    pub fn new(name: &str, value: &str) -> Self {
        Self { name: name.to_owned(), value: value.to_owned() }
    }
}

/// Figures by name.
#[derive(Debug, Default)]
pub struct Figures<'a>(BTreeMap<&'a str, &'a str>);

impl<'a> Figures<'a> {
    /// All of a report.
    pub fn of(stats: &'a Stats) -> Self {
        Self(stats.iter().collect())
    }

    /// As it was said.
    pub fn text(&self, name: &str) -> Option<&'a str> {
        self.0.get(name).copied()
    }

    /// As a number; `yes` and `no` are 1 and 0.
    pub fn number(&self, name: &str) -> Result<Option<f64>, Nonsense> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let number = match text {
            "yes" => Some(1.0),
            "no" => Some(0.0),
            text => text.parse().ok().filter(|number: &f64| number.is_finite()),
        };
        number.map(Some).ok_or_else(|| Nonsense::new(name, text))
    }

    /// The sum of several, if all are there.
    pub fn sum(&self, names: &[&str]) -> Result<Option<f64>, Nonsense> {
        names.iter().map(|name| self.number(name)).sum()
    }
}

/// The figures of each slab class: `<prefix><class>:<name>`. Names without a class are left out.
pub fn by_class<'a>(stats: &'a Stats, prefix: &str) -> Result<BTreeMap<u8, Figures<'a>>, Nonsense> {
    let mut classes: BTreeMap<u8, Figures<'a>> = BTreeMap::new();
    for (name, value) in stats.iter() {
        let Some((class, figure)) = name.strip_prefix(prefix).and_then(|rest| rest.split_once(':')) else { continue };
        let class = class.parse().map_err(|_| Nonsense::new(name, value))?;
        classes.entry(class).or_default().0.insert(figure, value);
    }
    Ok(classes)
}
