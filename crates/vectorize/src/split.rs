//! Splits vectors that have more lanes than a register. A piece has 16 lanes, or 8 if 16 does not divide the number of lanes. If that
//! number is a power of two and most lanes have 8 or 16 bits, a piece has 64 or 32 lanes ([`best_piece`]).
//!
//! LLVM would split vectors, too. But it keeps a wide mask in one register, which it splits and joins in each iteration of a loop, and it
//! makes bad code of vectors whose number of lanes is no power of two.
//!
//! ```text
//! head(m):                     head(m0, m1):
//!   n = select(m, c, none)       n0 = select(m0, c0, none); n1 = select(m1, c1, none)
//!   branch any(n), head(n)       branch any(or(n0, n1)), head(n0, n1)
//! ```
//!
//! Lane-wise operations and accesses of memory are split. Other instructions get whole vectors, joined from pieces.

use nyala_base::{Id, SideTable, Span};
use nyala_flat::*;
use nyala_ir::{Effect, Op, Prim, Ty, TyKind, Types, layout};

struct Splitter<'a> {
    types: &'a mut Types,
    function: &'a mut Function,
    /// The number of lanes of the vectors that are split, and of a piece.
    width: u32,
    piece: u32,
    pieces: SideTable<Value, Option<Vec<Value>>>,
    /// Whether a value has a use that needs the whole vector.
    is_whole: SideTable<Value, bool>,
    /// Whether a value is the bits of a mask, and all its uses compare it with 0.
    only_tested: SideTable<Value, bool>,
    insts: Vec<Inst>,
    span: Span,
}

/// Splits the vectors of `width` lanes in a vectorized function.
pub fn split_vectors(types: &mut Types, function: &mut Function, width: u32) {
    let piece = match width {
        0..=16 => return,
        _ if width.is_power_of_two() => best_piece(types, function, width),
        _ if width.is_multiple_of(16) => 16,
        _ if width.is_multiple_of(8) => 8,
        _ => return,
    };
    if width <= piece {
        return;
    }
    let mut s = Splitter {
        types,
        function,
        width,
        piece,
        pieces: SideTable::default(),
        is_whole: SideTable::default(),
        only_tested: SideTable::default(),
        insts: Vec::new(),
        span: Span::NONE,
    };
    s.find_uses();
    s.run();
}

/// The cost of a piece that LLVM has to split further, as a multiple of that of pieces that fit.
const SPLIT_BY_LLVM: u64 = 2;

/// The estimate of a loop's iterations, and the depth of loops up to which it is applied.
const ROUNDS: u64 = 8;
const MAX_DEPTH: u32 = 5;

/// The number of lanes of a piece for which the instructions use the fewest registers of 512 bits. A piece of 64 lanes fits one register
/// if lanes have 8 bits; lanes of 32 bits need four, into which LLVM splits the piece.
fn best_piece(types: &Types, function: &Function, width: u32) -> u32 {
    let cfg = analysis::Cfg::new(function);
    let depth = analysis::loop_depths(&cfg, &cfg.dominator_tree());
    // Estimates how often instructions with lanes of 8, of 16 and of more bits run, after LLVM has moved loop-invariant ones out of
    // loops.
    let mut counts = [0; 3];
    let mut around: SideTable<Value, u32> = SideTable::default();
    for &b in &cfg.rpo {
        let block = function.block(b);
        block.params.iter().for_each(|&p| around[p] = depth[b.idx()]);
        for inst in &block.insts {
            let is_pure = matches!(inst.op, InstOp::Op(op) if op.effect() == Effect::Total);
            let of_args = || inst.args.iter().map(|&a| around[a]).max().unwrap_or(0);
            let loops = if is_pure { of_args() } else { depth[b.idx()] };
            inst.result.iter().for_each(|&r| around[r] = loops);
            let times = ROUNDS.pow(loops.min(MAX_DEPTH));
            let written = match inst.op {
                InstOp::Vector(op) => op.written().map(|i| inst.args[i]),
                _ => None,
            };
            let lanes = inst.result.or(written).and_then(|v| types.as_vector(function.ty(v)));
            match lanes.filter(|&(prim, n)| n == width && prim != Prim::Bool).map(|(prim, _)| prim.bits()) {
                Some(0..=8) => counts[0] += times,
                Some(9..=16) => counts[1] += times,
                Some(bits) => counts[2] += times * u64::from(bits / 32),
                None => {}
            }
        }
    }
    let cost = |piece: u32| -> u64 {
        let of = |bits: u32, count: u64| {
            let fits = 512 / bits;
            u64::from(width / piece.min(fits)) * count * if piece > fits { SPLIT_BY_LLVM } else { 1 }
        };
        of(8, counts[0]) + of(16, counts[1]) + of(32, counts[2])
    };
    // The largest piece, if several cost the same.
    [64, 32, 16].into_iter().filter(|&p| p <= width).min_by_key(|&p| cost(p)).unwrap_or(16)
}

impl Splitter<'_> {
    fn n(&self) -> u32 {
        self.width / self.piece
    }

    /// The type of a piece of a vector.
    fn piece_ty(&mut self, ty: Ty) -> Option<Ty> {
        let (prim, n) = self.types.as_vector(ty)?;
        (n == self.width).then(|| self.types.vector(prim, self.piece))
    }

    fn is_wide(&self, v: Value) -> bool {
        self.types.as_vector(self.function.ty(v)).is_some_and(|(_, n)| n == self.width)
    }

    /// Whether an instruction is split into one for each piece.
    fn is_split(&self, inst: &Inst) -> bool {
        let wide = |i: usize| inst.args.get(i).is_some_and(|&a| self.is_wide(a));
        match (inst.op, inst.result) {
            (InstOp::Op(Op::Select), Some(r)) => self.is_wide(r),
            (InstOp::Op(op), Some(_)) if op.is_lane_wise() => wide(0),
            (InstOp::Op(Op::Bitcast), Some(r)) => wide(0) && self.is_wide(r),
            (InstOp::Op(Op::Splat | Op::Array | Op::Load), Some(r)) => self.is_wide(r),
            (InstOp::Op(Op::Store), _) => wide(1),
            (InstOp::Vector(VectorOp::Load | VectorOp::Gather), Some(r)) => self.is_wide(r),
            (InstOp::Vector(VectorOp::Store), _) => wide(1),
            (InstOp::Vector(VectorOp::Scatter | VectorOp::MaskBits), _) => inst.args.iter().any(|&a| self.is_wide(a)),
            _ => false,
        }
    }

    fn find_uses(&mut self) {
        let blocks = &self.function.blocks;
        let is_zero = |v: Value| self.function.as_bits(v) == Some(0);
        let mut only: SideTable<Value, bool> = SideTable::default();
        let mut whole: SideTable<Value, bool> = SideTable::default();
        for inst in blocks.iter().flat_map(|b| &b.insts) {
            if let (InstOp::Vector(VectorOp::MaskBits), Some(r)) = (inst.op, inst.result) {
                only[r] = true;
            }
        }
        for block in blocks {
            for inst in &block.insts {
                let is_test = matches!(inst.op, InstOp::Op(Op::Ne | Op::Eq)) && inst.args.iter().any(|&a| is_zero(a));
                if !is_test {
                    inst.args.iter().for_each(|&a| only[a] = false);
                }
                if !self.is_split(inst) {
                    inst.args.iter().for_each(|&a| whole[a] = true);
                }
            }
            if let Terminator::Return(values) = &block.term {
                values.iter().for_each(|&v| whole[v] = true);
            }
            block.term.for_each_use(|v| only[v] = false);
        }
        self.only_tested = only;
        self.is_whole = whole;
    }

    fn run(&mut self) {
        let cfg = analysis::Cfg::new(self.function);
        // Block parameters first, since later blocks jump back to them.
        for &b in cfg.rpo.iter().filter(|b| b.idx() != 0) {
            for p in self.function.block(b).params.clone() {
                if let Some(ty) = self.piece_ty(self.function.ty(p)) {
                    let own = (0..self.n()).map(|_| self.function.new_value(ty, "")).collect();
                    self.pieces[p] = Some(own);
                }
            }
        }
        for &b in &cfg.rpo {
            let block = &mut self.function.blocks[b.idx()];
            let (old, params) = (std::mem::take(&mut block.insts), block.params.clone());
            for p in params {
                if b.idx() == 0 && self.is_wide(p) {
                    self.take_apart(p);
                } else if self.is_whole[p] && self.pieces[p].is_some() {
                    self.join(p);
                }
            }
            for inst in old {
                self.inst(inst);
            }
            self.function.blocks[b.idx()].insts = std::mem::take(&mut self.insts);
        }
        for &b in &cfg.rpo {
            let mut term = std::mem::replace(&mut self.function.blocks[b.idx()].term, Terminator::Unreachable);
            for edge in term.edges_mut() {
                let args = std::mem::take(&mut edge.args);
                edge.args = args.into_iter().flat_map(|a| self.parts(a)).collect();
            }
            self.function.blocks[b.idx()].term = term;
        }
        for &b in cfg.rpo.iter().filter(|b| b.idx() != 0) {
            let params = std::mem::take(&mut self.function.blocks[b.idx()].params);
            let parts = params.into_iter().flat_map(|p| self.pieces[p].clone().unwrap_or(vec![p]));
            self.function.blocks[b.idx()].params = parts.collect();
        }
    }

    /// The pieces of a vector. A value that is not split is its own piece.
    fn parts(&mut self, v: Value) -> Vec<Value> {
        if let Some(own) = &self.pieces[v] {
            return own.clone();
        }
        // A vector for which no pieces were made is undefined.
        match self.piece_ty(self.function.ty(v)) {
            Some(ty) => vec![self.function.undef(ty); self.n() as usize],
            None => vec![v],
        }
    }

    fn inst(&mut self, inst: Inst) {
        self.span = inst.span;
        if self.is_split(&inst) {
            return self.split(inst);
        }
        let result = inst.result.filter(|&r| self.is_wide(r));
        self.insts.push(inst);
        if let Some(r) = result {
            self.take_apart(r);
        }
    }

    fn split(&mut self, mut inst: Inst) {
        let n = self.n();
        if inst.op == InstOp::Vector(VectorOp::MaskBits) {
            return self.mask_bits(inst);
        }
        let lanes = self.piece as usize;
        let args: Vec<Vec<Value>> = match inst.op {
            InstOp::Op(Op::Array) => {
                let args = std::mem::take(&mut inst.args);
                self.result(&inst, |_, i| args[i * lanes..(i + 1) * lanes].to_vec());
                return;
            }
            _ => inst.args.clone().into_iter().map(|a| self.parts(a)).collect(),
        };
        let memory = match inst.op {
            InstOp::Op(Op::Load | Op::Store) | InstOp::Vector(VectorOp::Load | VectorOp::Store) => Some(inst.args[0]),
            _ => None,
        };
        let accessed = match inst.op {
            InstOp::Op(Op::Store) | InstOp::Vector(VectorOp::Store) => self.function.ty(inst.args[1]),
            _ => inst.result.map_or(self.types.unit(), |r| self.function.ty(r)),
        };
        let addresses: Option<Vec<Value>> =
            memory.map(|at| (0..n).map(|i| self.piece_of_memory(at, accessed, i)).collect());
        self.result(&inst, |_, i| {
            let mut own: Vec<Value> = args.iter().map(|a| if a.len() > 1 { a[i] } else { a[0] }).collect();
            if let Some(addresses) = &addresses {
                own[0] = addresses[i];
            }
            own
        });
    }

    /// Emits an instruction once for each piece.
    fn result(&mut self, inst: &Inst, args: impl Fn(&Self, usize) -> Vec<Value>) {
        let ty = inst.result.and_then(|r| self.piece_ty(self.function.ty(r)));
        let mut own = Vec::new();
        for i in 0..self.n() as usize {
            let args = args(self, i);
            let result = ty.map(|ty| self.function.new_value(ty, ""));
            let args = Args::from_slice(&args);
            self.insts.push(Inst { op: inst.op, args, result, span: inst.span, fast: inst.fast });
            own.extend(result);
        }
        if let Some(r) = inst.result {
            self.pieces[r] = Some(own);
            if self.is_whole[r] {
                self.join(r);
            }
        }
    }

    /// The address of the i-th piece of a vector in memory.
    fn piece_of_memory(&mut self, at: Value, vector: Ty, i: u32) -> Value {
        let (Some((prim, _)), TyKind::Ptr { pointee, space }) =
            (self.types.as_vector(vector), self.types.kind(self.function.ty(at)).clone())
        else {
            return at;
        };
        // A pointer to a vector becomes a pointer to a piece. Other pointers point to elements.
        let to = if self.types.as_vector(pointee).is_some() { self.types.vector(prim, self.piece) } else { pointee };
        let to = self.types.intern(TyKind::Ptr { pointee: to, space });
        if i == 0 {
            return self.op(Op::Bitcast, &[at], to);
        }
        let u8 = self.types.prim(Prim::U8);
        let bytes = self.types.indef_array(u8);
        let bytes = self.types.intern(TyKind::Ptr { pointee: bytes, space });
        let base = self.op(Op::Bitcast, &[at], bytes);
        let i64 = self.types.i64();
        let offset = u64::from(i * self.piece) * layout::prim_size(prim);
        let offset = self.function.constant(Const::Bits(offset), i64);
        let byte = self.types.intern(TyKind::Ptr { pointee: u8, space });
        let address = self.op(Op::Lea, &[base, offset], byte);
        self.op(Op::Bitcast, &[address], to)
    }

    fn mask_bits(&mut self, inst: Inst) {
        let (own, Some(result)) = (self.parts(inst.args[0]), inst.result) else { return };
        let u64 = self.types.prim(Prim::U64);
        let piece_ty = self.function.ty(own[0]);
        if self.only_tested[result] {
            let some = own[1..].iter().fold(own[0], |a, &b| self.op(Op::Or, &[a, b], piece_ty));
            self.insts.push(Inst { args: Args::from_slice(&[some]), ..inst });
            return;
        }
        let mut all = None;
        for (i, &part) in own.iter().enumerate() {
            let mut bits = self.function.new_value(u64, "");
            self.insts.push(Inst { args: Args::from_slice(&[part]), result: Some(bits), ..inst.clone() });
            if i > 0 {
                let by = self.function.constant(Const::Bits(i as u64 * u64::from(self.piece)), u64);
                bits = self.op(Op::Shl, &[bits, by], u64);
            }
            let last = i + 1 == own.len();
            all = Some(match all {
                None => bits,
                Some(before) if last => {
                    self.push(Op::Or, &[before, bits], result);
                    result
                }
                Some(before) => self.op(Op::Or, &[before, bits], u64),
            });
        }
    }

    fn op(&mut self, op: Op, args: &[Value], ty: Ty) -> Value {
        let result = self.function.new_value(ty, "");
        self.push(op, args, result);
        result
    }

    fn push(&mut self, op: Op, args: &[Value], result: Value) {
        let args = Args::from_slice(args);
        self.insts.push(Inst { op: InstOp::Op(op), args, result: Some(result), span: self.span, fast: false });
    }

    /// Selects consecutive lanes of two concatenated vectors.
    fn lanes(&mut self, a: Value, b: Value, lanes: std::ops::Range<u32>, result: Option<Value>) -> Value {
        let i32 = self.types.i32();
        let idx: Vec<Value> = lanes.map(|k| self.function.constant(Const::Bits(k.into()), i32)).collect();
        let n = idx.len() as u32;
        let idx_ty = self.types.vector(Prim::I32, n);
        let idx = self.op(Op::Array, &idx, idx_ty);
        let prim = self.types.lane_prim(self.function.ty(a)).unwrap_or(Prim::Bool);
        let ty = self.types.vector(prim, n);
        let result = result.unwrap_or_else(|| self.function.new_value(ty, ""));
        self.push(Op::Shuffle, &[a, b, idx], result);
        result
    }

    fn take_apart(&mut self, vector: Value) {
        let p = self.piece;
        let own = (0..self.n()).map(|i| self.lanes(vector, vector, i * p..(i + 1) * p, None)).collect();
        self.pieces[vector] = Some(own);
    }

    /// Joins the pieces of a vector.
    fn join(&mut self, vector: Value) {
        let mut parts = self.parts(vector);
        let mut size = self.piece;
        while parts.len() > 2 {
            if parts.len() % 2 == 1 {
                parts.push(parts[parts.len() - 1]);
            }
            parts = parts.chunks(2).map(|p| self.lanes(p[0], p[1], 0..2 * size, None)).collect();
            size *= 2;
        }
        let last = parts[parts.len() - 1];
        self.lanes(parts[0], last, 0..self.width, Some(vector));
    }
}
