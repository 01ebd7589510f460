//! Makes one access with a mask of accesses by single lanes, as languages have them whose programs say what each lane does. Lanes
//! that are not active access a variable of their own, which nothing else reads.
//!
//! ```text
//! store(nobody, 0.0f32)
//! p = select(extract(m, 0), lea(a, 0), nobody)   x = select(m, vload(lea(a, 0), m), splat(0.0f32))
//! x0 = load(p)
//! p = select(extract(m, 1), lea(a, 1), nobody)
//! x1 = load(p)
//! x = array(x0, x1)
//! ```
//!
//! Stores likewise. Lanes must be side by side, and nothing else may happen to memory between their accesses.

use crate::interleave::{emit, may_write};
use nyala_base::SideTable;
use nyala_flat::*;
use nyala_ir::{Op, Prim, TyKind, Types, layout};
use rustc_hash::{FxHashMap, FxHashSet};

/// How many steps from an address its base is looked for.
const MAX_STEPS: usize = 16;

/// Accesses of a block that share a mask and the variable of the other lanes.
struct Pack {
    mask: Value,
    nobody: Value,
    is_store: bool,
    prim: Prim,
    /// By lane: the instruction, and the address if the lane is active.
    lanes: Vec<Option<(usize, Value)>>,
}

/// Where values are made and used.
struct Places<'f> {
    function: &'f Function,
    /// The block and the place in it.
    defs: SideTable<Value, Option<(usize, usize)>>,
    /// Uses by instructions; of terminators, none.
    uses: FxHashMap<Value, Vec<(usize, usize)>>,
    by_terminators: FxHashSet<Value>,
}

/// Packs the accesses of all functions, where the target has such accesses.
pub fn pack_lanes(module: &mut Module) {
    let target = module.target();
    let facts = target.facts();
    if target.is_gpu() || !(facts.masks || facts.vector_bytes >= 32) {
        return;
    }
    let least = if facts.masks { 1 } else { 4 };
    let Module { types, funcs, .. } = module;
    for function in funcs {
        let is_lane = |i: &Inst| i.op == InstOp::Op(Op::Extract);
        if function.blocks.iter().any(|b| b.insts.iter().any(is_lane)) {
            pack_function(types, function, least);
        }
    }
}

fn pack_function(types: &mut Types, function: &mut Function, least: u64) {
    let places = Places::new(function);
    let mut all = Vec::new();
    for b in 0..function.blocks.len() {
        all.extend(places.packs(types, b, least).into_iter().map(|pack| (b, pack)));
    }
    // If one access needs the variable of inactive lanes, no access through it is packed.
    let refused = places.refused(types, &all);
    all.retain(|(_, pack)| !refused.contains(&pack.nobody));
    if all.is_empty() {
        return;
    }
    let uses = places.uses;
    for of_block in all.chunk_by(|a, b| a.0 == b.0) {
        rewrite(types, function, of_block[0].0, of_block, &uses);
    }
    simplify_function(types, function);
}

impl<'f> Places<'f> {
    fn new(function: &'f Function) -> Self {
        let mut places = Places {
            function,
            defs: SideTable::default(),
            uses: FxHashMap::default(),
            by_terminators: FxHashSet::default(),
        };
        for (b, block) in function.blocks.iter().enumerate() {
            for (i, inst) in block.insts.iter().enumerate() {
                if let Some(r) = inst.result {
                    places.defs[r] = Some((b, i));
                }
                for &arg in &inst.args {
                    places.uses.entry(arg).or_default().push((b, i));
                }
            }
            block.term.for_each_use(|v| _ = places.by_terminators.insert(v));
        }
        places
    }

    fn inst(&self, value: Value) -> Option<&'f Inst> {
        let (b, i) = self.defs[value]?;
        Some(&self.function.blocks[b].insts[i])
    }

    /// The operands of a value that this operation makes.
    fn made_by(&self, value: Value, op: Op) -> Option<&'f [Value]> {
        self.inst(value).filter(|inst| inst.op == InstOp::Op(op)).map(|inst| &inst.args[..])
    }

    /// An address as a base and bytes.
    fn base(&self, types: &Types, mut address: Value) -> (Value, i64) {
        let mut bytes = 0i64;
        for _ in 0..MAX_STEPS {
            if let Some(&[inner]) = self.made_by(address, Op::Bitcast) {
                address = inner;
            } else if let Some(&[base, index]) = self.made_by(address, Op::Lea)
                && let Some(index) = self.function.as_bits(index)
                && let Some(of) = types.pointee(self.function.ty(address))
                && types
                    .pointee(self.function.ty(base))
                    .is_some_and(|all| matches!(types.kind(all), TyKind::Array(..) | TyKind::IndefArray(..)))
                && let Some((size, _)) = layout::size_align(types, of)
            {
                bytes = bytes.wrapping_add((index as i64).wrapping_mul(size as i64));
                address = base;
            } else {
                break;
            }
        }
        (address, bytes)
    }

    /// What accesses of a block can be one.
    fn packs(&self, types: &Types, b: usize, least: u64) -> Vec<Pack> {
        let insts = &self.function.blocks[b].insts;
        let mut found: Vec<Pack> = Vec::new();
        let mut of: FxHashMap<(Value, Value, bool), usize> = FxHashMap::default();
        for (i, inst) in insts.iter().enumerate() {
            let (address, accessed) = match (inst.op, &inst.args[..], inst.result) {
                (InstOp::Op(Op::Load), &[address], Some(r)) => (address, r),
                // A store that goes past the caches stays one.
                (InstOp::Op(Op::Store), &[address, value], _) if !inst.fast => (address, value),
                _ => continue,
            };
            let Some(&[active, own, nobody]) = self.made_by(address, Op::Select) else { continue };
            let Some(&[mask, lane]) = self.made_by(active, Op::Extract) else { continue };
            let Some((Prim::Bool, n)) = types.as_vector(self.function.ty(mask)) else { continue };
            let (Some(lane), Some(prim)) = (self.function.as_bits(lane), types.as_prim(self.function.ty(accessed)))
            else {
                continue;
            };
            if self.made_by(nobody, Op::Slot).is_none() || prim == Prim::Bool || layout::prim_size(prim) < least {
                continue;
            }
            let is_store = inst.result.is_none();
            let pack = *of.entry((mask, nobody, is_store)).or_insert_with(|| {
                found.push(Pack { mask, nobody, is_store, prim, lanes: vec![None; n as usize] });
                found.len() - 1
            });
            let pack = &mut found[pack];
            if let Some(place @ None) = pack.lanes.get_mut(lane as usize)
                && pack.prim == prim
            {
                *place = Some((i, own));
            }
        }
        found.retain(|pack| self.is_one(types, b, pack));
        found
    }

    /// Whether all lanes access memory, side by side, the first lane first, and nothing else happens to memory meanwhile.
    fn is_one(&self, types: &Types, b: usize, pack: &Pack) -> bool {
        let Some(lanes) = pack.lanes.iter().copied().collect::<Option<Vec<(usize, Value)>>>() else { return false };
        let size = layout::prim_size(pack.prim) as i64;
        let (base, start) = self.base(types, lanes[0].1);
        let beside = |(k, &(_, own)): (usize, &(usize, Value))| {
            self.base(types, own) == (base, start.wrapping_add(k as i64 * size))
        };
        let is_in_order = lanes.is_sorted_by_key(|lane| lane.0);
        let (first, last) = (lanes[0].0, lanes[lanes.len() - 1].0);
        let own: FxHashSet<usize> = lanes.iter().map(|lane| lane.0).collect();
        let disturbs = |inst: &Inst| may_write(inst) || pack.is_store && reads(inst);
        let mut between = (first..=last).filter(|i| !own.contains(i)).map(|i| &self.function.blocks[b].insts[i]);
        lanes.len() > 1 && lanes.iter().enumerate().all(beside) && is_in_order && !between.any(disturbs)
    }

    /// The variables of lanes that are not active which are more than that: they must be 0 when a pack reads them, and what lanes write into
    /// them must not be read.
    fn refused(&self, types: &Types, all: &[(usize, Pack)]) -> FxHashSet<Value> {
        let mut refused = FxHashSet::default();
        let mut packed: FxHashSet<(usize, usize)> = FxHashSet::default();
        for (b, pack) in all {
            packed.extend(pack.lanes.iter().flatten().map(|&(i, _)| (*b, i)));
        }
        for (b, pack) in all {
            let nobody = pack.nobody;
            let (mut zeroed, mut first_load, mut last_load, mut first_store) = (None, usize::MAX, 0, usize::MAX);
            let mut is_fine = !self.by_terminators.contains(&nobody);
            for &(at, i) in self.uses.get(&nobody).map_or(&[][..], |u| u) {
                let inst = &self.function.blocks[at].insts[i];
                is_fine &= at == *b;
                match (inst.op, &inst.args[..], inst.result) {
                    (InstOp::Op(Op::Store), &[to, value], _) if to == nobody && zeroed.is_none() => {
                        is_fine &= self.function.as_bits(value) == Some(0)
                            && types.as_prim(self.function.ty(value)) == Some(pack.prim);
                        zeroed = Some(i);
                    }
                    (InstOp::Op(Op::Select), &[_, own, other], Some(address)) if own != nobody && other == nobody => {
                        is_fine &= !self.by_terminators.contains(&address);
                        for &access in self.uses.get(&address).map_or(&[][..], |u| u) {
                            is_fine &= packed.contains(&access);
                            let inst = &self.function.blocks[access.0].insts[access.1];
                            match inst.result {
                                Some(_) => {
                                    (first_load, last_load) = (first_load.min(access.1), last_load.max(access.1))
                                }
                                None => {
                                    // A lane may be stored at the address; the address itself may not be stored.
                                    is_fine &= inst.args[1] != address;
                                    first_store = first_store.min(access.1);
                                }
                            }
                        }
                    }
                    _ => is_fine = false,
                }
            }
            let is_read = first_load < usize::MAX;
            is_fine &= !is_read || zeroed.is_some_and(|at| at < first_load) && last_load < first_store;
            if !is_fine {
                refused.insert(nobody);
            }
        }
        refused
    }
}

fn reads(inst: &Inst) -> bool {
    matches!(inst.op, InstOp::Op(Op::Load) | InstOp::Vector(VectorOp::Load | VectorOp::Gather))
}

fn rewrite(
    types: &mut Types,
    function: &mut Function,
    b: usize,
    packs: &[(usize, Pack)],
    uses: &FxHashMap<Value, Vec<(usize, usize)>>,
) {
    let old = std::mem::take(&mut function.blocks[b].insts);
    let mut instead: Vec<Option<Vec<Inst>>> = vec![None; old.len()];
    for (_, pack) in packs {
        let lanes: Vec<(usize, Value)> = pack.lanes.iter().copied().flatten().collect();
        let ty = types.vector(pack.prim, lanes.len() as u32);
        let (first, last) = (lanes[0].0, lanes[lanes.len() - 1].0);
        let like = &old[if pack.is_store { last } else { first }];
        let mut made = Vec::new();
        lanes.iter().for_each(|&(i, _)| instead[i] = Some(Vec::new()));
        if pack.is_store {
            let values: Vec<Value> = lanes.iter().map(|&(i, _)| old[i].args[1]).collect();
            let value = emit(function, &mut made, InstOp::Op(Op::Array), &values, ty, like);
            let args = Args::from_slice(&[lanes[0].1, value, pack.mask]);
            made.push(Inst { op: InstOp::Vector(VectorOp::Store), args, result: None, span: like.span, fast: false });
            instead[last] = Some(made);
            continue;
        }
        let element = types.prim(pack.prim);
        let zero = function.constant(Const::Bits(0), element);
        let zeros = emit(function, &mut made, InstOp::Op(Op::Splat), &[zero], ty, like);
        let read = emit(function, &mut made, InstOp::Vector(VectorOp::Load), &[lanes[0].1, pack.mask], ty, like);
        let all = emit(function, &mut made, InstOp::Op(Op::Select), &[pack.mask, read, zeros], ty, like);
        let results: Vec<Value> = lanes.iter().filter_map(|&(i, _)| old[i].result).collect();
        // The vector that is made of the lanes is that which was read; whoever else wants a lane takes it out.
        let whole: Vec<usize> = uses
            .get(&results[0])
            .into_iter()
            .flatten()
            .filter(|(at, i)| *at == b && old[*i].op == InstOp::Op(Op::Array) && old[*i].args[..] == results[..])
            .map(|(_, i)| *i)
            .filter(|i| old[*i].result.is_some_and(|r| function.ty(r) == ty))
            .collect();
        for &i in &whole {
            let args = Args::from_slice(&[all]);
            instead[i] = Some(vec![Inst { op: InstOp::Op(Op::Bitcast), args, ..old[i].clone() }]);
        }
        let index = types.i32();
        for (k, &r) in results.iter().enumerate() {
            let is_whole = |place: &(usize, usize)| place.0 == b && whole.contains(&place.1);
            if uses.get(&r).is_none_or(|uses| !uses.iter().all(is_whole)) {
                let k = function.constant(Const::Bits(k as u64), index);
                let args = Args::from_slice(&[all, k]);
                made.push(Inst { op: InstOp::Op(Op::Extract), args, result: Some(r), span: like.span, fast: false });
            }
        }
        instead[first] = Some(made);
    }
    let insts = old.into_iter().zip(instead).flat_map(|(inst, instead)| instead.unwrap_or_else(|| vec![inst]));
    function.blocks[b].insts = insts.collect();
}
