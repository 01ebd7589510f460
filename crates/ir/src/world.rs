//! The world: all values and continuations of one program, and the constructors that make them.
//!
//! Two kinds of node (`002` chapter 9). A [`Val`] is immutable, acyclic and hash-consed: making the same value twice
//! gives the same id, and a constructor returns the folded form. A [`Cont`] has identity; it is declared first and its
//! body set once, so that recursion is possible.

mod part;

pub use part::{Extractor, Part};

use crate::builtins::Builtin;
use crate::cont::{AsmInfo, Body, ContData, Linkage, NameTable, Names, Pooled, Rare};
use crate::ensure::Ensure;
use crate::fold;
use crate::fold::ConstantFault;
use crate::ops::{Effect, Op};
use crate::types::{Prim, Ty, Types};
use hashbrown::HashTable;
use nyala_base::locality::spread;
use nyala_base::{Calls, Id, LocalityHasher, SideTable, Span};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::hash::Hash;
use std::num::NonZeroU32;
use std::ops::Range;
use std::sync::Arc;

nyala_base::define_id!(
    /// A value: immutable, hash-consed.
    pub struct Val, "v"
);
nyala_base::define_id!(
    /// A continuation: has identity, parameters and at most one body.
    pub struct Cont, "k"
);
nyala_base::define_id!(
    /// A global variable or constant.
    pub struct Global, "g"
);

/// Operations found from the same newest operand; those beyond are in a table.
const MAX_USERS: usize = 8;

/// The definition of a [`Val`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Node {
    /// A literal of a primitive type, [normalized](Prim::normalize). Null pointers are literals too.
    Lit(u64),
    /// Any value of its type.
    Undef,
    /// A parameter of a continuation, by its position.
    Param(Cont, u32),
    /// A continuation as a value.
    Cont(Cont),
    /// A callee that the compiler knows.
    Builtin(Builtin),
    /// The address of a global.
    Global(Global),
    /// An operation; [`World::args`] gives its operands.
    Op(Op),
}

/// Kept small: on large programs the compiler mostly waits for memory.
#[derive(Clone, Copy)]
struct Entry {
    kind: Kind,
    /// See [`World::set_fast`].
    fast: bool,
    ty: Ty,
    /// Index into the table of origins.
    origin: u32,
    /// Linked list that finds operations by their newest operand. `user`: the last one made with this value as newest
    /// operand. `before`: the one made before with the same newest operand. At most `MAX_USERS` are linked.
    user: Option<Link>,
    before: Option<Link>,
    /// By kind: the halves of a literal's bits; a continuation and a parameter's position; a global; start and number
    /// of operands in the pool.
    data: [u32; 2],
}

/// [`Node`] without its data.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Lit,
    Undef,
    Param,
    Cont,
    Builtin(Builtin),
    Global,
    Op(Op),
}

impl Entry {
    #[inline]
    fn node(&self) -> Node {
        let [a, b] = self.data;
        match self.kind {
            Kind::Lit => Node::Lit(a as u64 | (b as u64) << 32),
            Kind::Undef => Node::Undef,
            Kind::Param => Node::Param(Cont(a), b),
            Kind::Cont => Node::Cont(Cont(a)),
            Kind::Builtin(b) => Node::Builtin(b),
            Kind::Global => Node::Global(Global(a)),
            Kind::Op(op) => Node::Op(op),
        }
    }

    #[inline]
    fn args(&self) -> Range<usize> {
        match self.kind {
            Kind::Op(_) => self.data[0] as usize..(self.data[0] + self.data[1]) as usize,
            _ => 0..0,
        }
    }
}

/// The number of a value, plus one.
type Link = NonZeroU32;

/// Number of recently used origins remembered: a program has many values but few origins.
const RECENT_ORIGINS: usize = 64;

/// A variable or constant outside of functions.
#[derive(Clone, Debug)]
pub struct GlobalData {
    /// The name in the source; IR text makes it unique.
    pub name: String,
    /// The type of the contents, not of the address.
    pub ty: Ty,
    /// The initial contents; `None` for zero.
    pub init: Option<Val>,
    /// Whether the program may write to it.
    pub mutable: bool,
    /// Where it stands in the source.
    pub origin: Span,
}

/// All values and continuations of one program: see the module's header.
#[derive(Clone, Default)]
pub struct World {
    /// Types of the program.
    pub types: Types,
    entries: Vec<Entry>,
    pool: Vec<Val>,
    /// Values with half of their hashes, so that growing does not touch the entries. Most operations are found from
    /// their newest operand instead, which as a rule was made not long ago: each lookup in a large table is a cache
    /// miss.
    index: HashTable<(Val, u32)>,
    /// Source ranges that values come from, and indices of those used recently.
    origins: Vec<Span>,
    /// The calls that origins name.
    pub calls: Calls,
    recent_origins: Vec<u32>,
    conts: Vec<ContData>,
    cont_vals: SideTable<Cont, Option<Val>>,
    globals: Vec<GlobalData>,
    /// Origin of the values made next.
    origin: Span,
    /// Whether operations on floats that are made next are fast.
    fast: bool,
    /// Faults that folding came across, to be reported as warnings.
    pub fold_warnings: Vec<(Span, ConstantFault)>,
    /// Whether what may go wrong when the program runs is left to be checked: sums that overflow on the way to one that does not,
    /// stores beside variables that nobody reads.
    pub keeps_faults: bool,
    /// Whether signed arithmetic on constants wraps around where it overflows, instead of staying for the run: there is none.
    pub folds_overflow: bool,
    /// What the program asserts of its code.
    pub ensures: Vec<Ensure>,
    pub(crate) names: Arc<NameTable>,
    index_by_symbol: FxHashMap<String, Cont>,
    index_by_asm: FxHashMap<(AsmInfo, Ty), Cont>,
}

impl World {
    /// An empty program.
    pub fn new() -> World {
        World::default()
    }

    /// An empty world with the types and names of another one, and capacity for as many values.
    pub fn like(other: &World) -> World {
        World {
            types: other.types.clone(),
            entries: Vec::with_capacity(other.entries.len()),
            pool: Vec::with_capacity(other.pool.len()),
            conts: Vec::with_capacity(other.conts.len()),
            cont_vals: SideTable::with_room(other.conts.len()),
            names: other.names.clone(),
            keeps_faults: other.keeps_faults,
            ..World::default()
        }
    }

    /// Sets the origin of all values, continuations and bodies made from now on.
    pub fn set_origin(&mut self, span: Span) {
        self.origin = span;
    }

    /// The origin of values made next.
    pub fn current_origin(&self) -> Span {
        self.origin
    }

    /// Sets whether operations on floats that are made from now on are fast: may be reassociated and contracted, and
    /// have no NaN or infinity as operand or result (`docs/promises.md`, `@fast`). Returns what was set before.
    pub fn set_fast(&mut self, fast: bool) -> bool {
        std::mem::replace(&mut self.fast, fast)
    }

    // Reading.

    /// The text in an array of literal bytes, up to its zero byte.
    pub fn text(&self, array: Val) -> String {
        let bytes = self.args(array).iter().map_while(|&b| self.as_lit(b)).map(|b| b as u8);
        let bytes: Vec<u8> = bytes.take_while(|&b| b != 0).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The text at an address, if the address leads into a constant.
    pub fn text_at(&self, mut address: Val) -> Option<String> {
        while let Some(Op::Lea | Op::Bitcast) = self.as_op(address) {
            address = self.args(address)[0];
        }
        match self.node(address) {
            Node::Global(g) if !self.global(g).mutable => Some(self.text(self.global(g).init?)),
            _ => None,
        }
    }

    /// The definition of a value.
    #[inline]
    pub fn node(&self, val: Val) -> Node {
        self.entries[val.idx()].node()
    }
    /// The type of a value.
    #[inline]
    pub fn ty(&self, val: Val) -> Ty {
        self.entries[val.idx()].ty
    }
    /// Operands of an operation; empty for other nodes.
    #[inline]
    pub fn args(&self, val: Val) -> &[Val] {
        &self.pool[self.entries[val.idx()].args()]
    }
    /// Where the source first has this value.
    pub fn origin(&self, val: Val) -> Span {
        self.origins[self.entries[val.idx()].origin as usize]
    }
    /// Marks the store `val` as streaming: it goes past the caches, since nothing reads soon what it writes.
    pub fn set_streaming(&mut self, val: Val) {
        if self.is_op(val, Op::Store) {
            self.entries[val.idx()].fast = true;
        }
    }

    /// Whether a value is a fast operation on floats, or a streaming store.
    pub fn is_fast(&self, val: Val) -> bool {
        self.entries[val.idx()].fast
    }
    /// Values made so far; their ids are smaller.
    pub fn n_vals(&self) -> usize {
        self.entries.len()
    }
    /// Number of operands of all operations and bodies, and of parameters, together.
    pub fn n_operands(&self) -> usize {
        self.pool.len()
    }
    /// Continuations declared so far; their ids are smaller.
    pub fn n_conts(&self) -> usize {
        self.conts.len()
    }
    /// Name, type, filter, linkage of a continuation.
    #[inline]
    pub fn cont(&self, k: Cont) -> &ContData {
        &self.conts[k.idx()]
    }
    /// Name, type, filter, linkage of a continuation, to be changed.
    pub fn cont_mut(&mut self, k: Cont) -> &mut ContData {
        &mut self.conts[k.idx()]
    }
    /// How a continuation ends; `None` if it is external or not defined yet.
    #[inline]
    pub fn body(&self, k: Cont) -> Option<Body<'_>> {
        let (callee, args, origin) = self.conts[k.idx()].body?;
        Some(Body { callee, args: &self.pool[args.range()], origin })
    }
    /// A parameter as a value.
    #[inline]
    pub fn param(&self, k: Cont, idx: usize) -> Val {
        self.params(k)[idx]
    }
    /// Parameters, `mem` first.
    #[inline]
    pub fn params(&self, k: Cont) -> &[Val] {
        &self.pool[self.conts[k.idx()].params.range()]
    }
    /// A global.
    pub fn global(&self, g: Global) -> &GlobalData {
        &self.globals[g.idx()]
    }
    /// The continuation that a value refers to, if it is one.
    #[inline]
    pub fn as_cont(&self, val: Val) -> Option<Cont> {
        match self.node(val) {
            Node::Cont(k) => Some(k),
            _ => None,
        }
    }
    /// The bits of a literal, if the value is one.
    #[inline]
    pub fn as_lit(&self, val: Val) -> Option<u64> {
        match self.node(val) {
            Node::Lit(bits) => Some(bits),
            _ => None,
        }
    }
    /// The bits of a literal, or of the literal that is in all lanes of a vector.
    pub fn as_uniform(&self, val: Val) -> Option<u64> {
        match self.node(val) {
            Node::Op(Op::Splat) if self.types.as_vector(self.ty(val)).is_some() => self.as_lit(self.args(val)[0]),
            _ => self.as_lit(val),
        }
    }
    /// The operation of a value, if it is one.
    #[inline]
    pub fn as_op(&self, val: Val) -> Option<Op> {
        match self.node(val) {
            Node::Op(op) => Some(op),
            _ => None,
        }
    }
    /// Whether a value is this operation.
    #[inline]
    pub fn is_op(&self, val: Val, op: Op) -> bool {
        self.as_op(val) == Some(op)
    }
    /// The primitive type of a value.
    pub fn prim(&self, val: Val) -> Option<Prim> {
        self.types.as_prim(self.ty(val))
    }
    /// The type of a number or bool, or of a vector's lanes.
    pub fn lane_prim(&self, val: Val) -> Option<Prim> {
        self.types.lane_prim(self.ty(val))
    }

    /// The exported continuations, which can be reached from outside, in the order of their declaration.
    pub fn roots(&self) -> Vec<Cont> {
        let exported = |k: &Cont| matches!(*self.cont(*k).linkage, Linkage::Exported(_));
        (0..self.conts.len()).map(Cont::from_idx).filter(exported).collect()
    }

    /// The exported continuation of this symbol.
    pub fn find_root(&self, symbol: &str) -> Option<Cont> {
        self.roots().into_iter().find(|&k| *self.cont(k).linkage == Linkage::Exported(symbol.into()))
    }

    // Continuations and globals.

    /// A new continuation of type `ty`, a [`Cn`](crate::TyKind::Cn); its parameters exist at once, its body comes with
    /// [`World::define`]. `param_names` may be shorter than the parameters.
    pub fn declare(&mut self, name: &str, ty: Ty, param_names: &[&str]) -> Cont {
        let k = self.reserve(ty);
        let names = self.new_names(name, param_names);
        self.set_params(k, names);
        k
    }

    /// A new continuation without name and parameters yet; [`World::set_params`] makes them. For passes that declare
    /// many continuations of which few are ever built.
    pub fn reserve(&mut self, ty: Ty) -> Cont {
        let k = Cont::from_idx(self.conts.len());
        self.conts.push(ContData {
            names: Names::default(),
            ty,
            params: Pooled::default(),
            body: None,
            filter: Rare::default(),
            linkage: Rare::default(),
            origin: self.origin,
        });
        k
    }

    /// Names a [reserved](World::reserve) continuation and makes its parameters.
    pub fn set_params(&mut self, k: Cont, names: Names) {
        let tys: SmallVec<[Ty; 16]> = self.types.cn_params(self.cont(k).ty).expect("type of a continuation").into();
        let start = self.entries.len();
        for (i, &ty) in tys.iter().enumerate() {
            self.intern(Node::Param(k, i as u32), ty, &[]);
        }
        let params = self.pooled((start..self.entries.len()).map(Val::from_idx));
        let origin = self.origin;
        let data = &mut self.conts[k.idx()];
        (data.names, data.params, data.origin) = (names, params, origin);
    }

    fn new_names(&mut self, own: &str, params: &[&str]) -> Names {
        Arc::make_mut(&mut self.names).add(own, params)
    }

    fn pooled(&mut self, vals: impl Iterator<Item = Val>) -> Pooled {
        let start = self.pool.len() as u32;
        self.pool.extend(vals);
        Pooled { start, len: self.pool.len() as u32 - start }
    }

    /// The continuation without body that stands for the C function `symbol`; one per symbol.
    pub fn foreign(&mut self, symbol: &str, ty: Ty) -> Cont {
        self.foreign_called(symbol, ty, |w| w.new_names(symbol, &[]))
    }

    fn foreign_called(&mut self, symbol: &str, ty: Ty, names: impl FnOnce(&mut World) -> Names) -> Cont {
        if let Some(&k) = self.index_by_symbol.get(symbol)
            && self.cont(k).ty == ty
        {
            return k;
        }
        let k = self.reserve(ty);
        let names = names(self);
        self.set_params(k, names);
        self.cont_mut(k).linkage = Linkage::Foreign(symbol.into()).into();
        self.index_by_symbol.insert(symbol.into(), k);
        k
    }

    /// The continuation without body that stands for this assembly; one for each type.
    pub fn assembly(&mut self, name: &str, info: &AsmInfo, ty: Ty) -> Cont {
        self.assembly_called(info, ty, |w| w.new_names(name, &[]))
    }

    fn assembly_called(&mut self, info: &AsmInfo, ty: Ty, names: impl FnOnce(&mut World) -> Names) -> Cont {
        if let Some(&k) = self.index_by_asm.get(&(info.clone(), ty)) {
            return k;
        }
        let k = self.reserve(ty);
        let names = names(self);
        self.set_params(k, names);
        self.cont_mut(k).linkage = Linkage::Asm(info.clone()).into();
        self.index_by_asm.insert((info.clone(), ty), k);
        k
    }

    /// The continuation without body that stands for the same function or assembly as one of a world
    /// [like](World::like) this.
    pub fn external(&mut self, data: &ContData) -> Option<Cont> {
        match &*data.linkage {
            Linkage::Foreign(symbol) => Some(self.foreign_called(symbol, data.ty, |_| data.names)),
            Linkage::Asm(info) => Some(self.assembly_called(info, data.ty, |_| data.names)),
            Linkage::Internal | Linkage::Exported(_) => None,
        }
    }

    /// Sets the body of `k`: a call of `callee`.
    pub fn define(&mut self, k: Cont, callee: Val, args: &[Val]) {
        let args = self.pooled(args.iter().copied());
        self.conts[k.idx()].body = Some((callee, args, self.origin));
    }

    /// Replaces values in a body: `change` gets position (callee first) and value, and returns the new value, or `None`
    /// to leave an argument out.
    pub fn change_body(&mut self, k: Cont, mut change: impl FnMut(&World, usize, Val) -> Option<Val>) {
        let Some((callee, mut args, origin)) = self.conts[k.idx()].body else { return };
        let callee = change(self, 0, callee).unwrap_or(callee);
        let mut end = args.start as usize;
        for (i, at) in args.range().enumerate() {
            if let Some(arg) = change(self, i + 1, self.pool[at]) {
                self.pool[end] = arg;
                end += 1;
            }
        }
        args.len = end as u32 - args.start;
        self.conts[k.idx()].body = Some((callee, args, origin));
    }

    /// A global of this type, zero until [`World::set_init`].
    pub fn declare_global(&mut self, name: &str, ty: Ty, mutable: bool) -> Global {
        let g = Global::from_idx(self.globals.len());
        let origin = self.origin;
        self.globals.push(GlobalData { name: name.into(), ty, init: None, mutable, origin });
        g
    }
    /// Sets the initial contents of a global.
    pub fn set_init(&mut self, g: Global, init: Val) {
        self.globals[g.idx()].init = Some(init);
    }
    /// Globals declared so far; their ids are smaller.
    pub fn n_globals(&self) -> usize {
        self.globals.len()
    }

    // Values.

    /// A literal; of a vector type, the vector with it in every lane.
    pub fn lit(&mut self, ty: Ty, bits: u64) -> Val {
        if let Some((prim, _)) = self.types.as_vector(ty) {
            let lane = self.lit_prim(prim, bits);
            return self.op_ty(Op::Splat, ty, &[lane]);
        }
        let bits = self.types.as_prim(ty).map_or(bits, |p| p.normalize(bits));
        self.intern(Node::Lit(bits), ty, &[])
    }
    /// A literal of a primitive type, by its bits.
    pub fn lit_prim(&mut self, prim: Prim, bits: u64) -> Val {
        self.lit(self.types.prim(prim), bits)
    }
    /// `true` or `false`.
    pub fn lit_bool(&mut self, b: bool) -> Val {
        self.lit_prim(Prim::Bool, b as u64)
    }
    /// A literal of `i32`.
    pub fn lit_i32(&mut self, i: i32) -> Val {
        self.lit_prim(Prim::I32, i as u64)
    }
    /// A literal of `i64`.
    pub fn lit_i64(&mut self, i: i64) -> Val {
        self.lit_prim(Prim::I64, i as u64)
    }
    /// Any value of a type.
    pub fn undef(&mut self, ty: Ty) -> Val {
        self.intern(Node::Undef, ty, &[])
    }
    /// A continuation as a value.
    pub fn cont_val(&mut self, k: Cont) -> Val {
        if let Some(val) = self.cont_vals[k] {
            return val;
        }
        let val = self.push(Node::Cont(k), self.cont(k).ty, false, &[]);
        self.cont_vals[k] = Some(val);
        val
    }
    /// The address of a global.
    pub fn global_val(&mut self, g: Global) -> Val {
        let ty = self.globals[g.idx()].ty;
        let ty = self.types.ptr(ty);
        self.intern(Node::Global(g), ty, &[])
    }
    /// A builtin as a callee.
    pub fn builtin(&mut self, b: Builtin) -> Val {
        let ty = self.types.cn(&[]);
        self.intern(Node::Builtin(b), ty, &[])
    }
    /// The value `()`.
    pub fn unit(&mut self) -> Val {
        self.op(Op::Tuple, &[])
    }

    /// An operation whose type follows from its operands. The operands fit (see [`World::result_ty`]).
    pub fn op(&mut self, op: Op, args: &[Val]) -> Val {
        self.make(op, None, args)
    }

    /// An operation with a stated type ([`Rule::Stated`](crate::Rule::Stated)).
    pub fn op_ty(&mut self, op: Op, ty: Ty, args: &[Val]) -> Val {
        self.make(op, Some(ty), args)
    }

    fn make(&mut self, op: Op, stated: Option<Ty>, args: &[Val]) -> Val {
        let ty = match self.result_ty(op, stated, args) {
            Ok(ty) => ty,
            Err(e) => panic!("bug: `{}`: {e}", op.name()),
        };
        if let Some(folded) = fold::fold(self, op, ty, args) {
            return folded;
        }
        self.intern(Node::Op(op), ty, args)
    }

    /// `extract(agg, idx)` with a literal index.
    pub fn extract(&mut self, agg: Val, idx: u64) -> Val {
        let idx = self.lit_i64(idx as i64);
        self.op(Op::Extract, &[agg, idx])
    }
    /// `insert(agg, idx, v)` with a literal index.
    pub fn insert(&mut self, agg: Val, idx: u64, v: Val) -> Val {
        let idx = self.lit_i64(idx as i64);
        self.op(Op::Insert, &[agg, idx, v])
    }
    /// All bits of an integer inverted; the opposite of a truth value.
    pub fn not(&mut self, v: Val) -> Val {
        let ones = self.lit(self.ty(v), u64::MAX);
        self.op(Op::Xor, &[v, ones])
    }

    /// Whether an operation that is made now is fast.
    fn is_fast_now(&self, node: Node, args: &[Val]) -> bool {
        match node {
            Node::Op(op) if self.fast && op.can_be_fast() => {
                args.last().is_some_and(|&v| self.lane_prim(v).is_some_and(Prim::is_float))
            }
            _ => false,
        }
    }

    /// Whether this is arithmetic of literals that does not fold, as it overflows or divides by zero.
    fn is_known_fault(&self, node: Node, args: &[Val]) -> bool {
        let is_literal = |v: &Val| matches!(self.entries[v.idx()].kind, Kind::Lit);
        let Node::Op(Op::Add | Op::Sub | Op::Mul | Op::Div | Op::Rem | Op::PDiv | Op::PRem) = node else {
            return false;
        };
        args.iter().all(is_literal)
    }

    fn intern(&mut self, node: Node, ty: Ty, args: &[Val]) -> Val {
        let fast = self.is_fast_now(node, args);
        // Parameters and writes are unique: a write consumes its `mem`, so it has no equal.
        let is_unique = match node {
            Node::Param(..) => true,
            Node::Op(op) => op.effect() == Effect::Write,
            _ => false,
        };
        if is_unique {
            return self.push(node, ty, fast, args);
        }
        // A known fault is told of its place in the source, so that the same one elsewhere is another.
        let place = self.is_known_fault(node, args).then_some(self.origin);
        let is_placed = |w: &World, e: &Entry| place.is_none_or(|place| w.origins[e.origin as usize] == place);
        let newest = args.iter().copied().max();
        if let Some(newest) = newest {
            let mut at = self.entries[newest.idx()].user;
            let mut n = 0;
            while let Some(link) = at {
                let user = link.get() as usize - 1;
                let e = &self.entries[user];
                let is_equal = e.ty == ty && e.fast == fast && e.node() == node && self.pool[e.args()] == *args;
                if is_equal && is_placed(self, e) {
                    return Val::from_idx(user);
                }
                at = e.before;
                n += 1;
            }
            if n < MAX_USERS {
                let val = self.push(node, ty, fast, args);
                self.entries[val.idx()].before = self.entries[newest.idx()].user;
                self.entries[newest.idx()].user = Link::new(val.0 + 1);
                return val;
            }
        }
        let hash = hash_of(node, ty, fast, args);
        let found = self.index.find(spread(hash), |&(v, h)| {
            let e = &self.entries[v.idx()];
            let is_equal =
                h == hash && e.ty == ty && e.fast == fast && e.node() == node && self.pool[e.args()] == *args;
            is_equal && is_placed(self, e)
        });
        if let Some(&(val, _)) = found {
            return val;
        }
        let val = self.push(node, ty, fast, args);
        self.index.insert_unique(spread(hash), (val, hash), |&(_, h)| spread(h));
        val
    }

    fn push(&mut self, node: Node, ty: Ty, fast: bool, args: &[Val]) -> Val {
        let val = Val::from_idx(self.entries.len());
        let (kind, data) = match node {
            Node::Lit(bits) => (Kind::Lit, [bits as u32, (bits >> 32) as u32]),
            Node::Undef => (Kind::Undef, [0; 2]),
            Node::Param(k, i) => (Kind::Param, [k.0, i]),
            Node::Cont(k) => (Kind::Cont, [k.0, 0]),
            Node::Builtin(b) => (Kind::Builtin(b), [0; 2]),
            Node::Global(g) => (Kind::Global, [g.0, 0]),
            Node::Op(op) => {
                let Pooled { start, len } = self.pooled(args.iter().copied());
                (Kind::Op(op), [start, len])
            }
        };
        let origin = self.origin_place();
        self.entries.push(Entry { kind, fast, ty, origin, user: None, before: None, data });
        val
    }

    /// The index of the current origin in the table of origins.
    fn origin_place(&mut self) -> u32 {
        let span = self.origin;
        if self.recent_origins.is_empty() {
            self.recent_origins = vec![0; RECENT_ORIGINS];
            self.origins.push(span);
        }
        let hash = span.lo ^ span.hi.rotate_left(3) ^ span.call.0.rotate_left(7);
        let recent = &mut self.recent_origins[hash as usize % RECENT_ORIGINS];
        if self.origins[*recent as usize] != span {
            *recent = self.origins.len() as u32;
            self.origins.push(span);
        }
        *recent
    }
}

fn hash_of(node: Node, ty: Ty, fast: bool, args: &[Val]) -> u32 {
    let mut hasher = LocalityHasher::default();
    hash_entry(node, ty, args, &mut hasher);
    if fast {
        1u8.hash(&mut hasher);
    }
    hasher.half()
}

fn hash_entry(node: Node, ty: Ty, args: &[Val], hasher: &mut LocalityHasher) {
    match node {
        Node::Lit(bits) => (0u8, bits).hash(hasher),
        Node::Undef => 1u8.hash(hasher),
        Node::Param(k, i) => (2u8, k, i).hash(hasher),
        Node::Cont(k) => (3u8, k).hash(hasher),
        Node::Builtin(b) => (4u8, b).hash(hasher),
        Node::Global(g) => (5u8, g).hash(hasher),
        Node::Op(op) => (6u8, op).hash(hasher),
    }
    (ty, args).hash(hasher);
}
