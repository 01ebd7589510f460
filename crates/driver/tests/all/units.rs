//! A program that runs in memory is cut into units. It does the same, however it is cut; and an edit compiles only what it changes.

use nyala_driver::cache::Objects;
use nyala_driver::{Failed, Files, FrontEnd, Options};
use std::path::PathBuf;

/// What units have to share: a static that functions write, constants, callbacks, function values, a foreign function as a value,
/// recursion through several functions, calls in tail position, results in memory, vectors as arguments, strings.
const SHARING: &str = "\
extern \"C\" { fn abs(i32) -> i32; }
struct Big { a: [i64 * 9], n: i32 }
static mut count: i32 = 0;
static table = [3, 1, 4, 1, 5, 9, 2, 6];
static of_table: &[i32] = &table;

fn big(n: i32) -> Big { Big { a: [n as i64, .. 9], n: n } }
fn is_even(n: i32) -> bool { if n == 0 { true } else { is_odd(n - 1) } }
fn is_odd(n: i32) -> bool { if n == 0 { false } else { is_even(n - 1) } }
fn apply(f: fn(i32) -> i32, x: i32) -> i32 { count += 1; f(x) }
fn add(a: simd[f32 * 8], b: simd[f32 * 8]) -> simd[f32 * 8] { a + b }
fn at(i: i32) -> i32 { of_table(i & 7) + table(i & 3) }
fn says(n: i32) -> &[u8] { if n > 2 { \"many\" } else { \"few\" } }

fn all(n: i32) -> i32 {
    let mut sums: [i32 * 64];
    let scale = at(n);
    for i in par(0, 64) { sums(i) = i * scale + at(i) }
    let mut sum = 0;
    for i in range(0, 64) { sum += sums(i) }
    let x = [n as f32, .. 8];
    let v = add(simd[1f32, 2f32, 3f32, 4f32, 5f32, 6f32, 7f32, x(0)], simd[x(0), 1f32, 1f32, 1f32, 1f32, 1f32, 1f32, 1f32]);
    let b = big(n);
    sum += b.n + b.a(n & 7) as i32 + v(0) as i32 + v(7) as i32;
    sum += if is_even(n) { 1000 } else { 2000 };
    sum += apply(|x| x * scale, n) + apply(abs, -n) + apply(at, n);
    sum + says(n)(0) as i32 + count
}

extern fn five() -> i32 { all(5) }
extern fn both() -> i32 { five() * 10 + all(2) }
";

fn load(text: &str, options: Options, entry: &str) -> Result<(i32, Option<usize>), Failed> {
    let loaded = FrontEnd::new(options, Files::of("t.impala", text)).graph()?.residual()?.flat()?.load(&[])?;
    let kept = loaded.report.timings.iter().find(|t| t.pass == "native-cache").map(|t| t.size);
    Ok((loaded.call_i32(entry)?, kept))
}

#[expect(clippy::boxed_local, reason = "`map_err` gives it so")]
fn said(failed: Failed) -> String {
    failed.render(false)
}

#[test]
fn a_program_does_the_same_however_it_is_cut() -> Result<(), String> {
    let front = FrontEnd::new(Options::default(), Files::of("t.impala", SHARING));
    let graph = front.graph().map_err(said)?;
    for entry in ["five", "both"] {
        let expected = graph.interpret_number(entry).map_err(said)?;
        for max_unit in [0, 40, usize::MAX / 4] {
            for opt_level in [1, 3] {
                let (found, _) =
                    load(SHARING, Options { max_unit, opt_level, ..Options::default() }, entry).map_err(said)?;
                assert_eq!(found, expected, "{entry} at -O{opt_level}, with units of {max_unit} instructions");
            }
        }
    }
    Ok(())
}

/// Three functions that are no unit together.
fn edited(first: &str, inner: &str) -> String {
    let body = |k: usize, more: &str| -> String {
        let steps = (0..40).map(|i| format!("    if x % {} == {i} {{ s += x / {}; }}\n", i + 3, i + k + 2));
        format!(
            "fn f{k}(x: i32) -> i32 {{\n    let mut s = 0;\n{}{more}    assert(s < 100000);\n    s\n}}\n",
            steps.collect::<String>()
        )
    };
    format!(
        "{first}{}{}{}extern fn f(n: i32) -> i32 {{ f0(n) + f1(n) + f2(n) + f0(n + 1) + f1(n + 1) + f2(n + 1) }}\n\
         extern fn g() -> i32 {{ f(77) }}\n",
        body(0, ""),
        body(1, inner),
        body(2, "")
    )
}

#[test]
fn an_edit_compiles_only_what_it_changes() -> Result<(), String> {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("kept units");
    // Tests that ran before have left their cache there.
    let _ = std::fs::remove_dir_all(&folder);
    let options = || Options { cache: Some(Objects::at(folder.clone(), "this one".into())), ..Options::default() };
    let run = |text: &str| load(text, options(), "g").map_err(said);
    let text = edited("", "");
    let (first, kept) = run(&text)?;
    assert_eq!(kept, Some(0));
    let (again, all) = run(&text)?;
    assert_eq!(again, first);
    assert!(all >= Some(4), "{all:?}: f0, f1, f2, f and g, statics");
    // The places of the assertions are no part of the code.
    let (moved, kept) = run(&edited("// More\n// lines.\n", "    // And more.\n"))?;
    assert_eq!((moved, kept.map(|n| n + 2)), (first, all), "f1, whose lines have moved within it, and statics");
    let (changed, kept) = run(&edited("", "    s += 1;\n"))?;
    assert_eq!((changed, kept.map(|n| n + 2)), (first + 2, all), "f1 and statics");
    Ok(())
}

/// Whatever the size of a unit: LLVM joins the copies with their callers.
#[test]
fn a_large_function_has_copies_of_small_ones_in_loops() -> Result<(), String> {
    let loops: String = (0..40)
        .map(|k| {
            format!("    for i in range(0, n) {{ if before(a(i + {k}), a(i)) {{ s += i * {k} + s / {} }} }}\n", k + 2)
        })
        .collect();
    let text = format!(
        "fn before(x: i32, y: i32) -> bool {{ x % 7 < y % 5 }}\n\
         extern fn large(a: &[i32], n: i32) -> i32 {{\n    let mut s = 0;\n{loops}    s\n}}\n\
         extern fn other(a: &[i32]) -> bool {{ before(a(0), a(1)) | before(a(1), a(2)) }}\n"
    );
    let options = Options { max_unit: 40, ..Options::default() };
    let residual =
        FrontEnd::new(options, Files::of("t.impala", text)).graph().and_then(|g| g.residual()).map_err(said)?;
    let flat = residual.flat().map_err(said)?;
    let options = nyala_gen_llvm::Options { max_unit: 40, opt_level: 3, ..nyala_gen_llvm::Options::default() };
    let units = nyala_gen_llvm::emit_units(&flat.module, &options, None).map_err(|e| e.message)?;
    let large = units.iter().find(|u| u.text.contains("@\"impala.large\"(")).map_or("", |u| &u.text);
    assert!(large.contains("define available_externally tailcc i1 @\"shared.before\"("), "{large}");
    Ok(())
}

/// However many calls a function has: LLVM joins tiny functions with it, so that the order of a sort costs no call.
#[test]
fn tiny_functions_are_joined_with_functions_of_many_calls() -> Result<(), String> {
    let calls: String =
        (0..600).map(|k| format!("    if before(a({k}), a({})) {{ s += longer(s + {k}) }}\n", k + 1)).collect();
    let text = format!(
        "fn before(x: i32, y: i32) -> bool {{ x < y }}\n\
         fn longer(x: i32) -> i32 {{ (x * 3 + 7) / 5 % 11 + (x / 13 * 17 + x % 19) / 23 }}\n\
         extern fn many(a: &[i32]) -> i32 {{\n    let mut s = 0;\n{calls}    s\n}}\n"
    );
    let residual = FrontEnd::new(Options::default(), Files::of("t.impala", text)).graph();
    let flat = residual.and_then(|g| g.residual()?.flat()).map_err(said)?;
    let options = nyala_gen_llvm::Options { opt_level: 3, ..nyala_gen_llvm::Options::default() };
    let units = nyala_gen_llvm::emit_units(&flat.module, &options, None).map_err(|e| e.message)?;
    let text: String = units.iter().map(|u| u.text.as_str()).collect();
    let calls = |name: &str, attributes: &str| {
        let lines = text.lines().filter(|l| l.contains(" call ") && l.contains(&format!(".{name}\"(")));
        lines.filter(|l| l.contains(attributes)).count()
    };
    assert_eq!((calls("before", ") #1"), calls("before", ") #4")), (600, 0));
    assert_eq!((calls("longer", ") #1"), calls("longer", ") #4")), (0, 600));
    Ok(())
}
