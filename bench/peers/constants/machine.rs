#![allow(long_running_const_eval)]
const CODE: [i32; 15] = [0, 0, SIZE, 0, 1, 3, 1, 2, 1, 2, 0, 6, 3, 0, 0];
const fn run() -> i32 {
    let (mut pc, mut a, mut b, mut c) = (0, 0, 0, 0);
    loop {
        let (op, r, k) = (CODE[pc], CODE[pc + 1], CODE[pc + 2]);
        if op == 3 {
            return c;
        }
        if op == 2 {
            a -= 1;
            pc = if a == 0 { pc + 3 } else { k as usize };
            continue;
        }
        let n = if op == 0 { k } else if k == 0 { a } else if k == 1 { b } else { c };
        if r == 0 {
            a += n
        } else if r == 1 {
            b += n
        } else {
            c = (c + n) & 0xffff
        }
        pc += 3;
    }
}
const RESULT: i32 = run();
fn main() {
    std::process::exit(RESULT & 127)
}
