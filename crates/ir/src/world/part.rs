//! A part of a program as a world of its own: what can be reached from some continuations. Tables for the part are then as large as the
//! part, not as the program. It is separate because it makes values as they are, past the constructors that fold them.

use super::{Cont, Global, Node, Val, World};
use crate::cont::{Filter, Linkage};
use crate::types::{StructId, Ty};
use nyala_base::{Id, SideTable};
use smallvec::SmallVec;
use std::sync::Arc;

/// What can be reached from continuations of a program.
pub struct Part {
    /// The part, in the program's order.
    pub world: World,
    /// For each continuation of the part the one of the program, in ascending order; so for what follows.
    pub conts: Vec<Cont>,
    /// The globals.
    pub globals: Vec<Global>,
    /// The types.
    pub types: Vec<Ty>,
    /// The structs.
    pub structs: Vec<StructId>,
}

impl Part {
    /// The place of a continuation of the program.
    pub fn find(&self, k: Cont) -> Option<Cont> {
        self.conts.binary_search(&k).ok().map(Cont::from_idx)
    }
}

/// Extracts parts of a program. It has tables of the program's size, which are made once for all parts.
pub struct Extractor<'w> {
    whole: &'w World,
    /// Addresses of globals that lie elsewhere.
    addresses: &'w [Option<u64>],
    vals: SideTable<Val, Option<Val>>,
    conts: SideTable<Cont, bool>,
    globals: SideTable<Global, bool>,
    types: SideTable<Ty, bool>,
}

impl<'w> Extractor<'w> {
    /// For parts of this program.
    pub fn new(whole: &'w World) -> Extractor<'w> {
        Extractor {
            whole,
            addresses: &[],
            vals: SideTable::default(),
            conts: SideTable::default(),
            globals: SideTable::default(),
            types: SideTable::default(),
        }
    }

    /// For parts in which some globals, by their numbers, are memory elsewhere, at these addresses. They have no contents in
    /// the part.
    pub fn with_addresses(self, addresses: &'w [Option<u64>]) -> Extractor<'w> {
        Extractor { addresses, ..self }
    }

    fn address(&self, g: Global) -> Option<u64> {
        self.addresses.get(g.idx()).copied().flatten()
    }

    /// The part that can be reached from `roots`, initial values of globals included. Values, continuations, types and globals are in
    /// the order that they have in the program.
    pub fn extract(&mut self, roots: &[Cont]) -> Part {
        let whole = self.whole;
        let (mut vals, mut conts, mut globals, mut types) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (mut work, mut queue) = (Vec::new(), roots.to_vec());
        let mut note_type = |ty: Ty| {
            if !std::mem::replace(&mut self.types[ty], true) {
                types.push(ty);
            }
        };
        while let Some(k) = queue.pop() {
            if std::mem::replace(&mut self.conts[k], true) {
                continue;
            }
            conts.push(k);
            let data = whole.cont(k);
            note_type(data.ty);
            work.extend(whole.params(k));
            work.extend(data.filter.all.iter().chain(data.filter.params.iter().flatten()));
            if let Some(body) = whole.body(k) {
                work.push(body.callee);
                work.extend(body.args);
            }
            while let Some(v) = work.pop() {
                if self.vals[v].replace(v).is_some() {
                    continue;
                }
                vals.push(v);
                note_type(whole.ty(v));
                match whole.node(v) {
                    Node::Param(k, _) | Node::Cont(k) => queue.push(k),
                    Node::Global(g)
                        if self.addresses.get(g.idx()).is_none_or(Option::is_none)
                            && !std::mem::replace(&mut self.globals[g], true) =>
                    {
                        globals.push(g);
                        note_type(whole.global(g).ty);
                        work.extend(whole.global(g).init);
                    }
                    Node::Op(_) => work.extend(whole.args(v)),
                    Node::Global(_) | Node::Lit(_) | Node::Undef | Node::Builtin(_) => {}
                }
            }
        }
        vals.sort_unstable();
        conts.sort_unstable();
        globals.sort_unstable();
        let part = self.copy(&vals, conts, globals, types);
        // The next part needs the tables as they were.
        vals.into_iter().for_each(|v| self.vals[v] = None);
        part.conts.iter().for_each(|&k| self.conts[k] = false);
        part.globals.iter().for_each(|&g| self.globals[g] = false);
        part.types.iter().for_each(|&ty| self.types[ty] = false);
        part
    }

    fn copy(&mut self, vals: &[Val], conts: Vec<Cont>, globals: Vec<Global>, types: Vec<Ty>) -> Part {
        let whole = self.whole;
        let types = whole.types.extract(types);
        let mut world = World {
            types: types.table,
            entries: Vec::with_capacity(vals.len()),
            conts: Vec::with_capacity(conts.len()),
            names: Arc::clone(&whole.names),
            keeps_faults: whole.keeps_faults,
            ..World::default()
        };
        let mut part = Part { world: World::default(), conts, globals, types: types.types, structs: types.structs };
        let types = &part.types;
        // All types of a part are in its table.
        let ty_of = |old: Ty| types.binary_search(&old).map_or(old, Ty::from_idx);
        for &g in &part.globals {
            let data = whole.global(g);
            world.set_origin(data.origin);
            world.declare_global(&data.name, ty_of(data.ty), data.mutable);
        }
        for &k in &part.conts {
            let data = whole.cont(k);
            let new = world.reserve(ty_of(data.ty));
            world.cont_mut(new).linkage = data.linkage.clone();
            if let Linkage::Foreign(symbol) = &*data.linkage {
                world.index_by_symbol.insert(symbol.clone(), new);
            }
        }
        let cont_of = |old: Cont| part.conts.binary_search(&old).map_or(old, Cont::from_idx);
        let global_of = |old: Global| part.globals.binary_search(&old).map_or(old, Global::from_idx);
        for &v in vals {
            let ty = ty_of(whole.ty(v));
            world.set_origin(whole.origin(v));
            let new = match whole.node(v) {
                // Parameters of one continuation are made together.
                Node::Param(k, 0) => {
                    let (data, new) = (whole.cont(k), cont_of(k));
                    world.set_origin(data.origin);
                    world.set_params(new, data.names);
                    world.param(new, 0)
                }
                Node::Param(k, i) => world.param(cont_of(k), i as usize),
                Node::Cont(k) => world.cont_val(cont_of(k)),
                Node::Global(g) => match self.address(g) {
                    Some(address) => world.intern(Node::Lit(address), ty, &[]),
                    None => world.intern(Node::Global(global_of(g)), ty, &[]),
                },
                Node::Op(op) => {
                    let args: SmallVec<[Val; 16]> = whole.args(v).iter().map(|&a| self.vals[a].unwrap_or(a)).collect();
                    world.fast = whole.is_fast(v);
                    let new = world.intern(Node::Op(op), ty, &args);
                    world.fast = false;
                    if whole.is_fast(v) {
                        world.set_streaming(new);
                    }
                    new
                }
                node @ (Node::Lit(_) | Node::Undef | Node::Builtin(_)) => world.intern(node, ty, &[]),
            };
            self.vals[v] = Some(new);
        }
        let val = |old: Val| self.vals[old].unwrap_or(old);
        for (i, &k) in part.conts.iter().enumerate() {
            let (new, data) = (Cont::from_idx(i), whole.cont(k));
            if whole.params(k).is_empty() {
                world.set_origin(data.origin);
                world.set_params(new, data.names);
            }
            if !data.filter.is_empty() {
                let Filter { all, params } = &*data.filter;
                let params = params.iter().map(|p| p.map(val)).collect();
                world.cont_mut(new).filter = Filter { all: all.map(val), params }.into();
            }
            if let Some(body) = whole.body(k) {
                let args: SmallVec<[Val; 16]> = body.args.iter().map(|&a| val(a)).collect();
                world.set_origin(body.origin);
                world.define(new, val(body.callee), &args);
            }
        }
        for (i, &g) in part.globals.iter().enumerate() {
            if let Some(init) = whole.global(g).init {
                world.set_init(Global::from_idx(i), val(init));
            }
        }
        part.world = world;
        part
    }
}
