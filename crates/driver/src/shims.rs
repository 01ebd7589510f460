//! Shims: functions through which callers that learn a function's type only at run time call it. Separate from variants, which they
//! serve as well as functions of the program.
//!
//! A shim takes the addresses of the arguments and of the result, loads the one, calls, and stores the other. It is compiled alone, and
//! knows only where its function is.
//!
//! ```text
//! shim(addresses: &[u64]) { *(addresses(n) as &mut R) = function(*(addresses(0) as &A), …) }
//! ```
//!
//! So the compiler itself says how C passes each type, and a library that decides it at each call (libffi) is not needed.
//!
//! An element loop calls a function of numbers for elements of arrays, and has the function's code in it, so that LLVM can make vectors of
//! it. Which operands are single numbers, and whether the others lie side by side, is known when it is made.
//!
//! ```text
//! loop(addresses: &[u64], strides: &[i64], n: i64) {
//!     for i in range(0, n) { out(strides(1) * i) = function(x(strides(0) * i), …) }
//! }
//! ```
//!
//! A receiver is a function for a parameter that is a function: it is the C function there, and gives what it gets to one function for all
//! types, with its environment.
//!
//! ```text
//! receiver(env: &(), x: A, …) -> R { let (x, …, result) = …; received(env, [&x, …, &result]); result }
//! ```

use crate::report::Failed;
use crate::{Graph, Variant};
use nyala_base::Span;
use nyala_base::diagnostics::{bug, limitation};
use nyala_ir::{Builtin, Cont, Global, Linkage, Op, Prim, Ty, TyKind, Val, World, callbacks};
use std::sync::Arc;

/// The symbol of a shim.
pub const SHIM: &str = "nyala.shim";

/// The symbol by which a shim calls its function.
pub const SHIMMED: &str = "nyala.shimmed";

/// The symbol of the function that a receiver calls: it takes an environment, and the addresses of the arguments and of the result.
pub const RECEIVED: &str = "nyala.received";

impl Graph {
    /// The graph of the receiver for a parameter of an exported function.
    ///
    /// # Errors
    /// There is no such function, or the parameter is no function that C can give.
    pub fn receiver(&self, symbol: &str, param: usize) -> Result<Graph, Failed> {
        let world = receiver(&self.world, symbol, param).ok_or_else(|| {
            let why = format!("parameter {param} of `{symbol}` is no function that C can give");
            let hint =
                "functions that other languages give take and give numbers, pointers, structs, tuples and arrays";
            self.report.clone().report(limitation::error(Span::NONE, why, hint))
        })?;
        let mut options = self.options.clone();
        (options.checks, options.opt_level) = (nyala_checks::Checks::default(), 1);
        Ok(Graph { options, report: self.report.clone(), world: Arc::new(world) })
    }

    /// The graph of a shim of an exported function, which has no parameters at the positions `fixed`.
    ///
    /// # Errors
    /// There is no such function, or a parameter that is left is a function.
    pub fn shim(&self, symbol: &str, fixed: &[usize]) -> Result<Graph, Failed> {
        let world = shim(&self.world, symbol, fixed).map_err(|why| {
            let hint = "fix parameters that are functions, or write the function without them";
            self.report.clone().report(limitation::error(Span::NONE, why, hint))
        })?;
        let mut options = self.options.clone();
        // Addresses come from the caller; there is nothing to optimize.
        (options.checks, options.opt_level) = (nyala_checks::Checks::default(), 1);
        Ok(Graph { options, report: self.report.clone(), world: Arc::new(world) })
    }
}

/// What the code of an element loop assumes of its operands: which are single numbers, and whether arrays are contiguous.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Elements {
    /// By a bit for each parameter, which is a single number for all elements.
    pub single: u64,
    /// Whether the elements of all others lie side by side. Then the strides are not read.
    pub side_by_side: bool,
}

impl Graph {
    /// The graph of an element loop with the code of a variant. `statics` are as for [`Graph::variant`].
    ///
    /// # Errors
    /// The variant takes or returns something else than numbers.
    pub fn element_loop(
        &self,
        variant: &Variant,
        elements: Elements,
        statics: &[(Global, u64)],
    ) -> Result<Graph, Failed> {
        let made = self.part_with(variant, statics).and_then(|(mut world, function)| {
            element_loop(&mut world, function, elements)?;
            world.ensures = self.world.ensures.clone();
            Ok(world)
        });
        let world = made.map_err(|why| self.report.clone().report(bug::error(Span::NONE, why)))?;
        Ok(Graph { options: self.options.clone(), report: self.report.clone(), world: Arc::new(world) })
    }
}

/// The address that is the `i`-th word, of something of a type.
fn address(w: &mut World, mem: Val, words: Val, i: usize, ty: Ty) -> Val {
    let index = w.lit_i64(i as i64);
    let at = w.op(Op::Lea, &[words, index]);
    let address = w.op(Op::Load, &[mem, at]);
    let ty = w.types.ptr(ty);
    w.op_ty(Op::Bitcast, ty, &[address])
}

fn element_loop(w: &mut World, function: Cont, elements: Elements) -> Result<(), String> {
    let tys = w.types.cn_params(w.cont(function).ty).unwrap_or_default().to_vec();
    let Some((&returns, params)) = tys.get(1..).and_then(|tys| tys.split_last()) else {
        return Err("a function that does not return".into());
    };
    let results = w.types.cn_params(returns).unwrap_or_default().get(1..).unwrap_or_default().to_vec();
    let is_number = |w: &World, ty: &Ty| matches!(w.types.kind(*ty), TyKind::Prim(_));
    if results.len() != 1 || !params.iter().chain(&results).all(|ty| is_number(w, ty)) || params.len() >= 64 {
        return Err("a loop of elements that are no numbers".into());
    }
    let (memory, word, index) = (w.types.mem(), w.types.prim(Prim::U64), w.types.prim(Prim::I64));
    let (words, strides) = (w.types.indef_array(word), w.types.indef_array(index));
    let (words, strides) = (w.types.ptr(words), w.types.ptr(strides));
    let done = w.types.cn(&[memory]);
    let ty = w.types.cn(&[memory, words, strides, index, done]);
    let all = w.declare("elements", ty, &["m", "addresses", "strides", "n", "ret"]);
    w.cont_mut(all).linkage = Linkage::Exported(SHIM.into()).into();
    let [mem, words, strides, n, ret] = [0, 1, 2, 3, 4].map(|i| w.param(all, i));

    // What does not change is read before the loop.
    let mut places = Vec::new();
    for (i, &ty) in params.iter().chain(&results).enumerate() {
        if i < params.len() && elements.single >> i & 1 != 0 {
            let at = address(w, mem, words, i, ty);
            places.push((w.op(Op::Load, &[mem, at]), None));
            continue;
        }
        let many = w.types.indef_array(ty);
        let at = address(w, mem, words, i, many);
        let stride = match elements.side_by_side {
            true => w.lit_i64(1),
            false => {
                let i = w.lit_i64(i as i64);
                let at = w.op(Op::Lea, &[strides, i]);
                w.op(Op::Load, &[mem, at])
            }
        };
        places.push((at, Some(stride)));
    }

    let head_ty = w.types.cn(&[memory, index]);
    let head = w.declare("head", head_ty, &["m", "i"]);
    let [body, end] = ["body", "end"].map(|name| w.declare(name, done, &["m"]));
    let (head_val, zero) = (w.cont_val(head), w.lit_i64(0));
    w.define(all, head_val, &[mem, zero]);
    let (mem, i) = (w.param(head, 0), w.param(head, 1));
    let is_below = w.op(Op::Lt, &[i, n]);
    let (branch, body_val, end_val) = (w.builtin(Builtin::Branch), w.cont_val(body), w.cont_val(end));
    w.define(head, branch, &[mem, is_below, body_val, end_val]);
    let mem = w.param(end, 0);
    w.define(end, ret, &[mem]);

    let mem = w.param(body, 0);
    let at = |w: &mut World, place: Val, stride: Val| {
        let offset = w.op(Op::Mul, &[i, stride]);
        w.op(Op::Lea, &[place, offset])
    };
    let mut args = vec![mem];
    for &(place, stride) in &places[..params.len()] {
        args.push(match stride {
            None => place,
            Some(stride) => {
                let from = at(w, place, stride);
                w.op(Op::Load, &[mem, from])
            }
        });
    }
    let next = w.declare("next", returns, &["m", "result"]);
    args.push(w.cont_val(next));
    let callee = w.cont_val(function);
    w.define(body, callee, &args);
    let (mem, result) = (w.param(next, 0), w.param(next, 1));
    let &(place, stride) = places.last().ok_or("a loop without a result")?;
    let to = at(w, place, stride.unwrap_or(zero));
    let (mem, one) = (w.op(Op::Store, &[mem, to, result]), w.lit_i64(1));
    let i = w.op(Op::Add, &[i, one]);
    w.define(next, head_val, &[mem, i]);
    Ok(())
}

fn shim(whole: &World, symbol: &str, fixed: &[usize]) -> Result<World, String> {
    let function = whole.find_root(symbol).ok_or_else(|| format!("there is no exported function `{symbol}`"))?;
    let mut world = World::like(whole);
    let w = &mut world;
    // Memory comes first, the return continuation last.
    let tys = w.types.cn_params(whole.cont(function).ty).unwrap_or_default();
    let is_left = |i: &usize| i.checked_sub(1).is_none_or(|i| !fixed.contains(&i));
    let tys: Vec<Ty> = (0..tys.len()).filter(is_left).map(|i| tys[i]).collect();
    let returns = tys.last().copied().filter(|ty| matches!(w.types.kind(*ty), TyKind::Cn(_)));
    let params = tys.get(1..tys.len() - usize::from(returns.is_some())).unwrap_or_default();
    let is_function = |w: &World, ty: Ty| matches!(w.types.kind(ty), TyKind::Cn(_));
    let (params, outside) = (params.to_vec(), callbacks::outside(&mut w.types, &tys));
    if outside.len() == tys.len() && params.iter().any(|&ty| is_function(w, ty)) {
        return Err(format!(
            "`{symbol}` is called from another language with a function as an argument that takes or gives one"
        ));
    }

    let (memory, word) = (w.types.mem(), w.types.prim(Prim::U64));
    let words = w.types.indef_array(word);
    let words = w.types.ptr(words);
    let done = w.types.cn(&[memory]);
    let ty = w.types.cn(&[memory, words, done]);
    let shim = w.declare("shim", ty, &["m", "addresses", "ret"]);
    w.cont_mut(shim).linkage = Linkage::Exported(SHIM.into()).into();
    let (mem, addresses, ret) = (w.param(shim, 0), w.param(shim, 1), w.param(shim, 2));
    let mut args = vec![mem];
    for (i, &ty) in params.iter().enumerate() {
        if is_function(w, ty) {
            // The address of a C function, and that of its environment.
            let (code, environment) = callbacks::addresses(&mut w.types);
            let both = w.types.tuple(&[code, environment]);
            let from = address(w, mem, addresses, i, both);
            let both = w.op(Op::Load, &[mem, from]);
            for i in 0..2 {
                let i = w.lit_i64(i);
                args.push(w.op(Op::Extract, &[both, i]));
            }
            continue;
        }
        let from = address(w, mem, addresses, i, ty);
        args.push(w.op(Op::Load, &[mem, from]));
    }
    if let Some(returns) = returns {
        let results = w.types.cn_params(returns).unwrap_or_default().to_vec();
        let k = w.declare("returned", returns, &["m", "result"]);
        let mut mem = w.param(k, 0);
        match results.get(1..).unwrap_or_default() {
            [] => {}
            &[ty] => {
                let (to, result) = (address(w, mem, addresses, params.len(), ty), w.param(k, 1));
                mem = w.op(Op::Store, &[mem, to, result]);
            }
            several => return Err(format!("`{symbol}` has {} results", several.len())),
        }
        w.define(k, ret, &[mem]);
        let k = w.cont_val(k);
        args.push(k);
    }
    let ty = w.types.cn(&outside);
    let callee = w.foreign(SHIMMED, ty);
    let callee = w.cont_val(callee);
    w.define(shim, callee, &args);
    Ok(world)
}

fn receiver(whole: &World, symbol: &str, param: usize) -> Option<World> {
    let function = whole.find_root(symbol)?;
    let mut world = World::like(whole);
    let w = &mut world;
    let ty = *w.types.cn_params(whole.cont(function).ty)?.get(param + 1)?;
    let tys = w.types.cn_params(ty).filter(|_| callbacks::is_plain(&w.types, ty))?.to_vec();
    let (&memory, &returns) = (tys.first()?, tys.last()?);
    let params = tys.get(1..tys.len() - 1)?;
    let result = w.types.cn_params(returns)?.get(1).copied();
    let (word, (_, environment)) = (w.types.prim(Prim::U64), callbacks::addresses(&mut w.types));
    let mut outside = vec![memory, environment];
    outside.extend(&tys[1..]);
    let outside = w.types.cn(&outside);
    let receiver = w.declare("receiver", outside, &[]);
    w.cont_mut(receiver).linkage = Linkage::Exported(SHIM.into()).into();

    let mut mem = w.param(receiver, 0);
    let slot = |w: &mut World, ty: Ty, mem: &mut Val| {
        let made = w.op_ty(Op::Slot, ty, &[*mem]);
        *mem = w.extract(made, 0);
        w.extract(made, 1)
    };
    let mut places = Vec::new();
    for (i, &ty) in params.iter().enumerate() {
        let (place, value) = (slot(w, ty, &mut mem), w.param(receiver, i + 2));
        mem = w.op(Op::Store, &[mem, place, value]);
        places.push(place);
    }
    let to = result.map(|ty| slot(w, ty, &mut mem));
    places.extend(to);
    // One at least.
    let all = w.types.array(word, places.len().max(1) as u64);
    let addresses = slot(w, all, &mut mem);
    for (i, &place) in places.iter().enumerate() {
        let (i, value) = (w.lit_i64(i as i64), w.op_ty(Op::Bitcast, word, &[place]));
        let at = w.op(Op::Lea, &[addresses, i]);
        mem = w.op(Op::Store, &[mem, at, value]);
    }
    let words = w.types.indef_array(word);
    let words = w.types.ptr(words);
    let addresses = w.op_ty(Op::Bitcast, words, &[addresses]);
    let done = w.types.cn(&[memory]);
    let back = w.declare("back", done, &["m"]);
    let received = w.types.cn(&[memory, environment, words, done]);
    let received = w.foreign(RECEIVED, received);
    let (received, back_val, env) = (w.cont_val(received), w.cont_val(back), w.param(receiver, 1));
    w.define(receiver, received, &[mem, env, addresses, back_val]);
    let mem = w.param(back, 0);
    let mut results = vec![mem];
    if let Some(to) = to {
        results.push(w.op(Op::Load, &[mem, to]));
    }
    let ret = w.param(receiver, tys.len());
    w.define(back, ret, &results);
    Some(world)
}
