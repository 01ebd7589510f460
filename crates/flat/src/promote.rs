//! Turns local variables into values.
//!
//! A slot is promoted if its address is only used to load and store it, or a part of it at a constant index (also
//! through a cast from `&[T * n]` to `&[T]`). It becomes one value for each leaf of its type, or a single value if
//! there are many, with block parameters where definitions meet. Before and after:
//!
//! ```text
//! entry(x):                          entry(x):
//!   s: &i32 = slot()                   branch c, then(), join(x)
//!   store(s, x)                      then():
//!   branch c, then(), join()           jump join(1i32)
//! then():                            join(s: i32):
//!   store(s, 1i32)                     return(s)
//!   jump join()
//! join():
//!   v: i32 = load(s)
//!   return(v)
//! ```
//!
//! Block parameters are placed at iterated dominance frontiers where the variable is live (Cytron et al. 1991, pruned).
//! Liveness is found by walking up the dominator tree from uses to blocks where definitions meet, so a variable costs
//! no more than its uses and definitions, however long it lives. Promotion is the first pass on flat SSA: the others
//! see values. Slots that are indexed by a variable stay: they are arrays, and belong in memory. Atomic loads and stores,
//! as `@racy` makes them, count as others: no other thread has the address.

use crate::analysis::Cfg;
use crate::data::*;
use crate::simplify::remove_dead;
use nyala_base::{Id, SideTable};
use nyala_ir::{Op, Ty, TyKind, Types};
use rustc_hash::FxHashMap;

/// Slots with more leaves than this become a single value.
const MAX_LEAVES: u64 = 64;

/// Promotes the slots of all functions.
pub fn promote_slots(module: &mut Module) {
    let types = &mut module.types;
    for function in &mut module.funcs {
        promote_slots_of(types, function);
    }
}

/// Where a promotable address points: a slot, and the place in it.
#[derive(Clone, Copy)]
struct Place {
    slot: usize,
    /// First leaf, counted within the slot.
    leaf: u64,
    /// For slots that are a single variable: the path of the part, as an index into `Promoter::paths`.
    path: u32,
}

struct Slot {
    ty: Ty,
    escapes: bool,
    /// One variable for all leaves: there are many, or a lane of a vector is addressed.
    whole: bool,
    /// Its first variable; the others follow.
    first_var: usize,
}

struct Promoter<'a> {
    types: &'a mut Types,
    function: &'a mut Function,
    slots: Vec<Slot>,
    places: SideTable<Value, Option<Place>>,
    /// Paths into slots that are a single variable: parent path (`u32::MAX` at the root), index, type.
    paths: Vec<(u32, u64, Ty)>,
    var_tys: Vec<Ty>,
    leaf_counts: FxHashMap<Ty, u64>,
}

/// Number of scalars in a type, at most `u64::MAX`.
fn n_leaves(types: &Types, ty: Ty, memo: &mut FxHashMap<Ty, u64>) -> u64 {
    if let Some(&n) = memo.get(&ty) {
        return n;
    }
    let n = match types.kind(ty) {
        TyKind::Array(elem, n) => n_leaves(types, *elem, memo).saturating_mul(*n),
        TyKind::Tuple(_) | TyKind::Struct(_) => {
            let n_parts = types.n_parts(ty).unwrap_or(0);
            (0..n_parts)
                .filter_map(|i| types.part(ty, i))
                .map(|p| n_leaves(types, p, memo))
                .fold(0, |a: u64, b| a.saturating_add(b))
        }
        _ => 1,
    };
    memo.insert(ty, n);
    n
}

/// Promotes the slots of one function.
pub fn promote_slots_of(types: &mut Types, function: &mut Function) {
    let is_slot = |inst: &Inst| inst.op == InstOp::Op(Op::Slot);
    if !function.blocks.iter().any(|b| b.insts.iter().any(is_slot)) {
        return;
    }
    let cfg = Cfg::new(function);
    for (i, block) in function.blocks.iter_mut().enumerate() {
        if !cfg.is_reachable(Block::from_idx(i)) {
            block.insts.clear();
            block.term = Terminator::Unreachable;
        }
    }
    let mut promoter = Promoter {
        types,
        function,
        slots: Vec::new(),
        places: SideTable::default(),
        paths: Vec::new(),
        var_tys: Vec::new(),
        leaf_counts: FxHashMap::default(),
    };
    promoter.find_slots(&cfg);
    if promoter.slots.iter().all(|s| s.escapes) {
        return;
    }
    promoter.assign_variables();
    let params = promoter.place_params(&cfg);
    promoter.rename(&cfg, &params);
    remove_dead(function);
}

impl Promoter<'_> {
    fn leaves(&mut self, ty: Ty) -> u64 {
        n_leaves(self.types, ty, &mut self.leaf_counts)
    }

    /// The first leaf of a part, and the part's type; `None` if there is no such part.
    fn part(&mut self, ty: Ty, idx: u64) -> Option<(u64, Ty)> {
        match *self.types.kind(ty) {
            TyKind::Array(elem, n) if idx < n => Some((self.leaves(elem).saturating_mul(idx), elem)),
            // A vector is one leaf; accesses to lanes make the slot a single variable.
            TyKind::Vector(prim, n) if idx < n.into() => Some((0, self.types.prim(prim))),
            TyKind::Tuple(_) | TyKind::Struct(_) => {
                let part = self.types.part(ty, idx)?;
                let mut first = 0u64;
                for i in 0..idx {
                    let before = self.types.part(ty, i)?;
                    first = first.saturating_add(self.leaves(before));
                }
                Some((first, part))
            }
            _ => None,
        }
    }

    /// Finds all slots and the addresses derived from them, and which slots escape.
    fn find_slots(&mut self, cfg: &Cfg) {
        for &b in &cfg.rpo {
            let block = std::mem::replace(
                &mut self.function.blocks[b.idx()],
                BlockData { name: String::new(), params: vec![], insts: vec![], term: Terminator::Unreachable },
            );
            for inst in &block.insts {
                self.find_in_inst(inst);
            }
            block.term.for_each_use(|v| self.escape(v));
            self.function.blocks[b.idx()] = block;
        }
    }

    fn escape(&mut self, value: Value) {
        if let Some(place) = self.places[value] {
            self.slots[place.slot].escapes = true;
        }
    }

    fn find_in_inst(&mut self, inst: &Inst) {
        match inst.op {
            InstOp::Op(Op::Slot) => {
                let Some(result) = inst.result else { return };
                let Some(ty) = self.types.pointee(self.function.ty(result)) else { return };
                let whole = self.leaves(ty) > MAX_LEAVES;
                let path = self.paths.len() as u32;
                self.paths.push((u32::MAX, 0, ty));
                self.places[result] = Some(Place { slot: self.slots.len(), leaf: 0, path });
                let sized = !matches!(self.types.kind(ty), TyKind::IndefArray(_));
                self.slots.push(Slot { ty, escapes: !sized, whole, first_var: 0 });
            }
            InstOp::Op(Op::Load | Op::AtomicLoad) => {}
            InstOp::Op(Op::Store | Op::AtomicStore) => self.escape(inst.args[1]),
            InstOp::Op(Op::Lea) => {
                let (ptr, idx) = (inst.args[0], inst.args[1]);
                let (Some(place), Some(result)) = (self.places[ptr], inst.result) else { return };
                // Uses the place's own type: the address may have lost the length of an array.
                let ty = self.paths[place.path as usize].2;
                let idx = self.function.as_index(idx);
                self.slots[place.slot].whole |= self.types.as_vector(ty).is_some();
                match idx.and_then(|idx| Some((self.part(ty, idx)?, idx))) {
                    Some(((leaf, ty), idx)) => {
                        let path = self.paths.len() as u32;
                        self.paths.push((place.path, idx, ty));
                        self.places[result] = Some(Place { slot: place.slot, leaf: place.leaf + leaf, path });
                    }
                    None => self.slots[place.slot].escapes = true,
                }
            }
            InstOp::Op(Op::Bitcast) if self.forgets_length(inst) => {
                if let Some(result) = inst.result {
                    self.places[result] = self.places[inst.args[0]];
                }
            }
            _ => inst.args.iter().for_each(|&a| self.escape(a)),
        }
    }

    /// Whether an instruction turns `&[T * n]` into `&[T]`.
    fn forgets_length(&self, inst: &Inst) -> bool {
        let pointee = |v: Value| self.types.pointee(self.function.ty(v)).map(|ty| self.types.kind(ty));
        let (from, to) = (pointee(inst.args[0]), inst.result.and_then(pointee));
        matches!((from, to), (Some(TyKind::Array(a, _)), Some(TyKind::IndefArray(b))) if a == b)
    }

    fn push_leaf_tys(&mut self, ty: Ty) {
        let mut work = vec![ty];
        while let Some(ty) = work.pop() {
            match *self.types.kind(ty) {
                TyKind::Array(elem, n) => work.extend((0..n).map(|_| elem)),
                TyKind::Tuple(_) | TyKind::Struct(_) => {
                    let n = self.types.n_parts(ty).unwrap_or(0);
                    work.extend((0..n).rev().filter_map(|i| self.types.part(ty, i)));
                }
                _ => self.var_tys.push(ty),
            }
        }
    }

    fn assign_variables(&mut self) {
        for i in 0..self.slots.len() {
            self.slots[i].first_var = self.var_tys.len();
            let Slot { ty, escapes, whole, .. } = self.slots[i];
            if escapes {
            } else if whole {
                self.var_tys.push(ty);
            } else {
                self.push_leaf_tys(ty);
            }
        }
    }

    /// The place that an address points to, if its slot is promoted.
    fn promoted(&self, address: Value) -> Option<Place> {
        self.places[address].filter(|p| !self.slots[p.slot].escapes)
    }

    /// Variables that an access through this address reads or writes.
    fn vars(&mut self, address: Value) -> Option<std::ops::Range<usize>> {
        let place = self.promoted(address)?;
        let first = self.slots[place.slot].first_var;
        if self.slots[place.slot].whole {
            return Some(first..first + 1);
        }
        let ty = self.paths[place.path as usize].2;
        let first = first + place.leaf as usize;
        let n = self.leaves(ty) as usize;
        Some(first..first + n)
    }

    /// For each block the variables that become its parameters.
    fn place_params(&mut self, cfg: &Cfg) -> Vec<Vec<usize>> {
        let n_vars = self.var_tys.len();
        let n_blocks = self.function.blocks.len();
        let mut def_blocks: Vec<Vec<Block>> = vec![Vec::new(); n_vars];
        let mut use_blocks: Vec<Vec<Block>> = vec![Vec::new(); n_vars];
        const NONE: Block = Block(u32::MAX);
        let mut defined_in = vec![NONE; n_vars];
        let mut used_in = vec![NONE; n_vars];
        for &b in &cfg.rpo {
            for i in 0..self.function.blocks[b.idx()].insts.len() {
                let inst = &self.function.blocks[b.idx()].insts[i];
                let (InstOp::Op(op), address) = (inst.op, inst.args.first().copied().or(inst.result)) else { continue };
                let Some(address) = address else { continue };
                let is_load = matches!(op, Op::Load | Op::AtomicLoad);
                if !is_load && !matches!(op, Op::Store | Op::AtomicStore | Op::Slot) {
                    continue;
                }
                let Some(vars) = self.vars(address) else { continue };
                // Storing a part of a variable also reads the rest of it.
                let partial = self
                    .promoted(address)
                    .is_some_and(|p| self.slots[p.slot].whole && self.paths[p.path as usize].0 != u32::MAX);
                for var in vars {
                    if (is_load || partial) && defined_in[var] != b && used_in[var] != b {
                        used_in[var] = b;
                        use_blocks[var].push(b);
                    }
                    if !is_load && defined_in[var] != b {
                        defined_in[var] = b;
                        def_blocks[var].push(b);
                    }
                }
            }
        }
        let (frontiers, times) = (cfg.dominance_frontiers(), cfg.dominator_intervals());
        let mut params = vec![Vec::new(); n_blocks];
        // In each table, the variable that last marked a block.
        let (mut live, mut defines, mut meets) = (vec![0; n_blocks], vec![0; n_blocks], vec![0; n_blocks]);
        // For the blocks asked about, the nearest strict dominator that defines the variable or where definitions meet.
        let mut above: Vec<Option<Block>> = vec![None; n_blocks];
        for var in 0..n_vars {
            let (mark, defs, uses) = (var + 1, &def_blocks[var], &use_blocks[var]);
            if uses.is_empty() {
                continue;
            }
            defs.iter().for_each(|b| defines[b.idx()] = mark);
            // Blocks where definitions meet, whether or not the variable is live there.
            let mut found = Vec::new();
            let mut work = defs.clone();
            while let Some(b) = work.pop() {
                for &f in &frontiers[b.idx()] {
                    if meets[f.idx()] != mark {
                        meets[f.idx()] = mark;
                        found.push(f);
                        if defines[f.idx()] != mark {
                            work.push(f);
                        }
                    }
                }
            }
            if found.is_empty() {
                continue;
            }
            let stops = |b: Block| defines[b.idx()] == mark || meets[b.idx()] == mark;
            let all =
                |others: &mut dyn Iterator<Item = Block>| defs.iter().chain(&found).copied().chain(others).collect();
            let value_of = |above: &[Option<Block>], b: Block| match meets[b.idx()] == mark {
                true => Some(b),
                false => above[b.idx()].filter(|a| defines[a.idx()] != mark),
            };
            // Uses need the value at the start of their block.
            find_above(&times, all(&mut uses.iter().copied()), stops, &mut above);
            let mut work: Vec<Block> = uses.iter().filter_map(|&b| value_of(&above, b)).collect();
            if work.is_empty() {
                continue;
            }
            // A live block where definitions meet needs the value at the end of each predecessor.
            let before = &mut found.iter().flat_map(|f| &cfg.preds[f.idx()]).copied();
            find_above(&times, all(before), stops, &mut above);
            while let Some(b) = work.pop() {
                if live[b.idx()] != mark {
                    live[b.idx()] = mark;
                    let before = cfg.preds[b.idx()].iter().filter(|p| defines[p.idx()] != mark);
                    work.extend(before.filter_map(|&p| value_of(&above, p)));
                }
            }
            for f in found {
                if live[f.idx()] == mark {
                    params[f.idx()].push(var);
                }
            }
        }
        params
    }

    fn rename(&mut self, cfg: &Cfg, params: &[Vec<usize>]) {
        let names: Vec<Box<str>> = self.var_names();
        let children = cfg.dominator_children();
        let mut r = Renamer {
            current: vec![None; self.var_tys.len()],
            undo: Vec::new(),
            replaced: SideTable::default(),
            parts: FxHashMap::default(),
        };
        // A block is entered with the length of the undo log to return to; `None` marks where it is left.
        let mut work: Vec<(Option<Block>, usize)> = vec![(Some(Block(0)), 0)];
        while let Some((block, undo_to)) = work.pop() {
            let Some(b) = block else {
                while r.undo.len() > undo_to
                    && let Some((var, old)) = r.undo.pop()
                {
                    r.current[var] = old;
                }
                continue;
            };
            work.push((None, r.undo.len()));
            for &var in &params[b.idx()] {
                let value = self.function.new_value(self.var_tys[var], &names[var]);
                self.function.blocks[b.idx()].params.push(value);
                r.set(var, value);
            }
            self.rename_block(b, &mut r);
            let mut term = std::mem::replace(&mut self.function.blocks[b.idx()].term, Terminator::Unreachable);
            term.map_uses(|v| r.resolve(v));
            for edge in term.edges_mut() {
                for &var in &params[edge.block.idx()] {
                    let value = self.read(var, &r);
                    edge.args.push(value);
                }
            }
            self.function.blocks[b.idx()].term = term;
            work.extend(children[b.idx()].iter().rev().map(|&c| (Some(c), 0)));
        }
    }

    /// The name of each variable, which is its slot's.
    fn var_names(&self) -> Vec<Box<str>> {
        let mut slot_names: Vec<Box<str>> = vec!["".into(); self.slots.len()];
        for v in (0..self.function.values.len()).map(Value::from_idx) {
            let name = self.function.name(v);
            if let Some(place) = self.places[v]
                && self.paths[place.path as usize].0 == u32::MAX
                && !name.is_empty()
            {
                slot_names[place.slot] = name.into();
            }
        }
        let mut names: Vec<Box<str>> = vec!["".into(); self.var_tys.len()];
        for (i, slot) in self.slots.iter().enumerate() {
            let end = self.slots.get(i + 1).map_or(names.len(), |s| s.first_var);
            names[slot.first_var..end].fill(slot_names[i].clone());
        }
        names
    }

    fn read(&mut self, var: usize, r: &Renamer) -> Value {
        match r.current[var] {
            Some(v) => v,
            None => self.function.undef(self.var_tys[var]),
        }
    }

    fn rename_block(&mut self, b: Block, r: &mut Renamer) {
        let old = std::mem::take(&mut self.function.blocks[b.idx()].insts);
        let mut new = Vec::with_capacity(old.len());
        for mut inst in old {
            inst.args.iter_mut().for_each(|a| *a = r.resolve(*a));
            let InstOp::Op(op) = inst.op else {
                new.push(inst);
                continue;
            };
            let address = inst.args.first().copied().or(inst.result);
            let promoted = address.and_then(|a| Some((a, self.promoted(a)?)));
            match (op, promoted, inst.result) {
                (Op::Slot, Some((address, _)), _) => {
                    for var in self.vars(address).unwrap_or(0..0) {
                        let undef = self.function.undef(self.var_tys[var]);
                        r.set(var, undef);
                    }
                }
                (Op::Lea | Op::Bitcast, Some(_), _) => {}
                (Op::Load | Op::AtomicLoad, Some((_, place)), Some(result)) => {
                    let value = self.load(place, r, &inst, &mut new);
                    r.replaced[result] = Some(value);
                    if self.function.name(value).is_empty() && self.function.as_const(value).is_none() {
                        let name = self.function.name(result).to_string();
                        self.function.set_name(value, &name);
                    }
                }
                (Op::Store | Op::AtomicStore, Some((_, place)), _) => {
                    let value = inst.args[1];
                    self.store(place, value, r, &inst, &mut new);
                }
                (Op::Extract, _, Some(result)) => {
                    let folded = self.function.as_index(inst.args[1]).and_then(|i| self.known_part(inst.args[0], i, r));
                    match folded {
                        Some(v) => r.replaced[result] = Some(v),
                        None => new.push(inst),
                    }
                }
                (Op::Tuple | Op::Struct | Op::Array, _, Some(result)) => {
                    r.parts.insert(result, inst.args.clone());
                    new.push(inst);
                }
                (Op::Splat, _, Some(result)) => {
                    let n = self.types.n_parts(self.function.ty(result)).filter(|&n| n <= MAX_LEAVES);
                    if let Some(n) = n {
                        r.parts.insert(result, vec![inst.args[0]; n as usize].into());
                    }
                    new.push(inst);
                }
                _ => new.push(inst),
            }
        }
        self.function.blocks[b.idx()].insts = new;
    }

    fn known_part(&mut self, aggregate: Value, idx: u64, r: &Renamer) -> Option<Value> {
        if let Some(parts) = r.parts.get(&aggregate) {
            return parts.get(idx as usize).copied();
        }
        if self.function.as_const(aggregate) == Some(Const::Undef) {
            let ty = self.types.part(self.function.ty(aggregate), idx)?;
            return Some(self.function.undef(ty));
        }
        None
    }

    /// Emits an operation in the place of `inst`, with its span.
    fn emit(&mut self, op: Op, args: &[Value], ty: Ty, inst: &Inst, out: &mut Vec<Inst>) -> Value {
        let result = self.function.new_value(ty, "");
        out.push(Inst { op: InstOp::Op(op), args: args.into(), result: Some(result), span: inst.span, fast: false });
        result
    }

    fn index(&mut self, idx: u64) -> Value {
        let ty = self.types.i64();
        self.function.constant(Const::Bits(idx), ty)
    }

    fn extract(&mut self, aggregate: Value, idx: u64, r: &Renamer, inst: &Inst, out: &mut Vec<Inst>) -> Option<Value> {
        if let Some(v) = self.known_part(aggregate, idx, r) {
            return Some(v);
        }
        let ty = self.types.part(self.function.ty(aggregate), idx)?;
        let i = self.index(idx);
        Some(self.emit(Op::Extract, &[aggregate, i], ty, inst, out))
    }

    /// Indices from the slot to the part, outermost first.
    fn path(&self, place: Place) -> Vec<u64> {
        let mut path = Vec::new();
        let mut at = place.path;
        while self.paths[at as usize].0 != u32::MAX {
            path.push(self.paths[at as usize].1);
            at = self.paths[at as usize].0;
        }
        path.reverse();
        path
    }

    fn load(&mut self, place: Place, r: &mut Renamer, inst: &Inst, out: &mut Vec<Inst>) -> Value {
        let slot = &self.slots[place.slot];
        let first = slot.first_var;
        if slot.whole {
            let mut value = self.read(first, r);
            for idx in self.path(place) {
                match self.extract(value, idx, r, inst, out) {
                    Some(v) => value = v,
                    None => break,
                }
            }
            return value;
        }
        let ty = self.paths[place.path as usize].2;
        let mut leaf = first + place.leaf as usize;
        self.build(ty, &mut leaf, r, inst, out)
    }

    /// A value of type `ty`, built from the variables that begin at `leaf`; moves `leaf` past them.
    fn build(&mut self, ty: Ty, leaf: &mut usize, r: &mut Renamer, inst: &Inst, out: &mut Vec<Inst>) -> Value {
        let (op, n) = match *self.types.kind(ty) {
            TyKind::Array(_, n) => (Op::Array, n),
            TyKind::Tuple(_) => (Op::Tuple, self.types.n_parts(ty).unwrap_or(0)),
            TyKind::Struct(_) => (Op::Struct, self.types.n_parts(ty).unwrap_or(0)),
            _ => {
                *leaf += 1;
                return self.read(*leaf - 1, r);
            }
        };
        let mut parts = Args::new();
        for i in 0..n {
            if let Some(part) = self.types.part(ty, i) {
                parts.push(self.build(part, leaf, r, inst, out));
            }
        }
        if !parts.is_empty() && parts.iter().all(|&p| self.function.as_const(p) == Some(Const::Undef)) {
            return self.function.undef(ty);
        }
        let result = self.emit(op, &parts, ty, inst, out);
        r.parts.insert(result, parts);
        result
    }

    fn store(&mut self, place: Place, value: Value, r: &mut Renamer, inst: &Inst, out: &mut Vec<Inst>) {
        let slot = &self.slots[place.slot];
        let first = slot.first_var;
        if slot.whole {
            let path = self.path(place);
            // Reads the aggregates on the way down, builds new ones on the way up.
            let mut outer = Vec::new();
            let mut at = self.read(first, r);
            for &idx in &path {
                outer.push((at, idx));
                if outer.len() < path.len() {
                    match self.extract(at, idx, r, inst, out) {
                        Some(v) => at = v,
                        None => return,
                    }
                }
            }
            let mut new = value;
            for (aggregate, idx) in outer.into_iter().rev() {
                let i = self.index(idx);
                let ty = self.function.ty(aggregate);
                new = self.emit(Op::Insert, &[aggregate, i, new], ty, inst, out);
            }
            r.set(first, new);
            return;
        }
        // Writes the leaves in order, with an explicit stack of values.
        let mut leaf = first + place.leaf as usize;
        let mut work = vec![value];
        while let Some(v) = work.pop() {
            let ty = self.function.ty(v);
            match self.types.kind(ty) {
                TyKind::Array(..) | TyKind::Tuple(_) | TyKind::Struct(_) => {
                    let n = self.types.n_parts(ty).unwrap_or(0);
                    if self.leaves(ty) == 0 {
                        continue;
                    }
                    let parts: Vec<Value> = (0..n).filter_map(|i| self.extract(v, i, r, inst, out)).collect();
                    work.extend(parts.into_iter().rev());
                }
                _ => {
                    r.set(leaf, v);
                    leaf += 1;
                }
            }
        }
    }
}

/// For each of the blocks, which include all that stop, the nearest strict dominator that stops.
fn find_above(
    times: &[(u32, u32)],
    mut blocks: Vec<Block>,
    stops: impl Fn(Block) -> bool,
    above: &mut [Option<Block>],
) {
    blocks.sort_unstable_by_key(|b| times[b.idx()].0);
    blocks.dedup();
    // Dominators come before the blocks that they dominate, so the stack holds the dominators.
    let mut stack: Vec<Block> = Vec::new();
    for b in blocks {
        while stack.pop_if(|a| times[a.idx()].1 < times[b.idx()].1).is_some() {}
        above[b.idx()] = stack.last().copied();
        if stops(b) {
            stack.push(b);
        }
    }
}

/// The state of the walk over the dominator tree.
struct Renamer {
    /// The current value of each variable.
    current: Vec<Option<Value>>,
    undo: Vec<(usize, Option<Value>)>,
    replaced: SideTable<Value, Option<Value>>,
    /// Parts of aggregates that were built from parts.
    parts: FxHashMap<Value, Args>,
}

impl Renamer {
    fn set(&mut self, var: usize, value: Value) {
        let old = self.current[var].replace(value);
        self.undo.push((var, old));
    }

    fn resolve(&self, value: Value) -> Value {
        self.replaced[value].unwrap_or(value)
    }
}
