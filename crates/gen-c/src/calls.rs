//! Calls: of functions, of code addresses, in tail position, of operations across lanes; and loops of `vectorize`.

use crate::expr::{Expr, Form, Prec};
use crate::function::{FunctionEmitter, Growth};
use crate::ops::numbers;
use crate::statements::{Loop, Node, Step};
use crate::{Result, bug};
use nyala_base::Id;
use nyala_flat::{Callee, Const, Def, Func, Function, Init, Inst, InstOp, Linkage, Module, Terminator, Value};
use nyala_ir::lanes::{PRAGMA, is_channel, printed};
use nyala_ir::{LaneOp, Op, Prim, Ty};

/// Adds the functions that a function refers to, also by initializers of globals it uses, which are marked.
pub(crate) fn references(module: &Module, function: &Function, globals: &mut [bool], out: &mut Vec<Func>) {
    let mut pending = Vec::new();
    for value in &function.values {
        match value.def {
            Def::Const(Const::Func(f) | Const::CFunc(f)) => out.push(f),
            Def::Const(Const::Global(g)) => pending.push(g),
            Def::Const(Const::Bits(_) | Const::Undef) | Def::Local => {}
        }
    }
    for block in &function.blocks {
        for inst in &block.insts {
            match inst.op {
                InstOp::Call(f) | InstOp::Vectorize(f, ..) | InstOp::Launch(f, _) => out.push(f),
                InstOp::Op(_) | InstOp::Vector(_) | InstOp::CallIndirect => {}
            }
        }
        if let Terminator::TailCall { callee: Callee::Func(f), .. } = block.term {
            out.push(f);
        }
    }
    while let Some(g) = pending.pop() {
        if std::mem::replace(&mut globals[g.idx()], true) {
            continue;
        }
        let mut inits = vec![&module.globals[g.idx()].init];
        while let Some(init) = inits.pop() {
            match init {
                Init::Parts(parts) => inits.extend(parts),
                Init::Global(other, _) => pending.push(*other),
                Init::Func(f) => out.push(*f),
                Init::Zero | Init::Undef | Init::Bits(_) | Init::Bytes(_) => {}
            }
        }
    }
}

/// Whether a function calls itself on every path to its end. Compilers take that for a fault, though a function that it
/// calls may leave by a continuation.
pub(crate) fn returns_by_recursion(function: &Function, this: Func) -> bool {
    let calls = |b: usize| function.blocks[b].insts.iter().any(|i| i.op == InstOp::Call(this));
    if !(0..function.blocks.len()).any(calls) {
        return false;
    }
    let mut seen = vec![false; function.blocks.len()];
    let mut work = vec![0];
    while let Some(b) = work.pop() {
        if calls(b) || std::mem::replace(&mut seen[b], true) {
            continue;
        }
        match &function.blocks[b].term {
            Terminator::Return(_) | Terminator::TailCall { .. } => return false,
            term => work.extend(term.edges().map(|e| e.block.idx())),
        }
    }
    true
}

/// For each function whether several lanes may execute it at once.
pub(crate) fn in_lanes(module: &Module) -> Vec<bool> {
    let mut found = vec![false; module.funcs.len()];
    let mut globals = vec![false; module.globals.len()];
    let all = module.funcs.iter().flat_map(|f| &f.blocks).flat_map(|b| &b.insts);
    let mut work: Vec<Func> = all
        .filter_map(|inst| match inst.op {
            InstOp::Vectorize(body, lanes, _) if lanes != 1 => Some(body),
            _ => None,
        })
        .collect();
    while let Some(f) = work.pop() {
        if !std::mem::replace(&mut found[f.idx()], true) {
            references(module, module.func(f), &mut globals, &mut work);
        }
    }
    found
}

/// Whether a function that several lanes may execute at once has operations across lanes.
pub(crate) fn lanes_meet(module: &Module) -> bool {
    let is_lane_operation = |f: Func| match &module.func(f).linkage {
        Linkage::Foreign(symbol) => LaneOp::of_symbol(symbol).is_some(),
        _ => false,
    };
    let in_lanes = in_lanes(module);
    let functions = module.funcs.iter().zip(in_lanes).filter(|f| f.1).map(|f| f.0);
    functions.flat_map(|f| &f.blocks).any(|b| {
        let in_insts = b.insts.iter().any(|i| matches!(i.op, InstOp::Call(f) if is_lane_operation(f)));
        in_insts || matches!(b.term, Terminator::TailCall { callee: Callee::Func(f), .. } if is_lane_operation(f))
    })
}

/// A call.
pub(crate) fn call(f: &mut FunctionEmitter, inst: &Inst) -> Result<()> {
    let Some(result) = inst.result else { return Err(bug("a call without a result")) };
    let (callee, args) = match inst.op {
        InstOp::Call(func) => (Callee::Func(func), &inst.args[..]),
        _ => (Callee::Indirect(inst.args[0]), &inst.args[1..]),
    };
    if let Callee::Func(func) = callee
        && let Linkage::Foreign(symbol) = &f.e.module.func(func).linkage
        && let Some((op, scope)) = LaneOp::of_symbol(symbol)
    {
        return match f.e.dialect.kernels {
            Some(kernels) if !kernels.lanes.is_empty() || op == LaneOp::Shared => {
                crate::devices::lanes(f, &kernels, (op, scope), inst, result)
            }
            _ => lane_operation(f, op, inst, result),
        };
    }
    if let Callee::Func(func) = callee
        && !f.e.dialect.channel.is_empty()
        && let Linkage::Foreign(symbol) = &f.e.module.func(func).linkage
        && is_channel(symbol)
    {
        return crate::devices::channel(f, symbol, args);
    }
    if let Callee::Func(func) = callee
        && !f.e.dialect.pipeline.is_empty()
        && f.e.module.func(func).is_foreign()
        && f.e.module.func(func).symbol() == Some(PRAGMA)
    {
        return crate::devices::pragma(f, args);
    }
    if let Callee::Func(func) = callee
        && !f.e.dialect.printf.is_empty()
        && let Linkage::Foreign(symbol) = &f.e.module.func(func).linkage
        && let Some(kind) = printed(symbol)
    {
        return crate::devices::print(f, kind, args);
    }
    let ty = f.ty(result);
    let e = called(f, callee, args, ty)?;
    f.flush(true)?;
    f.define(result, Expr { must: true, ..e }, inst.op)
}

/// The expression of a call, whose result has this type.
fn called(f: &mut FunctionEmitter, callee: Callee, args: &[Value], ret: Ty) -> Result<Expr> {
    let (code, args) = match (callee, args) {
        (Callee::Indirect(v), _) => (Some(v), args),
        (Callee::Func(func), [address, args @ ..]) if f.e.module.func(func).is_call_of_address() => {
            (Some(*address), args)
        }
        (Callee::Func(_), _) => (None, args),
    };
    let code = code.map(|v| f.value(v)).transpose()?;
    let mut exprs = Vec::new();
    let mut tys = Vec::new();
    for &a in args {
        if f.is_void(a) {
            continue;
        }
        let raw = f.raw(a)?;
        // An aggregate in braces needs its type, a number is converted to the parameter's.
        let with_suffix = matches!(raw.form, Form::Braces(_));
        exprs.push(f.e.rendered(raw, with_suffix)?);
        tys.push(f.ty(a));
    }
    let refs: Vec<&Expr> = code.iter().chain(&exprs).collect();
    let texts: Vec<&str> = exprs.iter().map(|e| e.text.as_str()).collect();
    let name = match (callee, &code) {
        (Callee::Func(func), None) => {
            let function = f.e.module.func(func);
            if matches!(function.linkage, Linkage::Asm(_)) {
                return Err(f.limitation("assembly", "write it in Impala"));
            }
            f.e.func_name(func).map_err(|d| f.placed(d))?
        }
        (_, Some(code)) => {
            let ret = f.type_name(ret)?;
            let mut params = Vec::new();
            for &ty in &tys {
                params.push(f.type_name(ty)?);
            }
            let params = if params.is_empty() { "void".to_string() } else { params.join(", ") };
            format!("(({ret} (*)({params})){})", code.at(Prec::Unary))
        }
        (Callee::Indirect(_), None) => return Err(bug("a call of nothing")),
    };
    Ok(Expr::atom(format!("{name}({})", texts.join(", "))).of(&refs))
}

/// A call in tail position that is no recursion: an ordinary one.
pub(crate) fn tail_call(f: &mut FunctionEmitter, callee: Callee, args: &[Value]) -> Result<()> {
    let rets = match callee {
        Callee::Func(func) => f.e.module.func(func).rets.clone(),
        Callee::Indirect(_) => f.function.rets.clone(),
    };
    let ret = f.e.result_ty(&rets)?;
    let e = called(f, callee, args, ret)?;
    f.flush(true)?;
    if f.e.types.is_void(ret) {
        f.statement(e.text.clone(), &[&e]);
        f.give_back(None);
    } else {
        f.give_back(Some(e));
    }
    Ok(())
}

/// An operation across lanes where there is a single lane.
fn lane_operation(f: &mut FunctionEmitter, op: LaneOp, inst: &Inst, result: Value) -> Result<()> {
    let func = f.func;
    if f.e.in_lanes[func.idx()] || op == LaneOp::Shared {
        let what = format!("`{}`, an operation across lanes,", op.name());
        return Err(f.limitation(&what, "exchange the values by memory, between two loops"));
    }
    let first = match inst.args.first() {
        Some(&v) => Some(f.raw(v)?),
        None => None,
    };
    let e = match (op, first) {
        (LaneOp::Barrier, _) => return Ok(()),
        (LaneOp::Id, _) => f.e.literal(Prim::I32, 0)?,
        (LaneOp::Width, _) => f.e.literal(Prim::I32, 1)?,
        (LaneOp::Count | LaneOp::Ballot, Some(x)) => {
            let to = f.e.module.types.as_prim(f.ty(result)).unwrap_or(Prim::I32);
            crate::ops::casts::cast(f.e, Prim::Bool, to, x)?
        }
        (_, Some(x)) => x,
        (_, None) => return Err(bug("an operation across lanes of nothing")),
    };
    f.define(result, e, InstOp::Op(Op::Bitcast))
}

/// Runs a body for each number of a range, one after the other.
pub(crate) fn vectorize(f: &mut FunctionEmitter, body: Func, args: &[Value]) -> Result<()> {
    let Some(prim) = f.e.module.types.as_prim(f.ty(args[0])) else { return Err(bug("`vectorize` over no numbers")) };
    let mut exprs = Vec::new();
    for &a in args {
        // An argument that is evaluated in each round must give one value.
        let is_void = f.is_void(a);
        let e = f.raw(a)?;
        let plain = f.e.rendered(e, false)?;
        exprs.push(if plain.must || plain.reads { f.spill(plain, f.ty(a))? } else { plain });
        if is_void {
            exprs.pop();
        }
    }
    f.flush(true)?;
    let ty = f.ty(args[0]);
    let (name, var) = f.counter(ty)?;
    let i = Expr::var(&name, var);
    let before = numbers::compare(f.e, Op::Lt, prim, &i, &exprs[1])?;
    let growth = Growth { op: Op::Add, by: 1, test: Some((Op::Lt, true)) };
    let step = numbers::step(f.e, &i, prim, growth)?;
    let mut call_args = vec![i.clone()];
    call_args.extend(exprs[2..].iter().cloned());
    let refs: Vec<&Expr> = call_args.iter().collect();
    let called = crate::expr::apply(&f.e.func_name(body)?, &refs);
    let body = vec![Node::Do { text: called.text.clone(), vars: called.vars }];
    f.push(Node::Loop(Box::new(Loop {
        init: Some((var, exprs[0].clone())),
        before: Some(before),
        after: None,
        step: Some(Step { var, text: step, vars: vec![var] }),
        body,
    })));
    Ok(())
}
