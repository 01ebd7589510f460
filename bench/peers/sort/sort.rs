// The peer of sort.impala in Rust: sort_unstable (ipnsort) and sort (driftsort) on the same numbers.
use std::cmp::Ordering;
use std::time::Instant;

const N: usize = 1_000_000;
const ROUNDS: usize = 15;
const FILLS: [&str; 4] = ["random", "sorted", "reversed", "few"];

fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    *state >> 33
}

fn measure<T>(name: &str, fill: usize, state: &mut u64, of: fn(u64) -> T, sort: fn(&mut [T]), by: fn(&T, &T) -> Ordering) {
    // An argument names the workload that is measured.
    if std::env::args().nth(1).is_some_and(|only| only != format!("{name}_{}", FILLS[fill])) {
        return;
    }
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let mut all: Vec<T> = Vec::with_capacity(N);
        for i in 0..N as u64 {
            let n = next(state);
            all.push(of([n, i, N as u64 - i, n % 16][fill]));
        }
        let start = Instant::now();
        sort(&mut all);
        times.push(start.elapsed().as_nanos());
        assert!(all.is_sorted_by(|a, b| by(a, b) != Ordering::Greater));
    }
    times.sort_unstable();
    println!("{name}_{} {}", FILLS[fill], times[ROUNDS / 2]);
}

fn main() {
    let state = &mut 1;
    let by_float = |a: &f64, b: &f64| a.partial_cmp(b).unwrap();
    for fill in 0..4 {
        measure("i32", fill, state, |n| n as i32, |a| a.sort_unstable(), i32::cmp);
        measure("f64", fill, state, |n| n as f64, |a| a.sort_unstable_by(|a, b| a.partial_cmp(b).unwrap()), by_float);
        measure("stable_i32", fill, state, |n| n as i32, |a| a.sort(), i32::cmp);
        measure("stable_f64", fill, state, |n| n as f64, |a| a.sort_by(|a, b| a.partial_cmp(b).unwrap()), by_float);
        let by_key = |a: &(i32, i32), b: &(i32, i32)| a.0.cmp(&b.0);
        measure("stable_pair", fill, state, |n| (n as i32, 1), |a| a.sort_by_key(|a| a.0), by_key);
    }
}
