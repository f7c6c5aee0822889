//! Curves over size as one page that needs nothing else: times and memory of both sides, one chart for each figure.

use super::Series;
use super::process::{Side, Started};
use super::report::{ROWS, median};
use std::fmt::Write;

const WIDTH: f64 = 460.0;
const HEIGHT: f64 = 240.0;
/// Left of and below the curves.
const MARGIN: f64 = 50.0;
const COLORS: [(Side, &str); 2] = [(Side::Ironroot, "#c2410c"), (Side::Java, "#1d4ed8")];

/// A point of a curve: millions of inodes, value.
type Point = (f64, f64);

fn points(all: &[Series], profile: &str, side: Side, value: fn(&Started) -> f64) -> Vec<Point> {
    let of = |series: &&Series| series.name == profile;
    let point = |series: &Series| Some((series.figures.inodes as f64 / 1e6, median(&series.samples, side, value)?));
    let mut points: Vec<Point> = all.iter().filter(of).filter_map(point).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points
}

/// One chart: both axes linear, from 0.
fn chart(title: &str, curves: &[(&str, Vec<Point>)]) -> String {
    let most = |of: fn(&Point) -> f64| curves.iter().flat_map(|c| &c.1).map(of).fold(1e-9, f64::max);
    let (x_most, y_most) = (most(|p| p.0), most(|p| p.1));
    let place = |p: &Point| (MARGIN + p.0 / x_most * WIDTH, 10.0 + HEIGHT - p.1 / y_most * HEIGHT);
    let mut svg = format!(
        "<figure><figcaption>{title}</figcaption><svg viewBox=\"0 0 {} {}\" width=\"{}\">",
        MARGIN + WIDTH + 20.0,
        HEIGHT + MARGIN,
        MARGIN + WIDTH + 20.0
    );
    for step in 0..=4 {
        let (x, y) = (x_most * f64::from(step) / 4.0, y_most * f64::from(step) / 4.0);
        let ((at_x, bottom), (left, at_y)) = (place(&(x, 0.0)), place(&(0.0, y)));
        let right = MARGIN + WIDTH;
        _ = write!(
            svg,
            "<line x1=\"{left}\" x2=\"{right}\" y1=\"{at_y}\" y2=\"{at_y}\"/><text x=\"{}\" y=\"{}\" text-anchor=\"end\">{y:.1}</text><text x=\"{at_x}\" y=\"{}\" text-anchor=\"middle\">{x:.1} M</text>",
            left - 6.0,
            at_y + 4.0,
            bottom + 18.0
        );
    }
    for (color, curve) in curves {
        let path: Vec<String> = curve.iter().map(place).map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        _ = write!(svg, "<polyline points=\"{}\" stroke=\"{color}\"/>", path.join(" "));
        for (x, y) in curve.iter().map(place) {
            _ = write!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{color}\"/>");
        }
    }
    svg + "</svg></figure>\n"
}

/// The page.
pub fn html(all: &[Series]) -> String {
    let mut out = String::from(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Start-up</title><style>body{font:14px sans-serif;margin:2em}figure{display:inline-block;margin:1em}line{stroke:#ddd}polyline{fill:none;stroke-width:2}text{font-size:11px;fill:#555}b{padding:0 .5em}table{border-collapse:collapse}td,th{padding:.2em .8em;text-align:right}</style><h1>Start-up over size</h1><p>",
    );
    COLORS.iter().for_each(|(side, color)| _ = write!(out, "<b style=\"color:{color}\">{}</b>", side.name()));
    out += "x: millions of inodes; medians</p>\n";
    let mut profiles: Vec<&str> = all.iter().map(|series| series.name.as_str()).collect();
    profiles.dedup();
    for profile in profiles {
        _ = writeln!(out, "<h2>{profile}</h2>");
        for (what, unit, value) in ROWS {
            let curves = COLORS.map(|(side, color)| (color, points(all, profile, side, value)));
            out += &chart(&format!("{what}, {unit}"), &curves);
        }
        out += "<table><tr><th>inodes</th><th>md5sum, s</th><th>load, times md5sum</th><th>load, java / ironroot</th></tr>";
        for series in all.iter().filter(|series| series.name == profile) {
            let [own, rival] = [Side::Ironroot, Side::Java].map(|side| median(&series.samples, side, |s| s.load_s));
            let text = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.2}"));
            let (inodes, md5sum) = (series.figures.inodes, series.md5sum_s);
            let (times, ratio) = (own.map(|own| own / md5sum), own.zip(rival).map(|(own, rival)| rival / own));
            let (times, ratio) = (text(times), text(ratio));
            _ = write!(out, "<tr><td>{inodes}</td><td>{md5sum:.2}</td><td>{times}</td><td>{ratio}</td></tr>");
        }
        out += "</table>\n";
    }
    out + "</html>\n"
}
