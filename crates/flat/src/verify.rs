//! The rules of flat SSA. A violation is a bug of the compiler; its message names the function, the block and the rule.

use crate::analysis::Cfg;
use crate::data::*;
use crate::vector::VectorOp;
use nyala_base::Id;
use nyala_ir::lanes::PLATFORMS;
use nyala_ir::types::MAX_LANES;
use nyala_ir::{Effect, Op, Prim, Ty, TyKind, Types};

/// Checks all rules; the error lists the violations, one sentence a line.
pub fn verify(module: &Module) -> Result<(), String> {
    let mut faults = Vec::new();
    for function in &module.funcs {
        verify_function(module, function, &mut faults);
        if faults.len() > 20 {
            break;
        }
    }
    if faults.is_empty() { Ok(()) } else { Err(faults.join("\n")) }
}

struct Verifier<'a> {
    module: &'a Module,
    function: &'a Function,
    faults: &'a mut Vec<String>,
    at: String,
}

impl Verifier<'_> {
    fn check(&mut self, holds: bool, rule: &str) {
        if !holds {
            self.faults.push(format!("{}: {rule}", self.at));
        }
    }

    fn types(&self) -> &Types {
        &self.module.types
    }
}

fn verify_function(module: &Module, function: &Function, faults: &mut Vec<String>) {
    let at = format!("function `{}`", function.name);
    let mut v = Verifier { module, function, faults, at };
    if function.is_foreign() {
        v.check(function.blocks.is_empty(), "a foreign function has no blocks");
        return;
    }
    let Some(entry) = function.blocks.first() else {
        v.check(false, "a function that is not foreign has an entry block");
        return;
    };
    let params: Vec<Ty> = entry.params.iter().map(|&p| function.ty(p)).collect();
    v.check(params == function.params, "the entry's parameters are the function's");
    if !verify_definitions(&mut v) {
        return;
    }
    let cfg = Cfg::new(function);
    for (i, block) in function.blocks.iter().enumerate() {
        v.at = format!("function `{}`, block `{}` (b{i})", function.name, block.name);
        for inst in &block.insts {
            verify_inst(&mut v, inst);
        }
        verify_terminator(&mut v, &block.term);
    }
    verify_dominance(&mut v, &cfg);
}

/// Checks that ids are in range, and that each local value is defined once. False if later rules cannot be checked.
fn verify_definitions(v: &mut Verifier) -> bool {
    let function = v.function;
    let n = function.values.len();
    let mut defined = vec![false; n];
    let before = v.faults.len();
    for (i, block) in function.blocks.iter().enumerate() {
        v.at = format!("function `{}`, block `{}` (b{i})", function.name, block.name);
        for value in block.params.iter().copied().chain(block.insts.iter().filter_map(|inst| inst.result)) {
            let fine = value.idx() < n
                && function.values[value.idx()].def == Def::Local
                && !std::mem::replace(&mut defined[value.idx()], true);
            v.check(fine, "a local value is defined once");
        }
        let mut in_range = true;
        let mut use_value = |value: Value| in_range &= value.idx() < n;
        block.insts.iter().flat_map(|inst| &inst.args).copied().for_each(&mut use_value);
        block.term.for_each_use(&mut use_value);
        let targets_exist = block.term.edges().all(|e| e.block.idx() < function.blocks.len());
        let no_entry = block.term.edges().all(|e| e.block.idx() != 0);
        v.check(in_range, "an operand is a value of the function");
        v.check(targets_exist, "a jump's target is a block of the function");
        v.check(no_entry, "nobody jumps to the entry");
    }
    v.faults.len() == before
}

fn verify_dominance(v: &mut Verifier, cfg: &Cfg) {
    let function = v.function;
    let intervals = cfg.dominator_intervals();
    // Where each local value is defined: its block and the position in it, 0 for parameters.
    let mut place = vec![None; function.values.len()];
    for &b in &cfg.rpo {
        let block = function.block(b);
        for &p in &block.params {
            place[p.idx()] = Some((b, 0));
        }
        for (i, inst) in block.insts.iter().enumerate() {
            if let Some(r) = inst.result {
                place[r.idx()] = Some((b, i + 1));
            }
        }
    }
    let dominates = |value: Value, b: Block, at: usize| {
        if function.values[value.idx()].def != Def::Local {
            return true;
        }
        match place[value.idx()] {
            Some((d, i)) if d == b => i < at,
            Some((d, _)) => {
                let (outer, inner) = (intervals[d.idx()], intervals[b.idx()]);
                outer.0 < inner.0 && inner.1 < outer.1
            }
            None => false,
        }
    };
    for &b in &cfg.rpo {
        let block = function.block(b);
        let mut fine = true;
        for (i, inst) in block.insts.iter().enumerate() {
            fine &= inst.args.iter().all(|&a| dominates(a, b, i + 1));
        }
        block.term.for_each_use(|a| fine &= dominates(a, b, usize::MAX));
        v.at = format!("function `{}`, block `{}` ({b})", function.name, block.name);
        v.check(fine, "a definition dominates its uses");
    }
}

fn verify_inst(v: &mut Verifier, inst: &Inst) {
    let ty = |i: usize| inst.args.get(i).map(|&a| v.function.ty(a));
    let result = inst.result.map(|r| v.function.ty(r));
    let can_be_fast = !inst.fast || v.function.can_be_fast(v.types(), inst.op, &inst.args);
    v.check(can_be_fast, "only operations on floats are `fast`, only stores `stream`");
    match inst.op {
        InstOp::Op(op) => verify_op(v, op, inst, result),
        InstOp::Call(callee) => {
            let Some(callee) = v.module.funcs.get(callee.idx()) else {
                return v.check(false, "a callee is a function of the module");
            };
            let args: Vec<Ty> = inst.args.iter().map(|&a| v.function.ty(a)).collect();
            v.check(args == callee.params, "arguments have the types of the callee's parameters");
            let fits = result.is_some_and(|r| result_fits(v.types(), r, &callee.rets));
            v.check(fits, "a call's result is `()`, the one result, or a tuple of several");
        }
        InstOp::CallIndirect => {
            let code = ty(0).is_some_and(|t| *v.types().kind(t) == TyKind::Code);
            v.check(code, "an indirect call's first argument is a code address");
            v.check(result.is_some(), "a call has a result");
        }
        InstOp::Vector(op) => verify_vector_op(v, op, inst, result),
        InstOp::Vectorize(body, lanes, _) => {
            let Some(body) = v.module.funcs.get(body.idx()) else {
                return v.check(false, "the body of `vectorize` is a function of the module");
            };
            let args: Vec<Ty> = inst.args.iter().map(|&a| v.function.ty(a)).collect();
            let fits = match (&args[..], &body.params[..]) {
                ([lo, hi, free @ ..], [i, rest @ ..]) => lo == i && hi == i && is_int(v.types(), *i) && free == rest,
                _ => false,
            };
            v.check(fits, "`vectorize` has two integers of one type and what its body takes after one of that type");
            v.check(!body.is_foreign() && body.rets.is_empty(), "the body of `vectorize` has blocks and no results");
            v.check(lanes <= MAX_LANES, "`vectorize` has 1 to 64 lanes, or 0 if nobody knows how many");
            v.check(inst.result.is_none(), "`vectorize` has no result");
        }
        InstOp::Launch(kernel, platform) => {
            let Some(kernel) = v.module.funcs.get(kernel.idx()) else {
                return v.check(false, "a kernel is a function of the module");
            };
            let args: Vec<Ty> = inst.args.iter().map(|&a| v.function.ty(a)).collect();
            let fits = args.len() >= N_LAUNCH && {
                let (numbers, free) = args.split_at(N_LAUNCH);
                numbers.iter().all(|&t| v.types().as_prim(t) == Some(Prim::I32)) && free == kernel.params
            };
            v.check(fits, "`launch` has seven `i32`, then what its kernel takes");
            v.check(!kernel.is_foreign() && kernel.rets.is_empty(), "a kernel has blocks and no results");
            v.check((platform as usize) < PLATFORMS.len(), "`launch` has a known platform");
            v.check(inst.result.is_none(), "`launch` has no result");
        }
    }
}

fn result_fits(types: &Types, result: Ty, rets: &[Ty]) -> bool {
    match rets {
        [ty] => *ty == result,
        _ => matches!(types.kind(result), TyKind::Tuple(elems) if **elems == *rets),
    }
}

fn verify_op(v: &mut Verifier, op: Op, inst: &Inst, result: Option<Ty>) {
    let function = v.function;
    let ty = |i: usize| function.ty(inst.args[i]);
    let n_args = match op {
        nyala_ir::annotation!() => {
            return v.check(false, "flat SSA has no partial-evaluation operations");
        }
        Op::Tuple | Op::Struct | Op::Array => inst.args.len(),
        // In flat code these have no `mem` operand.
        _ if op.effect() != Effect::Total => op.arity() as usize - 1,
        _ => op.arity() as usize,
    };
    if inst.args.len() != n_args {
        return v.check(false, &format!("`{}` has {n_args} operands", op.name()));
    }
    let known = |i: usize| function.as_bits(inst.args[i - 1]).is_some();
    v.check(op.literal_operands().all(known), "memory orders are literals");
    v.check(op.scope_operand().is_none_or(known), "the scope of an atomic operation is a literal");
    if let Some((at, written)) = op.writes() {
        let fits = v.types().pointee(ty(at - 1)) == Some(ty(written - 1));
        v.check(fits, "what is stored has the type that the address points to");
    }
    if matches!(op, Op::Store | Op::AtomicStore | Op::Fence | Op::Prefetch | Op::Pipeline | Op::Watch | Op::DebugValue)
    {
        return v.check(inst.result.is_none(), "a store or fence has no result");
    }
    let Some(result) = result else { return v.check(false, &format!("`{}` has a result", op.name())) };
    let types = v.types();
    let rule = match op {
        Op::Add
        | Op::Sub
        | Op::Mul
        | Op::And
        | Op::Or
        | Op::Xor
        | Op::Shl
        | Op::Shr
        | nyala_ir::binary_math!()
        | Op::Div
        | Op::Rem
        | Op::PDiv
        | Op::PRem => (ty(0) == ty(1) && ty(0) == result && types.lane_prim(result).is_some())
            .then_some(())
            .ok_or("operands and result of arithmetic have one primitive or vector type"),
        Op::Eq | Op::Ne | Op::Lt | Op::Le | Op::Gt | Op::Ge => {
            let fits = match types.kind(ty(0)) {
                TyKind::Prim(_) | TyKind::Ptr { .. } | TyKind::Code => result == types.bool(),
                TyKind::Vector(_, n) => types.as_vector(result) == Some((Prim::Bool, *n)),
                _ => false,
            };
            (ty(0) == ty(1) && fits).then_some(()).ok_or(
                "a comparison takes two primitives, vectors or addresses of one type and gives a `bool` or lanes of it",
            )
        }
        Op::Fma => (ty(0) == ty(1) && ty(1) == ty(2) && ty(0) == result)
            .then_some(())
            .ok_or("operands and result of `fma` have one type"),
        Op::Cast => types
            .same_lanes(ty(0), result)
            .then_some(())
            .ok_or("`cast` converts primitives, or vectors of as many lanes"),
        Op::Bitcast => {
            let size = |t| nyala_ir::layout::size_align(types, t).map(|l| l.0);
            (size(ty(0)) == size(result)).then_some(()).ok_or("`bitcast` keeps the size")
        }
        Op::Select => {
            let by_lane = types.lane_prim(ty(0)) == Some(Prim::Bool) && types.same_lanes(ty(0), result);
            ((ty(0) == types.bool() || by_lane) && ty(1) == ty(2) && ty(1) == result)
                .then_some(())
                .ok_or("`select` takes a `bool`, or as many as there are lanes, and two values of the result's type")
        }
        Op::Tuple | Op::Struct | Op::Array => {
            let fits = types.n_parts(result) == Some(n_args as u64)
                && (0..n_args).all(|i| types.part(result, i as u64) == Some(ty(i)));
            fits.then_some(()).ok_or("an aggregate is built of parts of the right types")
        }
        Op::Splat => (matches!(types.kind(result), TyKind::Array(..) | TyKind::Vector(..))
            && types.part(result, 0) == Some(ty(0)))
        .then_some(())
        .ok_or("`splat` makes an array or vector of its operand"),
        Op::Shuffle => {
            let (from, idx) = (types.as_vector(ty(0)), types.as_vector(ty(2)));
            let fits = from.zip(idx).is_some_and(|((prim, _), (idx, n))| {
                ty(0) == ty(1) && idx.is_int() && types.as_vector(result) == Some((prim, n))
            });
            fits.then_some(())
                .ok_or("`shuffle` takes two vectors and one of integers, with as many lanes as the result")
        }
        Op::Extract | Op::Insert => {
            let idx = function.as_index(inst.args[1]);
            let part = match types.kind(ty(0)) {
                TyKind::Array(elem, _) => Some(*elem),
                TyKind::Vector(prim, _) => Some(types.prim(*prim)),
                TyKind::Tuple(_) | TyKind::Struct(_) => idx.and_then(|i| types.part(ty(0), i)),
                _ => None,
            };
            let fits = if op == Op::Extract { part == Some(result) } else { part == Some(ty(2)) && result == ty(0) };
            (fits && is_int(types, ty(1)))
                .then_some(())
                .ok_or("an index is an integer, a literal in range for tuples and structs, and parts have their types")
        }
        Op::Lea => {
            let idx = function.as_index(inst.args[1]);
            let part = types.pointee(ty(0)).and_then(|p| part_ty(types, p, idx));
            let space = |t| match types.kind(t) {
                TyKind::Ptr { space, .. } => Some(*space),
                _ => None,
            };
            let same_space = space(ty(0)) == space(result);
            (part.is_some() && part == types.pointee(result) && same_space && is_int(types, ty(1))).then_some(()).ok_or(
                "`lea` gives the address of a part, in its space, by an integer, a literal for tuples and structs",
            )
        }
        Op::Load => (types.pointee(ty(0)) == Some(result))
            .then_some(())
            .ok_or("a load's result has the type that the address points to"),
        Op::Atomic | Op::AtomicLoad => {
            let fits = types.is_atomic(result) && types.pointee(ty((op == Op::Atomic) as usize)) == Some(result);
            (fits && (op == Op::AtomicLoad || known(1))).then_some(()).ok_or(
                "an atomic operation gives what the address points to, a number or address, by a known operation",
            )
        }
        Op::Cmpxchg | Op::CmpxchgWeak => {
            let parts = (types.part(result, 0), types.part(result, 1), types.n_parts(result));
            let fits = parts == (Some(ty(1)), Some(types.bool()), Some(2)) && ty(1) == ty(2) && types.is_atomic(ty(1));
            fits.then_some(()).ok_or("`cmpxchg` gives what the address points to, a number or address, and a `bool`")
        }
        Op::Slot => types.pointee(result).map(|_| ()).ok_or("a slot is an address"),
        Op::Alloc => {
            let elem = types.pointee(result).filter(|&p| matches!(types.kind(p), TyKind::IndefArray(_)));
            (elem.is_some() && types.as_prim(ty(0)) == Some(Prim::I64))
                .then_some(())
                .ok_or("`alloc` takes an `i64` and gives the address of an indefinite array")
        }
        Op::Pext | Op::Pdep => {
            (ty(0) == result && ty(1) == result && types.lane_prim(result).is_some_and(Prim::is_int))
                .then_some(())
                .ok_or("moving bits takes and gives integers of one type")
        }
        Op::Bits => (types.as_vector(ty(0)).is_some_and(|(lane, _)| lane == Prim::Bool)
            && types.as_prim(result).is_some_and(Prim::is_int))
        .then_some(())
        .ok_or("`bits` makes an integer of a vector of bools"),
        Op::Popcount | Op::Clz | Op::Ctz => (ty(0) == result && types.lane_prim(result).is_some_and(Prim::is_int))
            .then_some(())
            .ok_or("a count of bits takes and gives an integer"),
        nyala_ir::unary_math!() => (ty(0) == result && types.lane_prim(result).is_some_and(Prim::is_float))
            .then_some(())
            .ok_or("a math function takes and gives a float"),
        Op::Scope => (types.as_prim(result) == Some(Prim::I32)).then_some(()).ok_or("`scope` gives an `i32`"),
        Op::Restrict => {
            (ty(0) == result && is_int(types, ty(1)) && function.as_bits(inst.args[2]).is_some_and(|k| k <= 1))
                .then_some(())
                .ok_or("`restrict` gives its address, of a scope and a kind, 0 or 1")
        }
        Op::Aligned => (ty(0) == result && is_int(types, ty(1)))
            .then_some(())
            .ok_or("`aligned` gives its address, and promises that an integer divides it"),
        Op::WorkItem => {
            let is_i32 = |t| types.as_prim(t) == Some(Prim::I32);
            (is_i32(ty(0)) && is_i32(ty(1)) && is_i32(result))
                .then_some(())
                .ok_or("a number of a work item is an `i32`")
        }
        Op::Store
        | Op::AtomicStore
        | Op::Fence
        | Op::Prefetch
        | Op::Pipeline
        | Op::Watch
        | Op::DebugValue
        | nyala_ir::annotation!() => Ok(()),
    };
    if let Err(rule) = rule {
        v.check(false, &format!("`{}`: {rule}", op.name()));
    }
}

fn verify_vector_op(v: &mut Verifier, op: VectorOp, inst: &Inst, result: Option<Ty>) {
    let (least, most) = op.arity();
    if !(least..=most).contains(&inst.args.len()) {
        return v.check(false, &format!("`{}` has {least} to {most} operands", op.name()));
    }
    v.check(result.is_some() == op.written().is_none(), "what writes has no result, and other operations have one");
    let (function, types) = (v.function, &v.module.types);
    let ty = |i: usize| function.ty(inst.args[i]);
    let vector = |ty: Ty| types.as_vector(ty);
    let is_u64 = |ty: Ty| types.as_prim(ty) == Some(Prim::U64);
    // Lane type and number of lanes of the vectors that the operation works on.
    let lanes = op.written().map(ty).or(result).and_then(vector);
    let is_mask = |ty: Ty| lanes.is_some_and(|(_, n)| vector(ty) == Some((Prim::Bool, n)));
    let has_mask = op.mask(&inst.args).is_none_or(|mask| is_mask(function.ty(mask)));
    v.check(has_mask, "a mask has a `bool` for each lane");
    let rule = match op {
        VectorOp::Load | VectorOp::Store => {
            let elem = types.pointee(ty(0)).map(|pointee| match types.kind(pointee) {
                TyKind::Array(elem, _) | TyKind::IndefArray(elem) => *elem,
                _ => pointee,
            });
            let fits = lanes.is_some_and(|(prim, _)| elem.and_then(|t| types.as_prim(t)) == Some(prim));
            fits.then_some(()).ok_or("the address is one of an element, or of an array of them")
        }
        VectorOp::Gather | VectorOp::Scatter => {
            let index = types.as_vector(ty(1));
            let fits = lanes
                .zip(index)
                .is_some_and(|((_, n), (prim, m))| n == m && matches!(prim, Prim::I32 | Prim::I64 | Prim::U64));
            let scale = types.as_prim(ty(2)) == Some(Prim::I64)
                && function.as_bits(inst.args[2]).is_some_and(|scale| scale as i64 >= 1);
            (types.pointee(ty(0)).is_some() && fits && scale)
                .then_some(())
                .ok_or("takes an address, an i32, i64 or u64 for each lane, and a literal i64 from 1")
        }
        VectorOp::MaskBits => {
            let mask = types.lane_prim(ty(0)) == Some(Prim::Bool) && types.as_vector(ty(0)).is_some();
            (mask && result.is_some_and(is_u64)).then_some(()).ok_or("takes a mask and gives a u64")
        }
        VectorOp::ExpandBits => (is_u64(ty(0)) && lanes.is_some_and(|(prim, _)| prim == Prim::Bool))
            .then_some(())
            .ok_or("takes a u64 and gives a mask"),
        VectorOp::Compress => (Some(ty(0)) == result && is_mask(ty(1)))
            .then_some(())
            .ok_or("takes a vector and a mask of as many lanes, and gives such a vector"),
    };
    if let Err(rule) = rule {
        v.check(false, &format!("`{}`: {rule}", op.name()));
    }
}

fn is_int(types: &Types, ty: Ty) -> bool {
    types.as_prim(ty).is_some_and(Prim::is_int)
}

fn verify_terminator(v: &mut Verifier, term: &Terminator) {
    let function = v.function;
    let tys = |args: &[Value]| args.iter().map(|&a| function.ty(a)).collect::<Vec<Ty>>();
    for edge in term.edges() {
        let params = tys(&function.block(edge.block).params);
        v.check(tys(&edge.args) == params, "a jump's arguments have the types of the block's parameters");
    }
    match term {
        Terminator::Branch { cond, .. } => {
            let fine = function.ty(*cond) == v.types().bool();
            v.check(fine, "a branch is decided by a `bool`");
        }
        Terminator::Return(args) => v.check(tys(args) == function.rets, "returned values have the results' types"),
        Terminator::TailCall { callee: Callee::Func(callee), args, .. } => {
            let Some(callee) = v.module.funcs.get(callee.idx()) else {
                return v.check(false, "a callee is a function of the module");
            };
            v.check(tys(args) == callee.params, "arguments have the types of the callee's parameters");
            v.check(callee.rets == function.rets, "a function called in tail position has the caller's results");
        }
        Terminator::TailCall { callee: Callee::Indirect(code), .. } => {
            let fine = *v.types().kind(function.ty(*code)) == TyKind::Code;
            v.check(fine, "an indirect callee is a code address");
        }
        Terminator::Jump(_) | Terminator::Unreachable => {}
    }
}
