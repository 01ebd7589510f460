//! What evaluation costs, counted in values that it copies or looks at.

use nyala_base::{Sink, Sources};
use nyala_staging::evaluate::Residual;
use nyala_staging::{Limits, deepcps, evaluate};

fn residual(text: &str) -> Residual {
    residual_of("t.deepcps", text)
}

fn residual_of(name: &str, text: &str) -> Residual {
    let mut sources = Sources::new();
    let file = sources.add(name, text);
    let mut sink = Sink::default();
    let residual = nyala_staging::read(&sources, &[file], &mut sink)
        .and_then(|mut programs| programs.pop())
        .and_then(|program| evaluate::evaluate(program, Limits::default(), &mut sink));
    residual.unwrap_or_else(|| sink.diagnostics.iter().map(|d| panic!("{}", d.render(&sources, false))).next().unwrap())
}

/// The loop of Listing 8, unrolled n times around a body that stays.
fn unrolled(n: usize) -> String {
    format!(
        "let [def] sfor (stage pstage, int from, int to, fn[stage, int, fn[stage]] body, fn[stage] end) {{
  from<to (bool continue)
  if continue () {{
    body pstage from (stage nstage)
    from+1 (next)
    sfor nstage next to body end
  }} () {{
    end pstage
  }}
}}
@def: let f (fn[int, fn[]] out, fn[] ret)[call] {{
  @def: sfor call 0 {n} (stage in, int i, fn[stage] next) {{
    i+i (twice)[jmp]
    @in: out twice ()[done]
    @jmp: next done
  }} (stage last)
  @last: ret
}}
"
    )
}

/// A sum by recursion that is no loop: continuations nest.
fn nested(n: usize) -> String {
    format!(
        "let [def] sum (int n, float x, fn[float] cont) {{
  n==0 (bool z)
  if z () {{ cont x }} ()
  n-1 (m)
  sum m x (part)[rec]
  @part & x: part+x (all)
  @rec: cont all
}}
@def: let f (float x, fn[float] ret) {{
  @def: sum {n} x (all)
  @all: ret all
}}
"
    )
}

/// Straight code, all of which is executed.
fn straight(n: usize) -> String {
    let calls: String = (1..=n).map(|i| format!("x{}+1 (x{i})\n", i - 1)).collect();
    format!("let x0 0\n{calls}exit x{n}\n")
}

/// Straight code within a function, which waits on `x`, then a call of it.
fn waiting(n: usize) -> String {
    let calls: String = (1..=n).map(|i| format!("@x & x{0}: x{0}+x (x{i})\n", i - 1)).collect();
    format!("let f (int x, int x0, fn[int] ret) {{\n{calls}@x{n}: ret x{n}\n}}\nf 1 0 (r)\nexit r\n")
}

/// A loop, all of which is executed.
fn looping(n: usize) -> String {
    format!(
        "let f (int n, fn[int] k) {{\n  n==0 (z)\n  if z () {{ k n }} ()\n  n-1 (m)\n  f m k\n}}\nf {n} (r)\nexit r\n"
    )
}

#[test]
fn staging_is_linear() {
    type Program = fn(usize) -> String;
    let programs: [(&str, Program, u64); 5] = [
        ("unrolled", unrolled, 6),
        ("nested", nested, 4),
        ("straight", straight, 1),
        ("waiting", waiting, 1),
        ("looping", looping, 6),
    ];
    for (name, program, steps_each) in programs {
        let [few, many] = [1_000, 10_000].map(|n| {
            let outcome = residual(&program(n)).outcome;
            (outcome.steps, outcome.work)
        });
        println!("{name}: {few:?}, {many:?}");
        assert!(many.0 >= 10_000 * steps_each, "{name}: {many:?}");
        assert!(many.0 <= 10 * few.0, "{name}: {few:?}, {many:?}");
        // A little more than tenfold is the part that does not grow.
        assert!(many.1 <= 10 * few.1, "{name}: {few:?}, {many:?}");
    }
}

/// Staged-C: a loop that is unrolled around a sum, and a recursion.
#[test]
fn staging_of_c_is_linear() {
    let sum = "float g(float* a, int n) {
  float s = 0.0;
  @n: for (int i = 0; i < n; ++i) { @* & a: s += a[i] * i; }
  @g: return s;
}";
    let dot = "float g(float* x, int n) {
  @n: if (n > 0) {
    stage t = *;
    float rest = g(x, n - 1);
    @t & x & rest: float result = rest + x[n - 1];
    @t: return result;
  } else return 0.0;
}";
    for (name, text, steps_each) in [("sum", sum, 8), ("recursion", dot, 5)] {
        let [few, many] = [1_000, 10_000].map(|n| {
            let outcome = residual_of("t.stagedc", &format!("{text}\nfloat f(float* a) = g<a, {n}>;\n")).outcome;
            (outcome.steps, outcome.work)
        });
        println!("{name}: {few:?}, {many:?}");
        assert!(many.0 >= 10_000 * steps_each, "{name}: {many:?}");
        assert!(many.0 <= 10 * few.0, "{name}: {few:?}, {many:?}");
        assert!(many.1 <= 10 * few.1, "{name}: {few:?}, {many:?}");
    }
}

/// Functions in a row, each of which calls the one above and is specialized: what follows a function is not searched for what waits
/// for it. It is a closure of all functions above that are called later, so the work is quadratic.
#[test]
fn what_follows_a_function_is_not_searched() {
    let program = |n: usize| {
        let functions = (1..=n).map(|i| {
            let above = i / 2;
            format!("int f{i}(int a, int b) {{ if (a > {i}) b += f{above}(b, a); return a * b; }}\nint g{i}(int a) = f{i}<a, {i}>;\n")
        });
        format!("int f0(int a, int b) {{ return a; }}\n{}", functions.collect::<String>())
    };
    let [few, many] = [100, 1_000].map(|n| residual_of("t.stagedc", &program(n)).outcome.work);
    println!("{few}, {many}");
    assert!(many <= 100 * few, "{few}, {many}");
}

/// Functions that call near ones, and are specialized: what a program exports is one variable, not as many as functions.
#[test]
fn many_functions_are_linear() {
    let program = |n: usize| {
        let functions = (1..=n).map(|i| {
            let above = i - 1 - (i % 7).min(i - 1);
            format!("int f{i}(int a, int b) {{ if (a > {i}) b += f{above}(b, a); return a * b; }}\nint g{i}(int a) = f{i}<a, {i}>;\n")
        });
        format!("int f0(int a, int b) {{ return a; }}\n{}", functions.collect::<String>())
    };
    let [few, many] = [200, 2_000].map(|n| residual_of("t.stagedc", &program(n)).outcome.work);
    println!("{few}, {many}");
    assert!(many <= 11 * few, "{few}, {many}");
}

#[test]
fn ten_thousand_bodies_stay_in_a_chain() {
    let text = residual(&unrolled(10_000)).print(&["f"]);
    assert_eq!(text.lines().count(), 10_000 + 3, "{}", &text[..300]);
    for i in [0, 1, 9_999] {
        assert!(text.contains(&format!("out {} ()", 2 * i)), "{i}");
    }
}

/// Each branch has all variables around it.
#[test]
fn too_many_variables_are_an_error() {
    let program = |n: usize| {
        let lines = |line: fn(usize) -> String| (0..n).map(line).collect::<String>();
        let declared = lines(|i| format!("float x{i} = a[{i}];\n"));
        let branches = lines(|i| format!("if (k > {i}) x{i} = 1.0;\n"));
        let used = lines(|i| format!("s += x{i};\n"));
        format!("float f(float* a, int k) {{\nfloat s = 0.0;\n{declared}{branches}{used}return s;\n}}\n")
    };
    let found = |n: usize| {
        let mut sources = Sources::new();
        let file = sources.add("t.stagedc", program(n));
        let mut sink = Sink::default();
        let programs = nyala_staging::read(&sources, &[file], &mut sink);
        let read = programs.and_then(|mut programs| programs.pop()).expect("a program");
        evaluate::evaluate(read, Limits { size: 2_000_000, ..Limits::default() }, &mut sink);
        sink.diagnostics.iter().map(|d| d.render(&sources, false)).collect::<String>()
    };
    assert_eq!(found(100), "");
    let said = found(1_000);
    assert!(said.starts_with("error[staging-limit]: the statements behind this use too many variables\n"), "{said}");
}

/// Of this thread, where the system tells it: other load does not count.
fn processor_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).unwrap_or(f64::NAN) / 1e9
}

/// Steps a second, for a developer: `cargo test --release -p nyala-staging -- --ignored --nocapture speed`.
#[test]
#[ignore = "measures speed"]
fn speed() {
    for (name, text) in [("waiting", waiting(100_000)), ("looping", looping(300_000)), ("nested", nested(50_000))] {
        let mut sources = Sources::new();
        let file = sources.add("t.deepcps", text);
        let read = std::time::Instant::now();
        let program = deepcps::read(&sources, file, &mut Sink::default()).expect("a program");
        let (read, start, busy) = (read.elapsed(), std::time::Instant::now(), processor_seconds());
        let outcome = evaluate::evaluate(program, Limits::default(), &mut Sink::default()).expect("ends").outcome;
        let (time, busy) = (start.elapsed().as_secs_f64(), processor_seconds() - busy);
        assert!(outcome.steps >= 50_000, "{name}: {} steps", outcome.steps);
        println!(
            "{name}: {:.2} million steps/s, {:.2} per second of processor time, {} steps, read in {read:?}",
            outcome.steps as f64 / time / 1e6,
            outcome.steps as f64 / busy / 1e6,
            outcome.steps
        );
    }
}
