//! Selects the rows of a CSV file by an expression, which becomes vector code while the program runs.

mod filter;

use filter::{Filter, Table};
use std::process::ExitCode;
use std::time::Instant;

const USAGE: &str = "\
usage: filter-csv EXPRESSION FILE.csv     prints the rows for which the expression holds
       filter-csv --measure               compares a filter with the same filter as a loop in Rust

The expression is one of Impala, with the names of columns: 'price * quantity > 100.0 && discount < 0.1'
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let done = match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--measure"] => measure(),
        [expression, file] => select(expression, file),
        _ => Err(USAGE.into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprint!("{e}");
            ExitCode::FAILURE
        }
    }
}

fn select(expression: &str, file: &str) -> Result<(), String> {
    let text = std::fs::read_to_string(file).map_err(|e| format!("cannot read {file}: {e}\n"))?;
    let table = Table::parse(&text)?;
    let filter = Filter::compile(expression, &table.names)?;
    let lines: Vec<&str> = text.lines().collect();
    println!("{}", lines[0]);
    for (line, keep) in lines[1..].iter().zip(filter.select(&table)) {
        if keep != 0 {
            println!("{line}");
        }
    }
    Ok(())
}

/// The filter of [`measure`], as it would be if it were known when this program is compiled.
fn plain_loop(table: &Table, keep: &mut [u8]) {
    let n = table.rows;
    let (price, rest) = table.numbers.split_at(n);
    let (quantity, discount) = rest.split_at(n);
    for i in 0..n {
        keep[i] = u8::from(price[i] * quantity[i] > 100.0 && discount[i] < 0.1);
    }
}

fn measure() -> Result<(), String> {
    let rows = 4_000_000;
    let names = ["price", "quantity", "discount"].map(String::from).to_vec();
    // As good as random: multiples, mixed.
    let number = |i: usize| {
        let z = (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 40) as f64 / f64::from(1 << 24)
    };
    let scale = [50.0, 10.0, 0.3];
    let numbers = (0..3 * rows).map(|i| number(i) * scale[i / rows]).collect();
    let table = Table { names, numbers, rows };
    let start = Instant::now();
    let filter = Filter::compile("price * quantity > 100.0 && discount < 0.1", &table.names)?;
    println!("compiled in {:.1} ms", start.elapsed().as_secs_f64() * 1e3);
    let (mut keep, mut expected) = (vec![0; rows], vec![0; rows]);
    let best = |f: &mut dyn FnMut()| {
        let times = (0..20).map(|_| {
            let start = Instant::now();
            f();
            start.elapsed().as_secs_f64() * 1e3
        });
        times.fold(f64::INFINITY, f64::min)
    };
    let compiled = best(&mut || filter.select_into(&table, &mut keep));
    let plain = best(&mut || plain_loop(&table, &mut expected));
    let kept: usize = keep.iter().map(|&keep| usize::from(keep)).sum();
    println!("{rows} rows: compiled at run time {compiled:.2} ms, a loop in Rust {plain:.2} ms, {kept} rows kept");
    if keep == expected { Ok(()) } else { Err("the results differ\n".into()) }
}
