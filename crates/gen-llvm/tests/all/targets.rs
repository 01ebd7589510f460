//! LLVM's list of targets, which has no lock.

use inkwell::targets::Target as Registered;
use nyala_gen_llvm::{LlvmModule, Options};
use nyala_ir::target::Target;
use std::process::Command;

/// Set in the process that counts.
const STARTED: &str = "NYALA_TEST_TARGETS";

fn registered() -> usize {
    std::iter::successors(Registered::get_first(), Registered::get_next).take(1000).count()
}

/// A target that is registered while another thread looks one up, or registers it as well, may be lost or be in the list twice. Other
/// tests of this process use targets, too, so a process of its own counts them.
#[test]
fn the_first_use_registers_all() {
    if std::env::var_os(STARTED).is_none() {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "targets::the_first_use_registers_all", "--nocapture"]).env(STARTED, "1");
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        return;
    }
    let mut numbers = Vec::new();
    for triple in ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu", "nvptx64-nvidia-cuda", "amdgcn-amd-amdhsa"]
    {
        let target = Target::new(Some(triple), None);
        if let Err(e) = LlvmModule::from_text("", &target, &Options::default()) {
            panic!("{triple}: {}", e.message);
        }
        numbers.push(registered());
    }
    assert!(numbers[0] > 0 && numbers.iter().all(|n| *n == numbers[0]), "{numbers:?}");
}
