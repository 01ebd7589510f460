//! Programs as text, at every stage.

use crate::code::Code;
use crate::devices::{self, CodeOf, libdevice};
use crate::diagnostics::{cannot_emit, no_such_function};
use crate::flat::Flat;
use crate::front::{Files, FrontEnd, Trees};
use crate::graph::{Graph, Residual};
use crate::pipelines::{C, FLAT, GRAPH, SCHEDULE, SPECIALIZE, Step, stages};
use crate::report::{Failed, Report};
use crate::{AMDGPU_USUAL, CUDA_LEAST, CUDA_SOURCE, Device, Options, one_function, sierra, staged, versions};
use nyala_base::diagnostics::{bug, limitation, no_libdevice};
use nyala_base::{Diagnostic, FileId, Id, Span};
use nyala_flat::{Block, Function, Inst, InstOp, Module};
use nyala_gen_llvm::{LlvmModule, needs_libdevice};
use nyala_gen_spirv::Flavor;
use nyala_ir::lanes::{device_function, printed};
use nyala_ir::{Target, World};
use std::path::PathBuf;

/// The stages that can show one function.
const BY_FUNCTION: &[&str] = &["graph", "residual", "flat", "llvm", "asm"];

/// A text, and what was found on the way.
pub type Text = Result<(String, Report), Failed>;

/// The program at one of the [`stages`] as text; one function of it, if named.
pub fn emit(options: &Options, files: &Files, stage: &str, function: Option<&str>) -> Text {
    if function.is_some() && !BY_FUNCTION.contains(&stage) {
        return Err(Report::default().report(cannot_emit::one_function(stage, BY_FUNCTION)));
    }
    match stages().find(|known| known.name == stage) {
        Some(stage) => (stage.text)(options, files, function),
        None => Err(Report::default().report(bug::error(Span::NONE, format!("no stage `{stage}`")))),
    }
}

pub(crate) fn ast(options: &Options, files: &Files, _: Option<&str>) -> Text {
    let mut trees = Trees::new(options.clone(), files.clone());
    trees.report.check(options)?;
    staged::only_impala(&mut trees.report, "syntax trees of programs in DeepCPS or Staged-C")?;
    sierra::only_impala(&mut trees.report, "syntax trees of programs in Sierra")?;
    let text = trees.all().iter().map(|tree| nyala_syntax::print(tree)).collect();
    Ok((text, trees.report))
}

pub(crate) fn graph(options: &Options, files: &Files, function: Option<&str>) -> Text {
    let Graph { world, report, .. } = FrontEnd::new(options.clone(), files.clone()).graph()?;
    print_graph(report, &world, function)
}

pub(crate) fn residual(options: &Options, files: &Files, function: Option<&str>) -> Text {
    residual_of(FrontEnd::new(options.clone(), files.clone()).graph()?.residual()?, function)
}

/// A residual program as text, or one function of it.
pub fn residual_of(residual: Residual, function: Option<&str>) -> Text {
    if let Some(name) = function.filter(|name| !has_function(&residual.world, name)) {
        let Flat { module, mut report, .. } = residual.flat()?;
        return Err(one_function::report_gone(&mut report, &module, name, &|_| true));
    }
    print_graph(residual.report, &residual.world, function)
}

pub(crate) fn flat(options: &Options, files: &Files, function: Option<&str>) -> Text {
    let Flat { module, mut report, .. } = flat_module(options, files)?;
    match function {
        None => Ok((nyala_flat::print(&module, &|_| true), report)),
        Some(name) if !module.funcs.iter().any(|f| one_function::is_called(f, name)) => {
            Err(one_function::report_gone(&mut report, &module, name, &|_| true))
        }
        Some(name) => Ok((nyala_flat::print(&module, &|f| one_function::is_called(f, name)), report)),
    }
}

pub(crate) fn llvm(options: &Options, files: &Files, function: Option<&str>) -> Text {
    of_llvm(options, files, function, |llvm| Ok(llvm.ir_text()), one_function::of_llvm)
}

/// A text of the optimized program; of one function, that which `cut` finds by a symbol.
fn of_llvm(
    options: &Options,
    files: &Files,
    function: Option<&str>,
    text: impl FnOnce(&LlvmModule) -> Result<String, Box<Diagnostic>>,
    cut: fn(&str, &str) -> Option<String>,
) -> Text {
    let front = FrontEnd::new(options.clone(), files.clone());
    let flats = versions::of(&front, &front.graph()?, flat_of)?;
    let mut code = Code::of_versions(&flats, None)?;
    let text = text(&code.optimized()?).map_err(|d| code.report.report(*d))?;
    let Some(name) = function else { return Ok((text, code.report)) };
    let Code { emitted, mut report, .. } = code;
    let symbols = |f: usize| emitted.symbols[f].iter().filter_map(|symbol| cut(&text, symbol));
    let module = &flats[0].module;
    let called = (0..module.funcs.len()).filter(|&f| one_function::is_called(&module.funcs[f], name));
    let parts: Vec<String> = called.flat_map(symbols).collect();
    match parts.is_empty() {
        true => Err(one_function::report_gone(&mut report, module, name, &|f| symbols(f).next().is_some())),
        false => Ok((parts.join("\n"), report)),
    }
}

pub(crate) fn c(options: &Options, files: &Files, _: Option<&str>) -> Text {
    let residual = FrontEnd::new(options.clone(), files.clone()).graph()?.residual()?;
    let flat = residual.flat_for(&C)?;
    let module = &flat.module;
    flat.c_text(module.exported("main").is_some_and(|main| crate::run::is_entry(module, main)))
}

pub(crate) fn asm(options: &Options, files: &Files, function: Option<&str>) -> Text {
    of_llvm(options, files, function, LlvmModule::asm_text, one_function::of_assembly)
}

/// The code of kernels for OpenCL.
pub(crate) fn opencl(options: &Options, module: &Module) -> Result<Vec<u8>, Box<Diagnostic>> {
    let text = nyala_gen_c::emit(module, &nyala_gen_c::OPENCL, options.wrap);
    text.map(String::into_bytes)
}

/// A call that CUDA C++ has and PTX does not: of a function that only NVIDIA's compiler may know, or one that prints.
fn only_in_source(module: &Module) -> Option<(String, Span)> {
    let call = |inst: &Inst| {
        let InstOp::Call(callee) = inst.op else { return None };
        let symbol = module.func(callee).symbol().filter(|_| module.func(callee).is_foreign())?;
        let name = device_function(symbol).or_else(|| printed(symbol).map(|_| symbol))?;
        Some((name.to_string(), inst.span))
    };
    module.funcs.iter().flat_map(|f| &f.blocks).flat_map(|b| &b.insts).find_map(call)
}

/// The code of kernels for CUDA: PTX, or CUDA C++ where that is wished, or where only NVIDIA's compiler has a function.
pub(crate) fn cuda(options: &Options, module: &Module) -> Result<Vec<u8>, Box<Diagnostic>> {
    let as_source = options.cuda.as_deref() == Some(CUDA_SOURCE);
    let has_all = || -> Result<bool, Box<Diagnostic>> {
        let own = with_own_math(module)?;
        Ok(libdevice().is_some() || needs_libdevice(&own).is_none())
    };
    match as_source || only_in_source(module).is_some() || !has_all()? {
        true => cuda_source(options, module),
        false => ptx(options, module),
    }
}

/// PTX of kernels for CUDA.
pub(crate) fn ptx(options: &Options, module: &Module) -> Result<Vec<u8>, Box<Diagnostic>> {
    if let Some((name, span)) = only_in_source(module) {
        return Err(Box::new(cannot_emit::not_in_ptx(span, &name)));
    }
    let gpu = options.cuda.clone().filter(|gpu| gpu != CUDA_SOURCE);
    let target = Target::nvidia(gpu.as_deref().unwrap_or(CUDA_LEAST));
    let libdevice = libdevice();
    if libdevice.is_some() {
        return assembly(options, module, target, libdevice);
    }
    let own = with_own_math(module)?;
    if let Some((name, span)) = needs_libdevice(&own) {
        return Err(Box::new(no_libdevice::missing(span, name)));
    }
    assembly(options, &own, target, None)
}

/// Assembly of kernels for AMD's GPUs.
pub(crate) fn amdgpu(options: &Options, module: &Module) -> Result<Vec<u8>, Box<Diagnostic>> {
    let llvm = amdgpu_llvm(options, module)?;
    llvm.asm_text().map(String::into_bytes)
}

/// The code object of kernels for AMD's GPUs, as HSA loads it.
pub(crate) fn amdgpu_code(options: &Options, module: &Module) -> Result<Vec<u8>, Box<Diagnostic>> {
    let llvm = amdgpu_llvm(options, module)?;
    llvm.object().and_then(|object| crate::build::link_code_object(&object))
}

fn amdgpu_llvm(options: &Options, module: &Module) -> Result<LlvmModule, Box<Diagnostic>> {
    let own = with_own_math(module)?;
    if let Some((name, span)) = needs_libdevice(&own) {
        let message = format!("a kernel for AMD's GPUs cannot have `{name}` of this type");
        let hint = "compute it in `f32`, or by other functions, or run the kernel with `--device host`";
        return Err(Box::new(limitation::error(span, message, hint)));
    }
    let target = Target::amd(options.amdgpu.as_deref().unwrap_or(AMDGPU_USUAL));
    gpu_llvm(options, &own, target, None)
}

/// The module with functions of its own in place of libdevice's.
fn with_own_math(module: &Module) -> Result<Module, Box<Diagnostic>> {
    let mut own = module.clone();
    nyala_gen_llvm::without_libdevice(&mut own)?;
    Ok(own)
}

fn assembly(
    options: &Options,
    module: &Module,
    target: Target,
    libdevice: Option<PathBuf>,
) -> Result<Vec<u8>, Box<Diagnostic>> {
    let llvm = gpu_llvm(options, module, target, libdevice)?;
    llvm.asm_text().map(String::into_bytes)
}

/// Kernels in LLVM, optimized.
fn gpu_llvm(
    options: &Options,
    module: &Module,
    target: Target,
    libdevice: Option<PathBuf>,
) -> Result<LlvmModule, Box<Diagnostic>> {
    let mut module = module.clone();
    module.set_target(target);
    let options =
        nyala_gen_llvm::Options { opt_level: options.opt_level, wrap: options.wrap, libdevice, ..Default::default() };
    let mut llvm = nyala_gen_llvm::emit(&module, &options)?;
    llvm.optimize()?;
    Ok(llvm)
}

/// CUDA C++ of kernels for CUDA.
pub(crate) fn cuda_source(options: &Options, module: &Module) -> Result<Vec<u8>, Box<Diagnostic>> {
    let text = nyala_gen_c::emit(module, &nyala_gen_c::CUDA, options.wrap);
    text.map(String::into_bytes)
}

/// SPIR-V of kernels for Vulkan.
pub(crate) fn spirv_vulkan(_: &Options, module: &Module) -> Result<Vec<u8>, Box<Diagnostic>> {
    spirv(module, Flavor::Vulkan).map(|code| code.bytes())
}

/// SPIR-V of kernels for OpenCL and Level Zero.
pub(crate) fn spirv_opencl(_: &Options, module: &Module) -> Result<Vec<u8>, Box<Diagnostic>> {
    spirv(module, Flavor::OpenCl).map(|code| code.bytes())
}

fn spirv(module: &Module, flavor: Flavor) -> Result<nyala_gen_spirv::Code, Box<Diagnostic>> {
    nyala_gen_spirv::emit(module, flavor)
}

/// The kernels in SPIR-V as text, those for Vulkan first.
pub(crate) fn spirv_text(options: &Options, files: &Files, _: Option<&str>) -> Text {
    let vulkan: CodeOf = |_, module| spirv(module, Flavor::Vulkan).map(|code| code.text().into());
    let opencl: CodeOf = |_, module| spirv(module, Flavor::OpenCl).map(|code| code.text().into());
    devices::code(options, files, &[("vulkan", vulkan), ("spirv", opencl)])
}

/// The code of a platform's kernels as its driver takes it.
type DriversCode = (&'static str, CodeOf);

/// Code for drivers, of stages that are text otherwise: the stage, the extension of a file for it, and the platforms.
const DRIVERS_CODE: &[(&str, &str, &[DriversCode])] = &[
    ("spirv", "spv", &[("vulkan", spirv_vulkan), ("spirv", spirv_opencl)]),
    ("amdgpu", "hsaco", &[("amdgpu", amdgpu_code)]),
];

/// The kernels as drivers take them, if a stage has that form and a file's name asks for it by its extension.
pub fn emit_drivers_code(
    options: &Options,
    files: &Files,
    stage: &str,
    extension: &str,
) -> Option<Result<(Vec<u8>, Report), Failed>> {
    let (.., platforms) = DRIVERS_CODE.iter().find(|code| (code.0, code.1) == (stage, extension))?;
    let made = devices::split(options, files).and_then(|mut flat| Ok((flat.kernels(platforms)?, flat.report)));
    Some(made.and_then(|(modules, mut report)| match &modules[..] {
        [only] => Ok((only.clone(), report)),
        [] => Err(report.report(cannot_emit::no_kernel(stage))),
        _ => Err(report.report(cannot_emit::several_platforms(stage))),
    }))
}

/// The kernels for CUDA as CUDA C++.
pub(crate) fn cuda_text(options: &Options, files: &Files, _: Option<&str>) -> Text {
    devices::code(options, files, &[("cuda", cuda_source)])
}

/// The kernels for CUDA as PTX.
pub(crate) fn ptx_text(options: &Options, files: &Files, _: Option<&str>) -> Text {
    devices::code(options, files, &[("cuda", ptx)])
}

/// The kernels for AMD's GPUs as assembly.
pub(crate) fn amdgpu_text(options: &Options, files: &Files, _: Option<&str>) -> Text {
    devices::code(options, files, &[("amdgpu", amdgpu)])
}

/// C++ of kernels for high-level synthesis.
pub(crate) fn hls(options: &Options, module: &Module) -> Result<Vec<u8>, Box<Diagnostic>> {
    let text = nyala_gen_c::emit(module, &nyala_gen_c::HLS, options.wrap);
    text.map(String::into_bytes)
}

/// The kernels for `hls` as C++.
pub(crate) fn hls_text(options: &Options, files: &Files, _: Option<&str>) -> Text {
    devices::code(options, files, &[("hls", hls)])
}

/// The kernels for OpenCL as OpenCL C.
pub(crate) fn opencl_text(options: &Options, files: &Files, _: Option<&str>) -> Text {
    devices::code(options, files, &[("opencl", opencl)])
}

fn flat_module(options: &Options, files: &Files) -> Result<Flat, Failed> {
    flat_of(&FrontEnd::new(options.clone(), files.clone()).graph()?)
}

fn flat_of(graph: &Graph) -> Result<Flat, Failed> {
    let mut residual = graph.residual()?;
    // Whoever looks for the reason of a failure wants to see the code.
    residual.ensures.clear();
    residual.flat()
}

fn print_graph(mut report: Report, w: &World, function: Option<&str>) -> Text {
    let Some(name) = function else { return Ok((nyala_ir::print::print(w), report)) };
    let (nest, _) = nyala_ir::facts::Nest::of_program(w, &w.roots());
    let found: Vec<_> = nest.conts.iter().copied().filter(|&k| *w.name(k) == *name).collect();
    if found.is_empty() {
        let names = w.roots();
        let names: Vec<&str> = names.iter().map(|&k| w.name(k)).collect();
        return Err(report.report(no_such_function::error(name, names.iter().copied())));
    }
    Ok((nyala_ir::print::print_roots(w, &found), report))
}

fn has_function(w: &World, name: &str) -> bool {
    let (nest, _) = nyala_ir::facts::Nest::of_program(w, &w.roots());
    nest.conts.iter().any(|&k| *w.name(k) == *name)
}

/// The innermost loop of a function, in flat SSA, that is nested deepest; of several the one with the fewest blocks.
pub fn emit_deepest_loop(options: &Options, files: &Files, name: &str) -> Text {
    let Flat { module, mut report, .. } = flat_module(options, files)?;
    let Some(f) = module.funcs.iter().find(|f| f.name == name && !f.blocks.is_empty()) else {
        return Err(one_function::report_gone(&mut report, &module, name, &|_| true));
    };
    let blocks = deepest_loop(f);
    Ok((print_blocks(&module, f, &blocks), report))
}

fn deepest_loop(f: &Function) -> Vec<Block> {
    let cfg = nyala_flat::analysis::Cfg::new(f);
    let loops = nyala_flat::analysis::loops(&cfg);
    let depth = |b: Block| loops.iter().filter(|l| l.contains(&b)).count();
    let best = loops.iter().max_by_key(|l| {
        let header_depth = l.iter().map(|&b| depth(b)).max().unwrap_or(0);
        let is_innermost = loops.iter().filter(|m| m.iter().all(|b| l.contains(b))).count() == 1;
        (is_innermost, header_depth, std::cmp::Reverse(l.len()))
    });
    let mut blocks: Vec<Block> = best.map(|l| l.iter().copied().collect()).unwrap_or_default();
    blocks.sort_by_key(|b| cfg.position[b.idx()]);
    blocks
}

fn print_blocks(module: &Module, f: &Function, blocks: &[Block]) -> String {
    let text = nyala_flat::print(module, &|g| std::ptr::eq(g, f));
    // Blocks are printed in order, each from its header to the next one's.
    let mut parts: Vec<String> = Vec::new();
    for line in text.lines().skip_while(|l| !l.ends_with('{') || l.starts_with("struct")).skip(1) {
        if !line.starts_with(' ') && line.ends_with(':') {
            parts.push(String::new());
        }
        if let Some(part) = parts.last_mut().filter(|_| line != "}") {
            part.push_str(line);
            part.push('\n');
        }
    }
    blocks.iter().filter_map(|b| parts.get(b.idx())).map(String::as_str).collect()
}

/// One pass on IR text: those of [`GRAPH`], [`SPECIALIZE`] and [`SCHEDULE`] on graphs, those of [`FLAT`] on flat SSA.
///
/// `pass` is its name, and what it depends on: `host`, so that kernels run there; checks; the device back end of the module; what each
/// parameter of a function lends it that is to be confined.
///
/// # Errors
/// The text is not well-formed, or the pass reports something, or its result is not well-formed.
pub fn run_pass(pass: &str, text: &str) -> Result<String, String> {
    let (pass, words) = pass.split_once(' ').unwrap_or((pass, ""));
    // The result is the same on every machine.
    let (target, cpu) = (Some("x86_64-unknown-linux-gnu".into()), Some("x86-64-v3".into()));
    let mut options = Options { verify: true, target, cpu, ..Options::default() };
    let mut device = None;
    for word in words.split_whitespace() {
        match crate::pipelines::DEVICES.iter().find(|d| d.name == word) {
            Some(back_end) => device = Some(back_end),
            None if word == "host" => options.device = Device::Host,
            None if options.checks.add(word) => {}
            None if let Ok(n) = word.parse() => options.max_unit = n,
            None if let Some(lent) = lent(word) => {
                let before = options.confined.iter().flat_map(|lent| lent.iter().copied());
                options.confined = Some(before.chain([lent]).collect());
            }
            None => return Err(format!("`{word}` is no device, no check, and nothing lent")),
        }
    }
    if let Some(flat) = FLAT.iter().find(|p| p.name == pass) {
        let text: String = text.lines().filter(|l| !l.starts_with(';')).map(|l| format!("{l}\n")).collect();
        let mut module = nyala_flat::read(&text).map_err(|e| format!("{e:?}"))?;
        module.set_target(options.target());
        // Places that passes can speak of: the text has none.
        let insts = module.funcs.iter_mut().flat_map(|f| &mut f.blocks).flat_map(|b| &mut b.insts);
        insts.enumerate().for_each(|(i, inst)| inst.span = Span::new(FileId(0), i, i + 1));
        let in_function = |module: &Module, span: Span| {
            let has = |f: &&Function| f.blocks.iter().flat_map(|b| &b.insts).any(|inst| inst.span == span);
            module.funcs.iter().find(has).map_or(String::new(), |f| format!("`{}`: ", f.name))
        };
        let (before, report) = (module.clone(), Report::default());
        let mut step = Step { options: &options, report: &report, device, notes: None };
        let found = (flat.run)(&mut module, &mut step);
        if !found.is_empty() {
            let line = |d: &Diagnostic| format!("{}{}\n", in_function(&before, d.primary.span), d.message);
            return Ok(found.iter().map(line).collect());
        }
        nyala_flat::verify(&module).map_err(|e| format!("{e:?}"))?;
        return Ok(nyala_flat::print(&module, &|_| true) + &devices::print(&module, None));
    }
    let mut world = nyala_ir::read::read(text).map_err(|e| format!("line {}: {}", e.line, e.message))?;
    let faults = nyala_ir::verify::verify(&world, &world.roots());
    if !faults.is_empty() {
        return Err(faults.join("\n"));
    }
    let rendered = |failed: Failed| failed.render(false);
    if let Some(graph) = GRAPH.iter().find(|p| p.name == pass) {
        (graph.run)(&mut world, &options, &mut Report::default()).map_err(rendered)?;
        return Ok(nyala_ir::print::print(&world));
    }
    match pass {
        SPECIALIZE => Graph::of(options, world).residual().map(|r| nyala_ir::print::print(&r.world)).map_err(rendered),
        SCHEDULE => {
            let Flat { module, .. } = Residual::of(options, world).scheduled().map_err(rendered)?;
            nyala_flat::verify(&module).map_err(|e| format!("{e:?}"))?;
            Ok(nyala_flat::print(&module, &|_| true))
        }
        _ => Err(format!("no pass `{pass}`")),
    }
}

fn lent(word: &str) -> Option<nyala_checks::Lent> {
    Some(match word {
        "nothing" => nyala_checks::Lent::Nothing,
        "slice" => nyala_checks::Lent::Slice,
        "mut_slice" => nyala_checks::Lent::MutSlice,
        _ => return None,
    })
}
