//! What the chapter states: both sides of each rule, its examples and listings, soundness on random programs.

use super::random::{self, Kind};
use super::step::{self, Stop, run};
use super::syntax::*;
use super::{Rules, check};
use nyala_base::{FileId, Id, Sink};
use std::collections::BTreeMap;

/// The functions with their lengths, or what is wrong.
fn inferred(text: &str) -> Result<Program, String> {
    let mut sink = Sink::default();
    let program = super::program(FileId::from_idx(0), text, &mut sink);
    match sink.diagnostics.first() {
        None => Ok(program),
        Some(d) => Err(d.message.clone()),
    }
}

fn parsed(text: &str) -> Program {
    let mut sink = Sink::default();
    let program = super::parser::parse(FileId::from_idx(0), text, &mut sink);
    assert!(sink.diagnostics.is_empty(), "{:?}", sink.diagnostics);
    program
}

fn show(value: Result<Value, Stop>) -> String {
    value.map_or_else(|stop| format!("{stop:?}"), |value| value.show())
}

/// What `name()` is.
fn value(text: &str, name: &str) -> String {
    show(run(
        &inferred(text).unwrap_or_else(|e| panic!("{e}")),
        Rules::Repaired,
        name,
        Vec::new(),
        1_000_000,
        |_, _, _| {},
    ))
}

fn ints(lanes: &[i32]) -> Value {
    Value::Int(lanes.to_vec())
}

/// The rule that does not hold for a function in VecImp; empty if all do.
fn rule_of(text: &str, rules: Rules) -> &'static str {
    check::program(&parsed(text), rules).first().map_or("", |f| f.rule)
}

#[test]
fn both_sides_of_each_rule() {
    // What stands in a function whose current length is 4, and one whose is 1; the rule that it breaks there.
    let bodies = [
        ("skip", "T-Fun", "T-Fun"),
        ("return i4;", "", ""),
        ("return i1;", "", "T-Fun"),
        ("return i8;", "TE-Var", "T-Fun"),
        ("return b4;", "T-Fun", "T-Fun"),
        ("f4; return i4;", "", ""),
        ("f8; return i4;", "TE-Var", ""),
        ("int varying(4) x; return x;", "", ""),
        ("int varying(8) x; return i4;", "TS-Decl", ""),
        ("int varying(1) i1; return i4;", "T-Fun", "T-Fun"),
        ("return x;", "TE-Var", "TE-Var"),
        ("i4 = i1; return i4;", "", ""),
        ("i1 = i1; return i4;", "", ""),
        ("i1 = i4; return i4;", "TS-Assign", "TS-Assign"),
        ("i4 = f4; return i4;", "TS-Assign", "TS-Assign"),
        ("x = i4; return i4;", "TS-Assign", "TS-Assign"),
        ("i8 = i1; return i4;", "TS-Assign", ""),
        ("if (b4) i4 = i1; return i4;", "", ""),
        ("if (b1) i4 = i1; return i4;", "", ""),
        ("if (i4) i4 = i1; return i4;", "TS-If", "TS-If"),
        ("if (b4) i8 = i1; return i4;", "TS-Assign", "TS-Assign"),
        ("if (b4) skip else i8 = i1; return i4;", "TS-Assign", "TS-Assign"),
        ("if (b8) i8 = i1; return i4;", "TE-Var", ""),
        ("if (b4) { if (b8) skip } return i4;", "TE-Var", "TE-Var"),
        ("if (b4) return i4; return i4;", "TS-If", "TS-If"),
        ("while (b4) b4 = b1; return i4;", "", ""),
        ("while (i4) skip return i4;", "TS-While", "TS-While"),
        ("while (b4) i8 = i1; return i4;", "TS-Assign", "TS-Assign"),
        ("while (b4) return i4; return i4;", "TS-While", "TS-While"),
        ("i4 = {1, i1, 2, 3}; return i4;", "", ""),
        ("i4 = {1, 2}; return i4;", "TE-Vec", "TS-Assign"),
        ("i4 = {1, i4, 2, 3}; return i4;", "TE-Vec", "TE-Vec"),
        ("i4 = {1, true, 2, 3}; return i4;", "TE-Vec", "TE-Vec"),
        ("return i4 + i1;", "", ""),
        ("f4 = i1 * f4; return i4;", "", ""),
        ("return i4 + b4;", "TE-Call", "TE-Call"),
        ("i4 + i8; return i4;", "TE-Var", "TE-Call"),
        ("return in4(i4, i1);", "", "TS-Ret?"),
        ("return in1(i4, i1);", "TE-Call", ""),
        ("return in4(i1, i1);", "", "TS-Ret?"),
        ("return in4(i4);", "TE-Call", "TE-Call"),
        ("return in4(f4, i1);", "TE-Call", "TE-Call"),
        ("return in4(i4, i4);", "TE-Call", "TE-Call"),
        ("return nothing(i4);", "TE-Call", "TE-Call"),
        ("in8(); return i4;", "TE-Call", ""),
        ("if (b4) i4 = in4(i4, i1); return i4;", "", ""),
        ("if (b4) i4 = in1(i4, i1); return i4;", "TE-Call", "TE-Call"),
    ];
    for (body, of_4, of_1) in bodies {
        for (l, expected) in [(4, of_4), (1, of_1)] {
            let of_8 = if l == 1 { ", int varying(8) i8, float varying(8) f8, bool varying(8) b8" } else { "" };
            let text = format!(
                "simd({l}) int varying(4) f(int varying(1) i1, int varying(4) i4, float varying(4) f4,
                     bool varying(1) b1, bool varying(4) b4{of_8}) {{ {body} }}
                 simd(4) int varying(4) in4(int varying(4) a, int varying(1) b) {{ return a + b; }}
                 simd(1) int varying(4) in1(int varying(4) a, int varying(1) b) {{ return a + b; }}
                 simd(8) int varying(8) in8() {{ return 0; }}"
            );
            // What is 4 lanes of a function of any mode is that of its callers.
            let expected = if expected == "TS-Ret?" { "" } else { expected };
            assert_eq!(rule_of(&text, Rules::Repaired), expected, "simd({l}) {body}");
        }
    }
    // Parameters and results fit the current length.
    assert_eq!(rule_of("simd(4) int varying(4) f(int varying(8) x) { return 1; }", Rules::Repaired), "T-Fun");
    assert_eq!(rule_of("simd(4) int varying(8) f() { return 1; }", Rules::Repaired), "T-Fun");
    assert_eq!(rule_of("simd(1) int f() { return 1; } simd(1) int f() { return 1; }", Rules::Repaired), "T-Prg");
}

#[test]
fn lengths_join_and_are_assigned_as_in_figure_4_5() {
    assert_eq!([join(1, 1), join(1, 4), join(4, 8), join(4, 4)], [Some(1), Some(4), None, Some(4)]);
    let rules = [
        (1, 1, 1, Some("A-Length")),
        (1, 4, 4, Some("A-Length")),
        (1, 4, 1, Some("A-Splat")),
        (1, 1, 4, None),
        (1, 4, 8, None),
        (4, 4, 4, Some("A-Length")),
        (4, 4, 1, Some("A-Length")),
        (4, 1, 1, Some("A-Scalar")),
        (4, 1, 4, None),
        (4, 8, 1, None),
        (4, 8, 8, None),
    ];
    for (l, to, from, rule) in rules {
        assert_eq!(check::assignable(l, to, from), rule, "{l} ⊢ {to} ← {from}");
    }
}

#[test]
fn masks_and_blends() {
    assert_eq!(step::and(&[true], &[true, false]), Some(vec![true, false]));
    assert_eq!(step::and(&[true, false, true], &[true, false]), None);
    let blended = |mask: &[bool], new: &[i32], old: &[i32]| step::blend(mask, &ints(new), &ints(old)).map(|v| v.show());
    assert_eq!(blended(&[true, false], &[1, 2], &[3, 4]).as_deref(), Some("[1,4]"));
    assert_eq!(blended(&[false, true], &[9], &[3, 4]).as_deref(), Some("[3,9]"));
    assert_eq!(blended(&[true], &[9], &[3, 4]).as_deref(), Some("[9,9]"));
    assert_eq!(blended(&[false, true], &[9], &[3]).as_deref(), Some("9"));
    assert_eq!(blended(&[false, false], &[9], &[3]).as_deref(), Some("3"));
    assert_eq!(blended(&[true, true, true], &[1, 2], &[3, 4]), None);
}

const MANDEL: &str = include_str!("tests/listing_4_2.vecimp");
const POLY_MANDEL: &str = include_str!("tests/listing_4_4.vecimp");
const IMP_MANDEL: &str = include_str!("tests/listing_4_1.vecimp");
/// The loop without lanes, whose points are summed up as the listings' `store` does.
fn mandelbrot(n: usize) -> String {
    let mut sum = 0i32;
    let (dx, dy) = (3.0f32 / n as f32, 2.0f32 / n as f32);
    for j in 0..n {
        for i in 0..n {
            let (cr, ci) = (-2.0 + i as f32 * dx, -1.0 + j as f32 * dy);
            let (mut zr, mut zi, mut k) = (cr, ci, 0);
            while k < 10 && zr * zr + zi * zi < 4.0 {
                (zr, zi) = (cr + (zr * zr - zi * zi), ci + 2.0 * zr * zi);
                k += 1;
            }
            sum = sum.wrapping_add(k * (i as i32 + 3 * j as i32));
        }
    }
    sum.to_string()
}

#[test]
fn mandelbrot_is_one_in_imp_vecimp_and_polyvecimp() {
    // Of `store` all lanes count: a scalar is summed up in SIMD mode.
    for text in [IMP_MANDEL, MANDEL, POLY_MANDEL] {
        assert_eq!(value(text, "main"), mandelbrot(8));
    }
}

#[test]
fn inference_of_listing_4_4() {
    let program = inferred(POLY_MANDEL).unwrap_or_else(|e| panic!("{e}"));
    let f = program.functions.iter().find(|f| f.name.text.starts_with("iter.")).unwrap_or_else(|| panic!());
    // `iter` with `float varying(4)` and `float varying(1)` in scalar mode: all local variables are vectors of length 4.
    assert_eq!(&*f.name.text, "iter.1.4_1");
    assert_eq!((f.simd, f.result.length), (Some(1), Some(4)));
    let mut lists = vec![&f.body];
    let mut n_locals = 0;
    while let Some(list) = lists.pop() {
        for head in &list.heads {
            match &head.kind {
                HeadKind::Declare(ty, _) => {
                    assert_eq!(ty.length, Some(4));
                    n_locals += 1;
                }
                HeadKind::While(_, body) => lists.push(body),
                _ => {}
            }
        }
    }
    assert_eq!(n_locals, 5);
}

const MIN: &str = "int min(int a, int b) { int result = a; if (b < a) result = b; return result; }";

#[test]
fn example_4_4_min() {
    let text = format!("{MIN} int varying(4) main() {{ return min(3, {{1, 5, 3, 2}}); }}");
    let program = inferred(&text).unwrap_or_else(|e| panic!("{e}"));
    let f = program.functions.iter().find(|f| &*f.name.text == "min.1.1_4").unwrap_or_else(|| panic!());
    assert_eq!(f.result.length, Some(4));
    assert!(matches!(f.body.heads[0].kind, HeadKind::Declare(Declared { length: Some(4), .. }, _)));
    assert_eq!(f.params.iter().map(|p| p.0.length).collect::<Vec<_>>(), [Some(1), Some(4)]);
    assert_eq!(value(&text, "main"), "[1,3,3,2]");
    // For callers in other languages.
    assert!(program.functions.iter().any(|f| &*f.name.text == "min" && f.is_exported));
}

#[test]
fn inference_ascends_and_gives_up() {
    let texts = [
        // A mono scalar stays one, and a poly one counts for each lane.
        (
            "int varying(4) main() { int n = 0; int varying(4) i = {1, 2, 3, 4}; while (i > 0) { i = i - 1; n = n + 1; } return n; }",
            "[1,2,3,4]",
        ),
        (
            "int main() { int varying(1) n = 0; int varying(4) i = {1, 2, 3, 4}; while (i > 0) { i = i - 1; n = n + 1; } return n; }",
            "4",
        ),
        // Functions that call each other.
        (
            "int even(int n) { int r = 1; if (n > 0) r = odd(n - 1); return r; }
          int odd(int n) { int r = 0; if (n > 0) r = even(n - 1); return r; }
          int varying(4) main() { return even({0, 1, 2, 3}) + even(4); }",
            "[2,1,2,1]",
        ),
        // A parameter that is assigned a vector.
        ("int f(int a) { a = {1, 2}; return a; } int varying(2) main() { return f(3); }", "[1,2]"),
        // A function called in two modes by one condition.
        (
            "int dec(int n) { int r = n; r = r - 1; return r; }
          int varying(2) main() { int n = {3, 5}; int k = 0; while (dec(n) > 0) { n = dec(n); k = k + 1; } return k; }",
            "[2,4]",
        ),
    ];
    for (text, expected) in texts {
        assert_eq!(value(text, "main"), expected, "{text}");
    }
    let wrong = [
        "int varying(4) main() { int x = {1, 2}; return x; }",
        "int main() { int x = {1, 2}; x = {1, 2, 3}; return 0; }",
        "int f(int x, int y) { return x + y; } int main() { f({1, 2}, {1, 2, 3}); return 0; }",
        "int f(int x) { int y = x; y = {1, 2, 3}; return y; } int main() { f({1, 2}); return 0; }",
    ];
    for text in wrong {
        assert!(inferred(text).is_err(), "{text}");
    }
    // The number of instances has a limit.
    let params: Vec<String> = (0..11).map(|i| format!("int a{i}")).collect();
    let turned: Vec<String> = (0..11).map(|i| format!("a{}", (i + 1) % 11)).collect();
    let doubled: Vec<String> =
        (0..11).map(|i| if i == 0 { "{1, 2}".into() } else { format!("a{}", (i * 7 + 1) % 11) }).collect();
    let text = format!(
        "int f({}) {{ int r = 0; if (a0 > 0) {{ r = f({}); r = f({}); }} return r; }}",
        params.join(", "),
        turned.join(", "),
        doubled.join(", ")
    );
    assert!(inferred(&text).is_err_and(|e| e.contains("instances")));
}

// Where the rules as they are written are not sound.

#[test]
fn as_written_loops_and_recursions_do_not_end() {
    let texts = [
        "simd(1) int varying(1) main() { while (false) skip return 1; }",
        "simd(1) int varying(1) main() { return f(3); }
         simd(1) int varying(1) f(int varying(1) n) { int varying(1) r = 1; if (n > 0) r = r + f(n - 1); return r; }",
    ];
    for (text, expected) in texts.into_iter().zip(["1", "4"]) {
        let program = parsed(text);
        assert_eq!(check::program(&program, Rules::Written).len(), 0);
        assert_eq!(run(&program, Rules::Written, "main", Vec::new(), 3000, |_, _, _| {}), Err(Stop::Limit));
        assert_eq!(show(run(&program, Rules::Repaired, "main", Vec::new(), 3000, |_, _, _| {})), expected);
    }
}

#[test]
fn as_written_a_call_in_a_condition_gets_stuck() {
    let text =
        "simd(1) bool varying(4) g(int varying(8) v) { int varying(8) t; t = v; return {true, false, true, true}; }
        simd(1) int varying(1) main() { int varying(8) v; while (g(v)) skip return 0; }";
    let program = parsed(text);
    assert_eq!(rule_of(text, Rules::Written), "");
    assert_eq!(run(&program, Rules::Written, "main", Vec::new(), 100, |_, _, _| {}), Err(Stop::Stuck("ES-Assign")));
    assert_eq!(rule_of(text, Rules::Repaired), "TS-While");
}

#[test]
fn as_written_an_assignment_to_a_parameter_gets_stuck() {
    let text = "simd(1) int varying(4) f(int varying(4) x) { x = {1, 2, 3, 4}; return x; }
        simd(1) int varying(4) main() { return f(1); }";
    let program = parsed(text);
    assert_eq!(rule_of(text, Rules::Written), "");
    assert_eq!(run(&program, Rules::Written, "main", Vec::new(), 100, |_, _, _| {}), Err(Stop::Stuck("ES-Assign")));
    assert_eq!(show(run(&program, Rules::Repaired, "main", Vec::new(), 100, |_, _, _| {})), "[1,2,3,4]");
}

#[test]
fn as_written_the_type_of_a_call_changes() {
    let program = parsed("simd(4) int varying(4) main() { return 7; }");
    assert_eq!(check::program(&program, Rules::Written).len(), 0);
    assert_eq!(show(run(&program, Rules::Written, "main", Vec::new(), 100, |_, _, _| {})), "7");
    assert_eq!(show(run(&program, Rules::Repaired, "main", Vec::new(), 100, |_, _, _| {})), "[7,7,7,7]");
}

// Soundness.

/// Evaluates `main` of a well-typed program: no term is stuck, and each has the type of the first one. Notes the rules.
fn sound(program: &Program, rules: &mut BTreeMap<&'static str, usize>) -> Result<Value, String> {
    let ty = program.functions.iter().find(|f| &*f.name.text == "main").map(|f| f.result.ty());
    let (checker, _) = check::Checker::new(program, Rules::Repaired);
    let (mut wrong, mut n_steps) = (None, 0);
    let found = run(program, Rules::Repaired, "main", Vec::new(), 5_000, |rule, state, term| {
        *rules.entry(rule).or_default() += 1;
        n_steps += 1;
        // Terms of later rounds are large, and like those before.
        if n_steps > 500 {
            return;
        }
        match checker.configuration(state, 1, term) {
            Ok(found) if Some(found) == ty => {}
            found => _ = wrong.get_or_insert(format!("behind {rule}: {found:?}")),
        }
    });
    match (wrong, found) {
        (Some(wrong), _) => Err(wrong),
        (None, Err(Stop::Stuck(rule))) => Err(format!("stuck at {rule}")),
        (None, Err(stop)) => Err(format!("{stop:?}")),
        (None, Ok(value)) => Ok(value),
    }
}

fn is_limit(found: &Result<Value, String>) -> bool {
    matches!(found, Err(stop) if stop == "Limit")
}

#[test]
fn random_programs_are_never_stuck() {
    never_stuck(1..201);
}

#[test]
#[ignore = "takes minutes: ./x test --all crates"]
fn a_hundred_thousand_random_programs_are_never_stuck() {
    never_stuck(1_000..101_000);
}

fn never_stuck(seeds: std::ops::Range<u64>) {
    let n = seeds.clone().count();
    let mut rules = BTreeMap::new();
    let (mut n_ends, mut n_accepted) = (0, 0);
    for seed in seeds {
        let kind = if seed % 3 == 0 { Kind::PolyVecImp } else { Kind::VecImp };
        let text = random::program(kind, "main", seed);
        let program = match inferred(&text) {
            Ok(program) => program,
            // Some vectors of scalars have become vectors of vectors.
            Err(_) if kind == Kind::PolyVecImp => continue,
            Err(e) => panic!("seed {seed}: {e}\n{text}"),
        };
        n_accepted += 1;
        let found = sound(&program, &mut rules);
        if is_limit(&found) {
            continue;
        }
        n_ends += 1;
        if let Err(e) = found {
            panic!("seed {seed}: {e}\n{text}");
        }
    }
    assert!(n_accepted * 10 > n * 8 && n_ends * 10 > n_accepted * 7, "{n_accepted} accepted, {n_ends} end, of {n}");
    // Each rule is used.
    let all = [
        "EE-Call",
        "EE-Stmt",
        "EE-Var",
        "ES-Assign",
        "ES-Decl",
        "ES-Expr",
        "ES-If",
        "ES-IfF",
        "ES-IfT",
        "ES-While",
        "TE-Vec",
    ];
    assert_eq!(rules.keys().copied().collect::<Vec<_>>(), all);
}

#[test]
fn each_lane_of_a_poly_function_has_the_result_of_the_scalar_one() {
    let mut n_ends = 0;
    let n = 200;
    for seed in 1..=n {
        let f = random::program(Kind::Lanewise, "f", seed);
        let args = [[-3, 0, 2, 7], [5, 1, 1, -2]];
        let list = |lanes: [i32; 4]| lanes.map(|n| n.to_string()).join(", ");
        let text = format!("{f}int main() {{ return f({{{}}}, {{{}}}); }}", list(args[0]), list(args[1]));
        let program = inferred(&text).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{text}"));
        let of = |name: &str, args| run(&program, Rules::Repaired, name, args, 50_000, |_, _, _| {});
        let lanes: Vec<_> = (0..4).map(|i| of("f", vec![ints(&[args[0][i]]), ints(&[args[1][i]])])).collect();
        let vector = of("main", Vec::new());
        if vector == Err(Stop::Limit) || lanes.contains(&Err(Stop::Limit)) {
            continue;
        }
        n_ends += 1;
        let lanes: Vec<String> = lanes.into_iter().map(show).collect();
        // A result that depends on no argument has no lanes.
        let vector = match vector {
            Ok(value) => show(value.broadcast(4).ok_or(Stop::Limit)),
            Err(stop) => format!("{stop:?}"),
        };
        assert_eq!(vector, format!("[{}]", lanes.join(",")), "seed {seed}:\n{text}");
    }
    assert!(n_ends * 10 > n * 9, "{n_ends} of {n}");
}

#[test]
fn programs_that_are_too_deep_or_wrong_are_errors() {
    let deep = |open: &str, inner: &str, close: &str| {
        let n = 100_000;
        format!("int main() {{ return {}{inner}{}; }}", open.repeat(n), close.repeat(n))
    };
    let texts = [
        deep("(", "1", ")"),
        deep("- ", "x", ""),
        deep("{", "1", "}"),
        deep("f(", "1", ")"),
        deep("1 + ", "1", ""),
        format!("int main() {{ {} skip", "if (true) {".repeat(100_000)),
        format!("int main() {{ {} skip }}", "if (true) skip else ".repeat(100_000)),
    ];
    for text in texts {
        assert!(inferred(&text).is_err_and(|e| e.contains("deep")), "{}", &text[..60]);
    }
    // What stands in a row is not deep.
    let row = format!("int main() {{ int x; {} return x; }}", "x = x + 1;".repeat(20_000));
    assert!(inferred(&row).is_ok());
    let wrong = [
        "int f( { }",
        "simd(0) int f() { return 1; }",
        "int varying(65) f() { return 1; }",
        "int f() { return 2147483648; }",
        "int f() { return {}; }",
        "int f() { return 1; skip }",
        "const int N = 1.5; int f() { return N; }",
        "int f() { break; }",
        "int f() { int if; }",
        "f() { }",
        "int f() { return 1 }",
        "int f() { return 1;",
    ];
    for text in wrong {
        assert!(inferred(text).is_err(), "{text}");
    }
    assert_eq!(value("const int N = -2147483648; int main() { return N + -1; }", "main"), "2147483647");
}
