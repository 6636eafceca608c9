//! The plot shows everything, inside its frame, and nothing on top of each other.

use super::*;

fn series(subject: Subject, seconds: &[(usize, f64)]) -> Series {
    let point = |(objects, seconds): &(usize, f64)| {
        let seconds = Spread::of(vec![seconds * 0.9, *seconds, seconds * 1.2]).unwrap();
        Point { objects: *objects, seconds }
    };
    Series { subject, points: seconds.iter().map(point).collect() }
}

fn plot() -> Plot {
    Plot {
        title: "Seconds & objects".into(),
        subtitle: "lower is better".into(),
        series: vec![
            series(Subject::Ours, &[(100, 0.9), (300, 2.4), (1000, 7.2), (3000, 22.0), (10_000, 76.0)]),
            series(Subject::Peer, &[(100, 3.9), (300, 11.0), (1000, 38.7), (3000, 120.0), (10_000, 410.0)]),
            series(Subject::Bare, &[(100, 0.7), (300, 2.0), (1000, 6.1), (3000, 19.0), (10_000, 70.0)]),
        ],
    }
}

/// The values of an attribute, as numbers.
fn numbers(svg: &str, attribute: &str) -> Vec<f64> {
    let begin = format!(" {attribute}=\"");
    svg.split(&begin).skip(1).map(|rest| rest.split('"').next().unwrap().parse().unwrap()).collect()
}

#[test]
fn every_point_is_inside_the_frame() {
    let svg = plot().to_svg();
    let (lefts, tops) = (numbers(&svg, "cx"), numbers(&svg, "cy"));
    assert_eq!((lefts.len(), tops.len()), (15, 15));
    assert!(lefts.iter().all(|left| (LEFT..=RIGHT).contains(left)), "{lefts:?}");
    assert!(tops.iter().all(|top| (TOP..=BOTTOM).contains(top)), "{tops:?}");
    for line in svg.lines().filter(|line| line.starts_with("<polyline")) {
        let points = line.split("points=\"").nth(1).unwrap().split('"').next().unwrap();
        for pair in points.split(' ') {
            let (left, top) = pair.split_once(',').unwrap();
            let (left, top): (f64, f64) = (left.parse().unwrap(), top.parse().unwrap());
            assert!((LEFT..=RIGHT).contains(&left) && (TOP..=BOTTOM).contains(&top), "{pair}");
        }
    }
}

#[test]
fn all_text_is_inside_the_picture() {
    let svg = plot().to_svg();
    for line in svg.lines().filter(|line| line.contains("<text")) {
        let text = line.split("<text").nth(1).unwrap();
        let (left, top) = (numbers(text, "x")[0], numbers(text, "y")[0]);
        assert!((0.0..WIDTH - 20.0).contains(&left) && (0.0..HEIGHT - 10.0).contains(&top), "{line}");
    }
}

#[test]
fn sizes_lines_and_axes_are_labelled() {
    let svg = plot().to_svg();
    for text in ["100", "300", "1,000", "3,000", "10,000", "ours", "the other operator", "bare requests", "seconds"] {
        assert!(svg.contains(&format!(">{text}</text>")), "{text} is missing");
    }
    assert!(svg.contains(">76 s at 10,000</text>"), "{svg}");
    assert!(svg.contains("Seconds &amp; objects"));
}

#[test]
fn more_objects_are_further_right_and_more_seconds_further_up() {
    let plot = plot();
    let (x, y) = (plot.x_axis(), plot.y_axis());
    assert!(x.place(100.0) < x.place(300.0) && x.place(300.0) < x.place(10_000.0));
    assert!(y.place(1.0) > y.place(10.0));
    // Equal factors are equal distances.
    let step = |from: f64, to: f64| format!("{:.6}", x.place(to) - x.place(from));
    assert_eq!(step(100.0, 1000.0), step(1000.0, 10_000.0));
}

#[test]
fn labels_do_not_overlap_and_stay_above_the_axis() {
    for heights in [&[100.0, 101.0, 102.0][..], &[BOTTOM - 3.0, BOTTOM - 2.0, BOTTOM], &[100.0, 200.0, 300.0]] {
        let apart = spread_apart(heights);
        assert!(apart.windows(2).all(|pair| pair[1] - pair[0] >= LABEL_GAP - 0.001), "{apart:?}");
        assert!(apart.iter().all(|height| *height <= BOTTOM - 15.9), "{apart:?}");
    }
    assert_eq!(format!("{:?}", spread_apart(&[100.0, 200.0])), "[100.0, 200.0]");
}

#[test]
fn ticks_are_round_numbers() {
    let text: Vec<String> = ticks(0.4, 450.0).into_iter().map(tick_text).collect();
    assert_eq!(text, ["0.5", "1", "2", "5", "10", "20", "50", "100", "200"]);
    assert_eq!(tick_text(2000.0), "2,000");
}

#[test]
fn a_size_that_is_not_on_the_axis_extends_it() {
    let plot = Plot { series: vec![series(Subject::Ours, &[(50, 0.5), (20_000, 200.0)])], ..plot() };
    let svg = plot.to_svg();
    assert!(numbers(&svg, "cx").iter().all(|left| (LEFT..=RIGHT).contains(left)), "{svg}");
}
