//! The vector version of a function: control flow, masks, parameters of blocks (see the crate's header). Instructions
//! are translated in [`crate::widen`].

use crate::fold::fold;
use crate::gathers::combine;
use crate::interleave::interleave;
use crate::shapes::{Shape, Shapes};
use crate::split::split_vectors;
use crate::versions::Versions;
use nyala_base::{Id, SideTable, Span};
use nyala_flat::structure::Loops;
use nyala_flat::structure::Regions;
use nyala_flat::*;
use nyala_ir::{Op, Prim, Ty};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// The form of a scalar function's value in the vector version.
#[derive(Clone, Copy, Debug)]
pub enum Wide {
    /// All lanes have the same value.
    Uniform(Value),
    /// The value in lane 0; each lane's value is larger than the one before by the stride (for addresses in bytes).
    Strided(Value, i64),
    /// A vector, or an aggregate of vectors.
    Vector(Value),
    /// Addresses: for each lane `base` plus an index times `scale` bytes.
    Indexed { base: Value, index: Value, scale: u64 },
    /// The address of a variable, or of a part of it, whose lanes are interleaved; `bytes` (i64) is an offset for each
    /// lane.
    Own { base: Value, bytes: Option<Value> },
}

/// Minimal number of instructions that are skipped by a branch.
const MIN_SKIPPED: usize = 24;

pub struct Builder<'a> {
    pub versions: &'a mut Versions,
    pub module: &'a mut Module,
    pub old: &'a Function,
    pub regions: &'a Regions,
    pub shapes: &'a Shapes,
    pub width: u32,
    pub new: Function,
    /// The block of the new function that is being written.
    pub cur: Block,
    pub span: Span,
    /// Whether the operation that is being translated is fast, or a streaming store.
    fast: bool,
    streams: bool,
    pub map: SideTable<Value, Option<Wide>>,
    /// The block of the old function that is being translated.
    pub here: usize,
    /// Active lanes in that block; `None` if all are.
    pub mask: Option<Value>,
    /// Variables that hold parameters.
    params: SideTable<Value, Option<Value>>,
    /// Variables for values of divergent loops that are used outside, by value and loop.
    kept: FxHashMap<(Value, usize), Value>,
    /// For each loop the values that are kept when lanes leave it.
    kept_of: Vec<Vec<Value>>,
    /// For each block the first block that the same lanes execute.
    leaders: Vec<usize>,
    /// Variables that hold masks, by leader, and the masks once the leader is executed.
    mask_slots: Vec<Option<Value>>,
    masks: Vec<Option<Value>>,
    /// Whether at least one lane is active where the block is executed.
    nonempty: Vec<bool>,
    /// The new block of each old one; the block that skips it, to which others jump.
    blocks: Vec<Block>,
    guards: Vec<Option<Block>>,
    /// Positions of later blocks where lanes wait.
    waiting: Vec<BTreeSet<usize>>,
    slots: Vec<Inst>,
    /// For uniform arrays of equal elements the element.
    pub splats: SideTable<Value, Option<Value>>,
    /// The address that is being accessed, for notes.
    pub accessed: Option<Value>,
}

/// Makes the vector version `target` of `old`.
pub fn build(
    versions: &mut Versions,
    module: &mut Module,
    target: Func,
    old: &Function,
    regions: &Regions,
    shapes: &Shapes,
    params: &[Shape],
    masked: bool,
    width: u32,
) -> Function {
    let mut new = module.funcs[target.idx()].clone();
    new.span = old.span;
    let n = old.blocks.len();
    let blocks: Vec<Block> = (1..=n).map(Block::from_idx).collect();
    let empty = |name: &str| BlockData {
        name: name.into(),
        params: Vec::new(),
        insts: Vec::new(),
        term: Terminator::Unreachable,
    };
    new.blocks.push(empty("entry"));
    old.blocks.iter().for_each(|b| new.blocks.push(empty(&b.name)));
    let mut b = Builder {
        versions,
        module,
        old,
        regions,
        shapes,
        width,
        new,
        cur: Block(0),
        span: Span::NONE,
        fast: false,
        streams: false,
        map: SideTable::default(),
        here: 0,
        mask: None,
        params: SideTable::default(),
        kept: FxHashMap::default(),
        kept_of: vec![Vec::new(); regions.loops.all.len()],
        leaders: Vec::new(),
        mask_slots: vec![None; n],
        masks: vec![None; n],
        nonempty: vec![false; n],
        blocks,
        guards: vec![None; n],
        waiting: vec![BTreeSet::new(); n],
        slots: Vec::new(),
        splats: SideTable::default(),
        accessed: None,
    };
    b.note_version(masked);
    b.leaders = b.find_leaders();
    b.entry(params, masked);
    b.find_kept();
    b.declare_variables();
    for &block in &regions.order {
        b.block(block);
    }
    let Builder { mut new, slots, module, versions, .. } = b;
    new.blocks[0].insts.splice(0..0, slots);
    new.blocks[0].term = Terminator::Jump(Edge { block: Block(1), args: Vec::new() });
    repair(&mut module.types, &mut new);
    promote_slots_of(&mut module.types, &mut new);
    fold(&mut new);
    let stored = interleave(&mut module.types, &mut new, width, shapes.wrap);
    versions.note_fields(&new.name, &stored);
    simplify_function(&module.types, &mut new);
    split_vectors(&mut module.types, &mut new, width);
    combine(&mut module.types, &mut new, shapes.wrap);
    simplify_function(&module.types, &mut new);
    new
}

impl Builder<'_> {
    fn loops(&self) -> &Loops {
        &self.regions.loops
    }

    // Building.

    pub fn push(&mut self, op: InstOp, args: &[Value], ty: Option<Ty>) -> Option<Value> {
        let result = ty.map(|ty| self.new.new_value(ty, ""));
        let inst = Inst { op, args: Args::from_slice(args), result, span: self.span, fast: self.is_fast(op, args) };
        self.new.blocks[self.cur.idx()].insts.push(inst);
        result
    }

    /// An operation with a result.
    pub fn op(&mut self, op: Op, args: &[Value], ty: Ty) -> Value {
        self.with_result(InstOp::Op(op), args, ty)
    }

    pub fn with_result(&mut self, op: InstOp, args: &[Value], ty: Ty) -> Value {
        let result = self.new.new_value(ty, "");
        let fast = self.is_fast(op, args);
        let inst = Inst { op, args: Args::from_slice(args), result: Some(result), span: self.span, fast };
        self.new.blocks[self.cur.idx()].insts.push(inst);
        result
    }

    fn is_fast(&self, op: InstOp, args: &[Value]) -> bool {
        match op {
            InstOp::Op(Op::Store) | InstOp::Vector(VectorOp::Store) => self.streams,
            _ => self.fast && self.new.can_be_fast(&self.module.types, op, args),
        }
    }

    pub fn literal(&mut self, prim: Prim, bits: u64) -> Value {
        let ty = self.module.types.prim(prim);
        self.new.constant(Const::Bits(prim.normalize(bits)), ty)
    }

    pub fn new_block(&mut self, name: &str) -> Block {
        self.new.blocks.push(BlockData {
            name: name.into(),
            params: Vec::new(),
            insts: Vec::new(),
            term: Terminator::Unreachable,
        });
        Block::from_idx(self.new.blocks.len() - 1)
    }

    pub fn end(&mut self, term: Terminator) {
        self.new.blocks[self.cur.idx()].term = term;
    }

    pub fn jump_to(&mut self, block: Block) {
        self.end(Terminator::Jump(Edge { block, args: Vec::new() }));
    }

    pub fn branch(&mut self, cond: Value, then: Block, els: Block) {
        let edge = |block| Edge { block, args: Vec::new() };
        self.end(Terminator::Branch { cond, then: edge(then), els: edge(els) });
    }

    /// Makes a variable in the version's frame.
    pub fn slot(&mut self, ty: Ty) -> Value {
        let ptr = self.module.types.ptr(ty);
        let result = self.new.new_value(ptr, "");
        let op = InstOp::Op(Op::Slot);
        self.slots.push(Inst { op, args: Args::new(), result: Some(result), span: Span::NONE, fast: false });
        result
    }

    pub fn read(&mut self, slot: Value) -> Value {
        let ty = self.module.types.pointee(self.new.ty(slot)).unwrap_or(self.module.types.unit());
        self.op(Op::Load, &[slot], ty)
    }

    pub fn write(&mut self, slot: Value, value: Value) {
        self.push(InstOp::Op(Op::Store), &[slot, value], None);
    }

    pub fn mask_ty(&mut self) -> Ty {
        self.module.types.vector(Prim::Bool, self.width)
    }

    /// A mask with the same value in all lanes.
    pub fn full(&mut self, value: bool) -> Value {
        let (ty, lit) = (self.mask_ty(), self.literal(Prim::Bool, value.into()));
        self.op(Op::Splat, &[lit], ty)
    }

    /// Lanes of `mask` where `cond` is true. `cond` may be undefined elsewhere, so this is no `and`.
    pub fn restrict(&mut self, mask: Option<Value>, cond: Value) -> Value {
        let Some(mask) = mask else { return cond };
        let (none, ty) = (self.full(false), self.mask_ty());
        self.op(Op::Select, &[mask, cond, none], ty)
    }

    /// Whether a mask has an active lane.
    fn any(&mut self, mask: Value) -> Value {
        let (u64, bool) = (self.module.types.prim(Prim::U64), self.module.types.bool());
        let bits = self.with_result(InstOp::Vector(VectorOp::MaskBits), &[mask], u64);
        let zero = self.literal(Prim::U64, 0);
        self.op(Op::Ne, &[bits, zero], bool)
    }

    // Facts found before building.

    /// For each block the first block that the same lanes execute; a header of a divergent loop is its own leader.
    fn find_leaders(&self) -> Vec<usize> {
        let r = self.regions;
        let mut leaders: Vec<usize> = (0..self.old.blocks.len()).collect();
        for &b in &r.order {
            let is_header = self.header_of(b).is_some();
            if self.header_of(b).is_some_and(|l| self.shapes.divergent_loops[l]) || b == 0 {
                continue;
            }
            if let Some(a) = r.equivalent_above(b) {
                leaders[b] = leaders[a];
                continue;
            }
            // The only predecessor branches here in all lanes or in none.
            if let [p] = r.preds[b][..]
                && !is_header
                && !self.shapes.divergent[p]
                && r.loops.of[p] == r.loops.of[b]
            {
                leaders[b] = leaders[p];
            }
        }
        leaders
    }

    /// Whether a block is executed by the lanes that are active now.
    pub fn same_lanes(&self, b: usize) -> bool {
        self.leaders[b] == self.leaders[self.here]
    }

    fn header_of(&self, b: usize) -> Option<usize> {
        self.loops().of[b].filter(|&l| self.loops().all[l].header == b)
    }

    /// Translates the parameters and the mask of the function.
    fn entry(&mut self, params: &[Shape], masked: bool) {
        let tys = self.new.params.clone();
        let values: Vec<Value> = tys.iter().map(|&ty| self.new.new_value(ty, "")).collect();
        self.new.blocks[0].params = values.clone();
        for ((&p, &shape), &value) in self.old.blocks[0].params.iter().zip(params).zip(&values) {
            self.new.set_name(value, self.old.name(p));
            self.map[p] = Some(match shape {
                Shape::Uniform => Wide::Uniform(value),
                Shape::Strided(s) => Wide::Strided(value, s),
                Shape::Varying => Wide::Vector(value),
            });
        }
        self.masks[0] = masked.then(|| values[values.len() - 1]);
    }

    /// Finds values that are used outside of the divergent loop that computes them.
    fn find_kept(&mut self) {
        let mut found: Vec<(Value, usize)> = Vec::new();
        for &b in &self.regions.order {
            let block = &self.old.blocks[b];
            let mut note = |v: Value| {
                if self.old.as_const(v).is_none()
                    && let Some(l) = self.shapes.left_loop(self.regions, v, b)
                {
                    found.push((v, l));
                }
            };
            block.insts.iter().flat_map(|i| &i.args).copied().for_each(&mut note);
            block.term.for_each_use(note);
        }
        for (v, l) in found {
            if self.kept.contains_key(&(v, l)) {
                continue;
            }
            let ty = self.widen(self.old.ty(v));
            let slot = self.slot(ty);
            self.kept.insert((v, l), slot);
            self.kept_of[l].push(v);
        }
    }

    /// Declares variables for parameters and masks.
    fn declare_variables(&mut self) {
        for &b in &self.regions.order {
            if b != 0 {
                for &p in &self.old.blocks[b].params {
                    let ty = self.old.ty(p);
                    let ty = match self.shape(p, b) {
                        Shape::Varying => self.widen(ty),
                        _ => ty,
                    };
                    let slot = self.slot(ty);
                    self.params[p] = Some(slot);
                }
                if self.leaders[b] == b {
                    let ty = self.mask_ty();
                    let slot = self.slot(ty);
                    self.mask_slots[b] = Some(slot);
                }
            }
        }
    }

    pub fn shape(&self, v: Value, block: usize) -> Shape {
        self.shapes.at(self.old, self.regions, v, block).unwrap_or(Shape::Uniform)
    }

    // Blocks.

    /// Whether a block must not, or should not, be executed without active lanes.
    fn wants_lanes(&self, b: usize) -> bool {
        let block = &self.old.blocks[b];
        let by_end = match block.term {
            Terminator::Branch { .. } => !self.shapes.divergent[b],
            Terminator::Unreachable => true,
            _ => false,
        };
        by_end
            || self.header_of(b).is_some()
            || block.insts.len() >= MIN_SKIPPED
            || block.insts.iter().any(|inst| self.needs_lanes(inst, b))
    }

    /// The block to which jumps to `b` lead.
    fn place(&self, b: usize) -> Block {
        self.guards[b].unwrap_or(self.blocks[b])
    }

    /// Continues at the first of these positions, where lanes wait; the others keep waiting there.
    fn arrive(&mut self, mut targets: BTreeSet<usize>) -> Option<Block> {
        let first = targets.pop_first()?;
        let b = self.regions.order[first];
        self.waiting[b].extend(targets);
        if self.guards[b].is_none() {
            self.guards[b] = Some(self.new_block("guard"));
        }
        Some(self.place(b))
    }

    fn block(&mut self, b: usize) {
        self.here = b;
        let waiting = self.waiting[b].clone();
        let header = self.header_of(b);
        let leader = self.leaders[b];
        let is_leader = leader == b;
        // Edges lead to the guard, which tests for active lanes if necessary.
        let guard = self.guards[b];
        let mut nonempty = waiting.is_empty() || !is_leader && self.nonempty[leader];
        if let Some(guard) = guard {
            self.cur = guard;
            let looks = !nonempty && self.wants_lanes(b);
            let own = self.blocks[b];
            if looks && let Some(mask) = self.mask_of(b) {
                let cond = self.any(mask);
                let skip = self.arrive(waiting.clone()).unwrap_or(own);
                self.branch(cond, own, skip);
                nonempty = true;
            } else {
                self.jump_to(own);
            }
        }
        if header.is_some() {
            nonempty = true;
        }
        self.nonempty[b] = nonempty;
        self.cur = self.blocks[b];
        if let Some(l) = header
            && self.shapes.divergent_loops[l]
        {
            let exits: Vec<usize> = self.regions.exits[l].iter().map(|&x| self.regions.position[x]).collect();
            self.waiting[b].extend(exits);
        }
        if b == 0 || header.is_some() {
            self.begin_region(self.loops().of[b]);
        }
        if b != 0 && is_leader {
            let mask = self.mask_of(b);
            self.masks[b] = mask;
        }
        self.mask = self.masks[leader];
        if b != 0 {
            for p in self.old.blocks[b].params.clone() {
                if let Some(slot) = self.params[p] {
                    let value = self.read(slot);
                    self.new.set_name(value, self.old.name(p));
                    self.map[p] = Some(match self.shape(p, b) {
                        Shape::Uniform => Wide::Uniform(value),
                        Shape::Strided(s) => Wide::Strided(value, s),
                        Shape::Varying => Wide::Vector(value),
                    });
                }
            }
        }
        let old = self.old;
        if let Some(l) = header {
            self.span = old.blocks[b].insts.first().map_or(Span::NONE, |i| i.span);
            self.note_loop(self.shapes.divergent_loops[l]);
        }
        old.blocks[b].params.iter().for_each(|&p| self.note_value(p));
        for inst in &old.blocks[b].insts {
            let is_store = inst.op == InstOp::Op(Op::Store);
            (self.span, self.fast, self.streams) = (inst.span, inst.fast && !is_store, inst.fast && is_store);
            self.inst(inst);
        }
        (self.fast, self.streams) = (false, false);
        if let Terminator::Branch { cond, .. } = old.blocks[b].term {
            self.note_branch(cond, self.shapes.divergent[b]);
        }
        self.terminator(b);
    }

    /// The current mask of a block.
    fn mask_of(&mut self, b: usize) -> Option<Value> {
        let leader = self.leaders[b];
        match self.mask_slots[leader] {
            Some(slot) if leader == b => Some(self.read(slot)),
            _ => self.masks[leader],
        }
    }

    /// Clears masks and variables of a loop's blocks, except for its header.
    fn begin_region(&mut self, region: Option<usize>) {
        for &b in &self.regions.members[region.map_or(self.loops().all.len(), |l| l)] {
            if b == 0 {
                continue;
            }
            // Also with a single edge to the block: lanes may be marked as waiting there that have not come this way.
            if let Some(slot) = self.mask_slots[b] {
                let none = self.full(false);
                self.write(slot, none);
            }
            // At the entry of the function, variables are undefined anyway.
            if region.is_none() {
                continue;
            }
            for &p in &self.old.blocks[b].params {
                if let Some(slot) = self.params[p] {
                    let ty = self.module.types.pointee(self.new.ty(slot)).unwrap_or(self.module.types.unit());
                    let undef = self.new.undef(ty);
                    self.write(slot, undef);
                }
            }
        }
    }

    fn terminator(&mut self, b: usize) {
        let old = self.old;
        match &old.blocks[b].term {
            Terminator::Unreachable => self.end(Terminator::Unreachable),
            Terminator::Return(values) => {
                let values: Vec<Value> = values.iter().map(|&v| self.vector(v)).collect();
                self.end(Terminator::Return(values));
            }
            Terminator::Jump(edge) => {
                let mask = self.mask;
                self.assign(b, edge, mask, mask);
                self.go(b, edge, mask);
            }
            Terminator::Branch { cond, then, els } if !self.shapes.divergent[b] => {
                let cond = self.scalar(*cond);
                let (yes, no) = (self.new_block("then"), self.new_block("else"));
                self.branch(cond, yes, no);
                let mask = self.mask;
                for (block, edge) in [(yes, then), (no, els)] {
                    self.cur = block;
                    self.assign(b, edge, mask, mask);
                    self.go(b, edge, mask);
                }
            }
            Terminator::Branch { cond, then, els } => {
                let cond = self.vector(*cond);
                let (mask_ty, all) = (self.mask_ty(), self.full(true));
                // The mask of lanes that leave a loop is often unused: then the mask of those that stay is one masked
                // comparison.
                let (yes, no) = if self.loops().left(b, then.block.idx()).next().is_some() {
                    let stays = self.op(Op::Xor, &[cond, all], mask_ty);
                    let no = self.restrict(self.mask, stays);
                    (self.op(Op::Xor, &[self.mask.unwrap_or(all), no], mask_ty), no)
                } else {
                    let yes = self.restrict(self.mask, cond);
                    (yes, self.op(Op::Xor, &[self.mask.unwrap_or(all), yes], mask_ty))
                };
                // Lanes that take the other edge set the same variables later, so all active lanes may set them now.
                self.assign(b, then, Some(yes), self.mask);
                let setting = if then.block == els.block { Some(no) } else { self.mask };
                self.assign(b, els, Some(no), setting);
                let (back, other, mask) = match () {
                    () if self.regions.is_back_edge(b, then.block.idx()) => (Some(then), els, yes),
                    () if self.regions.is_back_edge(b, els.block.idx()) => (Some(els), then, no),
                    () => (None, els, no),
                };
                let mut targets = self.waiting[b].clone();
                targets.insert(self.regions.position[other.block.idx()]);
                match back {
                    Some(back) => {
                        let again = self.any(mask);
                        let header = self.blocks[back.block.idx()];
                        if let Some(next) = self.arrive(targets) {
                            self.branch(again, header, next);
                        }
                    }
                    None => {
                        targets.insert(self.regions.position[then.block.idx()]);
                        if let Some(next) = self.arrive(targets) {
                            self.jump_to(next);
                        }
                    }
                }
            }
            Terminator::TailCall { .. } => self.end(Terminator::Unreachable),
        }
    }

    /// Continues along an edge that all active lanes take.
    fn go(&mut self, b: usize, edge: &Edge, mask: Option<Value>) {
        let to = edge.block.idx();
        let mut targets = self.waiting[b].clone();
        if !self.regions.is_back_edge(b, to) {
            targets.insert(self.regions.position[to]);
            if let Some(next) = self.arrive(targets) {
                self.jump_to(next);
            }
            return;
        }
        let header = self.blocks[to];
        let goes_on = !self.header_of(to).is_some_and(|l| self.shapes.divergent_loops[l]) || self.nonempty[b];
        match mask {
            Some(mask) if !goes_on => {
                let again = self.any(mask);
                let next = self.arrive(targets).unwrap_or(header);
                self.branch(again, header, next);
            }
            _ => self.jump_to(header),
        }
    }

    /// Moves the lanes of `mask` along an edge: they become active at its target. In the lanes of `setting`, a
    /// superset, parameters get their arguments, and values of loops that are left are kept.
    fn assign(&mut self, from: usize, edge: &Edge, mask: Option<Value>, setting: Option<Value>) {
        let to = edge.block.idx();
        let is_back = self.regions.is_back_edge(from, to);
        let blends = self.shapes.joins[to] && !is_back;
        // All arguments are read before the first parameter is written.
        let mut assigned = Vec::new();
        for (&p, &arg) in self.old.blocks[to].params.iter().zip(&edge.args) {
            let Some(slot) = self.params[p] else { continue };
            let varying = self.shape(p, to) == Shape::Varying;
            let value = if varying { self.vector(arg) } else { self.scalar(arg) };
            assigned.push((slot, value, p, varying));
        }
        for (slot, value, p, varying) in assigned {
            let value = match setting {
                Some(setting) if blends && varying => {
                    let old = self.read(slot);
                    self.blend(setting, value, old, self.old.ty(p))
                }
                _ => value,
            };
            self.write(slot, value);
        }
        if self.leaders[to] == to
            && let Some(slot) = self.mask_slots[to]
        {
            let mask = match mask {
                Some(mask) => mask,
                None => self.full(true),
            };
            let is_divergent_header = self.header_of(to).is_some_and(|l| self.shapes.divergent_loops[l]);
            let new = if is_back {
                mask
            } else {
                let (old, ty) = (self.read(slot), self.mask_ty());
                self.op(Op::Or, &[old, mask], ty)
            };
            if !is_back || is_divergent_header {
                self.write(slot, new);
            }
        }
        let left: Vec<usize> = self.loops().left(from, to).collect();
        for l in left {
            for v in self.kept_of[l].clone() {
                if !self.regions.dominates(self.shapes.home[v], from) {
                    continue;
                }
                let Some(&slot) = self.kept.get(&(v, l)) else { continue };
                let value = self.vector_of(v);
                let value = match setting {
                    Some(setting) => {
                        let old = self.read(slot);
                        self.blend(setting, value, old, self.old.ty(v))
                    }
                    None => value,
                };
                self.write(slot, value);
            }
        }
    }

    /// The vector form of a value in the block that is being translated.
    pub fn wide(&mut self, v: Value) -> Wide {
        if let Some(constant) = self.old.as_const(v) {
            return Wide::Uniform(self.new.constant(constant, self.old.ty(v)));
        }
        if let Some(l) = self.shapes.left_loop(self.regions, v, self.here)
            && let Some(&slot) = self.kept.get(&(v, l))
        {
            return Wide::Vector(self.read(slot));
        }
        match self.map[v] {
            Some(wide) => wide,
            // Only values that no lane computes have none.
            None => {
                let ty = self.old.ty(v);
                Wide::Uniform(self.new.undef(ty))
            }
        }
    }
}

/// Values with uses that their definition does not dominate become variables.
fn repair(types: &mut nyala_ir::Types, function: &mut Function) {
    let cfg = analysis::Cfg::new(function);
    let times = cfg.dominator_intervals();
    let mut home: SideTable<Value, Option<Block>> = SideTable::default();
    for &b in &cfg.rpo {
        let block = function.block(b);
        block.params.iter().for_each(|&p| home[p] = Some(b));
        block.insts.iter().filter_map(|i| i.result).for_each(|r| home[r] = Some(b));
    }
    let dominates = |a: Block, b: Block| {
        let (a, b) = (times[a.idx()], times[b.idx()]);
        a.0 <= b.0 && b.1 <= a.1
    };
    let mut slots: SideTable<Value, Option<Value>> = SideTable::default();
    let mut broken: Vec<Value> = Vec::new();
    for &b in &cfg.rpo {
        let mut note = |v: Value| {
            if function.as_const(v).is_none() && slots[v].is_none() && !home[v].is_some_and(|h| dominates(h, b)) {
                slots[v] = Some(v);
                broken.push(v);
            }
        };
        let block = function.block(b);
        block.insts.iter().flat_map(|i| &i.args).copied().for_each(&mut note);
        block.term.for_each_use(note);
    }
    if broken.is_empty() {
        return;
    }
    let mut made = Vec::new();
    for &v in &broken {
        let ptr = types.ptr(function.ty(v));
        let slot = function.new_value(ptr, "");
        slots[v] = Some(slot);
        made.push(Inst {
            op: InstOp::Op(Op::Slot),
            args: Args::new(),
            result: Some(slot),
            span: Span::NONE,
            fast: false,
        });
    }
    for &b in &cfg.rpo {
        let block = &mut function.blocks[b.idx()];
        let (old, mut term) = (std::mem::take(&mut block.insts), block.term.clone());
        let mut insts = Vec::with_capacity(old.len());
        let mut read: FxHashMap<Value, Value> = FxHashMap::default();
        let mut use_of = |function: &mut Function, insts: &mut Vec<Inst>, v: Value| -> Value {
            let Some(slot) = slots[v].filter(|_| home[v] != Some(b)) else { return v };
            *read.entry(v).or_insert_with(|| {
                let ty = function.ty(v);
                let value = function.new_value(ty, "");
                let args = Args::from_slice(&[slot]);
                insts.push(Inst { op: InstOp::Op(Op::Load), args, result: Some(value), span: Span::NONE, fast: false });
                value
            })
        };
        for mut inst in old {
            for arg in &mut inst.args {
                *arg = use_of(function, &mut insts, *arg);
            }
            let result = inst.result;
            insts.push(inst);
            if let Some(r) = result
                && let Some(slot) = slots[r]
            {
                let args = Args::from_slice(&[slot, r]);
                insts.push(Inst { op: InstOp::Op(Op::Store), args, result: None, span: Span::NONE, fast: false });
            }
        }
        term.map_uses(|v| use_of(function, &mut insts, v));
        let block = &mut function.blocks[b.idx()];
        block.insts = insts;
        block.term = term;
    }
    function.blocks[0].insts.splice(0..0, made);
}
