//! Programs as text, at every stage.

use crate::devices::{CodeOf, libdevice};
use crate::diagnostics::no_such_function;
use crate::pipelines::stages;
use crate::{AMDGPU_USUAL, CUDA_LEAST, CUDA_SOURCE, Reported, Session, one_function};
use nyala_base::diagnostics::{bug, limitation};
use nyala_base::{Id, Span};
use nyala_flat::{Block, Function, Inst, InstOp, Module};
use nyala_gen_llvm::{LlvmModule, needs_libdevice};
use nyala_gen_spirv::{Code, Flavor};
use nyala_ir::lanes::{device_function, printed};
use nyala_ir::{Target, World};
use std::path::PathBuf;

/// The stages that can show one function.
const BY_FUNCTION: &[&str] = &["graph", "residual", "flat", "llvm", "asm"];

/// The program at one of the [`stages`] as text; one function of it, if named.
pub fn emit(s: &mut Session, stage: &str, function: Option<&str>) -> Result<String, Reported> {
    if function.is_some() && !BY_FUNCTION.contains(&stage) {
        let message = format!("one function of the stage {stage}");
        let hint = format!("`--fn` works with the stages {}", BY_FUNCTION.join(", "));
        return Err(s.report(limitation::error(Span::NONE, message, hint)));
    }
    match stages().find(|known| known.name == stage) {
        Some(stage) => (stage.text)(s, function),
        None => Err(s.report(bug::error(Span::NONE, format!("no stage `{stage}`")))),
    }
}

pub(crate) fn ast(s: &mut Session, _: Option<&str>) -> Result<String, Reported> {
    Ok(s.parse()?.all().iter().map(|tree| nyala_syntax::print(tree)).collect())
}

pub(crate) fn graph(s: &mut Session, function: Option<&str>) -> Result<String, Reported> {
    let world = s.graph()?;
    print_graph(s, &world, function)
}

pub(crate) fn residual(s: &mut Session, function: Option<&str>) -> Result<String, Reported> {
    let world = s.graph()?;
    let residual = s.residual(&world)?;
    if let Some(name) = function.filter(|name| !has_function(&residual, name)) {
        let module = s.flat(&residual)?;
        return Err(one_function::report_gone(s, &module, name, &|_| true));
    }
    print_graph(s, &residual, function)
}

pub(crate) fn flat(s: &mut Session, function: Option<&str>) -> Result<String, Reported> {
    let module = flat_module(s)?;
    match function {
        None => Ok(nyala_flat::print(&module, &|_| true)),
        Some(name) if !module.funcs.iter().any(|f| one_function::is_called(f, name)) => {
            Err(one_function::report_gone(s, &module, name, &|_| true))
        }
        Some(name) => Ok(nyala_flat::print(&module, &|f| one_function::is_called(f, name))),
    }
}

pub(crate) fn llvm(s: &mut Session, function: Option<&str>) -> Result<String, Reported> {
    of_llvm(s, function, |_, llvm| Ok(llvm.ir_text()), one_function::of_llvm)
}

/// A text of the optimized program; of one function, that which `cut` finds by a symbol.
fn of_llvm(
    s: &mut Session,
    function: Option<&str>,
    text: impl FnOnce(&mut Session, &LlvmModule) -> Result<String, Reported>,
    cut: fn(&str, &str) -> Option<String>,
) -> Result<String, Reported> {
    let module = flat_module(s)?;
    let emitted = s.emit_llvm(&module, None)?;
    let llvm = s.optimize(&emitted)?;
    let text = text(s, &llvm)?;
    let Some(name) = function else { return Ok(text) };
    let symbols = |f: usize| emitted.symbols[f].iter().filter_map(|symbol| cut(&text, symbol));
    let called = (0..module.funcs.len()).filter(|&f| one_function::is_called(&module.funcs[f], name));
    let parts: Vec<String> = called.flat_map(symbols).collect();
    match parts.is_empty() {
        true => Err(one_function::report_gone(s, &module, name, &|f| symbols(f).next().is_some())),
        false => Ok(parts.join("\n")),
    }
}

pub(crate) fn c(s: &mut Session, _: Option<&str>) -> Result<String, Reported> {
    let world = s.graph()?;
    let residual = s.residual(&world)?;
    let module = s.flat_for(&residual, &crate::pipelines::C)?;
    s.c_text(&module, module.exported("main").is_some_and(|main| s.is_entry(&module, main)))
}

pub(crate) fn asm(s: &mut Session, function: Option<&str>) -> Result<String, Reported> {
    let text = |s: &mut Session, llvm: &LlvmModule| llvm.asm_text().map_err(|d| s.report(*d));
    of_llvm(s, function, text, one_function::of_assembly)
}

/// The code of kernels for OpenCL.
pub(crate) fn opencl(s: &mut Session, module: &Module) -> Result<Vec<u8>, Reported> {
    let text = nyala_gen_c::emit(module, &nyala_gen_c::OPENCL, s.options.wrap);
    text.map(String::into_bytes).map_err(|d| s.report(*d))
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
pub(crate) fn cuda(s: &mut Session, module: &Module) -> Result<Vec<u8>, Reported> {
    let as_source = s.options.cuda.as_deref() == Some(CUDA_SOURCE);
    let has_all = |s: &mut Session| {
        let own = with_own_math(s, module)?;
        Ok(libdevice().is_some() || needs_libdevice(&own).is_none())
    };
    if as_source || only_in_source(module).is_some() || !has_all(s)? { cuda_source(s, module) } else { ptx(s, module) }
}

/// PTX of kernels for CUDA.
pub(crate) fn ptx(s: &mut Session, module: &Module) -> Result<Vec<u8>, Reported> {
    if let Some((name, span)) = only_in_source(module) {
        let message = format!("PTX with `{name}`, which is made by way of CUDA C++ only");
        return Err(s.report(limitation::error(span, message, "use CUDA C++: `--stage cuda` prints it")));
    }
    let gpu = s.options.cuda.clone().filter(|gpu| gpu != CUDA_SOURCE);
    let target = Target::nvidia(gpu.as_deref().unwrap_or(CUDA_LEAST));
    let libdevice = libdevice();
    if libdevice.is_some() {
        return assembly(s, module, target, libdevice);
    }
    let own = with_own_math(s, module)?;
    if let Some((name, span)) = needs_libdevice(&own) {
        let message = format!("PTX with `{name}`, a function of NVIDIA's libdevice, which was not found");
        let hint = "install the CUDA toolkit, and let `CUDA_HOME` name its folder, or use CUDA C++ (`--cuda source`)";
        return Err(s.report(limitation::error(span, message, hint)));
    }
    assembly(s, &own, target, None)
}

/// Assembly of kernels for AMD's GPUs.
pub(crate) fn amdgpu(s: &mut Session, module: &Module) -> Result<Vec<u8>, Reported> {
    let llvm = amdgpu_llvm(s, module)?;
    llvm.asm_text().map(String::into_bytes).map_err(|d| s.report(*d))
}

/// The code object of kernels for AMD's GPUs, as HSA loads it.
pub(crate) fn amdgpu_code(s: &mut Session, module: &Module) -> Result<Vec<u8>, Reported> {
    let llvm = amdgpu_llvm(s, module)?;
    let linked = llvm.object().and_then(|object| crate::build::link_code_object(&object));
    linked.map_err(|d| s.report(*d))
}

fn amdgpu_llvm(s: &mut Session, module: &Module) -> Result<LlvmModule, Reported> {
    let own = with_own_math(s, module)?;
    if let Some((name, span)) = needs_libdevice(&own) {
        let message = format!("`{name}` of this type in a kernel for AMD's GPUs");
        return Err(s.report(limitation::error(span, message, "run the kernel with `--device host`")));
    }
    let target = Target::amd(s.options.amdgpu.as_deref().unwrap_or(AMDGPU_USUAL));
    gpu_llvm(s, &own, target, None)
}

/// The module with functions of its own in place of libdevice's.
fn with_own_math(s: &mut Session, module: &Module) -> Result<Module, Reported> {
    let mut own = module.clone();
    nyala_gen_llvm::without_libdevice(&mut own).map_err(|d| s.report(*d))?;
    Ok(own)
}

fn assembly(s: &mut Session, module: &Module, target: Target, libdevice: Option<PathBuf>) -> Result<Vec<u8>, Reported> {
    let llvm = gpu_llvm(s, module, target, libdevice)?;
    llvm.asm_text().map(String::into_bytes).map_err(|d| s.report(*d))
}

/// Kernels in LLVM, optimized.
fn gpu_llvm(
    s: &mut Session,
    module: &Module,
    target: Target,
    libdevice: Option<PathBuf>,
) -> Result<LlvmModule, Reported> {
    let mut module = module.clone();
    module.set_target(target);
    let options = nyala_gen_llvm::Options {
        opt_level: s.options.opt_level,
        wrap: s.options.wrap,
        libdevice,
        ..Default::default()
    };
    let made = nyala_gen_llvm::emit(&module, &options).and_then(|mut llvm| llvm.optimize().map(|()| llvm));
    made.map_err(|d| s.report(*d))
}

/// CUDA C++ of kernels for CUDA.
pub(crate) fn cuda_source(s: &mut Session, module: &Module) -> Result<Vec<u8>, Reported> {
    let text = nyala_gen_c::emit(module, &nyala_gen_c::CUDA, s.options.wrap);
    text.map(String::into_bytes).map_err(|d| s.report(*d))
}

/// SPIR-V of kernels for Vulkan.
pub(crate) fn spirv_vulkan(s: &mut Session, module: &Module) -> Result<Vec<u8>, Reported> {
    spirv(s, module, Flavor::Vulkan).map(|code| code.bytes())
}

/// SPIR-V of kernels for OpenCL and Level Zero.
pub(crate) fn spirv_opencl(s: &mut Session, module: &Module) -> Result<Vec<u8>, Reported> {
    spirv(s, module, Flavor::OpenCl).map(|code| code.bytes())
}

fn spirv(s: &mut Session, module: &Module, flavor: Flavor) -> Result<Code, Reported> {
    nyala_gen_spirv::emit(module, flavor).map_err(|d| s.report(*d))
}

/// The kernels in SPIR-V as text, those for Vulkan first.
pub(crate) fn spirv_text(s: &mut Session, _: Option<&str>) -> Result<String, Reported> {
    let text = |flavor| move |s: &mut Session, module: &Module| spirv(s, module, flavor).map(|code| code.text().into());
    s.device_code(&[("vulkan", &text(Flavor::Vulkan)), ("spirv", &text(Flavor::OpenCl))])
}

/// The code of a platform's kernels as its driver takes it.
type DriversCode = (&'static str, CodeOf<'static>);

/// Code for drivers, of stages that are text otherwise: the stage, the extension of a file for it, and the platforms.
const DRIVERS_CODE: &[(&str, &str, &[DriversCode])] = &[
    ("spirv", "spv", &[("vulkan", &spirv_vulkan), ("spirv", &spirv_opencl)]),
    ("amdgpu", "hsaco", &[("amdgpu", &amdgpu_code)]),
];

/// The kernels as drivers take them, if a stage has that form and a file's name asks for it by its extension.
pub fn emit_drivers_code(s: &mut Session, stage: &str, extension: &str) -> Option<Result<Vec<u8>, Reported>> {
    let (.., platforms) = DRIVERS_CODE.iter().find(|code| (code.0, code.1) == (stage, extension))?;
    let modules = match s.device_modules(platforms) {
        Ok(modules) => modules,
        Err(reported) => return Some(Err(reported)),
    };
    let limited = |message: &str, hint: &str| limitation::error(Span::NONE, message, hint);
    Some(match &modules[..] {
        [only] => Ok(only.clone()),
        [] => {
            Err(s.report(limited(&format!("there is no kernel for `--stage {stage}`"), "launch one on its platform")))
        }
        _ => {
            let message = "one file for kernels of several platforms";
            Err(s.report(limited(message, "emit the kernels of each platform by themselves")))
        }
    })
}

/// The kernels for CUDA as CUDA C++.
pub(crate) fn cuda_text(s: &mut Session, _: Option<&str>) -> Result<String, Reported> {
    s.device_code(&[("cuda", &cuda_source)])
}

/// The kernels for CUDA as PTX.
pub(crate) fn ptx_text(s: &mut Session, _: Option<&str>) -> Result<String, Reported> {
    s.device_code(&[("cuda", &ptx)])
}

/// The kernels for AMD's GPUs as assembly.
pub(crate) fn amdgpu_text(s: &mut Session, _: Option<&str>) -> Result<String, Reported> {
    s.device_code(&[("amdgpu", &amdgpu)])
}

/// C++ of kernels for high-level synthesis.
pub(crate) fn hls(s: &mut Session, module: &Module) -> Result<Vec<u8>, Reported> {
    let text = nyala_gen_c::emit(module, &nyala_gen_c::HLS, s.options.wrap);
    text.map(String::into_bytes).map_err(|d| s.report(*d))
}

/// The kernels for `hls` as C++.
pub(crate) fn hls_text(s: &mut Session, _: Option<&str>) -> Result<String, Reported> {
    s.device_code(&[("hls", &hls)])
}

/// The kernels for OpenCL as OpenCL C.
pub(crate) fn opencl_text(s: &mut Session, _: Option<&str>) -> Result<String, Reported> {
    s.device_code(&[("opencl", &opencl)])
}

fn flat_module(s: &mut Session) -> Result<Module, Reported> {
    let world = s.graph()?;
    // Whoever looks for the reason of a failure wants to see the code.
    s.ensures.clear();
    let residual = s.residual(&world)?;
    s.flat(&residual)
}

fn print_graph(s: &mut Session, w: &World, function: Option<&str>) -> Result<String, Reported> {
    let Some(name) = function else { return Ok(nyala_ir::print::print(w)) };
    let (nest, _) = nyala_ir::facts::Nest::of_program(w, &w.roots());
    let found: Vec<_> = nest.conts.iter().copied().filter(|&k| *w.name(k) == *name).collect();
    if found.is_empty() {
        let names = w.roots();
        let names: Vec<&str> = names.iter().map(|&k| w.name(k)).collect();
        return Err(s.report(no_such_function::error(name, names.iter().copied())));
    }
    Ok(nyala_ir::print::print_roots(w, &found))
}

fn has_function(w: &World, name: &str) -> bool {
    let (nest, _) = nyala_ir::facts::Nest::of_program(w, &w.roots());
    nest.conts.iter().any(|&k| *w.name(k) == *name)
}

/// The innermost loop of a function, in flat SSA, that is nested deepest; of several the one with the fewest blocks.
pub fn emit_deepest_loop(s: &mut Session, name: &str) -> Result<String, Reported> {
    let module = flat_module(s)?;
    let Some(f) = module.funcs.iter().find(|f| f.name == name && !f.blocks.is_empty()) else {
        return Err(one_function::report_gone(s, &module, name, &|_| true));
    };
    let blocks = deepest_loop(f);
    Ok(print_blocks(&module, f, &blocks))
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

/// One pass on IR text: `eta-reduce`, `specialize` and `schedule` on graphs, the passes of
/// [`FLAT`](crate::pipelines::FLAT) on flat SSA.
pub fn run_pass(pass: &str, text: &str) -> Result<String, String> {
    if let Some(flat) = crate::pipelines::FLAT.iter().find(|p| p.name == pass) {
        let text: String = text.lines().filter(|l| !l.starts_with(';')).map(|l| format!("{l}\n")).collect();
        let mut module = nyala_flat::read(&text).map_err(|e| format!("{e:?}"))?;
        let options = crate::Options::default();
        if let Some(d) = (flat.run)(&mut module, &options).first() {
            return Err(d.message.clone());
        }
        nyala_flat::verify(&module).map_err(|e| format!("{e:?}"))?;
        return Ok(nyala_flat::print(&module, &|_| true));
    }
    let mut world = nyala_ir::read::read(text).map_err(|e| format!("line {}: {}", e.line, e.message))?;
    let faults = nyala_ir::verify::verify(&world, &world.roots());
    if !faults.is_empty() {
        return Err(faults.join("\n"));
    }
    let mut s = Session::new(crate::Options { verify: true, ..Default::default() });
    let result = match pass {
        "eta-reduce" => {
            nyala_ir::eta::eta_reduce(&mut world);
            Ok(nyala_ir::print::print(&world))
        }
        "specialize" => s.residual(&world).map(|w| nyala_ir::print::print(&w)),
        "schedule" => {
            s.options.opt_level = 0;
            s.flat(&world).map(|m| nyala_flat::print(&m, &|_| true))
        }
        _ => return Err(format!("no pass `{pass}`")),
    };
    result.map_err(|_| s.render(false))
}
