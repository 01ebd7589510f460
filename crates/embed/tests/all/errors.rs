//! Errors are values: of programs that are wrong, of functions that are not there, of evaluation that does not end.

use nyala_embed::{Compiler, Error, Program, Severity, Stage};

#[test]
fn a_broken_program_has_diagnostics() {
    let text = "fn f() -> i32 { x }\nextern fn g() -> i32 { 1f }\n";
    let Err(error) = Program::from_source("broken.impala", text) else { panic!("it compiles") };
    let found = error.diagnostics();
    let codes: Vec<_> = found.iter().map(|d| (d.severity, d.code)).collect();
    assert_eq!(codes, [(Severity::Error, "unknown-name"), (Severity::Error, "type-mismatch")]);
    let place = found[0].place.as_ref().expect("a place");
    assert_eq!((place.file.as_str(), place.line, place.column, place.end_column), ("broken.impala", 1, 17, 18));
    assert!(error.to_string().contains(" --> broken.impala:2:24"), "{error}");
}

#[test]
fn a_file_that_is_not_there_is_an_error() {
    let Err(error) = Program::compile("no/such/file.impala") else { panic!("it compiles") };
    assert_eq!(error.diagnostics()[0].code, "cannot-read");
    assert_eq!(error.diagnostics()[0].place, None);
}

#[test]
fn an_unknown_function_is_an_error() -> Result<(), Error> {
    let program = Program::from_source("some.impala", "extern fn one() -> i32 { 1 }\nfn two() -> i32 { 2 }")?;
    // SAFETY: nothing is called.
    let Err(error) = (unsafe { program.function::<(), i32>("two") }) else { panic!("it is there") };
    assert_eq!(error.to_string(), "the program exports no function `two`; it exports:\n    fn one() -> i32");
    let program = Program::from_source("none.impala", "fn two() -> i32 { 2 }")?;
    // SAFETY: nothing is called.
    let Err(error) = (unsafe { program.function::<(), i32>("two") }) else { panic!("it is there") };
    assert!(error.to_string().contains("`extern fn` exports one"), "{error}");
    let Err(error) = program.emit(Stage::Residual, Some("three")) else { panic!("it is there") };
    assert_eq!(error.diagnostics()[0].code, "no-such-function");
    let Err(error) = program.explain("three") else { panic!("it is there") };
    assert_eq!(error.diagnostics()[0].code, "no-such-function");
    Ok(())
}

#[test]
fn evaluation_that_does_not_end_is_an_error() {
    let text = "fn @loop(n: i32) -> i32 { loop(n + 1) }\nextern fn f() -> i32 { loop(0) }";
    let Err(error) = Compiler::new().budget(0.01).compile_source("endless.impala", text) else { panic!("it ends") };
    assert_eq!(error.diagnostics()[0].code, "specialization-diverges");
}

#[test]
fn what_cannot_be_linked_is_an_error() {
    let text =
        "extern \"C\" { fn nyala_no_such_function() -> i32; }\nextern fn f() -> i32 { nyala_no_such_function() }";
    let Err(error) = Program::from_source("foreign.impala", text) else { panic!("it links") };
    assert_eq!(error.diagnostics()[0].code, "undefined-symbol");
}

#[test]
fn an_unknown_cpu_is_an_error() {
    let Err(error) = Compiler::new().cpu("z80").compile_source("a.impala", "extern fn f() -> () {}") else { panic!() };
    assert_eq!(error.diagnostics()[0].code, "unknown-cpu");
}
