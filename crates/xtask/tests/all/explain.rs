//! `nyala explain`: its options and errors, its JSON as `docs/explain.md` describes it, its page in a browser if there is one.

use crate::common::{Folder, RunToEnd, nyala, root, skip, stderr};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

const PROGRAM: &str = "fn @(?n) power(x: i32, n: i32) -> i32 {
    if n == 0 { 1 } else { x * power(x, n - 1) }
}
extern fn cube(x: i32) -> i32 {
    power(x, 3)
}
extern fn any(x: i32, n: i32) -> i32 {
    power(x, n)
}
";

/// Standard output of `nyala explain`; it must end with that code.
fn explain(args: &[&OsStr], code: i32) -> (String, String) {
    let all: Vec<&OsStr> = std::iter::once(OsStr::new("explain")).chain(args.iter().copied()).collect();
    let output = nyala(&all, 60);
    let err = stderr(&output);
    assert_eq!(output.status.code(), Some(code), "{err}");
    (String::from_utf8_lossy(&output.stdout).into_owned(), err)
}

#[test]
fn text_is_on_standard_output() {
    let folder = Folder::new("explain text");
    let file = folder.write("p.impala", PROGRAM);
    let (out, err) = explain(&[file.as_os_str()], 0);
    assert!(out.contains("power, in cube\n    unfolded once: filter `?n` holds"), "{out}");
    assert_eq!(err, "");
    let (out, _) = explain(&[file.as_os_str(), "--fn".as_ref(), "power".as_ref()], 0);
    assert!(out.contains("branch, in power\n"), "{out}");
    let (out, _) = explain(&[file.as_os_str(), "--top".as_ref(), "1".as_ref()], 0);
    assert!(out.contains("3 call sites in all"), "{out}");
    let (out, _) = explain(&[file.as_os_str(), "--no-pe".as_ref()], 0);
    assert!(out.contains("residual once: `--no-pe`") && !out.contains("unfolded"), "{out}");
}

#[test]
fn sizes_of_machine_code_are_told() {
    let folder = Folder::new("explain code");
    let file = folder.write("p.impala", PROGRAM);
    let (out, _) = explain(&[file.as_os_str()], 0);
    assert!(out.contains("\nmachine code: ") && out.contains("cube: 3 nodes, "), "{out}");
    let report: Value = serde_json::from_str(&explain(&[file.as_os_str(), "--json".as_ref()], 0).0).unwrap();
    let of_functions: u64 = report["instances"].as_array().unwrap().iter().filter_map(|i| i["bytes"].as_u64()).sum();
    let all = report["totals"]["bytes"].as_u64().unwrap();
    assert!(0 < of_functions && of_functions <= all, "{of_functions} of {all}");
    // Two residual functions: at -O0 nothing is inlined.
    let (out, _) = explain(&[file.as_os_str(), "-O".as_ref(), "0".as_ref()], 0);
    assert!(!out.contains("inlined") && out.contains("power: 7 nodes, "), "{out}");
    let exits = folder.write("exits.impala", "extern fn f(x: i32, go: fn(i32)) -> i32 { if x == 0 { go(x) } x }\n");
    let (out, err) = explain(&[exits.as_os_str()], 0);
    assert!(out.contains("no machine code: "), "{out}");
    assert_eq!(err, "");
}

#[test]
fn what_was_decided_before_a_budget_was_spent_is_told() {
    let folder = Folder::new("explain diverging");
    let file = folder.write("p.impala", "fn @up(n: i32, end: i32) -> i32 { if n == end { n } else { up(n + 1, end) } }\nextern fn f(end: i32) -> i32 { up(0, end) }\n");
    let budget = ["--pe-budget".as_ref(), "0.01".as_ref()];
    let (out, err) = explain(&[&[file.as_os_str()], &budget[..]].concat(), 1);
    assert!(err.contains("error[specialization-diverges]"), "{err}");
    assert!(out.starts_with("given up after ") && out.contains("up, in up\n    "), "{out}");
    assert!(!out.contains("machine code") && !out.contains("leave"), "{out}");
    let (out, _) = explain(&[&[file.as_os_str(), "--json".as_ref()], &budget[..]].concat(), 1);
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(report["totals"]["complete"], false);
    let page = folder.path("page.html");
    let (out, _) = explain(&[&[file.as_os_str(), "--html".as_ref(), page.as_os_str()], &budget[..]].concat(), 1);
    assert_eq!(out, "");
    assert!(std::fs::read_to_string(page).unwrap().contains("\"complete\":false"));
}

#[test]
fn the_same_program_is_explained_in_the_same_words() {
    let file = root().join("examples/07_regions.impala");
    let (first, _) = explain(&[file.as_os_str()], 0);
    assert_eq!(first, explain(&[file.as_os_str()], 0).0);
    let without_times = || {
        let mut report: Value = serde_json::from_str(&explain(&[file.as_os_str(), "--json".as_ref()], 0).0).unwrap();
        report["totals"]["micros"] = 0.into();
        report["timeline"].as_array_mut().unwrap().iter_mut().for_each(|s| s["micros"] = 0.into());
        report
    };
    assert_eq!(without_times(), without_times());
}

/// The programs of some folders.
fn programs() -> Vec<PathBuf> {
    let mut files = Vec::new();
    for folder in ["tests/explain", "tests/residual", "tests/run/closures", "tests/run/programs", "examples"] {
        let entries = std::fs::read_dir(root().join(folder)).unwrap().map(|f| f.unwrap().path());
        files.extend(entries.filter(|f| f.extension().is_some_and(|e| e == "impala")));
    }
    files.sort();
    files
}

/// Programs whose evaluation takes most of the time of all.
const LONG: [&str; 3] = ["shared.impala", "exponential_code.impala", "many_copies.impala"];

fn is_long(file: &Path) -> bool {
    LONG.iter().any(|name| file.ends_with(name))
}

#[test]
fn explaining_changes_nothing_and_knows_all_closures() {
    let (long, short) = programs().into_iter().partition::<Vec<_>, _>(|f| is_long(f));
    assert!(long.len() == LONG.len() && short.len() > 30, "{}", short.len());
    changes_nothing_and_knows_all_closures(short);
}

#[test]
#[ignore = "takes 12 s: ./x test --all crates"]
fn explaining_long_evaluation_changes_nothing() {
    changes_nothing_and_knows_all_closures(programs().into_iter().filter(|f| is_long(f)).collect());
}

fn changes_nothing_and_knows_all_closures(files: Vec<PathBuf>) {
    // Deep graphs want a deep stack in debug builds.
    let checks = move || {
        for file in files {
            let text = std::fs::read_to_string(&file).unwrap();
            let options = nyala_driver::Options { opt_level: 0, ..nyala_driver::Options::default() };
            let files = nyala_driver::Files::of("p.impala", text);
            let Ok((plain, _)) = nyala_driver::emit(&options, &files, "residual", None) else { continue };
            let Ok(graph) = nyala_driver::FrontEnd::new(options, files).graph() else { continue };
            let Ok(explained) = nyala_driver::explain::explain(&graph) else { panic!("{}", file.display()) };
            let name = file.display();
            assert_eq!(plain, nyala_ir::print::print(&explained.residual.world), "{name}");
            assert_eq!(plain, nyala_ir::print::print_lines(&explained.residual.world).0, "{name}");
            let Ok(flat) = explained.residual.flat() else { continue };
            let closures = flat.module.funcs.iter().filter(|f| f.name.contains(".closure")).count();
            let mut told: Vec<&str> = explained.report.closures.iter().map(|c| c.why.as_str()).collect();
            // These have records; the code that enters them is shared.
            told.retain(|why| !why.contains("has what its round of a loop computed"));
            assert_eq!(told.len(), closures, "{name}: {told:?}");
        }
    };
    std::thread::Builder::new().stack_size(256 << 20).spawn(checks).unwrap().join().unwrap();
}

#[test]
fn what_cannot_be_explained_is_said() {
    let folder = Folder::new("explain errors");
    let file = folder.write("p.impala", PROGRAM);
    let path = file.as_os_str();
    let (_, err) = explain(&[path, "--fn".as_ref(), "powr".as_ref()], 1);
    assert!(err.contains("error[no-such-function]") && err.contains("did you mean `power`?"), "{err}");
    let (_, err) = explain(&[folder.write("wrong.impala", "fn f() -> i32 { true }").as_os_str()], 1);
    assert!(err.contains("error[type-mismatch]"), "{err}");
    let diverges = "fn @f(n: i32) -> i32 { f(n + 1) } extern fn g() -> i32 { f(0) }";
    let (out, err) = explain(&[folder.write("long.impala", diverges).as_os_str(), "--pe-budget=0.01".as_ref()], 1);
    assert!(out.starts_with("given up") && err.contains("error[specialization-diverges]"), "{err}");
    let nowhere = folder.path("no/such/folder/page.html");
    let (_, err) = explain(&[path, "--html".as_ref(), nowhere.as_os_str()], 1);
    assert!(err.contains("error[cannot-write]"), "{err}");
    let (_, err) = explain(&[path, "--html".as_ref(), path], 2);
    assert!(err.contains("is a file of the program itself"), "{err}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), PROGRAM);
    explain(&[], 2);
    explain(&[path, "--json".as_ref(), "--html".as_ref(), nowhere.as_os_str()], 2);
    explain(&[path, "--top".as_ref(), "many".as_ref()], 2);
    let (_, err) = explain(&[folder.path("none.impala").as_os_str()], 1);
    assert!(err.contains("error[cannot-read]"), "{err}");
    // Nothing to evaluate is no error.
    let (out, _) = explain(&[folder.write("empty.impala", "").as_os_str()], 0);
    assert!(out.starts_with("no reduction in no round"), "{out}");
}

/// The fields that the page lists under the heading of an object.
fn documented() -> BTreeMap<String, BTreeSet<String>> {
    let page = std::fs::read_to_string(root().join("docs/explain.md")).unwrap();
    let mut fields: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut heading = None;
    for line in page.lines() {
        if let Some(title) = line.strip_prefix("### ") {
            heading = Some(title.to_string());
        } else if let (Some(title), Some(row)) = (&heading, line.strip_prefix("| `")) {
            let names = row.split('|').next().unwrap_or_default();
            let names = names.split(',').map(|n| n.trim().trim_matches('`').to_string());
            fields.entry(title.clone()).or_default().extend(names);
        }
    }
    fields
}

/// Names in backticks in the first table row of the page that begins with that one.
fn listed(row: &str) -> BTreeSet<String> {
    let page = std::fs::read_to_string(root().join("docs/explain.md")).unwrap();
    let line = page.lines().find(|l| l.starts_with(row)).unwrap_or_else(|| panic!("no row {row}"));
    line.split('`').skip(1).step_by(2).map(String::from).collect()
}

struct Checker {
    documented: BTreeMap<String, BTreeSet<String>>,
    seen: BTreeSet<String>,
}

impl Checker {
    /// An object has the fields of the page, no others; goes on with those that are objects.
    fn check(&mut self, kind: &str, value: &Value) {
        if value.is_null() && matches!(kind, "place" | "named" | "reason") {
            return;
        }
        self.seen.insert(kind.into());
        let found: BTreeSet<String> =
            value.as_object().unwrap_or_else(|| panic!("{kind}: {value}")).keys().cloned().collect();
        assert_eq!(Some(&found), self.documented.get(kind), "fields of {kind}");
        let parts: &[(&str, &str)] = match kind {
            "report" => &[
                ("totals", "totals"),
                ("functions", "function"),
                ("sites", "site"),
                ("instances", "instance"),
                ("loops", "loop"),
                ("closures", "closure"),
                ("timeline", "step"),
            ],
            "function" => &[("place", "place")],
            "site" => &[("place", "place"), ("outcomes", "outcome")],
            "outcome" => &[("parameters", "parameter"), ("why", "reason")],
            "reason" => &[("filter", "named"), ("unknown", "named")],
            "named" => &[("place", "place")],
            "instance" => &[("parameters", "parameter")],
            "loop" => &[("why", "reason")],
            "closure" => &[("place", "place"), ("used", "place")],
            _ => &[],
        };
        for (field, kind) in parts {
            match &value[*field] {
                Value::Array(items) => items.iter().for_each(|v| self.check(kind, v)),
                item => self.check(kind, item),
            }
        }
    }
}

#[test]
fn json_is_what_the_page_says() {
    let mut checker = Checker { documented: documented(), seen: BTreeSet::new() };
    let codes = listed("| `code` |");
    let mut seen_codes = BTreeSet::from(["code".to_string()]);
    let mut seen_decisions = BTreeSet::new();
    let mut files: Vec<_> =
        std::fs::read_dir(root().join("tests/explain")).unwrap().map(|f| f.unwrap().path()).collect();
    files.push(root().join("examples/07_regions.impala"));
    files.retain(|f| f.extension().is_some_and(|e| e == "impala"));
    for (file, flag) in files.iter().map(|f| (f, "--wrap")).chain([(&files[0], "--no-pe")]) {
        // A program's copies are too many once a budget is spent; a small one is spent sooner.
        let budget = "--pe-budget=0.05";
        let (out, _) = explain(&[file.as_os_str(), "--json".as_ref(), flag.as_ref(), budget.as_ref()], 0);
        let report: Value = serde_json::from_str(&out).unwrap();
        checker.check("report", &report);
        let size = |list: &str| report[list].as_array().unwrap().len() as u64;
        let is_in = |v: &Value, list: &str| v.is_null() || v.as_u64().unwrap() < size(list);
        let mut nodes = 0;
        for site in report["sites"].as_array().unwrap() {
            assert!(is_in(&site["function"], "functions"));
            for outcome in site["outcomes"].as_array().unwrap() {
                seen_decisions.insert(outcome["decision"].as_str().unwrap().to_string());
                seen_codes.insert(outcome["why"]["code"].as_str().unwrap().to_string());
                assert!(is_in(&outcome["callee"], "functions"));
                let within = outcome["in"].as_array().unwrap();
                assert!(within.iter().all(|p| is_in(&p[0], "instances")));
                let calls: u64 = within.iter().map(|p| p[1].as_u64().unwrap()).sum();
                assert_eq!(outcome["calls"].as_u64(), Some(calls));
                nodes += outcome["nodes"].as_u64().unwrap();
            }
        }
        let sum = |list: &str, field: &str| -> u64 {
            report[list].as_array().unwrap().iter().map(|f| f[field].as_u64().unwrap()).sum()
        };
        assert_eq!(report["totals"]["reductions"].as_u64(), Some(sum("functions", "reductions")), "{file:?}");
        assert_eq!(report["totals"]["residual_nodes"].as_u64(), Some(sum("instances", "nodes")), "{file:?}");
        assert!(nodes <= sum("functions", "nodes"), "{file:?}");
    }
    assert_eq!(checker.seen, checker.documented.keys().cloned().collect(), "objects");
    let never: BTreeSet<_> = codes.difference(&seen_codes).filter(|c| !c.contains(['@', '$'])).collect();
    assert!(never.iter().all(|c| **c == "various"), "no test gives the reasons {never:?}");
    assert!(seen_codes.is_subset(&codes), "{seen_codes:?}");
    for decision in
        ["unfolded", "run", "computed", "specialized", "knot", "residual", "halted", "generalized", "decided", "left"]
    {
        assert!(seen_decisions.remove(decision), "no test has {decision}");
        listed(&format!("| `{decision}` |"));
    }
    assert!(seen_decisions.is_empty(), "{seen_decisions:?}");
}

/// The text of a page in a browser after `script` has run in it: the text that the script puts into `done`.
fn browse(folder: &Folder, page: &str, script: &str) -> Option<String> {
    let browser = ["chromium", "chromium-browser", "google-chrome"]
        .into_iter()
        .find(|b| Command::new(b).arg("--version").output().is_ok_and(|o| o.status.success()))?;
    let script = format!(
        "<script>document.body.insertAdjacentHTML('beforeend', '<pre id=\"done\"></pre>');\ntry {{ {script} }} catch (e) {{ done.textContent = 'failed: ' + e; }}</script></body>"
    );
    let file = folder.write("page.html", page.replace("</body>", &script));
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=5000", "--dump-dom"])
        .arg(format!("--user-data-dir={}", folder.path("profile").display()))
        .arg(format!("file://{}", file.display().to_string().replace(' ', "%20")))
        .run_to_end();
    let dom = String::from_utf8_lossy(&output.stdout).into_owned();
    let (_, done) = dom.rsplit_once("<pre id=\"done\">").unwrap_or_else(|| panic!("{}", stderr(&output)));
    Some(done.split("</pre>").next().unwrap_or_default().to_string())
}

/// The page about the program.
fn page_of(folder: &Folder) -> (PathBuf, String) {
    let file = folder.write("p.impala", PROGRAM);
    let page_file = folder.path("made.html");
    let (out, err) = explain(&[file.as_os_str(), "--html".as_ref(), page_file.as_os_str()], 0);
    assert_eq!((out.as_str(), err.as_str()), ("", ""));
    (file, std::fs::read_to_string(&page_file).unwrap())
}

#[test]
fn the_page_needs_nothing_else() {
    let (_, page) = page_of(&Folder::new("explain page alone"));
    assert!(!page.contains("http://") && !page.contains("https://"), "needs the network");
    for part in ["id=\"source\"", "id=\"residual\"", "id=\"panel\"", "filter `?n` does not hold"] {
        assert!(page.contains(part), "no `{part}` in\n{page}");
    }
}

#[test]
#[ignore = "needs a browser: ./x test --all crates"]
fn the_page_works_in_a_browser() {
    let folder = Folder::new("explain page");
    let (file, page) = page_of(&folder);
    let script = r##"
        const say = [];
        const rows = id => [...document.getElementById(id).children];
        const marked = (id, kind) => rows(id).flatMap((r, i) => r.classList.contains(kind) ? [i + 1] : []).join(" ");
        const texts = id => rows(id).map(r => r.querySelector(".txt").textContent);
        say.push("residual lines " + rows("residual").length);
        rows("source")[1].click();
        say.push("selected " + marked("source", "sel"), "lit " + marked("residual", "lit"));
        say.push("panel " + document.getElementById("panel").textContent.includes("filter ?n does not hold"));
        const cube = texts("residual").findIndex(t => t.includes("cube"));
        rows("residual")[cube].click();
        say.push("from " + marked("source", "lit"), "residual selected " + (marked("residual", "sel") === String(cube + 1)));
        document.getElementById("fold-source").click();
        say.push("folded " + marked("source", "hid"));
        document.getElementById("fold-source").click();
        say.push("unfolded " + marked("source", "hid"));
        rows("source")[3].querySelector(".fold").click();
        say.push("one folded " + marked("source", "hid"));
        const find = document.getElementById("find");
        find.value = "power";
        find.dispatchEvent(new Event("input"));
        say.push(document.getElementById("found").textContent + ", marks " + document.querySelectorAll(".code mark").length);
        find.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter" }));
        say.push(document.getElementById("found").textContent);
        for (const tab of ["calls", "tree", "time", "left", "line"]) {
            document.querySelector(`[data-tab=${tab}]`).click();
            say.push(tab + " " + (document.getElementById("panel").textContent.length > 20));
        }
        document.querySelector("[data-tab=tree]").click();
        const summaries = document.querySelectorAll("#panel summary").length;
        document.querySelectorAll("#panel details").forEach(d => d.open = true);
        setTimeout(() => {
            say.push("tree " + summaries + " opened " + document.querySelectorAll("#panel details > :not(summary)").length);
            done.textContent = say.join("\n");
        }, 100);
    "##;
    let Some(said) = browse(&folder, &page, script) else {
        skip("Chromium (Debian's package `chromium`)");
        return;
    };
    let residual = std::process::Command::new(crate::common::command()).arg("emit").arg(&file).run_to_end().stdout;
    let residual = String::from_utf8_lossy(&residual).into_owned();
    let lines: Vec<&str> = residual.lines().collect();
    // The residual code of line 2: the body of `power`, and the product in `cube`.
    let of_power: Vec<String> = (1..=lines.len())
        .filter(|&i| ["then", "else", " k(", "cont power(", "mul("].iter().any(|w| lines[i - 1].contains(w)))
        .map(|i| i.to_string())
        .collect();
    let expected = [
        format!("residual lines {}", lines.len()),
        "selected 2".into(),
        format!("lit {}", of_power.join(" ")),
        "panel true".into(),
        "from 2 4".into(),
        "residual selected true".into(),
        "folded 2 5 8".into(),
        "unfolded ".into(),
        "one folded 5".into(),
        format!("{} lines, marks {0}", 4 + lines.iter().filter(|l| l.contains("power")).count()),
        format!("1 of {}", 4 + lines.iter().filter(|l| l.contains("power")).count()),
        "calls true".into(),
        "tree true".into(),
        "time true".into(),
        "left true".into(),
        "line true".into(),
    ];
    let said: Vec<&str> = said.lines().collect();
    let (tree, said) = said.split_last().unwrap();
    assert_eq!(said, expected, "\n{residual}");
    assert!(tree.starts_with("tree 2 opened ") && !tree.ends_with("opened 0"), "{tree}");
}
