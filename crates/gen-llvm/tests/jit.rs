//! The link to LLVM itself: text in, machine code out, run in this process.

use nyala_gen_llvm::{Jit, LlvmModule, Options};

const TEXT: &str = r#"
declare double @sin(double)
declare i64 @nyala_time_ns()
define i32 @twice(i32 %x) { %y = add nsw i32 %x, %x ret i32 %y }
define double @sine(double %x) { %y = call double @sin(double %x) ret double %y }
define i64 @time() { %t = call i64 @nyala_time_ns() ret i64 %t }
"#;

#[test]
fn runs_text_at_every_level() {
    for opt_level in 0..=3 {
        let options = Options { opt_level, ..Options::default() };
        let mut module = LlvmModule::from_text(TEXT, &options).expect("reads");
        module.optimize().expect("optimizes");
        assert!(module.asm_text().expect("assembly").contains("twice"));
        let jit = Jit::new(&[]).expect("a JIT");
        jit.add(&module).expect("links");
        // SAFETY: the types are those of the text above.
        unsafe {
            let twice: extern "C" fn(i32) -> i32 = std::mem::transmute(jit.lookup("twice").expect("is there"));
            assert_eq!(twice(21), 42);
            let sine: extern "C" fn(f64) -> f64 = std::mem::transmute(jit.lookup("sine").expect("is there"));
            assert_eq!(sine(0.5), 0.5f64.sin());
            let time: extern "C" fn() -> i64 = std::mem::transmute(jit.lookup("time").expect("is there"));
            assert!(time() <= time());
        }
    }
}

#[test]
fn unknown_symbols_and_libraries_are_errors() {
    let module = LlvmModule::from_text(
        "declare void @nobody_has_this()\ndefine void @f() { call void @nobody_has_this() ret void }",
        &Options::default(),
    )
    .expect("reads");
    let jit = Jit::new(&[]).expect("a JIT");
    jit.add(&module).expect("links");
    let error = jit.lookup("f").expect_err("has an undefined symbol");
    assert_eq!(error.code, "undefined-symbol");
    assert!(
        error.message.contains("nobody_has_this") || error.message.contains("cannot link `f`"),
        "{}",
        error.message
    );
    assert_eq!(Jit::new(&["/no/such/lib.so".into()]).err().expect("no library").code, "library-not-loaded");
}

#[test]
fn wrong_text_is_a_bug_not_a_crash() {
    assert_eq!(LlvmModule::from_text("define i32 @f() { ret void }", &Options::default()).err().unwrap().code, "bug");
}
