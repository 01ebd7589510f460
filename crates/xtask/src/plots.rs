//! Draws measurements as SVG and PNG. Separate from the benchmarks, which only provide numbers and names. The font for
//! text is embedded, because a machine that measures may have none.

use nyala_runtime::Image;
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{FontStyle, register_font};
use std::path::Path;

static FONT: &[u8] = include_bytes!("plots/Roboto-Latin.ttf");
const FONT_NAME: &str = "sans-serif";
const SIZE: (u32, u32) = (1200, 620);
/// The pixels of the PNG for one of the SVG.
const DENSITY: u32 = 2;
/// Okabe and Ito's palette, whose colors color-blind people can tell apart.
const COLORS: &[RGBColor] = &[
    RGBColor(0x56, 0xb4, 0xe9),
    RGBColor(0x00, 0x72, 0xb2),
    RGBColor(0x00, 0x9e, 0x73),
    RGBColor(0xe6, 0x9f, 0x00),
    RGBColor(0xd5, 0x5e, 0x00),
    RGBColor(0xcc, 0x79, 0xa7),
    RGBColor(0x99, 0x99, 0x99),
];
const INK: RGBColor = RGBColor(0x22, 0x22, 0x22);
const FAINT: RGBColor = RGBColor(0xdd, 0xdd, 0xdd);
/// The fraction of a group's space that its bars take.
const FILLED: f64 = 0.84;

/// A number and, if it is known, its interval.
#[derive(Clone, Copy)]
pub struct Value {
    pub value: f64,
    pub interval: Option<(f64, f64)>,
}

/// The bars of one color: a value for each group. The place of `None` stays empty.
pub struct Series {
    pub name: String,
    pub values: Vec<Option<Value>>,
}

/// A picture of bars side by side, in groups.
pub struct Bars<'a> {
    pub title: &'a str,
    /// The text below the title, in smaller letters: machine, date, conditions.
    pub about: &'a str,
    pub y_label: &'a str,
    pub groups: &'a [&'a str],
    pub series: &'a [Series],
    /// The height of a horizontal line, the value that others are relative to.
    pub reference: Option<f64>,
}

/// A line through points, or only the points, each with a name.
pub struct Line {
    pub name: String,
    pub points: Vec<(f64, Value)>,
    /// The names of the points. If empty, the points are connected.
    pub labels: Vec<String>,
}

/// A picture of lines over two logarithmic axes.
pub struct Lines<'a> {
    pub title: &'a str,
    pub about: &'a str,
    pub x_label: &'a str,
    pub y_label: &'a str,
    pub lines: &'a [Line],
}

/// Writes a picture of bars to `file`, with the extensions `svg` and `png`.
pub fn bars(plot: &Bars, file: &Path) -> Result<(), String> {
    write(file, |area, density| draw_bars(area, plot, density), |area, density| draw_bars(area, plot, density))
}

/// Writes a picture of lines to `file`, with the extensions `svg` and `png`.
pub fn lines(plot: &Lines, file: &Path) -> Result<(), String> {
    write(file, |area, density| draw_lines(area, plot, density), |area, density| draw_lines(area, plot, density))
}

/// Writes both files of a picture. The drawing function is given twice, because each kind of file has its own type.
fn write(
    file: &Path,
    vector: impl Fn(&DrawingArea<SVGBackend, Shift>, u32) -> Result<(), String>,
    raster: impl Fn(&DrawingArea<BitMapBackend, Shift>, u32) -> Result<(), String>,
) -> Result<(), String> {
    register_font(FONT_NAME, FontStyle::Normal, FONT).map_err(|_| "the font for plots is damaged")?;
    let (svg, png) = (file.with_extension("svg"), file.with_extension("png"));
    let mut text = String::new();
    vector(&SVGBackend::with_string(&mut text, SIZE).into_drawing_area(), 1)?;
    std::fs::write(&svg, text).map_err(|e| format!("cannot write {}: {e}", svg.display()))?;
    let (width, height) = (SIZE.0 * DENSITY, SIZE.1 * DENSITY);
    let mut pixels = vec![0; 3 * (width * height) as usize];
    raster(&BitMapBackend::with_buffer(&mut pixels, (width, height)).into_drawing_area(), DENSITY)?;
    let image = Image { width, height, channels: 3, pixels };
    image.save(&png).map_err(|e| format!("cannot write {}: {e}", png.display()))
}

fn px(n: f64, density: u32) -> i32 {
    (n * f64::from(density)).round() as i32
}

fn font(size: f64, density: u32, h: HPos, v: VPos) -> TextStyle<'static> {
    TextStyle::from((FONT_NAME, px(size, density)).into_font()).color(&INK).pos(Pos::new(h, v))
}

/// Draws the title, the conditions and the legend. Returns the rest of the area.
fn draw_head<B: DrawingBackend>(
    area: &DrawingArea<B, Shift>,
    title: &str,
    about: &str,
    names: &[&str],
    density: u32,
) -> Result<(), String> {
    let failed = |e: DrawingAreaErrorKind<B::ErrorType>| format!("cannot draw: {e}");
    let px = |n: f64| px(n, density);
    let font = |size: f64, h, v| font(size, density, h, v);
    area.fill(&WHITE).map_err(failed)?;
    area.draw(&Text::new(title, (px(24.0), px(16.0)), font(24.0, HPos::Left, VPos::Top))).map_err(failed)?;
    area.draw(&Text::new(about, (px(24.0), px(46.0)), font(14.0, HPos::Left, VPos::Top))).map_err(failed)?;
    let mut x = px(24.0);
    for (i, &name) in names.iter().enumerate() {
        let (top, side) = (px(74.0), px(13.0));
        let square = Rectangle::new([(x, top), (x + side, top + side)], color(i).filled());
        area.draw(&square).map_err(failed)?;
        let style = font(15.0, HPos::Left, VPos::Center);
        let wide = area.estimate_text_size(name, &style).map_err(failed)?.0 as i32;
        area.draw(&Text::new(name, (x + side + px(6.0), top + side / 2), style)).map_err(failed)?;
        x += side + px(30.0) + wide;
    }
    Ok(())
}

fn draw_bars<B: DrawingBackend>(area: &DrawingArea<B, Shift>, plot: &Bars, density: u32) -> Result<(), String> {
    let failed = |e: DrawingAreaErrorKind<B::ErrorType>| format!("cannot draw: {e}");
    let px = |n: f64| px(n, density);
    let font = |size: f64, h, v| font(size, density, h, v);
    let names: Vec<&str> = plot.series.iter().map(|s| s.name.as_str()).collect();
    draw_head(area, plot.title, plot.about, &names, density)?;

    let heights =
        plot.series.iter().flat_map(|s| s.values.iter().flatten()).map(|v| v.interval.map_or(v.value, |i| i.1));
    let highest = heights.filter(|h| h.is_finite()).fold(plot.reference.unwrap_or(0.0), f64::max);
    let n_groups = plot.groups.len().max(1) as f64;
    let mut chart = ChartBuilder::on(area)
        .margin_top(px(100.0))
        .margin_right(px(24.0))
        .margin_bottom(px(40.0))
        .margin_left(px(16.0))
        .y_label_area_size(px(64.0))
        .build_cartesian_2d(0.0..n_groups, 0.0..if highest > 0.0 { highest * 1.08 } else { 1.0 })
        .map_err(failed)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .disable_x_axis()
        .y_desc(plot.y_label)
        .y_labels(10)
        .y_label_formatter(&|y| short(*y))
        .light_line_style(TRANSPARENT)
        .bold_line_style(FAINT.stroke_width(density))
        .axis_style(INK.stroke_width(density))
        .label_style(font(14.0, HPos::Left, VPos::Center))
        .axis_desc_style(font(16.0, HPos::Left, VPos::Top))
        .draw()
        .map_err(failed)?;

    // The positions of bars in whole pixels, so that the gaps between them are equal.
    let plane = chart.plotting_area();
    let bar = FILLED / plot.series.len().max(1) as f64;
    for (i, series) in plot.series.iter().enumerate() {
        for (group, value) in series.values.iter().enumerate() {
            let Some(Value { value, interval }) = *value else { continue };
            let left = group as f64 + (1.0 - FILLED) / 2.0 + bar * i as f64;
            let (middle, right) = (left + bar / 2.0, left + bar * 0.94);
            plane.draw(&Rectangle::new([(left, 0.0), (right, value)], color(i).filled())).map_err(failed)?;
            let mut top = value;
            if let Some((low, high)) = interval {
                let line = |ends| PathElement::new(ends, INK.stroke_width(density));
                plane.draw(&line(vec![(middle, low), (middle, high)])).map_err(failed)?;
                for end in [low, high] {
                    plane.draw(&line(vec![(middle - bar * 0.15, end), (middle + bar * 0.15, end)])).map_err(failed)?;
                }
                top = high;
            }
            let mut at = plane.map_coordinate(&(middle, top));
            // The number must not cross the horizontal line.
            if let Some(across) = plot.reference.map(|y| plane.map_coordinate(&(middle, y)).1)
                && (at.1 - px(14.0)..at.1 + px(1.0)).contains(&across)
            {
                at.1 = across;
            }
            let style = font(11.0, HPos::Center, VPos::Bottom);
            area.draw(&Text::new(short(value), (at.0, at.1 - px(3.0)), style)).map_err(failed)?;
        }
    }
    for (group, name) in plot.groups.iter().enumerate() {
        let at = plane.map_coordinate(&(group as f64 + 0.5, 0.0));
        let style = font(15.0, HPos::Center, VPos::Top);
        area.draw(&Text::new(*name, (at.0, at.1 + px(10.0)), style)).map_err(failed)?;
    }
    for (y, width) in plot.reference.map(|y| (y, 2)).into_iter().chain([(0.0, 1)]) {
        let line = PathElement::new(vec![(0.0, y), (n_groups, y)], INK.stroke_width(width * density));
        plane.draw(&line).map_err(failed)?;
    }
    area.present().map_err(failed)
}

fn draw_lines<B: DrawingBackend>(area: &DrawingArea<B, Shift>, plot: &Lines, density: u32) -> Result<(), String> {
    let failed = |e: DrawingAreaErrorKind<B::ErrorType>| format!("cannot draw: {e}");
    let px = |n: f64| px(n, density);
    let font = |size: f64, h, v| font(size, density, h, v);
    let names: Vec<&str> = plot.lines.iter().map(|l| l.name.as_str()).collect();
    draw_head(area, plot.title, plot.about, &names, density)?;
    let points = || plot.lines.iter().flat_map(|l| &l.points).filter(|(x, v)| *x > 0.0 && v.value > 0.0);
    let around = |of: fn(&(f64, Value)) -> f64| {
        let low = points().map(of).fold(f64::INFINITY, f64::min);
        let high = points().map(of).fold(0.0, f64::max);
        if low <= high { low / 1.3..high * 1.3 } else { 0.1..10.0 }
    };
    let mut chart = ChartBuilder::on(area)
        .margin_top(px(100.0))
        .margin_right(px(40.0))
        .margin_bottom(px(16.0))
        .margin_left(px(16.0))
        .x_label_area_size(px(48.0))
        .y_label_area_size(px(64.0))
        .build_cartesian_2d(around(|p| p.0).log_scale(), around(|p| p.1.value).log_scale())
        .map_err(failed)?;
    chart
        .configure_mesh()
        .x_desc(plot.x_label)
        .y_desc(plot.y_label)
        .x_label_formatter(&|x| short(*x))
        .y_label_formatter(&|y| short(*y))
        .light_line_style(TRANSPARENT)
        .bold_line_style(FAINT.stroke_width(density))
        .axis_style(INK.stroke_width(density))
        .label_style(font(14.0, HPos::Left, VPos::Center))
        .axis_desc_style(font(16.0, HPos::Left, VPos::Top))
        .draw()
        .map_err(failed)?;
    let plane = chart.plotting_area();
    for (i, line) in plot.lines.iter().enumerate() {
        let all: Vec<(f64, Value)> = line.points.iter().copied().filter(|(x, v)| *x > 0.0 && v.value > 0.0).collect();
        if line.labels.is_empty() {
            let path: Vec<(f64, f64)> = all.iter().map(|(x, v)| (*x, v.value)).collect();
            plane.draw(&PathElement::new(path, color(i).stroke_width(2 * density))).map_err(failed)?;
        }
        for (k, (x, v)) in all.iter().enumerate() {
            if let Some((low, high)) = v.interval.filter(|i| i.0 > 0.0) {
                let path = vec![(*x, low), (*x, high)];
                plane.draw(&PathElement::new(path, color(i).stroke_width(density))).map_err(failed)?;
            }
            plane.draw(&Circle::new((*x, v.value), px(4.0), color(i).filled())).map_err(failed)?;
            if let Some(label) = line.labels.get(k) {
                let at = plane.map_coordinate(&(*x, v.value));
                // Names are to the right and to the left of their points in turns, because neighbors would overlap.
                let (dx, side) = if k % 2 == 0 { (8.0, HPos::Left) } else { (-8.0, HPos::Right) };
                let style = font(13.0, side, VPos::Center);
                area.draw(&Text::new(label.as_str(), (at.0 + px(dx), at.1), style)).map_err(failed)?;
            }
        }
    }
    area.present().map_err(failed)
}

fn color(i: usize) -> RGBColor {
    COLORS[i % COLORS.len()]
}

/// A number with three digits, without zeros at the end. Thousands and millions have letters.
fn short(x: f64) -> String {
    for (unit, letter) in [(1e6, "M"), (1e3, "k")] {
        if x.abs() >= 10.0 * unit || x.abs() >= unit && x % unit == 0.0 {
            return short(x / unit) + " " + letter;
        }
    }
    let digits = if x.abs() < 9.995 { 2 } else { usize::from(x.abs() < 99.95) };
    let text = format!("{x:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_bars_with_holes_and_intervals() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("bars");
        let value = |value, interval| Some(Value { value, interval });
        let series = [
            Series { name: "four lanes".into(), values: vec![value(2.5, Some((2.0, 3.0))), None] },
            Series { name: "eight lanes".into(), values: vec![value(120.0, None), value(1.0, None)] },
        ];
        let plot = Bars {
            title: "Speedups",
            about: "of this test",
            y_label: "times",
            groups: &["one", "two"],
            series: &series,
            reference: Some(1.0),
        };
        bars(&plot, &file).expect("a plot");
        let svg = std::fs::read_to_string(file.with_extension("svg")).expect("an SVG");
        // Two squares of the legend, three bars and the background.
        assert_eq!(svg.matches("<rect").count(), 6, "{svg}");
        for text in ["Speedups", "four lanes", "2.5", "120"] {
            assert!(svg.contains(text), "no {text} in {svg}");
        }
        let png = Image::read(&file.with_extension("png")).expect("a PNG");
        assert_eq!((png.width, png.height, png.channels), (SIZE.0 * DENSITY, SIZE.1 * DENSITY, 3));
        assert!(COLORS[..2].iter().all(|c| png.pixels.chunks(3).any(|p| p == [c.0, c.1, c.2])));
    }

    #[test]
    fn draws_lines_over_logarithmic_axes() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("lines");
        let point = |x, value| (x, Value { value, interval: None });
        let lines_of = [
            Line { name: "roof".into(), points: vec![point(0.1, 1.0), point(10.0, 100.0)], labels: Vec::new() },
            Line {
                name: "kernels".into(),
                points: vec![point(1.0, 5.0), point(0.0, 1.0)],
                labels: vec!["blur".into()],
            },
        ];
        let plot = Lines {
            title: "Roofline",
            about: "of this test",
            x_label: "flop/byte",
            y_label: "GFLOP/s",
            lines: &lines_of,
        };
        lines(&plot, &file).expect("a plot");
        let svg = std::fs::read_to_string(file.with_extension("svg")).expect("an SVG");
        // Points without a place on a logarithmic axis are left out.
        assert_eq!(svg.matches("<circle").count(), 3, "{svg}");
        for text in ["Roofline", "kernels", "blur", "flop/byte"] {
            assert!(svg.contains(text), "no {text} in {svg}");
        }
        // A picture without lines is not an error.
        lines(&Lines { lines: &[], ..plot }, &file).expect("an empty plot");
    }

    #[test]
    fn numbers_have_three_digits_at_most() {
        let found = [0.0, 0.5, 1.0, 9.87, 20.04, 123.4, 1234.5, 1e5, 1e6].map(short);
        assert_eq!(found, ["0", "0.5", "1", "9.87", "20", "123", "1234", "100 k", "1 M"]);
    }
}
