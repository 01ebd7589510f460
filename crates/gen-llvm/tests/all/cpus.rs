//! The table of CPUs against LLVM, which tells the names it knows only by printing them when it is asked for the CPU `help`,
//! and may end the process then.

use nyala_gen_llvm::{ARCHITECTURES, LlvmModule, Options};
use nyala_ir::target::{Target, cpus};
use std::process::Command;

/// Set in the process that asks.
const ASKED: &str = "NYALA_TEST_CPUS_OF";

/// CPUs of 32 bits, or names for tuning only: LLVM makes no code for the architectures with them.
const OTHERS: &str = "\
    athlon athlon-4 athlon-mp athlon-tbird athlon-xp c3 c3-2 geode i386 i486 i586 i686 k6 k6-2 k6-3 lakemont pentium \
    pentium-m pentium-mmx pentium2 pentium3 pentium3m pentium4 pentium4m pentium_4 pentium_4_sse3 pentium_ii pentium_iii \
    pentium_iii_no_xmm_regs pentium_m pentium_mmx pentium_pro pentiumpro prescott winchip-c6 winchip2 yonah \
    andes-45-series andes-a25 andes-a45 andes-n45 generic-ooo generic-rv32 rocket rocket-rv32 rp2350-hazard3 sifive-7-series \
    sifive-e20 sifive-e21 sifive-e24 sifive-e31 sifive-e34 sifive-e76 syntacore-scr1-base syntacore-scr1-max \
    syntacore-scr3-rv32 syntacore-scr4-rv32 syntacore-scr5-rv32 generic-la32 loongarch32 e500";

fn ask(arch: &str) -> Vec<String> {
    let exe = std::env::current_exe().unwrap();
    let output =
        Command::new(exe).args(["--exact", "cpus::lists_what_llvm_knows", "--nocapture"]).env(ASKED, arch).output();
    let said = String::from_utf8_lossy(&output.unwrap().stderr).into_owned();
    let list = said.split("Available CPUs").nth(1).and_then(|rest| rest.split("Available features").next());
    let lines = list.unwrap_or("").lines().filter_map(|l| l.split_once(" - Select the "));
    let mut names: Vec<String> = lines.map(|(name, _)| name.trim().to_string()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

#[test]
fn lists_what_llvm_knows() {
    if let Ok(arch) = std::env::var(ASKED) {
        let target = Target::new(Some(&format!("{arch}-unknown-linux-gnu")), Some("help"));
        drop(LlvmModule::from_text("", &target, &Options::default()));
        return;
    }
    for arch in ARCHITECTURES {
        let wanted: Vec<String> =
            ask(arch).into_iter().filter(|n| !OTHERS.split_whitespace().any(|other| other == n)).collect();
        assert!(!wanted.is_empty(), "{arch}");
        assert_eq!(cpus(arch), wanted, "{arch}");
    }
}

/// Vectors of each width that LLVM adds, compares, shifts and permutes for each CPU show what it takes the CPU to have.
#[test]
fn knows_registers_as_llvm_does() {
    const TEXT: &str = "
define <16 x i32> @f(<16 x i32> %a, <16 x i32> %b) {
  %c = add <16 x i32> %a, %b
  ret <16 x i32> %c
}
define <16 x i1> @g(<16 x float> %a, <16 x float> %b) {
  %c = fcmp ogt <16 x float> %a, %b
  ret <16 x i1> %c
}
define <8 x float> @d(<8 x i64> %a) {
  %c = sitofp <8 x i64> %a to <8 x float>
  ret <8 x float> %c
}
define i32 @h(i32 %a, i32 %b) {
  %c = shl i32 %a, %b
  ret i32 %c
}
";
    const FACTS: &str = "
define float @fma(float %a, float %b, float %c) {
  %d = call float @llvm.fma.f32(float %a, float %b, float %c)
  ret float %d
}
define i32 @count(i32 %a) {
  %c = call i32 @llvm.ctpop.i32(i32 %a)
  ret i32 %c
}
define <16 x i8> @s(<16 x i8> %a) {
  %c = shufflevector <16 x i8> %a, <16 x i8> poison, <16 x i32> <i32 3, i32 14, i32 9, i32 0, i32 5, i32 12, i32 1, i32 8, i32 15, i32 2, \
i32 7, i32 10, i32 13, i32 4, i32 11, i32 6>
  ret <16 x i8> %c
}
declare float @llvm.fma.f32(float, float, float)
declare i32 @llvm.ctpop.i32(i32)
";
    // Bytes of a register in another order.
    let order: Vec<String> = (0..64).map(|k| format!("i32 {}", (k * 37 + 11) % 64)).collect();
    let ty = "<64 x i8>";
    let text = format!(
        "{TEXT}{FACTS}define {ty} @p({ty} %a) {{\n  %c = shufflevector {ty} %a, {ty} poison, <64 x i32> <{}>\n  ret {ty} %c\n}}\n",
        order.join(", ")
    );
    for cpu in cpus("x86_64") {
        let target = Target::new(Some("x86_64-unknown-linux-gnu"), Some(cpu));
        let module = LlvmModule::from_text(&text, &target, &Options::default())
            .unwrap_or_else(|e| panic!("{cpu}: {}", e.message));
        let asm = module.asm_text().unwrap_or_else(|e| panic!("{cpu}: {}", e.message));
        let adds_in = |register: &str| asm.lines().any(|l| l.contains("padd") && l.contains(register));
        let bits = if adds_in("%zmm") {
            512
        } else if adds_in("%ymm") {
            256
        } else {
            128
        };
        let expected = (bits, asm.contains("%k"), asm.contains("shlx"), asm.contains("vpermb"));
        assert_eq!((target.vector_bits, target.has_avx512(), target.bmi2, target.vbmi), expected, "{cpu}");
        // Conversions of 64-bit integers are AVX-512 DQ.
        assert_eq!(target.dq, asm.contains("vcvtqq2ps"), "{cpu}");
        // The facts that programs may ask for.
        let facts = target.facts();
        let of = |name: &str| asm.split(&format!("\n{name}:")).nth(1).and_then(|f| f.split("ret").next()).unwrap_or("");
        let has_shuffle = ["pshufb", "vpperm", "vpermb"].iter().any(|name| of("s").contains(name));
        let found = [
            of("fma").contains("vfmadd") || of("fma").contains("vfnmadd"),
            of("count").contains("popcnt"),
            has_shuffle,
        ];
        assert_eq!([facts.fma, facts.popcount, facts.byte_shuffle], found, "{cpu}");
    }
}
