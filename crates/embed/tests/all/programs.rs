//! Programs as values: several at once, their options, and what is shown of them.

use nyala_embed::{Compiler, Error, Program, Stage};

const POWER: &str = "
    fn @(?n) pow(x: i32, n: i32) -> i32 { if n == 0 { 1 } else { x * pow(x, n - 1) } }
    static N = 3;
    extern fn power(x: i32) -> i32 { pow(x, N) }
";

#[test]
fn programs_live_at_once() -> Result<(), Error> {
    let compile = |n: u32| {
        move || -> Result<i32, Error> {
            let program = Compiler::new().define("N", &n.to_string()).compile_source("power.impala", POWER)?;
            // SAFETY: `power` accesses no memory.
            Ok(unsafe { program.function::<(i32,), i32>("power") }?.call((3,)))
        }
    };
    let threads: Vec<_> = (0..4).map(|n| std::thread::spawn(compile(n))).collect();
    let results: Vec<_> = threads.into_iter().map(|t| t.join().map(|r| r.map_err(|e| e.to_string()))).collect();
    assert!(matches!(results[..], [Ok(Ok(1)), Ok(Ok(3)), Ok(Ok(9)), Ok(Ok(27))]), "{results:?}");
    let (a, b) =
        (Program::from_source("a.impala", POWER)?, Program::from_source("b.impala", &POWER.replace("x *", "x +"))?);
    // SAFETY: as above.
    let (f, g) = unsafe { (a.function::<(i32,), i32>("power")?, b.function::<(i32,), i32>("power")?) };
    assert_eq!((f.call((2,)), g.call((2,))), (8, 7));
    Ok(())
}

#[test]
fn a_program_of_files_uses_libraries() -> Result<(), Error> {
    let folder = tempfile::tempdir().map_err(|e| Error::System(e.to_string()))?;
    std::fs::write(folder.path().join("twice.impala"), "fn @twice(x: i32) -> i32 { 2 * x }")
        .expect("it can be written");
    let main = folder.path().join("main.impala");
    std::fs::write(&main, "use twice::*;\nextern fn four(x: i32) -> i32 { twice(twice(x)) }")
        .expect("it can be written");
    let program = Program::compile(&main)?;
    // SAFETY: `four` accesses no memory.
    assert_eq!(unsafe { program.function::<(i32,), i32>("four") }?.call((5,)), 20);
    let elsewhere = Compiler::new().library_folder(folder.path());
    let program = elsewhere.compile_files(&[
        ("a.impala", "use twice::*;\nextern fn a() -> i32 { b() }"),
        ("b.impala", "use twice::*;\nfn b() -> i32 { twice(21) }"),
    ])?;
    // SAFETY: as above.
    assert_eq!(unsafe { program.function::<(), i32>("a") }?.call(()), 42);
    assert_eq!(program.functions().collect::<Vec<_>>(), [("a", "fn a() -> i32")]);
    Ok(())
}

#[test]
fn programs_are_shown() -> Result<(), Error> {
    let program = Program::from_source("power.impala", POWER)?;
    let residual = program.emit(Stage::Residual, Some("power"))?;
    assert!(residual.contains("mul(x, mul(x, x))") || residual.contains("mul("), "{residual}");
    assert!(!residual.contains("branch"), "{residual}");
    for stage in [Stage::Graph, Stage::Flat, Stage::Llvm, Stage::Assembly] {
        assert!(program.emit(stage, Some("power"))?.contains("power"), "{stage:?}");
    }
    assert!(program.emit(Stage::C, None)?.contains("power"));
    let told = program.explain("pow")?;
    assert!(told.contains("filter `?n` holds"), "{told}");
    Ok(())
}

#[test]
fn warnings_are_kept() -> Result<(), Error> {
    let text = "extern fn f() -> i32 { let unused = 1; 2 }";
    let program = Program::from_source("warned.impala", text)?;
    let codes: Vec<_> = program.warnings().iter().map(|d| d.code).collect();
    assert_eq!(codes, ["unused-name"]);
    assert!(Compiler::new().allow("unused-name").compile_source("w.impala", text)?.warnings().is_empty());
    assert!(Compiler::new().deny("warnings").compile_source("w.impala", text).is_err());
    Ok(())
}

/// Functions that Staged-C makes while a program runs, whose Impala a host calls.
#[test]
fn programs_make_functions_of_values() -> Result<(), Error> {
    let staged = "int over(int x, int n) { @n: int m = 60 / n; @x: int r = x * m; @over: return r; }
        int sum(int n) { int f(int x) = compile over<x, n>; return f(1) + f(2); }";
    let impala = "extern \"C\" { fn sum(i32) -> i32; } extern fn total(n: i32) -> i32 { sum(n) + 1 }";
    let program = Compiler::new().compile_files(&[("total.impala", impala), ("sum.stagedc", staged)])?;
    // SAFETY: `total` accesses no memory.
    let total = unsafe { program.function::<(i32,), i32>("total") }?;
    assert_eq!([5, 6, 5].map(|n| total.call((n,))), [37, 31, 37]);
    Ok(())
}
