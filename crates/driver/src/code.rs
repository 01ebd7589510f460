//! A program as LLVM's text, and what LLVM makes of it: an optimized module, an object, the sizes of functions. Separate from flat
//! SSA, which other back ends take as well.

use crate::flat::Flat;
use crate::front::FrontEnd;
use crate::graph::Graph;
use crate::report::{Failed, Report};
use crate::{Options, cache, versions};
use nyala_base::diagnostics::bug;
use nyala_base::{Id, Span};
use nyala_flat::InstOp;
use nyala_gen_llvm::{Emitted, LlvmModule};
use nyala_ir::Cont;
use object::{Object, ObjectSection, ObjectSymbol};
use std::collections::HashMap;

/// A program as the text that LLVM gets.
pub struct Code {
    /// The options for what comes of it.
    pub options: Options,
    /// What was found up to here.
    pub report: Report,
    /// The text, with the symbols that each function has in it.
    pub emitted: Emitted,
}

pub(crate) fn llvm_options(options: &Options) -> nyala_gen_llvm::Options {
    nyala_gen_llvm::Options {
        opt_level: options.opt_level,
        more_cpus: options.more_cpus.clone(),
        vector_width: options.vector_width,
        sanitizer: options.sanitizer,
        max_unit: options.max_unit,
        confined: options.confined.is_some(),
        ..Default::default()
    }
}

impl FrontEnd {
    /// The code of the program, of which this is the graph: of all versions, if it is for several CPUs.
    pub fn code(&self, graph: &Graph) -> Result<Code, Failed> {
        Code::of_versions(&versions::of(self, graph, |graph| graph.residual()?.flat())?, None)
    }
}

impl Code {
    /// The code of a program, with functions and lines if there is a folder that names of files start from.
    pub fn of(flat: &Flat, folder: Option<&str>) -> Result<Code, Failed> {
        Code::of_versions(std::slice::from_ref(flat), folder)
    }

    /// The code of a program for several CPUs, see [`versions`](crate::versions).
    pub(crate) fn of_versions(flats: &[Flat], folder: Option<&str>) -> Result<Code, Failed> {
        let Flat { report, options, .. } = flats.first().ok_or_else(|| Box::new(Report::default()))?;
        let mut report = report.clone();
        let own: Vec<_> = flats.iter().map(|flat| |span| flat.report.own_place(span)).collect();
        let mut programs: Vec<nyala_gen_llvm::Program> = Vec::new();
        for (Flat { module, report, options, .. }, own) in flats.iter().zip(&own) {
            let calls = options.debug.then_some(&*report.calls);
            let sources = &report.sources;
            let lines = folder.map(|folder| nyala_gen_llvm::Lines { sources, folder, own, calls, in_sections: false });
            programs.push((module, lines));
        }
        let emit = || nyala_gen_llvm::emit_versions(&programs, &llvm_options(options));
        let emitted = report.time(options, "emit", |_| emit(), |_| 0);
        let emitted = emitted.map_err(|d| report.report(*d))?;
        Ok(Code { options: options.clone(), report, emitted })
    }

    /// The module, optimized.
    pub fn optimized(&mut self) -> Result<LlvmModule, Failed> {
        let Code { options, report, emitted } = self;
        let of_llvm = llvm_options(options);
        let parsed = report.time(options, "llvm-read", |_| emitted.parse(&of_llvm), |_| 0);
        let mut llvm = parsed.map_err(|d| report.report(*d))?;
        let optimized = report.time(options, "llvm-optimize", |_| llvm.optimize(), |_| 0);
        optimized.map_err(|d| report.report(*d))?;
        Ok(llvm)
    }

    /// The object: kept from an earlier run, or made now.
    pub fn object(&mut self) -> Result<Vec<u8>, Failed> {
        let Some(cache) = self.options.cache.clone() else { return self.fresh_object() };
        // In the table of times a size of 0 is a miss.
        let lookup = |cache: &cache::Objects, emitted: &Emitted, options: &Options| {
            let key = cache.key(emitted, &cache::Setting::new(&llvm_options(options), &emitted.target));
            let object = cache.get(&key);
            (key, object)
        };
        let Code { options, report, emitted } = self;
        let size = |found: &(_, Option<Vec<u8>>)| found.1.as_ref().map_or(0, Vec::len);
        let (key, kept) = report.time(options, "native-cache", |_| lookup(&cache, emitted, options), size);
        if let Some(object) = kept {
            return Ok(object);
        }
        let object = self.fresh_object()?;
        self.report.time(&self.options, "native-cache-store", |_| cache.put(&key, &object), |()| 0);
        Ok(object)
    }

    fn fresh_object(&mut self) -> Result<Vec<u8>, Failed> {
        let llvm = self.optimized()?;
        let Code { options, report, .. } = self;
        let size = |object: &Result<Vec<u8>, _>| object.as_ref().map_or(0, Vec::len);
        let object = report.time(options, "llvm-codegen", |_| llvm.object(), size);
        object.map_err(|d| report.report(*d))
    }
}

impl Flat {
    /// The bytes of machine code that each function of the residual program became, with its pieces, those of functions that were
    /// inlined into all their callers 0, and of all code together.
    ///
    /// # Errors
    /// The code cannot be compiled.
    pub fn code_sizes(&self) -> Result<(Vec<(Cont, u64)>, u64), Failed> {
        let mut code = Code::of(self, None)?;
        let object = code.object()?;
        let file = object::File::parse(&*object).map_err(|e| {
            let fault = format!("an object made by LLVM cannot be read: {e}");
            code.report.report(bug::error(Span::NONE, fault))
        })?;
        let text = file.sections().filter(|s| s.kind() == object::SectionKind::Text).map(|s| s.size()).sum();
        let functions = file.symbols().filter(|s| s.kind() == object::SymbolKind::Text);
        let sizes: HashMap<&str, u64> = functions.filter_map(|s| Some((s.name().ok()?, s.size()))).collect();
        let size = |symbols: &[String]| symbols.iter().filter_map(|s| sizes.get(s.as_str())).sum::<u64>();
        let mut of: Vec<u64> = code.emitted.symbols.iter().map(|symbols| size(symbols)).collect();
        for (f, function) in self.module.funcs.iter().enumerate() {
            for inst in function.blocks.iter().flat_map(|b| &b.insts) {
                if let InstOp::Call(piece) = inst.op
                    && self.module.func(piece).is_piece
                {
                    of[f] += of[piece.idx()];
                }
            }
        }
        let all = self.made_of.iter().zip(of);
        Ok((all.filter_map(|(k, size)| Some(((*k)?, size))).collect(), text))
    }
}
