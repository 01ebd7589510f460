//! Puts the residual programs of the exports together. Each export is evaluated alone, so that what becomes of it depends on its own
//! code only (`docs/design/specializer.md`, Exports). Copies of one function that are equal in several of these programs become one
//! again.

use crate::facts::is_function;
use crate::finish;
use nyala_base::{CallId, Calls, Id, SideTable, Span, graph};
use nyala_ir::facts::Nest;
use nyala_ir::{Cont, Global, Linkage, Node, Op, Part, Ty, Val, World};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

/// Limit on the words that describe a function; larger ones are not compared. It bounds the memory for the comparison.
const MAX_WORDS: usize = 1 << 18;
/// Limit on the functions that call each other in a circle and are compared.
const MAX_CIRCLE: usize = 16;

/// A part of the description of a function. Two functions with equal descriptions are equal but for the numbers of their values.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Word {
    /// What is the same in all programs: literals, globals, operations, functions of the linked program.
    Node(Node),
    /// A continuation of the function, a parameter of one, or a value, by the order of their discovery.
    Own(u32),
    Param(u32, u32),
    Value(u32),
    Ty(Ty),
    IsFast(bool),
    /// A place, without the call around it, which follows.
    Place(Span),
    /// A call, by the order of discovery; a new one is followed by its callee's number, its place and the call around it.
    Call(u32),
    /// The call in whose code the function was made, or one around that: the nearest of this function.
    Around(u32),
    /// The call in whose code the function was made; no call.
    Base,
    Nowhere,
}

/// Describes the places of a function's code. A function that several exports make was made in other calls by each; what is equal are
/// the calls from there to the code. Each is that of the first export in the linked program, as one of several requests within an
/// export is.
struct Places<'a> {
    calls: &'a Calls,
    base: CallId,
    /// The calls around `base`.
    around: FxHashMap<CallId, u32>,
    numbers: FxHashMap<CallId, u32>,
}

impl Places<'_> {
    fn new(calls: &Calls, base: CallId) -> Places<'_> {
        let mut around = FxHashMap::default();
        let mut at = calls.get(base).map(|(call, _)| call.call);
        while let Some(id) = at
            && let Some((call, callee)) = calls.get(id)
        {
            around.insert(id, callee);
            at = Some(call.call);
        }
        Places { calls, base, around, numbers: FxHashMap::default() }
    }

    fn describe(&mut self, place: Span, words: &mut Vec<Word>) {
        words.push(Word::Place(place.without_call()));
        let mut id = place.call;
        loop {
            if id == self.base {
                return words.push(Word::Base);
            }
            if let Some(&callee) = self.around.get(&id) {
                return words.push(Word::Around(callee));
            }
            let Some((call, callee)) = self.calls.get(id) else { return words.push(Word::Nowhere) };
            let (n_known, mut is_new) = (self.numbers.len() as u32, false);
            let number = *self.numbers.entry(id).or_insert_with(|| {
                is_new = true;
                n_known
            });
            words.push(Word::Call(number));
            if !is_new {
                return;
            }
            words.extend([Word::Around(callee), Word::Place(call.without_call())]);
            id = call.call;
        }
    }
}

/// Where a program's continuations, values and calls are in the linked program.
#[derive(Default)]
pub struct Placed {
    pub conts: SideTable<Cont, Option<Cont>>,
    pub vals: SideTable<Val, Option<Val>>,
    /// Continuations that are no copies: the linked program had an equal function.
    pub was_there: SideTable<Cont, bool>,
    /// The entries of its calls.
    pub calls: Vec<CallId>,
}

pub struct Linker {
    pub program: World,
    /// The exports by their symbols.
    roots: FxHashMap<String, Cont>,
    /// Functions with equal descriptions. An export may have several: copies that it does not share when it is alone.
    functions: FxHashMap<Box<[Word]>, Vec<Cont>>,
    /// Initial values of globals. They are set last: with them, values of later exports would be folded once more.
    inits: SideTable<Global, Option<Val>>,
}

impl Linker {
    /// A program with the exports and globals of `source`, all without contents.
    pub fn new(source: &World, exports: &[Cont]) -> Linker {
        let mut program = World::like(source);
        for i in 0..source.n_globals() {
            let data = source.global(Global::from_idx(i));
            program.set_origin(data.origin);
            program.declare_global(&data.name, data.ty, data.mutable);
        }
        let mut roots = FxHashMap::default();
        for &export in exports {
            let data = source.cont(export);
            program.set_origin(data.origin);
            let k = program.reserve(data.ty);
            program.set_params(k, data.names);
            program.cont_mut(k).linkage = data.linkage.clone();
            if let Linkage::Exported(symbol) = &*data.linkage {
                roots.insert(symbol.clone(), k);
            }
        }
        Linker { program, roots, functions: FxHashMap::default(), inits: SideTable::default() }
    }

    /// Adds what can be reached from the exports `roots` of `part`, which is the residual program of the part `source` of the source.
    pub fn add(&mut self, source: &Part, part: &World, roots: &[Cont]) -> Placed {
        let mut types = source.types.clone();
        self.program.types.absorb(&part.types, &mut types, &source.structs);
        let number_of = |n: u32| source.conts.get(n as usize).map_or(n, |k| k.0);
        let calls = self.program.calls.absorb(&part.calls, number_of);
        let (mut nest, globals) = Nest::of_functions(part, roots, |k| is_function(part, k));
        nest.find_parents(part);
        let (placed, values, n_found) = (Placed::default(), Values::default(), FxHashMap::default());
        let mut adding = Adding { linker: self, source, part, types, calls, placed, values, n_found };
        adding.functions(&nest);
        adding.globals(&globals);
        Placed { calls: adding.calls, ..adding.placed }
    }

    /// The linked program.
    pub fn finish(mut self) -> World {
        for g in (0..self.program.n_globals()).map(Global::from_idx) {
            if let Some(init) = self.inits[g] {
                self.program.set_init(g, init);
            }
        }
        self.program
    }
}

/// A program that is being added.
struct Adding<'a> {
    linker: &'a mut Linker,
    source: &'a Part,
    part: &'a World,
    /// The part's types, and the entries of its calls, in the linked program.
    types: Vec<Ty>,
    calls: Vec<CallId>,
    placed: Placed,
    values: Values,
    /// By the first function of a description, how many of the part have it so far.
    n_found: FxHashMap<Cont, usize>,
}

/// The values of functions, operands before what uses them; the tables are kept for their allocations.
#[derive(Default)]
struct Values {
    seen: FxHashSet<Val>,
    stack: Vec<(Val, bool)>,
}

impl Values {
    /// Visits the values that `v` is computed from, and `v`, if they were not visited yet.
    fn visit(&mut self, w: &World, v: Val, mut found: impl FnMut(Val)) {
        self.stack.push((v, false));
        while let Some((v, is_done)) = self.stack.pop() {
            if is_done {
                found(v);
            } else if self.seen.insert(v) {
                self.stack.push((v, true));
                self.stack.extend(w.args(v).iter().rev().map(|&a| (a, false)));
            }
        }
    }
}

impl Adding<'_> {
    /// Adds all functions, callees first.
    fn functions(&mut self, nest: &Nest) {
        let mut top: SideTable<Cont, Option<Cont>> = SideTable::default();
        let mut path = Vec::new();
        for &k in &nest.conts {
            let mut at = k;
            while top[at].is_none()
                && let Some(around) = nest.parent(at)
            {
                path.push(at);
                at = around;
            }
            let found = top[at].unwrap_or(at);
            top[at] = Some(found);
            path.drain(..).for_each(|k| top[k] = Some(found));
        }
        let top = |k: Cont| top[k].unwrap_or(k);
        // By the function's number: its continuations, and the functions that these refer to.
        let mut members: SideTable<Cont, Vec<Cont>> = SideTable::default();
        let mut refers: SideTable<Cont, Vec<usize>> = SideTable::default();
        let mut tops: Vec<usize> = Vec::new();
        for &k in &nest.conts {
            let function = top(k);
            if function == k {
                tops.push(k.idx());
            }
            members[function].push(k);
            let others = nest.references(k).iter().map(|&r| top(r)).filter(|&r| r != function);
            refers[function].extend(others.map(|r| r.idx()));
        }
        tops.sort_unstable();
        let succ = |n: usize, i: usize| refers[Cont::from_idx(n)].get(i).copied();
        let circles = graph::Components::default().find(&tops, succ, |_| true);
        for mut circle in circles {
            circle.sort_unstable();
            let circle: Vec<Cont> = circle.into_iter().map(Cont::from_idx).collect();
            let own: Vec<Cont> = circle.iter().flat_map(|&k| members[k].iter().copied()).collect();
            self.add_circle(&circle, &own);
        }
    }

    /// Adds functions that call each other, with the continuations `own`, or finds them in the linked program.
    fn add_circle(&mut self, circle: &[Cont], own: &[Cont]) {
        let mut is_export = false;
        for &k in circle {
            let data = self.part.cont(k);
            self.linker.program.set_origin(data.origin);
            self.placed.conts[k] = match &*data.linkage {
                Linkage::Exported(symbol) => self.linker.roots.get(symbol).copied(),
                Linkage::Internal => None,
                Linkage::Foreign(_) | Linkage::Asm(_) => {
                    let mut data = data.clone();
                    data.ty = self.ty(data.ty);
                    self.linker.program.external(&data)
                }
            };
            is_export |= self.placed.conts[k].is_some();
        }
        let mut words: Vec<Box<[Word]>> = Vec::new();
        if circle.len() <= MAX_CIRCLE {
            words.extend(circle.iter().map_while(|&k| self.words(k, own)));
        }
        let is_described = words.len() == circle.len();
        let n = match words.first().and_then(|words| self.linker.functions.get(words)?.first()) {
            Some(&first) => {
                let n = self.n_found.entry(first).or_default();
                *n += 1;
                *n - 1
            }
            None => 0,
        };
        let known = |words| self.linker.functions.get(words).and_then(|functions: &Vec<Cont>| functions.get(n));
        let known: Vec<Cont> = words.iter().map_while(known).copied().collect();
        if is_described && !is_export && known.len() == circle.len() {
            for (&k, known) in circle.iter().zip(known) {
                self.placed.conts[k] = Some(known);
            }
            own.iter().for_each(|&k| self.placed.was_there[k] = true);
            return;
        }
        self.copy(own);
        if is_described {
            for (&k, words) in circle.iter().zip(words) {
                if let Some(new) = self.placed.conts[k] {
                    self.linker.functions.entry(words).or_default().push(new);
                    self.n_found.entry(new).or_insert(1);
                }
            }
        }
    }

    fn ty(&self, ty: Ty) -> Ty {
        self.types[ty.idx()]
    }

    fn global(&self, g: Global) -> Global {
        self.source.globals[g.idx()]
    }

    fn origin(&self, origin: Span) -> Span {
        let call = self.calls.get(origin.call.0 as usize).copied().unwrap_or(origin.call);
        Span { call, ..origin }
    }

    /// Describes a function, whose continuations are among `own`. `None` if it is too large.
    fn words(&mut self, function: Cont, own: &[Cont]) -> Option<Box<[Word]>> {
        let part = self.part;
        let own: FxHashSet<Cont> = own.iter().copied().collect();
        let mut numbers: FxHashMap<Cont, u32> = FxHashMap::default();
        let mut values: FxHashMap<Val, u32> = FxHashMap::default();
        let mut queue = vec![function];
        numbers.insert(function, 0);
        let mut words = Vec::new();
        let mut places = Places::new(&self.linker.program.calls, self.origin(part.cont(function).origin).call);
        let mut visited = std::mem::take(&mut self.values);
        visited.seen.clear();
        let mut next = 0;
        while let Some(&k) = queue.get(next).filter(|_| words.len() < MAX_WORDS) {
            next += 1;
            let data = part.cont(k);
            words.push(Word::Ty(self.ty(data.ty)));
            places.describe(self.origin(data.origin), &mut words);
            let Some(body) = part.body(k) else { continue };
            let mut number = |k: Cont| {
                *numbers.entry(k).or_insert_with(|| {
                    queue.push(k);
                    queue.len() as u32 - 1
                })
            };
            for &v in std::iter::once(&body.callee).chain(body.args) {
                visited.visit(part, v, |v| {
                    let n = values.len() as u32;
                    values.insert(v, n);
                    words.push(match part.node(v) {
                        Node::Cont(k) if own.contains(&k) => Word::Own(number(k)),
                        Node::Cont(k) => Word::Node(Node::Cont(self.placed.conts[k].unwrap_or(k))),
                        Node::Param(k, i) => Word::Param(number(k), i),
                        Node::Global(g) => Word::Node(Node::Global(self.global(g))),
                        node => Word::Node(node),
                    });
                    words.push(Word::Ty(self.ty(part.ty(v))));
                    if let Node::Op(_) = part.node(v) {
                        places.describe(self.origin(part.origin(v)), &mut words);
                        words.push(Word::IsFast(part.is_fast(v)));
                        words.extend(part.args(v).iter().map(|a| Word::Value(values[a])));
                    }
                });
                words.push(Word::Value(values[&v]));
            }
            places.describe(self.origin(body.origin), &mut words);
        }
        self.values = visited;
        (next == queue.len()).then(|| words.into_boxed_slice())
    }

    /// Copies continuations that refer to each other, and to functions that have their place. Values are made in the order of the
    /// part, on which the order of operands depends.
    fn copy(&mut self, own: &[Cont]) {
        let part = self.part;
        let mut vals = Vec::new();
        self.values.seen.clear();
        for &k in own {
            vals.extend(part.params(k));
            let Some(body) = part.body(k) else { continue };
            for &v in std::iter::once(&body.callee).chain(body.args) {
                self.values.visit(part, v, |v| vals.push(v));
            }
        }
        self.copy_values(vals);
        for &k in own {
            let Some((new, body)) = self.placed.conts[k].zip(part.body(k)) else { continue };
            let args: SmallVec<[Val; 16]> = body.args.iter().map(|&a| self.val(a)).collect();
            let callee = self.val(body.callee);
            let origin = self.origin(body.origin);
            self.linker.program.set_origin(origin);
            self.linker.program.define(new, callee, &args);
        }
    }

    fn val(&self, v: Val) -> Val {
        self.placed.vals[v].unwrap_or(Val(0))
    }

    /// The place of a continuation.
    fn cont(&mut self, k: Cont) -> Cont {
        if let Some(new) = self.placed.conts[k] {
            return new;
        }
        let data = self.part.cont(k);
        let (ty, origin) = (self.ty(data.ty), self.origin(data.origin));
        let program = &mut self.linker.program;
        program.set_origin(origin);
        let new = program.reserve(ty);
        program.set_params(new, data.names);
        self.placed.conts[k] = Some(new);
        new
    }

    fn copy_values(&mut self, mut vals: Vec<Val>) {
        vals.sort_unstable();
        vals.dedup();
        for v in vals {
            if self.placed.vals[v].is_some() {
                continue;
            }
            let ty = self.ty(self.part.ty(v));
            let new = match self.part.node(v) {
                Node::Param(k, i) => {
                    let k = self.cont(k);
                    self.linker.program.param(k, i as usize)
                }
                Node::Cont(k) => {
                    let k = self.cont(k);
                    self.linker.program.cont_val(k)
                }
                Node::Lit(bits) => self.linker.program.lit(ty, bits),
                Node::Undef => self.linker.program.undef(ty),
                Node::Builtin(b) => self.linker.program.builtin(b),
                Node::Global(g) => self.linker.program.global_val(self.source.globals[g.idx()]),
                Node::Op(op) => self.copy_op(v, op, ty),
            };
            self.placed.vals[v] = Some(new);
        }
    }

    fn copy_op(&mut self, v: Val, op: Op, ty: Ty) -> Val {
        let part = self.part;
        let args: SmallVec<[Val; 16]> = part.args(v).iter().map(|&a| self.val(a)).collect();
        let origin = self.origin(part.origin(v));
        let program = &mut self.linker.program;
        program.set_origin(origin);
        let before = program.set_fast(part.is_fast(v));
        let new = finish::copy_op(program, op, ty, &args);
        program.set_fast(before);
        if part.is_fast(v) {
            program.set_streaming(new);
        }
        new
    }

    fn globals(&mut self, globals: &[Global]) {
        for &g in globals {
            let new = self.global(g);
            if let Some(init) = self.part.global(g).init
                && self.linker.inits[new].is_none()
            {
                let mut vals = Vec::new();
                self.values.seen.clear();
                self.values.visit(self.part, init, |v| vals.push(v));
                self.copy_values(vals);
                self.linker.inits[new] = Some(self.val(init));
            }
        }
    }
}
