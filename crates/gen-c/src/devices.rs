//! Operations of kernels: the work item's place in the grid, memory of the block, barriers and exchanges among lanes, and
//! atomic operations by the language's own functions. Separate from the emitter; the words come from the dialect
//! ([`Kernels`]).

use crate::dialect::{Atomic, Interface, Kernels, Parameter, Port, Role};
use crate::emit::Emitter;
use crate::expr::{Expr, Prec, apply};
use crate::function::FunctionEmitter;
use crate::ops::casts::reader;
use crate::statements::Node;
use crate::{Result, bug};
use nyala_base::Id;
use nyala_base::diagnostics::{bad_shared_memory, must_be_known};
use nyala_flat::{Const, Func, Function, Init, Inst, InstOp, Linkage, Module, Value};
use nyala_ir::lanes::{CHANNEL_READ, is_channel};
use nyala_ir::scalar::{ATOMICS, ORDERS};
use nyala_ir::{LaneOp, Op, Prim, Scope, Ty, TyKind, WorkItem, layout};
use rustc_hash::FxHashMap;

/// The number of the work item in the grid, where a value is computed from those of its block and its place in that.
pub(crate) fn global_id(f: &FunctionEmitter, value: Value) -> Option<Expr> {
    let ids = f.e.dialect.kernels.as_ref()?.global_ids?;
    let operands = |v: Value, op: Op| f.definition(v).filter(|inst| inst.op == InstOp::Op(op)).map(|inst| &inst.args);
    let number = |v: Value| {
        let args = operands(v, Op::WorkItem)?;
        let what = WorkItem::ALL.get(f.function.as_bits(args[0])? as usize)?;
        Some((*what, f.function.as_bits(args[1])?))
    };
    let sum = operands(value, Op::Add)?;
    let (WorkItem::Thread, axis) = number(sum[1])? else { return None };
    let product = operands(sum[0], Op::Mul)?;
    let is_block = number(product[0]) == Some((WorkItem::Block, axis));
    let is_size = match f.function.as_bits(product[1]) {
        Some(bits) => {
            matches!(f.function.linkage, Linkage::Kernel(_, sizes) if u64::from(sizes[axis as usize]) == bits)
        }
        None => number(product[1]) == Some((WorkItem::BlockSize, axis)),
    };
    (is_block && is_size).then(|| Expr::atom(ids[axis as usize]))
}

/// Memory of the block, which only a kernel has.
fn shared(f: &mut FunctionEmitter, kernels: &Kernels, inst: &Inst, result: Value) -> Result<()> {
    let TyKind::Ptr { pointee, .. } = *f.e.module.types.kind(f.ty(result)) else { return Err(bug("no address")) };
    let elem = match f.e.module.types.kind(pointee) {
        TyKind::IndefArray(elem) | TyKind::Array(elem, _) => *elem,
        _ => pointee,
    };
    let size = layout::size_align(&f.e.module.types, elem).map_or(1, |s| s.0).max(1);
    let Some(bytes) = f.function.as_bits(inst.args[0]) else {
        return Err(Box::new(bad_shared_memory::unknown(f.span)));
    };
    let declared = f.declared(elem)?;
    let wanted = f.function.name(result).to_string();
    let name = f.local_name(if wanted.is_empty() { "shared" } else { &wanted });
    f.declare(format!("{}{declared}{name}[{}];", kernels.shared, bytes / size));
    f.set(result, Expr::atom(name));
    Ok(())
}

/// An operation among the work items of a block or subgroup.
pub(crate) fn lanes(
    f: &mut FunctionEmitter,
    kernels: &Kernels,
    (op, scope): (LaneOp, Scope),
    inst: &Inst,
    result: Value,
) -> Result<()> {
    if op == LaneOp::Shared {
        return shared(f, kernels, inst, result);
    }
    let Some((.., template)) = kernels.lanes.iter().find(|l| (l.0, l.1) == (op, scope)) else {
        let among = if scope == Scope::Block { "the work items of a block" } else { "the lanes of a subgroup" };
        let what = format!("`{}`, an operation among {among},", op.name());
        return Err(f.limitation(&what, EXCHANGE));
    };
    let mut args = Vec::new();
    for &arg in &inst.args {
        args.push(f.value(arg)?);
    }
    let text = match op {
        LaneOp::Get => get(f, kernels, template, inst, &args)?,
        _ => {
            let mut text = template.to_string();
            for (place, e) in ["{0}", "{1}"].into_iter().zip(&args) {
                text = text.replace(place, &e.text);
            }
            if text.contains(VOTES) { text.replace(VOTES, &f.votes(kernels.votes)) } else { text }
        }
    };
    for (name, definition) in kernels.functions.iter().filter(|(name, _)| text.contains(&format!("{name}("))) {
        f.e.helper((*name).into(), |_, _| Ok(definition.to_string()))?;
    }
    f.flush_all()?;
    let refs: Vec<&Expr> = args.iter().collect();
    if op == LaneOp::Barrier {
        f.statement(text, &refs);
        return Ok(());
    }
    let e = Expr::new(text, Prec::Unary).of(&refs);
    // Every lane takes part, also if it has no use for the result.
    if f.n_uses(result) == 0 {
        f.statement(e.text.clone(), &[&e]);
        return Ok(());
    }
    f.define(result, Expr { must: true, ..e }, inst.op)
}

/// Says every how many cycles a round of the loop begins.
pub(crate) fn pipeline(f: &mut FunctionEmitter, interval: Value) -> Result<()> {
    let line = f.e.dialect.pipeline;
    if line.is_empty() {
        return Ok(());
    }
    let Some(n) = f.function.as_bits(interval) else {
        return Err(Box::new(must_be_known::error(f.span, "the interval of `pipeline`")));
    };
    f.flush_all()?;
    f.push(Node::Do { text: line.replace("{0}", &n.to_string()), vars: Vec::new() });
    Ok(())
}

/// A line for the tools, as the program says it.
pub(crate) fn pragma(f: &mut FunctionEmitter, args: &[Value]) -> Result<()> {
    let text = args.first().and_then(|&text| known_text(f, text));
    let text = text.ok_or_else(|| Box::new(must_be_known::error(f.span, "the text of a pragma")))?;
    if text.contains('\n') {
        return Err(f.limitation("a pragma of several lines", "write several pragmas"));
    }
    f.flush_all()?;
    f.push(Node::Do { text: format!("#pragma {text}"), vars: Vec::new() });
    Ok(())
}

/// Structs that stand for channels, with the types of their elements.
pub(crate) fn channels(module: &Module) -> FxHashMap<Ty, Ty> {
    let mut found = FxHashMap::default();
    for f in module.funcs.iter().filter(|f| f.is_foreign() && f.symbol().is_some_and(is_channel)) {
        let pointee = |i: usize| f.params.get(i).and_then(|&ty| module.types.pointee(ty));
        found.extend(pointee(1).zip(pointee(2)));
    }
    found
}

/// Reads or writes a channel: `args` are the place in the program, the channel, the element's address, and its size.
pub(crate) fn channel(f: &mut FunctionEmitter, symbol: &str, args: &[Value]) -> Result<()> {
    let [_, channel, at, _] = *args else { return Err(bug("a channel without arguments")) };
    let ty = f.pointee(at)?;
    let channel = f.value(channel)?;
    f.complete(ty)?;
    let place = crate::ops::aggregates::place(f, at, ty)?;
    f.flush_all()?;
    let text = match symbol == CHANNEL_READ {
        true => format!("{} = {}.read()", place.text, channel.text),
        false => format!("{}.write({})", channel.text, place.text),
    };
    f.statement(text, &[&channel, &place]);
    Ok(())
}

/// A call of `printf` under construction: the statement's place, its format without quotes, its arguments.
pub(crate) struct Print {
    at: (usize, usize),
    format: String,
    args: Vec<Expr>,
}

/// Prints a value. Values that are printed one right after the other are printed by one call, so that those of other work items
/// do not come in between.
pub(crate) fn print(f: &mut FunctionEmitter, kind: &str, args: &[Value]) -> Result<()> {
    let conversion = f.e.dialect.printf.iter().find(|p| p.0 == kind);
    let (Some(&(_, conversion, ty)), [value]) = (conversion, args) else {
        return Err(bug(format!("printing `{kind}`")));
    };
    let mut arg = None;
    let format = match kind {
        "string" => {
            let text = known_text(f, *value);
            let text = text.ok_or_else(|| Box::new(must_be_known::error(f.span, "a text that a kernel prints")))?;
            let quoted = crate::globals::quoted(text.replace('%', "%%").as_bytes());
            quoted[1..quoted.len() - 1].to_string()
        }
        "bool" => {
            let holds = f.value(*value)?;
            if conversion.is_empty() {
                f.flush_all()?;
                let text = format!("if ({}) printf(\"true\"); else printf(\"false\")", holds.text);
                f.statement(text, &[&holds]);
                return Ok(());
            }
            let text = format!("{} ? \"true\" : \"false\"", holds.at(Prec::LogicalOr));
            arg = Some(Expr::new(text, Prec::Conditional).of(&[&holds]));
            conversion.to_string()
        }
        "char" if f.function.as_bits(*value).is_some_and(|c| matches!(c, 9 | 10 | 32..=126)) => {
            let c = f.function.as_bits(*value).unwrap_or(0) as u8;
            let quoted = crate::globals::quoted(&[c]);
            if c == b'%' { "%%".into() } else { quoted[1..quoted.len() - 1].to_string() }
        }
        _ => {
            let own = f.e.module.types.as_prim(f.ty(*value)).and_then(|prim| f.e.dialect.prim(prim));
            let value = f.value(*value)?;
            arg = Some(if own == Some(ty) { value } else { crate::expr::cast(ty, &value) });
            conversion.to_string()
        }
    };
    f.flush_all()?;
    let mut made = match f.print.take() {
        Some(before) if f.is_last(before.at) && before.format.len() < MAX_FORMAT => {
            f.drop_last();
            before
        }
        _ => Print { at: (0, 0), format: String::new(), args: Vec::new() },
    };
    made.format.push_str(&format);
    made.args.extend(arg);
    let texts: String = made.args.iter().map(|a| format!(", {}", a.text)).collect();
    let refs: Vec<&Expr> = made.args.iter().collect();
    f.statement(format!("printf(\"{}\"{texts})", made.format), &refs);
    made.at = f.last();
    f.print = Some(made);
    Ok(())
}

/// The remedy for an operation among lanes that is missing.
const EXCHANGE: &str = "exchange the values through memory of the block, with barriers";

/// Longer formats are not added to.
const MAX_FORMAT: usize = 200;

/// The zero-terminated text at an address, if it is known.
fn known_text(f: &FunctionEmitter, mut at: Value) -> Option<String> {
    let global = loop {
        if let Some(Const::Global(global)) = f.function.as_const(at) {
            break global;
        }
        let inst = f.definition(at).filter(|inst| inst.op == InstOp::Op(Op::Bitcast))?;
        at = inst.args[0];
    };
    let Init::Bytes(bytes) = &f.e.module.globals[global.idx()].init else { return None };
    let text = &bytes[..bytes.iter().position(|&b| b == 0)?];
    String::from_utf8(text.to_vec()).ok()
}

/// How a kernel is called, and what it takes, as `params` declare it.
pub(crate) fn interface(e: &mut Emitter, func: Func, params: &[String]) -> Result<Interface> {
    let calls = |f: &Function, what: &dyn Fn(Func) -> bool| {
        f.blocks.iter().flat_map(|b| &b.insts).any(|i| matches!(i.op, InstOp::Call(callee) if what(callee)))
    };
    let is_kernel = |f: &Function| matches!(f.linkage, Linkage::Kernel(..));
    let module = e.module;
    let function = module.func(func);
    let is_part = || module.funcs.iter().any(|f| is_kernel(f) && calls(f, &|callee| callee == func));
    let role = match () {
        () if calls(function, &|callee| is_kernel(module.func(callee))) => Role::Whole,
        () if is_part() => Role::Part,
        () => Role::Alone,
    };
    let tys: Vec<Ty> = function.params.iter().copied().filter(|&ty| !e.types.is_void(ty)).collect();
    let mut list = Vec::new();
    for (declared, ty) in params.iter().zip(tys) {
        let name = declared.rsplit(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or_default();
        let (kind, ty) = match *module.types.kind(ty) {
            TyKind::Ptr { pointee, .. } => match e.types.channels.get(&pointee).copied() {
                Some(elem) => (Port::Channel, elem),
                None => (Port::Memory, ty),
            },
            _ => (Port::Value, ty),
        };
        list.push(Parameter { name: name.into(), ty: e.types.name(ty, &mut e.names)?, kind });
    }
    Ok(Interface { name: function.symbol().unwrap_or_default().into(), params: list, role })
}

/// The variable by which a block votes, in the words for operations.
const VOTES: &str = "{votes}";

/// The value that another lane has. Functions of the languages take numbers of 32 and 64 bits.
fn get(f: &mut FunctionEmitter, kernels: &Kernels, template: &str, inst: &Inst, args: &[Expr]) -> Result<String> {
    let Some(prim) = f.e.module.types.as_prim(f.ty(inst.args[0])) else {
        return Err(f.limitation("a value of another lane that is no number", "get its numbers one by one"));
    };
    let own = crate::ops::halves::in_text(f.e, prim);
    let wide = match own {
        Prim::Bool | Prim::I8 | Prim::I16 => Prim::I32,
        Prim::U8 | Prim::U16 => Prim::U32,
        own => own,
    };
    let (name, wide_name) = (f.e.types.prim(own)?, f.e.types.prim(wide)?);
    let value = if own == wide { args[0].clone() } else { crate::expr::cast(wide_name, &args[0]) };
    let got = match kernels.get {
        None => template.replace("{0}", &value.text).replace("{1}", &args[1].text),
        Some(body) => {
            let int = f.e.types.prim(Prim::I32)?;
            let body = body.replace("T ", &format!("{wide_name} "));
            let function = f.e.helper(format!("get_{}", wide.name()), |_, helper| {
                Ok(format!("{wide_name} {helper}({wide_name} v, {int} lane) {{\n{body}\n}}"))
            })?;
            apply(&function, &[&value, &args[1]]).text
        }
    };
    Ok(if own == wide { got } else { format!("({name}){got}") })
}

/// The space's word in names of helper functions.
fn space_word(space: u8) -> &'static str {
    match space {
        3 => "local",
        5 => "private",
        _ => "global",
    }
}

/// The function for an atomic operation on numbers of a type, and the type that it takes: of the same width.
fn function(kernels: &Kernels, what: &str, prim: Prim) -> Option<(&'static str, Prim)> {
    let fits = |a: &&Atomic| a.0 == what && a.1.bits() == prim.bits() && a.1.is_float() == prim.is_float();
    let own = kernels.atomics.iter().find(|a| fits(a) && a.1 == prim);
    own.or_else(|| kernels.atomics.iter().find(fits)).map(|a| (a.2, a.1))
}

/// An atomic operation. Devices have relaxed ones: stronger orders get fences around them.
pub(crate) fn atomic(f: &mut FunctionEmitter, kernels: &Kernels, op: Op, inst: &Inst) -> Result<()> {
    let args = &inst.args;
    let scope = op.scope_operand().and_then(|i| f.function.as_bits(args[i - 1]));
    let system = if scope == Some(0) { kernels.of_system } else { "" };
    let fence = match kernels.fence.strip_suffix("()") {
        Some(name) => format!("{name}{system}()"),
        None => kernels.fence.to_string(),
    };
    let order_at = op.literal_operands().start - 1;
    let order = f.function.as_bits(args[order_at]).and_then(|n| ORDERS.get(n as usize).copied().flatten());
    let order = order.ok_or_else(|| bug("a memory order that is not known"))?;
    let is_ordered = !fence.is_empty() && matches!(order, "acquire" | "release" | "acq_rel" | "seq_cst");
    // A single work item is alone, unless other kernels run at the same time.
    if kernels.atomics.is_empty() && !f.e.types.channels.is_empty() {
        let remedy = "let the kernels exchange values by channels only";
        return Err(f.limitation("an atomic operation in a program with channels", remedy));
    }
    if op == Op::Fence {
        f.flush_all()?;
        if is_ordered {
            f.statement(fence.clone(), &[]);
        }
        return Ok(());
    }
    let at = op.writes().map_or(0, |w| w.0 - 1);
    let TyKind::Ptr { pointee: ty, space } = *f.e.module.types.kind(f.ty(args[at])) else {
        return Err(bug("no address"));
    };
    let prim = f.e.module.types.as_prim(ty).filter(|p| p.bits() >= 32);
    let Some(prim) = prim else {
        let ty = f.e.module.types.display(ty);
        let what = format!("an atomic operation on `{ty}`");
        return Err(f.limitation(&what, "use a number of 32 or 64 bits"));
    };
    let bits = if prim.bits() == 64 { Prim::U64 } else { Prim::U32 };
    let qualifier = f.e.dialect.space(space);
    let word = space_word(space);
    let name = f.e.types.prim(prim)?;
    let address = f.value(args[at])?;
    let cast = |volatile: &str, to: &str, e: &Expr| crate::expr::cast(&format!("{volatile}{qualifier}{to} *"), e);
    let function_takes = kernels.atomic_place;
    if is_ordered {
        f.flush_all()?;
        f.statement(fence.clone(), &[]);
    }
    let e = match op {
        Op::AtomicStore => {
            let value = f.value(args[1])?;
            f.flush_all()?;
            let place = format!("*{} = {}", cast("volatile ", name, &address).at(Prec::Unary), value.text);
            f.statement(place, &[&address, &value]);
            if is_ordered {
                f.statement(fence.clone(), &[]);
            }
            return Ok(());
        }
        Op::AtomicLoad => {
            let place = cast("volatile ", name, &address);
            Expr::new(format!("*{}", place.at(Prec::Unary)), Prec::Unary).of(&[&place])
        }
        Op::Atomic => {
            let what = f.function.as_bits(args[0]).and_then(|n| ATOMICS.get(n as usize));
            let what = *what.ok_or_else(|| bug("no such atomic operation"))?;
            let value = f.value(args[2])?;
            match function(kernels, what, prim) {
                Some((function, of)) => {
                    let of_name = f.e.types.prim(of)?;
                    let (place, value) = match of == prim {
                        true => (address, value),
                        false => (cast(function_takes, of_name, &address), crate::expr::cast(of_name, &value)),
                    };
                    let e = apply(&format!("{function}{system}"), &[&place, &value]);
                    if of == prim { e } else { crate::expr::cast(name, &e) }
                }
                None => {
                    let helper = updated(f, kernels, what, (prim, bits), (&qualifier, word), system)?;
                    apply(&helper, &[&address, &value])
                }
            }
        }
        _ => {
            let (expected, new) = (f.value(args[1])?, f.value(args[2])?);
            let Some(result) = inst.result else { return Err(bug("`cmpxchg` without a result")) };
            let pair = f.type_name(f.ty(result))?;
            let helper = exchange(f, kernels, (prim, bits), (&qualifier, word), &pair, system)?;
            apply(&helper, &[&address, &expected, &new])
        }
    };
    f.flush_all()?;
    let e = Expr { must: true, ..e };
    let Some(result) = inst.result else { return Err(bug("an atomic operation without a result")) };
    // An atomic operation is one statement: what it gives is often not used.
    match f.n_uses(result) {
        0 => {
            let plain = e.text.strip_prefix(&format!("({name})"));
            let text = plain.unwrap_or(&e.text).to_string();
            f.statement(text, &[&e]);
        }
        _ => f.define(result, e, inst.op)?,
    }
    if is_ordered {
        f.flush_all()?;
        f.statement(fence.clone(), &[]);
    }
    Ok(())
}

/// How a number is read as its bits, and the bits as the number.
fn converters(f: &mut FunctionEmitter, prim: Prim, bits: Prim) -> Result<(String, String)> {
    if prim.is_float() {
        let (own, bits) = (f.e.module.types.prim(prim), f.e.module.types.prim(bits));
        return Ok((reader(f.e, own, bits)?, reader(f.e, bits, own)?));
    }
    Ok((format!("({})", f.e.types.prim(bits)?), format!("({})", f.e.types.prim(prim)?)))
}

/// The function that compares and exchanges numbers of 32 or 64 bits.
fn exchanger(kernels: &Kernels, bits: Prim) -> Result<&'static str> {
    function(kernels, "cmpxchg", bits).map(|x| x.0).ok_or_else(|| bug("no `cmpxchg`"))
}

/// An operation that the language has no function for: tried until nobody comes in between.
fn updated(
    f: &mut FunctionEmitter,
    kernels: &Kernels,
    what: &str,
    (prim, bits): (Prim, Prim),
    (qualifier, word): (&str, &str),
    system: &str,
) -> Result<String> {
    let (name, bits_name) = (f.e.types.prim(prim)?, f.e.types.prim(bits)?);
    let least = |f: &mut FunctionEmitter, op: Op| crate::ops::math::lesser(f.e, op, prim);
    let new = match what {
        "xchg" => "v".to_string(),
        "nand" => "~(old & v)".into(),
        "fadd" => "old + v".into(),
        "fsub" => "old - v".into(),
        "fmax" => format!("{}(old, v)", least(f, Op::Fmax)?),
        "fmin" => format!("{}(old, v)", least(f, Op::Fmin)?),
        "sub" => format!("({name})(({bits_name})old - ({bits_name})v)"),
        "uinc_wrap" => format!("({bits_name})old >= ({bits_name})v ? 0 : old + 1"),
        "udec_wrap" => format!("old == 0 || ({bits_name})old > ({bits_name})v ? v : old - 1"),
        "add" => format!("({name})(({bits_name})old + ({bits_name})v)"),
        "and" => "old & v".into(),
        "or" => "old | v".into(),
        "xor" => "old ^ v".into(),
        "max" => "old > v ? old : v".into(),
        "min" => "old < v ? old : v".into(),
        "umax" => format!("({bits_name})old > ({bits_name})v ? old : v"),
        "umin" => format!("({bits_name})old < ({bits_name})v ? old : v"),
        _ => return Err(bug(format!("`atomic` operation `{what}` on `{}`", prim.name()))),
    };
    if kernels.atomics.is_empty() {
        return f.e.helper(format!("{what}_{}", prim.name()), |_, helper| {
            Ok(format!(
                "{name} {helper}({name} *at, {name} v) {{\n    {name} old = *at;\n    *at = {new};\n    return old;\n}}"
            ))
        });
    }
    let (to_bits, from_bits) = converters(f, prim, bits)?;
    let (exchange, place) = (exchanger(kernels, bits)?, kernels.atomic_place);
    f.e.helper(format!("{what}_{}_{word}{system}", prim.name()), |_, helper| {
        Ok(format!(
            "{name} {helper}(volatile {qualifier}{name} *at, {name} v) {{
    {name} old;
    {bits_name} seen;
    do {{
        old = *at;
        {name} new_ = {new};
        seen = {exchange}{system}(({place}{qualifier}{bits_name} *)at, {to_bits}(old), {to_bits}(new_));
    }} while (seen != {to_bits}(old));
    return {from_bits}(seen);
}}"
        ))
    })
}

/// Compares and exchanges: the old value, and whether it was the expected one. Floats are compared by their bits.
fn exchange(
    f: &mut FunctionEmitter,
    kernels: &Kernels,
    (prim, bits): (Prim, Prim),
    (qualifier, word): (&str, &str),
    pair: &str,
    system: &str,
) -> Result<String> {
    let (name, bits_name) = (f.e.types.prim(prim)?, f.e.types.prim(bits)?);
    let (to_bits, from_bits) = converters(f, prim, bits)?;
    if kernels.atomics.is_empty() {
        return f.e.helper(format!("exchange_{}", prim.name()), |_, helper| {
            Ok(format!(
                "{pair} {helper}({name} *at, {name} expected, {name} wanted) {{
    {name} old = *at;
    {pair} result = {{old, {to_bits}(old) == {to_bits}(expected)}};
    if ({to_bits}(old) == {to_bits}(expected)) *at = wanted;
    return result;
}}"
            ))
        });
    }
    let (exchange, place) = (exchanger(kernels, bits)?, kernels.atomic_place);
    f.e.helper(format!("exchange_{}_{word}{system}", prim.name()), |_, helper| {
        Ok(format!(
            "{pair} {helper}(volatile {qualifier}{name} *at, {name} expected, {name} wanted) {{
    {bits_name} seen = {exchange}{system}(({place}{qualifier}{bits_name} *)at, {to_bits}(expected), {to_bits}(wanted));
    {pair} result = {{{from_bits}(seen), seen == {to_bits}(expected)}};
    return result;
}}"
        ))
    })
}
