//! Loops that LLVM has made endless. Works on LLVM's modules, since only the optimizer's result shows them.
//!
//! LLVM removes the exit of a loop that is left only after something undefined: a signed overflow, an access behind the end of a
//! block whose size it knows. What remains is a loop for ever, of which nothing says that it is undefined:
//!
//! ```text
//! b3: %i = phi i32 [ 0, %entry ], [ %j, %b4 ]              b4: br label %b4          b4: call void @llvm.trap()
//!     %more = icmp slt i32 %i, 100                                                      unreachable
//!     br i1 %more, label %b4, label %b5
//! b4: reads %a[i + 3] of 100 elements; %j = add i32 %i, 1
//! ```
//!
//! The same is made of `while true {}`, rightly. So a module with endless loops is optimized again without the facts that LLVM
//! concludes such things from, [`forget`]. Loops that are endless there, too, are the program's own. Others become traps. A loop
//! with effects may have been left by a function that it calls, as `exit`: then the other module is the result, whose loops do
//! what the machine does.
//!
//! Not handled: what is concluded from divisions of vectors and of numbers of 128 bits, and from fast floats that are no NaN.

use crate::confined::{define_operands, drop_flags};
use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::basic_block::BasicBlock;
use inkwell::builder::{Builder, BuilderError};
use inkwell::intrinsics::Intrinsic;
use inkwell::module::Module;
use inkwell::values::{AsValueRef, BasicValue, BasicValueEnum, FunctionValue, InstructionOpcode, InstructionValue};
use llvm_sys::LLVMAtomicOrdering;
use llvm_sys::core::{LLVMGetNumSuccessors, LLVMGetOrdering, LLVMGetSuccessor, LLVMGetVolatile};
use llvm_sys::prelude::LLVMBasicBlockRef;
use nyala_base::graph::{in_cycles, reachable, reversed};
use rustc_hash::FxHashMap;

/// The endless parts of a function.
#[derive(Default)]
struct Endless<'ctx> {
    /// Where control enters a part without effects, which it never leaves.
    silent: Vec<BasicBlock<'ctx>>,
    /// Whether control may go round for ever in another part.
    has_loud: bool,
}

/// The endless loops of a module, by function.
pub(crate) struct Loops {
    silent: FxHashMap<String, usize>,
    loud: FxHashMap<String, usize>,
}

impl Loops {
    pub(crate) fn of(module: &Module) -> Loops {
        let mut loops = Loops { silent: FxHashMap::default(), loud: FxHashMap::default() };
        for function in module.get_functions() {
            let found = endless(function);
            let name = || function.get_name().to_string_lossy().into_owned();
            if !found.silent.is_empty() {
                loops.silent.insert(name(), found.silent.len());
            }
            if found.has_loud {
                loops.loud.insert(name(), 1);
            }
        }
        loops
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.silent.is_empty() && self.loud.is_empty()
    }

    /// What is to be done with loops that are endless, given those that are without the facts.
    pub(crate) fn compare(&self, own: &Loops) -> Outcome {
        let more = |these: &FxHashMap<String, usize>, others: &FxHashMap<String, usize>| {
            these.iter().any(|(name, n)| others.get(name).is_none_or(|own| own < n))
        };
        match (more(&self.silent, &own.silent), more(&self.loud, &own.loud)) {
            (false, false) => Outcome::Keep,
            // Functions that were inlined have other loops' names: which are the program's own is not certain.
            (true, false) if own.silent.is_empty() => Outcome::Trap,
            _ => Outcome::Other,
        }
    }
}

/// Limit on the blocks that are visited for exits that do not change.
const MAX_VISITS: usize = 1 << 20;

/// Whether a loop is left only in its first round, or never: its exit depends on what was computed before. LLVM makes that of
/// exits, too, and does not always put the condition in front of the loop.
pub(crate) fn has_fixed_exits(module: &Module) -> bool {
    let mut visits = 0;
    module.get_functions().any(|f| {
        let blocks = f.get_basic_blocks();
        let Flow { number, succs } = Flow::of(&blocks);
        let in_cycle = if blocks.is_empty() { Vec::new() } else { in_cycles(&succs, 0) };
        let mut comes_back = |from: usize, to: usize, around: Option<usize>| {
            let (mut seen, mut work) = (vec![false; blocks.len()], vec![from]);
            while let Some(b) = work.pop() {
                if b == to {
                    return true;
                }
                visits += 1;
                if Some(b) != around && visits < MAX_VISITS && !std::mem::replace(&mut seen[b], true) {
                    work.extend(&succs[b]);
                }
            }
            false
        };
        (0..blocks.len()).filter(|&b| in_cycle[b]).any(|b| {
            let Some(end) = blocks[b].get_terminator() else { return false };
            let &[yes, no] = &succs[b][..] else { return false };
            let Some(cond) = end.get_operand(0).and_then(|o| o.value()) else { return false };
            let at = cond.as_instruction_value().and_then(|i| i.get_parent());
            let around = at.and_then(|block| number.get(&block.as_mut_ptr()).copied());
            around != Some(b) && comes_back(yes, b, around) != comes_back(no, b, around)
        })
    })
}

/// What becomes of a module with endless loops.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    /// They are the program's own.
    Keep,
    /// Those without effects become traps.
    Trap,
    /// The module that was made without facts is taken.
    Other,
}

/// The blocks of a function as numbers, and where control goes from each.
struct Flow {
    number: FxHashMap<LLVMBasicBlockRef, usize>,
    succs: Vec<Vec<usize>>,
}

impl Flow {
    fn of(blocks: &[BasicBlock]) -> Flow {
        let number: FxHashMap<_, usize> = blocks.iter().enumerate().map(|(i, b)| (b.as_mut_ptr(), i)).collect();
        let targets = |b: &BasicBlock| {
            let end = b.get_terminator().map(|end| end.as_value_ref());
            // SAFETY: the instruction ends a block, and has as many successors as it says.
            let n = end.map_or(0, |end| unsafe { LLVMGetNumSuccessors(end) });
            // SAFETY: as above.
            let blocks = (0..n).zip(end.into_iter().cycle()).map(|(i, end)| unsafe { LLVMGetSuccessor(end, i) });
            blocks.filter_map(|to| number.get(&to).copied()).collect()
        };
        let succs = blocks.iter().map(targets).collect();
        Flow { number, succs }
    }
}

fn endless(function: FunctionValue<'_>) -> Endless<'_> {
    let blocks = function.get_basic_blocks();
    let succs = Flow::of(&blocks).succs;
    if blocks.is_empty() {
        return Endless::default();
    }
    let preds = reversed(&succs);
    let is_live = reachable(&succs, &[0]);
    let mut ends: Vec<usize> = (0..blocks.len()).filter(|&b| succs[b].is_empty()).collect();
    let leaves = reachable(&preds, &ends);
    let stays: Vec<usize> = (0..blocks.len()).filter(|&b| is_live[b] && !leaves[b]).collect();
    if stays.is_empty() {
        return Endless::default();
    }
    let loud = stays.iter().copied().filter(|&b| blocks[b].get_instructions().any(has_effects));
    let is_heard = reachable(&preds, &ends.iter().copied().chain(loud).collect::<Vec<_>>());
    let silent: Vec<usize> = stays.iter().copied().filter(|&b| !is_heard[b]).collect();
    ends.extend(&silent);
    let stops = reachable(&preds, &ends);
    let is_entered = |b: &usize| *b == 0 || preds[*b].iter().any(|&p| is_live[p] && is_heard[p]);
    Endless {
        silent: silent.iter().filter(|b| is_entered(b)).map(|&b| blocks[b]).collect(),
        has_loud: stays.iter().any(|&b| !stops[b]),
    }
}

/// Whether others notice an instruction, or it may not come back.
fn has_effects(inst: InstructionValue<'_>) -> bool {
    match inst.get_opcode() {
        InstructionOpcode::Call | InstructionOpcode::Invoke | InstructionOpcode::CallBr => !comes_back(inst),
        InstructionOpcode::Fence | InstructionOpcode::AtomicRMW | InstructionOpcode::AtomicCmpXchg => true,
        // SAFETY: the instruction accesses memory.
        InstructionOpcode::Load | InstructionOpcode::Store => unsafe {
            LLVMGetVolatile(inst.as_value_ref()) != 0
                || LLVMGetOrdering(inst.as_value_ref()) != LLVMAtomicOrdering::LLVMAtomicOrderingNotAtomic
        },
        _ => false,
    }
}

/// Whether a call certainly comes back.
fn comes_back(inst: InstructionValue<'_>) -> bool {
    let kind = Attribute::get_named_enum_kind_id("willreturn");
    let Ok(call) = inkwell::values::CallSiteValue::try_from(inst) else { return false };
    call.get_enum_attribute(AttributeLoc::Function, kind).is_some()
        || call.get_called_fn_value().is_some_and(|f| f.get_enum_attribute(AttributeLoc::Function, kind).is_some())
}

/// Makes the endless loops without effects into traps. The blocks behind are cleaned up by a pass that removes code which no
/// longer is reached.
pub(crate) fn trap(module: &Module) -> Result<(), BuilderError> {
    let builder = module.get_context().create_builder();
    let Some(trap) = Intrinsic::find("llvm.trap").and_then(|i| i.get_declaration(module, &[])) else { return Ok(()) };
    for block in module.get_functions().flat_map(|f| endless(f).silent) {
        let Some(first) = block.get_instructions().find(|i| i.get_opcode() != InstructionOpcode::Phi) else { continue };
        builder.position_before(&first);
        let places = || block.get_instructions().filter_map(|i| i.get_debug_location());
        match places().find(|p| p.get_line() > 0).or_else(|| places().next()) {
            Some(place) => builder.set_current_debug_location(place),
            None => builder.unset_current_debug_location(),
        }
        builder.build_call(trap, &[], "")?;
    }
    Ok(())
}

/// Hides from a division by what it divides, so that nothing follows from it: that number is not 0.
fn hide_divisor<'ctx>(builder: &Builder<'ctx>, division: InstructionValue<'ctx>) -> Result<(), BuilderError> {
    let divisor = match division.get_operand(1).and_then(|o| o.value()) {
        Some(BasicValueEnum::IntValue(divisor)) if !divisor.is_const() => divisor,
        _ => return Ok(()),
    };
    let (ty, context) = (divisor.get_type(), divisor.get_type().get_context());
    let wide = match ty.get_bit_width() {
        ..=32 => context.i32_type(),
        33..=64 => context.i64_type(),
        _ => return Ok(()),
    };
    builder.position_before(&division);
    let number = builder.build_int_z_extend(divisor, wide, "")?;
    let asm_ty = wide.fn_type(&[wide.into()], false);
    let asm = context.create_inline_asm(asm_ty, String::new(), "=r,0".into(), false, false, None, false);
    let hidden = builder.build_indirect_call(asm_ty, asm, &[number.into()], "")?;
    // It goes with a division that nobody uses.
    for name in ["memory", "nounwind", "willreturn"] {
        let attribute = context.create_enum_attribute(Attribute::get_named_enum_kind_id(name), 0);
        hidden.add_attribute(AttributeLoc::Function, attribute);
    }
    let hidden = hidden.try_as_basic_value().unwrap_basic().into_int_value();
    let hidden = builder.build_int_truncate(hidden, ty, "")?;
    division.set_operand(1, hidden);
    Ok(())
}

/// Takes away what says that something does not happen: that numbers do not overflow, that addresses lie within blocks, that
/// values are defined, that nothing is divided by zero.
pub(crate) fn forget(module: &Module, is_gpu: bool) -> Result<(), BuilderError> {
    use InstructionOpcode::{SDiv, SRem, UDiv, URem};
    let all = || module.get_functions().flat_map(|f| f.get_basic_blocks()).flat_map(|b| b.get_instructions());
    let divides = |i: &InstructionValue| matches!(i.get_opcode(), UDiv | URem | SDiv | SRem);
    let builder = module.get_context().create_builder();
    for division in all().filter(|i| divides(i) && !is_gpu).collect::<Vec<_>>() {
        hide_divisor(&builder, division)?;
    }
    for inst in all() {
        drop_flags(inst);
        if let InstructionOpcode::Phi | InstructionOpcode::Select | InstructionOpcode::ICmp = inst.get_opcode() {
            define_operands(inst);
        }
    }
    Ok(())
}
