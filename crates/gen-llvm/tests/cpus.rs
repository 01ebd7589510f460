//! The table of CPUs against LLVM, which tells the names it knows only by printing them when it is asked for the CPU `help`,
//! and may end the process then.

use nyala_gen_llvm::{ARCHITECTURES, LlvmModule, Options, cpus};
use std::process::Command;

/// Set in the process that asks.
const ASKED: &str = "NYALA_TEST_CPUS_OF";

/// Of 32 bits, or names for tuning only: with them LLVM makes no code for these architectures.
const OTHERS: &str = "\
    athlon athlon-4 athlon-mp athlon-tbird athlon-xp c3 c3-2 geode i386 i486 i586 i686 k6 k6-2 k6-3 lakemont pentium \
    pentium-m pentium-mmx pentium2 pentium3 pentium3m pentium4 pentium4m pentium_4 pentium_4_sse3 pentium_ii pentium_iii \
    pentium_iii_no_xmm_regs pentium_m pentium_mmx pentium_pro pentiumpro prescott winchip-c6 winchip2 yonah \
    andes-45-series andes-a25 andes-a45 andes-n45 generic-ooo generic-rv32 rocket rocket-rv32 rp2350-hazard3 sifive-7-series \
    sifive-e20 sifive-e21 sifive-e24 sifive-e31 sifive-e34 sifive-e76 syntacore-scr1-base syntacore-scr1-max \
    syntacore-scr3-rv32 syntacore-scr4-rv32 syntacore-scr5-rv32 generic-la32 loongarch32 e500";

fn ask(arch: &str) -> Vec<String> {
    let exe = std::env::current_exe().unwrap();
    let output = Command::new(exe).args(["--exact", "lists_what_llvm_knows", "--nocapture"]).env(ASKED, arch).output();
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
        let target = Some(format!("{arch}-unknown-linux-gnu"));
        let options = Options { target, cpu: Some("help".into()), ..Options::default() };
        drop(LlvmModule::from_text("", &options));
        return;
    }
    for arch in ARCHITECTURES {
        let wanted: Vec<String> =
            ask(arch).into_iter().filter(|n| !OTHERS.split_whitespace().any(|other| other == n)).collect();
        assert!(!wanted.is_empty(), "{arch}");
        let mut found: Vec<&str> = cpus(arch).collect();
        found.sort_unstable();
        assert_eq!(found, wanted, "{arch}");
    }
}
