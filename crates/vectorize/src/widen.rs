//! Translates instructions to the vector version.
//!
//! Uniform and strided results are computed once, as in the scalar function, from the operands in lane 0. For varying
//! results, arithmetic works on vectors; memory accesses depend on the address ([`crate::memory`]); everything else is
//! executed for each active lane in turn ([`Builder::each_lane`]).

use crate::linear::{Builder, Wide};
use crate::shapes::{Shape, is_address, stride};
use nyala_flat::*;
use nyala_ir::{Op, Prim, Ty, TyKind, Types, layout};

/// Maximal number of parts of a value, since each has its own code.
const MAX_PARTS: u64 = 1024;
/// Minimal size of a cache line in bytes.
const LINE: u64 = 64;

impl Builder<'_> {
    // Types.

    pub fn widen(&mut self, ty: Ty) -> Ty {
        widen(&mut self.module.types, ty, self.width)
    }

    /// Types of the parts of an aggregate; empty for a leaf.
    pub fn parts(&self, ty: Ty) -> Vec<Ty> {
        let types = &self.module.types;
        match types.kind(ty) {
            TyKind::Prim(_) | TyKind::Ptr { .. } | TyKind::Code => Vec::new(),
            _ => (0..types.n_parts(ty).unwrap_or(0)).filter_map(|i| types.part(ty, i)).collect(),
        }
    }

    pub fn is_leaf(&self, ty: Ty) -> bool {
        matches!(self.module.types.kind(ty), TyKind::Prim(_) | TyKind::Ptr { .. } | TyKind::Code)
    }

    /// The lane type of a leaf's vector.
    pub fn leaf_prim(&self, ty: Ty) -> Prim {
        self.module.types.as_prim(ty).unwrap_or(Prim::U64)
    }

    pub fn size(&self, ty: Ty) -> u64 {
        layout::size_align(&self.module.types, ty).map_or(0, |l| l.0)
    }

    pub fn extract(&mut self, aggregate: Value, i: usize) -> Value {
        let from = self.new.ty(aggregate);
        let ty = self.module.types.part(from, i as u64).unwrap_or(from);
        let index = self.literal(Prim::I32, i as u64);
        self.op(Op::Extract, &[aggregate, index], ty)
    }

    /// Whether a value has too many parts to emit code for each of them; reports that.
    pub fn is_too_large(&mut self, ty: Ty) -> bool {
        let types = &self.module.types;
        let (mut n, mut work) = (0u64, vec![(ty, 1u64)]);
        while let Some((ty, times)) = work.pop() {
            match types.kind(ty) {
                TyKind::Array(elem, k) => work.push((*elem, times.saturating_mul(*k))),
                TyKind::Tuple(_) | TyKind::Struct(_) => {
                    let parts = (0..types.n_parts(ty).unwrap_or(0)).filter_map(|i| types.part(ty, i));
                    work.extend(parts.map(|t| (t, times)));
                }
                _ => n = n.saturating_add(times),
            }
            if n.saturating_add(work.len() as u64) > MAX_PARTS {
                break;
            }
        }
        let is_too_large = n > MAX_PARTS || !work.is_empty();
        if is_too_large {
            self.versions.too_large(self.span);
        }
        is_too_large
    }

    /// Builds an aggregate of a widened type.
    pub fn build(&mut self, parts: &[Value], ty: Ty) -> Value {
        let op = if matches!(self.module.types.kind(ty), TyKind::Array(..)) { Op::Array } else { Op::Tuple };
        self.op(op, parts, ty)
    }

    /// Applies `f` to each leaf of widened values of type `ty`, and builds an aggregate of the results.
    pub fn by_leaf(&mut self, ty: Ty, values: &[Value], f: &mut dyn FnMut(&mut Self, &[Value], Ty) -> Value) -> Value {
        if self.is_leaf(ty) {
            return f(self, values, ty);
        }
        if self.is_too_large(ty) {
            return values[0];
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

    /// The vector 0, s, 2s, ….
    pub fn steps(&mut self, prim: Prim, step: i64) -> Value {
        let lanes: Vec<Value> =
            (0..i64::from(self.width)).map(|k| self.literal(prim, k.wrapping_mul(step) as u64)).collect();
        let ty = self.module.types.vector(prim, self.width);
        self.op(Op::Array, &lanes, ty)
    }

    pub fn splat(&mut self, value: Value, prim: Prim) -> Value {
        let ty = self.module.types.vector(prim, self.width);
        self.op(Op::Splat, &[value], ty)
    }

    /// Converts an address to a number.
    pub fn address_bits(&mut self, ptr: Value) -> Value {
        let ty = self.module.types.prim(Prim::U64);
        self.op(Op::Bitcast, &[ptr], ty)
    }

    /// Casts an address to one of a `ty`.
    pub fn point_to(&mut self, ptr: Value, ty: Ty) -> Value {
        let space = match self.module.types.kind(self.new.ty(ptr)) {
            TyKind::Ptr { space, .. } => *space,
            _ => return ptr,
        };
        let to = self.module.types.intern(TyKind::Ptr { pointee: ty, space });
        if self.new.ty(ptr) == to { ptr } else { self.op(Op::Bitcast, &[ptr], to) }
    }

    /// An address plus a number of bytes.
    pub fn further(&mut self, ptr: Value, bytes: Value) -> Value {
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

    pub fn further_by(&mut self, ptr: Value, bytes: i64) -> Value {
        if bytes == 0 {
            return ptr;
        }
        let bytes = self.literal(Prim::I64, bytes as u64);
        self.further(ptr, bytes)
    }

    /// The value in lane 0, for values that are uniform or strided.
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

    /// The vector of a value, with an element for each lane.
    pub fn vector(&mut self, v: Value) -> Value {
        let wide = self.wide(v);
        if let (Wide::Uniform(_), Some(elem)) = (wide, self.splats[v]) {
            let (elem_ty, ty) = (self.new.ty(elem), self.widen(self.old.ty(v)));
            let elem = self.spread(elem, elem_ty);
            return self.op(Op::Splat, &[elem], ty);
        }
        self.vector_of_wide(wide, self.old.ty(v))
    }

    /// The vector of a value at its definition, for use after a loop.
    pub fn vector_of(&mut self, v: Value) -> Value {
        match self.map[v] {
            Some(wide) => self.vector_of_wide(wide, self.old.ty(v)),
            None => {
                let ty = self.widen(self.old.ty(v));
                self.new.undef(ty)
            }
        }
    }

    pub fn vector_of_wide(&mut self, wide: Wide, ty: Ty) -> Value {
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

    /// Copies a uniform value to each lane.
    pub fn spread(&mut self, value: Value, ty: Ty) -> Value {
        if self.new.as_const(value) == Some(Const::Undef) {
            let ty = self.widen(ty);
            return self.new.undef(ty);
        }
        if self.is_leaf(ty) {
            let value = if self.module.types.as_prim(ty).is_some() { value } else { self.address_bits(value) };
            let prim = self.leaf_prim(ty);
            return self.splat(value, prim);
        }
        if self.is_too_large(ty) {
            let wide = self.widen(ty);
            return self.new.undef(wide);
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

    /// Casts numbers, or lanes of them, to another type.
    pub fn cast(&mut self, value: Value, to: Prim) -> Value {
        let from = self.new.ty(value);
        let ty = self.module.types.like(from, to);
        if from == ty { value } else { self.op(Op::Cast, &[value], ty) }
    }

    /// A sum modulo 2^n: signed sums may overflow in lanes that are not used, or as addresses.
    pub fn add_wrapping(&mut self, a: Value, b: Value) -> Value {
        let prim = self.module.types.lane_prim(self.new.ty(a)).unwrap_or(Prim::U64);
        let (x, y) = (self.cast(a, unsigned(prim)), self.cast(b, unsigned(prim)));
        let ty = self.new.ty(x);
        let sum = self.op(Op::Add, &[x, y], ty);
        self.cast(sum, prim)
    }

    /// An index times a number of bytes, as i64.
    pub fn bytes(&mut self, index: Value, scale: u64) -> Value {
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

    /// The value in one lane, whose number is a u64.
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

    /// Extracts a lane of a widened value.
    pub fn lane_of(&mut self, value: Value, ty: Ty, lane: Value) -> Value {
        if self.is_leaf(ty) {
            let prim = self.leaf_prim(ty);
            let own = self.module.types.prim(prim);
            let one = self.op(Op::Extract, &[value, lane], own);
            return if own == ty { one } else { self.op(Op::Bitcast, &[one], ty) };
        }
        if self.is_too_large(ty) {
            return self.new.undef(ty);
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

    /// Replaces one lane of a widened value.
    pub fn with_lane(&mut self, value: Value, ty: Ty, lane: Value, one: Value) -> Value {
        if self.is_leaf(ty) {
            let one = if self.module.types.as_prim(ty).is_some() { one } else { self.address_bits(one) };
            let wide = self.new.ty(value);
            return self.op(Op::Insert, &[value, lane, one], wide);
        }
        if self.is_too_large(ty) {
            return value;
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

    pub fn args_shapes(&self, inst: &Inst, b: usize) -> Vec<Shape> {
        inst.args.iter().map(|&a| self.shape(a, b)).collect()
    }

    /// Whether an instruction must not be executed without active lanes.
    pub fn needs_lanes(&self, inst: &Inst, b: usize) -> bool {
        let uniform = |i: usize| self.shape(inst.args[i], b) == Shape::Uniform;
        match inst.op {
            InstOp::Op(op) => match op {
                Op::Load | Op::Store => uniform(0) && self.shapes.own[inst.args[0]].is_none(),
                Op::PDiv | Op::PRem => uniform(0) && uniform(1),
                Op::Alloc | Op::Atomic | Op::AtomicLoad | Op::AtomicStore | Op::Cmpxchg | Op::CmpxchgWeak => true,
                _ => false,
            },
            InstOp::Call(f) => self.versions.lane_operation(f).is_none(),
            InstOp::CallIndirect | InstOp::Vectorize(..) | InstOp::Launch(..) | InstOp::Vector(_) => true,
        }
    }

    pub fn inst(&mut self, inst: &Inst) {
        let b = self.here;
        let shape = inst.result.map(|r| self.shape(r, b));
        let is_own = inst.result.is_some_and(|r| self.shapes.own[r].is_some());
        let wide = match (inst.op, shape) {
            _ if is_own => Some(self.own_address(inst)),
            (InstOp::Op(Op::Slot), _) => self.lane_slots(inst),
            (InstOp::Op(Op::Store), _) => {
                self.accessed = Some(inst.args[0]);
                self.store(inst);
                self.accessed = None;
                None
            }
            (InstOp::Op(Op::Fence), _) => {
                let args: Vec<Value> = inst.args.iter().map(|&a| self.scalar(a)).collect();
                self.push(inst.op, &args, None);
                None
            }
            (InstOp::Op(Op::Prefetch), _) if self.shape(inst.args[0], b) != Shape::Varying => {
                let mut args: Vec<Value> = inst.args.iter().map(|&a| self.scalar(a)).collect();
                let step = if let Wide::Strided(_, step) = self.wide(inst.args[0]) { step } else { 0 };
                let (first, in_line) = (args[0], LINE.checked_div(step.unsigned_abs()).unwrap_or(u64::MAX).max(1));
                for lane in (0..self.width.into()).step_by(in_line as usize) {
                    args[0] = self.further_by(first, lane * step);
                    self.push(inst.op, &args, None);
                }
                None
            }
            (InstOp::Op(Op::DebugValue), _) => {
                let is_uniform = self.shape(inst.args[0], b) == Shape::Uniform;
                let value = if is_uniform { self.scalar(inst.args[0]) } else { self.vector(inst.args[0]) };
                let args = [value, self.scalar(inst.args[1])];
                self.push(inst.op, &args, None);
                None
            }
            (InstOp::Call(f), _) => self.call(inst, f, shape),
            (InstOp::Op(op), Some(shape @ (Shape::Uniform | Shape::Strided(_)))) => {
                if op == Op::Load {
                    self.accessed = Some(inst.args[0]);
                    self.note_access("one load for all lanes", false);
                    self.accessed = None;
                }
                Some(self.once(inst, op, shape))
            }
            (InstOp::Op(op), Some(Shape::Varying)) => Some(self.varying(inst, op)),
            _ => self.each_lane(inst),
        };
        if let Some(r) = inst.result {
            self.note_value(r);
        }
        if let (Some(r), Some(wide)) = (inst.result, wide) {
            if let Wide::Uniform(v) | Wide::Strided(v, _) | Wide::Vector(v) = wide
                && self.new.as_const(v).is_none()
                && self.new.name(v).is_empty()
            {
                self.new.set_name(v, self.old.name(r));
            }
            self.map[r] = Some(wide);
        }
    }

    /// Executes the operation on lane 0 only. If that lane may be inactive, signed numbers must be allowed to overflow.
    fn once(&mut self, inst: &Inst, op: Op, shape: Shape) -> Wide {
        let args: Vec<Value> = inst.args.iter().map(|&a| self.scalar(a)).collect();
        let Some(r) = inst.result else { return Wide::Uniform(args[0]) };
        let ty = self.old.ty(r);
        if op == Op::Splat && matches!(self.module.types.kind(ty), TyKind::Array(..)) {
            self.splats[r] = Some(args[0]);
        }
        let prim = self.module.types.as_prim(ty);
        let is_strided = inst.args.iter().any(|&a| stride(self.shape(a, self.here)) != 0);
        let may_overflow = self.mask.is_some() && matches!(op, Op::Add | Op::Sub | Op::Mul) && is_strided;
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

    /// A value for results that are never used.
    pub fn nothing(&mut self) -> Value {
        let unit = self.module.types.unit();
        self.new.undef(unit)
    }

    fn varying(&mut self, inst: &Inst, op: Op) -> Wide {
        let Some(result) = inst.result else { return Wide::Vector(self.nothing()) };
        let ty = self.old.ty(result);
        match op {
            Op::Load => {
                self.accessed = Some(inst.args[0]);
                let value = self.load(inst.args[0], ty);
                self.accessed = None;
                Wide::Vector(value)
            }
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
                    return self.each_lane(inst).unwrap_or_else(|| Wide::Vector(self.nothing()));
                }
                let value = self.wide(inst.args[0]);
                if is_address(&self.module.types, from)
                    && is_address(&self.module.types, ty)
                    && let Wide::Indexed { base, index, scale } = value
                {
                    let pointee = self.module.types.pointee(ty).unwrap_or(ty);
                    return Wide::Indexed { base: self.point_to(base, pointee), index, scale };
                }
                let value = self.vector_of_wide(value, from);
                let wide = self.widen(ty);
                Wide::Vector(if self.new.ty(value) == wide { value } else { self.op(Op::Bitcast, &[value], wide) })
            }
            Op::PDiv | Op::PRem => {
                let (a, mut divisor) = (self.vector(inst.args[0]), self.vector(inst.args[1]));
                // It may be 0 in inactive lanes.
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
            _ => self.each_lane(inst).unwrap_or_else(|| Wide::Vector(self.nothing())),
        }
    }

    /// A lane-wise operation on numbers, or on each number of `simd` values; `of` is the operands' type, `ty` the
    /// result's.
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

    /// Reads or replaces a part of an aggregate; for a `simd` value also at an index that is not constant.
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
}

/// A type with an element for each lane: numbers become vectors, addresses vectors of u64, aggregates tuples and
/// arrays.
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
