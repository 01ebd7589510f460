//! Functions that are specialized while a program runs, beside the same functions as they are and as C++ templates: how fast they are,
//! how long they take to build, and after how many calls that pays.

use nyala_embed::{Compiler, Function, In, Out, Program, Slice, Type};
use nyala_runtime::Library;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

type Result<T> = std::result::Result<T, String>;

/// How often each version is measured, in turns, if the second argument does not say it, and for how long at least.
const TURNS: usize = 15;
const TURN: Duration = Duration::from_millis(4);

fn text(e: impl std::fmt::Display) -> String {
    e.to_string()
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("{}", e.trim_end());
            ExitCode::FAILURE
        }
    }
}

/// Compiles the templates, and loads them.
fn templates(folder: &Path, out: &Path) -> Result<Library> {
    let object = out.join("templates.so");
    let status = Command::new("g++")
        // Ours multiplies and adds as the source says.
        .args(["-std=c++20", "-O3", "-march=native", "-ffp-contract=off", "-shared", "-fPIC", "-o"])
        .arg(&object)
        .arg(folder.join("templates.cpp"))
        .status();
    match status {
        Ok(status) if status.success() => Library::open(&object),
        Ok(status) => Err(format!("g++: {status}")),
        Err(e) => Err(format!("cannot start g++: {e}")),
    }
}

/// A function of elements in and out, and a size.
type Handle<T> = Function<(In<T>, Out<T>, i32), ()>;

/// A function of elements in and out, a size, and a slice, which is an argument.
type Generic<T> = Function<(In<T>, Out<T>, i32, Slice<T>), ()>;
type GenericFilter = Function<(In<f64>, Out<f64>, i32, Slice<f64>, i32), ()>;

struct Bench {
    slow: Program,
    fast: Program,
    templates: Library,
    /// Times of the function as it is over those of the variant.
    ratios: Vec<f64>,
    turns: usize,
}

/// A function of elements in and out; sizes and values are in it.
type Call<'a, T> = Box<dyn Fn(&[T], &mut [T]) + 'a>;

type Made<T> = std::result::Result<T, nyala_embed::Error>;

impl Bench {
    /// Measures a function: as it is, fixed, and the template. `make` gives a program's function with the values as arguments, and
    /// fixed to them.
    fn row<'a, T: Type + Into<f64> + Default>(
        &mut self,
        (name, template): (&str, &str),
        generic: impl Fn(&Program) -> Made<Call<'a, T>>,
        fixed: impl Fn(&Program) -> Made<Call<'a, T>>,
        (from, n, n_out): (&[T], i32, usize),
    ) -> Result<()> {
        let started = Instant::now();
        let first = fixed(&self.slow).map_err(text)?;
        let first_tier = started.elapsed();
        let generic = generic(&self.fast).map_err(text)?;
        let started = Instant::now();
        let fixed = fixed(&self.fast).map_err(text)?;
        let build = started.elapsed();
        let address = self.templates.symbol(template).ok_or_else(|| format!("no template `{template}`"))?;
        // SAFETY: the templates have this type.
        let template: extern "C" fn(*const T, *mut T, i32) = unsafe { std::mem::transmute(address) };

        let mut results = Vec::new();
        for which in 0..4 {
            let mut out = vec![T::default(); n_out];
            match which {
                0 => generic(from, &mut out),
                1 => fixed(from, &mut out),
                2 => template(from.as_ptr(), out.as_mut_ptr(), n),
                _ => first(from, &mut out),
            }
            results.push(out.into_iter().map(Into::into).collect::<Vec<f64>>());
        }
        for other in &results[1..] {
            let differs = |(a, b): (&f64, &f64)| (a - b).abs() > 1e-9 * a.abs().max(b.abs()).max(1.0);
            if results[0].iter().zip(other).any(differs) {
                return Err(format!("{name}: other results"));
            }
        }

        let mut out = vec![T::default(); n_out];
        let mut times = [Vec::new(), Vec::new(), Vec::new()];
        let mut counts = [1u32; 3];
        for turn in 0..=self.turns {
            for (which, times) in times.iter_mut().enumerate() {
                let started = Instant::now();
                for _ in 0..counts[which] {
                    match which {
                        0 => generic(from, &mut out),
                        1 => fixed(from, &mut out),
                        _ => template(from.as_ptr(), out.as_mut_ptr(), n),
                    }
                }
                let each = started.elapsed().as_secs_f64() / f64::from(counts[which]);
                match turn {
                    0 => counts[which] = (TURN.as_secs_f64() / each).clamp(1.0, 1e6) as u32,
                    _ => times.push(each),
                }
            }
        }
        let [generic, fixed, template] = times.map(median);
        let pays = if generic > fixed { build.as_secs_f64() / (generic - fixed) } else { f64::INFINITY };
        let ms = |d: Duration| d.as_secs_f64() * 1e3;
        println!(
            "{name:<22}{:>11.2}{:>11.2}{:>11.2}{:>9.2}{:>10.2}{:>10.1}{:>9.1}{:>9.0}",
            generic * 1e6,
            fixed * 1e6,
            template * 1e6,
            generic / fixed,
            fixed / template,
            ms(first_tier),
            ms(build),
            pays
        );
        self.ratios.push(generic / fixed);
        Ok(())
    }
}

/// How long it takes to find a variant that is there.
fn find(program: &Program, values: &[f64], turns: usize) -> Result<f64> {
    // SAFETY: nothing is called.
    let dots = unsafe { program.partial("dots") }.map_err(text)?;
    let find = || -> std::result::Result<Handle<f64>, nyala_embed::Error> { dots.fix("a", values)?.build() };
    find().map_err(text)?;
    let mut times = Vec::new();
    for _ in 0..turns {
        let started = Instant::now();
        for _ in 0..10_000 {
            std::hint::black_box(find().map_err(text)?);
        }
        times.push(started.elapsed().as_secs_f64() / 10_000.0);
    }
    Ok(median(times))
}

fn run() -> Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let out = std::env::args().nth(1).unwrap_or_else(|| "out/bench".into());
    std::fs::create_dir_all(&out).map_err(|e| format!("cannot make {out}: {e}"))?;
    let turns = std::env::args().nth(2).and_then(|turns| turns.parse().ok()).unwrap_or(TURNS);
    let path = folder.join("programs.impala");
    let compile = |level| Compiler::new().opt_level(level).compile(&path).map_err(text);
    let (slow, fast) = (compile(0)?, compile(3)?);
    let templates = templates(folder, Path::new(&out))?;
    let mut bench = Bench { slow, fast, templates, ratios: Vec::new(), turns };
    println!("us of a call; build in ms at -O0 and at full speed; calls after which the latter pays");
    println!(
        "{:<22}{:>11}{:>11}{:>11}{:>9}{:>10}{:>10}{:>9}{:>9}",
        "", "generic", "fixed", "template", "gen/fix", "fix/templ", "-O0", "-O3", "pays"
    );
    let numbers: Vec<f64> = (0..1 << 18).map(|i| f64::from(i % 997) / 997.0 + 0.01).collect();

    // SAFETY: the functions access as many elements as their sizes say, which the arrays below have.
    let handle = |program: &Program, name: &str| unsafe { program.partial(name) };
    bench.row(
        ("power 72", "powers_72"),
        |program| {
            let f: Function<(In<f64>, Out<f64>, i32, i32), ()> = handle(program, "powers")?.build()?;
            Ok(Box::new(move |a, b| f.call((a, b, 1000, 72))))
        },
        |program| {
            let f: Handle<f64> = handle(program, "powers")?.fix("n", 72)?.build()?;
            Ok(Box::new(move |a, b| f.call((a, b, 1000))))
        },
        (&numbers[..1000], 1000, 1000),
    )?;
    for n in [3usize, 8, 32] {
        let a: Vec<f64> = (0..n).map(|k| if k % 3 == 1 { 0.5 + k as f64 } else { 0.0 }).collect();
        bench.row(
            (&format!("sparse dot of {n}"), &format!("dots_{n}")),
            |program| {
                let f: Generic<f64> = handle(program, "dots")?.build()?;
                let a = a.clone();
                Ok(Box::new(move |rows, out| f.call((rows, out, 1000, &a))))
            },
            |program| {
                let f: Handle<f64> = handle(program, "dots")?.fix("a", &a[..])?.build()?;
                Ok(Box::new(move |rows, out| f.call((rows, out, 1000))))
            },
            (&numbers, 1000, 1000),
        )?;
    }
    let ring: Vec<f64> = (0..81)
        .map(|k: i32| {
            let d = (k / 9 - 4).pow(2) + (k % 9 - 4).pow(2);
            if (4..=16).contains(&d) { 1.0 / f64::from(1 + d) } else { 0.0 }
        })
        .collect();
    bench.row(
        ("filter of 9 by 9", "filter_9"),
        |program| {
            let f: GenericFilter = handle(program, "filter")?.build()?;
            let ring = ring.clone();
            Ok(Box::new(move |image, out| f.call((image, out, 256, &ring, 9))))
        },
        |program| {
            let f: Handle<f64> = handle(program, "filter")?.fix("weights", &ring[..])?.fix("size", 9)?.build()?;
            Ok(Box::new(move |image, out| f.call((image, out, 256))))
        },
        (&numbers, 256, 248 * 248),
    )?;
    let code: [f64; 30] = [
        4., 0., 3., 0., 1., 2.5, 3., 0., 2., 0.25, 5., 0., 4., 0., 3., 0., 1., -1., 2., 0.5, 3., 0., 1., 7., 5., 0.,
        2., 3., 0., 0.,
    ];
    bench.row(
        ("interpreter", "interpret"),
        |program| {
            let f: Generic<f64> = handle(program, "interpret")?.build()?;
            Ok(Box::new(move |x, y| f.call((x, y, 1000, &code))))
        },
        |program| {
            let f: Handle<f64> = handle(program, "interpret")?.fix("code", &code)?.build()?;
            Ok(Box::new(move |x, y| f.call((x, y, 1000))))
        },
        (&numbers[..1000], 1000, 1000),
    )?;
    let pattern = b"ab*c.d";
    let letter = |i: u64| b'a' + (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60) as u8 % 4;
    let letters: Vec<u8> = (0..20_000).map(letter).collect();
    bench.row(
        ("pattern ab*c.d", "matches"),
        |program| {
            let f: Generic<u8> = handle(program, "matches")?.build()?;
            Ok(Box::new(move |x, y| f.call((x, y, 20_000, pattern))))
        },
        |program| {
            let f: Handle<u8> = handle(program, "matches")?.fix("pattern", pattern)?.build()?;
            Ok(Box::new(move |x, y| f.call((x, y, 20_000))))
        },
        (&letters, 20_000, 20_000),
    )?;
    for n in [16usize, 64, 512] {
        let mut roots = Vec::new();
        let mut step = n;
        while step > 1 {
            for k in 0..step / 2 {
                let angle = -2.0 * std::f64::consts::PI * k as f64 / step as f64;
                roots.extend([angle.cos(), angle.sin()]);
            }
            step /= 2;
        }
        let size = n as i32;
        bench.row(
            (&format!("FFT of {n}"), &format!("fft_{n}")),
            |program| {
                let f: Generic<f64> = handle(program, "fft")?.build()?;
                let roots = roots.clone();
                Ok(Box::new(move |from, d| f.call((from, d, size, &roots))))
            },
            |program| {
                let f = handle(program, "fft")?.fix("roots", &roots[..])?.fix("n", size)?;
                let f: Function<(In<f64>, Out<f64>), ()> = f.build()?;
                Ok(Box::new(move |from, d| f.call((from, d))))
            },
            (&numbers[..2 * n], size, 2 * n),
        )?;
    }
    let mean = bench.ratios.iter().map(|r| r.ln()).sum::<f64>() / bench.ratios.len() as f64;
    println!("generic / fixed, geometric mean: {:.2}", mean.exp());
    for n in [4, 32] {
        println!("a variant is found by {} bytes in {:.0} ns", n * 8, find(&bench.fast, &numbers[..n], turns)? * 1e9);
    }
    Ok(())
}
