//! Draws a search as SVG: bars of the fastest variants. The picture is simple text, so the compiler needs no library
//! for it.

use super::search::Estimate;
use std::fmt::Write;

/// A bar of the picture, for one variant.
pub struct Bar {
    /// The values of the variant.
    pub name: String,
    /// The time of the variant.
    pub seconds: Estimate,
    /// Whether it is the program as written.
    pub written: bool,
    /// Whether it was chosen.
    pub chosen: bool,
}

const WIDTH: f64 = 960.0;
const ROW: f64 = 24.0;
const TOP: f64 = 76.0;
/// The width in pixels for the numbers to the right of the bars.
const RIGHT: f64 = 110.0;
/// The approximate width of a letter in pixels.
const LETTER: f64 = 7.5;
const LONGEST: usize = 60;
/// Colors of Okabe and Ito's palette, which color-blind people can tell apart, with their labels.
const COLORS: [(&str, &str); 3] = [("#e69f00", "as written"), ("#0072b2", "chosen"), ("#56b4e9", "others")];

/// The picture as SVG. `title` and `about` are written above the bars.
pub fn svg(title: &str, about: &str, bars: &[Bar]) -> String {
    let longest = bars.iter().map(|b| b.name.chars().count()).max().unwrap_or(0).min(LONGEST);
    let left = 32.0 + longest as f64 * LETTER;
    let greatest = bars.iter().map(|b| b.seconds.high).fold(f64::MIN_POSITIVE, f64::max);
    let x = |seconds: f64| left + seconds / greatest * (WIDTH - RIGHT - left);
    let height = TOP + ROW * bars.len() as f64 + 44.0;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"sans-serif\" font-size=\"13\" fill=\"#222\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
    );
    text(&mut out, 24.0, 32.0, "font-size=\"20\"", title);
    text(&mut out, 24.0, 54.0, "fill=\"#555\"", about);
    for (i, bar) in bars.iter().enumerate() {
        let y = TOP + ROW * i as f64;
        let name: String = bar.name.chars().take(LONGEST).collect();
        text(&mut out, left - 8.0, y + 14.0, "text-anchor=\"end\"", &name);
        let color = COLORS[if bar.written { 0 } else { 2 - usize::from(bar.chosen) }].0;
        let (end, low, high) = (x(bar.seconds.median), x(bar.seconds.low), x(bar.seconds.high));
        rectangle(&mut out, left, y, end - left, ROW - 5.0, color);
        let middle = y + (ROW - 5.0) / 2.0;
        let _ = writeln!(
            out,
            "<path d=\"M{low:.1} {middle:.1}H{high:.1}M{low:.1} {0:.1}v8M{high:.1} {0:.1}v8\" stroke=\"#222\" fill=\"none\"/>",
            middle - 4.0
        );
        text(&mut out, high + 6.0, y + 14.0, "", &format!("{} ms", milliseconds(bar.seconds.median)));
    }
    for (i, (color, what)) in COLORS.iter().enumerate() {
        let at = 24.0 + 120.0 * i as f64;
        rectangle(&mut out, at, height - 25.0, 12.0, 12.0, color);
        text(&mut out, at + 18.0, height - 14.0, "", what);
    }
    out + "</svg>\n"
}

fn text(out: &mut String, x: f64, y: f64, style: &str, text: &str) {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let _ = writeln!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\" {style}>{text}</text>");
}

fn rectangle(out: &mut String, x: f64, y: f64, width: f64, height: f64, color: &str) {
    let _ =
        writeln!(out, "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{color}\"/>");
}

/// A time in milliseconds, with four digits.
pub fn milliseconds(seconds: f64) -> String {
    let ms = seconds * 1e3;
    let digits = 3 - (ms.abs().max(1e-3).log10().floor() as i32).clamp(-3, 3);
    format!("{ms:.*}", digits as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_a_bar_for_each_variant() {
        let bar = |name: &str, ms: f64, written, chosen| Bar {
            name: name.into(),
            seconds: Estimate { median: ms / 1e3, low: ms * 0.9e-3, high: ms * 1.1e-3 },
            written,
            chosen,
        };
        let bars =
            [bar("F = a < b", 12.0, false, true), bar("F = c", 24.0, true, false), bar("F = d", 30.0, false, false)];
        let svg = svg("p & q", "of this test", &bars);
        // The background, three bars, and three squares of the legend.
        assert_eq!(svg.matches("<rect").count(), 7, "{svg}");
        for text in ["p &amp; q", "F = a &lt; b", "12.00 ms", "30.00 ms", "</svg>"] {
            assert!(svg.contains(text), "no {text} in {svg}");
        }
        // The lengths of bars are proportional to the times, and nothing is outside of the picture.
        let width = |color: &str| -> f64 {
            let line = svg.lines().find(|l| l.contains(color)).unwrap();
            line.split("width=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap()
        };
        assert!((width("#e69f00") / width("#0072b2") - 2.0).abs() < 0.01, "{svg}");
        assert!(width("#56b4e9") < WIDTH);
    }

    #[test]
    fn times_have_four_digits() {
        let shown = [0.0, 1e-6, 0.012_345, 1.5, 12.0, 1234.5].map(milliseconds);
        assert_eq!(shown, ["0.000000", "0.001000", "12.35", "1500", "12000", "1234500"]);
    }
}
