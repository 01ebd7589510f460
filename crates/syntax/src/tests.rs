//! What each construct parses to, how errors recover, and that bad input is harmless.

use expect_test::{Expect, expect};
use nyala_base::{Sink, Sources};

fn run(text: &str) -> (crate::Module, String) {
    let mut sources = Sources::new();
    let file = sources.add("t.impala", text);
    let mut sink = Sink::default();
    let module = crate::parse(file, text, &mut sink);
    let mut out = String::new();
    for d in &sink.diagnostics {
        out += &format!("{} error[{}]: {}\n", &sources.place(d.primary.span)[9..], d.code, d.message);
    }
    (module, out)
}

/// The items of a whole file.
fn check(text: &str, expect: Expect) {
    let (module, errors) = run(text);
    expect.assert_eq(&(errors + &crate::print(&module)));
}

/// One expression.
fn check_expr(text: &str, expect: Expect) {
    let (module, errors) = run(&format!("static x = {text};"));
    let out = errors + &crate::print(&module);
    expect.assert_eq(out.trim_end().strip_prefix("(static x ").and_then(|s| s.strip_suffix(')')).unwrap_or(&out));
}

fn check_errors(text: &str, expect: Expect) {
    expect.assert_eq(&run(text).1);
}

#[test]
fn binds_operators_by_strength() {
    check_expr("1 + 2 * 3 - -4 as f32 < 5 && a | b ^ c & d << 1 == e", expect![[]]);
    check_expr("$a + b || c", expect![[]]);
    check_expr("f($a, ?b & ?c)", expect![[]]);
    check_expr("p as &[i32](2)", expect![[]]);
    check_expr("-x as f32 * 2.", expect![[]]);
    check_expr("a = b += c", expect![[]]);
    check_expr("*p.f(1)++", expect![[]]);
    check_expr("&mut a(i).b", expect![[]]);
    check_expr("&&x", expect![[]]);
    check_expr("-@@f(a)(b)", expect![[]]);
}

#[test]
fn reads_literals() {
    check_expr("(1, 0xff_u8, 0b1_01, 0o17i64, 1f, 1u, 1_000, 1_i8)", expect![[]]);
    check_expr("(1., .5, 1.5e-3, 1_0.5e_3, 23.f, 1._f32, 2.5h, 1e3)", expect![[]]);
    check_expr(r#"('a', '\0', '\'', ''', '\x41', "a" "b\n")"#, expect![[]]);
    check_expr("1.max(2)", expect![[]]);
    check_errors("static a = 0b12; static b = 1x; static c = 0x; static d = 1.5u8;", expect![[]]);
    check_errors("static a = 340282366920938463463374607431768211456;", expect![[]]);
    check_errors(r#"static a = '\q'; static b = 'ab'; static c = "\x4"; static d = '';"#, expect![[]]);
}

#[test]
fn reads_functions() {
    check(
        "fn @(?n) pow(x: i32, @n: i32, @?m: i32, @(x < 3) mut y: i32) -> i32 { if n == 0 { 1 } else { x * pow(x, n - 1) } }",
        expect![[]],
    );
    check("fn @f(&i32, T) -> ! { } extern fn g() { } fn \"sym\" h() -> () { 1; }", expect![[]]);
    check(
        r#"extern "C" { fn "print_i32" print(i32) -> (); fn p(x: &[u8]) -> i32; } extern { } extern "thorin" { fn sizeof[T]() -> i64; }"#,
        expect![[]],
    );
    check("fn f[A: B + C[i32], D](a: fn[E](E) -> A) -> fn(i32) -> ! { g }", expect![[]]);
}

#[test]
fn reads_other_items() {
    check(
        "struct S[T] { a: T, pub b: &mut[1][i32], } type A = [[f32 * 4] * n]; static mut s: ~T; priv static t = S { a: 1 };",
        expect![[]],
    );
    check("enum E { A, B(i32) } trait T { fn f() -> (); } impl T for i32 { } mod m; mod n { fn f() { } } use a::b::*; fn f() { }", expect![[]]);
}

#[test]
fn reads_types() {
    check(
        "type A = (fn(i32), fn(x: i32) -> (f32, f32), &&T, &mut shared [i32], &[2]simd[f32 * 4], typeof(1 + 2), (i32), ());",
        expect![[]],
    );
}

#[test]
fn reads_lambdas_and_annotations() {
    check_expr("|x, mut y: i32| x + y", expect![[]]);
    check_expr("|| |x| -> i32 |(a, b)| -> ! k(a)", expect![[]]);
    check_expr("@(?c)|x| e", expect![[]]);
    check_expr("f(@|x| e, @||e, @{ 1 }, @(g)(x), @g(x))", expect![[]]);
    check_expr("|x||y| x", expect![[]]);
}

#[test]
fn reads_control_flow() {
    check(
        "fn f() {
    let (a, mut b): (i32, i32) = g();
    for i, j in range(0, n) @(?i) { continue() }
    for @gen() { }
    with p in $gen(1) @ { p };
    while i < n i++;
    while a { break() }
    if a == S { x: 1 } { 1 } else if b { 2 } else c
    (1, 2);
    if a { } - 1;
    { 1 }
    [1, 2, 3];
    let x;
    [0, .. 5]
}",
        expect![[]],
    );
    check("fn f() { if x { } while s { } for i in r { } x }", expect![[]]);
    check("fn f() { match x { 1 => 2, _ => 3 } + simd[1, 2]; asm(\"nop\" : : : ); ~[n: f32] }", expect![[]]);
}

#[test]
fn recovers_at_statements() {
    check(
        "fn f() -> i32 {
    let a = ;
    let b = (1 + ;
    let c = 2
    let d = 3;
    g(1, |x| { let y = 1 + * ; y }, ) ) ;
    a[0];
    t.0;
    c
}
fn g( { }
fn h() { 1 }
}
fn i() ;
struct S { a }
fn j() { 2 }
",
        expect![[]],
    );
}

#[test]
fn reports_unclosed_brackets_once() {
    check_errors("fn f() { g(1, { let x = 2;", expect![[]]);
    check_errors("fn f() { { { ", expect![[]]);
    check_errors("fn f() { \"abc", expect![[]]);
    check_errors("fn f() { } /* /* */ x", expect![[]]);
    check_errors("fn f() { let x = ä€ + `; }", expect![[]]);
}

fn quick(text: &str) -> String {
    let start = std::time::Instant::now();
    let (module, errors) = run(text);
    crate::print(&module);
    assert!(start.elapsed().as_secs() < 5, "slow: {:.40}", text);
    assert!(errors.lines().count() < 110);
    errors
}

#[test]
fn survives_bad_input() {
    quick("");
    quick("\u{feff}");
    quick("\0");
    let n = 100_000;
    let body = |e: &str| quick(&format!("fn f() {{ {e}; g() }} fn g() {{ 1 }}"));
    expect![[]].assert_eq(&body(&format!("{}1{}", "(".repeat(n), ")".repeat(n))));
    expect![[]].assert_eq(&body(&format!("{}1", "-".repeat(n))));
    expect![[]].assert_eq(&body(&format!("{}1", "- ".repeat(n))));
    expect![[]].assert_eq(&body(&format!("a{}", ".a".repeat(n))));
    expect![[]].assert_eq(&body(&format!("f{}", "()".repeat(n))));
    expect![[]].assert_eq(&body(&format!("1{}", "+1".repeat(n))));
    expect![[]].assert_eq(&body(&format!("1{}", " as i32".repeat(n))));
    expect![[]].assert_eq(&body(&format!("{}1", "|x|".repeat(n))));
    expect![[]].assert_eq(&body(&format!("if a {{ 1 }} {}", "else if b { 2 }".repeat(n))));
    expect![[]].assert_eq(&body(&format!("{}{}", "{".repeat(n), "}".repeat(n))));
    expect![[]].assert_eq(&quick(&format!("fn f() {{ {}", "{".repeat(n))));
    expect![[]].assert_eq(&quick(&format!("type T = {}i32;", "&".repeat(n))));
    expect![[]].assert_eq(&quick(&format!("fn f() {{ {} }}", "for ".repeat(n))));
    expect![[]].assert_eq(&quick(&format!("fn f() {{ {} }}", "fn g() { ".repeat(n))));
    quick(&"(".repeat(n));
    quick(&"/*".repeat(n));
    quick(&"fn ".repeat(n));
    quick(&"fn f(".repeat(n));
    quick(&"@(".repeat(n));
    quick(&"} ( ] ".repeat(n));
    quick(&"|".repeat(n));
    quick(&"for a in ".repeat(n));
    quick(&"a { ".repeat(n));
    quick(&format!("fn f() {{ {} }}", "let ; ".repeat(n)));
    quick(&"x".repeat(1 << 20));
    quick(&format!("static s = \"{}\";", "ä".repeat(1 << 19)));
    let mut seed = 1u64;
    for len in [10, 1000, 100_000] {
        for alphabet in ["(){}[]|@fn let x=;,.+&'\"/*\n", "\u{0}\u{1}ä€\u{10ffff}\\`# ab12'\""] {
            let alphabet: Vec<char> = alphabet.chars().collect();
            let text: String = (0..len)
                .map(|_| {
                    seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                    alphabet[(seed >> 33) as usize % alphabet.len()]
                })
                .collect();
            quick(&text);
        }
    }
}
