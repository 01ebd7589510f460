//! A program in flat SSA: the walk over the passes of [`FLAT`], with verification after each and the judgment of what the program
//! asserts of its code. Separate from the table, which says what is done and when; this says how.

use crate::graph::Residual;
use crate::pipelines::{BackEnd, FLAT, FlatPass, LLVM, SCHEDULE, Step};
use crate::report::{Failed, Report};
use crate::{Options, closures, devices, ensures};
use nyala_flat::Module;
use nyala_flat::ensure::{self, Stage};
use nyala_ir::Cont;
use nyala_vectorize::Note;

/// A program in flat SSA, after all passes for a back end.
pub struct Flat {
    /// The options for what comes of it.
    pub options: Options,
    /// What was found up to here.
    pub report: Report,
    /// The module, with the modules of devices.
    pub module: Module,
    /// For each function, the function of the residual program that it was made of.
    pub made_of: Vec<Option<Cont>>,
    /// What the vectorizer did, if that was asked for.
    pub notes: Vec<Note>,
}

/// Instructions of a module.
fn size(module: &Module) -> usize {
    module.funcs.iter().flat_map(|f| &f.blocks).map(|b| b.insts.len() + 1).sum()
}

impl Residual {
    /// The program in flat SSA, for a back end. Its kernels are modules of devices, which have no code yet.
    pub fn split(&self, back_end: &BackEnd) -> Result<Flat, Failed> {
        self.passes(back_end, false)
    }

    /// The program in flat SSA, for LLVM, with notes of the vectorizer. Whoever wants to know what became of the code wants to
    /// know it of code that is not as the program asserts, too.
    pub fn split_with_notes(mut self) -> Result<Flat, Failed> {
        self.ensures.clear();
        self.passes(&LLVM, true)
    }

    /// The program in flat SSA before all passes.
    pub(crate) fn scheduled(&self) -> Result<Flat, Failed> {
        let options = self.options.clone();
        let mut report = self.report.clone();
        let scheduled = report.time(
            &options,
            SCHEDULE,
            |r| nyala_schedule::schedule_with_sources(&self.world, &mut r.sink),
            |m| m.as_ref().map_or(0, |(m, _)| size(m)),
        );
        let (mut module, made_of) = report.checked(&options, scheduled)?;
        module.set_target(options.target());
        Ok(Flat { options, report, module, made_of, notes: Vec::new() })
    }

    fn passes(&self, back_end: &BackEnd, notes: bool) -> Result<Flat, Failed> {
        let options = &self.options;
        let Flat { mut report, mut module, made_of, .. } = self.scheduled()?;
        let mut failures = ensure::watch(&mut module, &self.ensures, report.origins());
        verify(options, &mut report, SCHEDULE, &module)?;
        let mut notes = notes.then(Vec::new);
        for pass in FLAT {
            if let Some(stage) = pass.judged {
                if back_end.is_judged(stage, options) {
                    failures.append(&mut ensure::judge(&module, &self.ensures, report.origins(), stage));
                }
                if stage == Stage::Vectorized {
                    ensures::report(self, &mut report, &failures)?;
                }
            }
            if !pass.applies(options, back_end, &module) {
                continue;
            }
            report.time(
                options,
                pass.name,
                |r| {
                    for mut d in pass.run_on(&mut module, options, r, notes.as_mut()) {
                        closures::explain_choice(&self.world, &r.sources, &mut d);
                        r.sink.push(d);
                    }
                    size(&module)
                },
                |size| *size,
            );
            report.check(options)?;
            verify(options, &mut report, pass.name, &module)?;
        }
        Ok(Flat { options: options.clone(), report, module, made_of, notes: notes.unwrap_or_default() })
    }
}

impl FlatPass {
    fn applies(&self, options: &Options, back_end: &BackEnd, module: &Module) -> bool {
        options.opt_level >= self.min_level
            && self.checks.is_none_or(|is_asked| is_asked(options.checked()))
            && !(self.in_lanes && back_end.keeps_lanes.is_some_and(|keeps| keeps(module)))
            && self.devices.is_none_or(|of| module.devices.iter().filter_map(devices::back_end).any(of))
    }

    /// Runs the pass on the program's module, or on those of devices.
    pub(crate) fn run_on(
        &self,
        module: &mut Module,
        options: &Options,
        report: &Report,
        notes: Option<&mut Vec<Note>>,
    ) -> Vec<nyala_base::Diagnostic> {
        let mut step = Step { options, report, device: None, notes };
        let Some(is_of) = self.devices else { return (self.run)(module, &mut step) };
        let mut found = Vec::new();
        for device in &mut module.devices {
            step.device = devices::back_end(device).filter(|back_end| is_of(back_end));
            if step.device.is_some() {
                found.append(&mut (self.run)(&mut device.module, &mut step));
            }
        }
        found
    }
}

/// Verifies a module and those of its devices.
fn verify(options: &Options, report: &mut Report, pass: &str, module: &Module) -> Result<(), Failed> {
    if !options.verify {
        return Ok(());
    }
    for module in std::iter::once(module).chain(module.devices.iter().map(|d| &d.module)) {
        if let Err(fault) = nyala_flat::verify(module) {
            return Err(report.bug(pass, &format!("{fault:?}")));
        }
    }
    Ok(())
}
