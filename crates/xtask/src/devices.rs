//! The conformance list of devices: programs in `tests/device/conformance`, each instantiated with the names of each
//! platform in `tests/device/platforms`, on every engine and device there is; and tests of libraries ([`LIBRARIES`]).
//! `./x test --devices` runs what needs no other tools, and makes the texts for the rest; `./x test --all devices` runs all of it, and
//! `./x bless devices` writes its table into `docs/devices.md`.
//!
//! A program prints a line for each thing that it tries, `name: ok`. A cell of the table is what a column's runs say of that
//! line: `ok`, `fails`, `assembled`, `valid`, or a number that stands for what the platform lacks, as the compiler or, of a
//! device, the runtime says it.
//! Assembled are kernels for devices that the machine need not have: NVIDIA's compiler makes machine code of them. Valid are
//! kernels in SPIR-V by the words of `spirv-val`. Kernels in C++ for high-level synthesis are compiled with a stand-in for the
//! tools' header (`tests/hls`), and run.

use crate::queue::{Answer, Order};
use crate::sass;
use crate::texts::{TIME_LIMIT, nyala, output_within};
use crate::{Tally, root};
use object::{Object, ObjectSymbol};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A column of the table: its runs, each with the names of one platform.
struct Column {
    name: &'static str,
    runs: &'static [(&'static str, &'static [&'static str])],
    /// The programs or files that must exist.
    needs: Needs,
}

/// A requirement of a column.
#[derive(Clone, Copy)]
enum Needs {
    Nothing,
    /// A device of this platform, as `nyala doctor` shows it.
    Device(&'static str),
    /// NVIDIA's compiler or assembler, which makes machine code of the kernels; they do not run.
    Cuda(&'static Assembly),
    /// LLVM's linker, which the Rust toolchain has: it makes code objects of kernels for AMD's GPUs; they do not run.
    Linker,
    /// The validator of SPIR-V, which checks the kernels; they do not run.
    SpirV,
    /// A compiler of C++, which makes a library of the kernels; the runtime calls that.
    Cpp,
}

impl Needs {
    /// For a column whose kernels do not run: the cell of kernels that the tools accept.
    fn without_runs(self) -> Option<Cell> {
        match self {
            Needs::Cuda(_) | Needs::Linker => Some(Cell::Assembled),
            Needs::SpirV => Some(Cell::Valid),
            Needs::Nothing | Needs::Device(_) | Needs::Cpp => None,
        }
    }
}

/// How NVIDIA's tools make machine code of kernels.
struct Assembly {
    /// The program, with its options.
    tool: &'static str,
    options: &'static [&'static str],
    /// The stage of `nyala emit` that it takes.
    stage: &'static str,
    /// Its place among the codes of a kernel ([`sass`]).
    which: usize,
}

const NVCC: Assembly = Assembly {
    tool: "nvcc",
    options: &["-arch=sm_90", "-fmad=false", "-cubin", "-Werror=all-warnings", "-Xptxas=-v"],
    stage: "cuda",
    which: 1,
};
const PTXAS: Assembly = Assembly { tool: "ptxas", options: &["-arch=sm_90", "-Werror", "-v"], stage: "ptx", which: 0 };

const HOST: &[&str] = &["--device", "host"];
const HOST_PLAIN: &[&str] = &["--device", "host", "--no-pe", "-O0"];
const INTERP: &[&str] = &["--engine", "interp"];

const COLUMNS: &[Column] = &[
    Column {
        name: "interpreter",
        runs: &[("cuda", INTERP), ("nvvm", INTERP), ("opencl", INTERP), ("amdgpu_hsa", INTERP), ("vulkan", INTERP)],
        needs: Needs::Nothing,
    },
    Column {
        name: "host",
        runs: &[
            ("cuda", HOST),
            ("nvvm", HOST),
            ("opencl", HOST),
            ("amdgpu_pal", HOST),
            ("amdgpu_hsa", HOST),
            ("vulkan", HOST),
            ("opencl", HOST_PLAIN),
        ],
        needs: Needs::Nothing,
    },
    Column {
        name: "OpenCL C",
        runs: &[("opencl", &[]), ("opencl", &["-O0"]), ("cuda", &["--device", "opencl"])],
        needs: Needs::Device("OpenCL"),
    },
    Column { name: "HLS C++", runs: &[("hls", &[]), ("hls", &["-O0"])], needs: Needs::Cpp },
    Column { name: "CUDA C++, sm_90", runs: &[("cuda", &[]), ("nvvm", &[])], needs: Needs::Cuda(&NVCC) },
    Column {
        name: "PTX, sm_90",
        runs: &[("cuda", &["--cuda", "sm_90"]), ("nvvm", &[]), ("cuda", &["-O0"])],
        needs: Needs::Cuda(&PTXAS),
    },
    Column {
        name: "AMDGPU, gfx90a",
        runs: &[
            ("amdgpu_hsa", &[]),
            ("amdgpu_hsa", &["--amdgpu", "gfx1100"]),
            ("amdgpu_hsa", &["--amdgpu", "gfx942", "-O0"]),
            ("amdgpu_hsa", &["--amdgpu", "gfx1201"]),
        ],
        needs: Needs::Linker,
    },
    Column { name: "Vulkan", runs: &[("vulkan", &[]), ("vulkan", &["-O0"])], needs: Needs::Device("Vulkan") },
    Column { name: "SPIR-V for Vulkan", runs: &[("vulkan", &[]), ("vulkan", &["-O0"])], needs: Needs::SpirV },
    Column { name: "SPIR-V for OpenCL", runs: &[("levelzero", &[]), ("levelzero", &["-O0"])], needs: Needs::SpirV },
];

/// Tests of libraries and of the renderer for devices, with their names in the table: the file with the tests, which finds devices by `std::device`,
/// and the one that prints what they give. The `static PLATFORM` is the platform's number. Of a column, they have the first run on
/// a platform with one.
const LIBRARIES: &[(&str, [&str; 2])] = &[
    ("image", ["lib/image/tests/devices.impala", "tests/device/image.impala"]),
    ("ray", ["lib/ray/tests/device.impala", "tests/device/ray.impala"]),
    ("render", ["examples/render/device_checks.impala", "tests/device/render.impala"]),
];

/// A platform's number for `std::device`.
fn number_of(platform: &str) -> Option<u32> {
    match platform {
        "cuda" => Some(1),
        "opencl" => Some(2),
        "amdgpu_hsa" => Some(3),
        "levelzero" => Some(5),
        "vulkan" => Some(6),
        _ => None,
    }
}

/// A program of the list.
struct Program {
    name: String,
    files: Vec<PathBuf>,
    is_library: bool,
}

impl Program {
    /// The runs of a column that the program has.
    fn runs(&self, column: &Column) -> &'static [(&'static str, &'static [&'static str])] {
        if !self.is_library {
            return column.runs;
        }
        let first = column.runs.iter().position(|(platform, _)| number_of(platform).is_some());
        first.map_or(&[], |i| &column.runs[i..=i])
    }
}

/// The result of a line in a column.
#[derive(Clone, PartialEq, Eq)]
enum Cell {
    Ok,
    Fails,
    Assembled,
    Valid,
    /// The compiler's message.
    Lacks(String),
    NotRun,
}

/// A program's file name, the line that it prints, and a cell for each column.
type Row = (String, String, Vec<Cell>);

fn folder() -> PathBuf {
    root().join("tests/device")
}

fn page() -> PathBuf {
    root().join("docs/devices.md")
}

pub fn has_spirv_tools() -> bool {
    Command::new("spirv-val").arg("--version").output().is_ok_and(|o| o.status.success())
}

/// The compiler of C++.
const CPP: &str = "c++";

fn has_cpp() -> bool {
    Command::new(CPP).arg("--version").output().is_ok_and(|o| o.status.success())
}

/// A library of the kernels of a program for high-level synthesis, in `target/device`.
fn simulation(platform: &str, args: &[&str], program: &Program) -> Result<PathBuf, String> {
    let out = root().join("target/device");
    std::fs::create_dir_all(&out).map_err(|e| e.to_string())?;
    let (text, library) = (out.join(format!("{}.hls.cpp", program.name)), out.join(format!("{}.hls.so", program.name)));
    let run = command(platform, args, program);
    let mut emit = Command::new(nyala());
    emit.current_dir(root()).args(["emit", "--stage", "hls", "-o"]).arg(&text).args(run.get_args().skip(1));
    let (status, output, errors) = output_within(&mut emit, TIME_LIMIT)?;
    if status != Some(0) {
        return Err(output + &errors);
    }
    if std::fs::read_to_string(&text).is_ok_and(|made| made.starts_with(NO_KERNEL)) {
        return Err(format!("error[limitation]: {NOT_THERE}"));
    }
    let mut compile = Command::new(CPP);
    compile.args([
        "-std=c++14",
        "-O2",
        "-shared",
        "-fPIC",
        "-ffp-contract=off",
        "-fno-strict-aliasing",
        "-Wall",
        "-Werror",
    ]);
    // The pragmas are the tools'.
    compile.args(["-Wno-unknown-pragmas", "-I"]).arg(root().join("tests/hls")).arg("-o").args([&library, &text]);
    match output_within(&mut compile, TIME_LIMIT)? {
        (Some(0), ..) => Ok(library),
        (_, output, errors) => Err(output + &errors),
    }
}

/// A program of NVIDIA's CUDA toolkit, with the variable that names its folder: of the machine, or from Python's packages in
/// `target/cuda`.
pub fn cuda_tool(name: &str) -> Option<Command> {
    let works = |command: &mut Command| command.arg("--version").output().is_ok_and(|o| o.status.success());
    if works(&mut Command::new(name)) {
        return Some(Command::new(name));
    }
    let home = cuda_home(&cuda_folder())?;
    let mut command = Command::new(home.join("bin").join(name));
    command.env("CUDA_HOME", home);
    Some(command)
}

/// The environment of Python's with NVIDIA's packages.
pub fn cuda_folder() -> PathBuf {
    root().join("target/cuda")
}

/// The CUDA toolkit in a folder with an environment of Python's.
fn cuda_home(folder: &Path) -> Option<PathBuf> {
    let versions = std::fs::read_dir(folder.join("lib")).ok()?;
    let mut homes = versions.flatten().map(|v| v.path().join("site-packages/nvidia/cu13"));
    homes.find(|home| home.join("bin/nvcc").exists())
}

/// Whether what a column needs is there. Devices are asked for in a process of its own, which sees what was just installed.
fn is_there(needs: Needs) -> bool {
    let needs = match needs {
        Needs::Nothing | Needs::Linker => return true,
        Needs::Cuda(assembly) => return cuda_tool(assembly.tool).is_some(),
        Needs::SpirV => return has_spirv_tools(),
        Needs::Cpp => return has_cpp(),
        Needs::Device(needs) => needs,
    };
    let output = Command::new(nyala()).arg("doctor").output();
    output
        .is_ok_and(|o| String::from_utf8_lossy(&o.stdout).lines().any(|l| l.starts_with("works") && l.contains(needs)))
}

/// The programs of the list.
fn programs() -> Result<Vec<Program>, String> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder().join("conformance"))
        .map_err(|e| format!("tests/device/conformance: {e}"))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "impala"))
        .collect();
    paths.sort();
    let stem = |path: &Path| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    Ok(paths.into_iter().map(|path| Program { name: stem(&path), files: vec![path], is_library: false }).collect())
}

/// What the gate needs of a column: its runs, if they need nothing but Rust's toolchain and a C++ compiler; else its kernels
/// as text.
fn is_in_gate(column: &Column) -> bool {
    matches!(column.needs, Needs::Nothing | Needs::Linker | Needs::Cpp)
}

/// The orders for the gate: each program in each column.
pub fn orders() -> Result<(Vec<Order>, Vec<String>), String> {
    let (mut orders, mut skipped) = (Vec::new(), Vec::new());
    if !is_there(Needs::Cpp) {
        skipped.push(format!("HLS C++: there is no `{CPP}`"));
    }
    for program in programs()? {
        for column in COLUMNS.iter().filter(|c| !is_in_gate(c) || is_there(c.needs)) {
            let words = ["device".into(), program.name.clone(), column.name.to_string()];
            let cost = if column.name == "host" { 2.0 } else { 1.0 };
            orders.push(Order { words: words.into(), cost });
        }
    }
    Ok((orders, skipped))
}

/// Performs an order: a program and a column.
pub fn perform(words: &[String]) -> Answer {
    let mut found = Found::default();
    if let Err(why) = perform_into(words, &mut found) {
        found.faults.push(why);
    }
    if let [program, column] = words
        && !found.lacks.is_empty()
        && !is_known_to_lack(program, column)
    {
        found.fail("the table of docs/devices.md says that it has everything; `./x bless devices` writes it".into());
        found.faults.extend(found.lacks.iter().cloned());
    }
    Answer { faults: found.faults, skipped: found.lacks.into_iter().collect(), ..Answer::default() }
}

/// Whether the table of the page has a reason in a column, for a line of a program.
fn is_known_to_lack(program: &str, column: &str) -> bool {
    let Some(place) = COLUMNS.iter().position(|c| c.name == column) else { return false };
    let text = std::fs::read_to_string(page()).unwrap_or_default();
    let mut rows = text.lines().filter(|l| l.starts_with(&format!("| {program} | ")));
    // The program and its line stand before the columns.
    rows.any(|row| row.trim_matches('|').split(" | ").nth(place + 2).is_some_and(|cell| cell.trim().starts_with('(')))
}

fn perform_into(words: &[String], found: &mut Found) -> Result<(), String> {
    let malformed = || format!("malformed order {words:?}");
    let [program, column] = words else { return Err(malformed()) };
    let program = programs()?.into_iter().find(|p| p.name == *program).ok_or_else(malformed)?;
    let column = COLUMNS.iter().find(|c| c.name == *column).ok_or_else(malformed)?;
    if !is_in_gate(column) {
        return column.runs.iter().try_for_each(|(platform, args)| emitted(column, platform, args, &program, found));
    }
    match column.needs.without_runs() {
        Some(good) => drop(made(column, good, &program, &mut sass::Codes::new(), found)),
        None => {
            let lines = names(&program, found)?;
            let rows: Vec<Row> = lines.into_iter().map(|l| (program.name.clone(), l, Vec::new())).collect();
            cells(column, &program, &rows, found);
        }
    }
    Ok(())
}

/// Makes the text of a program's kernels for a platform, which a tool or a device elsewhere takes.
fn emitted(column: &Column, platform: &str, args: &[&str], program: &Program, found: &mut Found) -> Result<(), String> {
    let stage = match column.needs {
        Needs::Cuda(assembly) => assembly.stage,
        Needs::Device("OpenCL") => "opencl",
        _ => "spirv",
    };
    // A program for one platform on a device of another one is made when it runs.
    if args.contains(&"--device") {
        return Ok(());
    }
    let out = root().join("target/device");
    std::fs::create_dir_all(&out).map_err(|e| e.to_string())?;
    let text = out.join(format!("{}.{stage}.{}", program.name, std::process::id()));
    let run = command(platform, args, program);
    let mut emit = Command::new(nyala());
    emit.current_dir(root()).args(["emit", "--stage", stage, "-o"]).arg(&text).args(run.get_args().skip(1));
    let (status, output, errors) = output_within(&mut emit, TIME_LIMIT)?;
    let size = std::fs::metadata(&text).map_or(0, |m| m.len());
    let _ = std::fs::remove_file(&text);
    match errors.lines().find_map(lack) {
        Some(why) => drop(found.lacks.insert(format!("{} as {}: {why}", program.name, column.name))),
        None if status == Some(0) && size > 0 => {}
        None => return Err(format!("{platform} {}: {output}{errors}", args.join(" "))),
    }
    Ok(())
}

/// The feature that a platform lacks, by a line of an error.
fn lack(line: &str) -> Option<&str> {
    nyala_base::diagnostics::LACKS.iter().find_map(|code| line.strip_prefix(&format!("error[{code}]: ")))
}

/// What runs of programs found.
#[derive(Default)]
struct Found {
    tally: Tally,
    faults: Vec<String>,
    /// What platforms lack, with the programs that need it.
    lacks: BTreeSet<String>,
}

impl Found {
    fn fail(&mut self, fault: String) {
        self.tally.failed += 1;
        self.faults.push(fault);
    }
}

/// Runs the whole list, with the libraries, in all columns; writes its table if `bless`. What is missing is a failure.
pub fn run(bless: bool) -> Result<Tally, String> {
    let mut programs = programs()?;
    programs.extend(LIBRARIES.iter().map(|(name, files)| {
        let files = files.iter().map(|file| root().join(file)).collect();
        Program { name: name.to_string(), files, is_library: true }
    }));
    let mut tally = Tally::default();
    let there: Vec<bool> = COLUMNS.iter().map(|c| is_there(c.needs)).collect();
    for (column, _) in COLUMNS.iter().zip(&there).filter(|(_, there)| !**there) {
        let why = match column.needs {
            Needs::Device(platform) => format!("no device of {platform} is there"),
            Needs::Cuda(assembly) => format!("there is no `{}`", assembly.tool),
            Needs::SpirV => "there is no `spirv-val`".into(),
            Needs::Cpp => format!("there is no `{CPP}`"),
            Needs::Nothing | Needs::Linker => String::new(),
        };
        println!("FAILED {}: {why}; `./x setup` may bring it", column.name);
        tally.failed += 1;
    }
    // Programs are independent: each writes files of its own name. The library's, last in the table, takes longest.
    let (next, done) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, |n| n.get()) {
            scope.spawn(|| {
                while let Some(i) = programs.len().checked_sub(1 + next.fetch_add(1, Ordering::Relaxed)) {
                    let result = run_program(&programs[i], &there);
                    if let Ok((_, _, found)) = &result {
                        // At once: the whole list takes long.
                        found.faults.iter().for_each(|fault| println!("FAILED {fault}"));
                        let Tally { passed, failed, skipped } = found.tally;
                        eprintln!("  {}: {passed} passed, {failed} failed, {skipped} skipped", programs[i].name);
                    }
                    done.lock().unwrap_or_else(|e| e.into_inner()).insert(i, result);
                }
            });
        }
    });
    let mut rows: Vec<Row> = Vec::new();
    let mut codes = sass::Codes::new();
    for result in done.into_inner().unwrap_or_else(|e| e.into_inner()).into_values() {
        let (of_program, of_its_kernels, found) = result?;
        rows.extend(of_program);
        codes.extend(of_its_kernels);
        tally.add(found.tally);
    }
    let is_complete = there.iter().all(|there| *there);
    match gpu_script() {
        Ok(()) => tally.passed += 1,
        Err(why) => {
            println!("FAILED bench/gpu.sh: {why}");
            tally.failed += 1;
        }
    }
    if let Some(version) = assembler() {
        if let Err(why) = bench_kernels(&mut codes) {
            println!("FAILED bench/gpu: {why}");
            tally.failed += 1;
        }
        sass::compare(&codes, &version, bless && is_complete, &mut tally)?;
    }
    table(&rows, is_complete, bless, &mut tally)?;
    Ok(tally)
}

/// Runs a program in all columns that are there.
fn run_program(program: &Program, there: &[bool]) -> Result<(Vec<Row>, sass::Codes, Found), String> {
    let (mut codes, mut found) = (sass::Codes::new(), Found::default());
    // The interpreter defines which lines there are.
    let lines = names(program, &mut found)?;
    let mut rows: Vec<Row> = lines.into_iter().map(|l| (program.name.clone(), l, Vec::new())).collect();
    for (column, &is_there) in COLUMNS.iter().zip(there) {
        let cells = match (is_there, column.needs.without_runs()) {
            (true, _) if program.runs(column).is_empty() => {
                found.tally.skipped += rows.len();
                vec![Cell::Lacks(NOT_THERE.into()); rows.len()]
            }
            (true, Some(good)) => vec![made(column, good, program, &mut codes, &mut found); rows.len()],
            (true, None) => cells(column, program, &rows, &mut found),
            (false, _) => {
                found.tally.skipped += rows.len();
                vec![Cell::NotRun; rows.len()]
            }
        };
        rows.iter_mut().zip(cells).for_each(|(row, cell)| row.2.push(cell));
    }
    Ok((rows, codes, found))
}

fn command(platform: &str, args: &[&str], program: &Program) -> Command {
    let mut command = Command::new(nyala());
    command.current_dir(root()).arg("run").args(args);
    if program.is_library {
        command.arg("-D").arg(format!("PLATFORM={}", number_of(platform).unwrap_or_default()));
    } else {
        let platform = folder().join("platforms").join(format!("{platform}.impala"));
        command.args([&platform, &folder().join("common.impala")]);
    }
    command.args(&program.files);
    command
}

/// The lines of a program without their ends.
fn names(program: &Program, found: &mut Found) -> Result<Vec<String>, String> {
    let (_, output, errors) = output_within(&mut command("opencl", INTERP, program), TIME_LIMIT)?;
    let names: Vec<String> = output.lines().filter_map(|l| Some(l.rsplit_once(": ")?.0.to_string())).collect();
    if names.is_empty() {
        found.fail(format!("{}: it prints nothing\n{errors}", program.name));
    }
    Ok(names)
}

/// Prints machine code of a program's kernels; returns it.
fn code_object(platform: &str, args: &[&str], program: &Program) -> sass::Assembled {
    let out = root().join("target/device");
    std::fs::create_dir_all(&out).map_err(|e| e.to_string())?;
    let code = out.join(format!("{}.hsaco", program.name));
    let run = command(platform, args, program);
    let mut emit = Command::new(nyala());
    emit.current_dir(root()).args(["emit", "--stage", "amdgpu", "-o"]).arg(&code).args(run.get_args().skip(1));
    let (status, output, errors) = output_within(&mut emit, TIME_LIMIT)?;
    if errors.contains("there is no kernel for") {
        return Ok((NO_KERNEL.into(), Vec::new()));
    }
    if status != Some(0) {
        return Err(output + &errors);
    }
    let bytes = std::fs::read(&code).map_err(|e| format!("{}: {e}", code.display()))?;
    let file = object::File::parse(&bytes[..]).map_err(|e| format!("the code object: {e}"))?;
    let has_kernel = file.dynamic_symbols().any(|s| s.name().is_ok_and(|n| n.ends_with(".kd")));
    let is_amds = bytes.get(18..20) == Some(&object::elf::EM_AMDGPU.to_le_bytes());
    match is_amds && has_kernel {
        true => Ok((output, bytes)),
        false => Err(format!("{} has no kernel for AMD's GPUs", code.display())),
    }
}

/// Makes machine code of a program's kernels, or checks them.
fn made(column: &Column, good: Cell, program: &Program, codes: &mut sass::Codes, found: &mut Found) -> Cell {
    for (i, (platform, args)) in program.runs(column).iter().enumerate() {
        let made = match column.needs {
            Needs::Cuda(assembly) => assemble(assembly, platform, args, program),
            Needs::Linker => code_object(platform, args, program),
            _ => validate(platform, args, program),
        };
        let said = match made {
            Ok((said, _)) if said.starts_with(NO_KERNEL) => {
                found.tally.skipped += 1;
                return Cell::Lacks(NOT_THERE.into());
            }
            Ok((said, code)) => {
                // The first run is the one that is compared.
                if let (Needs::Cuda(assembly), 0, false) = (column.needs, i, program.is_library) {
                    sass::add(codes, &program.name, assembly.which, &said, &code);
                }
                found.tally.passed += 1;
                continue;
            }
            Err(why) => why,
        };
        if let Some(why) = said.lines().find_map(lack) {
            found.tally.skipped += 1;
            found.lacks.insert(format!("{} on {}: {why}", program.name, column.name));
            return Cell::Lacks(why.into());
        }
        found.fail(format!("{} on {}, {platform} {}: {said}", program.name, column.name, args.join(" ")));
        return Cell::Fails;
    }
    good
}

/// Checks the kernels of a program of the list in SPIR-V, in `target/device`; returns the tool's words.
fn validate(platform: &str, args: &[&str], program: &Program) -> sass::Assembled {
    let out = root().join("target/device");
    std::fs::create_dir_all(&out).map_err(|e| e.to_string())?;
    let code = out.join(format!("{}.spv", program.name));
    let run = command(platform, args, program);
    let mut emit = Command::new(nyala());
    emit.current_dir(root()).args(["emit", "--stage", "spirv", "-o"]).arg(&code).args(run.get_args().skip(1));
    let words = |command: &mut Command| match output_within(command, TIME_LIMIT)? {
        (Some(0), output, errors) => Ok(output + &errors),
        (_, output, errors) => Err(output + &errors),
    };
    words(&mut emit)?;
    let made = std::fs::read(&code).map_err(|e| format!("{}: {e}", code.display()))?;
    if made.starts_with(NO_KERNEL.as_bytes()) || made.is_empty() {
        return Ok((NO_KERNEL.into(), Vec::new()));
    }
    let check = |target: &str| words(Command::new("spirv-val").args(["--target-env", target]).arg(&code));
    let validated = |target: &str| check(target).map(|said| (said, Vec::new()));
    match platform {
        "vulkan" => validated("vulkan1.3"),
        // Numbers of 16 bits, atomic operations of 64, and operations of subgroups are extensions of OpenCL, which its full profile does
        // not allow.
        _ => validated("opencl2.2").or_else(|why| match () {
            () if why.contains("Profile specification") => validated("spv1.2"),
            () if why.contains("Invalid SPIR-V binary version 1.3") => validated("spv1.3"),
            () => Err(why),
        }),
    }
}

/// Compiles the kernels of `bench/gpu`, ours and those in CUDA C++.
fn bench_kernels(codes: &mut sass::Codes) -> Result<(), String> {
    let run = |mut command: Command| match output_within(&mut command, TIME_LIMIT)? {
        (Some(0), output, errors) => Ok(output + &errors),
        (_, output, errors) => Err(output + &errors),
    };
    let mut emit = |program: &Path, text: &Path| {
        let mut emit = Command::new(nyala());
        emit.args(["emit", "--stage", "ptx", "--cuda", "sm_90", "-o"]).args([text, program]);
        let tool = cuda_tool(PTXAS.tool).ok_or("NVIDIA's tools are not there")?;
        emit.envs(tool.get_envs().filter_map(|(name, value)| Some((name, value?))));
        run(emit).map(drop)
    };
    let cubin = root().join("target/device/bench.cubin");
    let mut assemble = |name: &str, options: &[&str], text: &Path| {
        let mut tool = cuda_tool(name).ok_or("NVIDIA's tools are not there")?;
        tool.args(options).arg("-o").args([&cubin, text]);
        let said = run(tool)?;
        Ok((said, std::fs::read(&cubin).map_err(|e| e.to_string())?))
    };
    sass::add_bench(codes, &mut emit, &mut assemble)
}

/// Tries `bench/gpu.sh` from building to the results that it writes, with a stand-in for NVIDIA's driver, under which kernels do nothing
/// but copy: so one kernel gives what its peer does, and what the others lack is reported.
fn gpu_script() -> Result<(), String> {
    let run = |command: &mut Command| output_within(command, TIME_LIMIT);
    let out = root().join("target/device/gpu script");
    let _ = std::fs::remove_dir_all(&out);
    let (folder, driver, results) = (out.join("folder"), out.join("driver"), out.join("results"));
    std::fs::create_dir_all(&driver).map_err(|e| e.to_string())?;
    let mut compile = Command::new("cc");
    compile.args(["-shared", "-fPIC", "-o"]).arg(driver.join("libcuda.so.1"));
    compile.arg(root().join("crates/xtask/tests/all/driver/cuda.c"));
    let nvcc = cuda_tool(NVCC.tool).ok_or("NVIDIA's tools are not there")?;
    let mut build = Command::new(root().join("bench/gpu.sh"));
    build.envs(nvcc.get_envs().filter_map(|(name, value)| Some((name, value?))));
    build.args(["build", "sm_90"]).arg(&folder).env("NYALA", nyala());
    for command in [&mut compile, &mut build] {
        let (status, output, errors) = run(command)?;
        if status != Some(0) {
            return Err(output + &errors);
        }
    }
    // As on a machine without tools and without the user's folder.
    let on_gpu = |driver: &Path| {
        let mut on_gpu = Command::new(folder.join("run"));
        on_gpu.env_clear().env("PATH", "/usr/bin:/bin").env("LD_LIBRARY_PATH", driver).env("FAKE_CUDA", "copies");
        run(on_gpu.current_dir("/").arg(&results))
    };
    let (status, output, _) = on_gpu(Path::new(""))?;
    if status != Some(1) || !output.contains("no driver: libcuda.so.1") {
        return Err(format!("without a driver: {output}"));
    }
    let (status, output, errors) = on_gpu(&driver)?;
    let text = std::fs::read_to_string(results.join("results.md")).map_err(|e| format!("{e}\n{output}{errors}"))?;
    let (lines, mut wrong) = (text.lines(), Vec::new());
    let mut expect = |what: &str, holds: &dyn Fn(&str) -> bool| {
        if !lines.clone().any(holds) {
            wrong.push(format!("no line for {what}"));
        }
    };
    expect("the GPU", &|l| l == "stand-in 0, sm_90, 0 multiprocessors at 0 MHz, driver for CUDA 13.0");
    expect("copy", &|l| l.starts_with("| copy | ") && l.ends_with(" | equal but for 0 |"));
    expect("SGEMM", &|l| l.starts_with("| SGEMM | ") && l.ends_with(" | NOTHING COMPUTED |"));
    expect("channels", &|l| l.starts_with("| channels | not for CUDA: a kernel reads or writes a channel"));
    expect("the faults of barriers", &|l| l.starts_with("a sum of each block: ") && l.ends_with(" wrong"));
    for program in programs()?.iter().filter(|p| p.name != "channels") {
        expect(&program.name, &|l| l.starts_with(&format!("| {} | FAILED, 0 ok | ", program.name)));
    }
    // On this machine, any of these would be a fault of the runtime or of the stand-in.
    for fault in ["exit status 13", "too long", "panicked", "| FAILED |"] {
        if output.contains(fault) || text.contains(fault) {
            wrong.push(format!("`{fault}`"));
        }
    }
    match wrong.is_empty() && status == Some(1) {
        true => std::fs::remove_dir_all(&out).map_err(|e| e.to_string()),
        false => Err(format!("{}\n{output}{errors}", wrong.join("\n"))),
    }
}

/// The assembler and its version.
fn assembler() -> Option<String> {
    let output = cuda_tool(PTXAS.tool)?.arg("--version").output().ok()?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let version = said.lines().find_map(|line| line.rsplit_once(", V"))?.1.to_string();
    Some(format!("ptxas {version}"))
}

/// Makes machine code of the kernels of a program of the list, in `target/device`; returns the tool's words and the code.
fn assemble(
    assembly: &Assembly,
    platform: &str,
    args: &[&str],
    program: &Program,
) -> Result<(String, Vec<u8>), String> {
    let mut tool = cuda_tool(assembly.tool).ok_or("NVIDIA's tools are not there")?;
    let out = root().join("target/device");
    std::fs::create_dir_all(&out).map_err(|e| e.to_string())?;
    let extension = if assembly.stage == "cuda" { "cu" } else { "ptx" };
    let file = |extension: &str| out.join(format!("{}.{extension}", program.name));
    let (text, cubin) = (file(extension), file("cubin"));
    let run = command(platform, args, program);
    let mut emit = Command::new(nyala());
    emit.current_dir(root()).args(["emit", "--stage", assembly.stage, "-o"]).arg(&text).args(run.get_args().skip(1));
    emit.envs(tool.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let (status, output, errors) = output_within(&mut emit, TIME_LIMIT)?;
    if status != Some(0) {
        return Err(output + &errors);
    }
    tool.args(assembly.options).arg("-o").args([&cubin, &text]);
    let (status, output, errors) = output_within(&mut tool, TIME_LIMIT)?;
    if status != Some(0) {
        return Err(output + &errors);
    }
    let code = std::fs::read(&cubin).map_err(|e| format!("{}: {e}", cubin.display()))?;
    Ok((output + &errors, code))
}

fn cells(column: &Column, program: &Program, rows: &[Row], results: &mut Found) -> Vec<Cell> {
    let mut cells = vec![Cell::Ok; rows.len()];
    for (platform, args) in program.runs(column) {
        let shown = format!("{} on {}, {platform} {}", program.name, column.name, args.join(" "));
        let mut run = command(platform, args, program);
        let ready = match column.needs {
            Needs::Cpp => simulation(platform, args, program).map(|library| {
                run.env("NYALA_HLS", library);
            }),
            _ => Ok(()),
        };
        let (status, output, errors) = match ready.and_then(|()| output_within(&mut run, TIME_LIMIT)) {
            Ok(ran) => ran,
            Err(why) => (None, String::new(), why),
        };
        let of_device = |l| Some(&errors[errors.find(l)?..]).and_then(|said| said.lines().next());
        let lacks = errors.lines().find_map(lack).or_else(|| of_device(LACKS));
        let printed: BTreeMap<&str, &str> = output.lines().filter_map(|l| l.rsplit_once(": ")).collect();
        for (row, cell) in rows.iter().zip(&mut cells) {
            let found = match (printed.get(row.1.as_str()), lacks) {
                (Some(&"ok"), _) if status == Some(0) => Cell::Ok,
                (None, Some(why)) => Cell::Lacks(why.to_string()),
                (said, _) => {
                    let said = said.map_or(format!("not printed\n{errors}"), |s| s.to_string());
                    results.fail(format!("{shown}: {}: {said}", row.1));
                    Cell::Fails
                }
            };
            match found {
                Cell::Ok | Cell::Assembled | Cell::Valid => results.tally.passed += 1,
                Cell::Fails => {}
                Cell::Lacks(ref why) => {
                    results.tally.skipped += 1;
                    results.lacks.insert(format!("{} on {}: {why}", program.name, column.name));
                }
                Cell::NotRun => results.tally.skipped += 1,
            }
            if found != Cell::Ok && *cell != Cell::Fails {
                *cell = found;
            }
        }
    }
    cells
}

/// Why a program of the library `std::device` has no kernel.
const NOT_THERE: &str = "the program launches nothing there: `std::device` does not know the platform";

/// How the runtime's words about a device begin that lacks what a kernel needs.
const LACKS: &str = "this device lacks ";

/// The text of programs without kernels for a platform begins so.
const NO_KERNEL: &str = "// No kernel";

const BEGIN: &str = "<!-- conformance -->\n";
const END: &str = "<!-- end -->\n";

/// Compares the table with that of the page, or writes it. Columns that were not run are not compared.
fn table(rows: &[Row], is_complete: bool, bless: bool, tally: &mut Tally) -> Result<(), String> {
    let mut reasons: Vec<String> = Vec::new();
    let mut text = String::from("\n| program | what |");
    COLUMNS.iter().for_each(|c| text.push_str(&format!(" {} |", c.name)));
    text.push_str("\n|---|---|");
    COLUMNS.iter().for_each(|_| text.push_str("---|"));
    text.push('\n');
    for (program, line, cells) in rows {
        text.push_str(&format!("| {program} | {line} |"));
        for cell in cells {
            let shown = match cell {
                Cell::Ok => "ok".to_string(),
                Cell::Assembled => "assembled".into(),
                Cell::Valid => "valid".into(),
                Cell::Fails => "fails".into(),
                Cell::NotRun => "not run".into(),
                Cell::Lacks(why) => {
                    let at = reasons.iter().position(|r| r == why).unwrap_or_else(|| {
                        reasons.push(why.clone());
                        reasons.len() - 1
                    });
                    format!("({})", at + 1)
                }
            };
            text.push_str(&format!(" {shown} |"));
        }
        text.push('\n');
    }
    text.push('\n');
    for (i, reason) in reasons.iter().enumerate() {
        text.push_str(&format!("{}. {reason}\n", i + 1));
    }
    let old = std::fs::read_to_string(page()).map_err(|e| format!("docs/devices.md: {e}"))?;
    let parts = old.split_once(BEGIN).and_then(|(before, rest)| Some((before, rest.split_once(END)?)));
    let (before, (found, after)) = parts.ok_or("docs/devices.md has no place for the table")?;
    match () {
        () if found == text => {}
        () if bless && is_complete => {
            std::fs::write(page(), format!("{before}{BEGIN}{text}{END}{after}")).map_err(|e| e.to_string())?;
        }
        () if !is_complete => println!("skipped: the table of docs/devices.md, since not all columns ran"),
        () => {
            println!("FAILED docs/devices.md: its table is not what the run says (`./x bless devices` writes it)");
            tally.failed += 1;
        }
    }
    Ok(())
}
