//! Panics tell the calls that led to their code, as far as these were unfolded. Separate from `checks.rs`, whose code knows the other
//! calls, too.
//!
//! ```text
//! call nyala_panic_at("p.impala:1:29", text)       call nyala_panic_at("p.impala:1:29\n  `get` called at p.impala:7:5", text)
//! ```
//!
//! The text is a constant of a block that is entered once: nothing is added to code that goes on.

use crate::data::*;
use nyala_base::{Id, Span};
use nyala_ir::{Op, Prim};
use rustc_hash::FxHashMap;

/// Adds the calls to the place of each panic. `place` is the text of a panic's place, with the calls that led to it.
pub fn tell_calls(module: &mut Module, place: &dyn Fn(Span) -> String) {
    let panic = module.funcs.iter().position(|f| f.is_foreign() && f.symbol() == Some("nyala_panic_at"));
    let Some(panic) = panic.map(Func::from_idx) else { return };
    let mut texts: FxHashMap<String, GlobalId> = FxHashMap::default();
    for f in 0..module.funcs.len() {
        for b in 0..module.funcs[f].blocks.len() {
            let is_told = |i: &Inst| i.op == InstOp::Call(panic) && i.span.call != Span::NO_CALL;
            let mut from = 0;
            while let Some(at) = module.funcs[f].blocks[b].insts[from..].iter().position(is_told).map(|at| from + at) {
                let span = module.funcs[f].blocks[b].insts[at].span;
                let text = place(span);
                let bytes: Vec<u8> = text.bytes().filter(|&b| b != 0).chain([0]).collect();
                let u8 = module.types.prim(Prim::U8);
                let array = module.types.array(u8, bytes.len() as u64);
                let id = *texts.entry(text).or_insert_with(|| {
                    let init = Init::Bytes(bytes);
                    module.add_global(Global { name: "place".into(), ty: array, mutable: false, space: 0, init })
                });
                let pointer = module.types.ptr(array);
                let function = &mut module.funcs[f];
                let address = function.constant(Const::Global(id), pointer);
                let ty = function.ty(function.blocks[b].insts[at].args[0]);
                let cast = function.new_value(ty, "");
                let insts = &mut function.blocks[b].insts;
                insts[at].args[0] = cast;
                let args = Args::from_slice(&[address]);
                insts.insert(at, Inst { op: InstOp::Op(Op::Bitcast), args, result: Some(cast), span, fast: false });
                from = at + 2;
            }
        }
    }
}
