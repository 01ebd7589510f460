//! Flat SSA to LLVM's text form: modules, globals, signatures, wrappers.
//!
//! Internal functions use `tailcc`, so that calls in tail position are jumps at every optimization level; exported ones
//! get a wrapper with C's convention. The text is deterministic: equal modules give equal text, byte for byte.

use crate::assembly::AsmCheck;
use crate::diagnostics::{bug, unknown_target};
use crate::function::emit_function;
use crate::options::Options;
use crate::origins::{Lines, Origins};
use crate::types::{Layouts, RetClass};
use crate::units::{self, Names, Unit, Units};
use crate::{gpu, versions};
use nyala_base::diagnostics::duplicate_symbol;
use nyala_base::{Diagnostic, Id, Span, graph};
use nyala_flat::escape::Escapes;
use nyala_flat::refcount::Frames;
use nyala_flat::{Callee, Const, Def, Func, Function, Global, GlobalId, InstOp, Linkage, Module, Terminator};
use nyala_ir::{Arch, Prim, Target, Ty};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Arc;

/// A CPU that functions are compiled for.
struct Version {
    target: Target,
    /// Text after the attributes of its functions.
    attributes: String,
    /// Names of internal functions.
    funcs: FxHashMap<Func, String>,
    /// Names of their entries for C: of callbacks and, if there are several versions, of exported functions.
    entries: FxHashMap<Func, String>,
}

/// The unit that is emitted, if that is not the whole module.
#[derive(Clone, Copy)]
struct Part<'u> {
    units: &'u Units,
    index: usize,
}

impl<'u> Part<'u> {
    fn unit(self) -> &'u Unit {
        &self.units.all[self.index]
    }

    /// Whether a function is defined by another unit.
    fn is_outside(self, func: Func) -> bool {
        self.units.unit_of[func.idx()] != Some(self.index) && self.unit().copies.binary_search(&func).is_err()
    }
}

/// The linkage of what another unit defines, too.
const COPY: &str = "available_externally ";
const HIDDEN_COPY: &str = "available_externally hidden ";

/// Metadata of origins has smaller numbers.
const FIRST_METADATA: usize = 1_000_000_000;

/// A module, and the functions and lines of the source that it was made of.
pub type Program<'m> = (&'m Module, Option<Lines<'m>>);

/// State of the emission of one module.
pub(crate) struct Emitter<'m> {
    /// If each version is of a module of its own: these, with functions and statics of their own.
    programs: Vec<Program<'m>>,
    /// That of the current version.
    pub module: &'m Module,
    pub options: &'m Options,
    part: Option<Part<'m>>,
    names: Names,
    /// Calling convention of internal functions, followed by a space.
    pub cc: &'static str,
    pub layouts: Layouts<'m>,
    /// The versions that each function is compiled in, and the current one.
    versions: Vec<Version>,
    version: usize,
    /// With several versions, the names by which statics refer to functions, and the functions that they refer to.
    indirect_names: Vec<String>,
    indirect: BTreeSet<Func>,
    globals: FxHashMap<GlobalId, String>,
    /// Foreign symbols with their first declaration.
    declared: BTreeMap<String, String>,
    /// Foreign functions whose addresses are taken.
    thunks: Vec<Func>,
    pub needs_splat: bool,
    /// For each function its group of mutually recursive functions, if one of them jumps to a function.
    pub jumping_group: Vec<Option<u32>>,
    /// Functions and lines, if debug information is wanted.
    pub origins: Option<Origins<'m>>,
    pub asm_checks: Vec<AsmCheck>,
    /// Metadata other than that of origins.
    metadata: Vec<String>,
    /// Index of each text in `metadata`.
    metadata_at: FxHashMap<String, usize>,
    pub escapes: Escapes<'m>,
    pub frames: Frames<'m>,
    pub out: String,
}

/// Strongly connected components of the reference graph in which some function ends with a jump to a function.
/// See Note [Recursion beside jumps].
fn jumping_groups(module: &Module) -> Vec<Option<u32>> {
    let n = module.funcs.len();
    let mut jumps = vec![false; n];
    let mut refs: Vec<Vec<usize>> = vec![Vec::new(); n];
    for (i, f) in module.funcs.iter().enumerate() {
        for block in &f.blocks {
            refs[i].extend(block.insts.iter().filter_map(|inst| match inst.op {
                InstOp::Call(g) | InstOp::Vectorize(g, ..) | InstOp::Launch(g, _) => Some(g.idx()),
                InstOp::Op(_) | InstOp::Vector(_) | InstOp::CallIndirect => None,
            }));
            if let Terminator::TailCall { callee, .. } = &block.term {
                jumps[i] = true;
                if let Callee::Func(g) = callee {
                    refs[i].push(g.idx());
                }
            }
        }
        refs[i].extend(f.values.iter().filter_map(|v| match v.def {
            Def::Const(Const::Func(g)) => Some(g.idx()),
            _ => None,
        }));
        refs[i].sort_unstable();
        refs[i].dedup();
    }
    let all: Vec<usize> = (0..n).collect();
    let components = graph::Components::default().find(&all, |f, i| refs[f].get(i).copied(), |_| true);
    let mut group = vec![None; n];
    for (number, members) in components.into_iter().enumerate() {
        if members.iter().any(|&f| jumps[f]) {
            members.into_iter().for_each(|f| group[f] = Some(number as u32));
        }
    }
    group
}

/// A module as LLVM text.
pub struct Emitted {
    pub text: String,
    /// The machine it is for.
    pub target: Target,
    pub(crate) asm_checks: Vec<AsmCheck>,
    /// For each function of the module the symbols of its code.
    pub symbols: Vec<Vec<String>>,
}

/// Emits a module as LLVM text, without debug information.
pub fn emit_text(module: &Module, options: &Options) -> Result<String, Box<Diagnostic>> {
    Ok(emit_module(module, options, None)?.text)
}

/// Emits a module as LLVM text, with functions and lines of the source if `lines` is given.
pub fn emit_module(module: &Module, options: &Options, lines: Option<Lines>) -> Result<Emitted, Box<Diagnostic>> {
    emit_versions(&[(module, lines)], options)
}

/// Emits modules as one LLVM text: one for all CPUs of the options, or one for each in the order of [`versions`](versions::versions).
/// They all export the same functions.
pub fn emit_versions(programs: &[Program], options: &Options) -> Result<Emitted, Box<Diagnostic>> {
    let Some(&(module, lines)) = programs.first() else { return Err(bug("there is no program to emit")) };
    let targets = targets(module, options)?;
    let mut facts = Facts::of(module);
    let own = if programs.len() > 1 { programs } else { &[] };
    if !own.is_empty() {
        if own.len() != targets.len() {
            return Err(bug("not each CPU has a program"));
        }
        let symbols = own.iter().flat_map(|(module, _)| module.funcs.iter().filter_map(Function::symbol));
        facts.symbols = Arc::new(symbols.map(String::from).collect());
    }
    let mut emitter = Emitter::new(module, options, targets, facts, lines, None, own);
    emitter.emit()?;
    let symbols = module.funcs.iter().enumerate().map(|(i, f)| emitter.symbols(Func::from_idx(i), f)).collect();
    Ok(emitter.finish(symbols).0)
}

/// Emits a module as the texts of its units, see [`crate::units`]. Each refers to symbols of the others.
pub fn emit_units(module: &Module, options: &Options, lines: Option<Lines>) -> Result<Vec<Emitted>, Box<Diagnostic>> {
    // Without optimization a unit's own costs are more than its code's.
    let is_cut = options.more_cpus.is_empty() && options.opt_level > 0;
    let Some(units) = units::cut(module, options.max_unit).filter(|_| is_cut) else {
        return Ok(vec![emit_module(module, options, lines)?]);
    };
    let targets = targets(module, options)?;
    let mut facts = Facts::of(module);
    let mut all = Vec::with_capacity(units.all.len());
    for index in 0..units.all.len() {
        let part = Part { units: &units, index };
        let mut emitter = Emitter::new(module, options, targets.clone(), facts, lines, Some(part), &[]);
        emitter.emit()?;
        let (emitted, found) = emitter.finish(Vec::new());
        all.push(emitted);
        facts = found;
    }
    Ok(all)
}

/// The machines that a module is compiled for; an error if it cannot be compiled as it is.
fn targets(module: &Module, options: &Options) -> Result<Vec<Target>, Box<Diagnostic>> {
    if module.target().is_gpu()
        && let Some(f) = module.funcs.iter().find(|f| matches!(f.linkage, Linkage::Exported(_) | Linkage::Callback))
    {
        return Err(Box::new(unknown_target::of_kernels(f.span, &module.target().triple)));
    }
    let mut exported: FxHashMap<&str, Span> = FxHashMap::default();
    for function in &module.funcs {
        if let Linkage::Exported(symbol) = &function.linkage
            && let Some(first) = exported.insert(symbol, function.span)
        {
            return Err(Box::new(duplicate_symbol::error(function.span, symbol, first)));
        }
    }
    versions::versions(module.target(), options)
}

/// Analyses of a module, which the emission of all its units shares.
struct Facts<'m> {
    groups: Vec<Option<u32>>,
    /// Symbols are fixed by the program; our own names must differ from them.
    symbols: Arc<FxHashSet<String>>,
    escapes: Escapes<'m>,
    frames: Frames<'m>,
}

impl<'m> Facts<'m> {
    fn of(module: &'m Module) -> Facts<'m> {
        Facts {
            groups: jumping_groups(module),
            symbols: Arc::new(module.funcs.iter().filter_map(Function::symbol).map(String::from).collect()),
            escapes: Escapes::new(module),
            frames: Frames::new(module),
        }
    }
}

impl<'m> Emitter<'m> {
    fn new(
        module: &'m Module,
        options: &'m Options,
        targets: Vec<Target>,
        facts: Facts<'m>,
        lines: Option<Lines<'m>>,
        part: Option<Part<'m>>,
        programs: &[Program<'m>],
    ) -> Emitter<'m> {
        let mut names = Names::new(facts.symbols);
        let mut versions = Vec::new();
        let several = targets.len() > 1;
        for (version, target) in targets.into_iter().enumerate() {
            let module = programs.get(version).map_or(module, |program| program.0);
            let funcs: Vec<Func> = match part {
                Some(part) => part.unit().own.iter().chain(&part.unit().copies).copied().collect(),
                None => (0..module.funcs.len()).map(Func::from_idx).collect(),
            };
            let suffix =
                if several { format!(".{}", target.cpu.as_deref().unwrap_or_default()) } else { String::new() };
            let mut own_names = FxHashMap::default();
            for &func in &funcs {
                let shared = part.and_then(|part| part.units.funcs.get(&func));
                let own = || names.pick("impala.", &module.func(func).name, &suffix);
                own_names.insert(func, shared.cloned().unwrap_or_else(own));
            }
            let mut entries = FxHashMap::default();
            for &func in &funcs {
                let shared = part.and_then(|part| part.units.entries.get(&func));
                let function = module.func(func);
                let name = match &function.linkage {
                    Linkage::Callback => match shared {
                        Some(name) => name.clone(),
                        None => names.pick("callback.", &function.name, &suffix),
                    },
                    Linkage::Exported(symbol) if several => names.pick("", symbol, &suffix),
                    _ => continue,
                };
                entries.insert(func, name);
            }
            let attributes = versions::attributes(&target, options, several);
            versions.push(Version { target, attributes, funcs: own_names, entries });
        }
        let indirect_names = match versions.len() {
            1 => Vec::new(),
            _ if !programs.is_empty() => Vec::new(),
            _ => module.funcs.iter().map(|f| names.pick("impala.", &f.name, ".any-cpu")).collect(),
        };
        let mut emitter = Emitter {
            programs: programs.to_vec(),
            module,
            options,
            part,
            names,
            cc: if module.target().tail_calls { "tailcc " } else { "" },
            layouts: Layouts::new(&module.types, module.target().c_abi),
            versions,
            version: 0,
            indirect_names,
            indirect: BTreeSet::new(),
            globals: FxHashMap::default(),
            declared: BTreeMap::new(),
            thunks: Vec::new(),
            needs_splat: false,
            jumping_group: facts.groups,
            origins: lines.map(|l| Origins::new(l, options.opt_level > 0)),
            asm_checks: Vec::new(),
            metadata: Vec::new(),
            metadata_at: FxHashMap::default(),
            escapes: facts.escapes,
            frames: facts.frames,
            out: String::new(),
        };
        if part.is_none() {
            emitter.name_globals();
        }
        emitter
    }

    /// Gives the statics of the module names; with those of its version, if each has statics of its own.
    fn name_globals(&mut self) {
        let cpu = self.versions[self.version].target.cpu.as_deref().filter(|_| !self.programs.is_empty());
        let suffix = cpu.map_or(String::new(), |cpu| format!(".{cpu}"));
        let name = |g: &Global| self.names.pick("static.", &g.name, &suffix);
        let names = self.module.globals.iter().map(name).enumerate();
        self.globals = names.map(|(i, name)| (GlobalId::from_idx(i), name)).collect();
    }

    /// The symbols of the code of a function of the first module, in all versions.
    fn symbols(&self, func: Func, f: &Function) -> Vec<String> {
        let mut symbols = Vec::new();
        for (number, version) in self.versions.iter().enumerate() {
            // In other modules functions of the same name are the same.
            let same: Vec<Func> = match self.programs.get(number).filter(|_| number > 0) {
                Some((module, _)) => {
                    (0..module.funcs.len()).map(Func::from_idx).filter(|&k| module.func(k).name == f.name).collect()
                }
                None => vec![func],
            };
            let own = same.iter().flat_map(|k| [version.funcs.get(k), version.entries.get(k)]);
            symbols.extend(own.flatten().cloned());
        }
        symbols.extend(f.symbol().filter(|_| !f.is_foreign()).map(String::from));
        symbols
    }

    /// The text, and the analyses for the next unit.
    fn finish(self, symbols: Vec<Vec<String>>) -> (Emitted, Facts<'m>) {
        let target = self.module.target().clone();
        let emitted = Emitted { symbols, target, text: self.out, asm_checks: self.asm_checks };
        let (groups, symbols) = (self.jumping_group, self.names.fixed);
        (emitted, Facts { groups, symbols, escapes: self.escapes, frames: self.frames })
    }
}

/// `name` as a symbol in LLVM text.
pub fn quote(name: &str) -> String {
    let mut out = String::from("@\"");
    for b in name.bytes() {
        match b {
            b'"' | b'\\' | 0..=31 | 127.. => {
                let _ = write!(out, "\\{b:02X}");
            }
            _ => out.push(b as char),
        }
    }
    out.push('"');
    out
}

impl<'m> Emitter<'m> {
    fn emit(&mut self) -> Result<(), Box<Diagnostic>> {
        match self.part {
            None => self.emit_globals()?,
            Some(part) => self.emit_globals_of(part)?,
        }
        let module = self.module;
        let is_exported = |f: &Func| match &module.func(*f).linkage {
            Linkage::Exported(symbol) => Some(symbol.as_str()),
            _ => None,
        };
        let funcs = self.funcs();
        let exported: FxHashSet<&str> = funcs.iter().filter_map(is_exported).collect();
        for version in 0..self.versions.len() {
            self.enter_version(version);
            if version > 0 && !self.programs.is_empty() {
                self.enter_program(self.programs[version])?;
            }
            self.emit_functions()?;
            if !self.programs.is_empty() {
                self.emit_thunks()?;
            }
        }
        // The following code runs on each of the CPUs.
        self.enter_version(0);
        if self.versions.len() > 1 {
            self.emit_indirect()?;
        }
        self.emit_thunks()?;
        if self.needs_splat {
            let attributes = format!("#0{} {{", self.version_attributes());
            self.out.push_str(&SPLAT.replacen("#0 {", &attributes, 1));
            self.declare_memcpy();
        }
        for (symbol, declaration) in &self.declared {
            if !exported.contains(symbol.as_str()) {
                let _ = writeln!(self.out, "{declaration}");
            }
        }
        if module.target().is_gpu() {
            self.out.push_str(gpu::ATTRIBUTES);
        } else {
            self.out.push_str(ATTRIBUTES);
        }
        for (i, node) in self.metadata.iter().enumerate() {
            let _ = writeln!(self.out, "!{} = {node}", FIRST_METADATA + i);
        }
        if let Some(origins) = &mut self.origins {
            origins.write(&self.module.types, &mut self.out);
        }
        Ok(())
    }

    fn enter_version(&mut self, version: usize) {
        self.version = version;
    }

    /// Goes on with the module of the current version, its statics first.
    fn enter_program(&mut self, (module, lines): Program<'m>) -> Result<(), Box<Diagnostic>> {
        if let (Some(origins), Some(lines)) = (&mut self.origins, lines) {
            origins.enter(&self.module.types, lines);
        }
        let Facts { groups, escapes, frames, symbols: _ } = Facts::of(module);
        self.module = module;
        self.layouts = Layouts::new(&module.types, module.target().c_abi);
        (self.jumping_group, self.escapes, self.frames) = (groups, escapes, frames);
        self.name_globals();
        self.emit_globals()
    }

    fn emit_globals(&mut self) -> Result<(), Box<Diagnostic>> {
        for i in 0..self.module.globals.len() {
            self.emit_global(GlobalId::from_idx(i), "internal ")?;
        }
        Ok(())
    }

    fn emit_thunks(&mut self) -> Result<(), Box<Diagnostic>> {
        let mut i = 0;
        while i < self.thunks.len() {
            self.emit_thunk(self.thunks[i])?;
            i += 1;
        }
        self.thunks.clear();
        Ok(())
    }

    /// Text after the attributes of functions of the current version.
    pub fn version_attributes(&self) -> &str {
        &self.versions[self.version].attributes
    }

    /// The functions with a body, in order.
    fn funcs(&self) -> Vec<Func> {
        match self.part {
            Some(part) => part.unit().own.iter().chain(&part.unit().copies).copied().collect(),
            None => (0..self.module.funcs.len())
                .map(Func::from_idx)
                .filter(|&f| !self.module.func(f).is_foreign())
                .collect(),
        }
    }

    /// The linkage of the definition of a function.
    pub fn linkage(&self, func: Func) -> &'static str {
        match self.part {
            Some(part) if part.units.unit_of[func.idx()] != Some(part.index) => self.copy(),
            Some(part) if part.units.funcs.contains_key(&func) => self.shared(),
            _ => "internal ",
        }
    }

    /// The linkage of what units share, and of copies of it.
    fn shared(&self) -> &'static str {
        if self.options.hides_shared { "hidden " } else { "" }
    }

    fn copy(&self) -> &'static str {
        if self.options.hides_shared { HIDDEN_COPY } else { COPY }
    }

    /// Emits all functions with a body, in the current version.
    fn emit_functions(&mut self) -> Result<(), Box<Diagnostic>> {
        let module = self.module;
        for func in self.funcs() {
            emit_function(self, func)?;
            let function = module.func(func);
            match &function.linkage {
                _ if self.linkage(func) == self.copy() => {}
                Linkage::Exported(_) | Linkage::Callback => {
                    let symbol = self.c_name(func)?;
                    let is_shared = self.part.is_some_and(|part| part.units.entries.contains_key(&func));
                    let linkage = match &function.linkage {
                        Linkage::Callback if is_shared => self.shared(),
                        Linkage::Exported(_) if self.versions.len() == 1 => "",
                        _ => "internal ",
                    };
                    self.emit_entry(linkage, &symbol, func)?;
                }
                Linkage::Kernel(..) => self.emit_kernel(func)?,
                Linkage::Internal | Linkage::Foreign(_) | Linkage::Asm(_) => {}
            }
        }
        Ok(())
    }

    /// Emits the functions that choose among the versions: of exported functions, and of those that statics refer to.
    fn emit_indirect(&mut self) -> Result<(), Box<Diagnostic>> {
        let module = self.programs.first().map_or(self.module, |program| program.0);
        let exported = module.funcs.iter().enumerate().filter_map(|(i, f)| match &f.linkage {
            Linkage::Exported(symbol) => Some(("", symbol, i)),
            _ => None,
        });
        let of_statics = self.indirect.iter().map(|f| ("internal ", &self.indirect_names[f.idx()], f.idx()));
        let mut out = versions::level_text();
        let mut resolvers = Vec::new();
        for (linkage, name, i) in exported.chain(of_statics) {
            let exported_by = |f: &Function| matches!(&f.linkage, Linkage::Exported(symbol) if symbol == name);
            let mut made: Vec<(String, &str)> = Vec::new();
            for (number, version) in self.versions.iter().enumerate() {
                let at = match self.programs.get(number) {
                    Some((module, _)) => module.funcs.iter().position(exported_by),
                    None => Some(i),
                };
                let symbols = if linkage.is_empty() { &version.entries } else { &version.funcs };
                let symbol = at.and_then(|at| symbols.get(&Func::from_idx(at)));
                let symbol = symbol.ok_or_else(|| bug(format!("not each version has `{name}`")))?;
                made.push((quote(symbol), version.target.cpu.as_deref().unwrap_or_default()));
            }
            let resolver = quote(&format!("nyala.choose.{name}"));
            versions::indirect(linkage, &quote(name), &resolver, &made, &mut out);
            resolvers.push(format!("ptr {resolver}"));
        }
        versions::keep(&resolvers, &mut out);
        self.out.push_str(&out);
        Ok(())
    }

    /// Adds a distinct node of metadata, `rest` after its reference to itself; returns its name.
    pub fn distinct_metadata(&mut self, rest: &str) -> String {
        let name = format!("!{}", FIRST_METADATA + self.metadata.len());
        self.metadata.push(format!("distinct !{{{name}{rest}}}"));
        name
    }

    /// Adds a node of metadata, unless there is one with this text; returns its name.
    pub fn metadata(&mut self, node: &str) -> String {
        let next = self.metadata.len();
        let at = *self.metadata_at.entry(node.into()).or_insert(next);
        if at == next {
            self.metadata.push(node.into());
        }
        format!("!{}", FIRST_METADATA + at)
    }

    /// The name of the `tailcc` function of a function with a body; for a foreign one, of a thunk.
    pub fn internal_name(&mut self, func: Func) -> String {
        let mut version = self.version;
        if self.module.func(func).is_foreign() {
            if self.programs.is_empty() {
                version = 0;
            }
            if !self.thunks.contains(&func) {
                self.thunks.push(func);
            }
        } else if let Some(part) = self.part.filter(|part| part.is_outside(func)) {
            let name = part.units.funcs.get(&func).map_or("", |name| name);
            self.declare_outside(name, func);
            return quote(name);
        }
        self.own_name(version, func)
    }

    /// The name that is given to a function here.
    fn own_name(&mut self, version: usize, func: Func) -> String {
        let (names, name) = (&mut self.names, &self.module.func(func).name);
        quote(self.versions[version].funcs.entry(func).or_insert_with(|| names.pick("impala.", name, "")))
    }

    /// Declares a function that another unit defines.
    fn declare_outside(&mut self, name: &str, func: Func) {
        if self.declared.contains_key(name) {
            return;
        }
        // The text is that of the definition: what is wrong with it is reported there.
        if let Ok((ret, params)) = self.head(func) {
            let cc = self.convention(&self.module.func(func).params);
            let shared = self.shared();
            let declaration = format!("declare {shared}{cc}{ret} {}({}) #1", quote(name), params.join(", "));
            self.declared.insert(name.to_string(), declaration);
        }
    }

    /// The types of a function's result and parameters in LLVM's text.
    pub fn head(&mut self, func: Func) -> Result<(String, Vec<String>), Box<Diagnostic>> {
        let function = self.module.func(func);
        let mut params = Vec::new();
        let ret = match self.layouts.ret_class(&function.rets)? {
            RetClass::Direct(ty) => ty,
            RetClass::Memory => {
                params.push("ptr noalias".to_string());
                "void".into()
            }
        };
        let by_address = self.passes_vectors_by_address(&function.params);
        for &ty in &function.params {
            params.push(if by_address && self.layouts.has_vector(ty) {
                "ptr".to_string()
            } else if self.layouts.is_mask(ty) {
                self.layouts.memory(ty)?
            } else {
                self.layouts.register(ty)?
            });
        }
        Ok((ret, params))
    }

    /// The name of a function in the initializer of a static, which exists once for all versions of a module.
    pub fn static_name(&mut self, func: Func) -> String {
        if self.versions.len() == 1 || !self.programs.is_empty() || self.module.func(func).is_foreign() {
            return self.internal_name(func);
        }
        self.indirect.insert(func);
        quote(&self.indirect_names[func.idx()])
    }

    /// The symbol by which C code calls a function.
    pub fn c_name(&mut self, func: Func) -> Result<String, Box<Diagnostic>> {
        let function = self.module.func(func);
        match &function.linkage {
            Linkage::Exported(symbol) if self.versions.len() == 1 => {
                if self.part.is_some_and(|part| part.units.unit_of[func.idx()] != Some(part.index)) {
                    self.declare_foreign(symbol, function)?;
                }
                Ok(quote(symbol))
            }
            Linkage::Callback if let Some(name) = self.entry_outside(func) => {
                self.declare_entry(name, function)?;
                Ok(quote(name))
            }
            Linkage::Foreign(symbol) => {
                self.declare_foreign(symbol, function)?;
                Ok(quote(symbol))
            }
            Linkage::Exported(_) | Linkage::Callback => Ok(quote(&self.versions[self.version].entries[&func])),
            Linkage::Internal | Linkage::Kernel(..) | Linkage::Asm(_) => {
                Err(bug(format!("`{}` has no C symbol", function.name)))
            }
        }
    }

    /// The name of a callback's entry that another unit defines.
    fn entry_outside(&self, func: Func) -> Option<&'m str> {
        let part = self.part.filter(|part| part.units.unit_of[func.idx()] != Some(part.index))?;
        part.units.entries.get(&func).map(String::as_str)
    }

    /// Declares a static that another unit defines.
    fn declare_global(&mut self, global: GlobalId, name: String) {
        let kind = if self.module.globals[global.idx()].mutable { "global" } else { "constant" };
        // A declaration whose address alone is used needs no type.
        let visibility = self.shared();
        self.declare(&name, || format!("{} = external {visibility}{kind} i8", quote(&name)));
        self.globals.insert(global, name);
    }

    pub fn global_name(&mut self, global: GlobalId) -> String {
        if let (Some(part), None) = (self.part, self.globals.get(&global))
            && let Some(name) = part.units.globals.get(&global)
        {
            self.declare_global(global, name.clone());
        }
        quote(self.globals.get(&global).map_or("", |name| name))
    }

    /// Whether a function with these parameters gets those that contain vectors by address. See Note [Vectors as
    /// arguments].
    pub fn passes_vectors_by_address(&mut self, params: &[Ty]) -> bool {
        // By AArch64's calling convention, vectors are passed in registers of NEON.
        let bits = if self.target().has_sve() { 128 } else { self.target().vector_bits };
        !self.layouts.vectors_fit(params, bits)
    }

    /// The calling convention of internal functions with these parameters.
    pub fn convention(&mut self, params: &[Ty]) -> &'static str {
        // See Note [Vectors as arguments] and Note [Stack arguments on 64-bit ARM].
        let is_tailcc = !self.cc.is_empty();
        if is_tailcc && (self.passes_vectors_by_address(params) || self.must_not_pop(params)) {
            "fastcc "
        } else {
            self.cc
        }
    }

    /// Whether arguments of these types may need the stack, on a machine where a callee must not give it back.
    fn must_not_pop(&mut self, params: &[Ty]) -> bool {
        if self.target().arch != Arch::Aarch64 {
            return false;
        }
        let (mut ints, mut floats) = (0u64, 0u64);
        for &ty in params {
            let (i, f) = if self.layouts.in_memory(ty) { (1, 0) } else { self.layouts.leaves(ty) };
            ints = ints.saturating_add(i);
            floats = floats.saturating_add(f);
        }
        // Of eight registers for integers one may be taken by the address of a result.
        ints > 7 || floats > 8
    }

    /// The machine of the current version.
    pub fn target(&self) -> &Target {
        &self.versions[self.version].target
    }

    /// Declares a symbol that is used; its first declaration stays.
    pub fn declare(&mut self, symbol: &str, declaration: impl FnOnce() -> String) {
        if !self.declared.contains_key(symbol) {
            self.declared.insert(symbol.to_string(), declaration());
        }
    }

    pub fn declare_memcpy(&mut self) {
        self.declare("llvm.memcpy.p0.p0.i64", || {
            "declare void @llvm.memcpy.p0.p0.i64(ptr noalias writeonly, ptr noalias readonly, i64, i1 immarg)".into()
        });
    }

    /// The suffixes of a function's header and of the instructions of its entry.
    pub fn scope(&mut self, function: &Function) -> (String, String) {
        match &mut self.origins {
            Some(origins) => {
                let scope = origins.function(&function.name, function.span);
                (scope.suffix(), origins.suffix(scope, function.span))
            }
            None => (String::new(), String::new()),
        }
    }

    /// Emits the statics that a unit defines, or has copies of.
    fn emit_globals_of(&mut self, part: Part<'m>) -> Result<(), Box<Diagnostic>> {
        let unit = part.unit();
        let is_last = part.index + 1 == part.units.all.len();
        let mut linkages = Vec::new();
        for &id in &unit.globals {
            let (name, linkage) = match part.units.globals.get(&id) {
                Some(name) => (name.clone(), if is_last { self.shared() } else { self.copy() }),
                None => (self.names.pick("static.", &self.module.globals[id.idx()].name, ""), "internal "),
            };
            self.globals.insert(id, name);
            linkages.push((id, linkage));
        }
        for (id, linkage) in linkages {
            self.emit_global(id, linkage)?;
        }
        for (id, name) in &unit.texts {
            if is_last {
                let before = self.globals.insert(*id, name.clone());
                let linkage = self.shared();
                self.emit_global(*id, linkage)?;
                match before {
                    Some(before) => self.globals.insert(*id, before),
                    None => self.globals.remove(id),
                };
            } else {
                self.declare_global(*id, name.clone());
            }
        }
        Ok(())
    }
}

/// A literal in LLVM text, in its register type.
pub(crate) fn prim_text(prim: Prim, bits: u64) -> String {
    match prim {
        Prim::Bool => (bits != 0).to_string(),
        Prim::F32 => {
            let bits = bits as u32;
            let x = f32::from_bits(bits);
            // LLVM's notation of single precision is the double of the same value.
            let wide = if x.is_nan() {
                (u64::from(bits >> 31) << 63) | (0x7ff << 52) | (u64::from(bits & 0x7f_ffff) << 29)
            } else {
                f64::from(x).to_bits()
            };
            format!("0x{wide:016X}")
        }
        Prim::F64 => format!("0x{bits:016X}"),
        Prim::F16 => format!("0xH{bits:04X}"),
        _ if prim.is_signed() => (bits as i64).to_string(),
        _ => bits.to_string(),
    }
}

/// An address made from an integer.
pub(crate) fn address_text(bits: u64) -> String {
    if bits == 0 { "null".into() } else { format!("inttoptr (i64 {bits} to ptr)") }
}

/// Attributes of the host's functions and calls; 5 and 6 are those of the runtime's functions that allocate and free
/// memory.
const ATTRIBUTES: &str = "\
attributes #0 = { nounwind \"probe-stack\"=\"inline-asm\" }
attributes #1 = { nounwind }
attributes #2 = { nounwind willreturn memory(none) }
attributes #3 = { nounwind noinline optnone \"probe-stack\"=\"inline-asm\" }
attributes #4 = { nounwind noinline }
attributes #7 = { nounwind willreturn memory(none) nobuiltin }
attributes #8 = { nounwind nobuiltin }
attributes #5 = { nounwind willreturn allockind(\"alloc,uninitialized\") allocsize(0) \"alloc-family\"=\"nyala\" \
memory(inaccessiblemem: readwrite) }
attributes #6 = { nounwind willreturn allockind(\"free\") \"alloc-family\"=\"nyala\" \
memory(argmem: readwrite, inaccessiblemem: readwrite) }
";

/// Copies the first element of an array to all others.
const SPLAT: &str = "\
define internal void @nyala.splat(ptr %array, i64 %size, i64 %n) #0 {
entry:
  %any = icmp ugt i64 %n, 1
  br i1 %any, label %loop, label %exit
loop:
  %i = phi i64 [ 1, %entry ], [ %next, %loop ]
  %offset = mul i64 %i, %size
  %to = getelementptr i8, ptr %array, i64 %offset
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %array, i64 %size, i1 false)
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %exit
exit:
  ret void
}
";

// Note [Recursion beside jumps]
//
// LLVM 22's elimination of tail recursion turns `return x + f(y)` in `f` into a loop with an accumulator, and adds the
// accumulator to the result of every other return, even between a `musttail` call and its return, which is invalid.
// Calls within a group of mutually recursive functions, one of which ends with such a jump, are therefore marked
// `notail`, which excludes them. Inlining cannot add another recursive call to such a function.

// Note [Stack arguments on 64-bit ARM]
//
// A `tailcc` callee gives back the stack of its arguments. LLVM 22's caller on 64-bit ARM then restores the stack
// pointer, but may reload a spilled register between the call and that, from a wrong address. So functions whose arguments
// do not fit in registers are `fastcc`, where the caller keeps that stack. A call of such a function in tail position is a
// jump only if LLVM can make it one: if the caller is `fastcc`, too, with as many bytes of stack arguments.

// Note [Vectors as arguments]
//
// For a `tailcc` call on x86-64, LLVM 22's caller rounds the size of the stack arguments up to their greatest alignment
// and then to the stack's alignment, but its callee only to the latter: they disagree about the stack pointer if a
// vector is on the stack with a smaller argument. So vectors are passed either all in registers, or all by address, as
// copies of the caller; then a call in tail position is no jump. These functions are `fastcc`, since LLVM turns
// arguments that are only read by address into arguments by value if it sees all calls, and the caller of a `tailcc`
// function does not align vectors on the stack.
