//! Medians and ranges of a few runs, and ratios within a run.
//! Three runs say nothing about distributions: the range is all of them.

use std::collections::BTreeMap;

use serde::Serialize;

/// A median and the range around it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    pub median: f64,
    pub min: f64,
    pub max: f64,
}

impl Spread {
    /// Of some values; none of no values.
    pub fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        let (min, max) = (*values.first()?, *values.last()?);
        let middle = values.len() / 2;
        let upper = *values.get(middle)?;
        let lower = if values.len().is_multiple_of(2) { *values.get(middle.checked_sub(1)?)? } else { upper };
        Some(Self { median: f64::midpoint(lower, upper), min, max })
    }

    /// Whether there is a range to show.
    pub fn is_range(&self) -> bool {
        self.max > self.min
    }
}

/// What is ours divided by what is theirs, for every run that both have.
pub fn paired_ratios(ours: &BTreeMap<u32, f64>, theirs: &BTreeMap<u32, f64>) -> Vec<f64> {
    let ratio = |(run, value): (&u32, &f64)| theirs.get(run).filter(|other| **other > 0.0).map(|other| value / other);
    ours.iter().filter_map(ratio).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::short;

    fn text(values: &[f64]) -> Option<[String; 3]> {
        Spread::of(values.to_vec()).map(|spread| [spread.median, spread.min, spread.max].map(short))
    }

    #[test]
    fn the_median_is_in_the_middle_of_any_order() {
        assert_eq!(text(&[3.0, 1.0, 2.0]), Some(["2", "1", "3"].map(String::from)));
        assert_eq!(text(&[4.0, 1.0]), Some(["2.50", "1", "4"].map(String::from)));
        assert_eq!(text(&[7.0]), Some(["7", "7", "7"].map(String::from)));
        assert_eq!(text(&[]), None);
    }

    #[test]
    fn runs_are_compared_with_their_like() {
        let ours = BTreeMap::from([(1, 10.0), (2, 30.0), (3, 5.0)]);
        let theirs = BTreeMap::from([(1, 40.0), (2, 40.0)]);
        assert_eq!(paired_ratios(&ours, &theirs).iter().copied().map(short).collect::<Vec<_>>(), ["0.25", "0.75"]);
    }

    #[test]
    fn nothing_is_divided_by_nothing() {
        assert!(paired_ratios(&BTreeMap::from([(1, 0.0)]), &BTreeMap::from([(1, 0.0)])).is_empty());
    }

    #[test]
    fn one_run_has_no_range() {
        assert!(!Spread::of(vec![2.0]).unwrap().is_range());
        assert!(Spread::of(vec![2.0, 2.5]).unwrap().is_range());
    }
}
