//! Keeps LLVM from moving masked loads over stores.
//!
//! InstCombine of LLVM 22 makes `select(mask, load, x)`, where the load is under the same mask and has no other use, a
//! masked load that gives `x` in the other lanes. It puts this load where the select was, maybe after stores to that
//! memory (llvm-project#215453, mended in LLVM 23.1). A `freeze`, which becomes no instruction, stands between the load
//! and the select:
//!
//! ```text
//! old = vload(p, mask)                   %read = call <8 x float> @llvm.masked.load…(ptr %p, <8 x i1> %mask, …)
//!                                        %old = freeze <8 x float> %read
//! vstore(p, new, mask)                   call void @llvm.masked.store…
//! kept = select(mask, old, other)        %kept = select <8 x i1> %mask, <8 x float> %old, <8 x float> %other
//! ```
//!
//! Masked loads of flat SSA are all frozen. LLVM's loop vectorizer makes masked loads of loads in branches, and selects
//! of phis: loads of scalars whose value is only selected are frozen, too. Not handled: loads that LLVM itself makes of
//! copies of aggregates.

use nyala_base::Id;
use nyala_flat::analysis::Cfg;
use nyala_flat::{Function, InstOp, Terminator};
use nyala_ir::Op;

/// For each value whether it is read by a load, perhaps converted, and then selected, passed to a block, or returned.
pub(crate) fn selected_loads(function: &Function, cfg: &Cfg) -> Vec<bool> {
    let mut is_read = vec![false; function.values.len()];
    let mut is_selected = vec![false; function.values.len()];
    for &b in &cfg.rpo {
        let block = function.block(b);
        for inst in &block.insts {
            match (inst.op, inst.result) {
                (InstOp::Op(Op::Load), Some(r)) => is_read[r.idx()] = true,
                (InstOp::Op(Op::Cast | Op::Bitcast | Op::Extract), Some(r)) => {
                    is_read[r.idx()] = is_read[inst.args[0].idx()]
                }
                (InstOp::Op(Op::Select), _) => inst.args[1..].iter().for_each(|a| is_selected[a.idx()] = true),
                _ => {}
            }
        }
        match &block.term {
            Terminator::Branch { then, els, .. } => {
                then.args.iter().chain(&els.args).for_each(|a| is_selected[a.idx()] = true)
            }
            term => term.for_each_use(|a| is_selected[a.idx()] = true),
        }
    }
    is_read.iter().zip(&is_selected).map(|(&read, &selected)| read && selected).collect()
}
