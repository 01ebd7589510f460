//! Confined code promises LLVM nothing.

use nyala_gen_llvm::{LlvmModule, Options, load_llvm};
use nyala_ir::Target;

const TEXT: &str = "
declare <4 x float> @llvm.masked.load.v4f32.p0(ptr, <4 x i1>, <4 x float>)
define float @f(ptr %p, i64 %i, float %x, <4 x i1> %m) {
entry:
  %j = add nsw nuw i64 %i, 1
  %a = getelementptr inbounds float, ptr %p, i64 %j
  %y = load float, ptr %a
  %z = fadd float %y, undef
  %v = call <4 x float> @llvm.masked.load.v4f32.p0(ptr align 4 %a, <4 x i1> %m, <4 x float> poison)
  %w = insertelement <4 x float> %v, float %z, i64 0
  %c = extractelement <4 x float> %w, i64 1
  %s = fmul float %c, %x
  ret float %s
}
";

#[test]
fn no_promise_is_left() {
    load_llvm().expect("LLVM");
    let text = |confined| {
        let options = Options { confined, ..Options::default() };
        LlvmModule::from_text(TEXT, &Target::new(None, None), &options).expect("well-formed").ir_text()
    };
    let (before, after) = (text(false), text(true));
    for promise in ["nsw", "nuw", "inbounds", "undef", "poison"] {
        assert!(before.contains(promise) && !after.contains(promise), "{promise}\n{after}");
    }
    assert_eq!(after.matches("= freeze ").count(), 2, "{after}");
    // A loaded value is used only after `freeze`.
    assert!(!after.contains("fadd float %y,") && !after.contains("<4 x float> %v, float"), "{after}");
}
