//! Addresses and memory. Accesses depend on the address: contiguous, in reverse, with small gaps, or by gather and
//! scatter; aggregates are accessed leaf by leaf.

use crate::linear::{Builder, Wide};
use crate::shapes::Shape;
use nyala_flat::*;
use nyala_ir::{Op, Prim, Ty, TyKind, layout};

/// Maximal distance of lanes, in elements, up to which they are read together with the elements between.
const MAX_GAP: u64 = 4;

/// The addresses of one leaf in the lanes.
enum Leaf {
    /// Lane k is at `base` plus k times a number of bytes.
    Strided(Value, i64),
    Indexed(Value, Value, u64),
    /// Lanes side by side, in a variable that only these lanes access.
    Own(Value),
}

impl Builder<'_> {
    // Addresses.

    /// A uniform index into an array of the lanes' own, or 0 if it is beyond the end: code runs for no active lane, too, as the
    /// last round of a loop does, and then accesses the array all the same.
    fn index_within(&mut self, array: Value, idx: Value) -> Value {
        let aggregate = self.module.types.pointee(self.old.ty(array));
        let scalar = self.scalar(idx);
        let Some(TyKind::Array(_, n)) = aggregate.map(|ty| self.module.types.kind(ty)) else { return scalar };
        let (n, ty) = (*n, self.old.ty(idx));
        let Some(prim) = self.module.types.as_prim(ty) else { return scalar };
        if self.new.as_bits(scalar).is_some() {
            return scalar;
        }
        let unsigned = crate::widen::unsigned(prim);
        let (number, n) = (self.cast(scalar, unsigned), self.literal(unsigned, n));
        let bool_ty = self.module.types.bool();
        let is_within = self.op(Op::Lt, &[number, n], bool_ty);
        let zero = self.literal(prim, 0);
        self.op(Op::Select, &[is_within, scalar, zero], ty)
    }

    /// The address of a slot whose lanes are interleaved, or of a part of it.
    pub fn own_address(&mut self, inst: &Inst) -> Wide {
        let nothing = Wide::Own { base: self.nothing(), bytes: None };
        let Some(r) = inst.result else { return nothing };
        let Some(pointee) = self.module.types.pointee(self.old.ty(r)) else { return nothing };
        let wide = self.widen(pointee);
        let ptr = self.module.types.ptr(wide);
        if inst.op == InstOp::Op(Op::Slot) {
            return Wide::Own { base: self.slot(wide), bytes: None };
        }
        let Wide::Own { base, bytes } = self.wide(inst.args[0]) else { return nothing };
        if inst.op == InstOp::Op(Op::Bitcast) {
            return Wide::Own { base: self.op(Op::Bitcast, &[base], ptr), bytes };
        }
        let idx = inst.args[1];
        if self.shape(idx, self.here) == Shape::Uniform {
            let idx = self.index_within(inst.args[0], idx);
            return Wide::Own { base: self.op(Op::Lea, &[base, idx], ptr), bytes };
        }
        let index = self.vector(idx);
        let own = self.bytes(index, self.size(wide));
        let bytes = match bytes {
            None => own,
            Some(before) => self.add_wrapping(before, own),
        };
        let zero = self.literal(Prim::I64, 0);
        Wide::Own { base: self.op(Op::Lea, &[base, zero], ptr), bytes: Some(bytes) }
    }

    /// Makes a slot with a variable for each lane, one after the other.
    pub fn lane_slots(&mut self, inst: &Inst) -> Option<Wide> {
        let ty = self.old.ty(inst.result?);
        let pointee = self.module.types.pointee(ty)?;
        let all = self.module.types.array(pointee, self.width.into());
        let slot = self.slot(all);
        let base = self.op(Op::Bitcast, &[slot], ty);
        match self.size(pointee) {
            0 => Some(Wide::Uniform(base)),
            size => Some(Wide::Strided(base, size as i64)),
        }
    }

    pub fn lea(&mut self, inst: &Inst, ty: Ty) -> Wide {
        let (ptr, idx) = (inst.args[0], inst.args[1]);
        let aggregate = self.module.types.pointee(self.old.ty(ptr)).unwrap_or(ty);
        let elem = match *self.module.types.kind(aggregate) {
            TyKind::Array(elem, _) | TyKind::IndefArray(elem) => self.size(elem),
            TyKind::Vector(prim, _) => layout::prim_size(prim),
            _ => 0,
        };
        let pointee = self.module.types.pointee(ty).unwrap_or(ty);
        let address = self.wide(ptr);
        if elem == 0 {
            // A field, or an element without a size.
            let i = self.old.as_index(idx).unwrap_or(0);
            let offset = layout::offset(&self.module.types, aggregate, i).unwrap_or(0) as i64;
            return self.offset_by(address, offset, pointee, self.old.ty(ptr));
        }
        let index_shape = self.shape(idx, self.here);
        if index_shape == Shape::Uniform {
            let scalar = self.scalar(idx);
            if let Wide::Indexed { base, index, scale } = address {
                let base = match self.new.as_bits(scalar) {
                    Some(0) => self.point_to(base, pointee),
                    _ => self.op(Op::Lea, &[base, scalar], ty),
                };
                return Wide::Indexed { base, index, scale };
            }
            let (base, all) = (self.vector_of_wide(address, self.old.ty(ptr)), self.spread(scalar, self.old.ty(idx)));
            let bytes = self.bytes(all, elem);
            let bytes = self.cast(bytes, Prim::U64);
            return Wide::Vector(self.add_wrapping(base, bytes));
        }
        let index = self.index(idx);
        // The lanes' elements are in one array only if `base` is uniform. Otherwise it is no `lea` of an array, whose accesses
        // `gen-llvm` may take for accesses within that array (`tables`).
        match address {
            Wide::Uniform(base) => {
                let zero = self.literal(Prim::I64, 0);
                let base = self.op(Op::Lea, &[base, zero], ty);
                match elem {
                    1 | 2 | 4 | 8 => Wide::Indexed { base, index, scale: elem },
                    _ => Wide::Indexed { base, index: self.bytes(index, elem), scale: 1 },
                }
            }
            Wide::Indexed { base, index: before, scale } => {
                let (before, own) = (self.bytes(before, scale), self.bytes(index, elem));
                let index = self.add_wrapping(before, own);
                Wide::Indexed { base: self.point_to(base, pointee), index, scale: 1 }
            }
            Wide::Strided(base, step) => {
                let (before, own) = (self.steps(Prim::I64, step), self.bytes(index, elem));
                let index = self.add_wrapping(before, own);
                Wide::Indexed { base: self.point_to(base, pointee), index, scale: 1 }
            }
            _ => {
                let base = self.vector_of_wide(address, self.old.ty(ptr));
                let bytes = self.bytes(index, elem);
                let bytes = self.cast(bytes, Prim::U64);
                Wide::Vector(self.add_wrapping(base, bytes))
            }
        }
    }

    /// An index as lanes of i32 or of 64 bits, as gathers take it.
    pub fn index(&mut self, idx: Value) -> Value {
        let prim = self.module.types.as_prim(self.old.ty(idx)).unwrap_or(Prim::I64);
        let index = self.vector(idx);
        match prim {
            Prim::I8 | Prim::I16 | Prim::U8 | Prim::U16 => self.cast(index, Prim::I32),
            Prim::I32 | Prim::I64 => index,
            _ => self.cast(index, Prim::I64),
        }
    }

    fn offset_by(&mut self, address: Wide, bytes: i64, pointee: Ty, ty: Ty) -> Wide {
        let by = |b: &mut Self, base: Value| {
            let at = b.further_by(base, bytes);
            b.point_to(at, pointee)
        };
        match address {
            Wide::Uniform(base) => Wide::Uniform(by(self, base)),
            Wide::Strided(base, step) => Wide::Strided(by(self, base), step),
            Wide::Indexed { base, index, scale } => Wide::Indexed { base: by(self, base), index, scale },
            _ => {
                let base = self.vector_of_wide(address, ty);
                let bytes = self.literal(Prim::U64, bytes as u64);
                let bytes = self.splat(bytes, Prim::U64);
                Wide::Vector(self.add_wrapping(base, bytes))
            }
        }
    }

    // Memory.

    /// The addresses of the leaf at `offset` from an address.
    fn leaf(&mut self, address: Wide, offset: u64, leaf: Ty) -> Leaf {
        let prim = self.leaf_prim(leaf);
        let ty = self.module.types.prim(prim);
        match address {
            Wide::Uniform(base) | Wide::Strided(base, _) => {
                let step = if let Wide::Strided(_, step) = address { step } else { 0 };
                let at = self.further_by(base, offset as i64);
                Leaf::Strided(self.point_to(at, ty), step)
            }
            Wide::Indexed { base, index, scale } => {
                let at = self.further_by(base, offset as i64);
                Leaf::Indexed(self.point_to(at, ty), index, scale)
            }
            Wide::Vector(addresses) => {
                let ptr = self.module.types.ptr(ty);
                let null = self.new.constant(Const::Bits(0), ptr);
                let index = match offset {
                    0 => addresses,
                    _ => {
                        let offset = self.literal(Prim::U64, offset);
                        let offset = self.splat(offset, Prim::U64);
                        self.add_wrapping(addresses, offset)
                    }
                };
                Leaf::Indexed(null, self.cast(index, Prim::I64), 1)
            }
            Wide::Own { base, bytes } => {
                let lanes = self.module.types.vector(prim, self.width);
                let at = self.further_by(base, offset as i64);
                match bytes {
                    None => Leaf::Own(self.point_to(at, lanes)),
                    Some(bytes) => {
                        let steps = self.steps(Prim::I64, layout::prim_size(prim) as i64);
                        let index = self.add_wrapping(bytes, steps);
                        Leaf::Indexed(self.point_to(at, ty), index, 1)
                    }
                }
            }
        }
    }

    /// Offsets of the parts of a type in memory, or of its widened form in interleaved variables.
    fn offsets(&mut self, ty: Ty, is_own: bool) -> Vec<u64> {
        let laid_out = if is_own { self.widen(ty) } else { ty };
        (0..self.parts(ty).len() as u64).map(|i| layout::offset(&self.module.types, laid_out, i).unwrap_or(0)).collect()
    }

    /// Loads the lanes' values from an address.
    pub fn load(&mut self, ptr: Value, ty: Ty) -> Value {
        let address = self.wide(ptr);
        self.load_at(address, 0, ty)
    }

    fn load_at(&mut self, address: Wide, offset: u64, ty: Ty) -> Value {
        if self.is_leaf(ty) {
            let leaf = self.leaf(address, offset, ty);
            let prim = self.leaf_prim(ty);
            return self.load_leaf(leaf, prim);
        }
        let is_own = matches!(address, Wide::Own { .. });
        if let Wide::Own { base, bytes: None } = address {
            let wide = self.widen(ty);
            let at = self.further_by(base, offset as i64);
            let at = self.point_to(at, wide);
            return self.op(Op::Load, &[at], wide);
        }
        if self.is_too_large(ty) {
            let wide = self.widen(ty);
            return self.new.undef(wide);
        }
        let (parts, offsets) = (self.parts(ty), self.offsets(ty, is_own));
        let mut made = Vec::with_capacity(parts.len());
        for (&part, &at) in parts.iter().zip(&offsets) {
            made.push(self.load_at(address, offset + at, part));
        }
        let wide = self.widen(ty);
        self.build(&made, wide)
    }

    fn vector_load(&mut self, op: VectorOp, args: &[Value], ty: Ty, mask: Option<Value>) -> Value {
        let mut all = args.to_vec();
        all.extend(mask);
        self.with_result(InstOp::Vector(op), &all, ty)
    }

    fn vector_store(&mut self, op: VectorOp, args: &[Value], mask: Option<Value>) {
        let mut all = args.to_vec();
        all.extend(mask);
        self.push(InstOp::Vector(op), &all, None);
    }

    fn load_leaf(&mut self, leaf: Leaf, prim: Prim) -> Value {
        let lanes = self.module.types.vector(prim, self.width);
        let size = layout::prim_size(prim) as i64;
        let mask = self.mask;
        let width = i64::from(self.width);
        match leaf {
            Leaf::Own(at) => {
                self.note_access("the lane's own variable", false);
                self.op(Op::Load, &[at], lanes)
            }
            Leaf::Strided(at, step) if step == size || self.width == 1 => {
                self.note_access("consecutive", false);
                self.vector_load(VectorOp::Load, &[at], lanes, mask)
            }
            Leaf::Strided(at, step) if step == -size => {
                self.note_access("consecutive, in reverse", false);
                let first = self.further_by(at, -size * (width - 1));
                let mask = mask.map(|m| self.reversed(m));
                let value = self.vector_load(VectorOp::Load, &[first], lanes, mask);
                self.reversed(value)
            }
            Leaf::Strided(at, step)
                if mask.is_none() && step > 0 && step % size == 0 && step / size <= MAX_GAP as i64 =>
            {
                let gap = step / size;
                self.note_access(&format!("every {gap} elements: one long load and a shuffle"), false);
                let all = self.module.types.vector(prim, ((width - 1) * gap + 1) as u32);
                let value = self.vector_load(VectorOp::Load, &[at], all, None);
                let index = self.steps(Prim::I32, gap);
                self.op(Op::Shuffle, &[value, value, index], lanes)
            }
            Leaf::Strided(at, step) => {
                self.note_access("gather", true);
                let index = self.steps(Prim::I64, step);
                self.gather(at, index, 1, lanes)
            }
            Leaf::Indexed(at, index, scale) => {
                self.note_gather();
                self.gather(at, index, scale, lanes)
            }
        }
    }

    fn gather(&mut self, at: Value, index: Value, scale: u64, lanes: Ty) -> Value {
        let scale = self.literal(Prim::I64, scale);
        self.vector_load(VectorOp::Gather, &[at, index, scale], lanes, self.mask)
    }

    pub fn reversed(&mut self, value: Value) -> Value {
        let lanes: Vec<Value> = (0..self.width).rev().map(|k| self.literal(Prim::I32, k.into())).collect();
        let index = self.module.types.vector(Prim::I32, self.width);
        let index = self.op(Op::Array, &lanes, index);
        let ty = self.new.ty(value);
        self.op(Op::Shuffle, &[value, value, index], ty)
    }

    pub fn store(&mut self, inst: &Inst) {
        let (ptr, value) = (inst.args[0], inst.args[1]);
        let ty = self.old.ty(value);
        let address = self.wide(ptr);
        if let (Wide::Uniform(base), Shape::Uniform) = (address, self.shape(value, self.here)) {
            let value = self.scalar(value);
            self.note_access("one store for all lanes", false);
            self.push(inst.op, &[base, value], None);
            return;
        }
        if let Wide::Uniform(base) = address {
            // If lanes write to the same address, the last one's value stays.
            self.note_access("the last active lane's value", false);
            let (lane, wide) = (self.last_lane(), self.wide(value));
            let one = self.lane(wide, ty, lane);
            self.push(inst.op, &[base, one], None);
            return;
        }
        let value = self.vector(value);
        // If these lanes made the variable, no others use it: the store needs no mask. An index is undefined in
        // inactive lanes.
        let mask = self.mask;
        let is_fixed = matches!(address, Wide::Own { bytes: None, .. });
        if is_fixed && self.shapes.own[ptr].is_some_and(|slot| self.same_lanes(self.shapes.home[slot])) {
            self.mask = None;
        }
        self.store_at(address, 0, value, ty);
        self.mask = mask;
    }

    fn store_at(&mut self, address: Wide, offset: u64, value: Value, ty: Ty) {
        if self.is_leaf(ty) {
            let leaf = self.leaf(address, offset, ty);
            let prim = self.leaf_prim(ty);
            return self.store_leaf(leaf, value, prim);
        }
        let is_own = matches!(address, Wide::Own { .. });
        if let Wide::Own { base, bytes: None } = address {
            let wide = self.widen(ty);
            let at = self.further_by(base, offset as i64);
            let at = self.point_to(at, wide);
            let value = match self.mask {
                Some(mask) => {
                    let old = self.op(Op::Load, &[at], wide);
                    self.blend(mask, value, old, ty)
                }
                None => value,
            };
            self.push(InstOp::Op(Op::Store), &[at, value], None);
            return;
        }
        if self.is_too_large(ty) {
            return;
        }
        let (parts, offsets) = (self.parts(ty), self.offsets(ty, is_own));
        for (i, (&part, &at)) in parts.iter().zip(&offsets).enumerate() {
            let own = self.extract(value, i);
            self.store_at(address, offset + at, own, part);
        }
    }

    fn store_leaf(&mut self, leaf: Leaf, value: Value, prim: Prim) {
        let size = layout::prim_size(prim) as i64;
        let mask = self.mask;
        match leaf {
            Leaf::Own(at) => {
                self.note_access("the lane's own variable", false);
                let ty = self.new.ty(value);
                let value = match mask {
                    Some(mask) => {
                        let old = self.op(Op::Load, &[at], ty);
                        self.op(Op::Select, &[mask, value, old], ty)
                    }
                    None => value,
                };
                self.push(InstOp::Op(Op::Store), &[at, value], None);
            }
            Leaf::Strided(at, step) if step == size || self.width == 1 => {
                self.note_access("consecutive", false);
                self.vector_store(VectorOp::Store, &[at, value], mask);
            }
            Leaf::Strided(at, step) if step == -size => {
                self.note_access("consecutive, in reverse", false);
                let first = self.further_by(at, -size * (i64::from(self.width) - 1));
                let mask = mask.map(|m| self.reversed(m));
                let value = self.reversed(value);
                self.vector_store(VectorOp::Store, &[first, value], mask);
            }
            Leaf::Strided(at, step) => {
                self.note_access("scatter", true);
                let index = self.steps(Prim::I64, step);
                let scale = self.literal(Prim::I64, 1);
                self.vector_store(VectorOp::Scatter, &[at, index, scale, value], mask);
            }
            Leaf::Indexed(at, index, scale) => {
                self.note_access("scatter", true);
                let scale = self.literal(Prim::I64, scale);
                self.vector_store(VectorOp::Scatter, &[at, index, scale, value], mask);
            }
        }
    }
}
