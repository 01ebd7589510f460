//! A host survives what goes wrong in its guest: panics, failed checks, `exit`, also in loops on several threads and in threads.

use nyala_embed::{Check, Compiler, Fault, Function, Program};

const PROGRAM: &str = "
static mut COUNT = 0;
extern fn panics(n: i32) -> i32 { COUNT += 1; if n > 3 { panic(\"too large\") } n }
extern fn exits(n: i32) -> i32 { if n == 7 { exit(5) } n }
extern fn in_a_loop(n: i32) -> () { for i in par(0, 1000) { if i == n { panic(\"in a loop\") } } }
extern fn in_nested_loops(n: i32) -> () {
    for i in par(0, 30) { for j in par(0, 30) { if i * j == n { panic(\"deep\") } } }
}
extern fn in_a_thread(n: i32) -> () {
    let thread = spawn(|| if n == 0 { panic(\"in a thread\") });
    sync(thread);
}
extern fn count() -> i32 { COUNT }
";

fn function(program: &Program, name: &str) -> Function<(i32,), i32> {
    // SAFETY: the functions access no memory of others.
    unsafe { program.function(name) }.expect("a function")
}

fn action(program: &Program, name: &str) -> Function<(i32,), ()> {
    // SAFETY: as above.
    unsafe { program.function(name) }.expect("a function")
}

fn said(fault: Result<(), Fault>) -> String {
    fault.expect_err("it does not return").message
}

#[test]
fn panics_are_values() {
    let program = Program::from_source("p.impala", PROGRAM).expect("it compiles");
    let panics = function(&program, "panics");
    for _ in 0..3 {
        assert_eq!(panics.try_call((1,)), Ok(1));
        let fault = panics.try_call((4,)).expect_err("it panics");
        assert_eq!((fault.code, &*fault.message, fault.exit_code), ("panic", "too large", None));
        assert_eq!(fault.place.as_deref(), Some("p.impala:3:58"));
        assert_eq!(fault.rendered, "panic at p.impala:3:58: too large\n");
    }
    // SAFETY: it accesses no memory of others.
    let count = unsafe { program.function::<(), i32>("count") }.expect("a function");
    assert_eq!(count.call(()), 6, "variables are as they were left");
    let fixed: Function<(), i32> = panics.fix("n", 9).and_then(|p| p.build()).expect("a variant");
    assert_eq!(fixed.try_call(()).map_err(|f| f.message), Err("too large".into()));
}

#[test]
fn exit_is_a_value() {
    let program = Program::from_source("p.impala", PROGRAM).expect("it compiles");
    let exits = function(&program, "exits");
    let fault = exits.try_call((7,)).expect_err("it exits");
    assert_eq!(
        (fault.code, fault.exit_code, fault.to_string()),
        ("exit", Some(5), "the program called `exit` with 5".into())
    );
    assert_eq!(exits.try_call((8,)), Ok(8));
}

#[test]
fn faults_of_other_threads_are_values() {
    let program = Program::from_source("p.impala", PROGRAM).expect("it compiles");
    let (in_a_loop, nested) = (action(&program, "in_a_loop"), action(&program, "in_nested_loops"));
    let in_a_thread = action(&program, "in_a_thread");
    let all = || {
        for i in 0..20 {
            assert_eq!(said(in_a_loop.try_call((i * 50,))), "in a loop");
            assert_eq!(in_a_loop.try_call((-1,)), Ok(()));
            assert_eq!(said(nested.try_call((i * 3,))), "deep");
            assert_eq!(nested.try_call((-1,)), Ok(()));
        }
    };
    std::thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(all))));
    assert_eq!(said(in_a_thread.try_call((0,))), "in a thread");
    assert_eq!(in_a_thread.try_call((1,)), Ok(()));
}

#[test]
fn failed_checks_are_values() {
    let text = "
extern fn sum(n: i32) -> i32 { let a = [1, 2, 3]; let mut s = 0; for i in range(0, n) { s += a(i); } s }
extern fn divide(n: i32) -> i32 { 100 / n }
extern fn grow(n: i32) -> i32 { n + 2147483600 }
";
    let compiler = Compiler::new().check(Check::Bounds).check(Check::Overflow);
    let Ok(program) = compiler.compile_source("p.impala", text) else {
        println!("skipped: there are no addresses for checks");
        return;
    };
    for _ in 0..2 {
        let sum = function(&program, "sum");
        assert_eq!(sum.try_call((3,)), Ok(6));
        let fault = sum.try_call((4,)).expect_err("an index is too large");
        assert_eq!((fault.code, fault.place.as_deref()), ("invalid-access", Some("p.impala:2:94")));
        assert!(fault.rendered.starts_with("error[invalid-access]: "), "{fault}");
        let divide = function(&program, "divide");
        assert_eq!(divide.try_call((0,)).expect_err("zero").code, "division-by-zero");
        assert_eq!(divide.try_call((5,)), Ok(20));
        assert_eq!(function(&program, "grow").try_call((100,)).expect_err("too large").code, "signed-overflow");
    }
}
