#![allow(long_running_const_eval)]
const fn fib(n: i32, c: i32) -> (i32, i32) {
    if n < 2 {
        (n, c + 1)
    } else {
        let a = fib(n - 1, c + 1);
        let b = fib(n - 2, a.1);
        (a.0 + b.0, b.1)
    }
}
const RESULT: (i32, i32) = fib(SIZE, 0);
fn main() {
    std::process::exit((RESULT.0 + RESULT.1) & 127)
}
