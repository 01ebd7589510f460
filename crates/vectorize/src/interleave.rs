//! Arrays of structs, and other interleaved data: accesses to several fields of the lanes' elements become one access
//! to whole elements, and shuffles.
//!
//! ```text
//! r = shuffle(vload(p), [0, 3, 6, 9])            all = vload(p)              12 elements
//! g = shuffle(vload(p + 1), [0, 3, 6, 9])        r = shuffle(all, [0, 3, 6, 9])
//!                                                g = shuffle(all, [1, 4, 7, 10])
//! scatter(p, [0, 4, 8, 12], x)                   vstore(p, shuffle(x, y, [0, 4, 1, 5, 2, 6, 3, 7]))
//! scatter(p + 4 bytes, [0, 4, 8, 12], y)
//! ```
//!
//! Within a block, as long as no instruction between could notice: loads move up to the first of them, stores, which
//! must write every byte, down to the last.

use nyala_base::{SideTable, Span};
use nyala_flat::*;
use nyala_ir::{Effect, Op, Prim, TyKind, Types, layout};

/// Maximal number of elements in a group; the vectorizer reads as many at once.
const MAX_FIELDS: i64 = 4;

/// Maximal number of open groups.
const MAX_OPEN: usize = 64;

/// An address as a root and an offset in bytes from it.
type Place = ((Value, Option<Value>), i64);

/// Accesses to fields of the same elements.
struct Group {
    root: (Value, Option<Value>),
    prim: Prim,
    /// The distance between lanes, in elements.
    gap: i64,
    mask: Option<Value>,
    /// Instructions, and their offsets in bytes from the root.
    members: Vec<(usize, i64)>,
    /// For loads, ranges that are written between them: offset from the root, and size, in bytes.
    written: Vec<(i64, i64)>,
}

impl Group {
    fn size(&self) -> i64 {
        layout::prim_size(self.prim) as i64
    }

    /// Whether `size` bytes of the lanes at offset `at` may overlap an access to `its_size` bytes at `other`.
    fn overlaps(&self, (at, size): (i64, i64), (other, its_size): (i64, i64)) -> bool {
        let stride = self.gap * self.size();
        let apart = at.wrapping_sub(other).rem_euclid(stride);
        apart < its_size || apart > stride - size
    }
}

struct Interleaver<'a> {
    types: &'a mut Types,
    function: &'a mut Function,
    width: u32,
    /// Whether signed overflow is undefined.
    exact: bool,
    defs: SideTable<Value, Option<Inst>>,
    n_uses: SideTable<Value, u32>,
    stored: Vec<Span>,
}

/// Combines accesses in vector code of `width` lanes; returns the locations of the scatters that were combined.
pub fn interleave(types: &mut Types, function: &mut Function, width: u32, wrap: bool) -> Vec<Span> {
    let is_one = |i: &Inst| matches!(i.op, InstOp::Op(Op::Shuffle) | InstOp::Vector(VectorOp::Scatter));
    if width == 1 || !function.blocks.iter().flat_map(|b| &b.insts).any(is_one) {
        return Vec::new();
    }
    let mut defs: SideTable<Value, Option<Inst>> = SideTable::default();
    let mut n_uses: SideTable<Value, u32> = SideTable::default();
    for block in &function.blocks {
        for inst in &block.insts {
            inst.args.iter().for_each(|&a| n_uses[a] += 1);
            if let Some(r) = inst.result {
                defs[r] = Some(inst.clone());
            }
        }
        block.term.for_each_use(|v| n_uses[v] += 1);
    }
    let mut all = Interleaver { types, function, width, exact: !wrap, defs, n_uses, stored: Vec::new() };
    for b in 0..all.function.blocks.len() {
        all.loads(b);
        all.stores(b);
    }
    all.stored
}

impl Interleaver<'_> {
    /// Traces an address to its root.
    fn place(&self, mut at: Value) -> Place {
        let mut bytes = 0i64;
        loop {
            let Some(inst) = &self.defs[at] else { return ((at, None), bytes) };
            let here = ((at, None), bytes);
            match (inst.op, &inst.args[..]) {
                (InstOp::Op(Op::Bitcast), &[from]) if self.types.pointee(self.function.ty(from)).is_some() => at = from,
                (InstOp::Op(Op::Lea), &[base, index]) => {
                    let Some(of) = self.types.pointee(self.function.ty(base)) else { return here };
                    let size = match *self.types.kind(of) {
                        TyKind::Array(elem, _) | TyKind::IndefArray(elem) => {
                            layout::size_align(self.types, elem).map_or(0, |s| s.0)
                        }
                        TyKind::Vector(prim, _) => layout::prim_size(prim),
                        _ => {
                            let field = self.function.as_index(index);
                            let Some(offset) = field.and_then(|i| layout::offset(self.types, of, i)) else {
                                return here;
                            };
                            (bytes, at) = (bytes.wrapping_add(offset as i64), base);
                            continue;
                        }
                    } as i64;
                    let (rest, steps) = self.split_index(index);
                    bytes = bytes.wrapping_add(steps.wrapping_mul(size));
                    match rest {
                        None => at = base,
                        // The remaining index, times the size, is the same for all accesses with this root and type.
                        Some(rest) => return ((base, Some(rest)), bytes),
                    }
                }
                _ => return here,
            }
        }
    }

    /// Splits an index into a value and a constant.
    fn split_index(&self, index: Value) -> (Option<Value>, i64) {
        let number = |v: Value| {
            let (bits, prim) = (self.function.as_bits(v)?, self.types.as_prim(self.function.ty(v))?);
            Some(if prim.is_signed() || prim == Prim::U64 { bits as i64 } else { i64::try_from(bits).ok()? })
        };
        if let Some(n) = number(index) {
            return (None, n);
        }
        let is_signed = self.types.as_prim(self.function.ty(index)).is_some_and(Prim::is_signed);
        if let Some(Inst { op: InstOp::Op(Op::Add), args, .. }) = &self.defs[index]
            && (is_signed && self.exact)
            && let Some(n) = number(args[1])
        {
            return (Some(args[0]), n);
        }
        (Some(index), 0)
    }

    /// The distance between lanes, if an index is an arithmetic progression from 0.
    fn step(&self, index: Value) -> Option<i64> {
        let inst = self.defs[index].as_ref()?;
        if inst.op != InstOp::Op(Op::Array) || inst.args.len() != self.width as usize {
            return None;
        }
        let lane = |k: usize| self.function.as_bits(inst.args[k]).map(|b| b as i64);
        let step = lane(1)?;
        (0..inst.args.len()).all(|k| lane(k) == Some(step.wrapping_mul(k as i64))).then_some(step)
    }

    /// The place, stride in bytes, element type and mask of a scatter with constant stride.
    fn scatter(&self, inst: &Inst) -> Option<(Place, i64, Prim, Option<Value>)> {
        let (InstOp::Vector(op @ VectorOp::Scatter), &[at, index, scale, value, ..]) = (inst.op, &inst.args[..]) else {
            return None;
        };
        let bytes = self.step(index)?.checked_mul(self.function.as_bits(scale)? as i64).filter(|&b| b > 0)?;
        let (prim, _) = self.types.as_vector(self.function.ty(value))?;
        Some((self.place(at), bytes, prim, op.mask(&inst.args)))
    }

    /// Adds an access to its group, or to a new one.
    fn add(&self, groups: &mut Vec<Group>, place: Place, prim: Prim, gap: i64, mask: Option<Value>, i: usize) {
        let (root, at) = place;
        let size = layout::prim_size(prim) as i64;
        let joins = |g: &&mut Group| {
            let offsets = || g.members.iter().map(|m| m.1).chain([at]);
            let (low, high) = (offsets().min().unwrap_or(at), offsets().max().unwrap_or(at));
            // Masks are not converted to numbers.
            let alike = g.prim == prim || g.prim != Prim::Bool && prim != Prim::Bool && g.size() == size;
            let same = g.root == root && g.gap == gap && g.mask == mask && alike;
            let is_old = g.written.iter().all(|&w| !g.overlaps((at, size), w));
            same && is_old && high - low < gap * size && (at - g.members[0].1) % size == 0
        };
        match groups.iter_mut().rev().take(MAX_OPEN).find(joins) {
            Some(group) => group.members.push((i, at)),
            None => groups.push(Group { root, prim, gap, mask, members: vec![(i, at)], written: Vec::new() }),
        }
    }

    fn loads(&mut self, b: usize) {
        let insts = &self.function.blocks[b].insts;
        // For each long load the shuffle that is its only user, with the stride.
        let mut shuffles: SideTable<Value, Option<(usize, i64)>> = SideTable::default();
        for (i, inst) in insts.iter().enumerate() {
            if inst.op == InstOp::Op(Op::Shuffle)
                && inst.args[0] == inst.args[1]
                && self.n_uses[inst.args[0]] == 2
                && let Some(step) = self.step(inst.args[2])
            {
                shuffles[inst.args[0]] = Some((i, step));
            }
        }
        let (mut open, mut done): (Vec<Group>, Vec<Group>) = (Vec::new(), Vec::new());
        for (i, inst) in insts.iter().enumerate() {
            if let Some((place, bytes, prim, _)) = self.scatter(inst) {
                // Writes to other fields of the same elements do not end a group.
                let own = layout::prim_size(prim) as i64;
                let (mut kept, ended): (Vec<Group>, Vec<Group>) = open.drain(..).partition(|g| {
                    let is_other = |m: &(usize, i64)| !g.overlaps((m.1, g.size()), (place.1, own));
                    g.root == place.0 && g.gap * g.size() == bytes && g.members.iter().all(is_other)
                });
                kept.iter_mut().for_each(|g| g.written.push((place.1, own)));
                open = kept;
                done.extend(ended);
            } else if may_write(inst) {
                done.append(&mut open);
            } else if let (InstOp::Vector(VectorOp::Load), &[at], Some(r)) = (inst.op, &inst.args[..], inst.result)
                && let Some((_, gap)) = shuffles[r]
                && let Some((prim, _)) = self.types.as_vector(self.function.ty(r))
            {
                self.add(&mut open, self.place(at), prim, gap, None, i);
            }
        }
        done.append(&mut open);
        done.retain(|g| g.members.len() > 1);
        if done.is_empty() {
            return;
        }
        let old = std::mem::take(&mut self.function.blocks[b].insts);
        // Instructions to insert before an instruction, and to replace it.
        let mut before: Vec<Vec<Inst>> = vec![Vec::new(); old.len()];
        let mut instead: Vec<Option<Vec<Inst>>> = vec![None; old.len()];
        for group in &done {
            let (first, from) = group.members[0];
            let low = group.members.iter().map(|m| m.1).min().unwrap_or(from);
            let high = group.members.iter().map(|m| m.1).max().unwrap_or(from);
            let size = layout::prim_size(group.prim) as i64;
            let n = i64::from(self.width - 1) * group.gap + (high - low) / size + 1;
            let at =
                further(self.types, self.function, &mut before[first], old[first].args[0], low - from, &old[first]);
            let ty = self.types.vector(group.prim, n as u32);
            let all = emit(self.function, &mut before[first], InstOp::Vector(VectorOp::Load), &[at], ty, &old[first]);
            for &(i, offset) in &group.members {
                instead[i] = Some(Vec::new());
                let Some((shuffle, _)) = old[i].result.and_then(|r| shuffles[r]) else { continue };
                let mut made = Vec::new();
                let shift = (offset - low) / size;
                let lanes = (0..i64::from(self.width)).map(|k| k * group.gap + shift);
                let index = numbers(self.types, self.function, &mut made, lanes, &old[shuffle]);
                let Some(result) = old[shuffle].result else { continue };
                let ty = self.types.vector(group.prim, self.width);
                let part =
                    emit(self.function, &mut made, InstOp::Op(Op::Shuffle), &[all, all, index], ty, &old[shuffle]);
                // The last instruction defines the original result.
                if let Some(last) = made.last_mut() {
                    if self.function.ty(result) == ty {
                        last.result = Some(result);
                    } else {
                        made.push(Inst {
                            op: InstOp::Op(Op::Bitcast),
                            args: Args::from_slice(&[part]),
                            ..old[shuffle].clone()
                        });
                    }
                }
                instead[shuffle] = Some(made);
            }
        }
        self.replace(b, old, before, instead);
    }

    fn stores(&mut self, b: usize) {
        let insts = &self.function.blocks[b].insts;
        let (mut open, mut done): (Vec<Group>, Vec<Group>) = (Vec::new(), Vec::new());
        for (i, inst) in insts.iter().enumerate() {
            let Some((place, bytes, prim, mask)) = self.scatter(inst) else {
                if may_write(inst) || may_read(inst) {
                    done.append(&mut open);
                }
                continue;
            };
            let size = layout::prim_size(prim) as i64;
            // Stores that may overlap stay in order.
            let may_be_same = |g: &Group| {
                let is_same = |m: &(usize, i64)| g.overlaps((m.1, g.size()), (place.1, size));
                g.root != place.0 || g.gap * g.size() != bytes || g.members.iter().any(is_same)
            };
            if open.len() >= MAX_OPEN || open.iter().any(may_be_same) {
                done.append(&mut open);
            }
            if bytes > size && bytes % size == 0 && bytes / size <= MAX_FIELDS && prim != Prim::Bool {
                self.add(&mut open, place, prim, bytes / size, mask, i);
            } else {
                done.append(&mut open);
            }
        }
        done.append(&mut open);
        done.retain(|g| {
            let mut offsets: Vec<i64> = g.members.iter().map(|m| m.1).collect();
            offsets.sort_unstable();
            offsets.dedup();
            g.members.len() == g.gap as usize && offsets.len() == g.members.len()
        });
        if done.is_empty() {
            return;
        }
        let old = std::mem::take(&mut self.function.blocks[b].insts);
        let before = vec![Vec::new(); old.len()];
        let mut instead: Vec<Option<Vec<Inst>>> = vec![None; old.len()];
        for group in &mut done {
            let Some(&(last, _)) = group.members.last() else { continue };
            group.members.iter().for_each(|m| instead[m.0] = Some(Vec::new()));
            group.members.sort_by_key(|m| m.1);
            self.stored.extend(group.members.iter().map(|m| old[m.0].span));
            let (mut made, like) = (Vec::new(), &old[last]);
            let lanes = self.types.vector(group.prim, self.width);
            let mut parts: Vec<Value> = group.members.iter().map(|m| old[m.0].args[3]).collect();
            for part in &mut parts {
                if self.function.ty(*part) != lanes {
                    *part = emit(self.function, &mut made, InstOp::Op(Op::Bitcast), &[*part], lanes, like);
                }
            }
            let (w, gap) = (i64::from(self.width), group.gap);
            // Joins fields pairwise; then interleaves the fields of each lane.
            let twice = self.types.vector(group.prim, 2 * self.width);
            let pair = |s: &mut Self, made: &mut Vec<Inst>, a: Value, b: Value| {
                let index = numbers(s.types, s.function, made, 0..2 * w, like);
                emit(s.function, made, InstOp::Op(Op::Shuffle), &[a, b, index], twice, like)
            };
            let operands = match parts[..] {
                [a, b] => [a, b],
                [a, b, c] => [pair(self, &mut made, a, b), pair(self, &mut made, c, c)],
                [a, b, c, d] => [pair(self, &mut made, a, b), pair(self, &mut made, c, d)],
                _ => continue,
            };
            let index =
                numbers(self.types, self.function, &mut made, (0..w * gap).map(|i| i % gap * w + i / gap), like);
            let wide = self.types.vector(group.prim, (w * gap) as u32);
            let all =
                emit(self.function, &mut made, InstOp::Op(Op::Shuffle), &[operands[0], operands[1], index], wide, like);
            let first = old[group.members[0].0].args[0];
            let at = self.point_to(&mut made, first, group.prim, like);
            let mut args = vec![at, all];
            if let Some(mask) = group.mask {
                let index = numbers(self.types, self.function, &mut made, (0..w * gap).map(|i| i / gap), like);
                let wide = self.types.vector(Prim::Bool, (w * gap) as u32);
                args.push(emit(self.function, &mut made, InstOp::Op(Op::Shuffle), &[mask, mask, index], wide, like));
            }
            made.push(Inst { op: InstOp::Vector(VectorOp::Store), args: Args::from_slice(&args), ..like.clone() });
            instead[last] = Some(made);
        }
        self.replace(b, old, before, instead);
    }

    fn point_to(&mut self, to: &mut Vec<Inst>, at: Value, prim: Prim, like: &Inst) -> Value {
        let TyKind::Ptr { space, .. } = *self.types.kind(self.function.ty(at)) else { return at };
        let pointee = self.types.prim(prim);
        let ty = self.types.intern(TyKind::Ptr { pointee, space });
        let is_same = self.function.ty(at) == ty;
        if is_same { at } else { emit(self.function, to, InstOp::Op(Op::Bitcast), &[at], ty, like) }
    }

    fn replace(&mut self, b: usize, old: Vec<Inst>, before: Vec<Vec<Inst>>, instead: Vec<Option<Vec<Inst>>>) {
        let mut insts = Vec::with_capacity(old.len());
        for ((inst, before), instead) in old.into_iter().zip(before).zip(instead) {
            insts.extend(before);
            insts.extend(instead.unwrap_or_else(|| vec![inst]));
        }
        self.function.blocks[b].insts = insts;
    }
}

/// Appends an instruction with the location of another one.
pub fn emit(
    function: &mut Function,
    to: &mut Vec<Inst>,
    op: InstOp,
    args: &[Value],
    ty: nyala_ir::Ty,
    like: &Inst,
) -> Value {
    let result = function.new_value(ty, "");
    to.push(Inst { op, args: Args::from_slice(args), result: Some(result), span: like.span, fast: false });
    result
}

/// A constant vector of i32.
pub fn numbers(
    types: &mut Types,
    function: &mut Function,
    to: &mut Vec<Inst>,
    lanes: impl Iterator<Item = i64>,
    like: &Inst,
) -> Value {
    let i32 = types.i32();
    let lanes: Vec<Value> = lanes.map(|k| function.constant(Const::Bits(k as u64), i32)).collect();
    let ty = types.vector(Prim::I32, lanes.len() as u32);
    emit(function, to, InstOp::Op(Op::Array), &lanes, ty, like)
}

/// An address plus a number of bytes, of the same type.
pub fn further(
    types: &mut Types,
    function: &mut Function,
    to: &mut Vec<Inst>,
    at: Value,
    bytes: i64,
    like: &Inst,
) -> Value {
    let ty = function.ty(at);
    let TyKind::Ptr { space, .. } = *types.kind(ty) else { return at };
    if bytes == 0 {
        return at;
    }
    let byte = types.prim(Prim::U8);
    let array = types.indef_array(byte);
    let (array, byte) = (TyKind::Ptr { pointee: array, space }, TyKind::Ptr { pointee: byte, space });
    let (array, byte) = (types.intern(array), types.intern(byte));
    let base = emit(function, to, InstOp::Op(Op::Bitcast), &[at], array, like);
    let i64 = types.prim(Prim::I64);
    let bytes = function.constant(Const::Bits(bytes as u64), i64);
    let moved = emit(function, to, InstOp::Op(Op::Lea), &[base, bytes], byte, like);
    emit(function, to, InstOp::Op(Op::Bitcast), &[moved], ty, like)
}

/// Whether an instruction may change memory, or end the program.
pub fn may_write(inst: &Inst) -> bool {
    match inst.op {
        InstOp::Op(op) => op.effect() == Effect::Write,
        InstOp::Vector(op) => op.effect() == Effect::Write,
        InstOp::Call(_) | InstOp::CallIndirect | InstOp::Vectorize(..) | InstOp::Launch(..) => true,
    }
}

fn may_read(inst: &Inst) -> bool {
    matches!(inst.op, InstOp::Op(Op::Load) | InstOp::Vector(VectorOp::Load | VectorOp::Gather))
}
