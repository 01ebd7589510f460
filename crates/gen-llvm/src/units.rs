//! Cuts a module into units, which LLVM compiles each alone, on all cores, and whose objects are kept: after an edit only the units
//! are compiled whose text has changed. Separate from `emit.rs`, which writes the text of a unit or of a whole module.
//!
//! A unit has what LLVM would join anyway:
//!
//! - functions that call each other recursively;
//! - a function that is referred to by one other function only, if it is small, or in a loop, or called with numbers that are known:
//!   there LLVM gains by seeing both. What is larger costs more than its call, but for vector code, whatever its size: a call saves no
//!   register with a vector, the loops that it is in are those that matter, and with a loop in lanes LLVM sees which lanes run;
//! - small functions beside each other, some thirty at a time. Pieces of large functions are among
//!   them: LLVM joins none with its caller, in a unit or a whole module;
//! - copies (`available_externally`) of small functions of other units that it calls, and of those that these call.
//!
//! So what becomes of a function depends on it, its callers and their callees. A function that other units refer to has a name that
//! does not depend on them, apart from functions of the same name. All other names are those of the unit.
//!
//! One more unit, without functions, has the statics that several units use, and all texts that code only passes on to foreign functions,
//! such as the places of panics: a line that moves changes no code. Constants of few bytes are in the units that use them as well.
//!
//! A program whose functions all belong to one unit is a module as always; so is each without optimization, where LLVM takes little time
//! for a function, and some for a unit.

use nyala_base::{Id, graph};
use nyala_flat::analysis::Cfg;
use nyala_flat::{Callee, Const, Def, Func, Function, GlobalId, Init, InstOp, Linkage, Module, Terminator};
use nyala_ir::{Op, TyKind};
use rustc_hash::{FxHashMap, FxHashSet};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Limits on the instructions of functions: that are copied, or joined where nothing is gained but the call; that are joined where
/// more is gained. That of all functions that are joined is an option.
const MAX_SMALL: usize = 64;
const MAX_JOINED: usize = 500;
/// The mean number of small units that are joined, if their size allows it.
const MEAN_GATHERED: u64 = 32;
/// Limit on the bytes of constants that units have copies of.
const MAX_COPIED: u64 = 256;

/// A part of a module that is compiled alone.
#[derive(Default)]
pub(crate) struct Unit {
    /// The functions that it defines.
    pub own: Vec<Func>,
    /// Functions of other units that LLVM may inline.
    pub copies: Vec<Func>,
    /// The statics that it defines or, if they are constants of several units, has copies of; in order.
    pub globals: Vec<GlobalId>,
    /// Texts that code only passes on, with the names under which the last unit defines them.
    pub texts: Vec<(GlobalId, String)>,
}

/// All units of a module.
pub(crate) struct Units {
    /// The units; the last one has no functions.
    pub all: Vec<Unit>,
    /// The unit that defines each function; `None` for foreign functions, and for those that nobody calls.
    pub unit_of: Vec<Option<usize>>,
    /// Names of functions and statics that several units refer to, and of the entries for C of such functions.
    pub funcs: FxHashMap<Func, String>,
    pub entries: FxHashMap<Func, String>,
    pub globals: FxHashMap<GlobalId, String>,
}

/// What a function refers to.
#[derive(Default)]
struct Refs {
    /// The functions, in order of their first use, and whether joining gains more than the call.
    funcs: Vec<(Func, bool)>,
    /// Functions whose entries for C are used.
    entries: Vec<Func>,
    globals: Vec<GlobalId>,
    /// Constants whose addresses only foreign functions get.
    texts: Vec<GlobalId>,
    size: usize,
    /// Whether it computes vectors.
    has_vectors: bool,
    is_piece: bool,
}

/// Cuts a module; `None` if it is one unit, or has what only whole modules have.
pub(crate) fn cut(module: &Module, max_unit: usize) -> Option<Units> {
    if module.target().is_gpu() || module.funcs.iter().any(|f| matches!(f.linkage, Linkage::Kernel(..))) {
        return None;
    }
    let refs: Vec<Refs> = module.funcs.iter().map(|f| refs_of(module, f)).collect();
    let joined = join(module, &refs, max_unit);
    let all = gather(module, &refs, &joined, max_unit);
    if all.len() < 2 {
        return None;
    }
    let mut unit_of = vec![None; module.funcs.len()];
    for (unit, members) in all.iter().enumerate() {
        members.iter().for_each(|f| unit_of[f.idx()] = Some(unit));
    }
    let mut units = Units {
        all: all.into_iter().map(|own| Unit { own, ..Unit::default() }).collect(),
        unit_of,
        funcs: FxHashMap::default(),
        entries: FxHashMap::default(),
        globals: FxHashMap::default(),
    };
    units.add_copies(&refs, &joined, max_unit);
    units.name_functions(module, &refs);
    units.place_globals(module, &refs);
    Some(units)
}

fn refs_of(module: &Module, function: &Function) -> Refs {
    let mut refs = Refs { is_piece: function.is_piece, ..Refs::default() };
    if function.is_foreign() {
        return refs;
    }
    refs.has_vectors = function.values.iter().any(|v| matches!(module.types.kind(v.ty), TyKind::Vector(..)));
    let cfg = Cfg::new(function);
    let succs: Vec<Vec<usize>> =
        function.blocks.iter().map(|b| b.term.edges().map(|edge| edge.block.idx()).collect()).collect();
    let is_in_loop = graph::in_cycles(&succs, 0);
    let mut uses: FxHashMap<Func, (usize, bool)> = FxHashMap::default();
    let number = |v: &nyala_flat::Value| matches!(function.values[v.idx()].def, Def::Const(Const::Bits(_)));
    let mut see = |f: Func, gains: bool| {
        let next = uses.len();
        uses.entry(f).or_insert((next, false)).1 |= gains;
    };
    for &b in &cfg.rpo {
        let block = function.block(b);
        refs.size += block.insts.len() + 1;
        for inst in &block.insts {
            if let InstOp::Call(f) | InstOp::Vectorize(f, ..) | InstOp::Launch(f, _) = inst.op {
                see(f, is_in_loop[b.idx()] || inst.args.iter().any(number));
            }
        }
        if let Terminator::TailCall { callee: Callee::Func(f), args, .. } = &block.term {
            see(*f, is_in_loop[b.idx()] || args.iter().any(number));
        }
    }
    let mut globals = FxHashSet::default();
    for value in &function.values {
        match value.def {
            Def::Const(Const::Func(f)) => see(f, false),
            Def::Const(Const::CFunc(f)) => {
                see(f, false);
                refs.entries.push(f);
            }
            Def::Const(Const::Global(g)) if globals.insert(g) => refs.globals.push(g),
            _ => {}
        }
    }
    let mut funcs: Vec<(Func, (usize, bool))> = uses.into_iter().collect();
    funcs.sort_unstable_by_key(|&(_, (at, _))| at);
    refs.funcs = funcs.into_iter().map(|(f, (_, gains))| (f, gains)).collect();
    refs.texts = texts_of(module, function, &cfg);
    let texts: FxHashSet<GlobalId> = refs.texts.iter().copied().collect();
    refs.globals.retain(|g| !texts.contains(g));
    refs.globals.sort_unstable();
    refs
}

/// The constants of a function, in order of their use, whose addresses only foreign functions get.
fn texts_of(module: &Module, function: &Function, cfg: &Cfg) -> Vec<GlobalId> {
    let mut of: Vec<Option<GlobalId>> = vec![None; function.values.len()];
    for (i, value) in function.values.iter().enumerate() {
        if let Def::Const(Const::Global(g)) = value.def
            && matches!(module.globals[g.idx()].init, Init::Bytes(_))
            && !module.globals[g.idx()].mutable
        {
            of[i] = Some(g);
        }
    }
    if of.iter().all(Option::is_none) {
        return Vec::new();
    }
    let (mut found, mut others) = (Vec::new(), FxHashSet::default());
    // A definition comes before its uses in this order.
    for &b in &cfg.rpo {
        let block = function.block(b);
        for inst in &block.insts {
            let is_foreign_call = matches!(inst.op, InstOp::Call(f) if module.func(f).is_foreign());
            for arg in &inst.args {
                let Some(g) = of[arg.idx()] else { continue };
                match (&inst.op, inst.result) {
                    _ if is_foreign_call => found.push(g),
                    (InstOp::Op(Op::Bitcast), Some(result)) => of[result.idx()] = Some(g),
                    _ => {
                        others.insert(g);
                    }
                }
            }
        }
        block.term.for_each_use(|v| others.extend(of[v.idx()]));
    }
    let mut seen = others;
    found.retain(|g| seen.insert(*g));
    found
}

/// The functions of each unit.
fn join(module: &Module, refs: &[Refs], max_unit: usize) -> Vec<Vec<Func>> {
    let n = module.funcs.len();
    let has_body: Vec<usize> = (0..n).filter(|&f| !module.funcs[f].is_foreign()).collect();
    let succ = |f: usize, i: usize| refs[f].funcs.get(i).map(|&(g, _)| g.idx());
    // Callees come first.
    let groups = graph::Components::default().find(&has_body, succ, |f| !module.funcs[f].is_foreign());
    let mut group_of = vec![usize::MAX; n];
    for (i, members) in groups.iter().enumerate() {
        members.iter().for_each(|&f| group_of[f] = i);
    }
    let mut stands_alone = vec![false; groups.len()];
    for (f, function) in module.funcs.iter().enumerate() {
        if matches!(function.linkage, Linkage::Exported(_)) {
            stands_alone[group_of[f]] = true;
        }
    }
    for global in &module.globals {
        for_each_ref(&global.init, &mut |_| (), &mut |f| {
            if let Some(alone) = stands_alone.get_mut(group_of[f.idx()]) {
                *alone = true;
            }
        });
    }
    // The only function outside of a group that refers to it.
    let mut caller: Vec<Option<Option<usize>>> = vec![None; groups.len()];
    for &f in &has_body {
        for &(g, _) in &refs[f].funcs {
            let group = group_of[g.idx()];
            if group != usize::MAX && group != group_of[f] {
                caller[group] = match caller[group] {
                    None => Some(Some(f)),
                    Some(Some(known)) if known == f => Some(Some(f)),
                    _ => Some(None),
                };
            }
        }
    }
    let mut size: Vec<usize> = groups.iter().map(|g| g.iter().map(|&f| refs[f].size).sum()).collect();
    let mut joins: Vec<Option<usize>> = vec![None; groups.len()];
    for (i, members) in groups.iter().enumerate() {
        let mut sorted = members.clone();
        sorted.sort_unstable();
        for f in sorted {
            for &(g, gains) in &refs[f].funcs {
                let group = group_of[g.idx()];
                if group == usize::MAX
                    || refs[g.idx()].is_piece
                    || stands_alone[group]
                    || caller[group] != Some(Some(f))
                    || joins[group].is_some()
                {
                    continue;
                }
                let max = if gains { MAX_JOINED } else { MAX_SMALL };
                let is_vector_code = max_unit > 0 && groups[group].iter().any(|&f| refs[f].has_vectors);
                if is_vector_code || size[group] <= max && size[i] + size[group] <= max_unit {
                    joins[group] = Some(i);
                    size[i] += size[group];
                }
            }
        }
    }
    let mut units: Vec<Vec<Func>> = vec![Vec::new(); groups.len()];
    // Callers come last; what joins them is theirs by then.
    let mut outermost: Vec<usize> = (0..groups.len()).collect();
    for i in (0..groups.len()).rev() {
        if let Some(to) = joins[i] {
            outermost[i] = outermost[to];
        }
        // A group that nobody refers to is not compiled.
        if stands_alone[i] || caller[i].is_some() {
            units[outermost[i]].extend(groups[i].iter().map(|&f| Func::from_idx(f)));
        }
    }
    units.retain(|u| !u.is_empty());
    units.iter_mut().for_each(|u| u.sort_unstable());
    units.sort_unstable_by_key(|u| u[0]);
    units
}

/// Joins small units that follow each other: each would take LLVM more time than its code. Where the next one begins depends on the name
/// of its first function, so that an edit of a unit does not move the others' bounds.
fn gather(module: &Module, refs: &[Refs], units: &[Vec<Func>], max_unit: usize) -> Vec<Vec<Func>> {
    let begins = |unit: &[Func]| {
        let mut hasher = rustc_hash::FxHasher::default();
        module.func(unit[0]).name.hash(&mut hasher);
        hasher.finish().is_multiple_of(MEAN_GATHERED)
    };
    let mut gathered: Vec<Vec<Func>> = Vec::new();
    // The unit that others may join, and its size.
    let mut open: Option<(usize, usize)> = None;
    for unit in units {
        let size: usize = unit.iter().map(|f| refs[f.idx()].size).sum();
        if size > MAX_SMALL.min(max_unit) {
            gathered.push(unit.clone());
            continue;
        }
        match &mut open {
            Some((at, total)) if *total + size <= max_unit && !begins(unit) => {
                gathered[*at].extend(unit);
                *total += size;
            }
            _ => {
                open = Some((gathered.len(), size));
                gathered.push(unit.clone());
            }
        }
    }
    gathered.iter_mut().for_each(|u| u.sort_unstable());
    gathered
}

impl Units {
    /// Adds copies of small functions, with those that were joined to them.
    fn add_copies(&mut self, refs: &[Refs], joined: &[Vec<Func>], max_unit: usize) {
        let size_of = |funcs: &[Func]| -> usize { funcs.iter().map(|f| refs[f.idx()].size).sum() };
        let sizes: Vec<usize> = joined.iter().map(|funcs| size_of(funcs)).collect();
        let mut group_of: Vec<Option<usize>> = vec![None; refs.len()];
        for (group, funcs) in joined.iter().enumerate() {
            funcs.iter().for_each(|f| group_of[f.idx()] = Some(group));
        }
        for (i, unit) in self.all.iter_mut().enumerate() {
            let max = size_of(&unit.own) + 2 * max_unit;
            let (mut copied, mut size) = (FxHashSet::default(), 0);
            let mut work = unit.own.clone();
            let mut at = 0;
            while at < work.len() {
                let callees = &refs[work[at].idx()].funcs;
                // Those first that gain more.
                for (g, _) in
                    callees.iter().filter(|(_, gains)| *gains).chain(callees.iter().filter(|(_, gains)| !gains))
                {
                    let Some(of) = group_of[g.idx()].filter(|_| self.unit_of[g.idx()] != Some(i)) else { continue };
                    if sizes[of] <= MAX_SMALL && !refs[g.idx()].is_piece && size + sizes[of] <= max && copied.insert(of)
                    {
                        size += sizes[of];
                        work.extend(&joined[of]);
                    }
                }
                at += 1;
            }
            unit.copies = work.split_off(unit.own.len());
            unit.copies.sort_unstable();
        }
    }

    /// Names the functions that other units refer to.
    fn name_functions(&mut self, module: &Module, refs: &[Refs]) {
        let (mut shared, mut entries) = (FxHashSet::default(), FxHashSet::default());
        for (i, unit) in self.all.iter().enumerate() {
            for f in unit.own.iter().chain(&unit.copies) {
                let is_outside = |g: &Func| self.unit_of[g.idx()].is_some_and(|of| of != i);
                shared.extend(refs[f.idx()].funcs.iter().map(|(g, _)| *g).filter(is_outside));
                entries.extend(refs[f.idx()].entries.iter().copied().filter(is_outside));
            }
        }
        for global in &module.globals {
            for_each_ref(&global.init, &mut |_| (), &mut |f| {
                if self.unit_of[f.idx()].is_some() {
                    shared.insert(f);
                    if module.func(f).linkage == Linkage::Callback {
                        entries.insert(f);
                    }
                }
            });
        }
        let mut names = Names::default();
        for (i, function) in module.funcs.iter().enumerate() {
            let func = Func::from_idx(i);
            if shared.contains(&func) {
                self.funcs.insert(func, names.pick("shared.", &function.name, ""));
            }
            if entries.contains(&func) && function.linkage == Linkage::Callback {
                self.entries.insert(func, names.pick("shared-callback.", &function.name, ""));
            }
        }
    }

    /// Decides which unit has which statics.
    fn place_globals(&mut self, module: &Module, refs: &[Refs]) {
        let mut users: Vec<Vec<usize>> = vec![Vec::new(); module.globals.len()];
        let mut texts = Vec::new();
        for (i, unit) in self.all.iter().enumerate() {
            let funcs = || unit.own.iter().chain(&unit.copies);
            let mut work: Vec<GlobalId> = funcs().flat_map(|f| refs[f.idx()].globals.iter().copied()).collect();
            let mut used = FxHashSet::default();
            while let Some(g) = work.pop() {
                if used.insert(g) {
                    users[g.idx()].push(i);
                    for_each_ref(&module.globals[g.idx()].init, &mut |h| work.push(h), &mut |_| ());
                }
            }
            let mut seen = used;
            texts.push(
                funcs()
                    .flat_map(|f| refs[f.idx()].texts.iter().copied())
                    .filter(|g| seen.insert(*g))
                    .collect::<Vec<_>>(),
            );
        }
        let mut names = Names::default();
        let mut last = Unit::default();
        for (i, global) in module.globals.iter().enumerate() {
            let id = GlobalId::from_idx(i);
            match users[i][..] {
                [] => {}
                [unit] => self.all[unit].globals.push(id),
                _ => {
                    self.globals.insert(id, names.pick("shared-static.", &global.name, ""));
                    last.globals.push(id);
                    let size =
                        nyala_ir::layout::size_align(&module.types, global.ty).map_or(u64::MAX, |(size, _)| size);
                    if !global.mutable && size <= MAX_COPIED && is_plain(&global.init) {
                        users[i].iter().for_each(|&unit| self.all[unit].globals.push(id));
                    }
                }
            }
        }
        let mut names = Names::default();
        for (unit, texts) in self.all.iter_mut().zip(texts) {
            let first = unit.own.iter().find_map(|f| match &module.func(*f).linkage {
                Linkage::Exported(symbol) => Some(symbol),
                _ => self.funcs.get(f).or_else(|| self.entries.get(f)),
            });
            let stem = first.map_or("", |s| s.as_str());
            let named = texts.into_iter().map(|g| (g, names.pick("shared-text.", &format!("{stem}.0"), "")));
            unit.texts = named.collect();
            last.texts.extend(unit.texts.iter().cloned());
        }
        self.all.push(last);
    }
}

/// Visits the statics and functions that an initial value refers to.
fn for_each_ref(init: &Init, global: &mut impl FnMut(GlobalId), func: &mut impl FnMut(Func)) {
    let mut work = vec![init];
    while let Some(init) = work.pop() {
        match init {
            Init::Global(g, _) => global(*g),
            Init::Func(f) => func(*f),
            Init::Parts(parts) => work.extend(parts),
            Init::Zero | Init::Undef | Init::Bits(_) | Init::Bytes(_) => {}
        }
    }
}

/// Whether an initial value refers to nothing.
fn is_plain(init: &Init) -> bool {
    let (mut global, mut func) = (false, false);
    for_each_ref(init, &mut |_| global = true, &mut |_| func = true);
    !global && !func
}

/// Names of symbols.
#[derive(Clone, Default)]
pub(crate) struct Names {
    /// Those that the program fixes.
    pub fixed: Arc<FxHashSet<String>>,
    taken: FxHashSet<String>,
}

impl Names {
    /// No names but those that the program fixes.
    pub fn new(fixed: Arc<FxHashSet<String>>) -> Names {
        Names { fixed, taken: FxHashSet::default() }
    }

    /// A name that no other symbol has. What a symbol in LLVM's text had better not have becomes a dot.
    pub fn pick(&mut self, prefix: &str, name: &str, suffix: &str) -> String {
        let clean: String = name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '.' }).collect();
        let mut picked = format!("{prefix}{clean}{suffix}");
        let mut n = 0;
        while self.fixed.contains(&picked) || !self.taken.insert(picked.clone()) {
            n += 1;
            picked = format!("{prefix}{clean}.{n}{suffix}");
        }
        picked
    }
}
