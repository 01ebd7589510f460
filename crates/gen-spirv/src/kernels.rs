//! Kernels: their arguments, and how they are entered.

use crate::function::FunctionEmitter;
use crate::memory::Address;
use crate::module::{Emitter, Grid};
use crate::{Result, casts};
use nyala_base::Id;
use nyala_flat::{Func, Linkage};
use nyala_ir::{Prim, TyKind, layout};
use rspirv::dr::{Instruction, Operand};
use rspirv::spirv::{
    Capability, Decoration, ExecutionMode, ExecutionModel, FunctionParameterAttribute, Op as Code, StorageClass, Word,
};
use std::collections::BTreeSet;

/// Bytes of push constants that every device of Vulkan has.
const MAX_PUSHED: u64 = 128;

/// Bytes of push constants behind the arguments: the first block of a dispatch on the axis x, and the number of blocks there.
/// A launch of more blocks than a device takes at once is several dispatches.
const BYTES_OF_GRID: u64 = 8;

/// Where the arguments of a kernel are, for the runtime.
pub(crate) struct Arguments {
    pub in_memory: bool,
    pub bytes: u64,
}

/// Defines the parameters of a kernel. Returns the types of those that SPIR-V has.
pub(crate) fn arguments(f: &mut FunctionEmitter, parameters: &mut Vec<Instruction>) -> Result<Vec<Word>> {
    if f.e.is_vulkan() {
        pushed(f)?;
        return Ok(Vec::new());
    }
    let function = f.function;
    let read_only = nyala_flat::read_only(f.e.module, f.func).params;
    let mut tys = Vec::new();
    for &param in &function.blocks[0].params {
        let ty = function.ty(param);
        let types = &f.e.module.types;
        let id = f.e.id();
        f.e.name(id, function.name(param));
        let is_whole = !matches!(types.kind(ty), TyKind::Prim(_) | TyKind::Ptr { .. });
        let (word, value) = if is_whole {
            // An aggregate is the address of a copy.
            let (size, align) = layout::size_align(types, ty).unwrap_or((1, 1));
            let byte = f.e.int(8);
            let bytes = f.e.array(byte, size.max(1));
            let pointer = f.e.pointer(StorageClass::Function, bytes);
            let by_value = Operand::FunctionParameterAttribute(FunctionParameterAttribute::ByVal);
            f.e.decorate(id, Decoration::FuncParamAttr, vec![by_value]);
            f.e.decorate(id, Decoration::Alignment, vec![Operand::LiteralBit32(align as u32)]);
            let (first, zero) = (f.e.address(5), f.e.u32(0));
            let word = f.op(Code::InBoundsAccessChain, first, &[id, zero]);
            let value = f.read(Address { word, space: 5, arena: None }, ty)?;
            (pointer, value)
        } else {
            if read_only.contains(&param) {
                let no_write = Operand::FunctionParameterAttribute(FunctionParameterAttribute::NoWrite);
                f.e.decorate(id, Decoration::FuncParamAttr, vec![no_write]);
            }
            (f.ty(param)?, id)
        };
        parameters.push(Instruction::new(Code::FunctionParameter, Some(word), Some(id), Vec::new()));
        f.define(param, value)?;
        tys.push(word);
    }
    Ok(tys)
}

/// The parameters of a kernel, out of push constants or of memory.
fn pushed(f: &mut FunctionEmitter) -> Result<()> {
    let function = f.function;
    let params = &function.blocks[0].params;
    let types = &f.e.module.types;
    let mut places = Vec::new();
    let (mut bytes, mut is_simple) = (0u64, true);
    for &param in params {
        let ty = function.ty(param);
        places.push(bytes);
        let size = layout::size_align(types, ty).map_or(0, |s| s.0);
        bytes = (bytes + size).next_multiple_of(8);
        is_simple &= matches!(types.kind(ty), TyKind::Prim(_) | TyKind::Ptr { .. });
    }
    let in_memory = !is_simple || bytes + BYTES_OF_GRID > MAX_PUSHED;
    f.e.arguments.insert(f.func, Arguments { in_memory, bytes });
    let grid = [Grid::First, Grid::Blocks].map(|g| f.e.grid(g));
    if params.is_empty() && grid == [None; 2] {
        return Ok(());
    }
    let long = f.e.int(64);
    // The type of each member, and the offset.
    let mut members = Vec::new();
    for (&param, &at) in params.iter().zip(&places) {
        let prim = types.as_prim(function.ty(param)).unwrap_or(Prim::U64);
        let ty = match prim.bits() {
            64 => f.e.prim(prim),
            32 => f.e.prim(prim),
            _ => f.e.int(32),
        };
        members.push((ty, at));
    }
    if in_memory {
        members = vec![(long, 0)];
    }
    let (n_args, short) = (members.len(), f.e.int(32));
    let end = if in_memory { 8 } else { bytes };
    members.extend([(short, end), (short, end + 4)]);
    let block = f.e.new_structure(&members.iter().map(|m| m.0).collect::<Vec<_>>());
    f.e.decorate(block, Decoration::Block, Vec::new());
    for (i, &(_, at)) in members.iter().enumerate() {
        let operands = vec![
            Operand::IdRef(block),
            Operand::LiteralBit32(i as u32),
            Operand::Decoration(Decoration::Offset),
            Operand::LiteralBit32(at as u32),
        ];
        f.e.out.annotations.push(Instruction::new(Code::MemberDecorate, None, None, operands));
    }
    let variable = f.e.variable(StorageClass::PushConstant, block, None);
    f.e.uses(variable);
    let member = |f: &mut FunctionEmitter, i: usize| {
        let ty = members[i].0;
        let pointer = f.e.pointer(StorageClass::PushConstant, ty);
        let number = f.e.u32(i as u32);
        let place = f.op(Code::AccessChain, pointer, &[variable, number]);
        f.op(Code::Load, ty, &[place])
    };
    for (i, variable) in grid.into_iter().enumerate() {
        if let Some(variable) = variable {
            let word = member(f, n_args + i);
            f.store_word(variable, word);
        }
    }
    let base = if in_memory { member(f, 0) } else { 0 };
    for (i, &param) in params.iter().enumerate() {
        let ty = function.ty(param);
        let word = match in_memory {
            true => {
                let place = f.behind(Address { word: base, space: 1, arena: None }, places[i]);
                f.read(place, ty)?
            }
            false => {
                let word = member(f, i);
                let prim = f.e.module.types.as_prim(ty).unwrap_or(Prim::U64);
                match prim.bits() {
                    32 | 64 => word,
                    // The runtime fills up with zeros.
                    16 => {
                        let narrow = casts::convert(f, word, Prim::U32, Prim::U16);
                        casts::read_as(f, narrow, Prim::U16, prim)
                    }
                    _ => casts::convert(f, word, Prim::U32, prim),
                }
            }
        };
        f.e.name(word, function.name(param));
        f.define(param, word)?;
    }
    Ok(())
}

/// Declares the kernels, with all that they use.
pub(crate) fn entry_points(e: &mut Emitter) -> Result<()> {
    let module = e.module;
    let model = if e.is_vulkan() { ExecutionModel::GLCompute } else { ExecutionModel::Kernel };
    for func in (0..module.funcs.len()).map(Func::from_idx) {
        let function = module.func(func);
        let Linkage::Kernel(symbol, sizes) = &function.linkage else { continue };
        let id = e.funcs[func.idx()];
        let mut used: BTreeSet<Word> = BTreeSet::new();
        let (mut work, mut seen) = (vec![func.idx()], BTreeSet::from([func.idx()]));
        while let Some(at) = work.pop() {
            used.extend(&e.used[at]);
            work.extend(e.calls[at].iter().copied().filter(|&c| seen.insert(c)));
        }
        let shared: u64 = used.iter().filter_map(|v| e.shared.get(v)).sum();
        let is_listed = |v: &Word| e.is_vulkan() || e.inputs.contains(v);
        let mut operands =
            vec![Operand::ExecutionModel(model), Operand::IdRef(id), Operand::LiteralString(symbol.clone())];
        operands.extend(used.iter().filter(|v| is_listed(v)).map(|&v| Operand::IdRef(v)));
        e.out.entry_points.push(Instruction::new(Code::EntryPoint, None, None, operands));
        let mode = |e: &mut Emitter, mode: ExecutionMode, more: Vec<Operand>| {
            let all = [vec![Operand::IdRef(id), Operand::ExecutionMode(mode)], more].concat();
            e.out.execution_modes.push(Instruction::new(Code::ExecutionMode, None, None, all));
        };
        if sizes.iter().all(|&n| n > 0) {
            mode(e, ExecutionMode::LocalSize, sizes.map(Operand::LiteralBit32).to_vec());
        } else if e.is_vulkan() {
            let mut extents = vec![Operand::IdRef(id), Operand::ExecutionMode(ExecutionMode::LocalSizeId)];
            for (axis, &n) in sizes.iter().enumerate() {
                extents.push(Operand::IdRef(if n > 0 { e.u32(n) } else { e.extent(axis as u32) }));
            }
            e.out.execution_modes.push(Instruction::new(Code::ExecutionModeId, None, None, extents));
        }
        if e.is_vulkan() {
            e.need(Capability::DenormPreserve);
            e.need(Capability::SignedZeroInfNanPreserve);
            e.need(Capability::RoundingModeRTE);
            for bits in e.floats.clone() {
                for one in [
                    ExecutionMode::DenormPreserve,
                    ExecutionMode::SignedZeroInfNanPreserve,
                    ExecutionMode::RoundingModeRTE,
                ] {
                    mode(e, one, vec![Operand::LiteralBit32(bits)]);
                }
            }
            let (kind, bytes) = match e.arguments.get(&func) {
                Some(Arguments { in_memory: true, bytes }) => ("memory", *bytes),
                Some(Arguments { bytes, .. }) => ("push", *bytes),
                None => ("push", 0),
            };
            let note = format!("nyala {symbol} {kind} {bytes} {shared}");
            let operands = vec![Operand::LiteralString(note)];
            e.out.debug_module_processed.push(Instruction::new(Code::ModuleProcessed, None, None, operands));
        } else {
            mode(e, ExecutionMode::ContractionOff, Vec::new());
        }
    }
    Ok(())
}
