#![allow(long_running_const_eval)]
const fn ack(m: i32, n: i32, c: i32) -> (i32, i32) {
    if m == 0 {
        (n + 1, c + 1)
    } else if n == 0 {
        ack(m - 1, 1, c + 1)
    } else {
        let r = ack(m, n - 1, c + 1);
        ack(m - 1, r.0, r.1)
    }
}
const RESULT: (i32, i32) = ack(3, SIZE, 0);
fn main() {
    std::process::exit((RESULT.0 + RESULT.1) & 127)
}
