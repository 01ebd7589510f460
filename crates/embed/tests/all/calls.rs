//! Calls: slices, also empty ones, threads, and code that lives as long as a handle.

use nyala_embed::{Error, Function, In, MutSlice, Out, Program, Slice};

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
