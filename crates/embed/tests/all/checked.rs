//! Handles without `unsafe`: which functions have one, what their calls cannot do, and why others are refused.

use nyala_embed::{
    Args, Callback, Check, Compiler, Error, Function, In, Mut, MutSlice, Out, Program, Ref, Return, Severity, Slice,
    Type,
};

fn compiled(text: &str) -> Result<Program, Error> {
    let compiler = Compiler::new().check(Check::Bounds).check(Check::Overflow);
    compiler.compile_source("p.impala", &format!("use std::slice::*;\n{text}"))
}

/// Why a function has no safe handle.
fn refusal<A: Args, R: Return>(text: &str) -> String {
    let program = compiled(text).expect("it compiles");
    match program.checked_function::<A, R>("f") {
        Ok(_) => "there is a handle".into(),
        Err(Error::Program(found)) => {
            let error = found.iter().find(|d| d.severity == Severity::Error).expect("an error");
            error.message.replace("this cannot be called without `unsafe`: ", "")
        }
        Err(Error::NeedsUnsafe { why, .. }) => why,
        Err(other) => other.to_string(),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Type)]
#[repr(C)]
struct Range {
    low: f64,
    high: f64,
    n: i32,
}

#[test]
fn slices_are_bounded() -> Result<(), Error> {
    let program = compiled(
        "
        extern fn shift(a: Slice[i32], b: MutSlice[i32], by: i64) -> i64 {
            for i in range(0i64, b.length) { b.data(i) = 2 * a.data(i + by); }
            b.length
        }
        extern fn at(a: Slice[f64], i: i64) -> f64 { a.data(i) }
        extern fn sum(a: Slice[f64]) -> f64 { let mut s = 0.0; for x in a.each() { s += x; } s }
        extern fn set(a: MutSlice[u8], i: i64) -> () { a.data(i) = 7u8; }
    ",
    )?;
    let shift = program.checked_function::<(Slice<i32>, MutSlice<i32>, i64), i64>("shift")?;
    let mut out = [0; 3];
    assert_eq!(shift.call((&[1, 2, 3, 4], &mut out, 1)), 3);
    assert_eq!(out, [4, 6, 8]);
    for by in [2, -1, 1 << 40, 1 << 60, -(1 << 60), i64::MAX] {
        let fault = shift.try_call((&[1, 2, 3, 4], &mut out, by)).expect_err("it leaves the slice");
        assert!(["invalid-access", "signed-overflow"].contains(&fault.code), "{by}: {fault}");
    }
    let at = program.checked_function::<(Slice<f64>, i64), f64>("at")?;
    let numbers = [1.0, 2.0, 3.0];
    assert_eq!(at.try_call((&numbers[1..], 1)), Ok(3.0));
    let fault = at.try_call((&numbers[1..], 2)).expect_err("there is no third element");
    assert!(fault.message.contains("at byte 16 of 16"), "{fault}");
    // Far away, too: behind other memory, and around the end of the addresses.
    for i in [-1, 1 << 20, 1 << 60, -(1 << 60), i64::MAX] {
        assert_eq!(at.try_call((&numbers, i)).expect_err("no such element").code, "invalid-access", "{i}");
    }
    // Addresses wrap around: so far away is the same element again.
    assert_eq!(at.try_call((&numbers, (1 << 61) + 1)), Ok(2.0));
    assert!(at.try_call((&[], 0)).is_err());
    let sum = program.checked_function::<(Slice<f64>,), f64>("sum")?;
    assert_eq!(sum.call((&numbers,)), 6.0);
    assert_eq!(sum.call((&[],)), 0.0);
    let set = program.checked_function::<(MutSlice<u8>, i64), ()>("set")?;
    let mut bytes = [0u8; 4];
    assert!(set.try_call((&mut bytes[1..3], 2)).is_err() && set.try_call((&mut bytes[1..3], -1)).is_err());
    set.call((&mut bytes[1..3], 1));
    assert_eq!(bytes, [0, 0, 7, 0]);
    Ok(())
}

#[test]
fn structs_variables_and_calls_have_handles() -> Result<(), Error> {
    let program = compiled(
        "
        struct Range { low: f64, high: f64, n: i32 }
        static TABLE = [3, 1, 4, 1, 5];
        extern fn widen(r: Range, a: Slice[f64]) -> Range {
            let mut low = r.low; let mut high = r.high;
            for x in a.each() { low = min(low, x); high = max(high, x); }
            Range { low: low, high: high, n: r.n + a.length as i32 }
        }
        fn tail(a: Slice[Range], i: i64) -> f64 { a(i).high }
        fn helper(a: Slice[Range], i: i64) -> f64 { if i < 0i64 { 0.0 } else { a(i).low + tail(a, i) } }
        extern fn via(a: Slice[Range], i: i64) -> f64 { helper(a, i) }
        fn factorial(n: i32) -> i32 { if n <= 1 { 1 } else { n * factorial(n - 1) } }
        extern fn fact(n: i32) -> i32 { factorial(n) }
        extern fn count(a: Slice[u8], out: MutSlice[i32], i: i32) -> i32 {
            let mut counts: [i32 * 256];
            for i in range(0, 256) { counts(i) = 0; }
            for x in a.each() { counts(x as i32) += 1; }
            for i in range(0, 256) { out(i) = counts(i); }
            counts(i)
        }
        extern fn looked_up(i: i32) -> i32 { TABLE(i) }
        extern fn divided(a: i32, b: i32) -> i32 { a / b }
        extern fn lanes(a: Slice[f32], b: MutSlice[f32]) -> () {
            for i in vec(8, 0, b.length as i32) { if a(i) > 2f { b(i) = a(i) * 3f; } }
        }
        extern fn never(n: i32) -> i32 { let mut x: i32; if n > 0 { x = n; } x }
        extern fn says(n: i32) -> i32 { if n > 3 { panic(\"too large\") } n }
    ",
    )?;
    let widen = program.checked_function::<(Range, Slice<f64>), Range>("widen")?;
    let r = Range { low: 0.0, high: 0.0, n: 1 };
    assert_eq!(widen.call((r, &[3.0, -1.0])), Range { low: -1.0, high: 3.0, n: 3 });
    let via = program.checked_function::<(Slice<Range>, i64), f64>("via")?;
    let ranges = [r, Range { low: 1.0, high: 2.0, n: 0 }];
    assert_eq!(via.call((&ranges, 1)), 3.0);
    assert_eq!(via.try_call((&ranges, 2)).expect_err("no such element").message, "an index is out of the slice");
    let fact = program.checked_function::<(i32,), i32>("fact")?;
    assert_eq!(fact.call((5,)), 120);
    assert_eq!(fact.try_call((20,)).expect_err("it does not fit").code, "signed-overflow");
    let count = program.checked_function::<(Slice<u8>, MutSlice<i32>, i32), i32>("count")?;
    let mut counts = [0; 256];
    assert_eq!(count.call((b"abca", &mut counts, 97)), 2);
    assert_eq!(counts[usize::from(b'b')], 1);
    assert!(count.try_call((b"abca", &mut counts, 256)).is_err());
    assert!(count.try_call((b"abca", &mut counts[..255], 0)).is_err());
    let looked_up = program.checked_function::<(i32,), i32>("looked_up")?;
    assert_eq!(looked_up.try_call((4,)), Ok(5));
    assert!(looked_up.try_call((5,)).is_err() && looked_up.try_call((i32::MIN,)).is_err());
    let divided = program.checked_function::<(i32, i32), i32>("divided")?;
    assert_eq!(divided.try_call((7, 2)), Ok(3));
    assert_eq!(divided.try_call((7, 0)).expect_err("by zero").code, "division-by-zero");
    assert_eq!(divided.try_call((i32::MIN, -1)).expect_err("too large").code, "signed-overflow");
    let lanes = program.checked_function::<(Slice<f32>, MutSlice<f32>), ()>("lanes")?;
    let mut out = [0f32; 13];
    let numbers: Vec<f32> = (0..13u8).map(f32::from).collect();
    lanes.call((&numbers, &mut out));
    assert_eq!((out[2], out[3], out[12]), (0.0, 9.0, 36.0));
    assert!(lanes.try_call((&numbers[..12], &mut out)).is_err());
    // Some number: it is not said which.
    let never = program.checked_function::<(i32,), i32>("never")?;
    assert_eq!((never.call((3,)), never.try_call((0,)).is_ok()), (3, true));
    let says = program.checked_function::<(i32,), i32>("says")?;
    assert_eq!(says.try_call((4,)).expect_err("it panics").message, "too large");
    Ok(())
}

#[test]
fn variants_have_handles() -> Result<(), Error> {
    let program = compiled(
        "
        extern fn filter(a: Slice[f32], b: MutSlice[f32], weights: Slice[f32], each: fn(f32) -> f32) -> () {
            for i in range(0i64, b.length) {
                let mut sum = 0f;
                for k in unroll(0i64, weights.length) { sum += weights(k) * a.data(i + k); }
                b(i) = each(sum);
            }
        }
        extern fn half(x: f32) -> f32 { x / 2f }
        extern fn from_table(a: Slice[f32], i: i64) -> f32 { a.data(i) }
    ",
    )?;
    let half = program.checked_partial("half")?;
    let filter = program.checked_partial("filter")?.fix("weights", &[1f32, 2.0])?.fix("each", &half)?;
    let built: Function<(Slice<f32>, MutSlice<f32>), ()> = filter.build()?;
    for filter in [built.clone(), filter.build_async()?] {
        let mut out = [0f32; 2];
        filter.call((&[2.0, 4.0, 6.0], &mut out));
        assert_eq!(out, [5.0, 8.0]);
        assert_eq!(filter.try_call((&[2.0, 4.0], &mut out)).expect_err("it leaves the slice").code, "invalid-access");
        filter.wait()?;
    }
    // A variant of a variant is as safe.
    let at: Function<(Slice<f32>, i64), f32> = program.checked_function("from_table")?;
    let at: Function<(i64,), f32> = at.fix("a", &[1f32, 2.0])?.build()?;
    assert_eq!(at.try_call((1,)), Ok(2.0));
    assert!(at.try_call((2,)).is_err() && at.try_call((-1,)).is_err());
    // A function has one variant that needs `unsafe`, and another one that does not.
    // SAFETY: the index is that of an element.
    let trusted: Function<(i64,), f32> = unsafe { program.partial("from_table") }?.fix("a", &[1f32, 2.0])?.build()?;
    assert_eq!(trusted.call((0,)), 1.0);
    assert_eq!(program.variants().found, 1);
    Ok(())
}

#[test]
fn types_without_lengths_are_refused() {
    let why = refusal::<(In<f32>,), f32>("extern fn f(a: &[f32]) -> f32 { a(0) }");
    assert_eq!(why, "parameter `a` is `&[f32]`, whose length nobody knows: take a `Slice[f32]`");
    let why = refusal::<(Out<f32>,), ()>("extern fn f(a: &mut [f32]) -> () { a(0) = 1f; }");
    assert_eq!(why, "parameter `a` is `&mut [f32]`, whose length nobody knows: take a `MutSlice[f32]`");
    let why = refusal::<(Ref<f32>,), f32>("extern fn f(a: &f32) -> f32 { *a }");
    assert_eq!(why, "parameter `a` is `&f32`, an address: take a value, or a `Slice[f32]`");
    let why = refusal::<(Mut<f32>,), ()>("extern fn f(a: &mut f32) -> () { *a = 1f; }");
    assert_eq!(why, "parameter `a` is `&mut f32`, an address: take a value, or a `MutSlice[f32]`");
    let why = refusal::<(Callback<fn(i32) -> i32>,), i32>("extern fn f(g: fn(i32) -> i32) -> i32 { g(1) }");
    assert_eq!(why, "parameter `g` is `fn(i32) -> i32`, a function: fix it");
    let why = refusal::<(MutSlice<bool>,), ()>("extern fn f(a: MutSlice[bool]) -> () { a(0) = true; }");
    assert_eq!(why, "parameter `a` is `MutSlice[bool]`, and nothing ensures that a `bool` is 0 or 1");
    #[derive(Clone, Copy, Type)]
    #[repr(C)]
    struct Answer {
        is_so: bool,
    }
    let why = refusal::<(), Answer>("struct Answer { is_so: bool } extern fn f() -> Answer { let mut a: Answer; a }");
    assert_eq!(why, "its result is `Answer`, and nothing ensures that a `bool` in it is 0 or 1");
    let why = refusal::<(Slice<f32>,), *const f32>("extern fn f(a: Slice[f32]) -> &[f32] { a.data }");
    assert_eq!(why, "its result is `&[f32]`, which has an address in it");

    /// A slice that anybody can make.
    #[derive(Clone, Copy, Type)]
    #[repr(C)]
    struct Forged {
        data: *const f32,
        length: i64,
    }
    let why = refusal::<(Forged,), f32>("extern fn f(a: Slice[f32]) -> f32 { a(0) }");
    assert_eq!(why, "`Forged` has a raw pointer in it: take a `Slice` or `MutSlice`");
    assert!(refusal::<(Slice<f64>,), f32>("extern fn f(a: Slice[f32]) -> f32 { a(0) }").contains("has other types"));
    assert_eq!(refusal::<(Slice<bool>,), bool>("extern fn f(a: Slice[bool]) -> bool { a(0) }"), "there is a handle");
}

#[test]
fn code_that_needs_trust_is_refused() {
    let number = refusal::<(i32,), i32>;
    let slices = refusal::<(Slice<i32>, MutSlice<i32>), i32>;
    let f = "extern fn f(n: i32) -> i32";
    let g = "extern fn f(a: Slice[i32], b: MutSlice[i32]) -> i32";
    let why = number(&format!("extern \"C\" {{ fn abs(i32) -> i32; }} {f} {{ abs(n) }}"));
    assert_eq!(why, "it calls the foreign function `abs`");
    let why = number(&format!("static mut COUNT = 0; {f} {{ COUNT += n; COUNT }}"));
    assert_eq!(why, "it uses a variable of the program (`static mut`)");
    let why = number(&format!("{f} {{ let a = alloc[i32](n as i64); a(0) = n; a(0) }}"));
    assert_eq!(why, "it allocates memory");
    let why = number(&format!("{f} {{ *(bitcast[&i32](n as u64)) }}"));
    assert_eq!(why, "it makes an address of a number");
    let why = number(&format!("{f} {{ exit(n); n }}"));
    assert!(why.starts_with("it calls the foreign function"), "{why}");
    let why = slices(&format!("{g} {{ for i in par(0, 10) {{ b(i) = a(i); }} 0 }}"));
    assert_eq!(why, "it runs a loop on several threads");
    let why = slices(&format!("{g} {{ let p = if a(0) > 0 {{ a.data }} else {{ b.data }}; p(1) }}"));
    assert_eq!(why, "it uses an address that is chosen while it runs, or comes from elsewhere");
    let why = slices(&format!("{g} {{ let p = a.data as &mut [i32]; p(0) = 1; 0 }}"));
    assert_eq!(why, "it writes what it is lent to be read");
    let why = slices(&format!("{g} {{ let p = a.data as &[i64]; p(0) as i32 }}"));
    assert_eq!(why, "it takes an address for one of larger alignment");
    let why = slices(&format!(
        "fn last(a: Slice[i32], n: i32) -> i32 {{ if n == 0 {{ a(0) }} else {{ 1 + last(a.skip(1i64), n - 1) }} }} {g} {{ last(a, b(0)) }}"
    ));
    assert_eq!(why, "it passes an address to a function that calls itself");
    let why = slices(&format!(
        "struct Held {{ at: &[i32] }} {g} {{ let held = [Held {{ at: a.data }}, Held {{ at: a.data }}]; held(b(0)).at(0) }}"
    ));
    assert!(why.contains("address"), "{why}");
    let why = slices(&format!("{g} {{ let p = b.data as &[bool]; if p(0) {{ 1 }} else {{ 0 }} }}"));
    assert_eq!(why, "it takes an address for one of `bool`s");
    // Functions of the runtime under their names, with other types.
    let why =
        number(&format!("extern \"C\" {{ fn \"nyala_print_string\" say(u64) -> (); }} {f} {{ say(n as u64); n }}"));
    assert_eq!(why, "it calls the foreign function `nyala_print_string`");
    let own = "extern \"C\" { fn \"nyala_check_is_written\" ask(&[u8], u64) -> bool; }";
    let why = slices(&format!("{own} {g} {{ if ask(a.data as &[u8], 1000u64) {{ 1 }} else {{ 0 }} }}"));
    assert_eq!(why, "it calls the foreign function `nyala_check_is_written`");
    let text = "extern fn f(n: i32) -> i32 { n }";
    let checked = || Compiler::new().check(Check::Bounds).check(Check::Overflow);
    for (compiler, why) in [
        (Compiler::new(), "the program is compiled without `Check::Bounds` or `Check::Overflow`"),
        (checked().wrap(true), "the program's arithmetic wraps around"),
        (checked().cpu("x86-64"), "the program is compiled for a CPU that may be another one"),
    ] {
        let program = compiler.compile_source("p.impala", text).expect("it compiles");
        let refused = program.checked_function::<(i32,), i32>("f").err().map(|e| e.to_string()).unwrap_or_default();
        assert_eq!(refused, format!("`f` cannot be called without `unsafe`: {why}"));
    }
}

#[test]
fn a_refusal_names_its_place() {
    let text = "extern \"C\" { fn abs(i32) -> i32; }\nextern fn f(n: i32) -> i32 { abs(n) }";
    let program = compiled(text).expect("it compiles");
    let Err(Error::Program(found)) = program.checked_function::<(i32,), i32>("f") else { panic!("it is refused") };
    let place = found[0].place.as_ref().expect("it is at a place");
    assert_eq!((found[0].code, place.line, place.column), ("limitation", 3, 30));
}

/// A number below n; the state is that of a generator.
fn below(state: &mut u64, n: u64) -> i64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    ((*state >> 33) % n) as i64
}

/// Loops of many kinds, with ends and offsets that often lead out of their slices: a call has the result that Rust has, or a fault if
/// Rust's has an index out of range; what lies around a slice is as before.
#[test]
fn nothing_but_slices_is_accessed() -> Result<(), Error> {
    const NAMES: [&str; 6] = ["strided", "down", "gathered", "rows", "masked", "narrow"];
    let program = compiled(
        "
        extern fn strided(a: Slice[i32], b: MutSlice[i32], from: i64, to: i64, by: i64) -> () {
            for i in range_step(from, to, 3i64) { b.data(i) = a.data(2i64 * i + by); }
        }
        extern fn down(a: Slice[i32], b: MutSlice[i32], from: i64, to: i64, by: i64) -> () {
            let mut i = to - 1i64;
            while i >= from { b.data(i) = a.data(by - i); i -= 2i64; }
        }
        extern fn gathered(a: Slice[i32], b: MutSlice[i32], from: i64, to: i64, by: i64) -> () {
            for i in vec(8, from as i32, to as i32) { b.data(i) = a.data(a.data(i) + by as i32); }
        }
        extern fn rows(a: Slice[i32], b: MutSlice[i32], from: i64, to: i64, by: i64) -> () {
            for y in range(from, to) { for x in range(0i64, 4i64) { b.data(4i64 * y + x) = a.data(4i64 * (y + by) + x); } }
        }
        extern fn masked(a: Slice[i32], b: MutSlice[i32], from: i64, to: i64, by: i64) -> () {
            for i in vec(8, from as i32, to as i32) { if (i & 1) == 0 { b.data(i) = a.data(i + by as i32); } }
        }
        extern fn narrow(a: Slice[i32], b: MutSlice[i32], from: i64, to: i64, by: i64) -> () {
            for i in range(from as i16, to as i16) { b.data(i) = a.data((i as i32 * 5 + by as i32) as u8); }
        }
    ",
    )?;
    let index = |name: &str, a: &[i32], i: i64, by: i64| -> Option<i64> {
        Some(match name {
            "strided" => 2 * i + by,
            "down" => by - i,
            "gathered" => i64::from(*a.get(usize::try_from(i).ok()?)?) + by,
            "rows" => i + 4 * by,
            "masked" => i + by,
            _ => i64::from((i * 5 + by) as u8),
        })
    };
    let mut state = 1;
    let mut outcomes = [0; 2];
    for name in NAMES {
        let f = program.checked_function::<(Slice<i32>, MutSlice<i32>, i64, i64, i64), ()>(name)?;
        for _ in 0..200 {
            let (n, m) = (below(&mut state, 40) as usize, below(&mut state, 40) as usize);
            let whole: Vec<i32> = (0..n as i32 + 32).map(|i| i * 7 % 16).collect();
            let a = &whole[16..16 + n];
            let mut around = vec![-1; m + 32];
            let (from, by) = (below(&mut state, 8) - 2, below(&mut state, 8) - 2);
            let to = from + below(&mut state, 20);
            let indices: Vec<i64> = match name {
                "strided" => (from..to).step_by(3).collect(),
                "down" => (from..to).rev().step_by(2).collect(),
                "rows" => (4 * from..4 * to).collect(),
                "masked" => (from..to).filter(|i| i & 1 == 0).collect(),
                _ => (from..to).collect(),
            };
            let mut expected = vec![-1; m];
            let mut put = |i: i64| -> Option<()> {
                let from = *a.get(usize::try_from(index(name, a, i, by)?).ok()?)?;
                *expected.get_mut(usize::try_from(i).ok()?)? = from;
                Some(())
            };
            let is_within = indices.iter().all(|&i| put(i).is_some());
            let ended = f.try_call((a, &mut around[16..16 + m], from, to, by));
            outcomes[usize::from(is_within)] += 1;
            assert_eq!(ended.is_ok(), is_within, "{name} of {n} and {m}, from {from} to {to} by {by}: {ended:?}");
            assert!(around[..16].iter().chain(&around[16 + m..]).all(|&x| x == -1), "{name}");
            assert!(!is_within || around[16..16 + m] == expected, "{name} of {n} and {m}, from {from} to {to} by {by}");
        }
    }
    assert!(outcomes.iter().all(|&n| n > 100), "{outcomes:?}");
    Ok(())
}
