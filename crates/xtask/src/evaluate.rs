//! `; test run`: runs IR under every engine, and compares the results with comments in it. For IR that source programs
//! do not produce, or not yet.
//!
//! | line | meaning |
//! |---|---|
//! | `;? f(2, 1.5f32) == 3.5f32` | holds under every engine, the arguments known and unknown; `nan` is any NaN |
//! | `;! f(1, 0): division-by-zero` | the interpreter faults with this code |
//! | `;! compile: CODE: TEXT` | the interpreter runs it, but compiling gives this error, and there are no queries of compiled code |
//! | `;! interpreter: limitation` | the interpreter gives this error for every query |
//! | `;! machine: x86_64` | code runs there only; on others it is just read and printed |

use nyala_driver::pipelines::Form;
use nyala_driver::{Graph, Options, testing};
use nyala_ir::{Prim, Ty, TyKind, World};
use std::fmt::Write as _;

/// Other CPUs that code is made for and run.
const OTHER_CPUS: &[&str] = if cfg!(target_arch = "x86_64") { &["x86-64"] } else { &[] };

/// A query: the call of a function, and the expected result or fault.
struct Query<'a> {
    text: &'a str,
    /// The expected result, or `None` if a fault is expected.
    result: Option<&'a str>,
    fault: &'a str,
    /// The interpreter's error, if it cannot run the call, but compiled code can.
    refusal: Option<&'a str>,
    name: String,
}

/// Runs the test, and adds what is wrong to `faults`.
pub fn run(text: &str, faults: &mut Vec<String>) {
    let world = match nyala_ir::read::read(text) {
        Ok(world) => world,
        Err(e) => return faults.push(format!("line {}: {}", e.line, e.message)),
    };
    let mut program = String::from(text.trim_end());
    program.push('\n');
    let (mut queries, mut refused, mut refusal, mut runs_here) = (Vec::new(), None, None, true);
    for line in text.lines() {
        let made = if let Some(rest) = line.strip_prefix(";! compile: ") {
            refused = Some(rest.trim());
            continue;
        } else if let Some(rest) = line.strip_prefix(";! interpreter: ") {
            refusal = Some(rest.trim());
            continue;
        } else if let Some(rest) = line.strip_prefix(";! machine: ") {
            runs_here &= rest.trim() == std::env::consts::ARCH;
            continue;
        } else if let Some(rest) = line.strip_prefix(";?") {
            rest.split_once("==").map(|(call, result)| (call.trim(), Some(result.trim()), ""))
        } else if let Some(rest) = line.strip_prefix(";!") {
            rest.rsplit_once(':').map(|(call, fault)| (call.trim(), None, fault.trim()))
        } else {
            continue;
        };
        let Some((call, result, fault)) = made else { return faults.push(format!("malformed line `{line}`")) };
        match wrappers(&world, queries.len(), call, result, &mut program) {
            Ok(()) => {
                queries.push(Query { text: call, result, fault, refusal: None, name: format!("q{}", queries.len()) })
            }
            Err(e) => return faults.push(format!("`{call}`: {e}")),
        }
    }
    if queries.is_empty() && refused.is_none() {
        return faults.push("nothing in this test checks anything".into());
    }
    let world = match nyala_ir::read::read(&program) {
        Ok(world) => world,
        Err(e) => return faults.push(format!("with queries, line {}: {}\n{program}", e.line, e.message)),
    };
    let wrong = nyala_ir::verify::verify(&world, &world.roots());
    if !wrong.is_empty() {
        return faults.push(wrong.join("\n"));
    }
    // The printed graph can be read again.
    let printed = nyala_ir::print::print(&world);
    match nyala_ir::read::read(&printed).map(|again| nyala_ir::print::print(&again)) {
        Ok(again) if again == printed => {}
        Ok(again) => {
            faults.push(format!("printed and read, it prints otherwise:\n{}", crate::texts::diff(&printed, &again)))
        }
        Err(e) => faults.push(format!("printed, it does not read: line {}: {}\n{printed}", e.line, e.message)),
    }
    if let Some(code) = refusal {
        for query in &mut queries {
            query.refusal = Some(code);
        }
    }
    let source = Graph::of(options(true, 0, None), world);
    interpret(&source, &queries, "the source", faults);
    if !faults.is_empty() || !runs_here {
        // The interpreter's results are the reference for other engines.
        return;
    }
    for annotations in [false, true] {
        match source.with(options(annotations, 0, None)).residual() {
            Ok(residual) => {
                let residual = Graph::of(residual.options, residual.world);
                interpret(&residual, &queries, if annotations { "specialized" } else { "not specialized" }, faults);
            }
            Err(failed) => faults.push(failed.render(false)),
        }
    }
    match refused {
        Some(expected) => {
            let compile = || source.with(options(true, 3, None)).residual()?.flat()?.load(&[]);
            let (compiled, report) = match compile() {
                Ok(loaded) => (true, loaded.report),
                Err(failed) => (false, *failed),
            };
            let found = report.sink.diagnostics.first().map(|d| format!("{}: {}", d.code, d.message));
            if compiled || !found.as_ref().is_some_and(|f| f.starts_with(expected)) {
                faults.push(format!("compiling gives {found:?}, expected `{expected}`"));
            }
        }
        None => {
            // Only the interpreter runs calls that fault.
            let kept = without_faults(&program, &queries);
            let Ok(world) = nyala_ir::read::read(&kept) else { return faults.push("cannot leave faults out".into()) };
            let kept = Graph::of(Options::default(), world);
            for engine in testing::ENGINES.iter().filter(|e| e.back_end.takes == Form::Flat) {
                let other_cpus = if engine.back_end.needs.is_some() { &[] } else { OTHER_CPUS };
                for cpu in std::iter::once(None).chain(other_cpus.iter().map(|&c| Some(c))) {
                    let options = options(engine.partial_evaluation, engine.opt_level, cpu);
                    compiled(&kept.with(options), &queries, engine, cpu, faults);
                }
            }
        }
    }
}

/// The queries under an engine that starts other programs.
fn by_other_programs(graph: &Graph, queries: &[Query], engine: &testing::Engine, faults: &mut Vec<String>) {
    if !crate::texts::is_there(engine) {
        return;
    }
    let ready = match (engine.back_end.ready)(graph) {
        Ok(ready) => ready,
        Err(failed) if crate::texts::is_limitation(&failed) => return,
        Err(failed) => return faults.push(format!("{}: {}", engine.name, failed.render(false))),
    };
    for query in queries.iter().filter(|q| q.result.is_some()) {
        for how in ["known", "unknown"] {
            match ready.holds(&format!("{}_{how}", query.name)) {
                Ok(true) => {}
                Ok(false) => faults.push(format!("{}: {} is wrong ({how})", engine.name, query.text)),
                Err(failed) => {
                    faults.push(format!("{}: {} ({how}): {}", engine.name, query.text, failed.render(false)));
                }
            }
        }
    }
}

fn options(annotations: bool, opt_level: u8, cpu: Option<&str>) -> Options {
    Options {
        partial_evaluation: annotations,
        opt_level,
        cpu: cpu.or(crate::texts::gate_cpu()).map(Into::into),
        verify: true,
        ..Options::default()
    }
}

/// IR that computes the bits of the value `v`, of type `ty`, as a `u64`.
fn bits(world: &World, ty: Ty, v: &str) -> Result<String, String> {
    Ok(match *world.types.kind(ty) {
        TyKind::Prim(Prim::U64) => v.into(),
        TyKind::Prim(Prim::Bool) => format!("cast[u64]({v})"),
        TyKind::Prim(p) => format!("cast[u64](bitcast[u{}]({v}))", p.bits()),
        TyKind::Ptr { .. } => format!("bitcast[u64]({v})"),
        _ => return Err("the result is no number, bool or address".into()),
    })
}

/// Functions that call the query with known and with unknown arguments and compare the result.
fn wrappers(world: &World, n: usize, call: &str, result: Option<&str>, out: &mut String) -> Result<(), String> {
    let (name, args) = call.strip_suffix(')').and_then(|c| c.split_once('(')).ok_or("no call")?;
    let root = world.find_root(name).ok_or("no such function is exported")?;
    let args: Vec<&str> = args.split(',').map(str::trim).filter(|a| !a.is_empty()).collect();
    let types = &world.types;
    let params = types.cn_params(world.cont(root).ty).unwrap_or(&[]);
    let [_, own @ .., ret] = params else { return Err("it does not return".into()) };
    if own.len() != args.len() {
        return Err(format!("takes {} arguments", own.len()));
    }
    let [_, ret] = *types.cn_params(*ret).unwrap_or(&[]) else { return Err("it has not just one result".into()) };
    let ret_text = types.display(ret);
    let holds = match result {
        Some("nan") => "ne(r, r)".to_string(),
        Some(expected) => format!("eq({}, {})", bits(world, ret, "r")?, bits(world, ret, expected)?),
        // What nobody uses is not computed.
        None => format!("eq({}, 77u64)", bits(world, ret, "r")?),
    };
    for how in ["known", "unknown"] {
        let id = format!("q{n}_{how}");
        let mut values = Vec::new();
        for (i, (arg, &ty)) in args.iter().zip(own).enumerate() {
            if how == "known" {
                values.push(arg.to_string());
            } else {
                let _ = writeln!(out, "static mut {id}_{i}: {} = {arg}", types.display(ty));
                values.push(format!("load({id}_m, &{id}_{i})"));
            }
        }
        let values: String = values.iter().map(|v| format!("{v}, ")).collect();
        let holds = holds.replace("(r)", &format!("({id}_r)")).replace("(r, r)", &format!("({id}_r, {id}_r)"));
        let holds = holds.replace("eq(r,", &format!("eq({id}_r,"));
        let _ = writeln!(
            out,
            "export cont {id}({id}_m: mem, {id}_ret: cn(mem, bool)) = {name}({id}_m, {values}{id}_k)\n\
             cont {id}_k({id}_n: mem, {id}_r: {ret_text}) = {id}_ret({id}_n, {holds})"
        );
    }
    Ok(())
}

/// The program without the calls that fault.
fn without_faults(program: &str, queries: &[Query]) -> String {
    let faulty: Vec<&str> = queries.iter().filter(|q| q.result.is_none()).map(|q| q.name.as_str()).collect();
    let is_kept = |line: &&str| {
        let name = line.trim_start_matches("export ").trim_start_matches("static mut ").trim_start_matches("cont ");
        !faulty.iter().any(|q| name.strip_prefix(q).is_some_and(|rest| rest.starts_with('_')))
    };
    program.lines().filter(is_kept).map(|l| format!("{l}\n")).collect()
}

fn interpret(graph: &Graph, queries: &[Query], what: &str, faults: &mut Vec<String>) {
    for query in queries {
        for how in ["known", "unknown"] {
            let result = graph.interpret_bool(&format!("{}_{how}", query.name));
            let report = result.as_ref().err();
            let code = report.and_then(|report| report.sink.diagnostics.first()).map_or("", |d| d.code);
            match (query.result, &result) {
                (_, Err(_)) if query.refusal == Some(code) => {}
                (Some(_), Ok(true)) if query.refusal.is_none() => {}
                (None, Err(_)) if code == query.fault => {}
                (Some(expected), Ok(false)) => {
                    faults.push(format!("{what}, interpreted: {} is not {expected} ({how})", query.text));
                }
                (Some(_), Err(failed)) => {
                    faults.push(format!("{what}, interpreted: {} ({how}): {}", query.text, failed.render(false)));
                }
                (_, found) => {
                    let found = if found.is_ok() { "nothing" } else { code };
                    faults.push(format!(
                        "{what}, interpreted: {} ({how}) gives {found}, not {}",
                        query.text, query.fault
                    ));
                }
            }
        }
    }
}

fn compiled(graph: &Graph, queries: &[Query], engine: &testing::Engine, cpu: Option<&str>, faults: &mut Vec<String>) {
    let name = format!("{}{}", engine.name, cpu.map_or(String::new(), |c| format!(" for {c}")));
    if engine.back_end.needs.is_some() {
        return by_other_programs(graph, queries, engine, faults);
    }
    let made = graph.residual().and_then(|residual| residual.flat());
    let loaded = made.and_then(|flat| {
        // The printed flat SSA can be read again.
        let text = flat.module.to_string();
        match nyala_flat::read(&text).map(|m| m.to_string()) {
            Ok(again) if again == text => {}
            Ok(again) => {
                faults.push(format!("{name}: flat text reads otherwise:\n{}", crate::texts::diff(&text, &again)))
            }
            Err(e) => faults.push(format!("{name}: flat text does not read: {e}\n{text}")),
        }
        flat.load(&[])
    });
    let loaded = match loaded {
        Ok(loaded) => loaded,
        Err(failed) => return faults.push(format!("{name}: {}", failed.render(false))),
    };
    for query in queries.iter().filter(|q| q.result.is_some()) {
        for how in ["known", "unknown"] {
            match loaded.call_bool(&format!("{}_{how}", query.name)) {
                Ok(true) => {}
                Ok(false) => {
                    let expected = query.result.unwrap_or_default();
                    faults.push(format!("{name}: {} is not {expected} ({how})", query.text));
                }
                Err(failed) => faults.push(format!("{name}: {} ({how}): {}", query.text, failed.render(false))),
            }
        }
    }
}
