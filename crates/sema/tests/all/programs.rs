//! Types, errors, and the graph that programs become. Every graph is verified.

#[path = "../../../xtask/src/child.rs"]
#[allow(dead_code, reason = "processor time alone is asked for")]
mod child;

use expect_test::{Expect, expect};
use nyala_base::{Sink, Sources};
use nyala_sema::{Input, check as check_program, lower};

const PRELUDE: &str = r#"
    fn @(?a & ?b & ?s) unroll_step(a: i32, @b: i32, @s: i32, body: fn(i32) -> ()) -> () {
        if a < b { @@body(a); unroll_step(a + s, b, s, body) }
    }
    fn @range(a: i32, b: i32, body: fn(i32) -> ()) -> () { unroll_step($a, b, 1, body) }
    extern "thorin" {
        fn "sqrt" sqrt_f32(f32) -> f32;
        fn sqrt(f64) -> f64;
        fn pow(f64, f64) -> f64;
        fn sizeof[T]() -> i64;
        fn bitcast[D, S](S) -> D;
        fn select[C, T](C, T, T) -> T;
        fn undef[T]() -> T;
        fn pe_info[T](&[u8], T) -> ();
        fn pe_known[T](T) -> bool;
        fn vectorize(i32, i32, i32, fn(i32) -> ()) -> ();
    }
    extern "C" { fn "print_i32" print(i32) -> (); }
"#;

/// Errors as text, and the world if there are none.
fn run(text: &str) -> (String, Option<nyala_ir::World>) {
    let mut sources = Sources::new();
    let mut sink = Sink::default();
    let prelude_id = sources.add("prelude.impala", PRELUDE);
    let prelude = nyala_syntax::parse(prelude_id, PRELUDE, &mut sink);
    let file = sources.add("t.impala", text);
    let files = [std::sync::Arc::new(nyala_syntax::parse(file, text, &mut sink))];
    let program =
        check_program(&Input { prelude: Some(&prelude), libraries: &[], files: &files, exports: &Vec::new }, &mut sink);
    let world = match sink.has_errors() {
        true => None,
        false => lower(
            &program,
            &sources,
            nyala_sema::Lowering {
                spaces: nyala_ir::target::Spaces::FLAT,
                wrap: false,
                debug: false,
                checks_bounds: false,
            },
            &mut sink,
        ),
    };
    let mut out = String::new();
    // The programs are short: what they declare is seldom used.
    sink.diagnostics.retain(|d| d.code != "unused-name");
    for d in &sink.diagnostics {
        let place = sources.place(d.primary.span);
        let place = place.strip_prefix("t.impala:").unwrap_or(&place);
        out += &format!("{place} {}: {}", d.code, d.message);
        for hint in &d.hints {
            out += &format!(" ({hint})");
        }
        out.push('\n');
    }
    (out, world)
}

fn check_errors(text: &str, expect: Expect) {
    expect.assert_eq(&run(text).0);
}

fn check_ok(text: &str) {
    let (errors, world) = run(text);
    assert_eq!(errors, "", "{text}");
    let world = world.expect("no errors, no world");
    assert_eq!(nyala_ir::verify::verify(&world, &world.roots()), Vec::<String>::new(), "{text}");
}

/// The graph.
fn check(text: &str, expect: Expect) {
    let (errors, world) = run(text);
    let out = match &world {
        Some(world) => {
            let faults = nyala_ir::verify::verify(world, &world.roots());
            errors + &nyala_ir::print::print(world) + &faults.join("\n")
        }
        None => errors,
    };
    expect.assert_eq(&out);
}

#[test]
fn lowers_tail_calls_without_continuations() {
    check(
        "extern fn f(x: i32) -> i32 { g(x) } fn g(x: i32) -> i32 { if x == 0 { f(x) } else { x } }",
        expect![[r#"
        graph
        export cont f(m: mem, x: i32, ret: cn(mem, i32)) = g(m, x, ret)
        cont g(m.1: mem, x.1: i32, ret.1: cn(mem, i32)) = branch(m.1, eq(x.1, 0), then, else)
          cont then(m.2: mem) = f(m.2, x.1, ret.1)
          cont else(m.3: mem) = ret.1(m.3, x.1)
    "#]],
    );
}

#[test]
fn lowers_pow() {
    check(
        "extern fn @(?n) pow(x: i32, n: i32) -> i32 { if n == 0 { 1 } else { x * pow(x, n - 1) } }",
        expect![[r#"
            graph
            export cont pow(m: mem, x: i32, n: i32, ret: cn(mem, i32)) @(?n) = branch(m, eq(n, 0), then, else)
              cont then(m.1: mem) = ret(m.1, 1)
              cont else(m.2: mem) = pow(m.2, x, add(n, -1), k)
              cont k(m.3: mem, r: i32) = ret(m.3, mul(x, r))
        "#]],
    );
}

#[test]
fn lowers_while_with_values() {
    check(
        "extern fn f(n: i32) -> i32 {
            let mut s = 0;
            let mut i = 0;
            while i < n {
                if i == 5 { continue() }
                if i == 7 { break() }
                if i % 2 == 0 { s += i; }
                i++;
            }
            s
        }",
        expect![[r#"
            graph
            export cont f(m: mem, n: i32, ret: cn(mem, i32)) = while(m, 0, 0)
              cont while(m.1: mem, s: i32, i: i32) = branch(m.1, lt(i, n), loop, done)
                cont loop(m.2: mem) = branch(m.2, eq(i, 5), then, else)
                cont then(m.3: mem) = while(m.3, s, i)
                cont else(m.4: mem) = branch(m.4, eq(i, 7), then.1, else.1)
                cont then.1(m.5: mem) = break(m.5, s, i)
                cont else.1(m.6: mem) = branch(m.6, eq(rem(i, 2), 0), then.2, else.2)
                cont then.2(m.7: mem) = join(m.7, add(s, i))
                cont join(m.8: mem, s.1: i32) = while(m.8, s.1, add(i, 1))
                cont else.2(m.9: mem) = join(m.9, s)
                cont done(m.10: mem) = break(m.10, s, i)
              cont break(m.11: mem, s.2: i32, i.1: i32) = ret(m.11, s.2)
        "#]],
    );
}

#[test]
fn lowers_for_with_slots() {
    check(
        "extern fn f(n: i32) -> i32 {
            let mut s = 0;
            for i in range(0, n) {
                if i == 3 { continue() }
                if i == 4 { break() }
                if i == 5 { return(1) }
                s += i;
            }
            s
        }
        fn main() -> () { for i in range(0, 3) @ { print(i) } }",
        expect![[r#"
            graph
            export cont f(m: mem, n: i32, ret: cn(mem, i32)) = range(m.1, 0, n, body, break)
              let t = slot[i32](m)
              let t.1 = extract(t, 1i64)
              let m.1 = store(extract(t, 0i64), t.1, 0)
              cont body(m.2: mem, i: i32, ret.1: cn(mem)) = branch(m.2, eq(i, 3), then.1, else.1)
                cont then.1(m.3: mem) = ret.1(m.3)
                cont else.1(m.4: mem) = branch(m.4, eq(i, 4), then.2, else.2)
                cont else.2(m.5: mem) = branch(m.5, eq(i, 5), then.3, else.3)
                cont else.3(m.6: mem) = ret.1(m.7)
                  let t.2 = load(m.6, t.1)
                  let m.7 = store(m.6, t.1, add(t.2, i))
              cont then.2(m.8: mem) = break(m.8)
              cont then.3(m.9: mem) = ret(m.9, 1)
              cont break(m.10: mem) = ret(m.10, t.3)
                let t.3 = load(m.10, t.1)
            cont range(m.11: mem, a: i32, b: i32, body.2: cn(mem, i32, cn(mem)), ret.2: cn(mem)) @ = unroll_step(m.11, hlt(a), b, 1, body.2, ret.2)
            cont unroll_step(m.12: mem, a.1: i32, @ b.1: i32, @ s: i32, body.3: cn(mem, i32, cn(mem)), ret.3: cn(mem)) @(and(and(?a.1, ?b.1), ?s)) = branch(m.12, lt(a.1, b.1), then, else)
              cont then(m.13: mem) = unfold(body.3)(m.13, a.1, k)
              cont k(m.14: mem) = unroll_step(m.14, add(a.1, s), b.1, s, body.3, ret.3)
              cont else(m.15: mem) = ret.3(m.15)
            export cont main(m.16: mem, ret.4: cn(mem)) = range(m.16, 0, 3, body.1, ret.4)
            cont body.1(m.17: mem, i.1: i32, ret.5: cn(mem)) @ = print_i32(m.17, i.1, ret.5)
            foreign cont print_i32(m.18: mem, x: i32, x.1: cn(mem))
        "#]],
    );
}

#[test]
fn lowers_figure_4_of_the_paper() {
    check(
        "fn g(c: fn() -> !) -> () { }
        extern fn f(a: i32, b: i32, return: fn() -> !) -> ! {
            fn body(i: i32, continue: fn() -> !) -> ! {
                if i == 23 { continue() }
                else if i == 42 { break() }
                else if i == 97 { return() }
                g(continue, G)
                fn G() -> ! { print(i, P) }
                fn P() -> ! { continue() }
            }
            fn break() -> ! { return() }
            range(a, b, body, break)
        }",
        expect![[r#"
            graph
            export cont f(m: mem, a: i32, b: i32, return: cn(mem)) = range(m, a, b, body, break)
              cont body(m.1: mem, i: i32, continue: cn(mem)) = branch(m.1, eq(i, 23), then.1, else.1)
                cont then.1(m.2: mem) = continue(m.2)
                cont else.1(m.3: mem) = branch(m.3, eq(i, 42), then.2, else.2)
                cont else.2(m.4: mem) = branch(m.4, eq(i, 97), then.3, else.3)
                cont else.3(m.5: mem) = g(m.5, continue, G)
                cont G(m.6: mem) = print_i32(m.6, i, P)
                cont P(m.7: mem) = continue(m.7)
              cont then.2(m.8: mem) = break(m.8)
              cont then.3(m.9: mem) = return(m.9)
              cont break(m.10: mem) = return(m.10)
            cont range(m.11: mem, a.1: i32, b.1: i32, body.1: cn(mem, i32, cn(mem)), ret: cn(mem)) @ = unroll_step(m.11, hlt(a.1), b.1, 1, body.1, ret)
            cont unroll_step(m.12: mem, a.2: i32, @ b.2: i32, @ s: i32, body.2: cn(mem, i32, cn(mem)), ret.1: cn(mem)) @(and(and(?a.2, ?b.2), ?s)) = branch(m.12, lt(a.2, b.2), then, else)
              cont then(m.13: mem) = unfold(body.2)(m.13, a.2, k)
              cont k(m.14: mem) = unroll_step(m.14, add(a.2, s), b.2, s, body.2, ret.1)
              cont else(m.15: mem) = ret.1(m.15)
            cont g(m.16: mem, c: cn(mem), ret.2: cn(mem)) = ret.2(m.16)
            foreign cont print_i32(m.17: mem, x: i32, x.1: cn(mem))
        "#]],
    );
}

#[test]
fn lowers_aggregates() {
    check(
        "struct S { a: i32, f: fn(i32) -> i32 }
        extern fn f(x: i32) -> i32 {
            let mut s = S { a: x, f: |y| y + x };
            s.a += 1;
            let (p, q) = (s.a, 2.5f32);
            let mut t = (p, [1, 2, 3]);
            t(1)(2) = 4;
            s.f(t(1)(2) + q as i32)
        }
        extern fn g(i: i32) -> i32 { let a = [1, 2, 3]; a(i) }
        extern fn h(i: i32) -> i32 { let mut a = [0, .. 4]; a(i) = i; a(1) }",
        expect![[r#"
            graph
            struct S { a: i32, f: cn(mem, i32, cn(mem, i32)) }
            static const: [i32 * 3] = array[[i32 * 3]](1, 2, 3)
            export cont f(m: mem, x: i32, ret: cn(mem, i32)) = lambda(m, 6, ret)
              cont lambda(m.1: mem, y: i32, ret.1: cn(mem, i32)) = ret.1(m.1, add(y, x))
            export cont g(m.2: mem, i: i32, ret.2: cn(mem, i32)) = ret.2(m.2, t)
              let t = load(m.2, lea(&const, i))
            export cont h(m.3: mem, i.1: i32, ret.3: cn(mem, i32)) = ret.3(m.5, t.3)
              let t.1 = slot[[i32 * 4]](m.3)
              let t.2 = extract(t.1, 1i64)
              let m.4 = store(extract(t.1, 0i64), t.2, splat[[i32 * 4]](0))
              let m.5 = store(m.4, lea(t.2, i.1), i.1)
              let t.3 = load(m.5, lea(t.2, 1i64))
        "#]],
    );
}

#[test]
fn lowers_pointers() {
    check(
        "struct N { v: i32, next: &N }
        fn sum(a: &[i32], n: i32) -> i32 { a(0) + a(n) }
        extern fn f(n: &mut N, p: &mut [i32], i: i32) -> i32 {
            n.v = p(i);
            p(i) = n.next.next.v;
            let mut x = 1;
            let q = &mut x;
            *q = 2;
            sum([1, 2, 3], 2) + sum(p, x) + *&x
        }",
        expect![[r#"
            graph
            struct N { v: i32, next: &N }
            static const: [i32 * 3] = array[[i32 * 3]](1, 2, 3)
            export cont f(m: mem, n: &N, p: &[i32], i: i32, ret: cn(mem, i32)) = sum(m.4, bitcast[&[i32]](&const), 2, k)
              let t = lea(p, i)
              let t.1 = load(m, t)
              let m.1 = store(m, lea(n, 0i64), t.1)
              let t.2 = load(m.1, lea(n, 1i64))
              let t.3 = load(m.1, lea(t.2, 1i64))
              let t.4 = load(m.1, lea(t.3, 0i64))
              let m.2 = store(m.1, t, t.4)
              let t.5 = slot[i32](m.2)
              let t.6 = extract(t.5, 1i64)
              let m.3 = store(extract(t.5, 0i64), t.6, 1)
              let m.4 = store(m.3, t.6, 2)
              cont k(m.5: mem, r: i32) = sum(m.5, p, t.7, k.1)
                let t.7 = load(m.5, t.6)
                cont k.1(m.6: mem, r.1: i32) = ret(m.6, add(add(r, r.1), t.8))
                  let t.8 = load(m.6, t.6)
            cont sum(m.7: mem, a: &[i32], n.1: i32, ret.1: cn(mem, i32)) = ret.1(m.7, add(t.9, t.10))
              let t.9 = load(m.7, lea(a, 0i64))
              let t.10 = load(m.7, lea(a, n.1))
        "#]],
    );
}

#[test]
fn lowers_statics() {
    check(
        r#"static n = 4;
        static table: [i32 * n] = [1, n, -3, double];
        static double = 2 * n;
        static mut counter: i32;
        static ops = Ops { add: |a, b| a + b, twice };
        struct Ops { add: fn(i32, i32) -> i32, twice: fn(i32) -> i32 }
        "#,
        expect![[r#"
            5:53 unexpected-token: found `}`, expected `:` and the field's value (every field has its value: `x: x`)
        "#]],
    );
    check(
        r#"static n = 4;
        static table: [i32 * n] = [1, n, -3, double];
        static double = 2 * n;
        static mut counter: i32;
        static ops = Ops { add: |a, b| a + b, twice: twice };
        static text = "hi";
        static p = &counter;
        struct Ops { add: fn(i32, i32) -> i32, twice: fn(i32) -> i32 }
        fn twice(x: i32) -> i32 { x + x }
        extern fn f(i: i32) -> i32 { counter++; ops.add(table(i), table(3)) + ops.twice(*p) + text(0) as i32 }"#,
        expect![[r#"
            graph
            struct Ops { add: cn(mem, i32, i32, cn(mem, i32)), twice: cn(mem, i32, cn(mem, i32)) }
            static table: [i32 * 4] = array[[i32 * 4]](1, 4, -3, 8)
            static mut counter: i32
            export cont f(m: mem, i: i32, ret: cn(mem, i32)) = lambda(m.1, t.1, 8, k)
              let t = load(m, &counter)
              let m.1 = store(m, &counter, add(t, 1))
              let t.1 = load(m.1, lea(&table, i))
              cont k(m.2: mem, r: i32) = twice(m.2, t.2, k.1)
                let t.2 = load(m.2, &counter)
                cont k.1(m.3: mem, r.1: i32) = ret(m.3, add(add(r, r.1), 104))
            cont lambda(m.4: mem, a: i32, b: i32, ret.1: cn(mem, i32)) = ret.1(m.4, add(a, b))
            cont twice(m.5: mem, x: i32, ret.2: cn(mem, i32)) = ret.2(m.5, add(x, x))
        "#]],
    );
}

#[test]
fn lowers_filters() {
    check(
        "fn f(@a: i32, @(?a & (b < 5)) b: i32, @?c: i32) -> i32 { a + b + c }
        extern fn g(x: i32) -> i32 { let h = @(?y)|y: i32| f(y, $x, 3); @@h(x) + @@f(1, x, x) }",
        expect![[r#"
            graph
            export cont g(m: mem, x: i32, ret: cn(mem, i32)) = unfold(lambda)(m, x, k)
              cont lambda(m.1: mem, y: i32, ret.1: cn(mem, i32)) @(?y) = f(m.1, y, hlt(x), 3, ret.1)
              cont k(m.2: mem, r: i32) = unfold(f)(m.2, 1, x, x, k.1)
                cont k.1(m.3: mem, r.1: i32) = ret(m.3, add(r, r.1))
            cont f(m.4: mem, @ a: i32, @(and(?a, lt(b, 5))) b: i32, @(?c) c: i32, ret.2: cn(mem, i32)) = ret.2(m.4, add(add(a, b), c))
        "#]],
    );
}

#[test]
fn lowers_intrinsics() {
    check(
        r#"extern fn f(x: f32, c: bool) -> f32 {
            pe_info("x", x);
            let s = M { sqrt: sqrt_f32 };
            let n = sizeof[(i8, i64)]() as f32;
            select(c || pe_known(x), sqrt_f32(x), n) + s.sqrt(bitcast[f32](1) + undef[f32]())
        }
        struct M { sqrt: fn(f32) -> f32 }"#,
        expect![[r#"
            graph
            struct M { sqrt: cn(mem, f32, cn(mem, f32)) }
            export cont f(m: mem, x: f32, c: bool, ret: cn(mem, f32)) = pe_info(m, "x\x00", x, k)
              cont k(m.1: mem) = branch(m.1, c, done, more)
              cont done(m.2: mem) = join(m.2, true)
              cont join(m.3: mem, r: bool) = sqrt_f32(m.3, add(1e-45f32, undef[f32]), k.1)
                cont k.1(m.4: mem, r.1: f32) = ret(m.4, add(select(r, sqrt(x), 16.0f32), r.1))
              cont more(m.5: mem) = join(m.5, ?x)
            cont sqrt_f32(m.6: mem, x.1: f32, x.2: cn(mem, f32)) @ = x.2(m.6, sqrt(x.1))
        "#]],
    );
}

#[test]
fn lowers_short_circuits() {
    check(
        "fn g(x: i32) -> bool { x == 1 }
        extern fn f(x: i32, y: i32) -> bool { (x < y && y < 3) || (x != 0 && y / x == 2) && g(x) }",
        expect![[r#"
            graph
            export cont f(m: mem, x: i32, y: i32, ret: cn(mem, bool)) = branch(m, and(lt(x, y), lt(y, 3)), done, more)
              cont done(m.1: mem) = join(m.1, true)
              cont join(m.2: mem, r: bool) = ret(m.2, r)
              cont more(m.3: mem) = branch(m.3, ne(x, 0), more.1, done.2)
              cont more.1(m.4: mem) = join.1(m.4, eq(t, 2))
                let t = pdiv(m.4, y, x)
              cont join.1(m.5: mem, r.1: bool) = branch(m.5, r.1, more.2, done.1)
              cont more.2(m.6: mem) = g(m.6, x, k)
              cont k(m.7: mem, r.2: bool) = join.2(m.7, r.2)
              cont join.2(m.8: mem, r.3: bool) = join(m.8, r.3)
              cont done.1(m.9: mem) = join.2(m.9, false)
              cont done.2(m.10: mem) = join.1(m.10, false)
            cont g(m.11: mem, x.1: i32, ret.1: cn(mem, bool)) = ret.1(m.11, eq(x.1, 1))
        "#]],
    );
}

#[test]
fn lowers_first_class_loop_continuations() {
    check(
        "fn g(k: fn() -> !) -> () { k() }
        extern fn f(n: i32) -> i32 { let mut i = 0; while true { i++; if i == n { let b = break; g(b); } } i }",
        expect![[r#"
            graph
            export cont f(m: mem, n: i32, ret: cn(mem, i32)) = while(m.1)
              let t = slot[i32](m)
              let t.1 = extract(t, 1i64)
              let m.1 = store(extract(t, 0i64), t.1, 0)
              cont while(m.2: mem) = branch(m.2, true, loop, done)
              cont loop(m.3: mem) = branch(m.4, eq(t.3, n), then, else)
                let t.2 = load(m.3, t.1)
                let m.4 = store(m.3, t.1, add(t.2, 1))
                let t.3 = load(m.4, t.1)
              cont then(m.5: mem) = g(m.5, break, k)
              cont break(m.6: mem) = ret(m.6, t.4)
                let t.4 = load(m.6, t.1)
              cont k(m.7: mem) = join(m.7)
              cont join(m.8: mem) = while(m.8)
              cont else(m.9: mem) = join(m.9)
              cont done(m.10: mem) = break(m.10)
            cont g(m.11: mem, k.1: cn(mem), ret.1: cn(mem)) = k.1(m.11)
        "#]],
    );
}

#[test]
fn infers_in_any_order() {
    check_ok(
        "struct I { get: fn(i32, i32) -> i32 } fn f(img: I) -> i32 { let b = |x, y| img.get(x - 1, y) / 3; b(1, 2) }",
    );
    check_ok("struct S { a: i32 } fn f(s: S) -> i32 { let g = |x| x.a + 1; g(s) }");
    check_ok("fn f() -> u8 { let mut x; let y = 1; x = y; x }");
    check_ok("fn f(p: &mut [i32]) -> () { let g = |q, i| { q(i) = 1; }; g(p, 2); }");
    check_ok("fn f() -> f32 { let x = 1.5; let y = x * 2.; y }");
    check_ok("fn id(f: fn(i32) -> i32) -> fn(i32) -> i32 { f } fn f() -> i32 { id(|x| x + 1)(2) }");
    check_ok("fn comp(f: fn(i32) -> i32, g: fn(i32) -> i32) -> fn(i32) -> i32 { |x| f(g(x)) }");
    check_ok("fn f(x: i32) { x + 1 } fn g() -> i32 { f(1) }");
    check_ok("fn f() -> (i32, i32) { return(1, 2) } fn g() -> i32 { let t = f(); f(|a, b| -> ! return(a + b)) }");
    check_ok(
        "fn f() -> (i32, i32) { let t = (1, 2); return(t) } fn g() -> i32 { f(|t: (i32, i32)| -> ! return(t(0))) }",
    );
    check_ok(
        "fn f(a: i32, return: fn(i32) -> !) -> ! { a + 1 } fn g() -> i32 { f(1) + f(2) } fn h(k: fn(i32) -> i32) -> i32 { k(1) } fn i() -> i32 { h(f) }",
    );
    check_ok(
        "type F = fn(&[i32]) -> i32; fn g(f: fn(&mut [i32 * 3]) -> i32) -> i32 { let mut a = [1, 2, 3]; f(&mut a) } fn h(f: F) -> i32 { g(f) }",
    );
    check_ok(
        "fn f(n: i32) -> bool { fn even(k: i32) -> bool { if k == 0 { true } else { odd(k - 1) } } fn odd(k: i32) -> bool { if k == 0 { false } else { even(k - 1) } } even(n) }",
    );
    check_ok("fn f(x: &i32) -> i32 { *x } fn g() -> i32 { let a = [1, 2]; f(5) + f(a(1)) + f(&a(0)) }");
    check_ok(
        "fn range(a: i32, b: i32, body: fn(i32) -> ()) -> () { body(a) } fn main() -> i32 { for i in range(0, 1) { } 0 }",
    );
    check_ok(
        "fn main() -> () { let x = if true { 1i64 } else { 2 }; let y = 0xFFFFFFFF as u32; let z: i8 = -128; let _ = x; }",
    );
    check_ok("fn f(c: bool) -> i32 { let x: i32 = if c { return(1) } else { 2 }; x }");
    check_ok("fn f(n: i32) -> i32 { let k = |x: i32| -> ! return(x); if n == 0 { k(1) } else { 2 } }");
    check_ok("fn f(a: i32, _: i32, _: &i32) -> i32 { let _ = 1; let (_, _) = (1, a); a }");
    check_ok("fn f() -> i32 { static mut n = 0; n++; n }");
    check_ok("fn f(x: i32) -> i32 { with y in g(x) { y + 1 } } fn g(x: i32, body: fn(i32) -> i32) -> i32 { body(x) }");
    check_ok(
        "extern fn f(n: i32) -> i32 { for i in find(n) { if i > 3 { break(i) } } } fn find(n: i32, body: fn(i32) -> ()) -> i32 { body(n); find(n + 1, body) }",
    );
}

#[test]
fn finds_the_common_type_of_branches() {
    check_ok("fn f(c: bool, p: &mut i32, q: &i32) -> i32 { let r = if c { p } else { q }; *r }");
    check_ok("fn f(c: bool, p: &i32, q: &mut i32) -> i32 { let r = if c { p } else { q }; *r }");
    check_ok("fn f(c: bool, p: &[i32]) -> i32 { let mut a = [1, 2]; let r = if c { &mut a } else { p }; r(0) }");
    check_ok("fn f(c: bool, p: &[i32]) -> i32 { let r: &[i32] = if c { [1, 2] } else { p }; r(0) }");
    check_errors(
        "fn f(x: i32, w: i32) -> bool { let y: u8 = -1; x < 0 | x >= w }",
        expect![[r#"
            1:61 type-mismatch: found `i32`, expected `bool` (comparisons do not chain, and bind looser than `|`, `^` and `&`: join them by `&&` and `||`)
            1:45 literal-out-of-range: literal -1 does not fit `u8` (`i16` has room for it: `-1i16`)
        "#]],
    );
    check_errors(
        "fn f(c: bool) -> () { let x = if c { 1 } else { true }; }",
        expect![[r#"
        1:49 type-mismatch: found `bool`, expected `integer`
    "#]],
    );
}

#[test]
fn drops_values_of_statements() {
    check_ok("fn g() -> i32 { 1 } extern fn f(c: bool) -> () { if c { g() } else { true }; }");
    check_ok("fn g() -> i32 { 1 } extern fn f(c: bool) -> () { if c { g() } else { g() }; }");
    check_ok(
        "extern fn f(c: bool, mut a: [i32 * 2]) -> i32 { if c { ++a(1) } else { a(0) = 4 } if c { a(0)++ } a(1) }",
    );
    check_ok("extern fn f(n: i32) -> i32 { let mut i = 0; while i < n i++; for k in range(0, 3) { i++ } i }");
}

#[test]
fn limits_the_depth_of_types() {
    check_errors(
        &format!("fn f(x: {}i32) -> () {{ }}", "&".repeat(210)),
        expect![[r#"
            1:17 type-too-deep: this type nests too deep (use an array, or a struct with a pointer to the rest)
        "#]],
    );
}

#[test]
fn statics_do_not_capture() {
    check_errors(
        "fn f(a: i32) -> i32 { static s = |x: i32| x + a; static t = a; static u = |x: i32| { let b = x; b }; s(1) + t + u(2) }",
        expect![[r#"
            1:47 not-constant: initializer of a static is not constant (declare a `static mut` without a value, and assign it when the program runs)
            1:61 not-constant: initializer of a static is not constant (declare a `static mut` without a value, and assign it when the program runs)
        "#]],
    );
}

#[test]
fn reports_faults_once() {
    check_errors(
        "fn f() -> i32 { let x = y; let z = x + 1; z(2) + g(z) + y }",
        expect![[r#"
            1:25 unknown-name: found no `y` in scope (declare it, or `use` the library that has it)
            1:50 unknown-name: found no `g` in scope (declare it, or `use` the library that has it)
        "#]],
    );
    check_errors(
        "fn f(count: i32) -> i32 { let x: f32 = 1; cuont + x }",
        expect![[r#"
        1:40 type-mismatch: found `integer`, expected `f32` (an integer literal never becomes a float: write a point, as in `1.0`)
        1:43 unknown-name: found no `cuont` in scope (did you mean `count`?)
    "#]],
    );
    check_errors(
        "fn f(x: i32, y: f32) -> f32 { x + y }",
        expect![[r#"
            1:35 type-mismatch: found `f32`, expected `i32` (convert it with `as i32`)
        "#]],
    );
    check_errors(
        "fn f(x: &i32) -> () { *x = 1; g(x) } fn g(x: &mut i32) -> () { }",
        expect![[r#"
            1:33 type-mismatch: found `&i32`, expected `&mut i32` (nothing can be changed through a `&` pointer; take the address with `&mut`)
            1:23 immutable: a value behind a `&` pointer is changed (make it a `&mut` pointer)
        "#]],
    );
    check_errors(
        "fn f(x: i32) -> i32 { if x == 1 { true } else { 1.5 } }",
        expect![[r#"
            1:35 type-mismatch: found `bool`, expected `i32`
            1:49 type-mismatch: found `float`, expected `i32` (a literal with a point is a float: leave out the point, or convert it with `as`)
        "#]],
    );
    check_errors(
        "fn f(x: i32) -> () { if x { } while 1 { } f(1, 2); f(1.5) }",
        expect![[r#"
            1:25 type-mismatch: found `i32`, expected `bool`
            1:37 type-mismatch: found `integer`, expected `bool`
            1:43 wrong-number-of-arguments: found 2 arguments, expected 1 (it is `fn f(x: i32) -> ()`)
            1:54 type-mismatch: found `float`, expected `i32` (a literal with a point is a float: leave out the point, or convert it with `as`)
        "#]],
    );
    check_errors(
        "fn f() -> i32 { 1; }",
        expect![[r#"
        1:15 type-mismatch: found `()`, expected `i32` (a block's value is its last expression, without `;`)
    "#]],
    );
    check_errors(
        "fn f() -> () { let x = |a| a; let y = undef(); }",
        expect![[r#"
        1:25 ambiguous-type: nothing says which type `a` has (state the type: `x: T`)
        1:35 ambiguous-type: nothing says which type `y` has (state the type: `x: T`)
    "#]],
    );
    check_errors(
        "enum E { A } fn f() -> i32 { E::A; match 1 { 1 => 2 } }",
        expect![[r#"
            1:42 not-exhaustive: no arm matches `0` (add an arm for it, or one for everything else: `_ => …`)
        "#]],
    );
    check_errors(
        "fn f(x: f16) -> () { let y = ~1; let a: simd[f32 * 4]; vectorize(0, 0, 1, |i| print(i)); @f(1); $f(2); f($x) }",
        expect![[r#"
            1:93 type-mismatch: found `integer`, expected `f16` (an integer literal never becomes a float: write a point, as in `1.0`)
            1:100 type-mismatch: found `integer`, expected `f16` (an integer literal never becomes a float: write a point, as in `1.0`)
        "#]],
    );
    check_errors("fn id[T](x: T) -> T { x } fn f() -> i32 { id(1) + id[i32](2) }", expect![""]);
    check_errors(
        "fn f(@(g(n)) n: i32) -> bool { true } extern \"C\" { fn g(i32) -> bool; }",
        expect![[r#"
            1:8 limitation: calls of such functions in filters are not supported yet (call only functions of the program that compute with numbers)
        "#]],
    );
    check_errors(
        "fn main() -> () { for i in 5 { i } for i, j in range(0, 1) { } for i in nope(1) { i(2) } }",
        expect![[r#"
            1:28 not-a-generator: found no call after `in` (loops run over generators: `for i in range(0, n) { … }`)
            1:40 wrong-number-of-arguments: found 2 loop variables, the generator gives 1 (write a name, or `_`, for each: `for x, y in g() { … }`) (it is `fn range(a: i32, b: i32, body: fn(i32) -> ()) -> ()`)
            1:73 unknown-name: found no `nope` in scope (declare it, or `use` the library that has it)
        "#]],
    );
    check_errors(
        "fn f() -> i32 { let x = return(1); 2 }",
        expect![[r#"
            1:25 unreachable-code: this never has a value (let it stand alone as the last statement)
        "#]],
    );
    check_errors(
        "type A = B; type B = A; fn f(a: A) -> () { }",
        expect![[r#"
        1:6 recursive-type: type `A` contains itself (recursion needs a `struct`)
    "#]],
    );
    check_errors(
        "fn f(x: i32, x: i32) -> () { return(1, 2) }",
        expect![[r#"
            1:14 duplicate-name: parameter `x` is defined twice (rename or remove one of the two)
            1:30 wrong-number-of-arguments: found 2 arguments, expected 0 (the applied value has type `fn() -> !`)
        "#]],
    );
    check_errors(
        "static a = b; static b = a; extern fn f() -> i32 { a }",
        expect![[r#"
            1:26 recursive-static: static `a` depends on itself (give one of the statics in this cycle a value of its own)
        "#]],
    );
}

#[test]
fn survives_large_programs() {
    let n = 20_000;
    // All of it takes a second.
    let begin = child::cpu_time(std::process::id());
    let time = |text: String| {
        let (errors, _) = run(&text);
        assert!(errors.len() < 2000, "{errors}");
        let taken = child::cpu_time(std::process::id()) - begin;
        assert!(taken.as_secs() < 30, "slow, {taken:?}: {:.60}", text);
    };
    time(format!("extern fn f() -> () {{ let mut x = 0; {} }}", "x += 1; print(x); ".repeat(n)));
    time(format!("extern fn f(c: bool) -> i32 {{ let mut x = 0; {} x }}", "if c { x = 1; } ".repeat(n)));
    time((0..n).map(|i| format!("extern fn f{i}(x: i32) -> i32 {{ x + {i} }} ")).collect());
    time(format!("extern fn f() -> i32 {{ {} 1 }}", "let x = |y| y + 1; ".repeat(n)));
    time(format!("extern fn f(x: i32) -> i32 {{ x{} }}", " + x".repeat(1900)));
    time(format!("extern fn f(x: i32) -> i32 {{ {}x{} }}", "(1 + ".repeat(200), ")".repeat(200)));
    time(format!(
        "extern fn f(x: i32) -> i32 {{ if x == 0 {{ 1 }} {} else {{ 2 }} }}",
        "else if x == 1 { 2 } ".repeat(n)
    ));
    time(format!(
        "fn f() -> () {{ let x0 = (1, 1); {} }}",
        (1..1000).map(|i| format!("let x{i} = (x{}, x{}); ", i - 1, i - 1)).collect::<String>()
    ));
    time(format!("fn f() -> () {{ {} }}", "nope(1); ".repeat(n)));
    time((0..n).map(|i| format!("type T{i} = T{}; ", i + 1)).collect::<String>() + "type T20000 = i32;");
    time(
        (0..n).map(|i| format!("static s{i} = s{} + 1; ", i + 1)).collect::<String>()
            + "static s20000 = 1; extern fn f() -> i32 { s0 }",
    );
}
