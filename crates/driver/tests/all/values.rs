//! What comes of a program are values: each has its own options, calls and diagnostics, whatever else is compiled at the time.

use nyala_driver::pipelines::LLVM;
use nyala_driver::{Failed, Files, FrontEnd, Options, explain};

const POWER: &str = "\
fn @(?n) pow(x: i32, n: i32) -> i32 { if n == 0 { 1 } else { x * pow(x, n - 1) } }
extern fn cube(x: i32) -> i32 { pow(x, 3) }
extern fn three() -> i32 { cube(1) + cube(1) + 1 }
";

fn front(text: &str, options: Options) -> FrontEnd {
    FrontEnd::new(options, Files::of("t.impala", text))
}

#[expect(clippy::boxed_local, reason = "`map_err` gives it so")]
fn said(failed: Failed) -> String {
    failed.render(false)
}

#[test]
fn values_of_several_programs_live_at_once() -> Result<(), String> {
    let power = front(POWER, Options::default()).graph().map_err(said)?;
    let other = front(&POWER.replace("+ 1", "+ 2"), Options::default()).graph().map_err(said)?;
    let (a, b) = (power.residual().map_err(said)?, other.residual().map_err(said)?);
    // Made in another order than what they come of, in threads of their own.
    let run = |residual: nyala_driver::Residual| move || residual.flat()?.load(&[])?.call_i32("three");
    let (b, a) = (std::thread::spawn(run(b)), std::thread::spawn(run(a)));
    let results = [a, b].map(|thread| thread.join().map(|result| result.map_err(said)));
    assert!(matches!(results, [Ok(Ok(3)), Ok(Ok(4))]));
    Ok(())
}

#[test]
fn a_failed_assertion_has_the_reasons_of_its_own_program() -> Result<(), String> {
    let text = "extern fn f(n: i32) -> i32 { ensure_residual(\"no loop\"); let mut s = 0; for i in range(0, n) { s += i } s }\n";
    let graph = front(text, Options::default()).graph().map_err(said)?;
    let residual = graph.residual().map_err(said)?;
    // Whatever is compiled between a residual program and its flat code.
    front(POWER, Options::default()).graph().and_then(|g| g.residual()).map_err(said)?;
    let failed = residual.flat().err().ok_or("the assertion holds")?;
    let said = failed.render(false);
    assert!(said.contains("error[ensure-failed]") && said.contains("unknown: parameter"), "{said}");
    // The value is as it was.
    assert!(residual.report.sink.diagnostics.is_empty() && residual.flat().is_err());
    Ok(())
}

/// What the vectorizer tells of a program is told of the code that is made of it, with all that is inserted before.
#[test]
fn notes_are_of_the_code_that_is_made() -> Result<(), String> {
    let text = "\
extern \"thorin\" { fn vectorize(i32, i32, i32, fn(i32) -> ()) -> (); }
extern fn f(n: i32, a: &mut [i32]) -> () {
    for i in vectorize(8, 0, n) { a(i) = a(i) + 1 }
}
";
    let notes = |overflow: bool| -> Result<(String, String), Failed> {
        let checks = nyala_checks::Checks { overflow, ..Default::default() };
        let graph = front(text, Options { checks, ..Options::default() }).graph()?;
        let (notes, report) = explain::vector_code::notes(graph.residual()?, None)?;
        let flat = graph.residual()?.split(&LLVM)?;
        Ok((explain::vector_code::text(&report.sources, &notes), flat.module.to_string()))
    };
    let check = "nyala_check_overflow_in_lanes";
    for overflow in [false, true] {
        let (told, code) = notes(overflow).map_err(said)?;
        assert_eq!((told.contains(check), code.contains(check)), (overflow, overflow), "{told}\n{code}");
    }
    Ok(())
}

#[test]
fn exports_that_are_one_are_divided_where_they_spend_the_budget() -> Result<(), String> {
    let mut text = String::from("static mut A: [i32 * 4000];\n");
    for i in 0..8 {
        text +=
            &format!("extern fn f{i}() -> i32 {{ for k in unroll(0, 1000) {{ A(k + {i}) = k * {i}; }} A({i} + 7) }}\n");
    }
    // A program without exports has an empty residual program.
    let none = Options { together: true, ..Options::default() };
    let none = front("fn f() -> i32 { 1 }", none).graph().and_then(|graph| graph.residual()).map_err(said)?;
    assert!(none.world.roots().is_empty());
    // Enough for two or three of them.
    let options = Options { together: true, pe_budget: 0.0003, opt_level: 0, ..Options::default() };
    let graph = front(&text, options).graph().map_err(said)?;
    let residual = graph.residual().map_err(said)?;
    assert_eq!(residual.world.roots().len(), 8);
    let loaded = residual.flat().and_then(|flat| flat.load(&[])).map_err(said)?;
    for i in 0..8 {
        assert_eq!(loaded.call_i32(&format!("f{i}")).map_err(said)?, 7 * i);
    }
    Ok(())
}
