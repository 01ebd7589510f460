//! A kernel as one function: its calls of functions that ask for the work item, or lead to a barrier, are inlined, and the
//! questions are answered by parameters.

use super::{Kernel, Key, called, launched_by_kernel, refuse};
use nyala_base::diagnostics::bad_shared_memory;
use nyala_base::{Diagnostic, Id, Span};
use nyala_flat::structure::{end_by_return, structure};
use nyala_flat::*;
use nyala_ir::{LaneOp, Op, Prim, Scope, Ty, TyKind, Types, WorkItem, layout};
use rustc_hash::{FxHashMap, FxHashSet};

/// Limit on the instructions of a kernel.
const MAX_KERNEL: usize = 1 << 20;

/// Makes a kernel ready to be cut. `None` if it is not supported; the reasons are in `diagnostics`.
pub(super) fn prepare(module: &mut Module, key: &Key, span: Span, diagnostics: &mut Vec<Diagnostic>) -> Option<Kernel> {
    let mut function = module.func(key.kernel).clone();
    let before = diagnostics.len();
    let asks = |module: &Module, inst: &Inst| match module.lane_op(inst) {
        Some((op, scope)) => scope == Scope::Block || op == LaneOp::Shared,
        None => inst.op == InstOp::Op(Op::WorkItem),
    };
    // A function that ends by a call of itself is a loop: on devices it is allowed, too.
    for func in inlined(module, &asks) {
        jump_to_self(&mut module.funcs[func.idx()], func);
    }
    inline_where(module, key.kernel, &mut function, span, &asks, diagnostics)?;
    if let Some(func) = chosen(module, &function, &asks) {
        let message = "a kernel on the host calls a function that is chosen at run time, and that asks for the work item or waits";
        let place = module.func(func).span;
        let hint =
            "ask in the kernel, and let the function take the numbers; or let the kernel know the function by `@`";
        let diagnostic = *refuse(span, message, hint);
        diagnostics.push(if place == Span::NONE { diagnostic } else { diagnostic.other(place, "the function") });
        return None;
    }
    fresh_entry(&mut function);
    let i32 = module.types.i32();
    let param = |function: &mut Function, ty: Ty, name: &str| {
        let v = function.new_value(ty, name);
        function.blocks[0].params.push(v);
        function.params.push(ty);
        v
    };
    let mut grid = ["blocks", "size", "block"].map(|name| [0, 1, 2].map(|_| param(&mut function, i32, name)));
    for (axis, size) in key.sizes.iter().enumerate() {
        if let Some(size) = size {
            grid[1][axis] = function.constant(Const::Bits((*size).into()), i32);
        }
    }
    let mut shared = Vec::new();
    let mut renamed = FxHashMap::default();
    let mut has_subgroups = false;
    for b in 0..function.blocks.len() {
        for i in 0..function.blocks[b].insts.len() {
            let inst = function.blocks[b].insts[i].clone();
            match (module.lane_op(&inst), inst.op) {
                (Some((LaneOp::Shared, _)), _) => match shared_memory(&mut module.types, &function, &inst) {
                    Ok(storage) => {
                        let result = inst.result?;
                        let ty = function.ty(result);
                        let at = param(&mut function, ty, "shared");
                        renamed.insert(result, at);
                        shared.push((at, storage));
                    }
                    Err(diagnostic) => diagnostics.push(*diagnostic),
                },
                (Some((_, Scope::Subgroup)), _) => has_subgroups = true,
                (_, InstOp::Launch(..)) => diagnostics.push(launched_by_kernel(inst.span)),
                _ => {}
            }
        }
    }
    if diagnostics.len() > before {
        return None;
    }
    let thread = [0, 1, 2].map(|_| param(&mut function, i32, "thread"));
    for block in &mut function.blocks {
        block.insts.retain(|inst| inst.result.is_none_or(|r| !renamed.contains_key(&r)));
    }
    replace(&mut function, &renamed);
    let mut kernel = Kernel { function, grid, thread, shared, per_item: FxHashSet::default(), span, has_subgroups };
    let numbers = WorkItem::ALL.map(|what| kernel.numbers(what));
    answer(&mut module.types, &mut kernel.function, &|what, axis| Some(numbers[what.number() as usize][axis]));
    forget_restrict(&mut kernel.function);
    let funcs = &module.funcs;
    structure(&mut module.types, &mut kernel.function, &|f: Func| funcs[f.idx()].rets.clone());
    Some(kernel)
}

/// The parts of the memory that a kernel reserves for each block.
fn shared_memory(types: &mut Types, function: &Function, inst: &Inst) -> Result<Ty, Box<Diagnostic>> {
    let elem = inst.result.and_then(|r| match types.kind(types.pointee(function.ty(r))?) {
        TyKind::IndefArray(elem) | TyKind::Array(elem, _) => Some(*elem),
        _ => None,
    });
    let elem = elem.unwrap_or_else(|| types.prim(Prim::U8));
    let size = layout::size_align(types, elem).map_or(1, |s| s.0).max(1);
    match inst.args.first().and_then(|&bytes| function.as_bits(bytes)) {
        Some(bytes) if (bytes as i64) >= 0 => Ok(types.array(elem, bytes / size)),
        Some(bytes) => Err(Box::new(bad_shared_memory::negative(inst.span, bytes as i64))),
        None => Err(Box::new(bad_shared_memory::unknown(inst.span))),
    }
}

/// Puts a block before the entry that nobody jumps to, so that a loop can begin with the kernel.
pub(super) fn fresh_entry(function: &mut Function) {
    let old = &mut function.blocks[0];
    let params = std::mem::take(&mut old.params);
    let moved = std::mem::replace(
        old,
        BlockData { name: "entry".into(), params, insts: Vec::new(), term: Terminator::Unreachable },
    );
    let to = Block::from_idx(function.blocks.len());
    function.blocks[0].term = Terminator::Jump(Edge { block: to, args: Vec::new() });
    function.blocks.push(moved);
}

/// Lets calls of a function by itself, in tail position, be jumps to its beginning.
fn jump_to_self(function: &mut Function, own: Func) {
    let is_own = |term: &Terminator| matches!(term, Terminator::TailCall { callee: Callee::Func(f), .. } if *f == own);
    if !function.blocks.iter().any(|b| is_own(&b.term)) {
        return;
    }
    let params = function.blocks[0].params.clone();
    let new: Vec<Value> = params
        .iter()
        .map(|&p| {
            let (ty, name) = (function.ty(p), function.name(p).to_string());
            function.new_value(ty, &name)
        })
        .collect();
    let renamed: FxHashMap<Value, Value> = params.iter().copied().zip(new.iter().copied()).collect();
    replace(function, &renamed);
    let head = Block::from_idx(function.blocks.len());
    fresh_entry(function);
    function.blocks[0].params = params.clone();
    function.blocks[0].term = Terminator::Jump(Edge { block: head, args: params });
    function.blocks[head.idx()].params = new;
    for block in &mut function.blocks {
        if is_own(&block.term)
            && let Terminator::TailCall { args, .. } = &block.term
        {
            block.term = Terminator::Jump(Edge { block: head, args: args.to_vec() });
        }
    }
}

/// Removes what is known of memory that is accessed through one address only: regions would have to pass it on.
fn forget_restrict(function: &mut Function) {
    let mut renamed = FxHashMap::default();
    for block in &mut function.blocks {
        block.insts.retain(|inst| match (inst.op, inst.result) {
            (InstOp::Op(Op::Restrict), Some(r)) => {
                renamed.insert(r, inst.args[0]);
                false
            }
            _ => true,
        });
    }
    replace(function, &renamed);
}

/// Replaces values by others, which may be replaced, too.
fn replace(function: &mut Function, renamed: &FxHashMap<Value, Value>) {
    if renamed.is_empty() {
        return;
    }
    let new = |mut v: Value| {
        while let Some(&to) = renamed.get(&v) {
            v = to;
        }
        v
    };
    for block in &mut function.blocks {
        block.insts.iter_mut().flat_map(|i| &mut i.args).for_each(|a| *a = new(*a));
        block.term.map_uses(new);
    }
}

/// Replaces questions for numbers of the work item by the answers. Outside of a kernel, and on other axes than 0 to 2,
/// the answers are those of a single work item.
pub(super) fn answer(types: &mut Types, function: &mut Function, number: &dyn Fn(WorkItem, usize) -> Option<Value>) {
    let (i32, bool_ty) = (types.i32(), types.bool());
    let mut renamed = FxHashMap::default();
    for b in 0..function.blocks.len() {
        let insts = std::mem::take(&mut function.blocks[b].insts);
        let mut new = Vec::with_capacity(insts.len());
        for inst in insts {
            let (InstOp::Op(Op::WorkItem), Some(result)) = (inst.op, inst.result) else {
                new.push(inst);
                continue;
            };
            let what = function.as_bits(inst.args[0]).and_then(|n| WorkItem::ALL.get(n as usize).copied());
            let what = what.unwrap_or(WorkItem::Thread);
            let alone = function.constant(Const::Bits(what.of_one() as u64), i32);
            if let Some(axis) = function.as_bits(inst.args[1]) {
                let found = usize::try_from(axis).ok().filter(|&a| a < 3).and_then(|a| number(what, a));
                renamed.insert(result, found.unwrap_or(alone));
                continue;
            }
            let mut value = alone;
            for axis in 0..3 {
                let Some(own) = number(what, axis) else { continue };
                let literal = function.constant(Const::Bits(axis as u64), i32);
                let mut op = |op: Op, args: &[Value], ty: Ty| {
                    let result = function.new_value(ty, "");
                    let args = Args::from_slice(args);
                    new.push(Inst { op: InstOp::Op(op), args, result: Some(result), span: inst.span, fast: false });
                    result
                };
                let is_it = op(Op::Eq, &[inst.args[1], literal], bool_ty);
                value = op(Op::Select, &[is_it, own, value], i32);
            }
            renamed.insert(result, value);
        }
        function.blocks[b].insts = new;
    }
    replace(function, &renamed);
}

/// The functions of a module that lead to an instruction for which `asks` holds.
fn inlined(module: &Module, asks: &dyn Fn(&Module, &Inst) -> bool) -> FxHashSet<Func> {
    let mut callers: FxHashMap<Func, Vec<Func>> = FxHashMap::default();
    let mut work = Vec::new();
    for (i, function) in module.funcs.iter().enumerate() {
        let func = Func::from_idx(i);
        for block in &function.blocks {
            for inst in &block.insts {
                if asks(module, inst) {
                    work.push(func);
                }
                if let InstOp::Call(callee) = inst.op {
                    callers.entry(callee).or_default().push(func);
                }
            }
            if let Terminator::TailCall { callee: Callee::Func(callee), .. } = block.term {
                callers.entry(callee).or_default().push(func);
            }
        }
    }
    let mut found = FxHashSet::default();
    while let Some(func) = work.pop() {
        if found.insert(func) {
            work.extend(callers.get(&func).into_iter().flatten());
        }
    }
    found
}

/// Inlines the calls that lead to an instruction for which `asks` holds. `None` if they are recursive, or too many; that
/// is in `diagnostics`.
pub(super) fn inline_where(
    module: &mut Module,
    kernel: Func,
    function: &mut Function,
    span: Span,
    asks: &dyn Fn(&Module, &Inst) -> bool,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<()> {
    let inlined = inlined(module, asks);
    if let Some(func) = recursive(module, kernel, &inlined) {
        let message = format!(
            "a kernel calls `{}`, which asks for its work item or waits, and is recursive",
            module.func(func).name
        );
        let place = module.func(func).span;
        let place = if place == Span::NONE { span } else { place };
        let hint = "write a loop, or ask and wait in the kernel, outside of the recursion";
        diagnostics.push(*refuse(place, &message, hint));
        return None;
    }
    let rets: Vec<Vec<Ty>> = module.funcs.iter().map(|f| f.rets.clone()).collect();
    let rets_of = |f: Func| rets[f.idx()].clone();
    end_by_return(&mut module.types, function, &rets_of);
    let mut size: usize = function.blocks.iter().map(|b| b.insts.len() + 1).sum();
    let mut b = 0;
    while b < function.blocks.len() {
        let is_inlined = |inst: &Inst| matches!(inst.op, InstOp::Call(f) if inlined.contains(&f));
        let Some(at) = function.blocks[b].insts.iter().position(is_inlined) else {
            b += 1;
            continue;
        };
        let callee = called(&function.blocks[b].insts[at])?;
        let mut code = module.func(callee).clone();
        end_by_return(&mut module.types, &mut code, &rets_of);
        size += code.blocks.iter().map(|b| b.insts.len() + 1).sum::<usize>();
        if size > MAX_KERNEL {
            let hint = "call functions that ask for the work item, or wait, from fewer places";
            diagnostics.push(*refuse(span, "a kernel has more than a million instructions", hint));
            return None;
        }
        inline(function, b, at, &code);
    }
    Some(())
}

/// A function value that may be called in a kernel, and leads to an instruction for which `asks` holds: there, nobody would
/// answer.
fn chosen(module: &Module, kernel: &Function, asks: &dyn Fn(&Module, &Inst) -> bool) -> Option<Func> {
    let mut seen = FxHashSet::default();
    let mut work: Vec<Func> = Vec::new();
    let mut is_indirect = false;
    let mut next = Some(kernel);
    while let Some(function) = next {
        for block in &function.blocks {
            for inst in &block.insts {
                is_indirect |= inst.op == InstOp::CallIndirect;
                work.extend(called(inst));
            }
            match &block.term {
                Terminator::TailCall { callee: Callee::Func(f), .. } => work.push(*f),
                Terminator::TailCall { callee: Callee::Indirect(_), .. } => is_indirect = true,
                _ => {}
            }
        }
        next = loop {
            match work.pop() {
                Some(func) if seen.insert(func) => break Some(module.func(func)),
                Some(_) => {}
                None => break None,
            }
        };
    }
    if !is_indirect {
        return None;
    }
    let leading = inlined(module, asks);
    let values = module.funcs.iter().flat_map(|f| &f.values).filter_map(|v| match v.def {
        Def::Const(Const::Func(f)) => Some(f),
        _ => None,
    });
    values.chain(module.globals.iter().flat_map(|g| g.init.functions())).find(|f| leading.contains(f))
}

/// A function that is reachable from a kernel through functions to be inlined, and calls itself through them.
fn recursive(module: &Module, kernel: Func, inlined: &FxHashSet<Func>) -> Option<Func> {
    let callees = |func: Func| {
        let mut found = Vec::new();
        for block in &module.func(func).blocks {
            found.extend(block.insts.iter().filter_map(called).filter(|f| inlined.contains(f)));
            if let Terminator::TailCall { callee: Callee::Func(f), .. } = block.term
                && inlined.contains(&f)
            {
                found.push(f);
            }
        }
        found
    };
    let mut is_open: FxHashMap<Func, bool> = FxHashMap::default();
    let mut stack = vec![(kernel, callees(kernel))];
    is_open.insert(kernel, true);
    while let Some((func, left)) = stack.last_mut() {
        match left.pop() {
            Some(next) => match is_open.get(&next) {
                Some(true) => return Some(next),
                Some(false) => {}
                None => {
                    is_open.insert(next, true);
                    stack.push((next, callees(next)));
                }
            },
            None => {
                is_open.insert(*func, false);
                stack.pop();
            }
        }
    }
    None
}
