//! Computes statics whose initializers call functions or have control flow. The interpreter runs these, without access
//! to the outside, before any other pass uses the graph. Their results become constants like others.

use crate::Options;
use crate::report::{Failed, Report};
use nyala_base::{Diagnostic, Id};
use nyala_ir::facts::Nest;
use nyala_ir::{Cont, Global, Node, World};
use nyala_sema::diagnostics::{not_constant, recursive_static};
use rustc_hash::FxHashMap;

/// Limit on the calls and jumps of an initializer, which the budget of partial evaluation multiplies.
const MAX_STEPS: f64 = 20_000_000.0;

/// Replaces the computed initializers of a graph by constants.
pub(crate) fn compute(options: &Options, report: &mut Report, world: &mut World) -> Result<(), Failed> {
    let order = order(world).map_err(|d| report.report(*d))?;
    for (g, k) in order {
        let limits = nyala_interp::Options {
            max_steps: Some((MAX_STEPS * options.pe_budget) as u64),
            wrap: options.wrap,
            confined: true,
            ..Default::default()
        };
        let data = world.global(g);
        let (origin, ty) = (data.origin, data.ty);
        let note = format!("static `{}` is computed here", data.name);
        let words = nyala_interp::run(world, k, &[], &limits);
        let words = words.map_err(|fault| {
            let mut diagnostic = fault.diagnostic().other(origin, note);
            diagnostic.place(origin);
            report.report(match fault.code() {
                "budget-spent" => diagnostic.hint("`--pe-budget 10` grants ten times as many steps"),
                _ => diagnostic,
            })
        })?;
        let init = nyala_interp::constant(world, ty, &mut &words[..]);
        let init = init.map_err(|why| report.report(not_constant::error(origin, why)))?;
        world.set_init(g, init);
    }
    Ok(())
}

/// The function that computes a global, if it is computed.
fn initializer(w: &World, g: Global) -> Option<Cont> {
    let data = w.global(g);
    let init = data.init.filter(|&init| w.ty(init) != data.ty)?;
    match w.node(init) {
        Node::Cont(k) => Some(k),
        _ => None,
    }
}

/// The computed globals and their functions, each after those that it needs.
fn order(w: &World) -> Result<Vec<(Global, Cont)>, Box<Diagnostic>> {
    let mut needs: FxHashMap<Global, Vec<Global>> = FxHashMap::default();
    let all: Vec<(Global, Cont)> =
        (0..w.n_globals()).map(Global::from_idx).filter_map(|g| Some((g, initializer(w, g)?))).collect();
    for &(g, k) in &all {
        let (_, used) = Nest::of_program(w, &[k]);
        if let Some(&changing) = used.iter().find(|&&used| w.global(used).mutable) {
            let why = format!("it may use `static mut {}`", w.global(changing).name);
            return Err(not_constant::error(w.global(g).origin, &why).into());
        }
        needs.insert(g, used);
    }
    let mut order = Vec::new();
    // `false` means that it is on the path.
    let mut state: FxHashMap<Global, bool> = FxHashMap::default();
    let mut stack: Vec<(Global, bool)> = all.iter().map(|&(g, _)| (g, false)).collect();
    while let Some((g, done)) = stack.pop() {
        if done {
            state.insert(g, true);
            order.extend(initializer(w, g).map(|k| (g, k)));
            continue;
        }
        if state.contains_key(&g) {
            continue;
        }
        state.insert(g, false);
        stack.push((g, true));
        for &used in needs.get(&g).into_iter().flatten() {
            match state.get(&used) {
                Some(false) => {
                    let data = w.global(used);
                    return Err(recursive_static::error(data.origin, &data.name).into());
                }
                Some(true) => {}
                None => stack.push((used, false)),
            }
        }
    }
    Ok(order)
}
