//! A plot as SVG, built by hand: seconds over objects, both on logarithmic axes.
//! Lines carry their own labels, so that nobody has to match colours with a legend.

use std::fmt::Write;

use super::statistic::Spread;
use crate::number::{float, grouped, short};
use crate::plan::Subject;

const WIDTH: f64 = 800.0;
const HEIGHT: f64 = 500.0;
/// The area of the lines.
const LEFT: f64 = 76.0;
const RIGHT: f64 = 610.0;
const TOP: f64 = 84.0;
const BOTTOM: f64 = 428.0;
/// The numbers of objects that are labelled; the axis always has all of them.
const SIZES: [usize; 5] = [100, 300, 1000, 3000, 10_000];
/// Room beside the first and the last value on an axis, as a factor.
const MARGIN: f64 = 1.2;
/// Labels at the ends of lines keep so far apart.
const LABEL_GAP: f64 = 34.0;

const STYLE: &str = "\
<style>
  text { font: 14px system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif; fill: #1f2328; }
  .title { font-size: 19px; font-weight: 600; }
  .quiet { fill: #57606a; font-size: 13px; }
  .grid { stroke: #d8dee4; stroke-width: 1; }
  .axis { stroke: #57606a; stroke-width: 1.5; }
  .line { fill: none; stroke-width: 2.5; stroke-linejoin: round; stroke-linecap: round; }
  .range { stroke-width: 2; }
  .label { font-weight: 600; }
  .halo { paint-order: stroke; stroke: #ffffff; stroke-width: 4px; stroke-linejoin: round; }
</style>
";

/// A measured size.
#[derive(Debug, Clone, Copy)]
pub struct Point {
    pub objects: usize,
    pub seconds: Spread,
}

/// The line of a subject, from the smallest size to the largest.
#[derive(Debug, Clone)]
pub struct Series {
    pub subject: Subject,
    pub points: Vec<Point>,
}

/// What is to be drawn.
#[derive(Debug, Clone)]
pub struct Plot {
    pub title: String,
    pub subtitle: String,
    pub series: Vec<Series>,
}

/// A logarithmic axis, from values to places.
#[derive(Debug, Clone, Copy)]
struct Axis {
    low: f64,
    high: f64,
    /// Where the lowest and the highest value are.
    places: (f64, f64),
}

impl Axis {
    fn place(&self, value: f64) -> f64 {
        let (from, to) = self.places;
        from + (value / self.low).ln() / (self.high / self.low).ln() * (to - from)
    }
}

impl Plot {
    /// The whole picture.
    pub fn to_svg(&self) -> String {
        let (x, y) = (self.x_axis(), self.y_axis());
        let (title, subtitle) = (escape(&self.title), escape(&self.subtitle));
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" \
             height=\"{HEIGHT}\" role=\"img\" aria-labelledby=\"title\">\n<title id=\"title\">{title}</title>\n{STYLE}\
             <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" rx=\"8\" fill=\"#ffffff\" stroke=\"#d0d7de\"/>\n\
             <text class=\"title\" x=\"24\" y=\"36\">{title}</text>\n\
             <text class=\"quiet\" x=\"24\" y=\"58\">{subtitle}</text>\n"
        );
        draw_columns(&mut svg, x);
        draw_rows(&mut svg, y);
        for series in &self.series {
            draw_series(&mut svg, series, x, y);
        }
        for label in self.labels(x, y) {
            svg.push_str(&label);
        }
        svg.push_str("</svg>\n");
        svg
    }

    fn x_axis(&self) -> Axis {
        let measured = self.series.iter().flat_map(|series| &series.points).map(|point| point.objects);
        let (low, high) = range(measured.chain(SIZES).map(float));
        Axis { low: low / MARGIN, high: high * MARGIN, places: (LEFT, RIGHT) }
    }

    fn y_axis(&self) -> Axis {
        let points = self.series.iter().flat_map(|series| &series.points);
        let (low, high) = range(points.flat_map(|point| [point.seconds.min, point.seconds.max]));
        Axis { low: low / MARGIN, high: high * MARGIN, places: (BOTTOM, TOP) }
    }

    /// The names of the lines, at their ends and apart from each other.
    fn labels(&self, x: Axis, y: Axis) -> Vec<String> {
        let mut ends: Vec<(f64, &Series, Point)> = self
            .series
            .iter()
            .filter_map(|series| series.points.last().map(|last| (y.place(last.seconds.median), series, *last)))
            .collect();
        ends.sort_by(|one, other| one.0.total_cmp(&other.0));
        let heights = spread_apart(&ends.iter().map(|(height, _, _)| *height).collect::<Vec<_>>());
        let label = |((_, series, last), height): (&(f64, &Series, Point), f64)| {
            let (left, colour) = (x.place(float(last.objects)) + 12.0, colour(series.subject));
            let (name, seconds) = (series.subject.label(), short(last.seconds.median));
            let below = format!("{seconds} s at {}", grouped(last.objects));
            format!(
                "<text class=\"label halo\" x=\"{left:.1}\" y=\"{:.1}\" style=\"fill:{colour}\">{name}</text>\n\
                 <text class=\"quiet halo\" x=\"{left:.1}\" y=\"{:.1}\">{below}</text>\n",
                height - 1.0,
                height + 15.0,
            )
        };
        ends.iter().zip(heights).map(label).collect()
    }
}

fn draw_columns(svg: &mut String, x: Axis) {
    for objects in SIZES {
        let (place, text) = (x.place(float(objects)), grouped(objects));
        writeln!(
            svg,
            "<path class=\"grid\" d=\"M{place:.1} {TOP}V{BOTTOM}\"/>\
             <text x=\"{place:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{text}</text>",
            BOTTOM + 22.0
        )
        .ok();
    }
    writeln!(
        svg,
        "<path class=\"axis\" d=\"M{LEFT} {BOTTOM}H{RIGHT}\"/>\
         <text class=\"quiet\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">number of Memcached objects</text>",
        f64::midpoint(LEFT, RIGHT),
        BOTTOM + 48.0
    )
    .ok();
}

fn draw_rows(svg: &mut String, y: Axis) {
    for seconds in ticks(y.low, y.high) {
        let (place, text) = (y.place(seconds), tick_text(seconds));
        writeln!(
            svg,
            "<path class=\"grid\" d=\"M{LEFT} {place:.1}H{RIGHT}\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{text}</text>",
            LEFT - 10.0,
            place + 5.0
        )
        .ok();
    }
    let middle = f64::midpoint(TOP, BOTTOM);
    writeln!(
        svg,
        "<path class=\"axis\" d=\"M{LEFT} {TOP}V{BOTTOM}\"/>\
         <text class=\"quiet\" x=\"24\" y=\"{middle:.1}\" text-anchor=\"middle\" \
         transform=\"rotate(-90 24 {middle:.1})\">seconds</text>"
    )
    .ok();
}

fn draw_series(svg: &mut String, series: &Series, x: Axis, y: Axis) {
    let colour = colour(series.subject);
    let dashes = if series.subject == Subject::Bare { " stroke-dasharray=\"2 6\"" } else { "" };
    let places: Vec<String> = series
        .points
        .iter()
        .map(|point| format!("{:.1},{:.1}", x.place(float(point.objects)), y.place(point.seconds.median)))
        .collect();
    writeln!(svg, "<polyline class=\"line\" stroke=\"{colour}\"{dashes} points=\"{}\"/>", places.join(" ")).ok();
    for point in &series.points {
        let (left, middle) = (x.place(float(point.objects)), y.place(point.seconds.median));
        if point.seconds.is_range() {
            let (top, bottom) = (y.place(point.seconds.max), y.place(point.seconds.min));
            writeln!(svg, "<path class=\"range\" stroke=\"{colour}\" d=\"M{left:.1} {top:.1}V{bottom:.1}\"/>").ok();
        }
        writeln!(svg, "<circle cx=\"{left:.1}\" cy=\"{middle:.1}\" r=\"4.5\" fill=\"{colour}\"/>").ok();
    }
}

/// Told apart by everybody, and dark enough on white.
fn colour(subject: Subject) -> &'static str {
    match subject {
        Subject::Ours => "#0969da",
        Subject::Peer => "#bc4c00",
        Subject::Bare => "#6e7781",
    }
}

fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let seen = values.filter(|value| value.is_finite() && *value > 0.0);
    let (low, high) = seen.fold((f64::INFINITY, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
    if low.is_finite() { (low, high) } else { (1.0, 10.0) }
}

/// One, two and five times each power of ten that is on the axis.
fn ticks(low: f64, high: f64) -> Vec<f64> {
    let powers = (-3..6).map(|power| 10.0_f64.powi(power));
    let all = powers.flat_map(|power| [power, 2.0 * power, 5.0 * power]);
    all.filter(|tick| (low..=high).contains(tick)).collect()
}

fn tick_text(seconds: f64) -> String {
    if seconds < 1.0 {
        return seconds.to_string();
    }
    let text = format!("{seconds:.0}");
    text.parse().map_or(text, grouped)
}

/// Moves heights apart, from the lowest to the highest, so that what is written there does not overlap.
fn spread_apart(sorted: &[f64]) -> Vec<f64> {
    let mut heights: Vec<f64> = Vec::with_capacity(sorted.len());
    for height in sorted {
        let least = heights.last().map_or(f64::NEG_INFINITY, |last| last + LABEL_GAP);
        heights.push(height.max(least));
    }
    // What was pushed off the lower end moves back up, together with its neighbours.
    let mut most = BOTTOM - 16.0;
    for height in heights.iter_mut().rev() {
        *height = height.min(most);
        most = *height - LABEL_GAP;
    }
    heights
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
#[path = "plot_tests.rs"]
mod tests;
