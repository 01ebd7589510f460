//! Which variables an address of the block's memory, of a static or of a local variable may mean, in Vulkan: an address is a
//! place in an arena, and every access has to name its arena.
//!
//! Values that may be the same address are put together, by a union of sets over all functions. Each set that holds
//! variables is an arena: an array of numbers that are as small as the smallest access, or of the only type that is
//! accessed. Addresses of which the origin is lost, as in aggregates, are one set for each space.

use nyala_base::Id;
use nyala_flat::{Const, Def, Func, GlobalId, Inst, InstOp, Linkage, Module, Terminator, Value};
use nyala_ir::{LaneOp, Op, Prim, Ty, TyKind, Types, layout};
use rustc_hash::FxHashMap;

/// A variable in an arena.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Site {
    /// What a function reserves or declares, by the value that is its address.
    Value(Func, Value),
    /// A static.
    Global(GlobalId),
}

/// An array that holds variables.
#[derive(Clone, Debug)]
pub(crate) struct Arena {
    pub space: u8,
    /// The type of its elements.
    pub elem: Prim,
    /// In bytes.
    pub size: u64,
    /// Statics in it, with their offsets.
    pub statics: Vec<(GlobalId, u64)>,
}

/// The arenas of a module.
pub(crate) struct Arenas {
    sets: Sets,
    /// For each function its first node.
    first: Vec<usize>,
    /// For each root its arena.
    by_root: FxHashMap<usize, usize>,
    pub all: Vec<Arena>,
    /// Offset of each variable in its arena.
    pub offsets: FxHashMap<Site, u64>,
}

/// Spaces whose memory is arenas.
const SPACES: std::ops::RangeInclusive<u8> = 3..=5;

/// Sets of nodes that are united.
struct Sets {
    up: Vec<usize>,
}

impl Sets {
    fn find(&mut self, mut n: usize) -> usize {
        while self.up[n] != n {
            self.up[n] = self.up[self.up[n]];
            n = self.up[n];
        }
        n
    }

    fn unite(&mut self, a: usize, b: usize) {
        let (a, b) = (self.find(a), self.find(b));
        self.up[a.max(b)] = a.min(b);
    }
}

/// The space of an address that is a place in an arena.
pub(crate) fn arena_space(types: &Types, ty: Ty) -> Option<u8> {
    match types.kind(ty) {
        TyKind::Ptr { space, .. } if SPACES.contains(space) => Some(*space),
        _ => None,
    }
}

/// Numbers in memory of a type, as the type of an array's elements.
fn stored(prim: Prim) -> Prim {
    if prim == Prim::Bool { Prim::U8 } else { prim }
}

/// Accesses to a set: the only type, and the smallest width.
#[derive(Clone, Copy)]
struct Access {
    only: Option<Prim>,
    width: u64,
}

impl Arenas {
    /// Finds the arenas of a module.
    pub fn new(module: &Module) -> Arenas {
        let mut first = Vec::new();
        // The first nodes are of the spaces, then of the statics.
        let mut n = 6 + module.globals.len();
        for function in &module.funcs {
            first.push(n);
            // The last node of a function is its result.
            n += function.values.len() + 1;
        }
        let sets = Sets { up: (0..n).collect() };
        let mut arenas =
            Arenas { sets, first, by_root: FxHashMap::default(), all: Vec::new(), offsets: FxHashMap::default() };
        arenas.unite_all(module);
        arenas.lay_out(module);
        arenas
    }

    fn node(&self, func: Func, value: Value) -> usize {
        self.first[func.idx()] + value.idx()
    }

    /// The arena of an address. `None` if no variable has it.
    pub fn arena(&mut self, func: Func, value: Value) -> Option<usize> {
        let root = self.node(func, value);
        let root = self.sets.find(root);
        self.by_root.get(&root).copied()
    }

    fn unite_all(&mut self, module: &Module) {
        let types = &module.types;
        for (i, function) in module.funcs.iter().enumerate() {
            let func = Func::from_idx(i);
            let space = |v: Value| arena_space(types, function.ty(v));
            for (v, value) in function.values.iter().enumerate() {
                if let (Def::Const(Const::Global(g)), Some(_)) = (value.def, arena_space(types, value.ty)) {
                    let node = self.node(func, Value::from_idx(v));
                    self.sets.unite(6 + g.idx(), node);
                }
            }
            let result_node = self.first[i] + function.values.len();
            for block in &function.blocks {
                for inst in &block.insts {
                    let result = inst.result.filter(|r| space(*r).is_some());
                    match inst.op {
                        InstOp::Op(Op::Slot) => {}
                        InstOp::Call(callee) => {
                            let target = module.func(callee);
                            if let Linkage::Foreign(symbol) = &target.linkage {
                                let is_shared = LaneOp::of_symbol(symbol).is_some_and(|op| op.0 == LaneOp::Shared);
                                self.of_operation(func, inst, result.filter(|_| !is_shared), &space);
                                continue;
                            }
                            let params = target.blocks.first().map_or(&[][..], |b| &b.params);
                            for (&arg, &param) in inst.args.iter().zip(params) {
                                if space(arg).is_some() {
                                    let (a, b) = (self.node(func, arg), self.node(callee, param));
                                    self.sets.unite(a, b);
                                }
                            }
                            if let Some(result) = result {
                                let (a, b) = (self.node(func, result), self.first[callee.idx()] + target.values.len());
                                self.sets.unite(a, b);
                            }
                        }
                        _ => self.of_operation(func, inst, result, &space),
                    }
                }
                for edge in block.term.edges() {
                    for (&arg, &param) in edge.args.iter().zip(&function.block(edge.block).params) {
                        if space(arg).is_some() {
                            let (a, b) = (self.node(func, arg), self.node(func, param));
                            self.sets.unite(a, b);
                        }
                    }
                }
                if let Terminator::Return(args) = &block.term {
                    for &arg in args {
                        if let Some(s) = space(arg) {
                            let a = self.node(func, arg);
                            // One of several results is a part of an aggregate.
                            let to = if args.len() == 1 { result_node } else { s.into() };
                            self.sets.unite(a, to);
                        }
                    }
                }
            }
        }
    }

    /// The result of an operation means what its operands mean; with an address that has no place it is lost.
    fn of_operation(&mut self, func: Func, inst: &Inst, result: Option<Value>, space: &dyn Fn(Value) -> Option<u8>) {
        let accesses = matches!(
            inst.op,
            InstOp::Op(
                Op::Load | Op::Store | Op::Atomic | Op::AtomicLoad | Op::AtomicStore | Op::Cmpxchg | Op::CmpxchgWeak
            )
        );
        let is_test = matches!(inst.op, InstOp::Op(op) if op.is_comparison());
        let mut has_origin = false;
        for &arg in &inst.args {
            let Some(s) = space(arg) else { continue };
            let a = self.node(func, arg);
            match result {
                Some(result) if !accesses => {
                    has_origin = true;
                    let b = self.node(func, result);
                    self.sets.unite(a, b);
                }
                _ if accesses || is_test => {}
                _ => self.sets.unite(a, s.into()),
            }
        }
        if let (Some(result), false) = (result, has_origin)
            && let Some(s) = space(result)
        {
            let b = self.node(func, result);
            self.sets.unite(b, s.into());
        }
    }

    fn lay_out(&mut self, module: &Module) {
        let types = &module.types;
        let mut accesses: FxHashMap<usize, Access> = FxHashMap::default();
        // Variables in the order in which they stand.
        let mut sites: Vec<(Site, usize, u8, Ty, Option<u64>)> = Vec::new();
        for (i, global) in module.globals.iter().enumerate() {
            let root = self.sets.find(6 + i);
            sites.push((Site::Global(GlobalId::from_idx(i)), root, global.space, global.ty, None));
        }
        for (i, function) in module.funcs.iter().enumerate() {
            let func = Func::from_idx(i);
            for inst in function.blocks.iter().flat_map(|b| &b.insts) {
                if let InstOp::Op(op) = inst.op
                    && let Some(at) = address_operand(op)
                    && let Some(&address) = inst.args.get(at)
                    && let TyKind::Ptr { pointee, space } = *types.kind(function.ty(address))
                    && SPACES.contains(&space)
                {
                    let node = self.node(func, address);
                    let root = self.sets.find(node);
                    for prim in numbers_in(types, pointee) {
                        let prim = stored(prim);
                        let width = u64::from(prim.bits() / 8);
                        let known = accesses.entry(root).or_insert(Access { only: Some(prim), width });
                        known.width = known.width.min(width);
                        known.only = known.only.filter(|&p| p == prim);
                    }
                }
                let Some(result) = inst.result else { continue };
                let TyKind::Ptr { pointee, space } = *types.kind(function.ty(result)) else { continue };
                let shared = match inst.op {
                    InstOp::Op(Op::Slot) => None,
                    InstOp::Call(f) => match &module.func(f).linkage {
                        Linkage::Foreign(symbol)
                            if LaneOp::of_symbol(symbol).is_some_and(|o| o.0 == LaneOp::Shared) =>
                        {
                            function.as_bits(inst.args[0])
                        }
                        _ => continue,
                    },
                    _ => continue,
                };
                let node = self.node(func, result);
                let root = self.sets.find(node);
                sites.push((Site::Value(func, result), root, space, pointee, shared));
            }
        }
        for (site, root, space, ty, bytes) in sites {
            if !SPACES.contains(&space) {
                continue;
            }
            let (size, align) = layout::size_align(types, ty).unwrap_or((0, 1));
            let size = bytes.unwrap_or(size);
            let arena = *self.by_root.entry(root).or_insert_with(|| {
                let access = accesses.get(&root).copied().unwrap_or(Access { only: None, width: 4 });
                let elem = access.only.unwrap_or(match access.width {
                    1 => Prim::U8,
                    2 => Prim::U16,
                    8 => Prim::U64,
                    _ => Prim::U32,
                });
                self.all.push(Arena { space, elem, size: 0, statics: Vec::new() });
                self.all.len() - 1
            });
            let arena = &mut self.all[arena];
            let align = align.max(u64::from(arena.elem.bits() / 8)).max(8);
            let at = arena.size.next_multiple_of(align);
            arena.size = at.saturating_add(size);
            self.offsets.insert(site, at);
            if let Site::Global(global) = site {
                arena.statics.push((global, at));
            }
        }
    }
}

/// The position of the address among the operands of an operation that accesses memory.
pub(crate) fn address_operand(op: Op) -> Option<usize> {
    match op {
        Op::Load | Op::Store | Op::AtomicLoad | Op::AtomicStore | Op::Cmpxchg | Op::CmpxchgWeak => Some(0),
        Op::Atomic => Some(1),
        _ => None,
    }
}

/// The kinds of numbers that a type holds, each once. An address in memory is a number.
fn numbers_in(types: &Types, ty: Ty) -> Vec<Prim> {
    let (mut found, mut seen, mut work) = (Vec::new(), rustc_hash::FxHashSet::default(), vec![ty]);
    while let Some(ty) = work.pop() {
        if !seen.insert(ty) {
            continue;
        }
        match types.kind(ty) {
            TyKind::Prim(p) | TyKind::Vector(p, _) => found.push(*p),
            TyKind::Ptr { .. } => found.push(Prim::U64),
            TyKind::Array(elem, _) => work.push(*elem),
            TyKind::Tuple(_) | TyKind::Struct(_) => {
                work.extend((0..types.n_parts(ty).unwrap_or(0)).filter_map(|i| types.part(ty, i)));
            }
            TyKind::Mem | TyKind::IndefArray(_) | TyKind::Cn(_) | TyKind::Code => {}
        }
    }
    found
}
