//! What programs know of their target: the statics of the library `std::target` get the facts of the machine that code is made for.
//! Separate from the front end, since only this knows names and values, and how they are told.
//!
//! # Design
//!
//! A fact is an immutable `static` of a library, and nothing else: its initializer is replaced before names are resolved, as `-D` and
//! `nyala tune` replace those of a program's statics. So a fact is a constant for each part of the compiler that knows constants:
//!
//! - the checker, which computes lengths of arrays and arguments of `const` parameters from the initializers of statics;
//! - lowering, which replaces an immutable static by its value, with `--no-pe`, too; other statics may be computed from facts, also by `if`
//!   and calls, and have candidates for `nyala tune`;
//! - the interpreter, which runs the same graph;
//! - caches, whose keys have the text that the facts led to. What `nyala tune` stores is for a machine with these facts
//!   ([`Trees::machine`]).
//!
//! `-D VECTOR_BYTES=16` replaces a fact as any static. That makes no wrong code: facts choose among programs that are all right.
//!
//! Whose facts: those of [`Options::target`], the machine that LLVM makes code for. `nyala run --engine interp` names one unless `--cpu` does
//! ([`INTERPRETED`]), so that what it says does not depend on the machine. All engines of `nyala test` run one graph, with the facts of
//! the compiled code.
//!
//! A program *asks* for a fact if code that it reaches, or a type, reads the static. Lowering declares statics of libraries when they
//! are reached, so that is known of the graph ([`asked`]).

use crate::Options;
use crate::diagnostics::target_facts;
use crate::front::{FrontEnd, Trees};
use crate::report::Report;
use nyala_base::{Id, Span};
use nyala_ir::target::Facts;
use nyala_ir::{Arch, Global, Target, World};
use nyala_syntax::ast::{self, ItemKind};
use std::sync::Arc;

/// The path of the library.
const LIBRARY: [&str; 2] = ["std", "target"];

/// Triple and CPU whose facts the interpreter has, if none are named.
pub const INTERPRETED: (&str, &str) = ("x86_64-unknown-linux-gnu", "x86-64-v3");

/// The statics of the library and their values for a machine.
fn values(target: &Target) -> Vec<(&'static str, String)> {
    let Facts {
        vector_bytes,
        vector_registers,
        fma,
        gather,
        masks,
        conflict_detection,
        byte_shuffle,
        popcount,
        caches,
    } = target.facts();
    let architecture = match target.arch {
        Arch::X86_64 => "X86_64",
        Arch::Aarch64 => "Aarch64",
        Arch::RiscV64 => "RiscV64",
        Arch::PowerPc64Le => "PowerPc64Le",
        Arch::LoongArch64 => "LoongArch64",
        Arch::Wasm64 => "Wasm64",
        Arch::AmdGcn | Arch::Nvptx64 | Arch::Unknown => "Other",
    };
    vec![
        ("ARCHITECTURE", format!("Architecture::{architecture}")),
        ("VECTOR_BYTES", vector_bytes.to_string()),
        ("VECTOR_REGISTERS", vector_registers.to_string()),
        ("HAS_FMA", fma.to_string()),
        ("HAS_GATHER", gather.to_string()),
        ("HAS_MASKS", masks.to_string()),
        ("HAS_CONFLICT_DETECTION", conflict_detection.to_string()),
        ("HAS_BYTE_SHUFFLE", byte_shuffle.to_string()),
        ("HAS_POPCOUNT", popcount.to_string()),
        ("CACHE_LINE", caches.line.to_string()),
        ("L1_BYTES", caches.first.to_string()),
        ("L2_BYTES", caches.second.to_string()),
        ("SHARED_CACHE_BYTES", caches.shared.to_string()),
    ]
}

/// The machine whose facts a program has, as messages name it.
fn name(options: &Options) -> String {
    if let (Some(first), [_, ..]) = (&options.cpu, &options.more_cpus[..]) {
        return format!("{first}, {}, for each its own", options.more_cpus.join(", "));
    }
    let target = options.target();
    let cpu = match (&target.cpu, target.is_native) {
        (Some(cpu), _) => cpu.clone(),
        (None, true) => return format!("this machine ({})", nyala_gen_llvm::host_cpu()),
        (None, false) => "the least CPU".into(),
    };
    if target.is_native { cpu } else { format!("{cpu} of {}", target.triple) }
}

fn is_library(module: &ast::Module) -> bool {
    let ast::Module { library, path, .. } = module;
    *library && path.iter().map(|part| &**part).eq(LIBRARY)
}

impl Trees {
    /// Gives the statics of the library, if the program loads it, their values.
    pub(crate) fn define_facts(&mut self) {
        let Some(m) = self.all().iter().position(|module| is_library(module)) else { return };
        let values = values(&self.options.target());
        let text: String = values.iter().map(|(name, value)| format!("{name} = {value}\n")).collect();
        let file = self.report.sources.add(format!("<facts of {}>", name(&self.options)), text.clone());
        let (mut trees, mut found) = (self.all()[m].clone(), nyala_base::Sink::default());
        let module = Arc::make_mut(&mut trees);
        let mut at = 0;
        for (name, value) in values {
            // The expression has its place in that file.
            let before = at + name.len() + " = ".len();
            at = before + value.len() + 1;
            let is_it = |i: &ast::Item| matches!(&i.kind, ItemKind::Static(s) if *s.name.text == *name);
            let Some(item) = module.items.iter().position(is_it) else { continue };
            let init = nyala_syntax::parse_expr(file, &(" ".repeat(before) + &value), module, &mut found);
            if let ItemKind::Static(s) = &mut module.items[item].kind {
                s.init = init.or(s.init);
            }
        }
        self.report.sink.diagnostics.append(&mut found.diagnostics);
        self.modules_mut()[m] = trees;
    }

    /// The machine that tuned values of the program are for, see [`tuning::machine`](crate::tuning::machine). With facts, if the program
    /// may ask for them: values that suit one cache need not suit another.
    pub fn machine(&self) -> String {
        let machine = crate::tuning::machine(self.options.device);
        if !self.all().iter().any(|module| is_library(module)) {
            return machine;
        }
        let Facts { vector_bytes, vector_registers, caches, .. } = self.options.target().facts();
        let [first, second, shared] = [caches.first, caches.second, caches.shared].map(|bytes| bytes >> 10);
        format!(
            "{machine}, {vector_registers} registers of {vector_bytes} bytes, caches of {first}, {second} and {shared} KiB"
        )
    }
}

/// Whether a place is in the library.
fn is_fact(front: &FrontEnd, place: Span) -> bool {
    front.trees().all().iter().any(|m| is_library(m) && m.file == Some(place.file))
}

/// The facts that a program asks for, by name: in code that is reached, and in types.
pub(crate) fn asked(front: &FrontEnd, world: &World) -> Vec<String> {
    let in_code = (0..world.n_globals()).map(|g| world.global(Global::from_idx(g)));
    let in_code = in_code.filter(|g| is_fact(front, g.origin)).map(|g| g.name.to_string());
    let mut all: Vec<String> = in_code.chain(in_types(front)).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// The facts that types depend on, by name.
pub(crate) fn in_types(front: &FrontEnd) -> Vec<String> {
    let facts = front.program().statics_in_types().filter(|s| is_fact(front, s.span));
    let mut all: Vec<String> = facts.map(|s| s.text.to_string()).collect();
    all.sort_unstable();
    all
}

/// Those of the facts that are not the same for all machines, as messages name them.
pub(crate) fn differing(facts: &[String], targets: &[Target]) -> String {
    let all: Vec<_> = targets.iter().map(values).collect();
    let value = |of: &[(&str, String)], fact: &str| of.iter().find(|v| v.0 == fact).map(|v| v.1.clone());
    let differs = |fact: &&String| all.iter().any(|of| value(of, fact) != value(&all[0], fact));
    let names: Vec<String> = facts.iter().filter(differs).map(|fact| format!("`{fact}`")).collect();
    names.join(", ")
}

impl Report {
    /// Adds which facts the program asks for, if it does, and of which machine they are.
    pub fn tell_facts(&mut self, options: &Options) {
        if !self.facts.is_empty() {
            let told = target_facts::info(&self.facts.join(", "), &name(options));
            self.sink.push(told);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text of the library has each fact, with the value that the interpreter has.
    #[test]
    fn the_library_has_the_interpreters_facts() {
        let text = include_str!("../../../lib/std/src/target.impala");
        let (triple, cpu) = INTERPRETED;
        let values = values(&Target::new(Some(triple), Some(cpu)));
        for (name, value) in &values {
            let line =
                text.lines().find(|l| l.strip_prefix("static ").is_some_and(|l| l.starts_with(&format!("{name}:"))));
            assert!(line.is_some_and(|l| l.ends_with(&format!(" = {value};"))), "{name} = {value}: {line:?}");
        }
        assert_eq!(text.matches("\nstatic ").count(), values.len());
    }

    /// Tuned values of a program that may ask for facts are of a machine with these facts.
    #[test]
    fn tuned_values_are_for_facts() {
        let machine = |text: &str| Trees::new(Options::default(), crate::Files::of("p.impala", text)).machine();
        let plain = machine("fn main() -> () {}");
        assert_eq!(plain, crate::tuning::machine(crate::Device::Own));
        let with = machine("use std::target::*;\nfn main() -> () {}");
        let caches = Target::default().facts().caches;
        assert!(with.starts_with(&format!("{plain}, ")), "{with}");
        assert!(with.ends_with(&format!(" and {} KiB", caches.shared >> 10)), "{with}");
    }
}
