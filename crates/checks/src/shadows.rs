//! Decides whether a variable stays on the stack or moves to the heap, and keeps its *shadow*, which tells which of its bytes are
//! initialized.
//!
//! A variable moves to the heap if its address leaves the function: it is stored, passed or returned. The runtime keeps its shadow
//! there. The shadow of a variable that stays is another variable of the same size: its bytes are 0 at first, and 255 once they were
//! stored to. LLVM promotes both to registers.

use super::checker::{Access, Bounds, Checker, MASK, UNINITIALIZED, word_of};
use nyala_flat::*;
use nyala_ir::{Op, Prim, layout};
use rustc_hash::FxHashSet;

/// Limit on the bytes of a variable with a shadow on the stack.
const MAX_SHADOW: u64 = 1 << 16;

impl Checker<'_, '_> {
    /// Decides which variables move to the heap: those whose addresses leave the function, unless it ends with a call in tail position.
    /// With the check `uninit`, the others get a shadow.
    pub fn place_variables(&mut self, insts: &[Inst]) {
        self.moved = self.escaping(insts);
        // Indices in lanes are checked against an object, which only variables on the heap have.
        for inst in insts.iter().filter(|i| matches!(i.op, InstOp::Vector(VectorOp::Gather | VectorOp::Scatter))) {
            let root = self.origin(inst.args[0]).root;
            if self.defs.get(&root).is_some_and(|i| i.op == InstOp::Op(Op::Slot)) {
                self.moved.insert(root);
            }
        }
        if self.checks.uninit {
            let mut masked: FxHashSet<Value> = FxHashSet::default();
            for inst in insts {
                if let Some(access) = self.access(inst)
                    && (access.mask.is_some()
                        || matches!(inst.op, InstOp::Vector(VectorOp::Gather | VectorOp::Scatter)))
                {
                    masked.insert(self.origin(access.address).root);
                }
            }
            for slot in insts.iter().filter(|i| i.op == InstOp::Op(Op::Slot)).filter_map(|i| i.result) {
                let size = self.known_size(slot).filter(|n| (1..=MAX_SHADOW).contains(n) && self.checks.bounds);
                match size {
                    Some(size) if !masked.contains(&slot) => {
                        let u64 = self.code.types.prim(Prim::U64);
                        let ty = self.code.types.array(u64, size.div_ceil(8));
                        let ty = self.code.types.ptr(ty);
                        let shadow = self.code.function.new_value(ty, "shadow");
                        self.shadows.insert(slot, shadow);
                    }
                    _ => drop(self.moved.insert(slot)),
                }
            }
        }
        if self.code.function.blocks.iter().any(|b| matches!(b.term, Terminator::TailCall { .. })) {
            self.moved.clear();
        }
    }

    /// Variables whose addresses leave the function.
    fn escaping(&self, insts: &[Inst]) -> FxHashSet<Value> {
        let is_slot = |v: Value| self.defs.get(&v).is_some_and(|i| i.op == InstOp::Op(Op::Slot));
        let mut found: FxHashSet<Value> = FxHashSet::default();
        let mut escapes = |v: Value| {
            if self.code.types.pointee(self.code.function.ty(v)).is_some() {
                found.extend(Some(self.origin(v).root).filter(|&root| is_slot(root)));
            }
        };
        for inst in insts {
            match (inst.op, self.access(inst)) {
                (InstOp::Op(Op::Bitcast | Op::Aligned | Op::Restrict | Op::Lea | Op::Prefetch), _)
                    if inst.result.is_none_or(|r| self.code.types.pointee(self.code.function.ty(r)).is_some()) => {}
                // Stands for code that only looks at the shadow.
                (InstOp::Call(f), _) if Some(f) == self.tables.is_written || Some(f) == self.tables.keep => {}
                (_, Some(Access { address, .. })) => {
                    inst.args.iter().filter(|&&a| a != address).for_each(|&a| escapes(a))
                }
                _ => inst.args.iter().for_each(|&a| escapes(a)),
            }
        }
        for block in &self.code.function.blocks {
            block.term.for_each_use(&mut escapes);
        }
        found
    }

    /// Makes the shadows, in which nothing is initialized yet.
    pub fn begin_shadows(&mut self) {
        let mut shadows: Vec<(Value, Value)> = self.shadows.iter().map(|(&slot, &shadow)| (slot, shadow)).collect();
        shadows.sort_unstable();
        for (_, shadow) in shadows {
            self.push(InstOp::Op(Op::Slot), &[], Some(shadow));
            if let Some(ty) = self.code.types.pointee(self.code.function.ty(shadow)) {
                let zero = self.literal(Prim::U64, 0);
                let zeros = self.op(Op::Splat, &[zero], ty);
                self.push(InstOp::Op(Op::Store), &[shadow, zeros], None);
            }
        }
    }

    /// The address in a variable's shadow that belongs to an access, and the number of words to read or write there.
    fn words(&mut self, inst: &Inst, access: &Access) -> Option<(Value, Prim, u64)> {
        let origin = self.origin(access.address);
        let shadow = *self.shadows.get(&origin.root)?;
        let align = match inst.op {
            InstOp::Vector(op) => {
                let vector = op.written().map_or(inst.result, |i| inst.args.get(i).copied())?;
                layout::prim_size(self.code.types.as_vector(self.code.function.ty(vector))?.0)
            }
            _ => {
                let ty = self.code.types.pointee(self.code.function.ty(access.address))?;
                layout::size_align(self.code.types, ty)?.1
            }
        };
        let unit = align.min(8);
        let (prim, unit) = match word_of(unit).filter(|_| access.size.is_multiple_of(unit)) {
            Some(prim) => (prim, unit),
            None => (Prim::U8, 1),
        };
        let offset = self.offset(&origin);
        let u8 = self.code.types.prim(Prim::U8);
        let (all, one) = (self.code.types.indef_array(u8), self.bytes());
        let all = self.code.types.ptr(all);
        let shadow = self.op(Op::Bitcast, &[shadow], all);
        Some((self.op(Op::Lea, &[shadow, offset], one), prim, access.size / unit))
    }

    /// Checks that the bytes of a variable that an access reads are initialized.
    pub fn check_shadow(&mut self, inst: &Inst, access: &Access) {
        if access.writes || !(self.reads_numbers(inst) || matches!(inst.op, InstOp::Vector(_))) {
            return;
        }
        let Some((at, prim, n)) = self.words(inst, access) else { return };
        let (ty, bool_ty) = (self.code.types.prim(prim), self.code.types.bool());
        let words = self.code.types.indef_array(ty);
        let words = self.code.types.ptr(words);
        let word = self.code.types.ptr(ty);
        let at = self.op(Op::Bitcast, &[at], words);
        let mut all: Option<Value> = None;
        for i in 0..n {
            let i = self.literal(Prim::U64, i);
            let at = self.op(Op::Lea, &[at, i], word);
            let found = self.op(Op::Load, &[at], ty);
            all = Some(match all {
                Some(all) => self.op(Op::And, &[all, found], ty),
                None => found,
            });
        }
        if let Some(found) = all {
            let (ones, number) = (self.literal(prim, u64::MAX), self.number(access.address));
            let holds = self.op(Op::Eq, &[found, ones], bool_ty);
            self.require(holds, UNINITIALIZED, number, None);
        }
    }

    /// The place in a variable's shadow, or in the runtime's, that tells of a number of `size` bytes at an address. `None` where all bytes
    /// are initialized.
    fn shadow_of(&mut self, address: Value, prim: Prim) -> Option<Value> {
        let origin = self.origin(address);
        let ty = self.code.types.prim(prim);
        let word = self.code.types.ptr(ty);
        if let Some(&shadow) = self.shadows.get(&origin.root) {
            let offset = self.offset(&origin);
            let u8 = self.code.types.prim(Prim::U8);
            let (all, one) = (self.code.types.indef_array(u8), self.bytes());
            let all = self.code.types.ptr(all);
            let shadow = self.op(Op::Bitcast, &[shadow], all);
            let at = self.op(Op::Lea, &[shadow, offset], one);
            return Some(self.op(Op::Bitcast, &[at], word));
        }
        let Some(Bounds::Object(object, _)) = self.bounds(origin.root) else { return None };
        let number = self.number(address);
        Some(self.shadow(number, object, prim))
    }

    /// Whether a number at an address is initialized, which becomes `result`.
    pub fn is_written(&mut self, address: Value, size: Value, result: Value) {
        let prim = self.code.function.as_bits(size).and_then(word_of);
        let at = prim.and_then(|prim| Some((prim, self.shadow_of(address, prim)?)));
        let (found, all) = match at {
            Some((prim, at)) => {
                let ty = self.code.types.prim(prim);
                (self.op(Op::Load, &[at], ty), self.literal(prim, u64::MAX))
            }
            None => (self.literal(Prim::U8, 0), self.literal(Prim::U8, 0)),
        };
        self.push(InstOp::Op(Op::Eq), &[found, all], Some(result));
    }

    /// Notes that a number at an address is as initialized as `is_defined` says.
    pub fn keep(&mut self, address: Value, size: Value, is_defined: Value) {
        let prim = self.code.function.as_bits(size).and_then(word_of);
        if let Some((prim, at)) = prim.and_then(|prim| Some((prim, self.shadow_of(address, prim)?))) {
            let (ty, ones, none) = (self.code.types.prim(prim), self.literal(prim, u64::MAX), self.literal(prim, 0));
            // Memory that is not the runtime's shares one shadow, in which all is initialized.
            let root = self.origin(address).root;
            let is_defined = match self.bounds(root).filter(|_| !self.shadows.contains_key(&root)) {
                Some(Bounds::Object(object, _)) => {
                    let (mask, none) = (self.word(object, MASK), self.literal(Prim::U64, 0));
                    let bool_ty = self.code.types.bool();
                    let is_shared = self.op(Op::Eq, &[mask, none], bool_ty);
                    self.op(Op::Or, &[is_defined, is_shared], bool_ty)
                }
                _ => is_defined,
            };
            let told = self.op(Op::Select, &[is_defined, ones, none], ty);
            self.push(InstOp::Op(Op::Store), &[at, told], None);
        }
    }

    pub fn note_in_shadow(&mut self, inst: &Inst, access: &Access) {
        let Some((at, prim, n)) = self.words(inst, access) else { return };
        let ones = self.literal(prim, u64::MAX);
        let (value, ty) = match n {
            1 => (ones, self.code.types.prim(prim)),
            _ => {
                let ty = self.code.types.prim(prim);
                let ty = self.code.types.array(ty, n);
                (self.op(Op::Splat, &[ones], ty), ty)
            }
        };
        let ty = self.code.types.ptr(ty);
        let at = self.op(Op::Bitcast, &[at], ty);
        self.push(InstOp::Op(Op::Store), &[at, value], None);
    }
}
