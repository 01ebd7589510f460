//! The residual code of a function does not depend on what other functions the program has, nor on their number.

use crate::common::{Folder, nyala, stderr};
use std::fmt::Write as _;

/// Functions that each have a loop and call a common helper; the loop is a function without filter.
fn program(n: usize) -> String {
    let mut text = String::from(
        "fn loop(a: i32, b: i32, body: fn(i32) -> ()) -> () { if a < b { body(a); loop(a + 1, b, body) } }
fn helper(x: i32) -> i32 { if x > 10 { helper(x - 7) + 3 } else { x } }
fn @(?n) power(x: i32, n: i32) -> i32 { if n == 0 { 1 } else { x * power(x, n - 1) } }
",
    );
    for i in 0..n {
        let _ = writeln!(
            text,
            "extern fn f{i}(n: i32, p: &mut [i32]) -> i32 {{
    let mut s = {i};
    for k in loop(0, n) {{ p(k) = s; s = s * 7 + k }}
    s + helper(power(s, 3))
}}"
        );
    }
    text
}

/// Residual text of one function, without the numbers of names: `unroll_step.17` is `unroll_step`.
fn residual(folder: &Folder, n: usize, function: &str) -> String {
    let file = folder.write(&format!("{n}.impala"), program(n));
    let output = nyala(&["emit".as_ref(), file.as_os_str(), "--fn".as_ref(), function.as_ref()], 120);
    assert!(output.status.success(), "{}", stderr(&output));
    without_numbers(&String::from_utf8_lossy(&output.stdout))
}

fn without_numbers(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c == '.' && chars.peek().is_some_and(char::is_ascii_digit) {
            while chars.next_if(char::is_ascii_digit).is_some() {}
        } else {
            out.push(c);
        }
    }
    out
}

#[test]
fn siblings_change_nothing() {
    let folder = Folder::new("siblings");
    let few = residual(&folder, 10, "f5");
    assert!(few.contains("f5(") && few.contains("helper(") && few.contains("branch("), "{few}");
    assert_eq!(few, residual(&folder, 1_000, "f5"));
}

#[test]
#[ignore = "takes long: `./x test --all crates`"]
fn ten_thousand_siblings_change_nothing() {
    let folder = Folder::new("many siblings");
    let few = residual(&folder, 10, "f5");
    assert_eq!(few, residual(&folder, 3_200, "f5"));
    assert_eq!(few, residual(&folder, 10_000, "f5"));
}

/// Exports that nothing of the programs refers to: a barrier, lanes that meet, a recursion that drifts.
const FOREIGN: &str = r#"
extern "device" { fn "barrier" foreign_barrier(u32) -> (); fn "get_global_id" foreign_id(i32) -> i32; }
extern "thorin" { fn "opencl" foreign_launch(i32, (i32, i32, i32), (i32, i32, i32), fn() -> ()) -> (); }
extern "thorin" { fn "vectorize" foreign_vectorize(i32, i32, i32, fn(i32) -> ()) -> (); }
extern "C" { fn "rv_any" foreign_any(bool) -> bool; }
extern fn foreign_kernel(n: i32, a: &mut [1][i32]) -> () {
    foreign_launch(0, (n, 1, 1), (16, 1, 1), || { foreign_barrier(1u32); a(foreign_id(0)) = n })
}
extern fn foreign_lanes(a: &mut [i32]) -> () { for i in foreign_vectorize(8, 0, 64) { a(i) = if foreign_any(a(i) > 3) { 1 } else { 2 } } }
fn foreign_drift(n: i32, f: fn(i32) -> i32) -> i32 { if n == 0 { f(n) } else { foreign_drift(n - 1, |x| f(x) + n) } }
extern fn foreign_recursion(n: i32) -> i32 { foreign_drift(n, |x| x * 2) }
"#;

/// The residual text of an export: all that is reachable from it, without the numbers of names, the mark of functions that are
/// exports, and the order of statics.
fn text_of(world: &nyala_ir::World, root: nyala_ir::Cont) -> String {
    let text = without_numbers(&nyala_ir::print::print_roots(world, &[root]));
    let lines = text.lines().filter(|line| !line.starts_with("struct "));
    let (mut statics, functions): (Vec<&str>, Vec<&str>) =
        lines.map(|line| line.strip_prefix("export ").unwrap_or(line)).partition(|line| line.starts_with("static "));
    statics.sort_unstable();
    statics.iter().chain(&functions).map(|line| format!("{line}\n")).collect()
}

/// What differs if a program is compiled with each of its exports as the only one, so that those that it calls are none, and with
/// [`FOREIGN`]; and the number of exports.
fn differences(name: &str, text: &str) -> (Vec<String>, usize) {
    use nyala_ir::{Cont, Linkage, World};
    let graph = |others: &str| {
        let mut files = nyala_driver::Files::of(name, text);
        if !others.is_empty() {
            files.add("foreign", others);
        }
        nyala_driver::FrontEnd::new(nyala_driver::Options::default(), files).graph()
    };
    let symbol = |w: &World, k: Cont| match &*w.cont(k).linkage {
        Linkage::Exported(symbol) => symbol.clone(),
        _ => String::new(),
    };
    let none = (Vec::new(), 0);
    let Ok(mut graph_of_all) = graph("") else { return none };
    let roots = graph_of_all.world.roots();
    if roots.len() < 2 || roots.len() > 40 {
        return none;
    }
    let Ok(whole) = graph_of_all.residual().map(|residual| residual.world) else { return none };
    let expected: Vec<(String, String)> =
        whole.roots().iter().map(|&k| (symbol(&whole, k), text_of(&whole, k))).collect();
    let mut all = Vec::new();
    let compare = |w: &World, how: &str, found: &mut Vec<String>| {
        for k in w.roots() {
            let (name, text) = (symbol(w, k), text_of(w, k));
            if let Some((_, expected)) = expected.iter().find(|e| e.0 == name && e.1 != text) {
                let line = expected.lines().zip(text.lines()).find(|(a, b)| a != b);
                let (a, b) = line.unwrap_or(("more lines", "fewer"));
                found.push(format!("{name} {how}\n  among siblings: {}\n  {how}: {}", a.trim(), b.trim()));
            }
        }
    };
    for &root in &roots {
        // The residual program shares the graph no more.
        let world = std::sync::Arc::get_mut(&mut graph_of_all.world).expect("the graph has one owner");
        let hide = |k: Cont| (k, std::mem::replace(&mut world.cont_mut(k).linkage, Linkage::Internal.into()));
        let hidden: Vec<_> = roots.iter().copied().filter(|&k| k != root).map(hide).collect();
        if let Ok(alone) = graph_of_all.residual() {
            compare(&alone.world, "alone", &mut all);
        }
        let world = std::sync::Arc::get_mut(&mut graph_of_all.world).expect("the graph has one owner");
        hidden.into_iter().for_each(|(k, linkage)| world.cont_mut(k).linkage = linkage);
    }
    match graph(FOREIGN).and_then(|graph| graph.residual()) {
        Ok(beside) => compare(&beside.world, "beside foreign code", &mut all),
        Err(failed) => all.push(format!("does not compile beside foreign code: {}", failed.render(false))),
    }
    (all, roots.len())
}

/// Compares the programs in these folders; of all, every `step`th.
fn compare_programs(folders: &[&str], step: usize) {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files: Vec<std::path::PathBuf> = Vec::new();
    let mut work: Vec<_> = folders.iter().map(|folder| root.join(folder)).collect();
    while let Some(path) = work.pop() {
        if path.is_dir() {
            work.extend(std::fs::read_dir(&path).expect("a folder").flatten().map(|entry| entry.path()));
        } else if path.extension().is_some_and(|e| e == "impala") {
            files.push(path);
        }
    }
    files.sort();
    assert!(!files.is_empty(), "programs in {folders:?}");
    let compare = move || {
        let (mut faults, mut n_exports) = (Vec::new(), 0);
        for file in files.iter().step_by(step) {
            let name = file.strip_prefix(&root).unwrap_or(file).display().to_string();
            let text = std::fs::read_to_string(file).unwrap_or_default();
            let (found, n) = differences(&file.display().to_string(), &text);
            n_exports += n;
            if !found.is_empty() {
                faults.push(format!("{name}: {}", found.join("\n")));
            }
        }
        assert!(n_exports > 10, "{n_exports} exports");
        assert!(faults.is_empty(), "{} programs:\n{}", faults.len(), faults.join("\n\n"));
    };
    let thread = std::thread::Builder::new().stack_size(256 << 20).spawn(compare).expect("a thread");
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

/// What becomes of a function depends on it and its callers, not on its siblings.
#[test]
fn exports_are_the_same_alone() {
    compare_programs(&["tests/residual", "tests/run/language"], 3);
}

#[test]
#[ignore = "takes minutes: `./x test --all crates`"]
fn exports_of_all_programs_are_the_same_alone() {
    compare_programs(&["tests/run", "tests/residual", "lib", "examples", "bench"], 1);
}
