//! Compile times, to the residual program and to flat code, of programs whose size grows by a factor of 16, and the
//! slopes of log time over log size: unrolled loops, functions, instances of libraries, stages of a pipeline, chains
//! of joins.

use super::{Out, Plan, pictures, slope};
use crate::plots::{Line, Lines, Value};
use crate::root;
use nyala_driver::{Failed, Files, FrontEnd, Options};
use std::fmt::Write as _;

/// A family of programs: its name, sizes, and a function that makes the program of a size.
type Family = (&'static str, [usize; FULL], fn(usize) -> Result<String, String>);

const FAMILIES: &[Family] = &[
    ("unrolled, operations left: steps", UNROLLED, unrolled),
    ("unrolled, stores left: steps", UNROLLED, stores),
    ("unrolled, nothing left: steps", UNROLLED, nothing),
    ("functions, each with a loop", FUNCTIONS, |n| Ok(super::functions_program(n))),
    ("functions that call copies of the last ones", FUNCTIONS, |n| Ok(functions(n, |k| [k - 1, k - 2, k - 3]))),
    ("functions that call copies all over the place", FUNCTIONS, |n| Ok(functions(n, |k| [k - 1, k / 2, k / 3]))),
    ("calls, one after the other", [3_000, 12_000, 48_000], calls),
    ("image stencil with borders, tiled: reads", [49, 196, 784], stencil),
    ("matcher of lesson 13: items of the pattern", [160, 640, 2_560], matcher),
    ("image pipeline: stages that keep their rows", [8, 32, 128], stages),
    ("joins of numbers", JOINS, joins),
    ("joins with memory", JOINS, joins_with_memory),
    ("joins, half of them known", JOINS, known_joins),
    ("joins in an unrolled loop", JOINS, unrolled_joins),
    ("loops, one after the other", [750, 3_000, 12_000], loops),
];
/// The sizes of each family.
const FULL: usize = 3;
const UNROLLED: [usize; 3] = [62_500, 250_000, 1_000_000];
const FUNCTIONS: [usize; 3] = [625, 2_500, 10_000];
const JOINS: [usize; 3] = [3_000, 12_000, 48_000];
const ROUNDS: usize = 3;
/// More bytes than the largest programs need.
const MEMORY: usize = 1 << 30;
const PAGE: usize = 4096;

/// Measures the families whose name, after `slopes`, contains `filter`.
pub fn run(plan: &Plan, out: &mut Out) -> Result<(), String> {
    let wanted = |name: &str| name.contains(plan.part("slopes"));
    let _ = writeln!(
        out,
        "growth, processor time in ms, medians of {ROUNDS} rounds\n  {:<44} {:>9} {:>10} {:>6} {:>10} {:>6}",
        "", "size", "residual", "slope", "flat", "slope"
    );
    for &(name, sizes, program) in FAMILIES.iter().filter(|f| wanted(f.0)) {
        // The brief form has the smallest size only.
        let sizes = if plan.is_brief { &sizes[..1] } else { &sizes[..] };
        let programs = sizes.iter().map(|&size| program(size)).collect::<Result<Vec<_>, _>>()?;
        let mut times = [const { (Vec::new(), Vec::new()) }; 3];
        for _ in 0..ROUNDS {
            for ((&size, program), times) in sizes.iter().zip(&programs).zip(&mut times) {
                // Small programs run more often, so that all sizes take equal time, and other load affects them alike.
                let n = sizes[sizes.len() - 1] / size;
                touch_memory();
                let runs = (0..n).map(|_| super::on_big_stack(|| once(program))).collect::<Result<Vec<_>, _>>()?;
                times.0.push(runs.iter().map(|t| t.0).sum::<f64>() / n as f64);
                times.1.push(runs.iter().map(|t| t.1).sum::<f64>() / n as f64);
            }
        }
        let (mut residual, mut flat) = (Vec::new(), Vec::new());
        for (i, (size, times)) in sizes.iter().zip(&mut times).enumerate() {
            residual.push((*size as f64, super::median(&mut times.0)));
            flat.push((*size as f64, super::median(&mut times.1)));
            let name = if i == 0 { name } else { "" };
            let of = |points: &[(f64, f64)]| match points.len() == FULL {
                true => format!("{:.2}", slope(points)),
                false => String::new(),
            };
            let (first, second) = (of(&residual), of(&flat));
            let (a, b) = (residual[i].1, flat[i].1);
            let _ = writeln!(out, "  {name:<44} {size:>9} {a:>10.1} {first:>6} {b:>10.1} {second:>6}");
        }
    }
    let _ = writeln!(out);
    if wanted("image pipeline: stages") && !plan.is_brief {
        let _ = write!(out, "{}", draw_stages()?);
    }
    Ok(())
}

/// Seconds to flat code by the stages of a chain of `gaussian3` while each stage was specialized once for each path to it, on the
/// machine of `bench/README.md`'s section; the last one was ended after 25 s, with 5.5 GB.
const BEFORE: &[(usize, f64)] = &[(2, 0.45), (3, 2.5), (4, 25.0)];
const CHAIN: [usize; 6] = [2, 3, 4, 8, 16, 32];

/// Measures pipelines of some lengths, and draws the time over the number of stages.
fn draw_stages() -> Result<String, String> {
    let mut text = "time to flat code by stages, ms\n".to_string();
    let only = |value| Value { value, interval: None };
    let before = BEFORE.iter().map(|&(n, s)| (n as f64, only(1e3 * s))).collect();
    let mut lines = vec![Line { name: "chain of gaussian3, before".into(), points: before, labels: Vec::new() }];
    for (name, filters) in [("chain of gaussian3", &FILTERS[..1]), ("mix of four filters", &FILTERS)] {
        let _ = write!(text, "  {name:<22}");
        let programs = CHAIN.map(|n| pipeline(n, filters));
        let mut times = CHAIN.map(|_| Vec::new());
        for _ in 0..super::suites::ROUNDS {
            for (program, times) in programs.iter().zip(&mut times) {
                touch_memory();
                times.push(super::on_big_stack(|| once(program))?.1);
            }
        }
        let mut points = Vec::new();
        for (n, times) in CHAIN.into_iter().zip(times) {
            let value = pictures::value(times.into_iter());
            let _ = write!(text, " {n}: {:.1}", value.value);
            points.push((n as f64, value));
        }
        text.push('\n');
        lines.push(Line { name: name.into(), points, labels: Vec::new() });
    }
    let plot = Lines {
        title: "Image pipelines: compile time by stages",
        about: &pictures::about("processor time to flat code", "lower is better"),
        x_label: "stages, each of which keeps its rows",
        y_label: "ms",
        lines: &lines,
    };
    let file = pictures::file("slopes", "stages")?;
    crate::plots::lines(&plot, &file.path)?;
    text.push_str(&file.drawn);
    Ok(text)
}

/// Touches memory before a measurement. A virtual machine returns memory that was not used for some seconds to its
/// host, and the first access then takes up to twenty times as long. This is not the compiler's cost, and small
/// programs would not have it.
fn touch_memory() {
    let mut memory: Vec<u8> = Vec::with_capacity(MEMORY);
    memory.spare_capacity_mut().iter_mut().step_by(PAGE).for_each(|byte| _ = std::hint::black_box(byte.write(1)));
}

/// The milliseconds to the residual program, and to flat code.
fn once(program: &str) -> Result<(f64, f64), String> {
    let mut times = (0.0, 0.0);
    let start = processor_time()?;
    let options = Options { verify: false, ..Options::default() };
    let mut compile = || -> Result<(), Failed> {
        let residual = FrontEnd::new(options.clone(), Files::of("bench.impala", program)).graph()?.residual()?;
        times.0 = processor_time().unwrap_or(f64::NAN);
        residual.flat()?;
        times.1 = processor_time().unwrap_or(f64::NAN);
        Ok(())
    };
    compile().map_err(|failed| failed.render(false))?;
    Ok((times.0 - start, times.1 - start))
}

/// The processor time of this thread in milliseconds, in which other load on the machine does not count.
fn processor_time() -> Result<f64, String> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").map_err(|e| format!("no processor time: {e}"))?;
    let ns = text.split(' ').next().and_then(|ns| ns.parse::<f64>().ok());
    ns.map(|ns| ns / 1e6).ok_or_else(|| format!("no processor time in `{text}`"))
}

fn unrolled(n: usize) -> Result<String, String> {
    Ok(super::unroll_program(n))
}

fn stores(n: usize) -> Result<String, String> {
    Ok(format!("extern fn run(a: &mut [i32]) -> () {{ for i in unroll(0, {n}) {{ a(i) = i ^ 5; }} }}\n"))
}

fn nothing(n: usize) -> Result<String, String> {
    Ok(format!(
        "extern fn run() -> i32 {{ let mut s = 1; for i in unroll(0, {n}) {{ s = s * 3 + (i ^ s) & 255; }} s }}\n"
    ))
}

/// `n` functions that are called with constants from several places, so that there are copies with calls between them.
fn functions(n: usize, callees: impl Fn(usize) -> [usize; 3]) -> String {
    let first = |k: usize| format!("fn f{k}(a: i32, x: i32) -> i32 {{ x + a }}\n");
    let mut text: String = (0..3).map(first).collect();
    for k in 3..n {
        let [f, g, h] = callees(k);
        let _ = writeln!(
            text,
            "fn f{k}(@a: i32, x: i32) -> i32 {{ if x < a {{ f{f}(3, x * {k}) }} else {{ f{g}(5, x) ^ f{h}(5, x + a) }} }}"
        );
    }
    let last = n - 1;
    let _ = writeln!(text, "extern fn run(x: i32) -> i32 {{ f{last}(1, x) + f{last}(2, x) }}");
    text
}

/// Code without branches that adds up the results of calls.
fn calls(n: usize) -> Result<String, String> {
    let calls: String = (0..n).map(|i| format!("s += h(x + {i});\n")).collect();
    Ok(format!(
        "fn h(x: i32) -> i32 {{ x ^ (x >> 2) }}\nextern fn run(x: i32) -> i32 {{ let mut s = 0;\n{calls} s }}\n"
    ))
}

/// The sum of a square of neighboring pixels.
fn stencil(n: usize) -> Result<String, String> {
    let side = n.isqrt();
    let (from, to) = (-(side as i32 / 2), side as i32 - side as i32 / 2);
    let radius = side / 2;
    Ok(format!(
        "use image::*;
        fn @sum(read: BinOp, x: i32, y: i32) -> i32 {{
            let mut s = 0;
            for dy in unroll({from}, {to}) {{ for dx in unroll({from}, {to}) {{ s += read(x + dx, y + dy); }} }}
            s
        }}
        extern fn run(w: i32, h: i32, out: &mut [i32], inp: &mut [i32]) -> () {{
            let visit = plain(tile(256, 32, range, range));
            apply(img_i32(w, h, out), img_i32(w, h, inp), handle_boundaries(clamp_to(w, h), {radius}, {radius}, visit), sum)
        }}\n"
    ))
}

const FILTERS: [&str; 4] = [
    "gaussian3(s, lanes(8))",
    "window(convolve(s, row_mask(3, BINOMIAL3)), lanes(8))",
    "window(pointwise(s, @|v| v * 0.5f), lanes(8))",
    "window(gaussian5(s, lanes(4)), lanes(8))",
];

fn stages(n: usize) -> Result<String, String> {
    Ok(pipeline(n, &FILTERS))
}

/// A chain of these filters in turns, each of which keeps the rows that the next one reads.
fn pipeline(n: usize, filters: &[&str]) -> String {
    let lines: String = (0..n).map(|i| format!("let s = {};\n", filters[i % filters.len()])).collect();
    format!(
        "use image::*;
        extern fn run(w: i32, h: i32) -> f32 {{
            let (from, to) = (make_plane[f32](w, h), make_plane[f32](w, h));
            let s = source(view(from), mirror);
            {lines} render(view(to), s, whole, lanes(8));
            view(to).get(0, 0)
        }}\n"
    )
}

fn matcher(n: usize) -> Result<String, String> {
    let path = root().join("examples/13_patterns.impala");
    let text = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let text = text.split("extern fn find_date").next().unwrap_or("");
    let items = ["a", "[b-d]", "e+", ".", "[^fg]"];
    let pattern: String = (0..n).map(|i| items[i % items.len()]).collect();
    Ok(format!(
        "{text}extern fn run(n: i32, s: &[u8]) -> i32 {{ let mut at = 0; count(\"{pattern}\", n, s, &mut at) }}\n"
    ))
}

/// A function of `n` statements.
fn sequence(params: &str, n: usize, statement: impl Fn(usize) -> String) -> String {
    let mut text = format!("{params} -> i32 {{\n    let mut s = x;\n");
    (0..n).for_each(|k| text += &statement(k));
    text + "    s\n}\n"
}

fn joins(n: usize) -> Result<String, String> {
    Ok(sequence("extern fn run(x: i32)", n, |k| format!("    if s & {} == 0 {{ s = s * 3 + {k}; }}\n", 1 << (k % 20))))
}

fn joins_with_memory(n: usize) -> Result<String, String> {
    Ok(sequence("extern fn run(x: i32, a: &mut [i32])", n, |k| {
        format!("    if a({}) > s {{ s = s * 3 + {k}; a({}) = s; }}\n", k % 100, k * 7 % 100)
    }))
}

fn known_joins(n: usize) -> Result<String, String> {
    let text = sequence("fn @go(x: i32, y: i32)", n, |k| {
        format!("    if {} > {} {{ s = s * 3 + {k}; }}\n", if k % 2 == 0 { "s" } else { "y" }, k % 30)
    });
    Ok(text + "extern fn run(x: i32) -> i32 { go(x, 15) }\n")
}

fn unrolled_joins(n: usize) -> Result<String, String> {
    Ok(format!(
        "extern fn run(x: i32) -> i32 {{ let mut s = x; for i in unroll(0, {n}) {{ if s & i == 0 {{ s = s * 3 + i; }} }} s }}\n"
    ))
}

fn loops(n: usize) -> Result<String, String> {
    let text = sequence("extern fn run(x: i32, a: &[i32])", n, |k| {
        format!("    for i in range({}, s) {{ s += a(i); }}\n    while s > {k} {{ s = s / 2; }}\n", k % 7)
    });
    Ok(text)
}
