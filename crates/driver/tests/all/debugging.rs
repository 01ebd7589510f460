//! What `-g` describes, in LLVM's text, and that code with it computes the same. Debuggers themselves: `debuggers` of xtask's tests.

use nyala_driver::{Code, Failed, Files, Flat, FrontEnd, Options};

/// Parts of structs, variables that loops change, a body of a generator, parameters that are known.
const PROGRAM: &str = r#"struct Pixel { r: f32, g: f32 }
static mut count: i32 = 0;
fn scale(p: Pixel, by: f32) -> Pixel {
    let red = p.r * by;
    count += 1;
    Pixel { r: red, g: p.g }
}
fn @each(n: i32, body: fn(i32) -> ()) -> () {
    let mut at = 0;
    while at < n {
        body(at);
        at += 1;
    }
}
fn total(n: i32, a: &[i32]) -> i32 {
    let mut sum = 0;
    for i in each(n) {
        let x = a(i);
        sum += x;
    }
    sum
}
fn @power(x: i32, n: i32) -> i32 {
    if n == 0 { 1 } else { let rest = power(x, n - 1); x * rest }
}
fn lanes(n: i32) -> i32 {
    let mut a: [i32 * 64];
    for i in vec(8, 0, n) { let twice = 2 * i; a(i) = twice }
    a(n - 1)
}
extern fn result() -> i32 {
    let n = $3;
    let values = [3, 4, 5];
    let t = total(n, &values);
    let p = scale(Pixel { r: t as f32, g: 2f }, 3f);
    power(t, 3) + p.r as i32 + count + lanes(n)
}
"#;

fn flat(opt_level: u8, debug: bool) -> Result<Flat, Failed> {
    let options = Options { opt_level, debug, ..Options::default() };
    FrontEnd::new(options, Files::of("t.impala", PROGRAM)).graph()?.residual()?.flat()
}

fn text(opt_level: u8, debug: bool) -> Result<String, Failed> {
    Ok(Code::of(&flat(opt_level, debug)?, Some("/"))?.emitted.text)
}

#[test]
fn variables_and_calls_are_described() -> Result<(), Failed> {
    for opt_level in [0, 3] {
        let text = text(opt_level, true)?;
        for name in ["p", "by", "red", "at", "n", "a", "sum", "i", "x", "values", "t", "rest", "twice"] {
            assert!(text.contains(&format!("!DILocalVariable(name: \"{name}\",")), "{name} at -O{opt_level}:\n{text}");
        }
        let has = |part: &str| assert!(text.contains(part), "`{part}` at -O{opt_level}:\n{text}");
        // The second parameter; a field; the static; a call that was unfolded.
        has("!DILocalVariable(name: \"by\", arg: 2,");
        has("DW_TAG_member, name: \"g\"");
        has("!DIGlobalVariable(name: \"count\"");
        has("!DISubprogram(name: \"power\"");
        has("inlinedAt: ");
    }
    Ok(())
}

/// Values that partial evaluation knows are constants of the description.
#[test]
fn known_values_are_described() -> Result<(), Failed> {
    let text = text(3, true)?;
    let by = "#dbg_value(float 0x4008000000000000,";
    assert!(text.contains(by), "{text}");
    Ok(())
}

#[test]
fn code_without_it_has_no_variables() -> Result<(), Failed> {
    let text = text(3, false)?;
    assert!(!text.contains("DILocalVariable") && !text.contains("inlinedAt") && !text.contains("#dbg"), "{text}");
    Ok(())
}

#[test]
fn results_are_the_same() -> Result<(), Failed> {
    for opt_level in [0, 3] {
        for debug in [false, true] {
            let loaded = flat(opt_level, debug)?.load(&[])?;
            let result = loaded.call_i32("result")?;
            assert_eq!(result, 12 * 12 * 12 + 36 + 1 + 4, "-O{opt_level}, debug: {debug}");
        }
    }
    Ok(())
}

/// A loop in a function that is unfolded is unrolled where its condition is known, whether variables are named or not.
#[test]
fn loops_are_unrolled_as_without_it() -> Result<(), Failed> {
    let text = "\
fn sum(n: i32) -> i32 { let mut s = 0; let mut i = 0; while i < n { s += i * n; i += 1 } s }
extern fn f() -> i32 { @@sum(4) }
";
    for debug in [false, true] {
        let options = Options { debug, ..Options::default() };
        let flat = FrontEnd::new(options, Files::of("t.impala", text)).graph()?.residual()?.flat()?;
        let n_blocks: usize = flat.module.funcs.iter().map(|f| f.blocks.len()).sum();
        assert_eq!(n_blocks, 1, "debug: {debug}");
    }
    Ok(())
}
