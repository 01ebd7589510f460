//! What instructions become in the vector version.
//!
//! Uniform and strided results are computed once, as in the scalar function, from what lane 0 has. Of varying ones,
//! arithmetic works on vectors; memory is accessed as the address allows ([`Builder::load_leaf`]); everything else is done
//! for one active lane after the other ([`Builder::each_lane`]).

use crate::linear::{Builder, Wide};
use crate::shapes::{LaneOp, Shape, is_address, stride};
use nyala_base::Id;
use nyala_flat::*;
use nyala_ir::{Op, Prim, Ty, TyKind, Types, layout};

/// Lanes may be at most so many elements apart to be read together with what is between them.
const MAX_GAP: u64 = 4;

/// Where the lanes' parts of one leaf lie.
enum Leaf {
    /// Lane k at `base` and k times so many bytes.
    Strided(Value, i64),
    Indexed(Value, Value, u64),
    /// Side by side, nobody else's.
    Own(Value),
}

impl Builder<'_> {
    // Types.

    pub fn widen(&mut self, ty: Ty) -> Ty {
        widen(&mut self.module.types, ty, self.width)
    }

    /// Types of the parts of an aggregate; none of what is a leaf.
    fn parts(&self, ty: Ty) -> Vec<Ty> {
        let types = &self.module.types;
        match types.kind(ty) {
            TyKind::Prim(_) | TyKind::Ptr { .. } | TyKind::Code => Vec::new(),
            _ => (0..types.n_parts(ty).unwrap_or(0)).filter_map(|i| types.part(ty, i)).collect(),
        }
    }

    fn is_leaf(&self, ty: Ty) -> bool {
        matches!(self.module.types.kind(ty), TyKind::Prim(_) | TyKind::Ptr { .. } | TyKind::Code)
    }

    /// What the lanes of a leaf's vector are.
    fn leaf_prim(&self, ty: Ty) -> Prim {
        self.module.types.as_prim(ty).unwrap_or(Prim::U64)
    }

    fn size(&self, ty: Ty) -> u64 {
        layout::size_align(&self.module.types, ty).map_or(0, |l| l.0)
    }

    pub fn extract(&mut self, aggregate: Value, i: usize) -> Value {
        let from = self.new.ty(aggregate);
        let ty = self.module.types.part(from, i as u64).unwrap_or(from);
        let index = self.literal(Prim::I32, i as u64);
        self.op(Op::Extract, &[aggregate, index], ty)
    }

    /// An aggregate of a widened type.
    fn build(&mut self, parts: &[Value], ty: Ty) -> Value {
        let op = if matches!(self.module.types.kind(ty), TyKind::Array(..)) { Op::Array } else { Op::Tuple };
        self.op(op, parts, ty)
    }

    /// Does something with each leaf of values of type `ty`, widened ones; what comes of it, put together.
    fn by_leaf(&mut self, ty: Ty, values: &[Value], f: &mut dyn FnMut(&mut Self, &[Value], Ty) -> Value) -> Value {
        if self.is_leaf(ty) {
            return f(self, values, ty);
        }
        let parts = self.parts(ty);
        let mut made = Vec::with_capacity(parts.len());
        for (i, &part) in parts.iter().enumerate() {
            let own: Vec<Value> = values.iter().map(|&v| self.extract(v, i)).collect();
            made.push(self.by_leaf(part, &own, f));
        }
        let wide = self.widen(ty);
        self.build(&made, wide)
    }

    pub fn blend(&mut self, mask: Value, yes: Value, no: Value, ty: Ty) -> Value {
        if yes == no {
            return yes;
        }
        self.by_leaf(ty, &[yes, no], &mut |b, v, _| {
            let ty = b.new.ty(v[0]);
            b.op(Op::Select, &[mask, v[0], v[1]], ty)
        })
    }

    // Values.

    /// 0, s, 2s, … in the lanes.
    fn steps(&mut self, prim: Prim, step: i64) -> Value {
        let lanes: Vec<Value> =
            (0..i64::from(self.width)).map(|k| self.literal(prim, k.wrapping_mul(step) as u64)).collect();
        let ty = self.module.types.vector(prim, self.width);
        self.op(Op::Array, &lanes, ty)
    }

    fn splat(&mut self, value: Value, prim: Prim) -> Value {
        let ty = self.module.types.vector(prim, self.width);
        self.op(Op::Splat, &[value], ty)
    }

    /// An address as a number.
    fn address_bits(&mut self, ptr: Value) -> Value {
        let ty = self.module.types.prim(Prim::U64);
        self.op(Op::Bitcast, &[ptr], ty)
    }

    /// The same address, of something of type `ty`.
    fn point_to(&mut self, ptr: Value, ty: Ty) -> Value {
        let space = match self.module.types.kind(self.new.ty(ptr)) {
            TyKind::Ptr { space, .. } => *space,
            _ => return ptr,
        };
        let to = self.module.types.intern(TyKind::Ptr { pointee: ty, space });
        if self.new.ty(ptr) == to { ptr } else { self.op(Op::Bitcast, &[ptr], to) }
    }

    /// An address so many bytes further.
    fn further(&mut self, ptr: Value, bytes: Value) -> Value {
        let back = self.module.types.pointee(self.new.ty(ptr)).unwrap_or(self.module.types.unit());
        let u8 = self.module.types.prim(Prim::U8);
        let array = self.module.types.indef_array(u8);
        let base = self.point_to(ptr, array);
        let space = match self.module.types.kind(self.new.ty(base)) {
            TyKind::Ptr { space, .. } => *space,
            _ => 0,
        };
        let ty = self.module.types.intern(TyKind::Ptr { pointee: u8, space });
        let at = self.op(Op::Lea, &[base, bytes], ty);
        self.point_to(at, back)
    }

    fn further_by(&mut self, ptr: Value, bytes: i64) -> Value {
        if bytes == 0 {
            return ptr;
        }
        let bytes = self.literal(Prim::I64, bytes as u64);
        self.further(ptr, bytes)
    }

    /// A value in lane 0, of what is uniform or strided in the others.
    pub fn scalar(&mut self, v: Value) -> Value {
        match self.wide(v) {
            Wide::Uniform(value) | Wide::Strided(value, _) => value,
            Wide::Own { base, .. } => base,
            Wide::Indexed { base, .. } => base,
            Wide::Vector(value) => {
                debug_assert!(false, "a varying value as a scalar");
                value
            }
        }
    }

    /// A value as one for each lane.
    pub fn vector(&mut self, v: Value) -> Value {
        let wide = self.wide(v);
        self.vector_of_wide(wide, self.old.ty(v))
    }

    /// The same where the value is defined, for a loop that is left.
    pub fn vector_of(&mut self, v: Value) -> Value {
        match self.map[v] {
            Some(wide) => self.vector_of_wide(wide, self.old.ty(v)),
            None => {
                let ty = self.widen(self.old.ty(v));
                self.new.undef(ty)
            }
        }
    }

    fn vector_of_wide(&mut self, wide: Wide, ty: Ty) -> Value {
        match wide {
            Wide::Vector(value) => value,
            Wide::Uniform(value) => self.spread(value, ty),
            Wide::Strided(base, step) => {
                let prim = self.leaf_prim(ty);
                let base = if is_address(&self.module.types, ty) { self.address_bits(base) } else { base };
                let (base, steps) = (self.splat(base, prim), self.steps(unsigned(prim), step));
                self.add_wrapping(base, steps)
            }
            Wide::Indexed { base, index, scale } => {
                let base = self.address_bits(base);
                let base = self.splat(base, Prim::U64);
                let bytes = self.bytes(index, scale);
                let bytes = self.cast(bytes, Prim::U64);
                self.add_wrapping(base, bytes)
            }
            Wide::Own { base, .. } => {
                debug_assert!(false, "the address of a variable of each lane as a value");
                self.spread(base, ty)
            }
        }
    }

    /// A uniform value in each lane.
    fn spread(&mut self, value: Value, ty: Ty) -> Value {
        if self.new.as_const(value) == Some(Const::Undef) {
            let ty = self.widen(ty);
            return self.new.undef(ty);
        }
        if self.is_leaf(ty) {
            let value = if self.module.types.as_prim(ty).is_some() { value } else { self.address_bits(value) };
            let prim = self.leaf_prim(ty);
            return self.splat(value, prim);
        }
        let parts = self.parts(ty);
        let mut made = Vec::with_capacity(parts.len());
        for (i, &part) in parts.iter().enumerate() {
            let own = self.extract(value, i);
            made.push(self.spread(own, part));
        }
        let wide = self.widen(ty);
        self.build(&made, wide)
    }

    /// Numbers of lanes as those of another type.
    fn cast(&mut self, value: Value, to: Prim) -> Value {
        let from = self.new.ty(value);
        let ty = self.module.types.like(from, to);
        if from == ty { value } else { self.op(Op::Cast, &[value], ty) }
    }

    /// A sum modulo 2^n: signed ones may overflow in lanes that nobody asks for, or as addresses.
    fn add_wrapping(&mut self, a: Value, b: Value) -> Value {
        let prim = self.module.types.lane_prim(self.new.ty(a)).unwrap_or(Prim::U64);
        let (x, y) = (self.cast(a, unsigned(prim)), self.cast(b, unsigned(prim)));
        let ty = self.new.ty(x);
        let sum = self.op(Op::Add, &[x, y], ty);
        self.cast(sum, prim)
    }

    /// Indices times bytes, i64.
    fn bytes(&mut self, index: Value, scale: u64) -> Value {
        let index = self.cast(index, Prim::I64);
        if scale == 1 {
            return index;
        }
        let scale = self.literal(Prim::I64, scale);
        let scale = self.splat(scale, Prim::I64);
        let (x, y) = (self.cast(index, Prim::U64), self.cast(scale, Prim::U64));
        let ty = self.new.ty(x);
        let product = self.op(Op::Mul, &[x, y], ty);
        self.cast(product, Prim::I64)
    }

    /// What one lane has, its number a u64.
    pub fn lane(&mut self, wide: Wide, ty: Ty, lane: Value) -> Value {
        match wide {
            Wide::Uniform(value) => value,
            Wide::Strided(base, step) if is_address(&self.module.types, ty) => {
                let step = self.literal(Prim::U64, step as u64);
                let u64 = self.module.types.prim(Prim::U64);
                let bytes = self.op(Op::Mul, &[lane, step], u64);
                let i64 = self.module.types.prim(Prim::I64);
                let bytes = self.op(Op::Cast, &[bytes], i64);
                self.further(base, bytes)
            }
            Wide::Own { base, .. } => base,
            _ => {
                let value = self.vector_of_wide(wide, ty);
                self.lane_of(value, ty, lane)
            }
        }
    }

    /// A lane of a widened value.
    fn lane_of(&mut self, value: Value, ty: Ty, lane: Value) -> Value {
        if self.is_leaf(ty) {
            let prim = self.leaf_prim(ty);
            let own = self.module.types.prim(prim);
            let one = self.op(Op::Extract, &[value, lane], own);
            return if own == ty { one } else { self.op(Op::Bitcast, &[one], ty) };
        }
        let parts = self.parts(ty);
        let mut made = Vec::with_capacity(parts.len());
        for (i, &part) in parts.iter().enumerate() {
            let own = self.extract(value, i);
            made.push(self.lane_of(own, part, lane));
        }
        let op = match self.module.types.kind(ty) {
            TyKind::Struct(_) => Op::Struct,
            TyKind::Tuple(_) => Op::Tuple,
            _ => Op::Array,
        };
        self.op(op, &made, ty)
    }

    /// A widened value with another value in one lane.
    fn with_lane(&mut self, value: Value, ty: Ty, lane: Value, one: Value) -> Value {
        if self.is_leaf(ty) {
            let one = if self.module.types.as_prim(ty).is_some() { one } else { self.address_bits(one) };
            let wide = self.new.ty(value);
            return self.op(Op::Insert, &[value, lane, one], wide);
        }
        let parts = self.parts(ty);
        let mut made = Vec::with_capacity(parts.len());
        for (i, &part) in parts.iter().enumerate() {
            let (old, new) = (self.extract(value, i), self.extract(one, i));
            made.push(self.with_lane(old, part, lane, new));
        }
        let wide = self.new.ty(value);
        self.build(&made, wide)
    }

    // Instructions.

    fn args_shapes(&self, inst: &Inst, b: usize) -> Vec<Shape> {
        inst.args.iter().map(|&a| self.shape(a, b)).collect()
    }

    /// Whether an instruction does harm if no lane is active.
    pub fn needs_lanes(&self, inst: &Inst, b: usize) -> bool {
        let uniform = |i: usize| self.shape(inst.args[i], b) == Shape::Uniform;
        match inst.op {
            InstOp::Op(op) => match op {
                Op::Load | Op::Store => uniform(0) && !self.shapes.own[inst.args[0]],
                Op::PDiv | Op::PRem => uniform(0) && uniform(1),
                Op::Alloc | Op::Atomic | Op::AtomicLoad | Op::AtomicStore | Op::Cmpxchg | Op::CmpxchgWeak => true,
                _ => false,
            },
            InstOp::Call(f) => self.versions.lane_operation(f).is_none(),
            InstOp::CallIndirect | InstOp::Vectorize(..) | InstOp::Vector(_) => true,
        }
    }

    pub fn inst(&mut self, inst: &Inst) {
        let b = self.here;
        let shape = inst.result.map(|r| self.shape(r, b));
        let is_own = inst.result.is_some_and(|r| self.shapes.own[r]);
        let wide = match (inst.op, shape) {
            _ if is_own => Some(self.own_address(inst)),
            (InstOp::Op(Op::Slot), _) => self.lane_slots(inst),
            (InstOp::Op(Op::Store), _) => {
                self.store(inst);
                None
            }
            (InstOp::Op(Op::Fence), _) => {
                let args: Vec<Value> = inst.args.iter().map(|&a| self.scalar(a)).collect();
                self.push(inst.op, &args, None);
                None
            }
            (InstOp::Op(Op::Prefetch), _) if self.shape(inst.args[0], b) != Shape::Varying => {
                let args: Vec<Value> = inst.args.iter().map(|&a| self.scalar(a)).collect();
                self.push(inst.op, &args, None);
                None
            }
            (InstOp::Call(f), _) => self.call(inst, f, shape),
            (InstOp::Op(op), Some(shape @ (Shape::Uniform | Shape::Strided(_)))) => Some(self.once(inst, op, shape)),
            (InstOp::Op(op), Some(Shape::Varying)) => Some(self.varying(inst, op)),
            (InstOp::Vectorize(..), _) => {
                self.versions.nested(inst.span);
                None
            }
            _ => self.each_lane(inst),
        };
        if let (Some(r), Some(wide)) = (inst.result, wide) {
            if let Wide::Uniform(v) | Wide::Strided(v, _) | Wide::Vector(v) = wide
                && self.new.as_const(v).is_none()
                && self.new.values[v.idx()].name.is_empty()
            {
                self.new.values[v.idx()].name = self.old.values[r.idx()].name.clone();
            }
            self.map[r] = Some(wide);
        }
    }

    /// The operation on what lane 0 has. Where that lane may not be active, signed numbers may overflow there.
    fn once(&mut self, inst: &Inst, op: Op, shape: Shape) -> Wide {
        let args: Vec<Value> = inst.args.iter().map(|&a| self.scalar(a)).collect();
        let Some(r) = inst.result else { return Wide::Uniform(args[0]) };
        let ty = self.old.ty(r);
        let prim = self.module.types.as_prim(ty);
        let may_overflow = self.mask.is_some() && matches!(op, Op::Add | Op::Sub | Op::Mul) && stride(shape) != 0;
        let value = match prim {
            Some(prim) if may_overflow && prim.is_signed() => {
                let args: Vec<Value> = args.iter().map(|&a| self.cast(a, unsigned(prim))).collect();
                let unsigned = self.module.types.prim(unsigned(prim));
                let result = self.op(op, &args, unsigned);
                self.cast(result, prim)
            }
            _ => self.op(op, &args, ty),
        };
        match shape {
            Shape::Strided(s) => Wide::Strided(value, s),
            _ => Wide::Uniform(value),
        }
    }

    fn varying(&mut self, inst: &Inst, op: Op) -> Wide {
        let Some(result) = inst.result else { return Wide::Own { base: inst.args[0], bytes: None } };
        let ty = self.old.ty(result);
        match op {
            Op::Load => Wide::Vector(self.load(inst.args[0], ty)),
            Op::Lea => self.lea(inst, ty),
            Op::Tuple | Op::Struct | Op::Array => {
                let parts: Vec<Value> = inst.args.iter().map(|&a| self.vector(a)).collect();
                let wide = self.widen(ty);
                Wide::Vector(self.build(&parts, wide))
            }
            Op::Splat => {
                let part = self.vector(inst.args[0]);
                let n = self.module.types.n_parts(ty).unwrap_or(0);
                let wide = self.widen(ty);
                if n <= 64 {
                    return Wide::Vector(self.build(&vec![part; n as usize], wide));
                }
                Wide::Vector(self.op(Op::Splat, &[part], wide))
            }
            Op::Extract | Op::Insert => self.part(inst, op, ty),
            Op::Select => {
                let (yes, no) = (self.vector(inst.args[1]), self.vector(inst.args[2]));
                let cond_ty = self.old.ty(inst.args[0]);
                if self.module.types.as_vector(cond_ty).is_some() {
                    let cond = self.vector(inst.args[0]);
                    return Wide::Vector(self.lane_wise(op, &[cond, yes, no], ty, cond_ty));
                }
                if self.shape(inst.args[0], self.here) == Shape::Uniform {
                    let cond = self.scalar(inst.args[0]);
                    let wide = self.widen(ty);
                    return Wide::Vector(self.op(Op::Select, &[cond, yes, no], wide));
                }
                let cond = self.vector(inst.args[0]);
                Wide::Vector(self.blend(cond, yes, no, ty))
            }
            Op::Bitcast => {
                let from = self.old.ty(inst.args[0]);
                if !(self.is_leaf(from) && self.is_leaf(ty)) {
                    return self.each_lane(inst).unwrap_or(Wide::Vector(inst.args[0]));
                }
                let value = self.wide(inst.args[0]);
                if is_address(&self.module.types, from) && is_address(&self.module.types, ty) {
                    if let Wide::Indexed { base, index, scale } = value {
                        let pointee = self.module.types.pointee(ty).unwrap_or(ty);
                        return Wide::Indexed { base: self.point_to(base, pointee), index, scale };
                    }
                }
                let value = self.vector_of_wide(value, from);
                let wide = self.widen(ty);
                Wide::Vector(if self.new.ty(value) == wide { value } else { self.op(Op::Bitcast, &[value], wide) })
            }
            Op::PDiv | Op::PRem => {
                let (a, mut divisor) = (self.vector(inst.args[0]), self.vector(inst.args[1]));
                // In lanes that are not active it may be 0.
                if let Some(mask) = self.mask {
                    divisor = self.by_leaf(ty, &[divisor], &mut |b, v, leaf| {
                        let prim = b.leaf_prim(leaf);
                        let one = b.literal(prim, 1);
                        let (one, wide) = (b.splat(one, prim), b.new.ty(v[0]));
                        b.op(Op::Select, &[mask, v[0], one], wide)
                    });
                }
                Wide::Vector(self.lane_wise(op, &[a, divisor], ty, ty))
            }
            _ if op.is_lane_wise() => {
                let args: Vec<Value> = inst.args.iter().map(|&a| self.vector(a)).collect();
                let of = inst.args.first().map_or(ty, |&a| self.old.ty(a));
                Wide::Vector(self.lane_wise(op, &args, ty, of))
            }
            _ => self.each_lane(inst).unwrap_or(Wide::Vector(inst.args[0])),
        }
    }

    /// An operation on numbers, or on each of the numbers of `simd` values; `of` is the operands' type, `ty` the result's.
    fn lane_wise(&mut self, op: Op, args: &[Value], ty: Ty, of: Ty) -> Value {
        let wide = self.widen(ty);
        if self.module.types.as_vector(of).is_none() {
            return self.op(op, args, wide);
        }
        let n = self.module.types.n_parts(of).unwrap_or(0) as usize;
        let part = self.module.types.part(wide, 0).unwrap_or(wide);
        let mut made = Vec::with_capacity(n);
        for i in 0..n {
            let own: Vec<Value> = args.iter().map(|&a| self.extract(a, i)).collect();
            made.push(self.op(op, &own, part));
        }
        self.build(&made, wide)
    }

    /// A part of an aggregate; of a `simd` value also at an index that is not known.
    fn part(&mut self, inst: &Inst, op: Op, ty: Ty) -> Wide {
        let aggregate = self.vector(inst.args[0]);
        let of = self.old.ty(inst.args[0]);
        let new = (op == Op::Insert).then(|| self.vector(inst.args[2]));
        let n = self.module.types.n_parts(of).unwrap_or(0) as usize;
        if let Some(i) = self.old.as_index(inst.args[1]) {
            let i = i as usize;
            if i >= n {
                let wide = self.widen(ty);
                return Wide::Vector(self.new.undef(wide));
            }
            return Wide::Vector(match new {
                None => self.extract(aggregate, i),
                Some(part) => {
                    let (wide, index) = (self.new.ty(aggregate), self.literal(Prim::I32, i as u64));
                    self.op(Op::Insert, &[aggregate, index, part], wide)
                }
            });
        }
        let index = self.vector(inst.args[1]);
        let prim = self.module.types.lane_prim(self.new.ty(index)).unwrap_or(Prim::I32);
        let mask_ty = self.mask_ty();
        let (mut made, mut found) = (Vec::new(), None);
        for i in 0..n {
            let number = self.literal(prim, i as u64);
            let number = self.splat(number, prim);
            let here = self.op(Op::Eq, &[index, number], mask_ty);
            let part = self.extract(aggregate, i);
            let part_ty = self.new.ty(part);
            match new {
                Some(new) => made.push(self.op(Op::Select, &[here, new, part], part_ty)),
                None => {
                    found = Some(match found {
                        None => part,
                        Some(other) => self.op(Op::Select, &[here, part, other], part_ty),
                    });
                }
            }
        }
        let wide = self.widen(ty);
        Wide::Vector(match new {
            Some(_) => self.build(&made, wide),
            None => found.unwrap_or_else(|| self.new.undef(wide)),
        })
    }

    // Addresses.

    /// Slots whose lanes lie side by side, and places in them.
    fn own_address(&mut self, inst: &Inst) -> Wide {
        let nothing = Wide::Own { base: inst.args.first().copied().unwrap_or(Value(0)), bytes: None };
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
            let idx = self.scalar(idx);
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

    /// A variable of each lane, one after the other.
    fn lane_slots(&mut self, inst: &Inst) -> Option<Wide> {
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

    fn lea(&mut self, inst: &Inst, ty: Ty) -> Wide {
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
            // A field, or something without a size.
            let i = self.old.as_index(idx).unwrap_or(0);
            let offset = layout::offset(&self.module.types, aggregate, i).unwrap_or(0) as i64;
            return self.offset_by(address, offset, pointee, self.old.ty(ptr));
        }
        let index_shape = self.shape(idx, self.here);
        if index_shape == Shape::Uniform {
            let scalar = self.scalar(idx);
            if let Wide::Indexed { base, index, scale } = address {
                return Wide::Indexed { base: self.op(Op::Lea, &[base, scalar], ty), index, scale };
            }
            let (base, all) = (self.vector_of_wide(address, self.old.ty(ptr)), self.spread(scalar, self.old.ty(idx)));
            let bytes = self.bytes(all, elem);
            let bytes = self.cast(bytes, Prim::U64);
            return Wide::Vector(self.add_wrapping(base, bytes));
        }
        let index = self.index(idx);
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
                let sum = self.add_wrapping(before, own);
                let zero = self.literal(Prim::I64, 0);
                Wide::Indexed { base: self.op(Op::Lea, &[base, zero], ty), index: sum, scale: 1 }
            }
            Wide::Strided(base, step) => {
                let (before, own) = (self.steps(Prim::I64, step), self.bytes(index, elem));
                let sum = self.add_wrapping(before, own);
                let zero = self.literal(Prim::I64, 0);
                Wide::Indexed { base: self.op(Op::Lea, &[base, zero], ty), index: sum, scale: 1 }
            }
            _ => {
                let base = self.vector_of_wide(address, self.old.ty(ptr));
                let bytes = self.bytes(index, elem);
                let bytes = self.cast(bytes, Prim::U64);
                Wide::Vector(self.add_wrapping(base, bytes))
            }
        }
    }

    /// An index as lanes of i32 or 64 bits, which gathers take.
    fn index(&mut self, idx: Value) -> Value {
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

    /// Where the leaf at `offset` of what an address points to lies.
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

    /// Offsets of the parts of a type, as it lies in memory, or of its widened form in variables of lanes.
    fn offsets(&mut self, ty: Ty, is_own: bool) -> Vec<u64> {
        let laid_out = if is_own { self.widen(ty) } else { ty };
        (0..self.parts(ty).len() as u64).map(|i| layout::offset(&self.module.types, laid_out, i).unwrap_or(0)).collect()
    }

    /// What the lanes read from an address.
    fn load(&mut self, ptr: Value, ty: Ty) -> Value {
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
        let (parts, offsets) = (self.parts(ty), self.offsets(ty, is_own));
        let mut made = Vec::with_capacity(parts.len());
        for (&part, &at) in parts.iter().zip(&offsets) {
            made.push(self.load_at(address, offset + at, part));
        }
        let wide = self.widen(ty);
        self.build(&made, wide)
    }

    fn memory_op(&mut self, op: VectorOp, args: &[Value], ty: Option<Ty>, mask: Option<Value>) -> Option<Value> {
        let mut all = args.to_vec();
        all.extend(mask);
        self.push(InstOp::Vector(op), &all, ty)
    }

    fn load_leaf(&mut self, leaf: Leaf, prim: Prim) -> Value {
        let lanes = self.module.types.vector(prim, self.width);
        let size = layout::prim_size(prim) as i64;
        let mask = self.mask;
        let width = i64::from(self.width);
        match leaf {
            Leaf::Own(at) => self.op(Op::Load, &[at], lanes),
            Leaf::Strided(at, step) if step == size || self.width == 1 => {
                self.memory_op(VectorOp::Load, &[at], Some(lanes), mask).unwrap_or(at)
            }
            Leaf::Strided(at, step) if step == -size => {
                let first = self.further_by(at, -size * (width - 1));
                let mask = mask.map(|m| self.reversed(m));
                let value = self.memory_op(VectorOp::Load, &[first], Some(lanes), mask).unwrap_or(at);
                self.reversed(value)
            }
            Leaf::Strided(at, step)
                if mask.is_none() && step > 0 && step % size == 0 && step / size <= MAX_GAP as i64 =>
            {
                let gap = step / size;
                let all = self.module.types.vector(prim, ((width - 1) * gap + 1) as u32);
                let value = self.memory_op(VectorOp::Load, &[at], Some(all), None).unwrap_or(at);
                let index = self.steps(Prim::I32, gap);
                self.op(Op::Shuffle, &[value, value, index], lanes)
            }
            Leaf::Strided(at, step) => {
                let index = self.steps(Prim::I64, step);
                self.gather(at, index, 1, lanes)
            }
            Leaf::Indexed(at, index, scale) => self.gather(at, index, scale, lanes),
        }
    }

    fn gather(&mut self, at: Value, index: Value, scale: u64, lanes: Ty) -> Value {
        let scale = self.literal(Prim::I64, scale);
        self.memory_op(VectorOp::Gather, &[at, index, scale], Some(lanes), self.mask).unwrap_or(at)
    }

    fn reversed(&mut self, value: Value) -> Value {
        let lanes: Vec<Value> = (0..self.width).rev().map(|k| self.literal(Prim::I32, k.into())).collect();
        let index = self.module.types.vector(Prim::I32, self.width);
        let index = self.op(Op::Array, &lanes, index);
        let ty = self.new.ty(value);
        self.op(Op::Shuffle, &[value, value, index], ty)
    }

    fn store(&mut self, inst: &Inst) {
        let (ptr, value) = (inst.args[0], inst.args[1]);
        let ty = self.old.ty(value);
        let address = self.wide(ptr);
        if let (Wide::Uniform(base), Shape::Uniform) = (address, self.shape(value, self.here)) {
            let value = self.scalar(value);
            self.push(inst.op, &[base, value], None);
            return;
        }
        if let Wide::Uniform(base) = address {
            // Of lanes that write to one place, one comes last.
            let (lane, wide) = (self.last_lane(), self.wide(value));
            let one = self.lane(wide, ty, lane);
            self.push(inst.op, &[base, one], None);
            return;
        }
        let value = self.vector(value);
        self.store_at(address, 0, value, ty);
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
                self.memory_op(VectorOp::Store, &[at, value], None, mask);
            }
            Leaf::Strided(at, step) if step == -size => {
                let first = self.further_by(at, -size * (i64::from(self.width) - 1));
                let mask = mask.map(|m| self.reversed(m));
                let value = self.reversed(value);
                self.memory_op(VectorOp::Store, &[first, value], None, mask);
            }
            Leaf::Strided(at, step) => {
                let index = self.steps(Prim::I64, step);
                let scale = self.literal(Prim::I64, 1);
                self.memory_op(VectorOp::Scatter, &[at, index, scale, value], None, mask);
            }
            Leaf::Indexed(at, index, scale) => {
                let scale = self.literal(Prim::I64, scale);
                self.memory_op(VectorOp::Scatter, &[at, index, scale, value], None, mask);
            }
        }
    }

    // Lanes.

    /// A bit for each active lane, u64.
    fn active(&mut self) -> Value {
        match self.mask {
            Some(mask) => {
                let ty = self.module.types.prim(Prim::U64);
                self.with_result(InstOp::Vector(VectorOp::MaskBits), &[mask], ty)
            }
            None => self.literal(Prim::U64, all_bits(self.width)),
        }
    }

    /// The last lane that is active, u64.
    fn last_lane(&mut self) -> Value {
        let Some(_) = self.mask else { return self.literal(Prim::U64, u64::from(self.width) - 1) };
        let (bits, ty) = (self.active(), self.module.types.prim(Prim::U64));
        let zeros = self.op(Op::Clz, &[bits], ty);
        let top = self.literal(Prim::U64, 63);
        self.op(Op::Sub, &[top, zeros], ty)
    }

    /// The instruction as it is, once for each active lane, in their order.
    pub fn each_lane(&mut self, inst: &Inst) -> Option<Wide> {
        let u64 = self.module.types.prim(Prim::U64);
        let bool = self.module.types.bool();
        let wides: Vec<Wide> = inst.args.iter().map(|&a| self.wide(a)).collect();
        // Vectors are made before the loop.
        let wides: Vec<Wide> = wides
            .into_iter()
            .zip(&inst.args)
            .map(|(wide, &a)| match wide {
                Wide::Indexed { .. } => Wide::Vector(self.vector_of_wide(wide, self.old.ty(a))),
                Wide::Strided(..) if !is_address(&self.module.types, self.old.ty(a)) => {
                    Wide::Vector(self.vector_of_wide(wide, self.old.ty(a)))
                }
                _ => wide,
            })
            .collect();
        let result_ty = inst.result.map(|r| self.old.ty(r));
        let results = result_ty.map(|ty| {
            let wide = self.widen(ty);
            let slot = self.slot(wide);
            let undef = self.new.undef(wide);
            self.write(slot, undef);
            slot
        });
        let left = self.slot(u64);
        let bits = self.active();
        self.write(left, bits);
        let (head, body, done) = (self.new_block("lanes"), self.new_block("lane"), self.new_block("joined"));
        self.jump_to(head);
        self.cur = head;
        let bits = self.read(left);
        let zero = self.literal(Prim::U64, 0);
        let more = self.op(Op::Ne, &[bits, zero], bool);
        self.branch(more, body, done);
        self.cur = body;
        let lane = self.op(Op::Ctz, &[bits], u64);
        let args: Vec<Value> =
            wides.into_iter().zip(&inst.args).map(|(wide, &a)| self.lane(wide, self.old.ty(a), lane)).collect();
        let result = self.push(inst.op, &args, result_ty);
        if let (Some(slot), Some(one), Some(ty)) = (results, result, result_ty) {
            let old = self.read(slot);
            let new = self.with_lane(old, ty, lane, one);
            self.write(slot, new);
        }
        let one = self.literal(Prim::U64, 1);
        let less = self.op(Op::Sub, &[bits, one], u64);
        let rest = self.op(Op::And, &[bits, less], u64);
        self.write(left, rest);
        self.jump_to(head);
        self.cur = done;
        results.map(|slot| Wide::Vector(self.read(slot)))
    }

    // Calls.

    fn call(&mut self, inst: &Inst, f: Func, shape: Option<Shape>) -> Option<Wide> {
        if let Some(op) = self.versions.lane_operation(f) {
            return self.across(inst, op);
        }
        if shape == Some(Shape::Uniform) {
            let args: Vec<Value> = inst.args.iter().map(|&a| self.scalar(a)).collect();
            let ty = inst.result.map(|r| self.old.ty(r));
            return self.push(inst.op, &args, ty).map(Wide::Uniform);
        }
        if self.module.func(f).is_foreign() {
            return self.each_lane(inst);
        }
        // What is a variable of each lane is passed by address: strided.
        let mut shapes = self.args_shapes(inst, self.here);
        let masked = self.mask.is_some();
        let (target, actual) = self.versions.request(self.module, f, &shapes, masked, self.width);
        shapes = actual;
        let mut args = Vec::with_capacity(shapes.len() + 1);
        for (&arg, &shape) in inst.args.iter().zip(&shapes) {
            args.push(if shape == Shape::Varying { self.vector(arg) } else { self.scalar(arg) });
        }
        if self.module.func(target).params.len() > args.len() {
            let mask = match self.mask {
                Some(mask) => mask,
                None => self.full(true),
            };
            args.push(mask);
        }
        let ty = inst.result.map(|r| self.old.ty(r));
        let ty = ty.map(|ty| self.widen(ty));
        self.push(InstOp::Call(target), &args, ty).map(Wide::Vector)
    }

    /// An operation across lanes. Lanes that are not active take no part.
    fn across(&mut self, inst: &Inst, op: LaneOp) -> Option<Wide> {
        let ty = inst.result.map(|r| self.old.ty(r));
        let (u64, bool) = (self.module.types.prim(Prim::U64), self.module.types.bool());
        let holds = |b: &mut Self, i: usize| {
            let cond = b.vector(inst.args[i]);
            b.restrict(b.mask, cond)
        };
        let bits = |b: &mut Self, mask: Value| b.with_result(InstOp::Vector(VectorOp::MaskBits), &[mask], u64);
        let value = match op {
            LaneOp::Barrier => return None,
            LaneOp::Id => {
                let zero = self.literal(Prim::I32, 0);
                return Some(Wide::Strided(zero, 1));
            }
            LaneOp::Width => self.literal(Prim::I32, self.width.into()),
            LaneOp::Any => {
                let mask = holds(self, 0);
                let (bits, zero) = (bits(self, mask), self.literal(Prim::U64, 0));
                self.op(Op::Ne, &[bits, zero], bool)
            }
            LaneOp::All => {
                let mask = holds(self, 0);
                let (bits, all) = (bits(self, mask), self.active());
                self.op(Op::Eq, &[bits, all], bool)
            }
            LaneOp::Count | LaneOp::Ballot => {
                let mask = holds(self, 0);
                let mut bits = bits(self, mask);
                if op == LaneOp::Count {
                    bits = self.op(Op::Popcount, &[bits], u64);
                }
                self.op(Op::Cast, &[bits], ty?)
            }
            LaneOp::Get => {
                let (from, ty) = (self.wide(inst.args[0]), ty?);
                // Numbers of lanes count modulo their number.
                let width = self.literal(Prim::U32, self.width.into());
                let index_ty = self.old.ty(inst.args[1]);
                if self.shape(inst.args[1], self.here) == Shape::Uniform {
                    let index = self.scalar(inst.args[1]);
                    let lane = self.lane_number(index, index_ty, width);
                    return Some(Wide::Uniform(self.lane(from, ty, lane)));
                }
                let (value, index) = (self.vector_of_wide(from, ty), self.vector(inst.args[1]));
                let index = self.cast(index, Prim::U32);
                let width = self.splat(width, Prim::U32);
                let index_ty = self.new.ty(index);
                let index = self.op(Op::Rem, &[index, width], index_ty);
                let index = self.cast(index, Prim::I32);
                let value = self.by_leaf(ty, &[value], &mut |b, v, _| {
                    let wide = b.new.ty(v[0]);
                    b.op(Op::Shuffle, &[v[0], v[0], index], wide)
                });
                return Some(Wide::Vector(value));
            }
            LaneOp::Compact => {
                let (value, mask) = (self.vector(inst.args[0]), holds(self, 1));
                let value = self.by_leaf(ty?, &[value], &mut |b, v, _| {
                    let wide = b.new.ty(v[0]);
                    b.with_result(InstOp::Vector(VectorOp::Compress), &[v[0], mask], wide)
                });
                return Some(Wide::Vector(value));
            }
        };
        Some(Wide::Uniform(value))
    }

    fn lane_number(&mut self, index: Value, ty: Ty, width: Value) -> Value {
        let (u32, u64) = (self.module.types.prim(Prim::U32), self.module.types.prim(Prim::U64));
        let index = if ty == u32 { index } else { self.op(Op::Cast, &[index], u32) };
        let lane = self.op(Op::Rem, &[index, width], u32);
        self.op(Op::Cast, &[lane], u64)
    }
}

/// A bit for each of so many lanes, at most 64.
pub fn all_bits(width: u32) -> u64 {
    if width >= 64 { u64::MAX } else { (1 << width) - 1 }
}

/// A type with one for each lane: numbers become vectors, addresses vectors of u64, aggregates tuples and arrays.
pub fn widen(types: &mut Types, ty: Ty, width: u32) -> Ty {
    match types.kind(ty).clone() {
        TyKind::Prim(prim) => types.vector(prim, width),
        TyKind::Ptr { .. } | TyKind::Code => types.vector(Prim::U64, width),
        TyKind::Vector(prim, n) => {
            let lanes = types.vector(prim, width);
            types.array(lanes, n.into())
        }
        TyKind::Array(elem, n) => {
            let elem = widen(types, elem, width);
            types.array(elem, n)
        }
        TyKind::IndefArray(elem) => {
            let elem = widen(types, elem, width);
            types.indef_array(elem)
        }
        TyKind::Tuple(_) | TyKind::Struct(_) => {
            let n = types.n_parts(ty).unwrap_or(0);
            let parts: Vec<Ty> = (0..n).filter_map(|i| types.part(ty, i)).collect();
            let parts: Vec<Ty> = parts.into_iter().map(|t| widen(types, t, width)).collect();
            types.tuple(&parts)
        }
        TyKind::Mem | TyKind::Cn(_) => ty,
    }
}

pub fn unsigned(prim: Prim) -> Prim {
    match prim {
        Prim::I8 => Prim::U8,
        Prim::I16 => Prim::U16,
        Prim::I32 => Prim::U32,
        Prim::I64 => Prim::U64,
        other => other,
    }
}
