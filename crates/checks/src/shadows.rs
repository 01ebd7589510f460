//! Decides whether a variable stays on the stack or moves to the heap, and keeps its *shadow*, which tells which of its bytes are
//! initialized.
//!
//! A variable moves to the heap if its address leaves the function: it is stored, passed or returned. The runtime keeps its shadow
//! there. The shadow of a variable that stays is another variable of the same size: its bytes are 0 at first, and 255 once they were
//! stored to. LLVM promotes both to registers. Statics are initialized at first; those whose numbers may become undefined again have a
//! shadow, which is another static.

use super::checker::{Access, Bounds, Checker, MASK, STATE, UNINITIALIZED, word_of};
use nyala_base::Id;
use nyala_flat::analysis::Cfg;
use nyala_flat::*;
use nyala_ir::{Op, Prim, Ty, layout};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;

/// Limit on the bytes of a variable with a shadow on the stack, and of a static with a shadow.
const MAX_SHADOW: u64 = 1 << 16;

/// Makes the shadows of statics that may hold numbers without a value: those in which such a number is stored, and those whose addresses
/// are stored, passed or returned. Larger statics count as initialized.
pub fn shadows_of_statics(module: &mut Module) -> FxHashMap<GlobalId, (GlobalId, Ty)> {
    let mut found: BTreeSet<GlobalId> = BTreeSet::new();
    let mut inits: Vec<&Init> = module.globals.iter().map(|g| &g.init).collect();
    while let Some(init) = inits.pop() {
        match init {
            Init::Global(id, _) => drop(found.insert(*id)),
            Init::Parts(parts) => inits.extend(parts),
            _ => {}
        }
    }
    for function in &module.funcs {
        let mut statics: FxHashMap<Value, GlobalId> = FxHashMap::default();
        for v in (0..function.values.len()).map(Value::from_idx) {
            if let Some(Const::Global(id)) = function.as_const(v) {
                statics.insert(v, id);
            }
        }
        if statics.is_empty() {
            continue;
        }
        for b in Cfg::new(function).rpo {
            let block = function.block(b);
            for inst in &block.insts {
                let n_known = match inst.op {
                    InstOp::Op(Op::Bitcast | Op::Aligned | Op::Restrict | Op::Lea) => {
                        let id = statics.get(&inst.args[0]).copied();
                        let address = inst.result.filter(|&r| module.types.pointee(function.ty(r)).is_some());
                        if let (Some(id), Some(address)) = (id, address) {
                            statics.insert(address, id);
                            1
                        } else {
                            0
                        }
                    }
                    InstOp::Op(Op::Load | Op::AtomicLoad | Op::Store | Op::AtomicStore | Op::Prefetch) => 1,
                    InstOp::Vector(VectorOp::Load | VectorOp::Store | VectorOp::Gather | VectorOp::Scatter) => 1,
                    _ => 0,
                };
                found.extend(inst.args[n_known.min(inst.args.len())..].iter().filter_map(|a| statics.get(a)));
            }
            block.term.for_each_use(|v| found.extend(statics.get(&v)));
        }
    }
    let mut shadows = FxHashMap::default();
    for id in found {
        let global = &module.globals[id.idx()];
        let size = layout::size_align(&module.types, global.ty).map_or(0, |s| s.0);
        if global.mutable && global.space == 0 && (1..=MAX_SHADOW).contains(&size) {
            let u64 = module.types.prim(Prim::U64);
            let ty = module.types.array(u64, size.div_ceil(8));
            let init = Init::Parts(vec![Init::Bits(u64::MAX); size.div_ceil(8) as usize]);
            let shadow = module.add_global(Global { name: "shadow".into(), ty, mutable: true, space: 0, init });
            shadows.insert(id, (shadow, ty));
        }
    }
    shadows
}

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
                _ if self.asked(inst).is_some() => {}
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
        let is_variable = |shadow: &Value| self.code.function.as_const(*shadow).is_none();
        let variables = self.shadows.iter().filter(|(_, shadow)| is_variable(shadow));
        let mut shadows: Vec<(Value, Value)> = variables.map(|(&slot, &shadow)| (slot, shadow)).collect();
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

    /// Finds the shadows of the statics that this function accesses directly.
    pub fn find_shadows_of_statics(&mut self) {
        for v in (0..self.code.function.values.len()).map(Value::from_idx) {
            if let Some(Const::Global(id)) = self.code.function.as_const(v)
                && let Some(&(shadow, ty)) = self.tables.shadows.get(&id)
            {
                let ty = self.code.types.ptr(ty);
                let shadow = self.code.function.constant(Const::Global(shadow), ty);
                self.shadows.insert(v, shadow);
            }
        }
    }

    /// Whether an access is of a variable or static with a shadow, where it finds that without asking the runtime.
    pub fn has_shadow(&self, inst: &Inst, access: &Access) -> bool {
        let is_consecutive = !matches!(inst.op, InstOp::Vector(VectorOp::Gather | VectorOp::Scatter));
        access.mask.is_none() && is_consecutive && self.shadows.contains_key(&self.origin(access.address).root)
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
        if !self.has_shadow(inst, access) || !self.must_be_initialized(inst, access) {
            return;
        }
        let Some((at, prim, n)) = self.words(inst, access) else { return };
        let (ty, bool_ty) = (self.code.types.prim(prim), self.code.types.bool());
        let words = self.code.types.indef_array(ty);
        let words = self.code.types.ptr(words);
        let word = self.code.types.ptr(ty);
        let at = self.op(Op::Bitcast, &[at], words);
        let mut all: Option<Value> = None;
        let picked = inst.result.and_then(|r| self.picked.get(&r)).cloned();
        let is_used = |i: &u64| picked.as_ref().is_none_or(|picked| picked.get(*i as usize) != Some(&false));
        for i in (0..n).filter(is_used) {
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
                    let u64 = self.code.types.prim(Prim::U64);
                    let bool_ty = self.code.types.bool();
                    let is_shared = self.op(Op::Eq, &[mask, none], bool_ty);
                    let is_defined = self.op(Op::Or, &[is_defined, is_shared], bool_ty);
                    // The runtime has noted areas that are initialized.
                    let known = self.word(object, STATE);
                    let known = self.op(Op::Select, &[is_defined, known, none], u64);
                    self.store_part(object, STATE, known);
                    is_defined
                }
                _ => is_defined,
            };
            let told = self.op(Op::Select, &[is_defined, ones, none], ty);
            self.push(InstOp::Op(Op::Store), &[at, told], None);
        }
    }

    /// The place in the runtime's shadow that belongs to a vector, a vector of words there in which everything is initialized, and their
    /// number.
    fn lanes_in_shadow(&mut self, inst: &Inst, number: Value, object: Value) -> Option<(Value, Value, u32)> {
        let InstOp::Vector(op) = inst.op else { return None };
        let vector = op.written().map_or(inst.result, |i| inst.args.get(i).copied())?;
        let (prim, n) = self.code.types.as_vector(self.code.function.ty(vector))?;
        let word = word_of(layout::prim_size(prim))?;
        let at = self.shadow(number, object, word);
        let (ones, ty) = (self.literal(word, u64::MAX), self.code.types.vector(word, n));
        Some((at, self.op(Op::Splat, &[ones], ty), n))
    }

    /// Finds the vectors of which only some elements are used: what lies between the fields of elements may be uninitialized.
    pub fn find_picked(&mut self, insts: &[Inst]) {
        if !self.checks.uninit {
            return;
        }
        let function = &*self.code.function;
        let n_loaded = |v: Value| {
            let inst = self.defs.get(&v).filter(|i| i.op == InstOp::Vector(VectorOp::Load))?;
            Some(self.code.types.as_vector(function.ty(inst.result?))?.1 as usize)
        };
        let mut picked: FxHashMap<Value, Vec<bool>> = FxHashMap::default();
        for inst in insts {
            let indices = match inst.op {
                InstOp::Op(Op::Shuffle) => self.defs.get(&inst.args[2]).filter(|i| i.op == InstOp::Op(Op::Array)),
                _ => None,
            };
            let indices: Option<Vec<u64>> =
                indices.and_then(|array| array.args.iter().map(|&i| function.as_index(i)).collect());
            for (at, &v) in inst.args.iter().enumerate() {
                let Some(n) = n_loaded(v) else { continue };
                let elements = picked.entry(v).or_insert_with(|| vec![false; n]);
                match &indices {
                    Some(indices) => {
                        let own = indices.iter().filter_map(|&i| (i as usize).checked_sub(at * n));
                        own.for_each(|i| elements.get_mut(i).into_iter().for_each(|e| *e = true));
                    }
                    None => elements.fill(true),
                }
            }
        }
        for block in &function.blocks {
            block.term.for_each_use(|v| drop(picked.remove(&v)));
        }
        picked.retain(|_, elements| elements.contains(&false));
        self.picked = picked;
    }

    /// Checks that those elements of a vector are initialized that are used, and that a mask does not exclude.
    pub fn check_picked(
        &mut self,
        inst: &Inst,
        (number, object): (Value, Value),
        mask: Option<Value>,
        picked: &[bool],
    ) {
        // As many as a mask has bits.
        let Some(n) = u32::try_from(picked.len()).ok().filter(|n| *n <= 64) else { return };
        let ty = self.code.types.vector(Prim::Bool, n);
        let lanes: Vec<Value> = picked.iter().map(|&is_used| self.literal(Prim::Bool, is_used.into())).collect();
        let lanes = self.op(Op::Array, &lanes, ty);
        let mask = mask.map_or(lanes, |mask| self.op(Op::And, &[mask, lanes], ty));
        self.check_lanes_initialized(inst, number, object, mask);
    }

    /// Checks that what the active lanes of a vector read is initialized.
    pub fn check_lanes_initialized(&mut self, inst: &Inst, number: Value, object: Value, mask: Value) {
        let Some((at, ones, n)) = self.lanes_in_shadow(inst, number, object) else { return };
        let (ty, mask_ty) = (self.code.function.ty(ones), self.code.function.ty(mask));
        let found = self.push_vector(VectorOp::Load, &[at, mask], ty);
        let found = self.op(Op::Select, &[mask, found, ones], ty);
        let are_initialized = self.op(Op::Eq, &[found, ones], mask_ty);
        let (u64, bool_ty) = (self.code.types.prim(Prim::U64), self.code.types.bool());
        let bits = self.push_vector(VectorOp::MaskBits, &[are_initialized], u64);
        let all = self.literal(Prim::U64, u64::MAX >> (64 - n.clamp(1, 64)));
        let holds = self.op(Op::Eq, &[bits, all], bool_ty);
        self.require(holds, UNINITIALIZED, number, Some(object));
    }

    /// Notes that the active lanes of a vector write.
    pub fn note_lanes(&mut self, inst: &Inst, number: Value, object: Value, mask: Value) {
        if let Some((at, ones, _)) = self.lanes_in_shadow(inst, number, object) {
            self.push(InstOp::Vector(VectorOp::Store), &[at, ones, mask], None);
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
