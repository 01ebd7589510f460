//! Values of variables for debuggers: [`nyala_ir::Op::DebugValue`], and slots that are variables. Separate, since no code comes of
//! it but at `-O0`.
//!
//! | | a variable is |
//! |---|---|
//! | a slot that flat code still has | LLVM's variable, wherever it is |
//! | at `-O0` | memory of its own, which each value is stored to |
//! | optimized | each value where it is named; a struct of scalars in parts |
//!
//! LLVM follows memory and values through its passes, and says where a debugger finds them, or that they are gone.

use crate::function::FunctionEmitter;
use nyala_base::{Diagnostic, Span};
use nyala_flat::{Function, Inst, InstOp, Value};
use nyala_ir::{Op, Ty, layout};
use rustc_hash::FxHashMap;
use std::fmt::Write;

/// The variables of a function, and whether they have a slot.
#[derive(Default)]
pub(crate) struct Variables {
    has_slot: FxHashMap<Span, bool>,
    /// The addresses of those that are declared.
    addresses: FxHashMap<Span, String>,
}

impl Variables {
    pub fn new(function: &Function) -> Variables {
        let insts = || function.blocks.iter().flat_map(|b| &b.insts);
        let of = |op| insts().filter(move |i| i.op == InstOp::Op(op)).map(|i| i.span);
        let mut has_slot: FxHashMap<Span, bool> = of(Op::DebugValue).map(|span| (span, false)).collect();
        for span in of(Op::Slot) {
            has_slot.entry(span).and_modify(|has| *has = true);
        }
        Variables { has_slot, addresses: FxHashMap::default() }
    }
}

/// Names the memory of a slot, if its place is that of a variable.
pub(crate) fn declare_slot(f: &mut FunctionEmitter, inst: &Inst, slot: Value, ty: Ty) {
    if f.variables.has_slot.contains_key(&inst.span) {
        let address = f.op(slot);
        declare(f, inst.span, ty, 0, &address);
    }
}

fn declare(f: &mut FunctionEmitter, span: Span, ty: Ty, nth: u32, address: &str) {
    let (Some(origins), Some(scope)) = (&mut f.e.origins, f.scope) else { return };
    let Some((variable, at)) = origins.variable(scope, span, ty, nth) else { return };
    let _ = writeln!(f.allocas, "    #dbg_declare(ptr {address}, !{variable}, !DIExpression(), !{at})");
    f.variables.addresses.insert(span, address.to_string());
}

/// Emits the operation `debug_value`.
pub(crate) fn emit(f: &mut FunctionEmitter, inst: &Inst) -> Result<(), Box<Diagnostic>> {
    let &[value, nth] = &inst.args[..] else { return Ok(()) };
    let nth = f.function.as_bits(nth).map_or(0, |bits| bits as u32);
    let ty = f.ty(value);
    let operand = f.op(value);
    if f.e.origins.is_none() || f.variables.has_slot.get(&inst.span) == Some(&true) || operand == "undef" {
        return Ok(());
    }
    if f.e.options.opt_level == 0 {
        let address = match f.variables.addresses.get(&inst.span) {
            Some(address) => address.clone(),
            None => {
                let address = format!("%d{}", f.variables.addresses.len());
                f.alloca(&address, ty)?;
                declare(f, inst.span, ty, nth, &address);
                address
            }
        };
        // A breakpoint at the declaration stops when the variable has its value.
        f.hide(inst.span);
        return f.write(&address, value);
    }
    let (Some(origins), Some(scope)) = (&mut f.e.origins, f.scope) else { return Ok(()) };
    let Some((variable, at)) = origins.variable(scope, inst.span, ty, nth) else { return Ok(()) };
    let note = |f: &mut FunctionEmitter, value: &str, expression: &str| {
        let _ = writeln!(f.body, "    #dbg_value({value}, !{variable}, !DIExpression({expression}), !{at})");
    };
    if f.in_memory(value) {
        note(f, &format!("ptr {operand}"), "DW_OP_deref");
        return Ok(());
    }
    let types = &f.e.module.types;
    let is_whole = types.n_parts(ty).is_none() || types.as_vector(ty).is_some();
    if is_whole {
        let typed = f.typed(value)?;
        note(f, &typed, "");
        return Ok(());
    }
    // The scalars of a struct, each with the way to it, its type and its place in bytes.
    let mut parts = Vec::new();
    let mut open = vec![(Vec::new(), ty, 0)];
    while let Some((path, ty, at)) = open.pop() {
        let types = &f.e.module.types;
        match types.n_parts(ty).filter(|_| types.as_vector(ty).is_none()) {
            None => parts.push((path, ty, at)),
            Some(n) => {
                for i in 0..n {
                    if let (Some(part), Some(offset)) = (types.part(ty, i), layout::offset(types, ty, i)) {
                        open.push(([&path[..], &[i]].concat(), part, at + offset));
                    }
                }
            }
        }
    }
    // A part that is the whole is none, for LLVM.
    let is_single = parts.len() == 1;
    for (path, part, at) in parts {
        let Some((size, _)) = layout::size_align(&f.e.module.types, part) else { continue };
        let (typed, memory, name) = (f.typed(value)?, f.e.layouts.memory(part)?, f.temp());
        let path: Vec<String> = path.iter().map(u64::to_string).collect();
        f.line(format_args!("{name} = extractvalue {typed}, {}", path.join(", ")));
        let place = if is_single { String::new() } else { format!("DW_OP_LLVM_fragment, {}, {}", 8 * at, 8 * size) };
        note(f, &format!("{memory} {name}"), &place);
    }
    Ok(())
}
