//! Shape and divergence analysis: how values differ between lanes, and where lanes part.
//!
//! A value is *uniform* if it is the same in all lanes that compute it together, *strided* if it differs by a constant
//! from each lane to the next, else *varying*. A branch on a varying condition parts the lanes; they meet again at its
//! immediate post-dominator. Where two paths from the branch meet before, or there, parameters are varying: lanes
//! arrive with different values. A loop that some lanes leave earlier than others is divergent; values that it computes
//! are varying outside, because lanes keep the values that they left with.
//!
//! A slot is one variable for each lane. If its address is only used to read and write it, its lanes are interleaved
//! (`own`); else it is an array of variables, one for each lane.

use nyala_base::graph::NONE;
use nyala_base::{Id, SideTable};
use nyala_flat::structure::Regions;
use nyala_flat::*;
use nyala_ir::{LaneOp, Op, Prim, Ty, TyKind, Types, layout};
use rustc_hash::FxHashSet;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Shape {
    Uniform,
    /// The difference between a lane and the one before, not 0; for addresses in bytes.
    Strided(i64),
    Varying,
}

use Shape::*;

impl Shape {
    fn join(a: Option<Shape>, b: Option<Shape>) -> Option<Shape> {
        match (a, b) {
            (None, s) | (s, None) => s,
            (a, b) if a == b => a,
            _ => Some(Varying),
        }
    }

    fn strided(stride: i64) -> Shape {
        if stride == 0 { Uniform } else { Strided(stride) }
    }

    /// The shape of numbers of `bits` bits, whose differences count modulo 2^bits.
    fn strided_number(stride: i64, bits: u32) -> Shape {
        let unused = 64 - bits;
        Shape::strided(stride.wrapping_shl(unused).wrapping_shr(unused))
    }
}

/// Facts about callees that the analysis needs.
pub trait Callees {
    /// The operation across lanes that a function is; `None` if it is none.
    fn lane_operation(&self, func: Func) -> Option<LaneOp>;
    /// Whether calls only compute a result, and the same one for the same arguments.
    fn is_pure(&self, func: Func) -> bool;
}

pub struct Shapes {
    shapes: SideTable<Value, Option<Shape>>,
    /// The block that defines each local value.
    pub home: SideTable<Value, usize>,
    /// Blocks whose branch parts the lanes.
    pub divergent: Vec<bool>,
    /// Blocks where lanes arrive from several blocks, or at different times.
    pub joins: Vec<bool>,
    /// Positions of the other blocks with several predecessors.
    undecided: BTreeSet<usize>,
    pub divergent_loops: Vec<bool>,
    /// For addresses within slots whose lanes are interleaved, the slot.
    pub own: SideTable<Value, Option<Value>>,
    /// Strided numbers that may wrap around between lanes, which is defined: converted to more bits they are not
    /// strided.
    wraps: SideTable<Value, bool>,
    /// Values that were given a narrower type.
    pub narrowed: FxHashSet<Value>,
    /// Whether signed overflow wraps around.
    pub wrap: bool,
}

impl Shapes {
    /// `params` are the shapes of the function's parameters.
    pub fn new(
        types: &Types,
        function: &Function,
        regions: &Regions,
        params: &[Shape],
        is_body: bool,
        wrap: bool,
        callees: &dyn Callees,
    ) -> Shapes {
        let n = function.blocks.len();
        let mut s = Shapes {
            shapes: SideTable::default(),
            home: SideTable::default(),
            divergent: vec![false; n],
            joins: vec![false; n],
            undecided: several_ways(regions),
            divergent_loops: vec![false; regions.loops.all.len()],
            own: SideTable::default(),
            wraps: SideTable::default(),
            narrowed: FxHashSet::default(),
            wrap,
        };
        for &b in &regions.order {
            let block = &function.blocks[b];
            block.params.iter().for_each(|&p| s.home[p] = b);
            block.insts.iter().filter_map(|i| i.result).for_each(|r| s.home[r] = b);
        }
        s.find_own(types, function, regions);
        for (i, (&p, &shape)) in function.blocks[0].params.iter().zip(params).enumerate() {
            s.shapes[p] = Some(shape);
            // The number of an iteration does not wrap; other arguments may.
            s.wraps[p] = !is_body || i > 0;
        }
        // A fixed point: shapes only go up, and branches and joins only become divergent.
        loop {
            let mut changed = false;
            for &b in &regions.order {
                changed |= s.visit(types, function, regions, b, wrap, callees);
            }
            if !changed {
                return s;
            }
        }
    }

    /// The shape of a value in a block.
    pub fn at(&self, function: &Function, regions: &Regions, v: Value, block: usize) -> Option<Shape> {
        if function.as_const(v).is_some() {
            return Some(Uniform);
        }
        match self.left_loop(regions, v, block) {
            Some(_) => Some(Varying),
            None => self.shapes[v],
        }
    }

    /// The innermost divergent loop around the definition of a local value that does not contain `block`.
    pub fn left_loop(&self, regions: &Regions, v: Value, block: usize) -> Option<usize> {
        let home = self.home[v];
        regions.loops.around(home).find(|&l| self.divergent_loops[l] && !regions.loops.contains(l, block))
    }

    fn visit(
        &mut self,
        types: &Types,
        function: &Function,
        regions: &Regions,
        b: usize,
        wrap: bool,
        callees: &dyn Callees,
    ) -> bool {
        let mut changed = false;
        let block = &function.blocks[b];
        if b != 0 {
            let mut shapes: Vec<Option<Shape>> = vec![None; block.params.len()];
            let mut preds = regions.preds[b].clone();
            preds.dedup();
            for p in preds {
                for edge in function.blocks[p].term.edges().filter(|e| e.block.idx() == b) {
                    for ((shape, &arg), &param) in shapes.iter_mut().zip(&edge.args).zip(&block.params) {
                        *shape = Shape::join(*shape, self.at(function, regions, arg, p));
                        changed |= self.wraps[arg] && !std::mem::replace(&mut self.wraps[param], true);
                    }
                }
            }
            for (&p, shape) in block.params.iter().zip(shapes) {
                let shape = if self.joins[b] { shape.map(|_| Varying) } else { shape };
                changed |= self.set(p, shape);
            }
        }
        for inst in &block.insts {
            let Some(result) = inst.result else { continue };
            let args: Vec<Option<Shape>> = inst.args.iter().map(|&a| self.at(function, regions, a, b)).collect();
            let shape = if self.own[result].is_some() {
                own_shape(inst, &args)
            } else {
                let args: Option<Vec<Shape>> = args.into_iter().collect();
                args.map(|args| self.transfer(types, function, inst, result, &args, callees))
            };
            changed |= self.set(result, shape);
            if !self.wraps[result] && self.may_wrap(types, function, inst, result, wrap) {
                self.wraps[result] = true;
                changed = true;
            }
        }
        if let Terminator::Branch { cond, .. } = block.term
            && !self.divergent[b]
            && self.at(function, regions, cond, b).is_some_and(|s| s != Uniform)
        {
            self.divergent[b] = true;
            self.part(regions, b);
            changed = true;
        }
        changed
    }

    fn set(&mut self, v: Value, shape: Option<Shape>) -> bool {
        let joined = Shape::join(self.shapes[v], shape);
        let changed = joined != self.shapes[v];
        self.shapes[v] = joined;
        changed
    }

    /// Notes that lanes part at the end of `b`. They meet again at its post-dominator; if they may leave the iteration
    /// before, they leave the loop at different times, and also part where the loop ends.
    fn part(&mut self, regions: &Regions, b: usize) {
        let n = regions.succs.len();
        let (mut node, mut region) = (b, regions.loops.of[b]);
        // Both edges of a branch may lead to one block, with different arguments.
        if let [x, y] = regions.succs[b][..]
            && x == y
        {
            self.join(regions, x);
        }
        loop {
            self.meet(regions, node);
            let Some(l) = region.filter(|_| regions.node_ipdom[node] == NONE) else { return };
            if std::mem::replace(&mut self.divergent_loops[l], true) {
                return;
            }
            regions.exits[l].iter().for_each(|&x| self.join(regions, x));
            (node, region) = (n + l, regions.loops.all[l].parent);
        }
    }

    fn join(&mut self, regions: &Regions, b: usize) {
        self.joins[b] = true;
        self.undecided.remove(&regions.position[b]);
    }

    /// Marks blocks where paths from different successors of a node meet, up to its post-dominator, or until all joins
    /// are known.
    fn meet(&mut self, regions: &Regions, node: usize) {
        let end = regions.node_ipdom[node];
        let last = if end == NONE { usize::MAX } else { regions.position[regions.start(end)] };
        // For each node, by the position of its first block, the last node through which all paths to it go.
        let mut labels: BTreeMap<usize, (usize, usize)> = BTreeMap::new();
        let visit = |s: &mut Shapes, labels: &mut BTreeMap<usize, (usize, usize)>, to: usize, label: usize| {
            let start = regions.start(to);
            match labels.entry(regions.position[start]) {
                Entry::Vacant(e) => drop(e.insert((to, label))),
                Entry::Occupied(e) if e.get().1 == label => {}
                Entry::Occupied(mut e) => {
                    s.join(regions, start);
                    e.insert((to, to));
                }
            }
        };
        regions.node_succs[node].iter().for_each(|&to| visit(self, &mut labels, to, to));
        while let Some((position, (at, label))) = labels.pop_first() {
            // From there on all paths are one; or, as at the end of a ladder of a thousand branches, the remaining
            // joins are known.
            let is_known = |s: &Shapes| s.undecided.range(position + 1..=last).next().is_none();
            if labels.is_empty() || position >= last || is_known(self) {
                return;
            }
            regions.node_succs[at].iter().for_each(|&to| visit(self, &mut labels, to, label));
        }
    }

    fn transfer(
        &self,
        types: &Types,
        function: &Function,
        inst: &Inst,
        result: Value,
        args: &[Shape],
        callees: &dyn Callees,
    ) -> Shape {
        let all_uniform = args.iter().all(|&a| a == Uniform);
        let ty = function.ty(result);
        match inst.op {
            InstOp::Op(op) => match op {
                Op::Slot => {
                    let size = types.pointee(ty).and_then(|t| layout::size_align(types, t)).map_or(0, |l| l.0);
                    Shape::strided(i64::try_from(size).unwrap_or(0))
                }
                Op::Alloc | Op::Atomic | Op::AtomicLoad | Op::Cmpxchg | Op::CmpxchgWeak => Varying,
                // Each lane has its own value there.
                Op::Load if self.own[inst.args[0]].is_some() => Varying,
                _ if all_uniform => Uniform,
                Op::Add | Op::Sub if is_int(types, ty) => match (op, args[0], args[1]) {
                    (_, Varying, _) | (_, _, Varying) => Varying,
                    (Op::Add, a, b) => Shape::strided_number(stride(a).wrapping_add(stride(b)), bits(types, ty)),
                    (_, a, b) => Shape::strided_number(stride(a).wrapping_sub(stride(b)), bits(types, ty)),
                },
                Op::Mul | Op::Shl if is_int(types, ty) => {
                    let times = |v: Value| {
                        let bits = function.as_bits(v)?;
                        let width = types.as_prim(ty)?.bits();
                        Some(if op == Op::Shl { 1i64.wrapping_shl(bits as u32 & (width - 1)) } else { bits as i64 })
                    };
                    match (args[0], times(inst.args[1]), args[1], times(inst.args[0])) {
                        (Strided(s), Some(c), ..) => Shape::strided_number(s.wrapping_mul(c), bits(types, ty)),
                        (_, _, Strided(s), Some(c)) if op == Op::Mul => {
                            Shape::strided_number(s.wrapping_mul(c), bits(types, ty))
                        }
                        _ => Varying,
                    }
                }
                Op::Cast => match (types.as_prim(function.ty(inst.args[0])), types.as_prim(ty), args[0]) {
                    (Some(from), Some(to), Strided(s)) if from.is_int() && to.is_int() => {
                        let keeps = to.bits() <= from.bits() || !self.wraps[inst.args[0]];
                        if keeps { Shape::strided_number(s, to.bits()) } else { Varying }
                    }
                    _ => Varying,
                },
                Op::Bitcast if is_address(types, ty) && is_address(types, function.ty(inst.args[0])) => args[0],
                Op::Aligned | Op::Restrict => args[0],
                Op::Lea => lea_shape(types, function, inst, args, self.wraps[inst.args[1]]),
                Op::Select if args[0] == Uniform => Shape::join(Some(args[1]), Some(args[2])).unwrap_or(Varying),
                _ => Varying,
            },
            InstOp::Vector(_) | InstOp::Vectorize(..) | InstOp::Launch(..) | InstOp::CallIndirect => Varying,
            InstOp::Call(func) => match callees.lane_operation(func) {
                Some(LaneOp::Any | LaneOp::All | LaneOp::Count | LaneOp::Ballot | LaneOp::Width) => Uniform,
                Some(LaneOp::Barrier) => Uniform,
                Some(LaneOp::Id) => Strided(1),
                Some(LaneOp::Get) if args.get(1) == Some(&Uniform) => Uniform,
                Some(_) => Varying,
                None if all_uniform && callees.is_pure(func) => Uniform,
                None => Varying,
            },
        }
    }

    /// Whether a strided number may wrap around between lanes without undefined behavior.
    fn may_wrap(&self, types: &Types, function: &Function, inst: &Inst, result: Value, wrap: bool) -> bool {
        let InstOp::Op(op) = inst.op else { return false };
        let of = |v: Value| types.as_prim(function.ty(v)).filter(|p| p.is_int());
        let Some(to) = of(result) else { return false };
        // A uniform operand has no stride that could wrap.
        let operand = inst.args.iter().any(|&a| self.wraps[a] && self.shapes[a] != Some(Uniform));
        match op {
            Op::Shl => true,
            Op::Add | Op::Sub | Op::Mul => !to.is_signed() || wrap || operand,
            Op::Cast => match of(inst.args[0]) {
                Some(from) if to.bits() > from.bits() => false,
                Some(from) => operand || to.bits() < from.bits() || to.is_signed() != from.is_signed(),
                None => false,
            },
            _ => operand,
        }
    }

    /// Finds slots whose addresses are only used to read and write them, in the loop where they are computed.
    fn find_own(&mut self, types: &Types, function: &Function, regions: &Regions) {
        let mut roots: SideTable<Value, Option<Value>> = SideTable::default();
        let mut escaped: SideTable<Value, bool> = SideTable::default();
        for &b in &regions.order {
            for inst in &function.blocks[b].insts {
                let root = inst.args.first().and_then(|&a| roots[a]);
                // An address used outside of the loop is a value of each lane.
                let leaves = |v: Value| regions.loops.around(self.home[v]).any(|l| !regions.loops.contains(l, b));
                let stays = |v: Value| !leaves(v);
                match inst.op {
                    InstOp::Op(Op::Slot) => {
                        if let Some(r) = inst.result
                            && types.pointee(function.ty(r)).is_some_and(|t| is_splittable(types, t))
                        {
                            roots[r] = Some(r);
                        }
                        continue;
                    }
                    InstOp::Op(Op::Lea) if root.is_some() && stays(inst.args[0]) => {
                        if let Some(r) = inst.result {
                            roots[r] = root;
                        }
                        continue;
                    }
                    InstOp::Op(Op::Bitcast) if root.is_some() && stays(inst.args[0]) => {
                        let pointee = |v: Value| types.pointee(function.ty(v)).map(|t| types.kind(t));
                        if let Some(r) = inst.result
                            && let (Some(TyKind::Array(x, _)), Some(TyKind::IndefArray(y))) =
                                (pointee(inst.args[0]), pointee(r))
                            && x == y
                        {
                            roots[r] = root;
                            continue;
                        }
                    }
                    InstOp::Op(Op::Load) if root.is_some() && stays(inst.args[0]) => continue,
                    InstOp::Op(Op::Store) if root.is_some() && stays(inst.args[0]) => {
                        if let Some(r) = roots[inst.args[1]] {
                            escaped[r] = true;
                        }
                        continue;
                    }
                    _ => {}
                }
                inst.args.iter().filter_map(|&a| roots[a]).for_each(|r| escaped[r] = true);
            }
            function.blocks[b].term.for_each_use(|v| {
                if let Some(r) = roots[v] {
                    escaped[r] = true;
                }
            });
        }
        for &b in &regions.order {
            for v in function.blocks[b].insts.iter().filter_map(|i| i.result) {
                self.own[v] = roots[v].filter(|&r| !escaped[r]);
            }
        }
    }
}

/// Whether lanes of a type can be interleaved: it contains no code addresses, whose size is not that of a number.
fn is_splittable(types: &Types, ty: Ty) -> bool {
    match types.kind(ty) {
        TyKind::Array(elem, n) => *n <= 1 << 20 && is_splittable(types, *elem),
        TyKind::Tuple(_) | TyKind::Struct(_) => {
            (0..types.n_parts(ty).unwrap_or(0)).all(|i| types.part(ty, i).is_some_and(|t| is_splittable(types, t)))
        }
        TyKind::Prim(_) | TyKind::Vector(..) | TyKind::Ptr { .. } => true,
        _ => false,
    }
}

/// Positions of blocks with several incoming edges in their region.
fn several_ways(regions: &Regions) -> BTreeSet<usize> {
    let mut ways = vec![0; regions.succs.len()];
    regions.node_succs.iter().flatten().for_each(|&to| ways[regions.start(to)] += 1);
    let several = ways.iter().enumerate().filter(|(_, ways)| **ways > 1);
    several.map(|(b, _)| regions.position[b]).collect()
}

fn own_shape(inst: &Inst, args: &[Option<Shape>]) -> Option<Shape> {
    match inst.op {
        InstOp::Op(Op::Slot) => Some(Uniform),
        // The address of a part is uniform if all indices are.
        _ => {
            args.iter().copied().try_fold(Uniform, |a, b| Some(if a == Uniform && b? == Uniform { a } else { Varying }))
        }
    }
}

pub fn stride(shape: Shape) -> i64 {
    if let Strided(s) = shape { s } else { 0 }
}

fn is_int(types: &Types, ty: Ty) -> bool {
    types.as_prim(ty).is_some_and(Prim::is_int)
}

fn bits(types: &Types, ty: Ty) -> u32 {
    types.as_prim(ty).map_or(64, Prim::bits)
}

pub fn is_address(types: &Types, ty: Ty) -> bool {
    matches!(types.kind(ty), TyKind::Ptr { .. })
}

/// The shape of an address with an index: a strided index gives a strided address, unless it may wrap around between
/// lanes. No object is so large that an i32 index could wrap within it.
fn lea_shape(types: &Types, function: &Function, inst: &Inst, args: &[Shape], wraps: bool) -> Shape {
    let (ptr, idx) = (inst.args[0], inst.args[1]);
    let Some(aggregate) = types.pointee(function.ty(ptr)) else { return Varying };
    let elem = match types.kind(aggregate) {
        TyKind::Array(elem, _) | TyKind::IndefArray(elem) => layout::size_align(types, *elem).map(|l| l.0),
        TyKind::Vector(prim, _) => Some(layout::prim_size(*prim)),
        // The index into a struct is a literal.
        _ => Some(0),
    };
    let (Some(elem), Some(prim)) = (elem.and_then(|e| i64::try_from(e).ok()), types.as_prim(function.ty(idx))) else {
        return Varying;
    };
    match (args[0], args[1]) {
        (Varying, _) | (_, Varying) => Varying,
        (_, Strided(_)) if wraps && prim.bits() < 64 && prim != Prim::I32 => Varying,
        (p, i) => Shape::strided(stride(p).wrapping_add(stride(i).wrapping_mul(elem))),
    }
}
