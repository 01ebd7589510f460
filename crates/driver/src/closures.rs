//! Finds the functions of a residual program that are values at run time: what each one captures, why it is a value,
//! and whether its environment is freed. Separate from [`explain`](crate::explain), which shows them, because `--deny
//! heap-closure` reports them too.
//!
//! References to environments are counted ([`nyala_flat`]'s `refcount.rs`), except those in memory other than local
//! variables. The analysis does not know which function a place in memory holds: any place for values of its type may
//! hold it.

use nyala_base::diagnostics::Label;
use nyala_base::{Diagnostic, Id, Sink, Sources, Span};
use nyala_flat::ensure::Origins;
use nyala_ir::{Cont, Global, Node, Op, Ty, TyKind, Val, World};
use nyala_specialize::facts::{Facts, is_function};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// Limit on the function values in a variable whose environments are counted; the limit of `refcount.rs`.
const MAX_COUNTED: u64 = 256;
/// Captured values are shown by their text if it has at most this many characters.
const MAX_TEXT: usize = 30;

/// A function that is a value at run time.
pub struct Closure {
    pub cont: Cont,
    /// The captured values, in words. They are in an environment on the heap; a function without any has no
    /// environment.
    pub captures: Vec<String>,
    /// The reason why the function is a value, in words.
    pub why: String,
    /// The residual function that the function is passed to, if it is.
    pub callee: Option<Cont>,
    /// The place where the function becomes a value.
    pub used: Span,
    /// Whether all environments of the function lie in frames of the functions that make them, not on the heap.
    pub is_in_frame: bool,
    /// The reason why the environment is not freed, if it is not.
    pub leak: Option<Leak>,
}

/// A place whose references are never given up holds the function, or functions of its type.
#[derive(Clone)]
pub struct Leak {
    pub why: String,
    pub at: Span,
    /// Whether the place holds the function itself, not just a function of its type.
    pub is_certain: bool,
}

/// The functions that are values at run time, in the order of the source. `facts` are those of the residual program
/// `w`.
pub fn find(w: &World, facts: &Facts, sources: &Sources) -> Vec<Closure> {
    let mut finder = Finder::new(w, facts, sources);
    finder.find_given_away();
    finder.find_values();
    finder.find_leaks();
    finder.ask_compiled_code();
    let mut found: Vec<Closure> = finder.found.into_values().collect();
    found.sort_by_key(|c| w.cont(c.cont).origin);
    found
}

/// How messages begin about calls, in kernels, of functions that are chosen at run time.
const CHOSEN: &str = "a function that is chosen at run time";
/// Limit on the functions that such a message names.
const MAX_NAMED: usize = 3;

/// Adds to an error about a kernel that calls or takes a function chosen at run time which value that is, and where it is chosen.
pub fn explain_choice(w: &World, sources: &Sources, d: &mut Diagnostic) {
    if !d.message.contains(CHOSEN) {
        return;
    }
    let facts = Facts::new(w, &w.roots());
    let found = find(w, &facts, sources);
    let finder = Finder::new(w, &facts, sources);
    let Some(value) = finder.chosen_at(d.primary.span) else { return };
    let separator = if d.primary.text.is_empty() { "" } else { "; " };
    d.primary.text.insert_str(0, &format!("the function is {}{separator}", finder.captured(value)));
    let types = functions_in(w, w.ty(value));
    let is_meant = |c: &&Closure| types.contains(&w.cont(c.cont).ty) && !c.used.is_none();
    let mut named = FxHashSet::default();
    for closure in found.iter().filter(is_meant) {
        if named.len() < MAX_NAMED && named.insert(closure.used) {
            let text = format!("it may be `{}`: {}", shown_name(w.name(closure.cont)), closure.why);
            d.others.push(Label { span: closure.used, text });
        }
    }
}

struct Finder<'a> {
    w: &'a World,
    facts: &'a Facts,
    sources: &'a Sources,
    /// Local variables whose addresses are known elsewhere.
    given_away: FxHashSet<Val>,
    found: BTreeMap<Cont, Closure>,
    /// Values whose references are never given up, with the reasons and places.
    sinks: Vec<(Val, String, Span)>,
}

/// The place in memory that a value is stored in.
enum Place {
    Variable(Val),
    Static(Global),
    Unknown,
}

impl<'a> Finder<'a> {
    fn new(w: &'a World, facts: &'a Facts, sources: &'a Sources) -> Finder<'a> {
        Finder { w, facts, sources, given_away: FxHashSet::default(), found: BTreeMap::new(), sinks: Vec::new() }
    }

    /// The function that is called at a place, or in a kernel that is launched there, and that is known at run time only.
    fn chosen_at(&self, place: Span) -> Option<Val> {
        let (w, conts) = (self.w, &self.facts.nest.conts);
        let at = |k: &Cont| w.body(*k).filter(|body| body.origin == place);
        let called = |k: &Cont| {
            let callee = w.body(*k)?.callee;
            let is_known = matches!(w.node(callee), Node::Cont(_) | Node::Builtin(_));
            (!is_known && !nyala_schedule::is_continuation(&w.types, w.ty(callee))).then_some(callee)
        };
        if let Some(value) = conts.iter().filter(|k| at(k).is_some()).find_map(called) {
            return Some(value);
        }
        let mut work: Vec<Cont> =
            conts.iter().filter_map(at).flat_map(|b| b.args.iter()).filter_map(|&a| w.as_cont(a)).collect();
        let mut seen = FxHashSet::default();
        while let Some(k) = work.pop() {
            if !seen.insert(k) {
                continue;
            }
            if let Some(value) = called(&k) {
                return Some(value);
            }
            let body = w.body(k);
            let named = body.iter().flat_map(|b| b.args.iter().chain([&b.callee])).copied();
            work.extend(named.chain(self.facts.nest.ops(k).iter().copied()).filter_map(|v| w.as_cont(v)));
        }
        None
    }

    fn find_given_away(&mut self) {
        let (w, nest) = (self.w, &self.facts.nest);
        for &k in &nest.conts {
            for &op in nest.ops(k) {
                let address = match w.as_op(op) {
                    Some(Op::Load | Op::Store | Op::AtomicLoad | Op::AtomicStore) => Some(1),
                    Some(Op::Atomic) => Some(2),
                    Some(Op::Lea | Op::Bitcast | Op::Extract) => Some(0),
                    _ => None,
                };
                let others = w.args(op).iter().enumerate().filter(|&(i, _)| Some(i) != address);
                self.given_away.extend(others.filter_map(|(_, &a)| variable(w, a)));
            }
            let passed = w.body(k).into_iter().flat_map(|body| body.args);
            self.given_away.extend(passed.filter_map(|&a| variable(w, a)));
            if is_function(w, k) {
                self.given_away.extend(nest.free(k).iter().filter_map(|&v| variable(w, v)));
            }
        }
    }

    fn find_values(&mut self) {
        let w = self.w;
        for data in (0..w.n_globals()).map(|g| w.global(Global::from_idx(g))) {
            let Some(init) = data.init else { continue };
            self.note(init, |_| format!("in the static `{}`", data.name), None, data.origin);
            self.note_operands(init);
        }
        let facts = self.facts;
        for &k in &facts.nest.conts {
            for &op in facts.nest.ops(k) {
                self.note_operands(op);
                self.note_store(op);
            }
            let Some(body) = w.body(k) else { continue };
            body.args.iter().for_each(|&arg| self.note_operands(arg));
            if matches!(w.node(body.callee), Node::Builtin(b) if b.args().body.is_some()) {
                continue;
            }
            let callee = w.as_cont(body.callee).filter(|&c| !w.cont(c).linkage.is_external());
            for (i, &arg) in body.args.iter().enumerate() {
                self.note(arg, |s| s.passed(body, i), callee, body.origin);
                let is_last = i + 1 == body.args.len();
                if callee.is_none()
                    && !is_last
                    && w.types.has_function(w.ty(arg))
                    && let Some(c) = w.as_cont(body.callee)
                {
                    let why = format!("given to `{}`, which lies outside the program", w.name(c));
                    self.sinks.push((arg, why, body.origin));
                }
            }
        }
    }

    /// The reason why argument `i` of a call is a value, in words.
    fn passed(&self, body: nyala_ir::Body, i: usize) -> String {
        let w = self.w;
        match w.node(body.callee) {
            Node::Cont(c) if w.cont(c).linkage.is_external() => {
                format!("passed to `{}`, which lies outside the program", w.name(c))
            }
            Node::Cont(c) if w.name(c) == "join" && is_block(w, self.sources, c) => {
                "chosen by a branch whose condition is not known".into()
            }
            Node::Cont(c) if !is_function(w, c) && self.facts.is_recursive[c] => {
                "another one in each round of a loop".into()
            }
            Node::Cont(c) => {
                let name = w.param_name(c, i).unwrap_or("_");
                format!("passed to `{}`, whose parameter `{name}` is not specialized", w.name(c))
            }
            Node::Param(c, _) if w.params(c).last() == Some(&body.callee) && !is_block(w, self.sources, c) => {
                format!("returned by `{}`", shown_name(w.name(c)))
            }
            Node::Param(c, i) if w.param_name(c, i as usize) == Some("ret") => "returned".into(),
            _ => "passed to a function that is not known".into(),
        }
    }

    /// Notes that a value is held somewhere, if it is a function.
    fn note(&mut self, v: Val, why: impl FnOnce(&Self) -> String, callee: Option<Cont>, used: Span) {
        let w = self.w;
        // The continuation of a call whose result is a function takes a function, but is not one.
        let is_meant = |k: &Cont| is_compiled_function(w, *k) && !is_block(w, self.sources, *k);
        let Some(k) = w.as_cont(v).filter(is_meant) else { return };
        if !self.found.contains_key(&k) {
            let captures = self.captures(k);
            let callee = callee.filter(|&c| is_function(w, c));
            let why = why(self);
            self.found.insert(k, Closure { cont: k, captures, why, callee, used, is_in_frame: false, leak: None });
        }
    }

    fn note_operands(&mut self, root: Val) {
        let w = self.w;
        let mut work = vec![root];
        while let Some(v) = work.pop() {
            let Some(op) = w.as_op(v).filter(|_| w.types.has_function(w.ty(v)) || v == root) else { continue };
            for &a in w.args(v) {
                let why = |s: &Self| match op {
                    Op::Store | Op::AtomicStore => match s.place(w.args(v)[1]) {
                        Place::Variable(_) => "stored in a variable".to_string(),
                        Place::Static(g) => format!("stored in the static `{}`", w.global(g).name),
                        Place::Unknown => "stored through a pointer".into(),
                    },
                    Op::Atomic => "stored in memory".into(),
                    Op::Select => "chosen by a condition that is not known".into(),
                    _ => format!("a part of a value at run time (`{}`)", op.name()),
                };
                self.note(a, why, None, w.origin(v));
                if w.as_op(a).is_some() {
                    work.push(a);
                }
            }
        }
    }

    /// Notes functions that are stored where they are not counted.
    fn note_store(&mut self, op: Val) {
        let w = self.w;
        if !matches!(w.as_op(op), Some(Op::Store | Op::AtomicStore)) {
            return;
        }
        let (address, v) = (w.args(op)[1], w.args(op)[2]);
        if !w.types.has_function(w.ty(v)) {
            return;
        }
        let why = match self.place(address) {
            Place::Variable(slot) if self.given_away.contains(&slot) => {
                "stored in a variable whose address others have".into()
            }
            Place::Variable(slot) if !is_counted(w, slot) => {
                format!("stored in a variable of more than {MAX_COUNTED} functions")
            }
            Place::Variable(_) => return,
            Place::Static(g) => format!("stored in the static `{}`", w.global(g).name),
            Place::Unknown => "stored through a pointer".into(),
        };
        self.sinks.push((v, why, w.origin(op)));
    }

    fn place(&self, address: Val) -> Place {
        let w = self.w;
        let mut at = address;
        while let Some(Op::Lea | Op::Bitcast) = w.as_op(at) {
            at = w.args(at)[0];
        }
        match (w.node(at), variable(w, at)) {
            (Node::Global(g), _) => Place::Static(g),
            (_, Some(slot)) => Place::Variable(slot),
            _ => Place::Unknown,
        }
    }

    fn find_leaks(&mut self) {
        let w = self.w;
        // The places that hold functions: by function, and by type of function.
        let mut direct: FxHashMap<Cont, usize> = FxHashMap::default();
        let mut types: FxHashMap<Ty, usize> = FxHashMap::default();
        let mut work: Vec<(Ty, usize)> = Vec::new();
        for (i, &(v, ..)) in self.sinks.iter().enumerate() {
            for k in parts(w, v) {
                direct.entry(k).or_insert(i);
            }
            work.extend(functions_in(w, w.ty(v)).into_iter().map(|ty| (ty, i)));
        }
        let mut by_type: FxHashMap<Ty, Vec<Cont>> = FxHashMap::default();
        for closure in self.found.values().filter(|c| !c.captures.is_empty()) {
            by_type.entry(w.cont(closure.cont).ty).or_default().push(closure.cont);
        }
        while let Some((ty, i)) = work.pop() {
            if types.contains_key(&ty) {
                continue;
            }
            types.insert(ty, i);
            // An environment that is not freed keeps its captured functions.
            for &k in by_type.get(&ty).into_iter().flatten() {
                let captured = self.facts.nest.free(k).iter();
                work.extend(captured.flat_map(|&v| functions_in(w, w.ty(v))).map(|ty| (ty, i)));
            }
        }
        for closure in self.found.values_mut().filter(|c| !c.captures.is_empty()) {
            let certain = direct.get(&closure.cont);
            let Some(&i) = certain.or_else(|| types.get(&w.cont(closure.cont).ty)) else { continue };
            let (_, why, at) = &self.sinks[i];
            closure.leak = Some(Leak { why: why.clone(), at: *at, is_certain: certain.is_some() });
        }
    }

    /// Finds the environments that lie in frames, and the continuations that have records on the heap. Finds none if
    /// the program does not compile.
    fn ask_compiled_code(&mut self) {
        let w = self.w;
        let Some((mut module, sources)) = nyala_schedule::schedule_with_sources(w, &mut Sink::default()) else {
            return;
        };
        nyala_flat::ensure::watch(&mut module, &[], Origins { calls: &w.calls, libraries: &[] });
        nyala_flat::count_environments(&mut module);
        let mut others: Vec<(Cont, &str)> = Vec::new();
        for (code, on_heap) in nyala_flat::environments_by_code(&module) {
            let Some(k) = sources[code.idx()] else { continue };
            match self.found.get_mut(&k) {
                Some(closure) if !on_heap => (closure.is_in_frame, closure.leak) = (true, None),
                Some(_) => {}
                None if on_heap => others.push((k, "a continuation that is a value")),
                None => {}
            }
        }
        let records = nyala_flat::records_on_heap(&mut module);
        let is_kept = |k: &Cont| !is_compiled_function(w, *k) && records.contains(&w.cont(*k).origin);
        let why = "a continuation that is a value, and has what its round of a loop computed";
        others.extend(self.facts.nest.conts.iter().copied().filter(is_kept).map(|k| (k, why)));
        others.sort_unstable();
        for (k, why) in others {
            let used = w.cont(k).origin;
            if self.found.values().all(|c| w.cont(c.cont).origin != used) {
                let (captures, why) = (self.captures(k), why.into());
                let closure = Closure { cont: k, captures, why, callee: None, used, is_in_frame: false, leak: None };
                self.found.insert(k, closure);
            }
        }
    }

    /// The free values of a function or continuation, in words.
    fn captures(&self, k: Cont) -> Vec<String> {
        let mut captures: Vec<String> = Vec::new();
        for &v in self.facts.nest.free(k) {
            let name = self.captured(v);
            if !captures.contains(&name) {
                captures.push(name);
            }
        }
        captures
    }

    /// A captured value, in words.
    fn captured(&self, v: Val) -> String {
        let w = self.w;
        if let Node::Param(k, i) = w.node(v) {
            let is_return = i as usize + 1 == w.params(k).len() && is_function(w, k);
            match w.param_name(k, i as usize) {
                Some("ret") if is_return => return "`return`".into(),
                Some(name) if !["", "r", "ret"].contains(&name) => return format!("`{name}`"),
                _ => {}
            }
        }
        if let Some(slot) = variable(w, v) {
            return format!("a `mut` variable of line {}", self.sources.line(w.origin(slot)));
        }
        let span = if let Node::Param(k, _) = w.node(v) { w.cont(k).origin } else { w.origin(v) };
        let text = self.sources.text(span.file).get(span.lo as usize..span.hi as usize).unwrap_or_default();
        let is_word = text.chars().all(|c| c.is_alphanumeric() || c == '_');
        match text {
            "" => "a value".into(),
            _ if is_word && text.len() <= MAX_TEXT => format!("`{text}`"),
            _ => format!("a value of line {}", self.sources.line(span)),
        }
    }
}

/// Whether `k` is a function in compiled code too, and not a continuation that takes a function.
fn is_compiled_function(w: &World, k: Cont) -> bool {
    is_function(w, k) && !nyala_schedule::is_continuation(&w.types, w.cont(k).ty)
}

/// The name of a function or loop as reports show it.
pub(crate) fn shown_name(name: &str) -> String {
    match name {
        "body" => "loop body".into(),
        "while" => "while loop".into(),
        _ => name.into(),
    }
}

/// Whether the compiler made the continuation: it is neither a function nor a loop of the program.
pub(crate) fn is_block(w: &World, sources: &Sources, k: Cont) -> bool {
    let data = w.cont(k);
    let is_made = ["k", "join", "break", "then", "else", "more", "done", "loop"].contains(&w.name(k));
    let written = sources.text(data.origin.file).get(data.origin.lo as usize..data.origin.hi as usize);
    is_made && written != Some(w.name(k))
}

/// The local variable that an address belongs to, if it does.
fn variable(w: &World, v: Val) -> Option<Val> {
    let mut at = v;
    loop {
        match w.as_op(at)? {
            Op::Lea | Op::Bitcast => at = w.args(at)[0],
            Op::Extract if w.as_lit(w.args(at)[1]) == Some(1) && w.is_op(w.args(at)[0], Op::Slot) => {
                return Some(w.args(at)[0]);
            }
            _ => return None,
        }
    }
}

/// Whether the environments of the functions in a variable are counted: it has at most [`MAX_COUNTED`] of them.
fn is_counted(w: &World, slot: Val) -> bool {
    let ty = w.types.part(w.ty(slot), 1).and_then(|ptr| w.types.pointee(ptr));
    let mut n: u64 = 0;
    let mut work: Vec<(Ty, u64)> = ty.into_iter().map(|ty| (ty, 1)).collect();
    while let Some((ty, times)) = work.pop() {
        match w.types.kind(ty) {
            TyKind::Cn(_) => n += times,
            TyKind::Array(elem, len) if w.types.has_function(*elem) => work.push((*elem, times.saturating_mul(*len))),
            TyKind::Tuple(_) | TyKind::Struct(_) => {
                let n_parts = w.types.n_parts(ty).unwrap_or(0);
                work.extend((0..n_parts).filter_map(|i| Some((w.types.part(ty, i)?, times))));
            }
            _ => {}
        }
        if n > MAX_COUNTED || times > MAX_COUNTED {
            return false;
        }
    }
    true
}

/// The types of all functions in values of type `ty`.
fn functions_in(w: &World, ty: Ty) -> Vec<Ty> {
    let (mut found, mut seen, mut work) = (Vec::new(), FxHashSet::default(), vec![ty]);
    while let Some(ty) = work.pop() {
        if !seen.insert(ty) {
            continue;
        }
        match w.types.kind(ty) {
            TyKind::Cn(_) => found.push(ty),
            TyKind::Array(elem, _) | TyKind::IndefArray(elem) => work.push(*elem),
            TyKind::Tuple(_) | TyKind::Struct(_) => {
                let n_parts = w.types.n_parts(ty).unwrap_or(0);
                work.extend((0..n_parts).filter_map(|i| w.types.part(ty, i)));
            }
            _ => {}
        }
    }
    found
}

/// The functions that a value is made of.
fn parts(w: &World, v: Val) -> Vec<Cont> {
    let (mut found, mut seen, mut work) = (Vec::new(), FxHashSet::default(), vec![v]);
    while let Some(v) = work.pop() {
        if !seen.insert(v) {
            continue;
        }
        match w.node(v) {
            Node::Cont(k) => found.push(k),
            Node::Op(Op::Tuple | Op::Struct | Op::Array | Op::Insert | Op::Select) => work.extend(w.args(v)),
            _ => {}
        }
    }
    found
}
