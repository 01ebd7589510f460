//! Panics in kernels for devices. A device cannot end the program, so the first work item that panics notes it in memory
//! that the runtime looks at when the program waits for the device; then the work item ends.
//!
//! ```text
//! call nyala_panic_at(place, text)       r: (i32, bool) = cmpxchg(fault, 0, 2, …)        the second panic of the kernel
//! unreachable                            first: bool = extract(r, 1)
//!                                        branch first, note(), end()
//!                                        note(): store(fault + 1, block x) …; jump end()
//!                                        end(): return()
//! ```

use nyala_base::{Id, Span};
use nyala_flat::*;
use nyala_ir::scalar::{ORDERS, scope_of_name};
use nyala_ir::{Op, Prim, Ty, TyKind, Types, WorkItem};

/// The place and the text of a panic, as far as they are known.
pub(super) type Panic = [Option<GlobalId>; 2];

/// The functions that end the program with a message.
pub(super) fn is_panic(module: &Module, inst: &Inst) -> bool {
    let InstOp::Call(callee) = inst.op else { return false };
    matches!(&module.func(callee).linkage, Linkage::Foreign(symbol) if matches!(&**symbol, "nyala_panic" | "nyala_panic_at"))
}

/// Replaces panics in a kernel. Returns the kernel's new parameter, the address of the notes, and the panics in the order
/// of their numbers, from 1; `None` if the kernel has none. The kernel must not call functions that panic.
pub(super) fn note_panics(
    types: &mut Types,
    function: &mut Function,
    is_panic: &dyn Fn(&Inst) -> bool,
) -> Option<(Value, Vec<Panic>)> {
    let i32 = types.i32();
    let numbers = types.indef_array(i32);
    let address = types.intern(TyKind::Ptr { pointee: numbers, space: super::spaces::GLOBAL });
    let fault = function.new_value(address, "fault");
    let mut panics = Vec::new();
    let mut b = 0;
    while b < function.blocks.len() {
        if let Some(at) = function.blocks[b].insts.iter().position(is_panic) {
            let call = function.blocks[b].insts[at].clone();
            function.blocks[b].insts.truncate(at);
            // The place comes first, if there is one.
            let text = call.args.last().and_then(|&a| global(function, a));
            let place = (call.args.len() > 1).then(|| global(function, call.args[0])).flatten();
            panics.push([place, text]);
            note(types, function, b, fault, panics.len() as u64, call.span);
        }
        b += 1;
    }
    if panics.is_empty() { None } else { Some((fault, panics)) }
}

/// The global whose address a value is.
fn global(function: &Function, mut value: Value) -> Option<GlobalId> {
    loop {
        if let Some(Const::Global(global)) = function.as_const(value) {
            return Some(global);
        }
        let insts = function.blocks.iter().flat_map(|b| &b.insts);
        let inst = insts.into_iter().find(|inst| inst.result == Some(value))?;
        match inst.op {
            InstOp::Op(Op::Bitcast) => value = inst.args[0],
            _ => return None,
        }
    }
}

/// Ends a block with the note of a panic.
fn note(types: &mut Types, function: &mut Function, b: usize, fault: Value, number: u64, span: Span) {
    let (i32, bool_ty) = (types.i32(), types.bool());
    let TyKind::Ptr { space, .. } = *types.kind(function.ty(fault)) else { return };
    let place_ty = types.intern(TyKind::Ptr { pointee: i32, space });
    let pair = types.tuple(&[i32, bool_ty]);
    let i64 = types.prim(Prim::I64);
    let inst = |function: &mut Function, op: Op, args: &[Value], ty: Option<Ty>| {
        let result = ty.map(|ty| function.new_value(ty, ""));
        (Inst { op: InstOp::Op(op), args: Args::from_slice(args), result, span, fast: false }, result)
    };
    let literal = |function: &mut Function, n: u64| function.constant(Const::Bits(n), i32);
    let place = |function: &mut Function, insts: &mut Vec<Inst>, at: u64| {
        let idx = function.constant(Const::Bits(at), i64);
        let (made, result) = inst(function, Op::Lea, &[fault, idx], Some(place_ty));
        insts.push(made);
        result.unwrap_or(fault)
    };
    let mut first = Vec::new();
    let at = place(function, &mut first, 0);
    let relaxed = ORDERS.iter().position(|o| *o == Some("monotonic")).unwrap_or(0) as u64;
    let numbers = [0, number, relaxed, relaxed, scope_of_name("device")].map(|n| literal(function, n));
    let args = [&[at][..], &numbers].concat();
    let (exchange, result) = inst(function, Op::Cmpxchg, &args, Some(pair));
    first.push(exchange);
    let one = function.constant(Const::Bits(1), i64);
    let (extract, is_first) = inst(function, Op::Extract, &[result.unwrap_or(at), one], Some(bool_ty));
    first.push(extract);
    let mut notes = Vec::new();
    let whats = [WorkItem::Block, WorkItem::Thread].into_iter().flat_map(|what| (0..3).map(move |axis| (what, axis)));
    for (n, (what, axis)) in whats.enumerate() {
        let args = [what.number(), axis].map(|n| literal(function, n));
        let (ask, answer) = inst(function, Op::WorkItem, &args, Some(i32));
        notes.push(ask);
        let at = place(function, &mut notes, n as u64 + 1);
        let (store, _) = inst(function, Op::Store, &[at, answer.unwrap_or(at)], None);
        notes.push(store);
    }
    let note = Block::from_idx(function.blocks.len());
    let end = Block::from_idx(function.blocks.len() + 1);
    let edge = |block: Block| Edge { block, args: Vec::new() };
    let term = Terminator::Jump(edge(end));
    function.blocks.push(BlockData { name: "note".into(), params: Vec::new(), insts: notes, term });
    let term = Terminator::Return(Vec::new());
    function.blocks.push(BlockData { name: "end".into(), params: Vec::new(), insts: Vec::new(), term });
    let block = &mut function.blocks[b];
    block.insts.append(&mut first);
    block.term = Terminator::Branch { cond: is_first.unwrap_or(at), then: edge(note), els: edge(end) };
}
