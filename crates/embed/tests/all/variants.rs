//! Functions whose parameters are fixed while the program runs.

use nyala_embed::{Compiler, Error, Function, In, Out, Program, Ref, Slice, Type};

const PROGRAM: &str = "
use std::slice::*;
struct Curve { scale: f64, shift: f64 }
static mut COUNT = 0;
static mut LAST: f64 = 0.5;
extern fn @(?n) power(x: f64, n: i32) -> f64 { if n == 0 { 1.0 } else { x * power(x, n - 1) } }
extern fn stencil(a: &[f32], b: &mut [f32], n: i32, weights: Slice[f32]) -> () {
    for i in range(0, n) {
        let mut sum = 0f;
        for k in unroll(0i64, weights.length) { sum += weights(k) * a(i as i64 + k); }
        b(i) = sum;
    }
}
extern fn curve(c: Curve, x: f64) -> f64 { c.scale * x + c.shift }
extern fn curve_at(c: &Curve, x: f64) -> f64 { c.scale * x + c.shift }
extern fn first(a: &[i16]) -> i16 { a(0) }
extern fn count(by: i32) -> i32 { COUNT += by; COUNT }
extern fn last(x: f64) -> f64 { let old = LAST; LAST = x; old }
extern fn twice(f: fn(f64) -> f64, x: f64) -> f64 { f(f(x)) }
extern fn half(x: f64) -> f64 { x / 2.0 }
extern fn is_nan(x: f64) -> bool { x != x }
extern fn inverse(x: f64) -> f64 { 1.0 / x }
extern fn only_small(n: i32) -> i32 { if ?n { static_assert(n < 10, \"n is small\"); } n }
extern fn set(p: &mut i32, x: i32) -> () { *p = x; }
extern fn shape(b: bool, i: i8, u: u64) -> u64 { if b { u + i as u64 } else { u } }
";

#[derive(Type, Clone, Copy, Debug, PartialEq)]
#[repr(C)]
struct Curve {
    scale: f64,
    shift: f64,
}

fn compile(text: &str) -> Program {
    Program::from_source("p.impala", text).expect("it compiles")
}

macro_rules! partial {
    ($program:expr, $name:expr) => {
        // SAFETY: the functions access the memory that they are given, as far as tests give it to them.
        unsafe { $program.partial($name) }.expect("a function")
    };
}

#[test]
fn numbers_are_constants() {
    let program = compile(PROGRAM);
    let power = partial!(program, "power");
    for n in 0..5 {
        let fixed: Function<(f64,), f64> = power.fix("n", n).and_then(|p| p.build()).expect("a variant");
        assert_eq!(fixed.call((3.0,)), 3f64.powi(n));
    }
    let fixed: Function<(f64,), f64> = power.fix("n", 3).and_then(|p| p.build()).expect("a variant");
    let explained = fixed.explain().expect("it compiles");
    assert!(explained.contains("unfolded"), "{explained}");
    let all: Function<(), f64> = fixed.fix("x", 2.0).and_then(|p| p.build()).expect("all of it");
    assert_eq!(all.call(()), 8.0);
    let none: Function<(f64, i32), f64> = power.build().expect("nothing is fixed");
    assert_eq!(none.call((2.0, 10)), 1024.0);
}

#[test]
fn arrays_and_structs_are_constants() {
    let program = compile(PROGRAM);
    let stencil = partial!(program, "stencil");
    let mut weights = [1f32, 2.0, 4.0];
    let fixed = stencil.fix("weights", &weights[..]).expect("a slice");
    weights.fill(100.0);
    assert_eq!(weights[0], 100.0);
    let fixed: Function<(In<f32>, Out<f32>, i32), ()> = fixed.build().expect("a variant");
    let mut out = [0f32; 2];
    fixed.call((&[1.0, 10.0, 100.0, 1000.0], &mut out, 2));
    assert_eq!(out, [421.0, 4210.0], "what was fixed is a copy");
    // The order of fixing does not matter, nor does it whether an array is a slice.
    let again = stencil.fix("n", 2).and_then(|p| p.fix("weights", &[1f32, 2.0, 4.0])).expect("an array");
    let other = stencil.fix("weights", &[1f32, 2.0, 4.0][..]).and_then(|p| p.fix("n", 2)).expect("a slice");
    let again: Function<(In<f32>, Out<f32>), ()> = again.build().expect("a variant");
    let other: Function<(In<f32>, Out<f32>), ()> = other.build().expect("a variant");
    out = [0.0; 2];
    again.call((&[1.0, 10.0, 100.0, 1000.0], &mut out));
    assert_eq!(out, [421.0, 4210.0]);
    other.call((&[1.0, 0.0, 0.0, 0.0], &mut out));
    assert_eq!(out, [1.0, 0.0]);
    assert_eq!(program.variants().built, 2);
    let empty: Function<(In<f32>, Out<f32>, i32), ()> =
        stencil.fix("weights", &[0f32; 0]).and_then(|p| p.build()).expect("an empty slice");
    empty.call((&[1.0], &mut out, 1));
    assert_eq!(out[0], 0.0);

    let c = Curve { scale: 2.0, shift: 1.0 };
    let by_value: Function<(f64,), f64> =
        partial!(program, "curve").fix("c", c).and_then(|p| p.build()).expect("a struct");
    let by_address: Function<(f64,), f64> =
        partial!(program, "curve_at").fix("c", c).and_then(|p| p.build()).expect("a struct by address");
    assert_eq!((by_value.call((3.0,)), by_address.call((3.0,))), (7.0, 7.0));
    let first: Function<(), i16> =
        partial!(program, "first").fix("a", &[-5i16, 6][..]).and_then(|p| p.build()).expect("elements");
    assert_eq!(first.call(()), -5);
    let shape = partial!(program, "shape").fix("b", true).and_then(|p| p.fix("i", -1i8)).expect("numbers");
    let shape: Function<(), u64> = shape.fix("u", u64::MAX).and_then(|p| p.build()).expect("a number");
    assert_eq!(shape.call(()), u64::MAX - 1);
}

#[test]
fn floats_are_equal_by_their_bits() {
    let program = compile(PROGRAM);
    let is_nan = partial!(program, "is_nan");
    let build = |x: f64| -> Function<(), bool> { is_nan.fix("x", x).and_then(|p| p.build()).expect("a variant") };
    assert!(build(f64::NAN).call(()) && !build(0.0).call(()));
    let inverse = partial!(program, "inverse");
    let build = |x: f64| -> Function<(), f64> { inverse.fix("x", x).and_then(|p| p.build()).expect("a variant") };
    assert_eq!(build(0.0).call(()), f64::INFINITY);
    assert_eq!(build(-0.0).call(()), f64::NEG_INFINITY);
    build(f64::from_bits(0x7ff8_0000_0000_0001));
    build(f64::from_bits(0x7ff8_0000_0000_0002));
    build(f64::from_bits(0x7ff8_0000_0000_0002));
    let counts = program.variants();
    assert_eq!((counts.built, counts.found, counts.kept), (6, 1, 6));
}

#[test]
fn functions_are_composed() {
    let program = compile(PROGRAM);
    let (twice, half, power) = (partial!(program, "twice"), partial!(program, "half"), partial!(program, "power"));
    let quarter: Function<(f64,), f64> = twice.fix("f", &half).and_then(|p| p.build()).expect("a function");
    assert_eq!(quarter.call((8.0,)), 2.0);
    let square = power.fix("n", 2).expect("a number");
    let fourth = twice.fix("f", &square).expect("a function with a fixed parameter");
    let sixteenth: Function<(f64,), f64> =
        twice.fix("f", &fourth).and_then(|p| p.build()).expect("a composed function");
    assert_eq!(sixteenth.call((2.0,)), 65536.0);
    // SAFETY: it accesses no memory.
    let half = unsafe { program.function::<(f64,), f64>("half") }.expect("a function");
    let again: Function<(), f64> =
        twice.fix("f", &half).and_then(|p| p.fix("x", 1.0)).and_then(|p| p.build()).expect("a handle");
    assert_eq!(again.call(()), 0.25);

    let wrong = twice.fix("f", &power).expect_err("two parameters").to_string();
    assert_eq!(wrong, "cannot fix `f` of `twice`: it is `fn(f64, i32) -> f64` here, `fn(f64) -> f64` in the program");
    let other = compile(PROGRAM);
    let wrong = twice.fix("f", &partial!(other, "half")).expect_err("another program").to_string();
    assert_eq!(wrong, "cannot fix `f` of `twice`: the function is of another program");
    let mut deep = twice.fix("f", &half).expect("a function");
    let why = loop {
        match twice.fix("f", &deep) {
            Ok(deeper) => deep = deeper,
            Err(why) => break why.to_string(),
        }
    };
    assert_eq!(why, "cannot fix `f` of `twice`: more than 64 functions within each other");
}

#[test]
fn variables_are_shared() {
    let program = compile(PROGRAM);
    // SAFETY: one thread calls it.
    let count = unsafe { program.function::<(i32,), i32>("count") }.expect("a function");
    let by_ten: Function<(), i32> = count.fix("by", 10).and_then(|p| p.build()).expect("a variant");
    assert_eq!((count.call((1,)), by_ten.call(()), count.call((1,)), by_ten.call(())), (1, 11, 12, 22));
    let last: Function<(), f64> = partial!(program, "last").fix("x", 3.0).and_then(|p| p.build()).expect("a variant");
    assert_eq!((last.call(()), last.call(())), (0.5, 3.0));
}

#[test]
fn what_is_wrong_is_a_value() {
    let program = compile(PROGRAM);
    let power = partial!(program, "power");
    let refused = [
        (power.fix("m", 1), "cannot fix `m` of `power`: it has no such parameter: fn power(x: f64, n: i32) -> f64"),
        (power.fix("n", 1u32), "cannot fix `n` of `power`: it is `u32` here, `i32` in the program"),
        (power.fix("n", &[1][..]), "cannot fix `n` of `power`: it is `&[i32]` here, `i32` in the program"),
        (power.fix("n", 1).and_then(|p| p.fix("n", 1)), "cannot fix `n` of `power`: it is fixed"),
        (partial!(program, "set").fix("p", 1), "cannot fix `p` of `set`: it is `i32` here, `&mut i32` in the program"),
        (
            partial!(program, "curve_at").fix("c", &[1.0, 2.0]),
            "cannot fix `c` of `curve_at`: it is `&[f64]` here, `&Curve` in the program",
        ),
        (
            partial!(program, "stencil").fix("weights", &[1.0, 2.0]),
            "cannot fix `weights` of `stencil`: what field `data` of it leads to is `f64` here, `f32` in the program",
        ),
    ];
    for (refused, why) in refused {
        assert_eq!(refused.expect_err(why).to_string(), why);
    }
    let types = power.fix("n", 1).and_then(|p| p.build::<(f32,), f64>()).expect_err("other types").to_string();
    assert!(types.starts_with("`power` has other types: parameter `x` is `f32` here, `f64` in the program"), "{types}");
    assert_eq!(program.variants().built, 0);
    let generic = partial!(program, "twice").build::<(f64, f64), f64>().expect_err("a function").to_string();
    assert!(generic.contains("parameter `f` is `f64` here, `fn(f64) -> f64` in the program"), "{generic}");

    let only_small = partial!(program, "only_small");
    let good: Function<(), i32> = only_small.fix("n", 3).and_then(|p| p.build()).expect("a small number");
    assert_eq!(good.call(()), 3);
    for _ in 0..2 {
        let Err(Error::Program(found)) = only_small.fix("n", 30).and_then(|p| p.build::<(), i32>()) else { panic!() };
        assert_eq!((found[0].code, found[0].place.as_ref().map(|p| p.line)), ("static-assert-failed", Some(23)));
    }
    let grow = "extern fn @(?n) grow(n: u64) -> u64 { if n == 0u64 { n } else { grow(n * 3u64) } }";
    let program = Compiler::new().budget(0.01).compile_source("p.impala", grow).expect("it compiles");
    let endless = partial!(program, "grow").fix("n", 1u64).expect("a number");
    let Err(Error::Program(found)) = endless.build::<(), u64>() else { panic!("it does not end") };
    assert_eq!(found[0].code, "specialization-diverges");
}

#[test]
fn the_least_recently_used_is_dropped() {
    let program = Compiler::new().keep_variants(2).compile_source("p.impala", PROGRAM).expect("it compiles");
    let power = partial!(program, "power");
    let build = |n: i32| -> Function<(f64,), f64> { power.fix("n", n).and_then(|p| p.build()).expect("a variant") };
    let held = build(1);
    build(2);
    build(1);
    build(3);
    build(1);
    let counts = program.variants();
    assert_eq!((counts.built, counts.found, counts.dropped, counts.kept), (3, 2, 1, 2));
    build(2);
    build(3);
    let counts = program.variants();
    assert_eq!((counts.built, counts.dropped), (5, 3));
    drop((program.clone(), power.clone()));
    assert_eq!(held.call((7.0,)), 7.0, "a handle keeps the code that was dropped");
}

#[test]
fn threads_build_each_variant_once() {
    let program = compile(PROGRAM);
    let power = partial!(program, "power");
    let work = &|thread: i32| {
        for i in 0..40 {
            let n = (i * 7 + thread) % 10;
            let fixed: Function<(f64,), f64> = power.fix("n", n).and_then(|p| p.build()).expect("a variant");
            assert_eq!(fixed.call((2.0,)), 2f64.powi(n));
        }
    };
    std::thread::scope(|scope| (0..8).for_each(|thread| drop(scope.spawn(move || work(thread)))));
    let counts = program.variants();
    assert_eq!((counts.built, counts.kept, counts.found), (10, 10, 310));
}

#[test]
fn the_function_stands_in_for_a_variant() {
    let program = compile(PROGRAM);
    let stencil = partial!(program, "stencil").fix("weights", &[1f32, 2.0, 4.0]).expect("a slice");
    let fixed: Function<(In<f32>, Out<f32>, i32), ()> = stencil.build_async().expect("a handle");
    let mut out = [0f32; 2];
    let mut call = |f: &Function<(In<f32>, Out<f32>, i32), ()>| {
        f.call((&[1.0, 10.0, 100.0, 1000.0], &mut out, 2));
        assert_eq!(std::mem::take(&mut out), [421.0, 4210.0]);
    };
    call(&fixed);
    fixed.wait().expect("a variant");
    call(&fixed);
    call(&stencil.build_async().expect("the variant"));
    assert_eq!(program.variants().built, 1);

    let curve = partial!(program, "curve").fix("c", Curve { scale: 2.0, shift: 1.0 }).expect("a struct");
    let curve: Function<(f64,), f64> = curve.build_async().expect("a handle");
    assert_eq!((curve.call((1.0,)), curve.call((2.0,))), (3.0, 5.0));
    let half = partial!(program, "half");
    let quarter = partial!(program, "twice").fix("f", &half).expect("a function");
    let quarter: Function<(f64,), f64> = quarter.build_async().expect("a handle");
    assert_eq!(quarter.call((8.0,)), 2.0);

    // What is asserted where a value is known does not hold in the variant alone.
    let large = partial!(program, "only_small").fix("n", 30).expect("a number");
    let large: Function<(), i32> = large.build_async().expect("a handle");
    assert_eq!(large.call(()), 30);
    assert_eq!(large.wait().expect_err("it does not hold").diagnostics()[0].code, "static-assert-failed");
    assert_eq!(large.call(()), 30);
}

/// Many threads fix and call, and variants are dropped while others call them. `is_done` is asked after each of a thread's rounds.
fn fix_and_call_at_random(is_done: impl Fn(usize) -> bool + Sync) {
    let program =
        Compiler::new().opt_level(0).keep_variants(4).compile_source("p.impala", PROGRAM).expect("it compiles");
    let (power, twice) = (partial!(program, "power"), partial!(program, "twice"));
    let work = &|thread: u32| {
        let mut state = thread + 1;
        let mut held: Vec<(i32, Function<(f64,), f64>)> = Vec::new();
        for _ in (0..).take_while(|&round| !is_done(round)) {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let n = (state >> 24) as i32 % 9;
            let fixed = power.fix("n", n).expect("a number");
            let build = if state >> 16 & 1 == 0 { fixed.build() } else { fixed.build_async() };
            held.push((n, build.expect("a variant")));
            if state >> 17 & 3 == 0 {
                let fourth: Function<(f64,), f64> = twice.fix("f", &fixed).and_then(|p| p.build()).expect("a variant");
                assert_eq!(fourth.call((0.5,)), 0.5f64.powi(n).powi(n));
            }
            if held.len() > 3 {
                held.remove(state as usize % 3);
            }
            for (n, f) in &held {
                assert_eq!(f.try_call((2.0,)), Ok(2f64.powi(*n)));
            }
        }
    };
    std::thread::scope(|scope| (0..16).for_each(|thread| drop(scope.spawn(move || work(thread)))));
    let counts = program.variants();
    // Those being built are not dropped.
    assert!(counts.kept <= 4 + 16 && counts.dropped > 0, "{counts:?}");
}

#[test]
fn threads_fix_and_call() {
    fix_and_call_at_random(|round| round == 12);
}

#[test]
#[ignore = "takes a minute: `./x test --all crates`"]
fn threads_fix_and_call_for_a_minute() {
    let start = std::time::Instant::now();
    fix_and_call_at_random(|_| start.elapsed().as_secs() >= 60);
}

/// A thread runs the code of a variant whose handles are gone.
#[test]
fn code_waits_for_threads() {
    use std::sync::atomic::{AtomicI32, Ordering};
    static PLACES: [AtomicI32; 2] = [AtomicI32::new(0), AtomicI32::new(0)];
    let text = "
use std::atomic::*;
extern fn start(p: &mut [i32], by: i32) -> () {
    let thread = spawn(|| {
        while p(0).load[ACQUIRE]() == 0 {}
        p(1).store[RELEASE](by);
    });
}
";
    let program = Compiler::new().keep_variants(1).compile_source("p.impala", text).expect("it compiles");
    let start = partial!(program, "start");
    let variant: Function<(*mut i32,), ()> = start.fix("by", 7).and_then(|p| p.build()).expect("a variant");
    variant.call((PLACES[0].as_ptr(),));
    drop(variant);
    let other: Function<(*mut i32,), ()> = start.fix("by", 8).and_then(|p| p.build()).expect("another variant");
    assert_eq!(program.variants().dropped, 1);
    drop((other, start, program));
    PLACES[0].store(1, Ordering::Release);
    while PLACES[1].load(Ordering::Acquire) == 0 {
        std::thread::yield_now();
    }
    assert_eq!(PLACES[1].load(Ordering::Relaxed), 7);
}

#[test]
fn what_waits_is_bounded() {
    let program =
        Compiler::new().opt_level(0).keep_variants(1).compile_source("p.impala", PROGRAM).expect("it compiles");
    let power = partial!(program, "power");
    let build =
        |n: i32| -> Function<(f64,), f64> { power.fix("n", n).and_then(|p| p.build_async()).expect("a handle") };
    let handles: Vec<Function<(f64,), f64>> = (0..8).map(build).collect();
    for (n, handle) in (0..).zip(&handles) {
        assert_eq!(handle.call((2.0,)), 2f64.powi(n));
        handle.wait().expect("a variant");
        assert_eq!(handle.call((2.0,)), 2f64.powi(n));
    }
    let large = vec![0i16; (4 << 20) + 1];
    let why = partial!(program, "first").fix("a", &large[..]).expect_err("too many").to_string();
    assert_eq!(why, "cannot fix `a` of `first`: it has 8388610 bytes, more than 8388608: pass it as an argument");
}

#[test]
fn a_variant_outlives_its_program() {
    let fixed: Function<(Ref<Curve>,), f64> = {
        let program: Program = compile(PROGRAM);
        partial!(program, "curve_at").fix("x", 2.0).and_then(|p| p.build()).expect("a variant")
    };
    assert_eq!(fixed.call((&Curve { scale: 1.5, shift: 1.0 },)), 4.0);
    let stats = fixed.stats().expect("a variant");
    assert!(stats.total >= stats.partial_evaluation && stats.warnings.is_empty());
    let wide: Result<Function<(Slice<f32>,), f32>, Error> = fixed.partial().build();
    assert!(wide.is_err());
}
