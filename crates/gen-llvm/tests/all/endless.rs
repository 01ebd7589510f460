//! Loops of which LLVM removes the exit.

use nyala_gen_llvm::{LlvmModule, Options};
use nyala_ir::Target;

fn optimized(text: &str, opt_level: u8) -> String {
    let options = Options { opt_level, ..Options::default() };
    let mut llvm = LlvmModule::from_text(text, &Target::new(None, None), &options).expect("well-formed");
    llvm.optimize().unwrap_or_else(|e| panic!("{}", e.message));
    llvm.ir_text()
}

/// A loop that counts up while a condition on `%i` holds.
fn counts(body: &str, cond: &str, add: &str) -> String {
    format!(
        "define i32 @f(i32 %start) {{\nentry:\n  br label %head\nhead:\n  %i = phi i32 [ %start, %entry ], [ %next, %body ]\n  \
         %more = icmp {cond}\n  br i1 %more, label %body, label %exit\nbody:\n{body}  %next = {add}\n  br label %head\nexit:\n  \
         ret i32 %i\n}}\ndeclare void @note(i32) nounwind\n"
    )
}

#[test]
fn a_loop_that_only_something_undefined_ends_is_a_trap() {
    let text = counts("", "sge i32 %i, 0", "add nsw i32 %i, 1");
    for level in [1, 2, 3] {
        let made = optimized(&text, level);
        assert!(made.contains("llvm.trap") && made.contains("icmp sgt i32 %start, -1"), "-O{level}: {made}");
    }
}

/// The divisor is not 0 behind the division.
#[test]
fn a_loop_that_only_a_division_by_zero_ends_is_a_trap() {
    for (op, ty) in [("udiv", "i32"), ("srem", "i8"), ("sdiv", "i64")] {
        let text = format!(
            "define {ty} @f({ty} %start) {{\nentry:\n  br label %head\nhead:\n  %d = phi {ty} [ %start, %entry ], [ %next, %body ]\n  \
             %q = {op} {ty} 100, %d\n  %ends = icmp eq {ty} %d, 0\n  br i1 %ends, label %exit, label %body\nbody:\n  \
             %next = sub {ty} %d, 1\n  br label %head\nexit:\n  ret {ty} %q\n}}\n"
        );
        for level in [1, 2, 3] {
            let made = optimized(&text, level);
            assert!(made.contains("llvm.trap") || made.contains("ret "), "-O{level}: {made}");
        }
        // Without an exit it is the program's own.
        let own = text.replace("br i1 %ends, label %exit, label %body", "br label %body");
        let own = optimized(&own, 3);
        assert!(!own.contains("llvm.trap") && !own.contains("ret "), "{own}");
    }
}

#[test]
fn loops_that_are_endless_by_themselves_stay() {
    for text in [
        counts("", "ne i32 %start, %start", "add i32 %i, 1")
            .replace("label %body, label %exit", "label %exit, label %body"),
        counts("", "uge i32 %i, 0", "add i32 %i, 1"),
        counts("  %odd = or i32 %i, 1\n", "ne i32 %i, 0", "shl i32 %odd, 1").replace("%start, %entry", "2, %entry"),
    ] {
        for level in [1, 2, 3] {
            let made = optimized(&text, level);
            assert!(!made.contains("llvm.trap") && !made.contains("ret i32"), "-O{level}: {made}");
        }
    }
}

#[test]
fn a_loop_with_effects_keeps_its_exit() {
    let text = counts("  call void @note(i32 %i)\n", "sge i32 %i, 0", "add nsw i32 %i, 1");
    for level in [1, 2, 3] {
        let made = optimized(&text, level);
        assert!(!made.contains("llvm.trap") && made.contains("ret i32"), "-O{level}: {made}");
    }
}
