//! Tests that each construct parses as expected, that the parser recovers from errors, and that bad input is harmless.

#[allow(dead_code, reason = "processor time alone is asked for")]
#[path = "../../xtask/src/child.rs"]
mod child;

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
    check_expr(
        "1 + 2 * 3 - -4 as f32 < 5 && a | b ^ c & d << 1 == e",
        expect!["(&& (< (- (+ 1 (* 2 3)) (as (- 4) f32)) 5) (== (| a (^ b (& c (<< d 1)))) e))"],
    );
    check_expr("$a + b || c", expect!["($ (|| (+ a b) c))"]);
    check_expr("f($a, ?b & ?c)", expect!["(f ($ a) (& (? b) (? c)))"]);
    check_expr("p as &[i32](2)", expect!["((as p &[i32]) 2)"]);
    check_expr("-x as f32 * 2.", expect!["(* (as (- x) f32) 2.0)"]);
    check_expr("a = b += c", expect!["(+= (= a b) c)"]);
    check_expr("*p.f(1)++", expect!["(* (_++ ((. p f) 1)))"]);
    check_expr("&mut a(i).b", expect!["(&mut (. (a i) b))"]);
    check_expr("&&x", expect!["(& (& x))"]);
    check_expr("-@@f(a)(b)", expect!["(- (@@ ((f a) b)))"]);
}

#[test]
fn reads_literals() {
    check_errors(
        "static a = 1.5extern; static b = .5x;",
        expect![[r#"
            1:15 error[bad-number]: found unknown number suffix `extern`
            1:36 error[bad-number]: found unknown number suffix `x`
        "#]],
    );
    check_expr(
        "(1, 0xff_u8, 0b1_01, 0o17i64, 1f, 1u, 1_000, 1_i8)",
        expect!["(tuple 1 255u8 5 15i64 1.0f32 1u32 1000 1i8)"],
    );
    check_expr(
        "(1., .5, 1.5e-3, 1_0.5e_3, 23.f, 1._f32, 2.5h, 1e3)",
        expect!["(tuple 1.0 .5 1.5e-3 10.5e3 23.0f32 1.0f32 2.5f16 1e3)"],
    );
    check_expr(r#"('a', '\0', '\'', ''', '\x41', "a" "b\n")"#, expect![[r#"(tuple 'a' '\x00' '\'' '\'' 'A' "ab\n")"#]]);
    check_expr("1.max(2)", expect!["((. 1 max) 2)"]);
    check_errors(
        "static a = 0b12; static b = 1x; static c = 0x; static d = 1.5u8;",
        expect![[r#"
        1:15 error[bad-number]: found digit `2` in a number of base 2
        1:30 error[bad-number]: found unknown number suffix `x`
        1:44 error[bad-number]: found a number without digits
        1:62 error[bad-number]: found unknown number suffix `u8`
    "#]],
    );
    check_errors(
        "static a = 340282366920938463463374607431768211456;",
        expect![[r#"
        1:12 error[bad-number]: number does not fit any integer type
    "#]],
    );
    check_errors(
        r#"static a = '\q'; static b = 'ab'; static c = "\x4"; static d = '';"#,
        expect![[r#"
        1:13 error[bad-escape]: found unknown escape `\q`
        1:29 error[bad-char]: character literal has 2 bytes, expected one
        1:47 error[bad-escape]: found `\x` without two hexadecimal digits
        1:64 error[bad-char]: character literal has 0 bytes, expected one
    "#]],
    );
}

#[test]
fn reads_functions() {
    check(
        "fn @(?n) pow(x: i32, @n: i32, @?m: i32, @(x < 3) mut y: i32) -> i32 { if n == 0 { 1 } else { x * pow(x, n - 1) } }",
        expect![[r#"
            (fn pow @((? n)) ((x i32) @ (n i32) @((? m)) (m i32) @((< x 3)) (mut y i32)) i32
              {(if (== n 0) {1} else {(* x (pow x (- n 1)))})})
        "#]],
    );
    check(
        "fn @f(&i32, T) -> ! { } extern fn g() { } fn \"sym\" h() -> () { 1; }",
        expect![[r#"
        (fn f @ ((_ &i32) (_ T)) !
          {})
        (extern-fn g ()
          {})
        (extern-fn "sym" h () (tuple)
          {1;})
    "#]],
    );
    check(
        r#"extern "C" { fn "print_i32" print(i32) -> (); fn p(x: &[u8]) -> i32; } extern { } extern "thorin" { fn sizeof[T]() -> i64; }"#,
        expect![[r#"
            (extern "C"
              (extern-fn "print_i32" print ((_ i32)) (tuple))
              (fn p ((x &[u8])) i32))
            (extern "C")
            (extern "thorin"
              (fn sizeof[T] () i64))
        "#]],
    );
    check(
        "fn f[A: B + C[i32], D](a: fn[E](E) -> A) -> fn(i32) -> ! { g }",
        expect![[r#"
        (fn f[A:B:C[i32] D] ((a (fn[E] (E) A))) (fn (i32) !)
          {g})
    "#]],
    );
}

#[test]
fn reads_other_items() {
    check(
        "struct S[T] { a: T, pub b: &mut[1][i32], } type A = [[f32 * 4] * n]; static mut s: ~T; priv static t = S { a: 1 };",
        expect![[r#"
            (struct S[T] (a T) (b &mut <1>[i32]))
            (type A [[f32 * 4] * n])
            (static mut s: ~T)
            priv (static t (struct S (a 1)))
        "#]],
    );
}

#[test]
fn reads_enums_traits_and_impls() {
    check(
        "enum E[T] { A, B(T, i32), C(), } priv enum F { }",
        expect![[r#"
        (enum E[T] (A) (B T i32) (C))
        priv (enum F)
    "#]],
    );
    check(
        "trait T[A: B + C[A]]: Super, Other[X] + More { fn m(self: &Self) -> i32; fn d(Self, A) -> i32 { 1 } } trait U { }",
        expect![[r#"
            (trait T[A:B:C[A]] : Super Other[X] More
              (fn m ((self &Self)) i32)
              (fn d ((_ Self) (_ A)) i32
                {1}))
            (trait U)
        "#]],
    );
    check(
        "impl[T: Bound] Trait[T] for Vec[T] { fn f() -> () { } priv fn g(self: &mut Self) { } pub fn h[U](U) { } }
impl &[i32] { }
impl T for fn(i32) -> i32 { }",
        expect![[r#"
            (impl[T:Bound] Trait[T] for Vec[T]
              (fn f () (tuple)
                {})
              priv (fn g ((self &mut Self))
                {})
              (fn h[U] ((_ U))
                {}))
            (impl &[i32])
            (impl T for (fn (i32) i32))
        "#]],
    );
    check(
        "struct S { a: i32, priv b: i32, pub c: i32 }",
        expect![[r#"
        (struct S (a i32) (priv b i32) (c i32))
    "#]],
    );
}

#[test]
fn reads_modules() {
    check(
        "mod m { priv fn f() { } mod n { } extern { fn g(i32) -> (); } use super::x; } mod o; pub mod p { ; }",
        expect![[r#"
            (mod m
              priv (fn f ()
                {})
              (mod n)
              (extern "C"
                (fn g ((_ i32)) (tuple)))
              (use super::x))
            (mod-file o)
            (mod p)
        "#]],
    );
    check(
        "use a; use a::b::c; use a::b as c; use ::a::*; pub use self::a::*; fn f() { use a::*; use + 1 }",
        expect![[r#"
        (use a)
        (use a::b::c)
        (use a::b as c)
        (use ::a::*)
        (use self::a::*)
        (fn f ()
          {(use a::*)
            (+ use 1)})
    "#]],
    );
    check(
        "mod a { fn f( { } fn g() { 1 } } fn h() { }",
        expect![[r#"
        1:15 error[unexpected-token]: found `{`, expected a type
        (mod a)
        (fn h ()
          {})
    "#]],
    );
    check(
        "mod a { fn f() { } } } mod b { 1 fn g() { } } fn h() { }",
        expect![[r#"
        1:22 error[unexpected-token]: found `}`, expected an item
        1:32 error[unexpected-token]: found `1`, expected an item (`fn`, `struct`, `static`, `type`, `extern`, …)
        (mod a
          (fn f ()
            {}))
        (mod b)
        (fn h ()
          {})
    "#]],
    );
    check_errors(
        "fn f() { mod m; mod a { mod b; } } mod c { fn g() { mod d { fn h() { } } } mod e; }",
        expect![[r#"
        1:15 error[unexpected-token]: found `;`, expected `{` and items
        1:30 error[unexpected-token]: found `;`, expected `{` and items
    "#]],
    );
    check_errors(
        "mod a { mod b { fn f() { } }",
        expect![[r#"
        1:7 error[unclosed-delimiter]: `{` is not closed, expected an item or `}`
    "#]],
    );
}

#[test]
fn reads_paths() {
    check_expr(
        "(::a::b, Vec[f32]::new(), E[i32]::A, a::E[i32, f32]::B[i8](1), S[i32] { a: 1 })",
        expect!["(tuple ::a::b (Vec[f32]::new) E[i32]::A (a::E[i32 f32]::B[i8] 1) (struct S[i32] (a 1)))"],
    );
    check_expr(
        "(S { a: 1, ..p }, S { ..f(x), }, if S { ..p }.a { 1 })",
        expect!["(tuple (struct S (a 1) (.. p)) (struct S (.. (f x))) (if (. (struct S (.. p)) a) {1}))"],
    );
    check_expr("((f)[i32](1), x.m[i32](y), (a.b)[i32])", expect!["(tuple (f[i32] 1) ((. x m[i32]) y) (. a b[i32]))"]);
    check_expr(
        "g()[i32](1)",
        expect![[r#"
        ({(let _callee (g))
          _callee[i32]} 1)"#]],
    );
    check(
        "type T = (::a::B[C], V[i32]::Item, self::x::Y, super::Z);",
        expect![[r#"
        (type T (tuple ::a::B[C] V[i32]::Item self::x::Y super::Z))
    "#]],
    );
    check_errors(
        "static a = f(1)[2]; static b = f(x)[i32](2); static c = f::<i32>(1);",
        expect![[r#"
        1:17 error[unexpected-token]: found `2`, expected a type
        1:60 error[unexpected-token]: found `<`, expected a name
    "#]],
    );
}

#[test]
fn reads_patterns() {
    check(
        "fn f((a, b): (i32, i32), T, mut c: i32) {
    match x {
        1 => a,
        -1 => b, -2.5f => c,
        'a' => d, true => e,
        E::A => f, ::E::B(p, (q, _)) => g,
        Some(x) if x > 1 => h,
        S { a: p, b, mut c, d: T::U { .. }, .. } => i,
        E[i32]::A => j,
        x: i32 => k,
        () => l,
        ((x)) => m,
        _ => n
    }
    let S { a, b } = s;
    let (E::B(x): E, mut y) = t;
    for (i, Some(j)), S { k } in g() { }
    for in g() { }
    match y { z: i32 => 1, w => 2 }
    |(a, B(c)), S { d }: S| 1
}",
        expect![[r#"
            (fn f (((tuple a b) (tuple i32 i32)) (_ T) (mut c i32))
              {(match x
                  (1 => a)
                  ((- 1) => b)
                  ((- 2.5f32) => c)
                  ('a' => d)
                  (true => e)
                  (E::A => f)
                  ((::E::B p (tuple q _)) => g)
                  ((Some x) if (> x 1) => h)
                  ((struct S (a p) (b b) (c mut c) (d (struct T::U ..)) ..) => i)
                  (E[i32]::A => j)
                  ((x i32) => k)
                  ((tuple) => l)
                  (x => m)
                  (_ => n));
                (let (struct S (a a) (b b)) s)
                (let (tuple ((E::B x) E) mut y) t)
                (for ((tuple i (Some j)) (struct S (k k))) (g) {});
                (for () (g) {});
                (match y
                  ((z i32) => 1)
                  (w => 2));
                (lambda ((tuple a (B c)) ((struct S (d d)) S)) 1)})
        "#]],
    );
}

#[test]
fn reads_matches() {
    check(
        "fn f() {
    match x { }
    match s { A => { 1 } B => { 2 } (a, b) => { } -1 => if a { } else { } 'a' => match y { } C(x) => { }.x, D => { } (1), E => { } - 1 }
    let y = match x { _ if a == S { x: 1 } => |x| { x }, _ => x = 2, } + 1;
    match (S { a: 1 }) { _ => 1 }
}",
        expect![[r#"
            (fn f ()
              {(match x);
                (match s
                  (A => {1})
                  (B => {2})
                  ((tuple a b) => {})
                  ((- 1) => (if a {} else {}))
                  ('a' => (match y))
                  ((C x) => (. {} x))
                  (D => ({} 1))
                  (E => (- {} 1)));
                (let y (+ (match x
                  (_ if (== a (struct S (x 1))) => (lambda (x) {x}))
                  (_ => (= x 2))) 1))
                (match (struct S (a 1))
                  (_ => 1))})
        "#]],
    );
    check_errors(
        "fn f() {
    match x { 1 -> 2 };
    match x { 1 | 2 => 3 };
    match x { 1..5 => 3 };
    match x { 1 => 2; 2 => 3 };
    match x { 1 => 2 2 => 3 };
    match x { case 1: 2 };
    match x { default: 2 };
    match x { else => 2 };
    match x { &y => 2 };
    match x { \"a\" => 2 };
    match x { -a => 2 };
    match x { S { .., a } => 2 };
    if let A(x) = y { }
    match x { 1 => 2
}
fn g() { let a = ; }",
        expect![[r#"
            1:8 error[unclosed-delimiter]: `{` is not closed, expected `}`
            2:17 error[unexpected-token]: found `->`, expected `=>` after the pattern
            3:17 error[unexpected-token]: found `|`, expected `=>` after the pattern
            4:16 error[unexpected-token]: found `..`, expected `=>` after the pattern
            5:21 error[unexpected-token]: found `;`, expected `,` or `}` after the arm
            6:22 error[unexpected-token]: found `2`, expected `,` or `}` after the arm
            7:20 error[unexpected-token]: found `1`, expected `=>` after the pattern
            8:27 error[unexpected-token]: found `;`, expected `{` and arms
            9:15 error[unexpected-token]: found `else`, expected a name or a pattern
            10:15 error[unexpected-token]: found `&`, expected a name or a pattern
            11:15 error[unexpected-token]: found a string, expected a name or a pattern
            12:16 error[unexpected-token]: found `a`, expected a number
            13:23 error[unexpected-token]: found `a`, expected `}` after `..`
            14:8 error[unexpected-token]: found `let`, expected an expression
            17:18 error[unexpected-token]: found `;`, expected an expression
        "#]],
    );
}

#[test]
fn reads_asm() {
    check(
        r#"fn f() {
    asm("nop");
    asm("a" "b" : "=r"(x), "=r"(y) : "r"(e + 1), : "memory", "cc" : "volatile");
    asm("nop" :: "r"(x)); asm("nop" ::: "memory"); asm("nop" :::: "volatile"); asm("nop" : : : );
}"#,
        expect![[r#"
            (fn f ()
              {(asm "nop" : : : :);
                (asm "ab" : ("=r" x) ("=r" y) : ("r" (+ e 1)) : "memory" "cc" : "volatile");
                (asm "nop" : : ("r" x) : :);
                (asm "nop" : : : "memory" :);
                (asm "nop" : : : : "volatile");
                (asm "nop" : : : :);})
        "#]],
    );
    check_errors(
        r#"fn f() { asm(x); asm("a" : x); asm("a" : "=r" x); asm("a" ::::: "b"); asm("a" : "=r"(x) "r"(y)); asm("a" "#,
        expect![[r#"
            1:14 error[unexpected-token]: found `x`, expected the instructions in `"…"`
            1:28 error[unexpected-token]: found `x`, expected `:`, `)`, or an output `"=r"(place)`
            1:47 error[unexpected-token]: found `x`, expected `(` and the operand
            1:63 error[unexpected-token]: found `:`, expected `)`; options are the last part
            1:89 error[unexpected-token]: found a string, expected `:`, `)`, or an output `"=r"(place)`
            1:101 error[unclosed-delimiter]: `(` is not closed, expected `:` or `)`
        "#]],
    );
}

#[test]
fn hints_at_what_other_languages_write() {
    let mut out = String::new();
    for text in [
        "enum E { A; B }",
        "enum E { A = 1 }",
        "enum E { A { x: i32 } }",
        "enum E<T> { A(T) }",
        "struct S<T> { a: T }",
        "struct S(i32);",
        "trait T<A> { }",
        "impl<T> S[T] { }",
        "type A<T> = T;",
        "fn f<T>(x: T) { }",
        "fn f[T](x: T) where T: A { }",
        "trait T { fn f(&self); }",
        "impl S { fn f(&mut self, x: i32) { } }",
        "impl S { fn f(self) { } }",
        "trait T { type A; }",
        "use a::{b, c};",
        "use a, b;",
        "pub(crate) fn f() { }",
        "fn f() { let x = match a { A => 1 } let y = 2; }",
        "fn f() { while let A = b { } }",
    ] {
        let mut sources = Sources::new();
        let file = sources.add("t.impala", text);
        let mut sink = Sink::default();
        crate::parse(file, text, &mut sink);
        for d in &sink.diagnostics {
            out += &format!("{text}\n    {} ({})\n", d.message, d.hints.join("; "));
        }
    }
    expect![[r#"
        enum E { A; B }
            found `;`, expected `,` or `}` after the option (options end with `,`)
        enum E { A = 1 }
            found `=`, expected `,` or `}` after the option (options have no numbers)
        enum E { A { x: i32 } }
            found `{`, expected `,` or `}` after the option (the parts of an option stand in parentheses: `B(i32)`)
        enum E<T> { A(T) }
            found `<`, expected `{` and options (type parameters stand in brackets: `Name[T]`)
        struct S<T> { a: T }
            found `<`, expected `{` and fields (type parameters stand in brackets: `Name[T]`)
        struct S(i32);
            found `(`, expected `{` and fields (fields have names: `struct S { x: i32 }`)
        trait T<A> { }
            found `<`, expected `{` and functions (type parameters stand in brackets: `Name[T]`)
        impl<T> S[T] { }
            found `<`, expected a type (type parameters stand in brackets: `impl[T] …`)
        type A<T> = T;
            found `<`, expected `=` and a type (type parameters stand in brackets: `Name[T]`)
        fn f<T>(x: T) { }
            found `<`, expected `(` and parameters (type parameters stand in brackets: `fn id[T](x: T) -> T`)
        fn f[T](x: T) where T: A { }
            found `where`, expected a body in `{ … }` (bounds stand with the type parameters: `[T: Bound]`)
        trait T { fn f(&self); }
            found `&`, expected a parameter (the receiver has a type: `self: &Self`, `self: &mut Self`)
        impl S { fn f(&mut self, x: i32) { } }
            found `&`, expected a parameter (the receiver has a type: `self: &Self`, `self: &mut Self`)
        impl S { fn f(self) { } }
            found `self`, expected a parameter (the receiver has a type: `self: &Self`)
        trait T { type A; }
            found `type`, expected `fn` (only functions are allowed here)
        use a::{b, c};
            found `{`, expected a name or `*` (write a `use` for each name)
        use a, b;
            found `,`, expected `;` after the `use` (write a `use` for each name)
        pub(crate) fn f() { }
            found `(`, expected an item (`fn`, `struct`, `static`, `type`, `extern`, …) (write `pub` without parentheses)
        fn f() { let x = match a { A => 1 } let y = 2; }
            found `let`, expected `;` after `let` (end the statement before it with `;`)
        fn f() { while let A = b { } }
            found `let`, expected an expression (patterns are for `match`: `match e { p => …, _ => … }`)
    "#]]
    .assert_eq(&out);
}

#[test]
fn reads_types() {
    check(
        "type A = (fn(i32), fn(x: i32) -> (f32, f32), &&T, &mut shared [i32], &[2]simd[f32 * 4], typeof(1 + 2), (i32), ());",
        expect![[r#"
            (type A (tuple (fn (i32)) (fn (i32) (tuple f32 f32)) &&T &mut <shared>[i32] &<2>simd[f32 * 4] (typeof (+ 1 2)) i32 (tuple)))
        "#]],
    );
}

#[test]
fn reads_lambdas_and_annotations() {
    check_expr("|x, mut y: i32| x + y", expect!["(lambda (x (mut y i32)) (+ x y))"]);
    check_expr(
        "|| |x| -> i32 |(a, b)| -> ! k(a)",
        expect!["(lambda () (lambda (x) i32 (lambda ((tuple a b)) ! (k a))))"],
    );
    check_expr("@(?c)|x| e", expect!["(lambda @((? c)) (x) e)"]);
    check_expr(
        "f(@|x| e, @||e, @{ 1 }, @(g)(x), @g(x))",
        expect!["(f (lambda @ (x) e) (lambda @ () e) ((lambda @ () {1})) (@ (g x)) (@ (g x)))"],
    );
    check_expr("|x||y| x", expect!["(lambda (x) (lambda (y) x))"]);
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
    if a == S { x: 1 } { 1 } else if b { 2 } else { 3 }
    (1, 2);
    if a { } - 1;
    { 1 }
    [1, 2, 3];
    let x;
    [0, .. 5]
}",
        expect![[r#"
            (fn f ()
              {(let ((tuple a mut b) (tuple i32 i32)) (g))
                (for (i j) (range 0 n) @((? i)) {(continue)});
                (for () (@ (gen)) {});
                (with (p) ($ (gen 1)) @ {p});
                (while (< i n) (_++ i));
                (while a {(break)});
                (if (== a (struct S (x 1))) {1} b {2} else {3});
                (tuple 1 2);
                (if a {});
                (- 1);
                {1};
                (array 1 2 3);
                (let x)
                (repeat 0 5)})
        "#]],
    );
    check(
        "fn f() { if x { } while s { } for i in r { } x }",
        expect![[r#"
        (fn f ()
          {(if x {});
            (while s {});
            (for (i) r {});
            x})
    "#]],
    );
    check_expr("(simd[1, 2, 3,], ~[n: f32], simd[])", expect!["(tuple (simd 1 2 3) (~ (array-of n f32)) (simd))"]);
}

#[test]
fn recovers_at_statements() {
    check(
        "fn f() -> i32 {
    let a = ;
    let b = (1 + ;
    let c = 2
    let d = 3;
    g(1, |x| { let y = 1 + * ; y }, ) ;
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
        expect![[r#"
            2:13 error[unexpected-token]: found `;`, expected an expression
            3:18 error[unexpected-token]: found `;`, expected an expression
            4:14 error[missing-semicolon]: found no `;` after `let`
            6:30 error[unexpected-token]: found `;`, expected an expression
            8:6 error[unexpected-token]: found `.0`, expected a field name
            11:7 error[unexpected-token]: found `{`, expected a type
            13:1 error[unexpected-token]: found `}`, expected an item
            14:8 error[unexpected-token]: found `;`, expected a body in `{ … }`
            15:14 error[unexpected-token]: found `}`, expected `:` and the field's type
            (fn f () i32
              {error;
                error;
                (let c 2)
                (let d 3)
                (g 1 (lambda (x) {error;
                  y}));
                a[0];
                error;
                c})
            (fn h ()
              {1})
            (fn j ()
              {2})
        "#]],
    );
}

#[test]
fn reports_unclosed_brackets_once() {
    check_errors(
        "fn f() { g(1, { let x = 2;",
        expect![[r#"
        1:15 error[unclosed-delimiter]: `{` is not closed, expected `}`
    "#]],
    );
    check_errors(
        "fn f() { { { ",
        expect![[r#"
        1:12 error[unclosed-delimiter]: `{` is not closed, expected `}`
    "#]],
    );
    check_errors(
        "fn f() { \"abc",
        expect![[r#"
            1:10 error[unterminated-string]: string is not closed, expected `"`
        "#]],
    );
    check_errors(
        "fn f() { } /* /* */ x",
        expect![[r#"
        1:12 error[unterminated-comment]: comment is not closed, expected `*/`
    "#]],
    );
    check_errors(
        "fn f() { let x = ä€ + `; }",
        expect![[r#"
        1:18 error[unknown-character]: found 'ä', which begins no word or operator
        1:23 error[unknown-character]: found '`', which begins no word or operator
    "#]],
    );
}

fn quick(text: &str) -> String {
    // With the time of tests beside this one.
    let begin = child::cpu_time(std::process::id());
    let (module, errors) = run(text);
    crate::print(&module);
    let taken = child::cpu_time(std::process::id()) - begin;
    assert!(taken.as_secs() < 60, "slow, {taken:?}: {:.40}", text);
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
    expect![[r#"
        1:265 error[nesting-too-deep]: nested deeper than 256 levels
    "#]]
    .assert_eq(&body(&format!("{}1{}", "(".repeat(n), ")".repeat(n))));
    expect![[r#"
        1:520 error[nesting-too-deep]: nested deeper than 256 levels
    "#]]
    .assert_eq(&body(&format!("{}1", "-".repeat(n))));
    expect![[r#"
        1:520 error[nesting-too-deep]: nested deeper than 256 levels
    "#]]
    .assert_eq(&body(&format!("{}1", "- ".repeat(n))));
    expect![[r#"
        1:10 error[nesting-too-deep]: expression is deeper than 2000 operations
    "#]]
    .assert_eq(&body(&format!("a{}", ".a".repeat(n))));
    expect![[r#"
        1:10 error[nesting-too-deep]: expression is deeper than 2000 operations
    "#]]
    .assert_eq(&body(&format!("f{}", "()".repeat(n))));
    expect![[r#"
        1:10 error[nesting-too-deep]: expression is deeper than 2000 operations
    "#]]
    .assert_eq(&body(&format!("1{}", "+1".repeat(n))));
    expect![[r#"
        1:10 error[nesting-too-deep]: expression is deeper than 2000 operations
    "#]]
    .assert_eq(&body(&format!("1{}", " as i32".repeat(n))));
    expect![[r#"
        1:391 error[nesting-too-deep]: nested deeper than 256 levels
    "#]]
    .assert_eq(&body(&format!("{}1", "|x|".repeat(n))));
    expect![[""]].assert_eq(&body(&format!("if a {{ 1 }} {}", "else if b { 2 }".repeat(n))));
    expect![[r#"
        1:265 error[nesting-too-deep]: nested deeper than 256 levels
    "#]]
    .assert_eq(&body(&format!("{}{}", "{".repeat(n), "}".repeat(n))));
    expect![[r#"
        1:265 error[nesting-too-deep]: nested deeper than 256 levels
    "#]]
    .assert_eq(&quick(&format!("fn f() {{ {}", "{".repeat(n))));
    expect![[r#"
        1:522 error[nesting-too-deep]: nested deeper than 256 levels
    "#]]
    .assert_eq(&quick(&format!("type T = {}i32;", "&".repeat(n))));
    expect![[r#"
        1:1034 error[nesting-too-deep]: nested deeper than 256 levels
    "#]]
    .assert_eq(&quick(&format!("fn f() {{ {} }}", "for ".repeat(n))));
    expect![[r#"
        1:1160 error[nesting-too-deep]: nested deeper than 256 levels
    "#]]
    .assert_eq(&quick(&format!("fn f() {{ {} }}", "fn g() { ".repeat(n))));
    expect![[r#"
        1:2057 error[nesting-too-deep]: nested deeper than 256 levels
    "#]]
    .assert_eq(&quick(&"mod a { ".repeat(n)));
    expect![[r#"
        1:269 error[nesting-too-deep]: nested deeper than 256 levels
    "#]]
    .assert_eq(&body(&format!("let {} = 1", "(".repeat(n))));
    expect![[r#"
        1:524 error[nesting-too-deep]: nested deeper than 256 levels
    "#]]
    .assert_eq(&body(&format!("let {} = 1", "A(".repeat(n))));
    expect![[r#"
        1:1799 error[nesting-too-deep]: nested deeper than 256 levels
    "#]]
    .assert_eq(&body(&format!("let {} = 1", "S { a: ".repeat(n))));
    expect![[r#"
        1:1925 error[nesting-too-deep]: nested deeper than 256 levels
    "#]]
    .assert_eq(&body(&"match x { _ => ".repeat(n)));
    expect![[r#"
        1:1925 error[nesting-too-deep]: nested deeper than 256 levels
    "#]]
    .assert_eq(&body(&"match x { _ if ".repeat(n)));
    expect![[r#"
        1:1546 error[nesting-too-deep]: nested deeper than 256 levels
    "#]]
    .assert_eq(&body(&"match ".repeat(n)));
    expect![[r#"
        1:1534 error[nesting-too-deep]: nested deeper than 256 levels
    "#]]
    .assert_eq(&body(&"asm(\"\" : \"\"(".repeat(n)));
    expect![[r#"
        1:2800 error[nesting-too-deep]: nested deeper than 256 levels
    "#]]
    .assert_eq(&body(&"a[a::b[c]::".repeat(n)));
    expect![[r#"
        1:2063 error[nesting-too-deep]: nested deeper than 256 levels
    "#]]
    .assert_eq(&quick(&"impl T for S { fn f() { ".repeat(n)));
    expect![[r#"
        1:9 error[unclosed-delimiter]: `{` is not closed, expected `}`
        1:16 error[unexpected-token]: found `enum`, expected a type
    "#]]
    .assert_eq(&quick(&"trait T { fn f(enum E { A(fn[A: ".repeat(n)));
    expect![[""]].assert_eq(&quick(&format!("fn f() {{ match x {{ {} }} }}", "1 => { } ".repeat(n))));
    expect![[""]].assert_eq(&quick(&format!("use {}a;", "a::".repeat(n))));
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

#[test]
fn reads_constants_among_types() {
    check(
        "struct M[T: Num, const N: i32] { a: [T * {N + 1}] }
fn f[const](const: M[i32, 4], b: M[const, {2 * n}], c: M[i32, -1]) -> [i32 * N] { g[true](a.m[3]()) }",
        expect![[r#"
            (struct M[T:Num const N:i32] (a [T * {(+ N 1)}]))
            (fn f[const] ((const M[i32 4]) (b M[const {(* 2 n)}]) (c M[i32 (- 1)])) [i32 * N]
              {(g[true] ((. a m[3])))})
        "#]],
    );
    check_errors(
        "fn f[const N](x: N) -> () { }",
        expect![[r#"
        1:13 error[unexpected-token]: found `]`, expected `:` and the constant's type
    "#]],
    );
    check_errors(
        "fn f() -> () { g[N + 1]() }",
        expect![[r#"
        1:20 error[unexpected-token]: found `+`, expected `,` or `]`
    "#]],
    );
    check_errors(
        "fn f() -> () { g[{N + 1](); }",
        expect![[r#"
        1:17 error[unclosed-delimiter]: `[` is not closed, expected `,` or `]`
        1:24 error[unexpected-token]: found `]`, expected `;` after the expression
    "#]],
    );
    check_errors(
        "fn f() -> () { g()[1] }",
        expect![[r#"
        1:20 error[unexpected-token]: found `1`, expected a type
    "#]],
    );
}
