//! Jumps between functions whose signatures differ in number and type of parameters, hundreds of thousands deep.

use nyala_flat::{read, verify};
use nyala_gen_llvm::{Jit, Options, emit};

const FUNCS: usize = 12;

/// Parameter types of function `i`: a counter and up to 22 more, of all classes.
fn params(i: usize) -> Vec<&'static str> {
    let n = [0, 5, 6, 7, 22, 1, 13, 8, 3, 20, 9, 2][i];
    let mut tys = vec!["i64"];
    tys.extend((0..n).map(|j| ["i64", "f64", "i64", "i32", "i64", "(i64, f64)"][(i + j) % 6]));
    tys
}

/// The text: each function jumps to one of two others until the counter is 0, then returns the sum of its parameters.
fn text(n_rets: usize) -> String {
    let rets = vec!["i64"; n_rets].join(", ");
    let mut out = String::from("flat\n");
    for i in 0..FUNCS {
        let tys = params(i);
        let names: Vec<String> = (0..tys.len()).map(|j| format!("p{j}")).collect();
        out.push_str(&format!("func f{i}({}) -> ({rets}) {{\nentry({}):\n", tys.join(", "), names.join(", ")));
        out.push_str("  done: bool = eq(p0, 0i64)\n  branch done, end(), more()\n");
        out.push_str("more():\n  n: i64 = sub(p0, 1i64)\n  bit: i64 = and(n, 1i64)\n  odd: bool = eq(bit, 1i64)\n  branch odd, a(), b()\n");
        for (label, to) in [("a", (i * 7 + 3) % FUNCS), ("b", (i * 5 + 1) % FUNCS)] {
            out.push_str(&format!("{label}():\n"));
            let mut args = vec!["n".to_string()];
            for (j, ty) in params(to).iter().enumerate().skip(1) {
                // From the last parameter of the same type, changed a little.
                let source = tys.iter().rposition(|t| t == ty).filter(|&s| s > 0 && *ty != "(i64, f64)");
                let name = format!("{label}{j}");
                out.push_str(&match (*ty, source) {
                    ("(i64, f64)", _) => format!("  {name}: (i64, f64) = tuple(n, {j}.5f64)\n"),
                    (ty, Some(s)) => format!(
                        "  {name}: {ty} = {}(p{s}, {j}{})\n",
                        if ty == "f64" { "sub" } else { "xor" },
                        suffix(ty)
                    ),
                    (ty, None) => format!("  {name}: {ty} = cast(n)\n"),
                });
                args.push(name);
            }
            out.push_str(&format!("  tail_call f{to}({})\n", args.join(", ")));
        }
        out.push_str("end():\n  s0: i64 = add(p0, 0i64)\n");
        for (j, ty) in tys.iter().enumerate().skip(1) {
            let add = match *ty {
                "i64" => format!("  t{j}: i64 = xor(p{j}, 0i64)\n"),
                "(i64, f64)" => format!("  e{j}: f64 = extract(p{j}, 1i32)\n  t{j}: i64 = cast(e{j})\n"),
                _ => format!("  t{j}: i64 = cast(p{j})\n"),
            };
            out.push_str(&format!("{add}  m{j}: i64 = mul(t{j}, {j}i64)\n  s{j}: i64 = add(s{}, m{j})\n", j - 1));
        }
        out.push_str(&format!("  return({})\n}}\n", vec![format!("s{}", tys.len() - 1); n_rets].join(", ")));
    }
    let result = if n_rets == 1 { "i64".into() } else { format!("({rets})") };
    out.push_str(&format!("export run(i64) -> (i64) {{\nentry(n):\n  r: {result} = call f0(n)\n"));
    if n_rets > 1 {
        out.push_str(&format!("  x: i64 = extract(r, {}i32)\n  return(x)\n}}\n", n_rets - 1));
    } else {
        out.push_str("  return(r)\n}\n");
    }
    out
}

fn suffix(ty: &str) -> &str {
    if ty == "f64" { ".0f64" } else { ty }
}

/// The result of the text, computed in Rust.
fn expected(mut n: i64) -> i64 {
    let mut i = 0;
    let mut values: Vec<(i64, f64)> = vec![(n, 0.0)];
    while n != 0 {
        n -= 1;
        let to = if n & 1 == 1 { (i * 7 + 3) % FUNCS } else { (i * 5 + 1) % FUNCS };
        let (from, new) = (params(i), params(to));
        let mut next = vec![(n, 0.0)];
        for (j, ty) in new.iter().enumerate().skip(1) {
            let source = from.iter().rposition(|t| t == ty).filter(|&s| s > 0 && *ty != "(i64, f64)");
            next.push(match (*ty, source) {
                ("(i64, f64)", _) => (n, j as f64 + 0.5),
                ("f64", Some(s)) => (0, values[s].1 - j as f64),
                ("f64", None) => (0, n as f64),
                ("i32", Some(s)) => (((values[s].0 as i32) ^ j as i32) as i64, 0.0),
                ("i32", None) => (n as i32 as i64, 0.0),
                (_, Some(s)) => (values[s].0 ^ j as i64, 0.0),
                (_, None) => (n, 0.0),
            });
        }
        values = next;
        i = to;
    }
    let tys = params(i);
    (1..tys.len()).map(|j| j as i64 * if tys[j].contains("f64") { values[j].1 as i64 } else { values[j].0 }).sum()
}

#[test]
fn arguments_survive_on_registers_and_stack() {
    let results: Vec<(i64, i64)> =
        [0, 1, 2, 3, 5, 10, 37, 1001, 200_000].into_iter().map(|n| (n, expected(n))).collect();
    for n_rets in [1, 2, 5] {
        let module = read(&text(n_rets)).unwrap_or_else(|e| panic!("{e}"));
        verify(&module).unwrap_or_else(|e| panic!("{e}"));
        for opt_level in [0, 1, 2, 3] {
            let mut llvm = emit(&module, &Options { opt_level, ..Options::default() }).expect("emits");
            llvm.optimize().expect("optimizes");
            let jit = Jit::new(&[]).expect("a JIT");
            jit.add(&llvm).expect("links");
            // SAFETY: the text says so.
            let run: extern "C" fn(i64) -> i64 = unsafe { std::mem::transmute(jit.lookup("run").expect("is there")) };
            for &(n, expected) in &results {
                assert_eq!(run(n), expected, "run({n}), {n_rets} results, -O{opt_level}");
            }
        }
    }
}
