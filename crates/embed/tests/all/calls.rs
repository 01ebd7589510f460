//! Calls: slices, also empty ones, threads, and code that lives as long as a handle.

use nyala_embed::{Callback, Error, Function, In, MutSlice, Out, Program, Slice, Type};
use std::sync::atomic::{AtomicI32, Ordering};

const SLICES: &str = "
    use std::slice::*;
    extern fn sum(a: Slice[f64]) -> f64 { let mut s = 0.0; for x in a.each() { s += x; } s }
    extern fn double(a: MutSlice[i32], from: Slice[i32]) -> i64 {
        for i in range(0i64, a.length) { a(i) = 2 * from(i); }
        a.length
    }
";

#[test]
fn slices_carry_their_lengths() -> Result<(), Error> {
    let program = Program::from_source("slices.impala", SLICES)?;
    // SAFETY: slices are accessed within their lengths, which calls of `double` make equal.
    let (sum, double) = unsafe {
        (
            program.function::<(Slice<f64>,), f64>("sum")?,
            program.function::<(MutSlice<i32>, Slice<i32>), i64>("double")?,
        )
    };
    let numbers: Vec<f64> = (1..=100).map(f64::from).collect();
    assert_eq!(sum.call((&numbers,)), 5050.0);
    assert_eq!(sum.call((&numbers[..10],)), 55.0);
    let mut out = [0; 4];
    assert_eq!(double.call((&mut out[1..], &[1, 2, 3])), 3);
    assert_eq!(out, [0, 2, 4, 6]);
    assert_eq!(sum.call((&[],)), 0.0);
    assert_eq!(double.call((&mut [], &[])), 0);
    Ok(())
}

#[test]
fn handles_keep_the_code_alive() -> Result<(), Error> {
    fn made() -> Result<Function<(i32,), i32>, Error> {
        let program = Program::from_source(
            "count.impala",
            "
            static mut n = 0;
            extern fn add(k: i32) -> i32 { n += k; n }
        ",
        )?;
        // SAFETY: one thread calls it.
        let first = unsafe { program.function::<(i32,), i32>("add") }?;
        // SAFETY: as above.
        let second = unsafe { program.function::<(i32,), i32>("add") }?;
        assert_eq!(first.call((1,)), 1);
        drop(first);
        Ok(second)
    }
    let add = made()?;
    let again = add.clone();
    assert_eq!(add.call((10,)), 11);
    drop(add);
    assert_eq!(again.call((100,)), 111);
    Ok(())
}

#[test]
fn threads_call_one_handle() -> Result<(), Error> {
    let program = Program::from_source(
        "squares.impala",
        "extern fn squares(n: i32, a: &[i32], b: &mut [i32]) -> () { for i in par(0, n) { b(i) = a(i) * a(i); } }",
    )?;
    // SAFETY: `squares` accesses n elements, as many as the arrays below have.
    let squares = unsafe { program.function::<(i32, In<i32>, Out<i32>), ()>("squares") }?;
    drop(program);
    let all_right = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|t| {
                let squares = &squares;
                scope.spawn(move || {
                    let a: Vec<i32> = (0..500).map(|i| i + t).collect();
                    let mut b = vec![0; 500];
                    (0..50).all(|_| {
                        b.fill(0);
                        squares.call((500, &a, &mut b));
                        a.iter().zip(&b).all(|(a, b)| a * a == *b)
                    })
                })
            })
            .collect();
        threads.into_iter().all(|thread| thread.join().unwrap_or(false))
    });
    assert!(all_right);
    Ok(())
}

#[test]
fn twelve_parameters_are_passed() -> Result<(), Error> {
    let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"];
    let params: Vec<String> =
        names.iter().enumerate().map(|(i, n)| format!("{n}: {}", if i % 2 == 0 { "i32" } else { "f64" })).collect();
    let sum: Vec<String> = names.iter().enumerate().map(|(i, n)| format!("{}f64 * ({n} as f64)", i + 1)).collect();
    let text = format!("extern fn weigh({}) -> f64 {{ {} }}", params.join(", "), sum.join(" + "));
    let program = Program::from_source("twelve.impala", &text)?;
    type Twelve = (i32, f64, i32, f64, i32, f64, i32, f64, i32, f64, i32, f64);
    // SAFETY: `weigh` accesses no memory.
    let weigh = unsafe { program.function::<Twelve, f64>("weigh") }?;
    let expected: i32 = (1..=12).map(|i| i * i).sum();
    assert_eq!(weigh.call((1, 2.0, 3, 4.0, 5, 6.0, 7, 8.0, 9, 10.0, 11, 12.0)), f64::from(expected));
    Ok(())
}

#[test]
fn arguments_are_in_memory() -> Result<(), Error> {
    let program = Program::from_source(
        "memory.impala",
        "
        use std::slice::*;
        struct Curve { scale: f64, n: i8 }
        static mut CALLS = 0;
        // How often.
        //
        extern fn calls() -> i32 { CALLS }
        extern fn all(x: u8, c: Curve, a: Slice[f64], b: bool, f: f16) -> Curve {
            CALLS++;
            Curve { scale: c.scale * a(1) + x as f64 + f as f64, n: if b { c.n } else { 0i8 } }
        }
        extern fn fail() -> () { panic(\"no\") }
        extern fn twice(f: fn(i32) -> i32, x: i32) -> i32 { f(f(x)) }
        extern fn next(x: i32) -> i32 { x + 1 }
        extern fn higher(f: fn(fn(i32) -> i32) -> i32) -> i32 { f(|x| x + 1) }
        ",
    )?;
    let all = program.untyped("all")?;
    let names: Vec<&str> = all.parameters().map(|(name, _)| name).collect();
    assert_eq!(names, ["x", "c", "a", "b", "f"]);
    let elements = [0.5, 3.0];
    let slice = (elements.as_ptr(), 2i64);
    // Half of 1 is 0x3800 as a float of 16 bits.
    let (x, c, b, f) = (200u8, (2.0f64, -7i8), true, 0x3800u16);
    let mut result = (0f64, 0i8);
    let addresses = |result: &mut (f64, i8)| -> [*const (); 6] {
        let at = |address: *const u8| address.cast();
        [
            at(&raw const x),
            at((&raw const c).cast()),
            at((&raw const slice).cast()),
            at((&raw const b).cast()),
            at((&raw const f).cast()),
            at(std::ptr::from_mut(result).cast()),
        ]
    };
    // SAFETY: tuples of these types lie as C's structs do; the addresses are of the function's types.
    unsafe { all.in_memory()?.try_call(&addresses(&mut result)) }?;
    assert_eq!(result, (206.5, -7));
    // A variant takes what is left.
    // SAFETY: the functions access what they are given.
    let fixed = unsafe { all.partial() }.fix("x", 100u8)?.fix("b", false)?.build_untyped()?;
    let left = addresses(&mut result);
    // SAFETY: as above.
    unsafe { fixed.in_memory()?.try_call(&[left[1], left[2], left[4], left[5]]) }?;
    assert_eq!(result, (106.5, 0));

    let calls = program.untyped("calls")?;
    let mut n = 0i32;
    // SAFETY: as above.
    unsafe { calls.in_memory()?.try_call(&[(&raw mut n).cast_const().cast()]) }?;
    assert_eq!((n, &*calls.comment()), (2, "How often.\n"));
    // SAFETY: as above.
    let fault = unsafe { program.untyped("fail")?.in_memory()?.try_call(&[]) }.expect_err("it panics");
    assert_eq!(fault.message, "no");

    let twice = program.untyped("twice")?;
    // A function is the address of a C function, and of its environment.
    extern "C" fn add(by: &i32, x: i32) -> i32 {
        x + by
    }
    let by = 5i32;
    let add: (extern "C" fn(&i32, i32) -> i32, &i32) = (add, &by);
    let (x, mut result) = (2i32, 0i32);
    let addresses: [*const (); 3] = [(&raw const add).cast(), (&raw const x).cast(), (&raw mut result).cast()];
    // SAFETY: the addresses are of the function's types.
    unsafe { twice.in_memory()?.try_call(&addresses) }?;
    assert_eq!(result, 12);
    let refused = program.untyped("higher")?.in_memory().err().map(|e| e.to_string()).unwrap_or_default();
    assert!(refused.contains("with a function as an argument that takes or gives one"), "{refused}");
    unsafe extern "C" fn received(_: *const (), _: *const *mut ()) {}
    for (function, i) in [("higher", 0), ("twice", 1)] {
        let refused = program.untyped(function)?.receiver(i, received).err().map(|e| e.to_string()).unwrap_or_default();
        assert!(
            refused.contains(&format!("parameter {i} of `{function}` is no function that C can give")),
            "{refused}"
        );
    }
    let next = program.untyped("next")?;
    // SAFETY: these access no memory.
    let twice = unsafe { twice.partial() }.fix("f", unsafe { next.partial() })?.build_untyped()?;
    // SAFETY: as above.
    let again = unsafe { program.partial_by_key(twice.partial().key()) }?.build_untyped()?;
    assert_eq!(again.address(), twice.address());
    // SAFETY: as above.
    let key = unsafe { twice.partial() }.key().to_vec();
    for n in 0..key.len() {
        // SAFETY: as above.
        let broken = [unsafe { program.partial_by_key(&key[..n]) }, unsafe {
            program.partial_by_key(&[&key[..n], &[9]].concat())
        }];
        assert!(broken.iter().all(|made| made.is_err() || n == 4), "{n} bytes");
    }
    let twice = twice.in_memory()?;
    let (x, mut y) = (1i32, 0i32);
    // SAFETY: as above.
    unsafe { twice.try_call(&[(&raw const x).cast(), (&raw mut y).cast_const().cast()]) }?;
    assert_eq!(y, 3);
    Ok(())
}

/// What C passes in two registers.
#[derive(Clone, Copy, Debug, PartialEq, Type)]
#[repr(C)]
struct Point {
    x: f64,
    n: i64,
}

/// What C passes in memory.
#[derive(Clone, Copy, Debug, PartialEq, Type)]
#[repr(C)]
struct Large {
    a: f64,
    b: f64,
    n: i32,
}

#[test]
fn functions_are_called_back() -> Result<(), Error> {
    let program = Program::from_source(
        "callbacks.impala",
        "
        struct Point { x: f64, n: i64 }
        struct Large { a: f64, b: f64, n: i32 }
        extern fn sum(n: i32, f: fn(i32) -> i32) -> i32 { let mut s = 0; for i in range(0, n) { s += f(i) } s }
        extern fn in_threads(n: i32, f: fn(i32) -> ()) -> () { for i in par(0, n) { f(i) } }
        extern fn in_lanes(n: i32, f: fn(i32) -> i32, a: &mut [i32]) -> () {
            for i in vec(8, 0, n) { if a(i) > 3 { a(i) = f(a(i)) } }
        }
        extern fn of_structs(f: fn(Point, Large) -> Large, g: fn() -> Point, p: Point) -> Large {
            let q = g();
            f(Point { x: p.x + q.x, n: p.n }, f(p, Large { a: 1.0, b: 2.0, n: 3 }))
        }
        extern fn many(a: i32, b: i32, c: i32, d: i32, e: i32, f: fn(i32) -> i32, g: i32) -> i32 {
            a + b + c + d + e + f(g)
        }
        extern fn own(n: i32, f: fn(i32) -> i32) -> i32 { if n == 0 { f(n) } else { own(n - 1, |x| f(x) + n) } }
        extern fn fails(f: fn(i32) -> i32) -> i32 { if f(1) == 2 { panic(\"it is 2\") } 0 }
        ",
    )?;
    type F = Callback<fn(i32) -> i32>;
    // SAFETY: the functions access what they are given, and `a` has `n` elements.
    let (sum, in_threads, in_lanes, of_structs, many, own, fails) = unsafe {
        (
            program.function::<(i32, F), i32>("sum")?,
            program.function::<(i32, Callback<fn(i32) -> ()>), ()>("in_threads")?,
            program.function::<(i32, F, Out<i32>), ()>("in_lanes")?,
            program.function::<(Callback<fn(Point, Large) -> Large>, Callback<fn() -> Point>, Point), Large>(
                "of_structs",
            )?,
            program.function::<(i32, i32, i32, i32, i32, F, i32), i32>("many")?,
            program.function::<(i32, F), i32>("own")?,
            program.function::<(F,), i32>("fails")?,
        )
    };
    let by = 7;
    assert_eq!(sum.call((5, &|x| x * by)), 70);
    let all = AtomicI32::new(0);
    in_threads.call((1000, &|i| {
        all.fetch_add(i, Ordering::Relaxed);
    }));
    assert_eq!(all.load(Ordering::Relaxed), 499_500);
    let (mut a, n_calls) = ([0, 1, 2, 3, 4, 5, 6, 7, 8, 9], AtomicI32::new(0));
    in_lanes.call((
        10,
        &|x| {
            n_calls.fetch_add(1, Ordering::Relaxed);
            x * 10
        },
        &mut a,
    ));
    assert_eq!((a, n_calls.load(Ordering::Relaxed)), ([0, 1, 2, 3, 40, 50, 60, 70, 80, 90], 6));
    let moved = |p: Point, l: Large| Large { a: l.a + p.x, b: l.b * 2.0, n: l.n + p.n as i32 };
    let made = || Point { x: 0.5, n: 1 };
    let result = of_structs.call((&moved, &made, Point { x: 10.0, n: 4 }));
    assert_eq!(result, Large { a: 21.5, b: 8.0, n: 11 });
    assert_eq!(many.call((1, 2, 3, 4, 5, &|x| x + by, 6)), 28);
    assert_eq!(own.call((10, &|x| x + by)), 62);
    let fault = fails.try_call((&|x| x + 1,)).expect_err("it panics");
    assert_eq!(fault.message, "it is 2");
    let wrong = unsafe { program.function::<(i32, Callback<fn(i32) -> i64>), i32>("sum") };
    let wrong = wrong.err().map(|e| e.to_string()).unwrap_or_default();
    assert!(wrong.contains("the result of parameter `f` is `i64` here, `i32` in the program"), "{wrong}");
    Ok(())
}
