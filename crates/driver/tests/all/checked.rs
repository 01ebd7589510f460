//! Checked execution: it reports operations that are undefined in optimized code. Defined programs give the results of
//! the residual program, also with deep recursion, long loops and abandoned frames.

use nyala_driver::{Files, FrontEnd, Options};

/// The result of `main` of the program as written, in the interpreter, or the code of the first error.
fn interpret(text: &str) -> Result<i32, String> {
    let graph = FrontEnd::new(Options::default(), Files::of("test.impala", text)).graph();
    let result = graph.and_then(|graph| graph.interpret("main", &["test".into()], &[]));
    result.map_err(|failed| {
        let error = failed.sink.diagnostics.iter().find(|d| d.severity == nyala_base::Severity::Error);
        error.map_or("no error".into(), |d| format!("{}: {}", d.code, d.message))
    })
}

/// Checks that the program, and its residual program without and with partial evaluation, give `expected`.
fn agree(text: &str, expected: i32) {
    assert_eq!(interpret(text), Ok(expected));
    for partial_evaluation in [false, true] {
        let options = Options { partial_evaluation, ..Options::default() };
        let graph = FrontEnd::new(options, Files::of("test.impala", text)).graph();
        let result = graph.and_then(|graph| graph.residual()?.interpret("main", &["test".into()], &[]));
        assert_eq!(result.map_err(|failed| failed.render(false)), Ok(expected));
    }
}

fn faults(body: &str, expected: &str) {
    let text = format!("static mut one = 1;\nstatic mut zero = 0;\n{body}");
    let error = interpret(&text).expect_err("has undefined behavior");
    assert!(error.starts_with(expected), "{error}, expected {expected}");
}

#[test]
fn arithmetic_faults() {
    faults("fn main() -> i32 { 2147483647 + one }", "signed-overflow: signed overflow: `1 + 2147483647`");
    faults("fn main() -> i32 { (100i8 * (one as i8 + 1i8)) as i32 }", "signed-overflow");
    faults("fn main() -> i32 { -(-2147483648 * one) }", "signed-overflow");
    faults("fn main() -> i32 { 7 / zero }", "division-by-zero");
    faults("fn main() -> i32 { 7 % zero }", "division-by-zero");
    faults("fn main() -> i32 { (-2147483648 * one) / -one }", "signed-overflow");
    // An addition that would overflow on another path is not computed.
    agree("static mut t = 1;\nfn main() -> i32 { let x = 2147483647; if t == 0 { x + t } else { 3 } }", 3);
}

#[test]
fn memory_faults() {
    let get = "fn get(a: &[i32], i: i32) -> i32 { a(i) }\n";
    faults(
        &format!("{get}fn main() -> i32 {{ let a = [1, 2, 3]; get(&a, 3 * one) }}"),
        "invalid-access: access out of bounds",
    );
    faults(
        &format!("{get}fn main() -> i32 {{ let a = [1, 2, 3]; get(&a, -one) }}"),
        "invalid-access: access out of bounds",
    );
    faults(&format!("{get}fn main() -> i32 {{ let mut a: [i32 * 3]; a(0) = 1; get(&a, one) }}"), "uninitialized-read");
    faults(
        "fn p() -> &i32 { let mut x = one; &x }\nfn main() -> i32 { *p() }",
        "invalid-access: access to memory whose life",
    );
    faults("fn main() -> i32 { let p = bitcast[&i32](0i64); *p }", "invalid-access: access through a null pointer");
    faults("fn main() -> i32 { let mut x: i32; if zero == 1 { x = 1; } x + 1 }", "uninitialized-read");
    faults("fn main() -> i32 { let a = alloc[i32](4i64); a(0) = 1; free(a as &mut [u8]); a(0) }", "");
}

#[test]
fn device_memory_faults() {
    let text = |body: &str| {
        format!(
            "extern \"C\" {{
                fn anydsl_alloc(i32, i64) -> &mut [i8];
                fn anydsl_release(i32, &[i8]) -> ();
                fn anydsl_copy(i32, &[i8], i64, i32, &mut [i8], i64, i64) -> ();
                fn anydsl_aligned_malloc(u64, u64) -> &mut [i8];
            }}
            fn main() -> i32 {{ let a = anydsl_alloc(0, 8i64); let b = anydsl_aligned_malloc(8u64, 16u64); {body} }}"
        )
    };
    faults(&text("anydsl_release(0, a); a(0) as i32"), "invalid-access: access to memory whose life");
    faults(&text("anydsl_release(0, a); anydsl_release(0, a); 0"), "invalid-access");
    faults(&text("a(8 * one) = 1i8; 0"), "invalid-access: access out of bounds");
    faults(&text("anydsl_copy(0, a, 4i64, 0, b, 0i64, 8i64); 0"), "invalid-access: access out of bounds");
    faults(&text("anydsl_copy(0, a, 0i64, 0, b, 1i64, 8i64); 0"), "invalid-access: access out of bounds");
    faults(&text("a(1) = 7i8; anydsl_copy(0, a, 0i64, 0, b, 0i64, 8i64); b(2 * one) as i32"), "uninitialized-read");
    faults(&text("a(1) = 7i8; anydsl_copy(0, a, 0i64, 0, b, 0i64, 8i64); b(one) as i32 / zero"), "division-by-zero");
}

#[test]
fn stack_is_ours() {
    agree(
        "fn sum(n: i32) -> i32 { if n == 0 { 0 } else { 1 + sum(n - 1) } }\nfn main() -> i32 { sum(1000000) }",
        1000000,
    );
    let text = "fn even(n: i32) -> bool { if n == 0 { true } else { odd(n - 1) } }
        fn odd(n: i32) -> bool { if n == 0 { false } else { even(n - 1) } }
        fn main() -> i32 { if even(3000000) { 1 } else { 2 } }";
    agree(text, 1);
    let text = "fn rounds(i: i32, n: i32, body: fn(i32) -> ()) -> () { if i < n { body(i); rounds(i + 1, n, body) } }
        fn main() -> i32 { let mut s = 0; rounds(0, 1000000, |i| { s = (s + i) & 1023; }); s }";
    agree(text, 736);
}

#[test]
fn functions_are_values() {
    let text =
        "fn comp(k: i32, f: fn(i32) -> i32) -> fn(i32) -> i32 { if k == 0 { f } else { comp(k - 1, |x| f(x) + 1) } }
        fn main() -> i32 { comp(1000, |x| x * 2)(21) }";
    agree(text, 1042);
    let text = "fn main() -> i32 {
            let mut fs: [fn(i32) -> i32 * 4];
            let mut i = 0;
            while i < 4 { let k = i * 10; fs(i) = |x| x * 2 + k; i++; }
            let mut r = 1;
            let mut j = 0;
            while j < 4 { r = fs(j)(r); j++; }
            r
        }";
    agree(text, 126);
}

#[test]
fn continuations_leave_from_anywhere() {
    // Many frames in between are abandoned.
    let text = "fn find(n: i32, pred: fn(i32) -> bool) -> i32 {
            for i in range(0, n) { if pred(i) { return(i) } }
            -1
        }
        fn gen(n: i32, body: fn(i32) -> ()) -> () { if n > 0 { gen(n - 1, body); body(n); } }
        fn brk(n: i32) -> i32 { let mut last = 0; for i in gen(n) { if i == 5 { break() } last = i; } last }
        fn main() -> i32 {
            let mut s = 0;
            let mut k = 0;
            while k < 3000 { s = (s + brk(100) + find(100, |x| x * x > 50)) % 1000; k++; }
            s
        }";
    assert_eq!(interpret(text), Ok(0));
    let text = "fn main() -> i32 {
            let mut c = 0;
            for i in range(0, 6) {
                let outer = continue;
                for j in range(0, 6) { if j > i { outer() } c += j; }
            }
            c
        }";
    assert_eq!(interpret(text), Ok(35));
}

#[test]
fn structs_and_arrays_are_values() {
    let text = "struct S { a: i32, t: (f32, [i32 * 3]), f: fn(i32) -> i32 }
        fn mk(k: i32) -> S { S { a: k, t: (1.5f, [k, k + 1, k + 2]), f: |x| x + k } }
        static table = [3, 1, 4, 1, 5];
        static mut count = 0;
        fn bump() -> i32 { count++; count }
        fn main() -> i32 {
            let s = mk(5);
            let mut a: [i32 * 16];
            let mut i = 0;
            while i < 16 { a(i) = i; i++; }
            let b = a;
            a(3) = 100;
            let u = 255u8;
            s.a + (s.f)(3) + s.t(1)(2) + (s.t(0) * 2.0f) as i32 + table(bump() + 1) + a(3) - b(3) + (u + 1u8) as i32
        }";
    agree(text, 5 + 8 + 7 + 3 + 4 + 97);
}

/// Nested functions continue at blocks of the functions around them, while other activations of these run.
#[test]
fn jumps_to_outer_blocks() {
    let text = r"
fn opaque(x: i32) -> i32 { x }
fn each(a: i32, b: i32, body: fn(i32) -> ()) -> () { if a < b { body(a); each(a + 1, b, body) } }
// Each activation has blocks of its own.
fn recursive(n: i32) -> i32 {
    let mut sum = 0;
    for i in each(0, n) {
        let mut m = recursive(i);
        for j in each(0, 3) {
            m += j;
            if opaque(m) % 2 == 0 { break() }
            sum += m;
        }
        sum += m + 1;
    }
    sum
}
// The inner function is called again before its caller leaves by the outer one's block.
fn nested_recursion(n: i32) -> i32 {
    let mut depth = 0;
    let mut round = 0;
    while round < n {
        round++;
        let next = continue;
        fn down(d: i32, up: fn() -> ()) -> () {
            depth += d;
            if opaque(d) == 0 { next() }
            down(d - 1, || { depth += 1000; });
            up();
        }
        down(round, || ());
        depth += 100000;
    }
    depth
}
// Two functions, each of which calls the other, and both go on at the same block of the outer function.
fn mutual(n: i32) -> i32 {
    let mut sum = 0;
    for i in each(0, n) {
        let mut m = opaque(i);
        let next = continue;
        fn a(x: i32) -> () { m += x; if m > 20 { sum += m; next() } b(x + 1); sum += 10000; }
        fn b(x: i32) -> () { m += 2 * x; if m > 25 { sum += m; next() } a(x + 1); sum += 10000; }
        if i % 2 == 0 { a(1) } else { b(1) }
        sum += m;
    }
    sum
}
// Only nested functions refer to this block.
fn shared(n: i32, x: i32) -> i32 {
    let mut sum = 0;
    for i in each(0, n) {
        let hit = |v: i32| -> ! { sum += v * x; continue() };
        for j in each(0, 4) { if opaque(i + j) == 5 { hit(j) } }
        for j in each(0, 6) { if opaque(i * j) == 4 { hit(j + 10) } }
        sum += 1;
    }
    sum
}
// A function value captures a block, and is called after other activations.
fn call(f: fn(i32) -> (), x: i32) -> () { f(x); call(f, x + 1) }
fn pick(c: bool, f: fn(i32) -> (), g: fn(i32) -> ()) -> fn(i32) -> () { if c { f } else { g } }
fn by_value(n: i32) -> i32 {
    let mut sum = 0;
    let mut i = 0;
    while i < n {
        i++;
        let next = continue;
        let mut m = opaque(i);
        let f = pick(m % 2 == 0, |x| { m += x; if m > 9 { next() } }, |x| { sum += x; if x > 4 { next() } });
        call(f, 1);
        sum += 10000;
    }
    sum * 10 + i
}
";
    let checks = [
        ("recursive(opaque(6))", 485),
        ("nested_recursion(opaque(5))", 35),
        ("mutual(opaque(9))", 233),
        ("shared(opaque(9), opaque(3))", 64),
        ("by_value(opaque(7))", 607),
    ];
    for (call, expected) in checks {
        agree(&format!("{text}fn main() -> i32 {{ {call} }}"), expected);
    }
}
