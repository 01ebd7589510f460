// The peer of sort.impala in Rust: sort_unstable (ipnsort) and sort (driftsort) on the same numbers. Arguments: a workload, instead of
// all, and the number of elements.
use std::cmp::Ordering;
use std::time::Instant;

const MOST_ROUNDS: usize = 15;
const FILLS: [&str; 4] = ["random", "sorted", "reversed", "few"];

fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    *state >> 33
}

fn measure<T>(name: &str, fill: usize, state: &mut u64, of: fn(u64) -> T, sort: fn(&mut [T]), by: fn(&T, &T) -> Ordering) {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.get(1).is_some_and(|only| *only != format!("{name}_{}", FILLS[fill])) {
        return;
    }
    let n = arguments.get(2).map_or(1_000_000, |n| n.parse().unwrap());
    // Short arrays are sorted several at a time.
    let times_sorted = (100_000 / n).max(1);
    let rounds = if n > 2_000_000 { 3 } else { MOST_ROUNDS };
    let mut times = Vec::new();
    for _ in 0..rounds {
        let mut all: Vec<T> = Vec::with_capacity(n * times_sorted);
        for i in 0..n * times_sorted {
            let k = next(state);
            let i = (i % n) as u64;
            all.push(of([k, i, n as u64 - i, k % 16][fill]));
        }
        let start = Instant::now();
        all.chunks_exact_mut(n).for_each(sort);
        times.push(start.elapsed().as_nanos() / times_sorted as u128);
        assert!(all.chunks_exact(n).all(|one| one.is_sorted_by(|a, b| by(a, b) != Ordering::Greater)));
    }
    times.sort_unstable();
    println!("{name}_{} {}", FILLS[fill], times[rounds / 2]);
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
