//! The link to LLVM itself: text in, machine code out, run in this process.

use nyala_gen_llvm::{Jit, LlvmModule, Options};
use nyala_ir::Target;

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
        let mut module = LlvmModule::from_text(TEXT, &Target::default(), &options).expect("reads");
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
        &Target::default(),
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
    assert_eq!(
        LlvmModule::from_text("define i32 @f() { ret void }", &Target::default(), &Options::default())
            .err()
            .unwrap()
            .code,
        "bug"
    );
}

#[test]
fn addresses_have_functions_and_lines() {
    let mut sources = nyala_base::Sources::new();
    let first = sources.add("one.impala", "\n\nline three\nline four\n");
    let second = sources.add("folder/two.impala", "line one\nline two\n");
    let mut module = nyala_flat::Module::default();
    let ptr = {
        let i32 = module.types.i32();
        module.types.ptr(i32)
    };
    let i32 = module.types.i32();
    let inner = module.declare("inner", nyala_flat::Linkage::Internal, &[ptr], &[i32]);
    let outer = module.declare("outer", nyala_flat::Linkage::Exported("outer".into()), &[ptr], &[i32]);
    module.funcs[0].span = nyala_base::Span::new(first, 2, 3);
    module.funcs[1].span = nyala_base::Span::new(first, 13, 14);
    let mut b = nyala_flat::FunctionBuilder::new(&mut module, inner);
    let entry = b.entry(&["p"]);
    b.span = nyala_base::Span::new(second, 9, 10);
    let p = b.param(entry, 0);
    let x = b.literal(nyala_ir::Prim::I32, 21);
    b.store(p, x);
    b.terminate(nyala_flat::Terminator::Return(vec![x]));
    let mut b = nyala_flat::FunctionBuilder::new(&mut module, outer);
    let entry = b.entry(&["p"]);
    b.span = nyala_base::Span::new(first, 13, 14);
    let p = b.param(entry, 0);
    let x = b.call(inner, &[p], &[i32]);
    let y = b.op(nyala_ir::Op::Add, &[x, x], i32);
    b.terminate(nyala_flat::Terminator::Return(vec![y]));
    for opt_level in [0, 1, 3] {
        let options = Options { opt_level, ..Options::default() };
        let lines = nyala_gen_llvm::Lines {
            sources: &sources,
            folder: "/src",
            own: &|span| span,
            calls: None,
            in_sections: false,
        };
        let emitted = nyala_gen_llvm::emit_module(&module, &options, Some(lines)).expect("emits");
        let mut llvm = emitted.parse(&options).expect("well-formed");
        llvm.optimize().expect("optimizes");
        let jit = Jit::new(&[]).expect("a JIT");
        jit.add(&llvm).expect("links");
        let start = jit.lookup("outer").expect("is there");
        let near: Vec<_> = (start.saturating_sub(64)..start + 64).filter_map(|a| jit.locate(a)).collect();
        let has = |function: &str, file: &str, line: u32| {
            near.iter().any(|p| p.function == function && p.file.ends_with(file) && p.line == line)
        };
        assert!(has("inner", "folder/two.impala", 2), "-O{opt_level}: {near:?}");
        assert!(has("outer", "one.impala", 4), "-O{opt_level}: {near:?}");
        assert_eq!(jit.locate(0x1000), None);
    }
}
