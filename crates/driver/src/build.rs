//! Makes files of programs: objects, executables, libraries, headers. The system's compiler driver links them. Symbols
//! of the runtime that other code must not see are hidden here.

use crate::Options;
use crate::code::Code;
use crate::diagnostics::{
    cannot_write, link_failed, no_entry, no_exports, no_linker, runtime_not_found, tail_call_not_guaranteed,
};
use crate::faults::in_file;
use crate::files::{check_output, check_place};
use crate::flat::Flat;
use crate::front::FrontEnd;
use crate::graph::Graph;
use crate::report::{Failed, Report};
use crate::run::{at_declaration, check_entry};
use crate::{staged, versions};
use nyala_base::diagnostics::{limitation, not_in_c, undefined_symbol};
use nyala_base::{Diagnostic, Sources, Span};
use nyala_flat::{Const, FunctionBuilder, InstOp, Linkage, Module, Terminator};
use nyala_gen_llvm::{Places, Sanitizer};
use object::{Object, ObjectSymbol};
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fmt::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The kind of file that `nyala build` makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An executable.
    Exe,
    /// An object file.
    Obj,
    /// A static library.
    StaticLib,
    /// A shared library.
    SharedLib,
    /// A header for C.
    Header,
}

impl Kind {
    fn about(self) -> &'static str {
        match self {
            Kind::Exe => "an executable",
            Kind::Obj => "an object",
            Kind::StaticLib => "a static library",
            Kind::SharedLib => "a shared library",
            Kind::Header => "a header",
        }
    }
}

/// Conversions of half-precision numbers that some C compilers' libraries lack.
const HALVES: [&str; 3] = ["__extendhfsf2", "__truncdfhf2", "__truncsfhf2"];

/// The linker of LLVM: that of the Rust toolchain whose LLVM this is, and the system's.
fn lld() -> Option<PathBuf> {
    let rustlib = nyala_gen_llvm::llvm_library().parent()?.join("rustlib");
    let machines = std::fs::read_dir(rustlib).into_iter().flatten().flatten();
    let own = machines.map(|m| m.path().join("bin/gcc-ld/ld.lld")).find(|lld| lld.is_file());
    let works = |lld: &PathBuf| Command::new(lld).arg("--version").output().is_ok();
    own.or_else(|| Some("ld.lld".into())).filter(works)
}

/// Links an object of kernels for AMD's GPUs to the code object that HSA loads.
pub(crate) fn link_code_object(object: &[u8]) -> Result<Vec<u8>, Box<Diagnostic>> {
    let Some(lld) = lld() else {
        return Err(Box::new(no_linker::of_amd()));
    };
    let folder = temporary_folder()?;
    let (input, output) = (folder.path().join("kernels.o"), folder.path().join("kernels.hsaco"));
    std::fs::write(&input, object).map_err(|e| cannot_write::file(&input, e))?;
    let linked = Command::new(&lld).args(["-shared", "--no-undefined", "-o"]).arg(&output).arg(&input).output();
    let said = match linked {
        Ok(done) if done.status.success() => {
            return std::fs::read(&output).map_err(|e| Box::new(cannot_write::file(&output, e)));
        }
        Ok(done) => String::from_utf8_lossy(&done.stderr).into_owned(),
        Err(e) => e.to_string(),
    };
    Err(Box::new(link_failed::error(&output, &lld.display().to_string(), &said)))
}

/// The name of the runtime library, with which programs are linked.
const RUNTIME: &str = "libnyala_runtime.a";

impl FrontEnd {
    /// Compiles the program to a file. `inputs` are objects and libraries that executables and shared libraries are
    /// linked with. Returns what was found.
    pub fn build(&self, kind: Kind, out: &Path, inputs: &[PathBuf]) -> Result<Report, Failed> {
        check_place(out).map_err(|d| Report::default().report(*d))?;
        let options = &self.options;
        if kind == Kind::Header {
            let text = versions::header(self, &guard_name(out))?;
            let mut report = self.report.clone();
            let made = check_output(&report.sources, out).and_then(|()| deliver_bytes(text.as_bytes(), out));
            return made.map_err(|d| report.report(*d)).map(|()| report);
        }
        let foreign = options.target.clone().filter(|_| !options.target().is_native);
        if let Some(target) = foreign.filter(|_| kind != Kind::Obj && std::env::var_os("CC").is_none()) {
            return Err(Report::default().report(no_linker::of_target(kind.about(), &target)));
        }
        let mut graph = self.graph()?;
        check_output(&graph.report.sources, out).map_err(|d| graph.report.report(*d))?;
        let (flat, mut report, objects) = compiled(self, kind, &graph)?;
        let symbols = flat.module.funcs.iter().filter_map(|f| f.symbol());
        staged::compiled::needs_code(&graph.report, symbols.clone(), "are built")?;
        if symbols.into_iter().any(staged::compiled::is_compile) {
            report.sink.push(staged::compiled::without_compiler());
        }
        if kind != Kind::Exe && !flat.module.funcs.iter().any(|f| exported(f).is_some()) {
            report.sink.push(no_exports::warning(
                kind.about(),
                self.program().own_functions().find(|(name, _)| *name != "main"),
            ));
            report.check(options)?;
        }
        let made = match kind {
            Kind::Obj => deliver_bytes(&objects.concat(), out),
            _ => {
                let program = Program { kind, objects: &objects, exports: &exports(&flat) };
                report.time(options, "link", |r| link(options, &program, &r.sources, inputs, out), |_| 0)
            }
        };
        made.map_err(|d| report.report(at_declaration(*d, &flat.module)))?;
        Ok(report)
    }

    /// The object of a static library, not linked with the runtime; whether it needs that, and what was found.
    pub fn library_object(&self) -> Result<(Vec<u8>, bool, Report), Failed> {
        let (report, object) = whole(&prepared(self, Kind::StaticLib, &self.graph()?)?, None)?;
        let needs_runtime = needs_runtime(&object);
        Ok((object, needs_runtime, report))
    }
}

/// A program for a kind of file: its objects, which refer to each other, and the symbols that it exports.
struct Program<'a> {
    kind: Kind,
    objects: &'a [Vec<u8>],
    exports: &'a [String],
}

/// Compiles a program for a kind of file: to one object for an object. Of several versions the first represents all.
fn compiled(front: &FrontEnd, kind: Kind, graph: &Graph) -> Result<(Flat, Report, Vec<Vec<u8>>), Failed> {
    let mut flats = prepared(front, kind, graph)?;
    let (options, folder) = (&graph.options, current_folder());
    // An executable reports faults with their lines.
    let lines = Some(&*folder).filter(|_| options.debug || kind == Kind::Exe);
    // Tools for other machines may not be here, and sanitizers want to know which objects there are.
    let is_cut = flats.len() == 1 && options.target().is_native && options.sanitizer.is_none();
    if is_cut {
        // What executables share nobody else sees, and their units are those of `nyala run`.
        let (mut report, mut objects) = flats[0].objects_with(lines, kind != Kind::Exe)?;
        let is_one = kind == Kind::Obj && objects.len() > 1;
        let made =
            is_one.then(|| report.time(options, "link", |_| merged(options, &objects, &exports(&flats[0])), |_| 0));
        match made {
            None => return Ok((flats.swap_remove(0), report, objects)),
            Some(Ok(object)) => {
                objects = vec![object];
                return Ok((flats.swap_remove(0), report, objects));
            }
            // The tools for that are not here.
            Some(Err(_)) => {}
        }
    }
    let (report, object) = whole(&flats, lines)?;
    Ok((flats.swap_remove(0), report, vec![object]))
}

/// A program in flat SSA, ready for a kind of file; in several versions, if it is not the same for all CPUs.
fn prepared(front: &FrontEnd, kind: Kind, graph: &Graph) -> Result<Vec<Flat>, Failed> {
    let mut flats = versions::of(front, graph, |graph| graph.residual()?.flat())?;
    for flat in &mut flats {
        prepare(flat, kind)?;
    }
    Ok(flats)
}

/// The object of a program that is compiled as one module.
fn whole(flats: &[Flat], lines: Option<&str>) -> Result<(Report, Vec<u8>), Failed> {
    let mut code = Code::of_versions(flats, lines)?;
    let object = code.object()?;
    Ok((code.report, object))
}

/// One object of several, in which only these symbols are global.
fn merged(options: &Options, objects: &[Vec<u8>], exports: &[String]) -> Result<Vec<u8>, Box<Diagnostic>> {
    let folder = temporary_folder()?;
    let linker = Linker::new(options, folder.path());
    let merged = linker.merge(&linker.write_objects(objects)?, None, exports, Path::new("nyala.o"))?;
    std::fs::read(&merged).map_err(|e| Box::new(cannot_write::temporary(e)))
}

fn exports(flat: &Flat) -> Vec<String> {
    flat.module.funcs.iter().filter_map(exported).collect()
}

/// Makes a program one for a kind of file.
fn prepare(flat: &mut Flat, kind: Kind) -> Result<(), Failed> {
    let Flat { module, report, options, .. } = flat;
    if kind == Kind::Exe {
        add_start(report, module)?;
    } else if let (Kind::StaticLib | Kind::SharedLib, Some(main)) = (kind, module.exported("main")) {
        // A program that uses a library has a `main` of its own.
        module.funcs[nyala_base::Id::idx(main)].linkage = Linkage::Internal;
    }
    if kind != Kind::Exe {
        check_exports(options, report, module)?;
    }
    if let (false, Some(target)) = (module.target().tail_calls, &options.target) {
        let jumps = |f: &&nyala_flat::Function| f.blocks.iter().any(|b| matches!(b.term, Terminator::TailCall { .. }));
        if let Some(f) = module.funcs.iter().find(jumps) {
            report.sink.push(tail_call_not_guaranteed::warning(f.span, &f.name, target));
        }
    }
    if options.sanitizer == Some(Sanitizer::Thread) {
        warn_of_threads(report, module);
    }
    Ok(())
}

/// The runtime is not made with ThreadSanitizer, which therefore does not see that threads of the runtime wait for each other.
fn warn_of_threads(report: &mut Report, module: &Module) {
    let starts = |f: &nyala_flat::Function| matches!(f.symbol(), Some("nyala_parallel" | "nyala_spawn"));
    let starts = |inst: &&nyala_flat::Inst| matches!(inst.op, InstOp::Call(f) if starts(module.func(f)));
    let mut insts = module.funcs.iter().flat_map(|f| &f.blocks).flat_map(|b| &b.insts);
    if let Some(inst) = insts.find(starts) {
        let message = "ThreadSanitizer does not see how iterations of `parallel`, and `sync`, wait for each other";
        let hint = "its reports may be false; `nyala run --engine interp` finds races of iterations";
        report.sink.push(limitation::warning(inst.span, message, hint));
    }
}

/// Reports exported functions that take or return function values: C has no functions with captured variables.
fn check_exports(options: &Options, report: &mut Report, module: &mut Module) -> Result<(), Failed> {
    let (code, unit) = (module.types.code(), module.types.unit());
    let environment = module.types.ptr(unit);
    let function = module.types.tuple(&[code, environment]);
    for f in module.funcs.iter().filter(|f| matches!(f.linkage, Linkage::Exported(_))) {
        let what = if f.params.contains(&function) {
            "a parameter"
        } else if f.rets.contains(&function) {
            "the result"
        } else {
            continue;
        };
        report.sink.push(not_in_c::error(f.span, &format!("{what} that is a function")));
    }
    report.check(options)
}

/// Adds the C function `main` of an executable, which runs the program's `main` on a large stack.
fn add_start(report: &mut Report, module: &mut Module) -> Result<(), Failed> {
    let Some(main) = module.exported("main") else {
        return Err(report.report(no_entry::of_executable()));
    };
    let takes_args = check_entry(report, module, main)?;
    let (i32, code) = (module.types.i32(), module.types.code());
    let params = [i32, module.func(main).params.get(1).copied().unwrap_or(code)];
    let rets = module.func(main).rets.clone();
    module.funcs[nyala_base::Id::idx(main)].linkage = Linkage::Internal;

    let program = module.declare("start.program", Linkage::Callback, &params, &[i32]);
    let mut b = FunctionBuilder::new(module, program);
    let entry = b.entry(&["argc", "argv"]);
    let args = [b.param(entry, 0), b.param(entry, 1)];
    let result = b.call(main, if takes_args { &args } else { &[] }, &rets);
    let result = if rets.is_empty() { b.literal(nyala_ir::Prim::I32, 0) } else { result };
    b.terminate(Terminator::Return(vec![result]));

    let all = [code, params[0], params[1], code];
    let start = module.declare("start", Linkage::Foreign("nyala_start_with_places".into()), &all, &[i32]);
    let places = module.declare("start.places", Linkage::Foreign(PLACES.into()), &[], &[]);
    let c_main = module.declare("start.main", Linkage::Exported("main".into()), &params, &[i32]);
    let mut b = FunctionBuilder::new(module, c_main);
    let entry = b.entry(&["argc", "argv"]);
    let program = b.function.constant(Const::CFunc(program), code);
    let places = b.function.constant(Const::CFunc(places), code);
    let args = [program, b.param(entry, 0), b.param(entry, 1), places];
    let result = b.call(start, &args, &[i32]);
    b.terminate(Terminator::Return(vec![result]));
    Ok(())
}

/// Links a program and the runtime.
fn link(
    options: &Options,
    program: &Program,
    sources: &Sources,
    inputs: &[PathBuf],
    out: &Path,
) -> Result<(), Box<Diagnostic>> {
    let Program { kind, objects, exports } = *program;
    let folder = temporary_folder()?;
    let linker = Linker::new(options, folder.path());
    let mut files = linker.write_objects(objects)?;
    if kind == Kind::Exe {
        files.push(linker.write("places.s", table_of_places(objects, sources).as_bytes())?);
    }
    let runtime = if objects.iter().any(|object| needs_runtime(object)) { Some(find_runtime()?) } else { None };
    let result = folder.path().join("result");
    match kind {
        Kind::StaticLib => linker.static_lib(&files, runtime.as_deref(), exports, out, &result)?,
        _ => linker.image(kind, &files, runtime.as_deref(), exports, inputs, out, &result)?,
    }
    deliver(&result, out)
}

fn deliver_bytes(bytes: &[u8], out: &Path) -> Result<(), Box<Diagnostic>> {
    nyala_files::write(out, bytes).map_err(|e| Box::new(cannot_write::file(out, e)))
}

pub(crate) fn temporary_folder() -> Result<tempfile::TempDir, Box<Diagnostic>> {
    let folder = tempfile::Builder::new().prefix("nyala-build-").tempdir();
    folder.map_err(|e| Box::new(cannot_write::temporary(e)))
}

fn exported(f: &nyala_flat::Function) -> Option<String> {
    match &f.linkage {
        Linkage::Exported(symbol) => Some(symbol.clone()),
        _ => None,
    }
}

/// The macro that guards the header `out` against a second inclusion.
fn guard_name(out: &Path) -> String {
    let name = out.file_name().unwrap_or_default().to_string_lossy().to_ascii_uppercase();
    let clean: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    format!("NYALA_{clean}")
}

/// Whether the object refers to a function of the runtime.
fn needs_runtime(object: &[u8]) -> bool {
    // The linker reports files that cannot be read.
    let Ok(file) = object::File::parse(object) else { return true };
    let is_ours = |name: &str| {
        let plain = name.trim_start_matches('_');
        plain.starts_with("nyala_") || plain.starts_with("anydsl_") || HALVES.contains(&name)
    };
    file.symbols().any(|s| s.is_undefined() && s.name().is_ok_and(is_ours))
}

/// The path of the runtime library: as the environment says, beside the command, in `../lib/nyala`, or made now.
fn find_runtime() -> Result<PathBuf, Box<Diagnostic>> {
    let mut places = Vec::new();
    if let Some(named) = std::env::var_os("NYALA_RUNTIME").filter(|v| !v.is_empty()) {
        let named = PathBuf::from(named);
        places.push(if named.is_dir() { named.join(RUNTIME) } else { named });
    } else if let Ok(exe) = std::env::current_exe().and_then(|e| e.canonicalize())
        && let Some(folder) = exe.parent()
    {
        places.push(folder.join(RUNTIME));
        places.push(folder.join("../lib/nyala").join(RUNTIME));
    }
    if let Some(found) = places.iter().find(|p| p.is_file()) {
        return Ok(found.clone());
    }
    let tried: Vec<String> = places.iter().map(|p| p.display().to_string()).collect();
    let is_named = std::env::var_os("NYALA_RUNTIME").is_some_and(|v| !v.is_empty());
    let made = if is_named { Err("it is not made where the environment names it".into()) } else { made_runtime() };
    made.map_err(|why| Box::new(runtime_not_found::error(&tried, &why)))
}

/// The runtime library, made of the source that this command was made of: `cargo install` installs commands only. It is kept
/// for this build of the command.
///
/// # Errors
/// Why it cannot be made.
fn made_runtime() -> Result<PathBuf, String> {
    let kept = nyala_runtime::Cache::of_user("runtime").ok_or("`HOME` is not set")?;
    let exe = std::env::current_exe().map_err(|e| e.to_string())?;
    let folder = kept.folder().join(crate::cache::key_of_file(&exe));
    let library = folder.join(RUNTIME);
    if library.is_file() {
        return Ok(library);
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let manifest = source.join("Cargo.toml");
    if !manifest.is_file() || !source.join("crates/runtime").is_dir() {
        return Err(format!("its source is not in `{}` anymore", source.display()));
    }
    eprintln!("note: making the runtime library, once for this installation: cargo build --release -p nyala-runtime");
    // What Cargo has made there is not made again.
    let own = source.join("target");
    let target = if own.join("release").is_dir() { own } else { folder.join("target") };
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--release", "--quiet", "--package", "nyala-runtime", "--manifest-path"]).arg(&manifest);
    let status = cargo.arg("--target-dir").arg(&target).stdin(Stdio::null()).stdout(Stdio::null()).status();
    let status = status.map_err(|e| format!("the command `cargo` does not start: {e}"))?;
    if !status.success() {
        return Err("the command `cargo` fails".into());
    }
    let keep = || {
        std::fs::create_dir_all(&folder)?;
        let fresh = tempfile::NamedTempFile::new_in(&folder)?;
        std::fs::copy(target.join("release").join(RUNTIME), fresh.path())?;
        fresh.persist(&library).map_err(|e| e.error)?;
        Ok(())
    };
    keep().map_err(|e: std::io::Error| e.to_string())?;
    if target.starts_with(&folder) {
        let _ = std::fs::remove_dir_all(&target);
    }
    Ok(library)
}

fn current_folder() -> String {
    std::env::current_dir().map(|d| d.display().to_string()).unwrap_or_default()
}

/// The symbol of an executable's table of places.
const PLACES: &str = "nyala_places";

/// The places of an executable's code, in assembly, for the runtime's `places.rs`, which describes the table.
fn table_of_places(objects: &[Vec<u8>], sources: &Sources) -> String {
    let folder = current_folder();
    let mut texts: Vec<String> = Vec::new();
    let mut numbers: HashMap<String, usize> = HashMap::new();
    let (mut parts, mut rows) = (String::new(), String::new());
    let (mut n_parts, mut n_rows) = (0, 0);
    for found in objects.iter().filter_map(|object| nyala_gen_llvm::places(object)) {
        n_parts += 1;
        n_rows += found.places.len();
        let Places { anchor, anchor_offset, size, places } = found;
        let _ = writeln!(parts, "    .8byte {anchor} - {anchor_offset}, {size}, {}", places.len());
        for (offset, place) in places {
            let place = in_file(place, sources);
            let line = match place.line {
                0 => String::new(),
                line => format!(", {}:{line}", place.file.strip_prefix(&format!("{folder}/")).unwrap_or(&place.file)),
            };
            let text = format!(" in `{}`{line}", place.function);
            let number = *numbers.entry(text).or_insert_with_key(|text| {
                texts.push(text.clone());
                texts.len() - 1
            });
            let _ = writeln!(rows, "    .long {offset}, {number}");
        }
    }
    let mut out = format!(
        "    .section .data.rel.ro,\"aw\"\n    .balign 8\n    .globl {PLACES}\n{PLACES}:\n    .8byte {n_parts}, {n_rows}\n{parts}{rows}"
    );
    for text in texts {
        let bytes: Vec<String> = text.bytes().filter(|&b| b != 0).chain([0]).map(|b| b.to_string()).collect();
        let _ = writeln!(out, "    .byte {}", bytes.join(","));
    }
    out.push_str("    .section .note.GNU-stack,\"\"\n");
    out
}

/// The name of the object in a static library.
const MEMBER: &str = "nyala.o";

/// Runs the system's compiler driver and binary tools in a temporary folder.
struct Linker<'a> {
    folder: &'a Path,
    debug: bool,
    sanitizer: Option<Sanitizer>,
}

/// The command of a tool: that of the environment's `variable`, which may have arguments, or the `usual` one.
pub(crate) fn tool(variable: &str, usual: &str) -> Command {
    let named = std::env::var_os(variable).filter(|v| !v.is_empty()).unwrap_or_else(|| usual.into());
    let words: Vec<OsString> = match named.to_str() {
        Some(text) if !Path::new(&named).exists() => text.split_whitespace().map(OsString::from).collect(),
        _ => vec![named],
    };
    let mut command = Command::new(words.first().map_or(OsStr::new(usual), |w| w));
    command.args(words.iter().skip(1));
    // Its messages are parsed below.
    command.env("LC_ALL", "C");
    command
}

/// The path in a form that no tool mistakes for an option.
fn plain(path: &Path) -> PathBuf {
    if path.as_os_str().as_encoded_bytes().starts_with(b"-") { Path::new(".").join(path) } else { path.into() }
}

impl<'a> Linker<'a> {
    fn new(options: &Options, folder: &'a Path) -> Linker<'a> {
        Linker { folder, debug: options.debug, sanitizer: options.sanitizer }
    }

    fn write_objects(&self, objects: &[Vec<u8>]) -> Result<Vec<PathBuf>, Box<Diagnostic>> {
        objects.iter().enumerate().map(|(i, object)| self.write(&format!("program{i}.o"), object)).collect()
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<PathBuf, Box<Diagnostic>> {
        let path = self.folder.join(name);
        match std::fs::write(&path, bytes) {
            Ok(()) => Ok(path),
            Err(e) => Err(Box::new(cannot_write::temporary(e))),
        }
    }

    fn run(&self, variable: &str, command: &mut Command, out: &Path) -> Result<(), Box<Diagnostic>> {
        let name = command.get_program().to_string_lossy().into_owned();
        let output = command.output().map_err(|e| Box::new(no_linker::error(&name, variable, e)))?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let missing = undefined_symbols(&said);
        if !missing.is_empty() {
            let names: Vec<String> = missing.iter().map(|n| format!("`{n}`")).collect();
            let message = format!("cannot link {}: nobody defines {}", out.display(), names.join(", "));
            return Err(Box::new(undefined_symbol::error(Span::NONE, message)));
        }
        let said = said.trim().replace(&format!("{}/", self.folder.display()), "");
        Err(Box::new(link_failed::error(out, &name, &said)))
    }

    /// Links an executable or a shared library.
    fn image(
        &self,
        kind: Kind,
        program: &[PathBuf],
        runtime: Option<&Path>,
        exports: &[String],
        inputs: &[PathBuf],
        out: &Path,
        result: &Path,
    ) -> Result<(), Box<Diagnostic>> {
        let mut cc = tool("CC", "cc");
        if kind == Kind::Exe {
            // The program then loads one library less at each start.
            cc.arg("-static-libgcc");
        } else {
            let names: String = exports.iter().map(|s| format!("    {};\n", in_version_script(s))).collect();
            let global = if exports.is_empty() { String::new() } else { format!("  global:\n{names}") };
            let script = self.write("exports.map", format!("{{\n{global}  local: *;\n}};\n").as_bytes())?;
            cc.args(["-shared", "-Xlinker", "--version-script", "-Xlinker"]).arg(script);
            if let Some(name) = out.file_name() {
                cc.args(["-Xlinker", "-soname", "-Xlinker"]).arg(name);
            }
        }
        cc.args(self.sanitizer.map(|s| format!("-fsanitize={}", s.name())));
        cc.arg("-o").arg(result).args(program);
        cc.args(inputs.iter().map(|p| plain(p)));
        cc.args(runtime);
        cc.args(["-Xlinker", "--gc-sections", "-lm", "-lpthread", "-ldl"]);
        if !self.debug {
            cc.args(["-Xlinker", "--strip-debug"]);
        }
        self.run("CC", &mut cc, out)
    }

    /// Makes a static library: one object in which only the program's exports are global, so that a program may be
    /// linked with several such libraries, and with Rust's own.
    fn static_lib(
        &self,
        program: &[PathBuf],
        runtime: Option<&Path>,
        exports: &[String],
        out: &Path,
        result: &Path,
    ) -> Result<(), Box<Diagnostic>> {
        let member = match (program, runtime) {
            ([one], None) => {
                let member = self.folder.join(MEMBER);
                std::fs::rename(one, &member).map_err(cannot_write::temporary)?;
                member
            }
            _ => self.merge(program, runtime, exports, out)?,
        };
        self.run("AR", tool("AR", "ar").arg("rcsD").arg(result).arg(&member), out)
    }

    /// Makes one object of several, and of the runtime, in which only these symbols are global.
    fn merge(
        &self,
        program: &[PathBuf],
        runtime: Option<&Path>,
        exports: &[String],
        out: &Path,
    ) -> Result<PathBuf, Box<Diagnostic>> {
        let (merged, member) = (self.folder.join("merged.o"), self.folder.join(MEMBER));
        let mut cc = tool("CC", "cc");
        cc.args(["-r", "-nostdlib", "-o"]).arg(&merged).args(program).args(runtime);
        if runtime.is_some() {
            // The linker would drop a group of sections, with its local symbols, if another library has a group of the
            // same name.
            cc.args(["-Xlinker", "--force-group-allocation", "-Xlinker", "--gc-sections"]);
            for symbol in exports {
                cc.args(["-Xlinker", "-u", "-Xlinker", symbol]);
            }
        }
        self.run("CC", &mut cc, out)?;
        // In the file, a line is a name without spaces or `#`. An empty file is an error.
        let (plain, odd): (Vec<_>, Vec<_>) = exports.iter().partition(|s| is_plain(s));
        let names: String = plain.iter().map(|s| format!("{s}\n")).collect();
        let names = self.write("exports.txt", format!("# exports\n{names}").as_bytes())?;
        let mut objcopy = tool("OBJCOPY", "objcopy");
        let mut keep = OsString::from("--keep-global-symbols=");
        keep.push(names);
        objcopy.arg(keep).args(odd.iter().map(|s| format!("--keep-global-symbol={s}")));
        // Rust's own objects contain bitcode, which is invalid once it is merged, and confuses binary tools.
        objcopy.args(["--remove-section=.llvmbc", "--remove-section=.llvmcmd"]);
        if !self.debug {
            objcopy.arg("--strip-debug");
        }
        self.run("OBJCOPY", objcopy.arg(&merged).arg(&member), out)?;
        Ok(member)
    }
}

/// Whether a symbol can be written to the files of binary tools without escapes.
fn is_plain(symbol: &str) -> bool {
    symbol.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.$".contains(&b))
}

/// A symbol as a pattern of a version script, which has no escapes.
fn in_version_script(symbol: &str) -> String {
    if is_plain(symbol) {
        return format!("\"{symbol}\"");
    }
    symbol.bytes().map(|b| if b.is_ascii_alphanumeric() || b == b'_' { b as char } else { '?' }).collect()
}

/// The undefined symbols that a linker's messages name, each once.
fn undefined_symbols(said: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for line in said.lines() {
        let rest = ["undefined reference to `", "undefined symbol: "].iter().find_map(|m| line.split_once(m));
        if let Some((_, rest)) = rest {
            let name = rest.trim_end_matches('\'').to_string();
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    names
}

/// Writes the finished file `from` to `out`.
fn deliver(from: &Path, out: &Path) -> Result<(), Box<Diagnostic>> {
    let put = || -> std::io::Result<()> {
        let is_program = from.metadata()?.permissions().mode() & 0o100 != 0;
        let write = if is_program { nyala_files::write_program } else { nyala_files::write };
        write(out, &std::fs::read(from)?)
    };
    put().map_err(|e| Box::new(cannot_write::file(out, e)))
}
