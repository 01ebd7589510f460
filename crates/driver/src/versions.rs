//! A program for several CPUs: one in flat SSA for all, or one for each if it depends on facts about its target. Separate from
//! [`crate::target_facts`], which says what the facts are, and from LLVM's text, in which the versions meet.
//!
//! With facts, everything is made anew for each CPU, from the front end on: facts are constants of the text. Callers see none of that: the
//! loader chooses among functions of one symbol, so all versions must export the same functions with the same types. Statics are
//! each version's own; one process runs one version.

use crate::code::llvm_options;
use crate::diagnostics::fact_in_signature;
use crate::flat::Flat;
use crate::front::FrontEnd;
use crate::graph::Graph;
use crate::report::{Failed, Report};
use crate::{Options, target_facts};
use nyala_base::{Severity, Span};
use nyala_flat::{Linkage, Module};
use nyala_ir::{Target, Ty, TyKind, Types};
use rustc_hash::FxHashSet;

/// The program of each CPU, in the order of the versions in LLVM's text; a single one if it is the same for all.
pub(crate) fn of(
    front: &FrontEnd,
    graph: &Graph,
    flat: impl Fn(&Graph) -> Result<Flat, Failed>,
) -> Result<Vec<Flat>, Failed> {
    let options = &graph.options;
    if options.more_cpus.is_empty() || graph.report.facts.is_empty() {
        return Ok(vec![flat(graph)?]);
    }
    let mut flats: Vec<Flat> = Vec::new();
    for target in targets(options)? {
        let made =
            for_cpu(front, &target).graph().and_then(|graph| flat(&graph)).map_err(|failed| told(failed, &target))?;
        if let Some(first) = flats.first_mut() {
            check_same(front, first, &made)?;
        }
        flats.push(made);
    }
    Ok(flats)
}

/// The C header of a program, which must be the same for all CPUs.
pub(crate) fn header(front: &FrontEnd, guard: &str) -> Result<String, Failed> {
    let text = front.header(guard)?;
    if front.options.more_cpus.is_empty() || target_facts::in_types(front).is_empty() {
        return Ok(text);
    }
    let targets = targets(&front.options)?;
    for target in &targets {
        let front = for_cpu(front, target);
        if front.header(guard).map_err(|failed| told(failed, target))? != text {
            let facts = target_facts::differing(&target_facts::in_types(&front), &targets);
            let what = "the header of the program's functions";
            return Err(front.report.clone().report(fact_in_signature::error(Span::NONE, what, &facts)));
        }
    }
    Ok(text)
}

fn targets(options: &Options) -> Result<Vec<Target>, Failed> {
    let targets = nyala_gen_llvm::versions(&options.target(), &llvm_options(options));
    targets.map_err(|d| Report::default().report(*d))
}

fn for_cpu(front: &FrontEnd, target: &Target) -> FrontEnd {
    // Each version knows of all others.
    let mut more_cpus = front.options.more_cpus.clone();
    more_cpus.extend(front.options.cpu.clone());
    let options = Options { cpu: target.cpu.clone(), more_cpus, ..front.options.clone() };
    FrontEnd::new(options, front.trees().files().clone())
}

/// Errors of one version say of which.
fn told(mut failed: Failed, target: &Target) -> Failed {
    let cpu = target.cpu.as_deref().unwrap_or_default();
    let errors = failed.sink.diagnostics.iter_mut().filter(|d| d.severity == Severity::Error);
    errors.for_each(|d| d.hints.push(format!("in the version for `{cpu}`")));
    failed
}

/// Reports exported functions whose types differ between two versions.
fn check_same(front: &FrontEnd, first: &mut Flat, other: &Flat) -> Result<(), Failed> {
    let (a, b) = (&first.module, &other.module);
    let in_types = target_facts::in_types(front);
    for f in a.funcs.iter().filter(|f| matches!(f.linkage, Linkage::Exported(_))) {
        let same = b.funcs.iter().find(|g| g.linkage == f.linkage).is_some_and(|g| {
            let (x, y) = (f.params.iter().chain(&f.rets), g.params.iter().chain(&g.rets));
            f.params.len() == g.params.len()
                && f.rets.len() == g.rets.len()
                && x.zip(y).all(|(x, y)| is_same(a, *x, b, *y))
        });
        if !same {
            let facts = target_facts::differing(&in_types, &[a.target().clone(), b.target().clone()]);
            let what = format!("the type of the exported function `{}`", f.name);
            first.report.sink.push(fact_in_signature::error(f.span, &what, &facts));
        }
    }
    let options = first.options.clone();
    first.report.check(&options)
}

/// Whether types of two modules mean the same to C, and to Python: the layout and the names in it.
fn is_same(a: &Module, x: Ty, b: &Module, y: Ty) -> bool {
    let (a, b): (&Types, &Types) = (&a.types, &b.types);
    let mut seen = FxHashSet::default();
    let mut work = vec![(x, y)];
    while let Some((x, y)) = work.pop() {
        if !seen.insert((x, y)) {
            continue;
        }
        match (a.kind(x), b.kind(y)) {
            (TyKind::Prim(p), TyKind::Prim(q)) if p == q => {}
            (TyKind::Vector(p, n), TyKind::Vector(q, m)) if (p, n) == (q, m) => {}
            (TyKind::Mem, TyKind::Mem) | (TyKind::Code, TyKind::Code) => {}
            (TyKind::Ptr { pointee: p, space: s }, TyKind::Ptr { pointee: q, space: t }) if s == t => {
                work.push((*p, *q))
            }
            (TyKind::Tuple(p), TyKind::Tuple(q)) | (TyKind::Cn(p), TyKind::Cn(q)) if p.len() == q.len() => {
                work.extend(p.iter().copied().zip(q.iter().copied()));
            }
            (TyKind::Array(p, n), TyKind::Array(q, m)) if n == m => work.push((*p, *q)),
            (TyKind::IndefArray(p), TyKind::IndefArray(q)) => work.push((*p, *q)),
            (TyKind::Struct(p), TyKind::Struct(q)) => {
                let (p, q) = (a.struct_data(*p), b.struct_data(*q));
                if p.name != q.name || !p.fields.iter().map(|f| &f.0).eq(q.fields.iter().map(|f| &f.0)) {
                    return false;
                }
                work.extend(p.fields.iter().map(|f| f.1).zip(q.fields.iter().map(|f| f.1)));
            }
            _ => return false,
        }
    }
    true
}
