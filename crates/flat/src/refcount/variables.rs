//! Which addresses of variables on the heap are counted. Separate from the code that counts
//! ([`Counter`](super::Counter)), because it is a question about the whole module.
//!
//! A variable that outlives its function is made by the runtime, with a count as an environment has one
//! ([`keep_variables`](crate::escape)). Its address has a plain pointer type, so its owners follow from data flow. A
//! *place* is a parameter of a function, or a field of an environment, to which every caller or maker gives the address
//! of such a variable. Places own what they are given. A value read from a place is a *base*, as is the result that
//! makes the variable.
//!
//! ```text
//! n: &i32 = bitcast(made)             base: it is made here
//! store(field, n)                     place: field 0 of the environment of `inc.closure` owns it
//! …
//! func inc.closure(i32, &()) …        m: &i32 = load(field)      base: out of a place
//!   tail_call inc(x, m)               place: the second parameter of `inc`
//! ```
//!
//! An environment in a frame owns nothing: it is derived from the bases that are stored in it.
//!
//! A base is held while something derived from it is in use: an address in it, a block's parameter, a record with it. A
//! variable is never freed if one of its bases may go where it isn't counted (other memory, code that is called as a
//! value, a function outside the program), or if something derived from the base exists where the base does not.

use super::{Program, memory_of};
use crate::analysis::Cfg;
use crate::data::*;
use crate::escape::{Counted, Escapes, NEW_VARIABLE};
use nyala_base::Id;
use nyala_ir::{Op, TyKind};
use rustc_hash::{FxHashMap, FxHashSet};

/// A place that may be given the address of a variable.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Place {
    Param(Func, usize),
    /// A field of an environment, identified by the code that reads it.
    Field(Func, u64),
}

/// The counted addresses of variables in all functions.
#[derive(Default)]
pub(super) struct Variables {
    places: FxHashSet<Place>,
    /// The bases of each function, with the values that may be derived from each.
    bases: FxHashMap<Func, Vec<(Value, Vec<bool>)>>,
    /// Bases of variables that are never freed.
    forever: FxHashSet<(Func, Value)>,
    /// Addresses of fields that are places.
    fields: FxHashSet<(Func, Value)>,
    /// Which fields of an environment are places, by the memory of the environment.
    fields_of: FxHashMap<(Func, Value), Vec<u64>>,
}

impl Variables {
    /// Whether a call gives a parameter the count of its argument.
    pub(super) fn owns_param(&self, callee: Func, i: usize) -> bool {
        self.places.contains(&Place::Param(callee, i))
    }

    /// Whether a store gives a field the count of what it stores.
    pub(super) fn owns_field(&self, func: Func, address: Value) -> bool {
        self.fields.contains(&(func, address))
    }

    pub(super) fn fields_of(&self, func: Func, memory: Value) -> &[u64] {
        self.fields_of.get(&(func, memory)).map_or(&[], Vec::as_slice)
    }

    pub(super) fn lives_forever(&self, func: Func, base: Value) -> bool {
        self.forever.contains(&(func, base))
    }

    pub(super) fn bases(&self, func: Func) -> &[(Value, Vec<bool>)] {
        self.bases.get(&func).map_or(&[], Vec::as_slice)
    }
}

/// Data flow of addresses in the whole module.
#[derive(Default)]
struct Flows {
    made: FxHashSet<(Func, Value)>,
    /// The values that each place is given.
    into: FxHashMap<Place, Vec<(Func, Value)>>,
    /// The places that a value is given to.
    of: FxHashMap<(Func, Value), Vec<Place>>,
    /// The values read from each place.
    out: FxHashMap<Place, Vec<(Func, Value)>>,
    /// Places that may be given unknown values.
    others: Vec<Place>,
    fields: Vec<Field>,
}

struct Field {
    func: Func,
    memory: Value,
    address: Value,
    idx: u64,
    place: Place,
}

impl Flows {
    fn note(&mut self, place: Place, func: Func, v: Value) {
        self.into.entry(place).or_default().push((func, v));
        self.of.entry((func, v)).or_default().push(place);
    }

    /// Notes how a function moves addresses. `taken`: see [`address_taken`].
    fn note_function(&mut self, p: &Program, module: &Module, func: Func, taken: &FxHashSet<Func>) {
        let function = module.func(func);
        let is_address = |v: Value| matches!(module.types.kind(function.ty(v)), TyKind::Ptr { space: 0, .. });
        let mut makers: FxHashMap<Value, &Inst> = FxHashMap::default();
        let insts = || function.blocks.iter().flat_map(|b| &b.insts);
        for inst in insts() {
            makers.extend(inst.result.map(|result| (result, inst)));
        }
        for (i, &param) in function.blocks[0].params.iter().enumerate() {
            if is_address(param) && !taken.contains(&func) && function.linkage == Linkage::Internal {
                self.out.insert(Place::Param(func, i), vec![(func, param)]);
            }
        }
        // Which code is called with each piece of memory as its environment.
        let mut codes: FxHashMap<Value, Vec<Func>> = FxHashMap::default();
        for inst in insts().filter(|inst| inst.op == InstOp::Op(Op::Tuple)) {
            if inst.result.is_none_or(|r| function.ty(r) != p.pair) {
                continue;
            }
            let Some(Const::Func(code)) = function.as_const(inst.args[0]) else { continue };
            match memory_of(&makers, inst.args[1]).filter(|m| makers[m].op == InstOp::Op(Op::Alloc)) {
                Some(memory) => codes.entry(memory).or_default().push(code),
                None if function.as_const(inst.args[1]).is_some() => {}
                // An environment of another function value, which is unknown.
                None => self.others.extend(fields_read(p, module, code)),
            }
        }
        let own = p.owns_environment(func).then(|| function.blocks[0].params.last().copied()).flatten();
        for inst in insts() {
            match inst.op {
                InstOp::Op(Op::Bitcast) => {
                    let made = makers.get(&inst.args[0]).map(|inst| inst.op);
                    if let Some(InstOp::Call(callee)) = made
                        && module.func(callee).symbol() == Some(NEW_VARIABLE)
                    {
                        self.made.extend(inst.result.map(|v| (func, v)));
                    }
                }
                InstOp::Op(Op::Store) => {
                    let (address, v) = (inst.args[0], inst.args[1]);
                    let Some((memory, idx)) = field_of(function, &makers, address) else { continue };
                    let [code] = codes.get(&memory).map_or(&[][..], Vec::as_slice) else { continue };
                    let place = Place::Field(*code, idx);
                    self.note(place, func, v);
                    self.fields.push(Field { func, memory, address, idx, place });
                }
                InstOp::Op(Op::Load) => {
                    if let Some((memory, idx)) = field_of(function, &makers, inst.args[0])
                        && Some(memory) == own
                        && let Some(result) = inst.result.filter(|&r| is_address(r))
                    {
                        self.out.entry(Place::Field(func, idx)).or_default().push((func, result));
                    }
                }
                InstOp::Call(callee) => {
                    (0..inst.args.len()).for_each(|i| self.note(Place::Param(callee, i), func, inst.args[i]));
                }
                _ => {}
            }
        }
        for block in &function.blocks {
            if let Terminator::TailCall { callee: Callee::Func(callee), args, .. } = &block.term {
                (0..args.len()).for_each(|i| self.note(Place::Param(*callee, i), func, args[i]));
            }
        }
        for &code in codes.values().filter(|codes| codes.len() > 1).flatten() {
            self.others.extend(fields_read(p, module, code));
        }
    }

    /// The places that are given a variable's address by every caller or maker.
    fn places(&self) -> FxHashSet<Place> {
        let mut places: FxHashSet<Place> = self.out.keys().copied().collect();
        let mut source: FxHashMap<(Func, Value), Place> = FxHashMap::default();
        for (&place, values) in &self.out {
            source.extend(values.iter().map(|&v| (v, place)));
        }
        let is_base = |v: &(Func, Value)| self.made.contains(v) || source.contains_key(v);
        let is_wrong = |p: &Place| self.into.get(p).is_none_or(|given| !given.iter().all(is_base));
        let mut wrong: Vec<Place> =
            places.iter().copied().filter(is_wrong).chain(self.others.iter().copied()).collect();
        while let Some(place) = wrong.pop() {
            if places.remove(&place) {
                let values = self.out.get(&place).into_iter().flatten();
                wrong.extend(values.filter_map(|v| self.of.get(v)).flatten());
            }
        }
        // Only places that the address of some variable reaches are looked at.
        let mut reached: FxHashSet<Place> = FxHashSet::default();
        let mut work: Vec<(Func, Value)> = self.made.iter().copied().collect();
        while let Some(v) = work.pop() {
            for &place in self.of.get(&v).into_iter().flatten() {
                if places.contains(&place) && reached.insert(place) {
                    work.extend(self.out.get(&place).into_iter().flatten());
                }
            }
        }
        reached
    }
}

/// The fields of its environment that a function reads, as places.
fn fields_read(p: &Program, module: &Module, code: Func) -> Vec<Place> {
    let function = module.func(code);
    let own = p.owns_environment(code).then(|| function.blocks[0].params.last().copied()).flatten();
    let Some(ty) = own.and_then(|own| {
        let reads = |inst: &&Inst| inst.op == InstOp::Op(Op::Bitcast) && inst.args[0] == own;
        let read = function.blocks.iter().flat_map(|b| &b.insts).find(reads)?;
        module.types.pointee(function.ty(read.result?))
    }) else {
        return Vec::new();
    };
    (0..module.types.n_parts(ty).unwrap_or(0)).map(|i| Place::Field(code, i)).collect()
}

/// The memory and the field in it that an address points to: `lea` of some memory as a tuple.
fn field_of(function: &Function, makers: &FxHashMap<Value, &Inst>, address: Value) -> Option<(Value, u64)> {
    let lea = makers.get(&address).filter(|inst| inst.op == InstOp::Op(Op::Lea))?;
    let idx = function.as_bits(lea.args[1])?;
    let mut at = lea.args[0];
    while let Some(inst) = makers.get(&at) {
        let is_first = inst.op == InstOp::Op(Op::Lea) && function.as_bits(inst.args[1]) == Some(0);
        match inst.op {
            InstOp::Op(Op::Bitcast) => at = inst.args[0],
            InstOp::Op(Op::Lea) if is_first => at = inst.args[0],
            _ => break,
        }
    }
    Some((at, idx))
}

/// Functions whose addresses are taken, and bodies of `vectorize`: they may have calls that are not by name.
fn address_taken(module: &Module) -> FxHashSet<Func> {
    let mut found: FxHashSet<Func> = module.globals.iter().flat_map(|g| g.init.functions()).collect();
    for function in &module.funcs {
        found.extend(function.values.iter().filter_map(|v| match v.def {
            Def::Const(Const::Func(f) | Const::CFunc(f)) => Some(f),
            _ => None,
        }));
        found.extend(function.blocks.iter().flat_map(|b| &b.insts).filter_map(|inst| match inst.op {
            InstOp::Vectorize(body, ..) | InstOp::Launch(body, _) => Some(body),
            _ => None,
        }));
    }
    found
}

/// Finds all counted addresses of variables on the heap.
pub(super) fn find(p: &Program, module: &Module) -> Variables {
    if !module.funcs.iter().any(|f| f.symbol() == Some(NEW_VARIABLE)) {
        return Variables::default();
    }
    let taken = &address_taken(module);
    let mut flows = Flows::default();
    for i in 0..module.funcs.len() {
        if !module.funcs[i].blocks.is_empty() {
            flows.note_function(p, module, Func::from_idx(i), taken);
        }
    }
    let places = flows.places();
    let of_places = flows.fields.iter().filter(|f| places.contains(&f.place));
    let (in_frames, owned): (Vec<&Field>, Vec<&Field>) =
        of_places.partition(|f| p.in_frames.contains(&(f.func, f.memory)));
    let mut found = Variables { fields: owned.iter().map(|f| (f.func, f.address)).collect(), ..Variables::default() };
    for f in owned {
        found.fields_of.entry((f.func, f.memory)).or_default().push(f.idx);
    }
    let params = places.iter().filter_map(|place| match *place {
        Place::Param(func, i) => Some((func, i)),
        Place::Field(..) => None,
    });
    let counted = Counted {
        params: params.collect(),
        fields: found.fields.clone(),
        in_frames: in_frames.iter().map(|f| ((f.func, f.address), f.memory)).collect(),
    };
    let mut escapes = Escapes::of_counted(module, counted);
    let mut bases: Vec<((Func, Value), Option<Place>)> = flows.made.iter().map(|&v| (v, None)).collect();
    bases.extend(places.iter().flat_map(|place| flows.out[place].iter().map(|&v| (v, Some(*place)))));
    bases.sort_unstable();
    // Follows bases that are not counted back to their variables.
    let mut work: Vec<(Func, Value)> = Vec::new();
    let mut source: FxHashMap<(Func, Value), Place> = FxHashMap::default();
    for ((func, base), place) in bases {
        source.extend(place.map(|place| ((func, base), place)));
        let derived = match escapes.derived_if_it_ends(func, base) {
            Some(derived) if is_made_before(module.func(func), base, &derived) => derived,
            _ => {
                work.push((func, base));
                let mut only = vec![false; module.func(func).values.len()];
                only[base.idx()] = true;
                only
            }
        };
        found.bases.entry(func).or_default().push((base, derived));
    }
    while let Some(v) = work.pop() {
        if flows.made.contains(&v) {
            found.forever.insert(v);
        } else if let Some(place) = source.remove(&v) {
            work.extend(flows.into.get(&place).into_iter().flatten());
        }
    }
    found.places = places;
    found
}

/// Whether everything derived from a base is defined after the base.
pub(super) fn is_made_before(function: &Function, base: Value, derived: &[bool]) -> bool {
    let cfg = Cfg::new(function);
    let intervals = cfg.dominator_intervals();
    // Values with their block and their position in it.
    let mut places: Vec<(Value, usize, usize)> = Vec::new();
    for (i, block) in function.blocks.iter().enumerate().filter(|(i, _)| cfg.is_reachable(Block::from_idx(*i))) {
        places.extend(block.params.iter().map(|&v| (v, i, 0)));
        places.extend(block.insts.iter().enumerate().filter_map(|(j, inst)| Some((inst.result?, i, j + 1))));
    }
    let Some(&(_, home, at)) = places.iter().find(|p| p.0 == base) else { return true };
    places.iter().filter(|p| derived[p.0.idx()] && p.0 != base).all(|&(_, block, j)| match block == home {
        true => j > at || j == 0 && at == 0,
        false => intervals[home].0 < intervals[block].0 && intervals[block].1 < intervals[home].1,
    })
}
