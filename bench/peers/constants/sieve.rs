#![allow(long_running_const_eval)]
const fn sieve() -> i32 {
    let mut composite = [false; SIZE];
    let mut count = 0;
    let mut i = 2;
    while i < SIZE {
        if !composite[i] {
            count += 1;
            let mut j = i + i;
            while j < SIZE {
                composite[j] = true;
                j += i;
            }
        }
        i += 1;
    }
    count
}
const RESULT: i32 = sieve();
fn main() {
    std::process::exit(RESULT & 127)
}
