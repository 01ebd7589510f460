//! Memory: addresses of parts, variables, statics; loads and stores, number by number.

use crate::arenas::Site;
use crate::casts::{cut, join, read_as};
use crate::function::FunctionEmitter;
use crate::values::part_word;
use crate::{KNOWN_FUNCTION, Result, bug};
use nyala_base::Id;
use nyala_flat::{GlobalId, Value};
use nyala_ir::{Prim, Ty, TyKind, layout};
use rspirv::dr::Operand;
use rspirv::spirv::{Decoration, MemoryAccess, Op as Code, StorageClass, Word};

/// An address in a register, with what is known of it.
#[derive(Clone, Copy)]
pub(crate) struct Address {
    pub word: Word,
    pub space: u8,
    /// The variable in which the address is a place, with the type of its elements.
    pub arena: Option<(Word, Prim)>,
}

fn pointee(f: &FunctionEmitter, ptr: Value) -> Result<(Ty, u8)> {
    match *f.e.module.types.kind(f.function.ty(ptr)) {
        TyKind::Ptr { pointee, space } => Ok((pointee, space)),
        _ => Err(bug("an access to no address")),
    }
}

impl FunctionEmitter<'_, '_> {
    /// The address that a value is, for accesses.
    pub fn place(&mut self, ptr: Value) -> Result<(Address, Ty)> {
        let (ty, space) = pointee(self, ptr)?;
        let word = self.value(ptr)?;
        let space = if space == 0 { 1 } else { space };
        let mut address = Address { word, space, arena: None };
        if self.e.is_vulkan() && space > 2 {
            address.arena = Some(self.arena_of(ptr)?);
        } else if matches!(*self.e.module.types.kind(self.function.ty(ptr)), TyKind::Ptr { space: 0, .. }) {
            address.word = self.as_address(word, space);
        }
        Ok((address, ty))
    }

    /// The variable in which an address is a place, and the type of its elements.
    fn arena_of(&mut self, ptr: Value) -> Result<(Word, Prim)> {
        let func = self.func;
        let found = self.e.arenas.as_mut().and_then(|a| Some((a.arena(func, ptr)?, &*a)));
        let Some((number, arenas)) = found else {
            let what = "an access to memory of the block by an address that was taken out of an aggregate";
            return Err(self.lacks(what, "keep the address in a value of its own, or an index in the aggregate"));
        };
        let arena = arenas.all[number].clone();
        if let Some(&variable) = self.e.variables.get(&number) {
            self.e.uses(variable);
            return Ok((variable, arena.elem));
        }
        let width = u64::from(arena.elem.bits() / 8);
        let n = arena.size.div_ceil(width).max(1);
        let elem = self.e.prim(arena.elem);
        let ty = self.e.array(elem, n);
        let init = match arena.statics.is_empty() {
            true => None,
            false => {
                self.check_static(n * width)?;
                let bytes = self.e.initial(&arena.statics, n * width).map_err(|d| self.placed(d))?;
                Some(self.constants(&bytes, arena.elem, ty))
            }
        };
        let class = self.e.class(arena.space);
        let variable = self.e.variable(class, ty, init);
        if arena.space == 3 {
            self.e.shared.insert(variable, n * width);
        }
        self.e.variables.insert(number, variable);
        self.e.uses(variable);
        Ok((variable, arena.elem))
    }

    fn check_static(&self, size: u64) -> Result<()> {
        match size > 1 << 20 {
            true => Err(self.lacks(&format!("statics of {size} bytes"), "keep the numbers in memory of the device")),
            false => Ok(()),
        }
    }

    /// An array of numbers, by its bytes.
    fn constants(&mut self, bytes: &[u8], prim: Prim, ty: Word) -> Word {
        let width = (prim.bits() / 8) as usize;
        let number = |c: &[u8]| c.iter().rev().fold(0u64, |n, &b| n << 8 | u64::from(b));
        let parts = bytes.chunks(width).map(|c| self.e.literal(prim, number(c))).collect();
        self.e.composite(ty, parts)
    }

    /// The address some bytes behind another.
    pub fn behind(&mut self, address: Address, bytes: u64) -> Address {
        if bytes == 0 {
            return address;
        }
        let bits = if self.e.is_vulkan() && !self.e.is_number(address.space) { 32 } else { 64 };
        let ty = self.e.int(bits);
        let offset = self.e.number(ty, bits, bytes);
        Address { word: self.moved(address.word, address.space, offset), ..address }
    }

    /// An address, moved by a number of bytes that is as wide as addresses.
    fn moved(&mut self, word: Word, space: u8, offset: Word) -> Word {
        let ty = self.e.address(space);
        match self.e.is_vulkan() || self.e.is_number(space) {
            true => self.op(Code::IAdd, ty, &[word, offset]),
            false => self.op(Code::InBoundsPtrAccessChain, ty, &[word, offset]),
        }
    }

    /// The pointer to a number at an address; not for arenas.
    pub fn pointer_to(&mut self, address: Address, ty: Word) -> Word {
        let class = self.e.class(address.space);
        let pointer = self.e.pointer(class, ty);
        let code = if self.e.is_vulkan() { Code::ConvertUToPtr } else { Code::Bitcast };
        self.op(code, pointer, &[address.word])
    }

    /// The pointer to the element of an arena at an address, some elements behind it.
    pub fn element(&mut self, address: Address, (variable, prim): (Word, Prim), behind: u32) -> Word {
        let (ty, short) = (self.e.prim(prim), self.e.int(32));
        let pointer_class = self.e.class(address.space);
        let pointer = self.e.pointer(pointer_class, ty);
        let by = self.e.u32((prim.bits() / 8).trailing_zeros());
        let mut index = self.op(Code::ShiftRightLogical, short, &[address.word, by]);
        if behind > 0 {
            let more = self.e.u32(behind);
            index = self.op(Code::IAdd, short, &[index, more]);
        }
        self.op(Code::AccessChain, pointer, &[variable, index])
    }

    fn access(&self, prim: Prim) -> Vec<Operand> {
        let aligned = MemoryAccess::ALIGNED;
        let access = if self.e.is_volatile { aligned | MemoryAccess::VOLATILE } else { aligned };
        vec![Operand::MemoryAccess(access), Operand::LiteralBit32(layout::prim_size(prim) as u32)]
    }

    /// Needs for numbers of less than 32 bits in device memory.
    fn need_narrow(&mut self, prim: Prim) {
        use rspirv::spirv::Capability;
        if self.e.is_vulkan() {
            match prim.bits() {
                1 | 8 => self.e.need(Capability::StorageBuffer8BitAccess),
                16 => self.e.need(Capability::StorageBuffer16BitAccess),
                _ => {}
            }
        }
    }

    /// Reads a number or bool.
    fn load_number(&mut self, address: Address, prim: Prim) -> Word {
        let stored = if prim == Prim::Bool { Prim::U8 } else { prim };
        let word = match address.arena {
            None => {
                self.need_narrow(prim);
                let ty = self.e.prim(stored);
                let pointer = self.pointer_to(address, ty);
                let operands = [vec![Operand::IdRef(pointer)], self.access(stored)].concat();
                self.op_with(Code::Load, ty, operands)
            }
            Some(arena) => {
                let (elem, ty) = (arena.1, self.e.prim(arena.1));
                let mut parts = Vec::new();
                for i in 0..(stored.bits() / elem.bits()).max(1) {
                    let pointer = self.element(address, arena, i);
                    parts.push(self.op(Code::Load, ty, &[pointer]));
                }
                match &parts[..] {
                    &[one] => read_as(self, one, elem, stored),
                    _ => {
                        let (small, large) = (unsigned(elem), unsigned(stored));
                        let parts: Vec<Word> = parts.iter().map(|&p| read_as(self, p, elem, small)).collect();
                        let joined = join(self, &parts, small, large);
                        read_as(self, joined, large, stored)
                    }
                }
            }
        };
        crate::casts::convert(self, word, stored, prim)
    }

    /// Writes a number or bool.
    fn store_number(&mut self, address: Address, prim: Prim, word: Word) {
        let stored = if prim == Prim::Bool { Prim::U8 } else { prim };
        let word = crate::casts::convert(self, word, prim, stored);
        match address.arena {
            None => {
                self.need_narrow(prim);
                let ty = self.e.prim(stored);
                let pointer = self.pointer_to(address, ty);
                let operands = [vec![Operand::IdRef(pointer), Operand::IdRef(word)], self.access(stored)].concat();
                self.effect(Code::Store, operands);
            }
            Some(arena) => {
                let elem = arena.1;
                let parts = match stored.bits() > elem.bits() {
                    false => vec![read_as(self, word, stored, elem)],
                    true => {
                        let (small, large) = (unsigned(elem), unsigned(stored));
                        let whole = read_as(self, word, stored, large);
                        let parts = cut(self, whole, large, small);
                        parts.into_iter().map(|p| read_as(self, p, small, elem)).collect()
                    }
                };
                for (i, part) in parts.into_iter().enumerate() {
                    let pointer = self.element(address, arena, i as u32);
                    self.store_word(pointer, part);
                }
            }
        }
    }

    /// Reads a value of any type.
    pub fn read(&mut self, address: Address, ty: Ty) -> Result<Word> {
        self.e.check_size(ty, self.span)?;
        enum Step {
            Read(Ty, u64),
            Build(Ty, usize),
        }
        let types = &self.e.module.types;
        let (mut work, mut made) = (vec![Step::Read(ty, 0)], Vec::new());
        while let Some(step) = work.pop() {
            match step {
                Step::Read(ty, at) => {
                    let place = self.behind(address, at);
                    match *types.kind(ty) {
                        TyKind::Prim(prim) => made.push(self.load_number(place, prim)),
                        TyKind::Ptr { .. } => made.push(self.load_number(place, Prim::U64)),
                        TyKind::Cn(_) | TyKind::Code => return Err(self.lacks("a function as a value", KNOWN_FUNCTION)),
                        _ => {
                            let n = types.n_parts(ty).unwrap_or(0);
                            work.push(Step::Build(ty, n as usize));
                            for i in (0..n).rev() {
                                let (part, offset) = part(types, ty, i)?;
                                work.push(Step::Read(part, at + offset));
                            }
                        }
                    }
                }
                Step::Build(ty, n) => {
                    let word = self.e.ty(ty, self.span)?;
                    let parts = made.split_off(made.len() - n);
                    made.push(match n {
                        0 => self.e.null(word),
                        _ => self.op(Code::CompositeConstruct, word, &parts),
                    });
                }
            }
        }
        made.pop().ok_or_else(|| bug("a load of nothing"))
    }

    /// Writes a value of any type, as it is in aggregates.
    pub fn write_to(&mut self, address: Address, ty: Ty, word: Word) -> Result<()> {
        self.e.check_size(ty, self.span)?;
        let types = &self.e.module.types;
        let mut work = vec![(ty, word, 0)];
        while let Some((ty, word, at)) = work.pop() {
            match *types.kind(ty) {
                TyKind::Prim(prim) => {
                    let place = self.behind(address, at);
                    self.store_number(place, prim, word);
                }
                TyKind::Ptr { .. } => {
                    let place = self.behind(address, at);
                    self.store_number(place, Prim::U64, word);
                }
                TyKind::Cn(_) | TyKind::Code => return Err(self.lacks("a function as a value", KNOWN_FUNCTION)),
                _ => {
                    for i in (0..types.n_parts(ty).unwrap_or(0)).rev() {
                        let (part, offset) = part(types, ty, i)?;
                        let part_ty = part_word(self, part)?;
                        let taken = self.take(part_ty, word, i);
                        work.push((part, taken, at + offset));
                    }
                }
            }
        }
        Ok(())
    }
}

/// The type and the offset of a part.
fn part(types: &nyala_ir::Types, ty: Ty, i: u64) -> Result<(Ty, u64)> {
    let part = match types.kind(ty) {
        TyKind::Vector(prim, _) => Some(types.prim(*prim)),
        _ => types.part(ty, i),
    };
    part.zip(layout::offset(types, ty, i)).ok_or_else(|| bug("a type without such a part"))
}

fn unsigned(prim: Prim) -> Prim {
    match prim.bits() {
        8 => Prim::U8,
        16 => Prim::U16,
        32 => Prim::U32,
        _ => Prim::U64,
    }
}

/// Reads what is at an address.
pub(crate) fn load(f: &mut FunctionEmitter, ptr: Value, result: Value) -> Result<Word> {
    let (address, _) = f.place(ptr)?;
    let ty = f.function.ty(result);
    let word = f.read(address, ty)?;
    match *f.e.module.types.kind(ty) {
        TyKind::Ptr { space, .. } => Ok(f.as_address(word, space)),
        _ => Ok(word),
    }
}

/// Writes to an address.
pub(crate) fn store(f: &mut FunctionEmitter, ptr: Value, value: Value) -> Result<()> {
    let (address, _) = f.place(ptr)?;
    let word = f.part(value)?;
    f.write_to(address, f.function.ty(value), word)
}

/// The address of a part of what an address points to.
pub(crate) fn lea(f: &mut FunctionEmitter, ptr: Value, idx: Value) -> Result<Word> {
    let (ty, space) = pointee(f, ptr)?;
    let word = f.value(ptr)?;
    let types = &f.e.module.types;
    let bits = if f.e.is_vulkan() && !f.e.is_number(space) { 32 } else { 64 };
    let wide = f.e.int(bits);
    let elem = match *types.kind(ty) {
        TyKind::Array(elem, _) | TyKind::IndefArray(elem) => Some(layout::size_align(types, elem).map_or(0, |s| s.0)),
        TyKind::Vector(prim, _) => Some(layout::prim_size(prim)),
        _ => None,
    };
    let offset = match (elem, f.function.as_index(idx)) {
        (None, Some(i)) => {
            let at = layout::offset(types, ty, i).ok_or_else(|| bug("the address of no part"))?;
            f.e.number(wide, bits, at)
        }
        (None, None) => return Err(bug("a part whose number is not known")),
        (Some(size), Some(i)) => f.e.number(wide, bits, size.wrapping_mul(i)),
        (Some(size), None) => {
            let prim = types.as_prim(f.function.ty(idx)).ok_or_else(|| bug("an index that is no number"))?;
            let number = f.value(idx)?;
            let code = if prim.is_signed() { Code::SConvert } else { Code::UConvert };
            let number = if prim.bits() == bits { number } else { f.op(code, wide, &[number]) };
            let size = f.e.number(wide, bits, size);
            f.op(Code::IMul, wide, &[number, size])
        }
    };
    let is_zero = f.function.as_index(idx) == Some(0);
    Ok(if is_zero { word } else { f.moved(word, space, offset) })
}

/// A local variable.
pub(crate) fn slot(f: &mut FunctionEmitter, result: Value) -> Result<Word> {
    if f.e.is_vulkan() {
        return Ok(offset_of(f, Site::Value(f.func, result)));
    }
    let (ty, space) = pointee(f, result)?;
    let (size, align) = layout::size_align(&f.e.module.types, ty).unwrap_or((0, 1));
    let byte = f.e.int(8);
    let bytes = f.e.array(byte, size.max(1));
    let variable = f.local(bytes);
    f.e.decorate(variable, Decoration::Alignment, vec![Operand::LiteralBit32(align as u32)]);
    first_byte(f, variable, space)
}

/// Memory of the block.
pub(crate) fn shared(f: &mut FunctionEmitter, bytes: u64, result: Value) -> Result<Word> {
    if f.e.is_vulkan() {
        return Ok(offset_of(f, Site::Value(f.func, result)));
    }
    let (ty, space) = pointee(f, result)?;
    let align = layout::size_align(&f.e.module.types, ty).map_or(1, |s| s.1);
    let byte = f.e.int(8);
    let all = f.e.array(byte, bytes.max(1));
    let variable = f.e.variable(StorageClass::Workgroup, all, None);
    f.e.shared.insert(variable, bytes);
    f.e.uses(variable);
    f.e.decorate(variable, Decoration::Alignment, vec![Operand::LiteralBit32(align as u32)]);
    first_byte(f, variable, space)
}

/// The address of a static.
pub(crate) fn global(f: &mut FunctionEmitter, id: GlobalId) -> Result<Word> {
    let global = &f.e.module.globals[id.idx()];
    if f.e.is_vulkan() {
        return match global.space {
            3..=5 => Ok(offset_of(f, Site::Global(id))),
            _ => Err(bug(format!("the static `{}`, which lies in the host's memory", global.name))),
        };
    }
    let variable = match f.e.statics.get(&id) {
        Some(&variable) => variable,
        None => {
            let (size, align) = layout::size_align(&f.e.module.types, global.ty).unwrap_or((0, 1));
            f.check_static(size)?;
            let bytes = f.e.initial(&[(id, 0)], size.max(1)).map_err(|d| f.placed(d))?;
            let byte = f.e.int(8);
            let ty = f.e.array(byte, size.max(1));
            let init = f.constants(&bytes, Prim::U8, ty);
            let variable = f.e.variable(StorageClass::UniformConstant, ty, Some(init));
            f.e.decorate(variable, Decoration::Constant, Vec::new());
            f.e.decorate(variable, Decoration::Alignment, vec![Operand::LiteralBit32(align as u32)]);
            f.e.name(variable, &global.name);
            f.e.statics.insert(id, variable);
            variable
        }
    };
    f.e.uses(variable);
    first_byte(f, variable, global.space)
}

/// The place of a variable in its arena.
fn offset_of(f: &mut FunctionEmitter, site: Site) -> Word {
    let at = f.e.arenas.as_ref().and_then(|a| a.offsets.get(&site).copied()).unwrap_or(0);
    f.e.u32(at as u32)
}

/// The address of an array of bytes.
fn first_byte(f: &mut FunctionEmitter, variable: Word, space: u8) -> Result<Word> {
    let (ty, zero) = (f.e.address(space), f.e.u32(0));
    Ok(f.op(Code::InBoundsAccessChain, ty, &[variable, zero]))
}
