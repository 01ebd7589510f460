//! `--check=uninit` follows numbers without a value through function values, parallel loops, exported functions, lanes and statics:
//! programs in which one of them is used. `tests/run/undefined_*.impala` has such programs in which none is.

use crate::checked::have_faults;

/// A program, the code of its report, and the text of the line that is reported, without blanks at its ends.
const FAULTS: &[(&str, &str, &str)] = &[
    // Function values: arguments, what they capture, results.
    (
        r#"fn main(argc: i32, _: &[&[u8]]) -> i32 {
    let mut x: i32;
    if argc > 5 { x = 3 }
    let y = x;
    let mut fs: [fn(i32, i32) -> i32 * 2];
    fs(argc - 1) = |a: i32, b: i32| b * 2;
    fs(argc) = |a: i32, b: i32| {
        a + b
    };
    print_i32(fs(argc - 1)(y, 2));
    print_i32(fs(argc)(y, 2));
    0
}
"#,
        "uninitialized-read",
        "a + b",
    ),
    (
        r#"fn main(argc: i32, _: &[&[u8]]) -> i32 {
    let mut x: i32;
    if argc > 5 { x = 3 }
    let y = x;
    let mut fs: [fn(i32) -> i32 * 2];
    fs(argc - 1) = |a: i32| if argc > 3 { y } else { a };
    fs(argc) = |a: i32| {
        a + y
    };
    print_i32(fs(argc - 1)(7));
    print_i32(fs(argc)(2));
    0
}
"#,
        "uninitialized-read",
        "a + y",
    ),
    (
        r#"fn main(argc: i32, _: &[&[u8]]) -> i32 {
    let mut x: i32;
    if argc > 5 { x = 3 }
    let y = x;
    let mut fs: [fn(i32) -> i32 * 2];
    fs(argc - 1) = |a: i32| { y };
    fs(argc) = |a: i32| { a };
    let u = fs(argc - 1)(7);
    print_i32(fs(argc)(2));
    print_i32(u + 1);
    0
}
"#,
        "uninitialized-read",
        "print_i32(u + 1);",
    ),
    (
        r#"fn keep(n: i32, f: fn(i32) -> i32) -> fn(i32) -> i32 { if n == 0 { f } else { keep(n - 1, |x| f(x) + n) } }
fn main(argc: i32, _: &[&[u8]]) -> i32 {
    let mut x: i32;
    if argc > 5 { x = 3 }
    let y = x;
    let f = keep(argc + 4, |a: i32| if a > 5 { y } else { a });
    print_i32(f(3));
    print_i32(f(4 + argc));
    let g = f(6);
    print_i32(g);
    0
}
"#,
        "uninitialized-read",
        "fn keep(n: i32, f: fn(i32) -> i32) -> fn(i32) -> i32 { if n == 0 { f } else { keep(n - 1, |x| f(x) + n) } }",
    ),
    // Bodies of parallel loops.
    (
        r#"fn main(argc: i32, _: &[&[u8]]) -> i32 {
    let mut x: i32;
    if argc > 5 { x = 3 }
    let y = x;
    let a = alloc[i32](4);
    for i in par(0, 4) { a(i) = if i > 7 + argc { y } else { i } }
    print_i32(a(3));
    for i in par(0, 4) {
        if i == 2 + argc { a(i) = y + i }
    }
    0
}
"#,
        "uninitialized-read",
        "if i == 2 + argc { a(i) = y + i }",
    ),
    // Operations on bits.
    (
        r#"fn main(argc: i32, _: &[&[u8]]) -> i32 {
    let mut x: i32;
    if argc > 5 { x = 3 }
    let y = x;
    print_i32(if argc > 5 { y | 2 } else { 2 });
    print_i32(
        y & argc
    );
    0
}
"#,
        "uninitialized-read",
        "y & argc",
    ),
    (
        r#"fn main(argc: i32, _: &[&[u8]]) -> i32 {
    let mut x: bool;
    if argc > 5 { x = true }
    let y = x;
    if argc > 0 || y { print_i32(1) }
    print_i32(if argc > 3 || y { 1 } else { 2 });
    0
}
"#,
        "uninitialized-read",
        "print_i32(if argc > 3 || y { 1 } else { 2 });",
    ),
    // Exported functions.
    (
        r#"extern fn f(c: bool) -> i32 { let mut x: i32; if c { x = 3 } x }
fn count(n: i32) -> i32 { if n == 0 { f(n > 0) } else { count(n - 1) } }
fn main(argc: i32, _: &[&[u8]]) -> i32 {
    let y = f(argc > 2);
    print_i32(f(argc == 1));
    let z = count(argc);
    if argc > 5 { print_i32(y + z) }
    print_i32(y + 1);
    0
}
"#,
        "uninitialized-read",
        "print_i32(y + 1);",
    ),
    // Each call moves it to the next of many parameters.
    (
        r#"fn turn(n: i32, a0: i32, a1: i32, a2: i32, a3: i32, a4: i32, a5: i32, a6: i32, a7: i32, a8: i32, a9: i32, a10: i32, a11: i32, a12: i32, a13: i32, a14: i32, a15: i32, a16: i32, a17: i32, a18: i32, a19: i32, a20: i32, a21: i32, a22: i32, a23: i32, a24: i32, a25: i32, a26: i32, a27: i32, a28: i32, a29: i32, a30: i32, a31: i32, a32: i32, a33: i32, a34: i32, a35: i32, a36: i32, a37: i32, a38: i32, a39: i32) -> i32 {
    if n == 0 { return(3) }
    let more = turn(n - 1, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, a33, a34, a35, a36, a37, a38, a39, a0) & 1;
    if n == 23 {
        more + a17 + 1
    } else { more }
}
fn main(argc: i32, _: &[&[u8]]) -> i32 {
    let mut x: i32;
    if argc > 5 { x = 3 }
    print_i32(turn(argc + 21, x, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39));
    turn(argc + 45, x, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39)
}
"#,
        "uninitialized-read",
        "more + a17 + 1",
    ),
];

/// The same in lanes, in memory and in statics.
const IN_LANES: &[(&str, &str, &str)] = &[
    // Lanes: own variables, and those of the function around.
    (
        r#"fn main(argc: i32, _: &[&[u8]]) -> i32 {
    let mut x: i32;
    if argc > 5 { x = 3 }
    let y = x;
    let a = alloc[i32](40);
    for i in range(0, 40) { a(i) = i }
    for i in vec(8, 0, 40) {
        let mut z: i32;
        if a(i) > 20 { z = i }
        let w = z;
        a(i) = if a(i) > 30 { w } else { i };
        if a(i) > 70 { a(i) = y };
    }
    print_i32(a(31));
    for i in vec(8, 0, 40) {
        let mut z: i32;
        if a(i) > 20 { z = i }
        if a(i) > 19 {
            a(i) = z + 1
        }
    }
    0
}
"#,
        "uninitialized-read",
        "a(i) = z + 1",
    ),
    (
        r#"fn main(argc: i32, _: &[&[u8]]) -> i32 {
    let mut x: i32;
    if argc > 5 { x = 3 }
    let y = x;
    let a = alloc[i32](40);
    for i in range(0, 40) { a(i) = i }
    for i in vec(8, 0, 40) {
        if a(i) > 38 {
            a(i) = y * 2
        }
    }
    0
}
"#,
        "uninitialized-read",
        "a(i) = y * 2",
    ),
    // Memory that lanes with masks read and write, consecutive or not, on the stack and as a whole.
    (
        r#"fn main(argc: i32, _: &[&[u8]]) -> i32 {
    let (a, b) = (alloc[i32](40), alloc[i32](40));
    for i in range(0, 37) { a(i) = i * argc }
    for i in vec(8, 0, 40) { if i < 37 { b(i) = a(i) + 1 } }
    print_i32(b(36));
    for i in vec(8, 0, 40) {
        if i % 2 == argc {
            b(i) = a(i)
        }
    }
    0
}
"#,
        "uninitialized-read",
        "b(i) = a(i)",
    ),
    (
        r#"fn main(argc: i32, _: &[&[u8]]) -> i32 {
    let a = alloc[f64](40);
    for i in vec(8, 0, 40) { if i != 5 * argc { a(i) = i as f64 } }
    print_f64(a(4) + a(6));
    print_f64(a(argc + 4));
    0
}
"#,
        "uninitialized-read",
        "print_f64(a(argc + 4));",
    ),
    (
        r#"fn main(argc: i32, _: &[&[u8]]) -> i32 {
    let (a, b, at) = (alloc[i32](40), alloc[i32](40), alloc[i32](40));
    for i in range(0, 40) { at(i) = i * 7 % 40; if i != 21 * argc { a(i) = i } }
    for i in vec(8, 0, 40) { if i != 3 { b(i) = a(at(i)) } }
    print_i32(b(4));
    for i in vec(8, 0, 40) {
        b(i) = a(at(i))
    }
    0
}
"#,
        "uninitialized-read",
        "b(i) = a(at(i))",
    ),
    (
        r#"fn main(argc: i32, _: &[&[u8]]) -> i32 {
    let (a, at) = (alloc[i32](40), alloc[i32](40));
    for i in range(0, 40) { at(i) = i * 7 % 40 }
    for i in vec(8, 0, 40) { if i != 3 * argc { a(at(i)) = i } }
    let mut sum = 0;
    for i in range(0, 21) { sum += a(i) }
    print_i32(sum);
    print_i32(a(argc + 20));
    0
}
"#,
        "uninitialized-read",
        "print_i32(a(argc + 20));",
    ),
    (
        r#"fn main(argc: i32, _: &[&[u8]]) -> i32 {
    let mut a: [i32 * 40];
    let b = alloc[i32](40);
    for i in vec(8, 0, 40) { if i > 4 { a(i) = i * argc } }
    for i in vec(8, 0, 40) { if i > 5 { b(i) = a(i) } }
    print_i32(b(7));
    for i in vec(8, 0, 40) {
        if i > 3 { b(i) = a(i) }
    }
    0
}
"#,
        "uninitialized-read",
        "if i > 3 { b(i) = a(i) }",
    ),
    (
        r#"fn main(argc: i32, _: &[&[u8]]) -> i32 {
    let mut x: i32;
    if argc > 5 { x = 3 }
    let y = x;
    let a = alloc[i32](40);
    for i in vec(8, 0, 40) { a(i) = if i == 3 { y } else { i } }
    for i in vec(8, 0, 40) { if i == 5 { a(i) = y } }
    for i in vec(8, 0, 40) { if i != 3 && i != 5 { a(i) += 1 } }
    print_i32(a(4) + a(6));
    print_i32(a(argc + 4));
    0
}
"#,
        "uninitialized-read",
        "print_i32(a(argc + 4));",
    ),
    (
        r#"struct P { x: i32, y: f64 }
fn main(argc: i32, _: &[&[u8]]) -> i32 {
    let (a, b) = (alloc[P](40), alloc[P](40));
    for i in range(0, 40) { a(i).x = i; if i != 7 * argc { a(i).y = 3.0 } }
    for i in vec(8, 0, 40) { b(i) = a(i) }
    print_i32(b(7).x);
    for i in vec(8, 0, 40) {
        let p = b(i);
        if i > 5 {
            a(i).y = p.y + 1.0
        }
    }
    0
}
"#,
        "uninitialized-read",
        "a(i).y = p.y + 1.0",
    ),
    // Values of other lanes.
    (
        r#"extern "C" {
    fn rv_shuffle(i32, i32) -> i32;
    fn rv_lane_id() -> i32;
}
fn main(argc: i32, _: &[&[u8]]) -> i32 {
    let a = alloc[i32](8);
    for i in vec(8, 0, 8) {
        let mut x: i32;
        if i > 2 + argc { x = i }
        let y = rv_shuffle(x, 7 - rv_lane_id());
        if i < 4 { a(i) = y * 3 }
        if i == 4 {
            a(i) = y + 1
        }
    }
    0
}
"#,
        "uninitialized-read",
        "a(i) = y + 1",
    ),
    (
        r#"extern "C" {
    fn rv_compact(i32, bool) -> i32;
}
fn main(argc: i32, _: &[&[u8]]) -> i32 {
    let a = alloc[i32](8);
    for i in vec(8, 0, 8) {
        let y = rv_compact(i, i > 2 + argc);
        if i < 4 { a(i) = y * 3 }
        if i == 4 {
            a(i) = y + 1
        }
    }
    0
}
"#,
        "uninitialized-read",
        "a(i) = y + 1",
    ),
    // Statics.
    (
        r#"static mut s = 3;
fn set(x: i32) -> () { s = x }
fn get() -> i32 {
    s
}
fn main(argc: i32, _: &[&[u8]]) -> i32 {
    let mut x: i32;
    if argc > 5 { x = 3 }
    let y = x;
    print_i32(get());
    set(y);
    set(argc);
    print_i32(get());
    set(y);
    if argc > 1 { print_i32(get()) }
    print_i32(get());
    0
}
"#,
        "uninitialized-read",
        "s",
    ),
    (
        r#"static mut many = [1, 2, 3, 4];
static mut lanes = [0, .. 40];
fn set(a: &mut [i32], i: i32, x: i32) -> () { a(i) = x }
fn main(argc: i32, _: &[&[u8]]) -> i32 {
    let mut x: i32;
    if argc > 5 { x = 3 }
    let y = x;
    set(&mut many, 2, y);
    set(&mut lanes, argc + 3, y);
    for i in vec(8, 0, 40) { if i != 4 { lanes(i) += argc } }
    print_i32(many(argc) + lanes(5));
    set(&mut many, 2, argc);
    print_i32(many(argc + 1));
    for i in vec(8, 0, 40) {
        lanes(i) += argc
    }
    0
}
"#,
        "uninitialized-read",
        "lanes(i) += argc",
    ),
];

/// Each program under the interpreter and at -O0, and under one of the other engines.
fn is_wanted(i: usize, engine: usize) -> bool {
    engine < 2 || engine == [2, 4, 5][i % 3]
}

#[test]
fn numbers_without_a_value_are_found_wherever_they_go() {
    have_faults("numbers without a value", FAULTS, is_wanted);
}

#[test]
fn numbers_without_a_value_are_found_in_lanes_and_memory() {
    have_faults("lanes without a value", IN_LANES, is_wanted);
}

/// The same in long arrays, of which an array tells.
const IN_LONG_ARRAYS: &[(&str, &str, &str)] = &[
    (
        r#"fn passed(a: [i32 * 100], i: i32) -> i32 {
    a(i) + 1
}
fn main(argc: i32, _: &[&[u8]]) -> i32 {
    let mut a: [i32 * 100];
    for i in range(0, 40 + argc) { a(i) = i }
    print_i32(passed(a, 40));
    print_i32(passed(a, 41));
    0
}
"#,
        "uninitialized-read",
        "a(i) + 1",
    ),
    (
        r#"struct Grid { n: i32, rows: [[i16 * 8] * 40] }
fn made(n: i32) -> Grid {
    let mut g: Grid;
    g.n = n;
    for i in range(0, n) { g.rows(i)(i & 7) = i as i16 }
    g
}
fn main(argc: i32, _: &[&[u8]]) -> i32 {
    let g = made(argc + 20);
    let copy = g;
    print_i32(copy.n + copy.rows(argc + 19)(4) as i32);
    print_i32(
        copy.rows(argc + 19)(5) as i32 + 1
    );
    0
}
"#,
        "uninitialized-read",
        "copy.rows(argc + 19)(5) as i32 + 1",
    ),
    (
        r#"fn main(argc: i32, _: &[&[u8]]) -> i32 {
    let mut a: [i32 * 40];
    let mut b: [i32 * 40];
    for i in range(0, 20) { a(i) = 1; b(39 - i) = 2 }
    let c = if argc > 5 { a } else { b };
    let mut d = c;
    d(argc) = 7;
    let e = d;
    print_i32(e(argc) + e(argc + 20));
    print_i32(
        e(argc + 1)
    );
    0
}
"#,
        "uninitialized-read",
        "e(argc + 1)",
    ),
    (
        r#"fn main(argc: i32, _: &[&[u8]]) -> i32 {
    let mut a: [i32 * 100];
    a(argc) = argc;
    let p = alloc[[i32 * 100]](2);
    for i in range(0, 100) { p(1)(i) = i }
    p(0) = a;
    p(1) = p(0);
    p(1)(argc + 1) = 1;
    print_i32(p(1)(argc) + p(1)(argc + 1));
    print_i32(
        p(1)(argc + 2) + 1
    );
    0
}
"#,
        "uninitialized-read",
        "p(1)(argc + 2) + 1",
    ),
    (
        r#"fn main(argc: i32, _: &[&[u8]]) -> i32 {
    let a = alloc[i32](16);
    for i in vec(8, 0, 16) {
        let mut x: [i32 * 40];
        x(i) = i;
        let y = x;
        a(i) = y(i);
        if i == argc + 8 {
            a(i) = y(i + 1) + 1
        }
    }
    print_i32(a(3));
    0
}
"#,
        "uninitialized-read",
        "a(i) = y(i + 1) + 1",
    ),
    (
        r#"fn main(argc: i32, _: &[&[u8]]) -> i32 {
    let mut a: [(i32, i32) * 4];
    a(argc) = (argc, argc);
    a(argc + 1)(1) = 5;
    let b = a;
    print_i32(b(argc)(0) + b(argc + 1)(1));
    print_i32(
        b(argc + 1)(0) + 1
    );
    0
}
"#,
        "uninitialized-read",
        "b(argc + 1)(0) + 1",
    ),
    (
        r#"extern fn given(n: i32) -> [i32 * 50] {
    let mut a: [i32 * 50];
    for i in range(0, n) { a(i) = i }
    a
}
fn apply(f: fn(i32) -> i32, i: i32) -> i32 { f(i) }
fn main(argc: i32, _: &[&[u8]]) -> i32 {
    let a = given(argc + 30);
    print_i32(apply(|i| a(i) + 1, 30));
    print_i32(apply(|i| {
        a(i) + 2
    }, 31));
    0
}
"#,
        "uninitialized-read",
        "a(i) + 2",
    ),
];

#[test]
fn numbers_without_a_value_are_found_in_long_arrays() {
    have_faults("long arrays without a value", IN_LONG_ARRAYS, is_wanted);
}
