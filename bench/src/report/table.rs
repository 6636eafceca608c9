//! Comparisons as Markdown: readable as it is, and as a table where it is rendered.
//! On a terminal headings are bold, and ratios green or red by who is better.

use std::fmt::Write;

use super::statistic::Spread;
use super::{Comparison, Row};
use crate::number::{grouped, short};
use crate::plan::Subject;

const HEAD: [&str; 6] = ["", "ours", "other operator", "bare", "ours / other", "ours / bare"];
const BOLD: &str = "1";
const GREEN: &str = "32";
const RED: &str = "31";
/// Nearer to each other than this is the same.
const SAME: f64 = 0.02;

/// A cell, and how it is coloured.
#[derive(Debug, Clone)]
struct Cell {
    text: String,
    colour: Option<&'static str>,
}

impl Cell {
    fn plain(text: impl Into<String>) -> Self {
        Self { text: text.into(), colour: None }
    }
}

/// All comparisons, one table each.
pub fn render(comparisons: &[Comparison], is_colourful: bool) -> String {
    comparisons.iter().map(|comparison| render_one(comparison, is_colourful)).collect::<Vec<_>>().join("\n")
}

fn render_one(comparison: &Comparison, is_colourful: bool) -> String {
    let runs = comparison.runs.values().copied().max().unwrap_or_default();
    let times = if runs == 1 { "one run".into() } else { format!("{runs} runs, median (range)") };
    let heading = format!("### {}, {} objects, {times}", comparison.scenario, grouped(comparison.size));
    let mut lines = vec![HEAD.map(Cell::plain)];
    lines.extend(comparison.rows.iter().map(cells));
    let mut text = format!("{}\n\n{}", paint(&heading, Some(BOLD), is_colourful), grid(&lines, is_colourful));
    if !comparison.remarks.is_empty() {
        text.push('\n');
    }
    for remark in &comparison.remarks {
        writeln!(text, "- {remark}").ok();
    }
    text
}

fn cells(row: &Row) -> [Cell; 6] {
    let value =
        |subject: Subject| Cell::plain(row.subjects.get(&subject).map_or("–".into(), |spread| range(spread, "")));
    [
        Cell::plain(row.figure),
        value(Subject::Ours),
        value(Subject::Peer),
        value(Subject::Bare),
        ratio(row.ours_to_peer),
        ratio(row.ours_to_bare),
    ]
}

/// Less is better.
fn ratio(spread: Option<Spread>) -> Cell {
    let Some(spread) = spread else {
        return Cell::plain("–");
    };
    let colour = match spread.median {
        median if median < 1.0 - SAME => Some(GREEN),
        median if median > 1.0 + SAME => Some(RED),
        _ => None,
    };
    Cell { text: range(&spread, "×"), colour }
}

fn range(spread: &Spread, unit: &str) -> String {
    let median = format!("{}{unit}", short(spread.median));
    if spread.is_range() { format!("{median} ({}–{})", short(spread.min), short(spread.max)) } else { median }
}

/// Cells below each other, the first line as the head.
fn grid(lines: &[[Cell; 6]], is_colourful: bool) -> String {
    let width = |column: usize| {
        lines.iter().filter_map(|line| line.get(column)).map(|cell| cell.text.chars().count()).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..HEAD.len()).map(width).collect();
    let mut text = String::new();
    for (number, line) in lines.iter().enumerate() {
        for (cell, width) in line.iter().zip(&widths) {
            let padded = format!("{:<width$}", cell.text, width = *width);
            write!(text, "| {} ", paint(&padded, cell.colour, is_colourful)).ok();
        }
        text.push_str("|\n");
        if number == 0 {
            let rule: Vec<String> = widths.iter().map(|width| "-".repeat(width + 2)).collect();
            writeln!(text, "|{}|", rule.join("|")).ok();
        }
    }
    text
}

fn paint(text: &str, colour: Option<&str>, is_colourful: bool) -> String {
    match colour {
        Some(code) if is_colourful => format!("\x1b[{code}m{text}\x1b[0m"),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::plan::Scenario;

    fn comparison() -> Comparison {
        let spread = |values: &[f64]| Spread::of(values.to_vec()).unwrap();
        let subjects = BTreeMap::from([(Subject::Ours, spread(&[7.0, 7.5, 8.0])), (Subject::Peer, spread(&[30.0]))]);
        let row = Row {
            figure: "seconds to converge",
            subjects,
            ours_to_peer: Some(spread(&[0.25, 0.2, 0.3])),
            ours_to_bare: None,
        };
        Comparison {
            scenario: Scenario::Create,
            size: 1000,
            runs: BTreeMap::from([(Subject::Ours, 3), (Subject::Peer, 1)]),
            rows: vec![row],
            remarks: vec!["1000-create-bare-1: did not converge".into()],
        }
    }

    #[test]
    fn a_table_has_medians_ranges_and_ratios() {
        let text = render(&[comparison()], false);
        let expected = "\
### create, 1,000 objects, 3 runs, median (range)

|                     | ours       | other operator | bare | ours / other      | ours / bare |
|---------------------|------------|----------------|------|-------------------|-------------|
| seconds to converge | 7.50 (7–8) | 30             | –    | 0.25× (0.20–0.30) | –           |

- 1000-create-bare-1: did not converge
";
        assert_eq!(text, expected);
    }

    #[test]
    fn colours_are_for_terminals_and_do_not_shift_columns() {
        let (plain, coloured) = (render(&[comparison()], false), render(&[comparison()], true));
        assert!(!plain.contains('\x1b'));
        assert!(coloured.contains("\x1b[32m0.25×"), "{coloured}");
        let bare =
            ["\x1b[32m", "\x1b[31m", "\x1b[1m", "\x1b[0m"].iter().fold(coloured, |text, code| text.replace(code, ""));
        assert_eq!(bare, plain);
    }

    #[test]
    fn a_loss_is_red() {
        assert_eq!(ratio(Spread::of(vec![1.9])).colour, Some(RED));
        assert_eq!(ratio(Spread::of(vec![1.01])).colour, None);
    }
}
