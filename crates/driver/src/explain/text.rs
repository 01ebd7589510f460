//! A report as text for a terminal: totals, then the call sites that matter most, or everything about one function.

use super::{Closure, Instance, OutcomeOf, Parameter, Place, Report, Site};
use std::fmt::Write as _;

/// Limits on the number of values that are shown as examples, and on their lengths.
const MAX_VALUES: usize = 3;
const MAX_VALUE: usize = 30;

/// The report with `top` entries of each list, or all decisions in `function` and about calls of it.
pub fn render(report: &Report, function: Option<&str>, top: usize) -> String {
    let mut out = String::new();
    match function {
        Some(name) => render_function(&mut out, report, name),
        None => render_all(&mut out, report, top),
    }
    out
}

fn render_all(out: &mut String, report: &Report, top: usize) {
    let t = &report.totals;
    if !t.complete {
        let _ = writeln!(out, "given up after {} in round {}: until then", count(t.reductions, "reduction"), t.rounds);
    } else {
        let _ = writeln!(
            out,
            "{} in {} leave {} in {}, {}, {}",
            count(t.reductions, "reduction"),
            count(t.rounds as u64, "round"),
            count(t.residual_nodes, "node"),
            count(t.residual_functions as u64, "function"),
            count(t.residual_loops as u64, "loop"),
            count(t.closures as u64, "closure"),
        );
    }
    match (t.bytes, &t.no_code) {
        (Some(code), _) => drop(writeln!(out, "machine code: {}", count(code, "byte"))),
        (None, Some(why)) => drop(writeln!(out, "no machine code: {why}")),
        (None, None) => {}
    }
    if t.rough {
        out.push_str("(too much to tell all of it apart: sums are right, their parts are approximate)\n");
    }
    let shown = ["unfolded", "run", "computed", "specialized", "residual", "halted", "knot", "generalized"];
    let calls: Vec<String> =
        shown.iter().filter_map(|d| Some(format!("{} {d}", t.calls.get(d).filter(|&&n| n > 0)?))).collect();
    if !calls.is_empty() {
        let _ = writeln!(out, "calls: {}", calls.join(", "));
    }
    // Without a residual program, sites are ordered by their calls, which took time.
    let weight = |s: &Site| if t.complete { s.nodes() } else { s.calls() };
    // Decisions inside of a library are shown only if they cost something.
    let is_own = |s: &&Site| s.function.is_none_or(|f| !report.functions[f].library);
    let told: Vec<&Site> = report.sites.iter().filter(|s| s.kind != "branch").collect();
    let own: Vec<&Site> = told.iter().copied().filter(is_own).collect();
    if own.len() <= top {
        list(out, report, "call sites", &own);
        let mut others: Vec<&Site> = told.iter().copied().filter(|s| !is_own(s) && weight(s) > 0).collect();
        others.sort_by_key(|s| std::cmp::Reverse(weight(s)));
        others.truncate(top);
        let title = if t.complete { "in libraries, with what is left of them" } else { "in libraries, most calls" };
        list(out, report, title, &others);
    } else {
        let mut by_nodes = told.clone();
        by_nodes.retain(|s| weight(s) > 0);
        by_nodes.sort_by_key(|s| std::cmp::Reverse(weight(s)));
        by_nodes.truncate(top);
        let title = if t.complete { "call sites that leave most" } else { "call sites with most calls" };
        list(out, report, title, &by_nodes);
        let mut by_copies = told.clone();
        by_copies.retain(|s| s.copies() > 1 && !by_nodes.iter().any(|b| std::ptr::eq(*b, *s)));
        by_copies.sort_by_key(|s| std::cmp::Reverse(s.copies()));
        by_copies.truncate(top);
        list(out, report, "call sites with most copies", &by_copies);
    }
    render_functions(out, report, top);
    render_left(out, report, top, None);
    if own.len() > top {
        let _ =
            writeln!(out, "\n{} call sites in all: `--fn NAME` shows those of a function, `--top N` more", told.len());
    }
}

fn render_function(out: &mut String, report: &Report, name: &str) {
    for (id, f) in report.functions.iter().enumerate().filter(|(_, f)| f.name == name) {
        let _ = write!(out, "{name}, {}: {}", at(&f.place), count(f.reductions, "reduction"));
        let _ = write!(out, ", unfolded {}", times(f.unfolded));
        let kind = if f.kind == "loop" { "residual loop" } else { "residual function" };
        let _ = writeln!(out, ", {}, {} of its own", count(f.instances as u64, kind), count(f.nodes, "node"));
        let calls = |s: &Site| s.outcomes.iter().any(|o| o.callee == Some(id));
        let of: Vec<&Site> = report.sites.iter().filter(|s| calls(s)).collect();
        let in_it: Vec<&Site> = report.sites.iter().filter(|s| s.function == Some(id) && !calls(s)).collect();
        list(out, report, "calls of it", &of);
        list(out, report, "in it", &in_it);
        render_left(out, report, usize::MAX, Some(id));
    }
}

/// Writes the functions of the residual program, if machine code was made of them.
fn render_functions(out: &mut String, report: &Report, top: usize) {
    let mut functions: Vec<&Instance> = report.instances.iter().filter(|i| i.left && i.bytes.is_some()).collect();
    if functions.is_empty() {
        return;
    }
    functions.sort_by_key(|i| std::cmp::Reverse(i.bytes));
    out.push_str("\nfunctions left\n");
    for i in functions.iter().take(top) {
        let Some(f) = i.function.map(|f| &report.functions[f]) else { continue };
        let in_what: Vec<String> = i.parameters.iter().map(parameter).collect();
        let in_what = if in_what.is_empty() { String::new() } else { format!(" in {}", in_what.join(", ")) };
        let _ = writeln!(out, "  {}  {}{in_what}: {}", at(&f.place), f.name, size(i));
    }
    more(out, functions.len(), top);
}

/// The size of an instance: `12 nodes, 34 bytes`.
fn size(i: &Instance) -> String {
    let code = match i.bytes {
        Some(0) => ", inlined by LLVM into its callers".into(),
        Some(code) => format!(", {}", count(code, "byte")),
        None => String::new(),
    };
    count(i.nodes, "node") + &code
}

/// Writes the loops and closures of the residual program.
fn render_left(out: &mut String, report: &Report, top: usize, of: Option<usize>) {
    let is_meant = |f: Option<usize>| of.is_none() || f == of;
    let mut loops: Vec<_> = report.loops.iter().filter(|l| is_meant(report.instances[l.instance].function)).collect();
    loops.sort_by_key(|l| std::cmp::Reverse(report.instances[l.instance].nodes));
    if !loops.is_empty() {
        out.push_str("\nloops and recursion left\n");
    }
    for l in loops.iter().take(top) {
        let instance = &report.instances[l.instance];
        let Some(f) = instance.function.map(|f| &report.functions[f]) else { continue };
        // A loop of a library is told apart by what the program gave it.
        let parameters = instance.parameters.iter().filter(|p| p.name != "return");
        let with: Vec<String> = parameters.map(parameter).collect();
        let with = if with.is_empty() { String::new() } else { format!(", with {}", with.join(", ")) };
        let _ = write!(out, "  {}  {}", at(&f.place), f.name);
        let _ = write!(out, " ({}, {}{with})", l.kind, size(instance));
        match &l.why {
            Some(why) => drop(writeln!(out, ": {}", why.text)),
            None => out.push('\n'),
        }
    }
    more(out, loops.len(), top);
    let name = of.map(|f| &report.functions[f].name);
    let of_it = |c: &&Closure| name.is_none_or(|n| *n == c.name);
    let kinds = [
        ("heap environments", &["last-use", "maybe-never", "never"][..]),
        ("environments in the frame of the function that makes them", &["frame"]),
        ("function values without an environment", &["no-environment"]),
    ];
    for (title, kind) in kinds {
        let closures: Vec<&Closure> = report.closures.iter().filter(|c| of_it(c) && kind.contains(&c.freed)).collect();
        if !closures.is_empty() {
            let _ = writeln!(out, "\n{title}");
        }
        for c in closures.iter().take(top) {
            let _ = writeln!(out, "  {}", closure(c));
        }
        more(out, closures.len(), top);
    }
}

/// A closure in a line: `p.impala:1:2  lambda captures `n`: stored through a pointer (p.impala:3:4); never freed`.
fn closure(c: &Closure) -> String {
    let place = |p: &Option<Place>| p.as_ref().map_or(String::new(), |_| format!(" ({})", at(p)));
    let mut text = format!("{}  {}", at(&c.place), c.name);
    if !c.captures.is_empty() {
        text += &format!(" captures {}", c.captures.join(", "));
    }
    text += &format!(": {}{}", c.why, place(&c.used));
    match (c.freed, &c.leak) {
        ("last-use", _) => text += "; freed after its last use",
        ("never", Some(leak)) if leak.text == c.why => text += "; never freed",
        ("never", Some(leak)) => text += &format!("; never freed: {}{}", leak.text, place(&leak.place)),
        (_, Some(leak)) => {
            text += &format!("; freed unless it is the function {}{}", leak.text, place(&leak.place));
        }
        _ => {}
    }
    text
}

fn more(out: &mut String, n: usize, top: usize) {
    if n > top {
        let _ = writeln!(out, "  and {} more", n - top);
    }
}

fn list(out: &mut String, report: &Report, title: &str, sites: &[&Site]) {
    if sites.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{title}");
    for site in sites {
        let around = site.function.map_or(String::new(), |f| format!(", in {}", report.functions[f].name));
        let what = match site.kind {
            "branch" => "branch".into(),
            _ => callees(report, site),
        };
        let _ = writeln!(out, "  {}  {what}{around}", at(&site.place));
        let is_same = site.outcomes.iter().all(|o| o.callee == site.outcomes[0].callee);
        for o in &site.outcomes {
            let callee = if is_same { String::new() } else { format!("{}: ", with_line(report, o)) };
            let _ = writeln!(out, "    {callee}{}", outcome(o));
        }
    }
}

/// The decisions at a site, a line for each.
pub fn decisions(report: &Report, site: &Site) -> Vec<String> {
    let line = |o: &OutcomeOf| match site.kind {
        "branch" => outcome(o),
        _ => format!("`{}`: {}", callee(report, o), outcome(o)),
    };
    site.outcomes.iter().map(line).collect()
}

/// The functions that a site calls.
fn callees(report: &Report, site: &Site) -> String {
    let mut names: Vec<String> = Vec::new();
    for o in &site.outcomes {
        let name = callee(report, o);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if names.len() > 3 {
        let more = names.len() - 3;
        names.truncate(3);
        names.push(format!("{more} more"));
    }
    names.join(", ")
}

/// The callee's name. Lambdas and loops get their line too, since they all have one name.
fn with_line(report: &Report, o: &OutcomeOf) -> String {
    let line = o.callee.and_then(|f| report.functions[f].place.as_ref()).map(|p| format!(" ({}:{})", p.line, p.column));
    callee(report, o) + &line.filter(|_| o.target.is_none()).unwrap_or_default()
}

fn callee(report: &Report, o: &OutcomeOf) -> String {
    match (o.callee, &o.target) {
        (_, Some(target)) => target.clone(),
        (Some(f), _) => report.functions[f].name.clone(),
        _ => "an unknown function".into(),
    }
}

/// The decisions on calls, in one line: `specialized 3 times, 2 copies, in n = 5, 4 (its filter): …; 12 nodes`.
fn outcome(o: &OutcomeOf) -> String {
    let mut text = format!("{} {}", o.decision, times(o.calls));
    if o.decision == "decided" {
        text += &format!(" ({})", o.target.as_deref().unwrap_or_default());
    }
    let in_what: Vec<String> = o.parameters.iter().map(parameter).collect();
    if !in_what.is_empty() {
        text += &format!(" in {}", in_what.join(", "));
    }
    if o.copies > 0 && o.copies != o.calls {
        text += &format!(", {}", if o.copies == 1 { "1 copy".into() } else { format!("{} copies", o.copies) });
    }
    text += &format!(": {}", o.why.text);
    if let Some(place) = o.why.unknown.as_ref().and_then(|u| u.place.as_ref()) {
        text += &format!(" ({})", at(&Some(place.clone())));
    }
    if o.steps > 0 {
        text += &format!("; {} within", count(o.steps, "step"));
    }
    if o.nodes > 0 {
        text += &format!("; {}", count(o.nodes, "node"));
    }
    text
}

/// A specialized parameter: `n = 1, 2, …`.
fn parameter(p: &Parameter) -> String {
    let short = |v: &String| match v.chars().count() > MAX_VALUE {
        true => v.chars().take(MAX_VALUE - 1).chain(['…']).collect(),
        false => v.clone(),
    };
    let mut values: Vec<String> = p.values.iter().take(MAX_VALUES).map(short).collect();
    if p.values.len() > MAX_VALUES {
        values.push("…".into());
    }
    if values.is_empty() { format!("`{}`", p.name) } else { format!("`{}` = {}", p.name, values.join(" | ")) }
}

pub(super) fn at(place: &Option<Place>) -> String {
    place.as_ref().map_or("<generated>".into(), |p| format!("{}:{}:{}", p.file, p.line, p.column))
}

fn times(n: u64) -> String {
    match n {
        0 => "never".into(),
        1 => "once".into(),
        2 => "twice".into(),
        n => format!("{n} times"),
    }
}

fn count(n: u64, what: &str) -> String {
    match n {
        0 => format!("no {what}"),
        1 => format!("1 {what}"),
        n => format!("{n} {what}s"),
    }
}
