//! ISPC's programs as files of the command: called from C and C++, with other numbers of lanes, and with Impala.

use crate::common::{Folder, nyala, root, stderr};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const PROGRAM: &str = "struct Range { float least, most; int counts[3]; };\n\
    export uniform int gang() { return programCount; }\n\
    export void scale(uniform float a[], uniform int n, uniform float by) { foreach (i = 0 ... n) a[i] *= by; }\n\
    export void range(uniform const float a[], uniform int n, uniform Range &r) {\n\
    \x20   float least = a[0], most = a[0];\n\
    \x20   foreach (i = 0 ... n) { least = min(least, a[i]); most = max(most, a[i]); }\n\
    \x20   r.least = reduce_min(least);\n\
    \x20   r.most = reduce_max(most);\n\
    \x20   r.counts[1] = n;\n\
    }\n";

fn run(args: &[&str], files: &[&Path]) -> Output {
    let all: Vec<&OsStr> = args.iter().map(|a| a.as_ref()).chain(files.iter().map(|f| f.as_os_str())).collect();
    nyala(&all, 60)
}

fn build(folder: &Folder, program: &Path, name: &str, args: &[&str]) -> PathBuf {
    let made = folder.path(name);
    let all = [&["build", "-o", made.to_str().unwrap()], args].concat();
    let output = run(&all, &[program]);
    assert!(output.status.success(), "{}", stderr(&output));
    made
}

/// Where a processor has registers for masks, masks of many lanes have another type.
#[test]
fn masks_in_registers_of_their_own_change_no_result() {
    let folders = ["tests/run/ispc", "tests/run/sierra"].map(|folder| root().join(folder));
    let output = run(&["test", "--engine", "interp", "--cpu", "x86-64-v4"], &[&folders[0], &folders[1]]);
    assert!(output.status.success(), "{}{}", String::from_utf8_lossy(&output.stdout), stderr(&output));
}

#[test]
fn c_and_cpp_call_them_by_their_header() {
    let folder = Folder::new("ispc header");
    let program = folder.write("simple.ispc", PROGRAM);
    build(&folder, &program, "simple.h", &[]);
    let object = build(&folder, &program, "simple.o", &[]);
    let body = "int main() {\n    float a[21];\n    struct Range r;\n    for (int i = 0; i < 21; i++) a[i] = i - 7;\n    scale(a, 21, 2);\n    \
                range(a, 21, &r);\n    return r.least == -14 && r.most == 26 && r.counts[1] == 21 && gang() >= 2 ? 7 : 1;\n}\n";
    for (compiler, name, before) in [("cc", "main.c", ""), ("g++", "main.cpp", "using namespace ispc;\n")] {
        let main = folder.write(name, format!("#include \"simple.h\"\n{before}{body}"));
        let exe = folder.path("main");
        let made =
            Command::new(compiler).arg("-o").arg(&exe).arg(&main).arg(&object).args(["-lm", "-lpthread"]).output();
        let made = made.expect(compiler);
        assert!(made.status.success(), "{compiler}: {}", String::from_utf8_lossy(&made.stderr));
        assert_eq!(Command::new(&exe).status().unwrap().code(), Some(7), "{compiler}");
    }
}

#[test]
fn a_gang_has_as_many_lanes_as_asked_for() {
    let folder = Folder::new("ispc lanes");
    let program = folder.write("simple.ispc", PROGRAM);
    let main = folder.write(
        "main.impala",
        "extern \"C\" { fn gang() -> i32; fn scale(&mut [f32], i32, f32) -> (); }\n\
         fn main() -> i32 {\n    let mut a = [1f, 2f, 3f, 4f, 5f];\n    scale(&mut a, 5, 2f);\n    assert(a(4) == 10f && a(0) == 2f);\n    gang()\n}\n",
    );
    for lanes in ["2", "4", "64"] {
        for engine in ["jit", "interp"] {
            let output = run(&["run", "--engine", engine, "--lanes", lanes], &[&main, &program]);
            assert_eq!(output.status.code(), lanes.parse().ok(), "{engine}: {}", stderr(&output));
        }
    }
    for (cpu, lanes) in [("x86-64", 4), ("x86-64-v3", 8)].into_iter().filter(|_| cfg!(target_arch = "x86_64")) {
        let output = run(&["run", "--engine", "interp", "--cpu", cpu], &[&main, &program]);
        assert_eq!(output.status.code(), Some(lanes), "{cpu}: {}", stderr(&output));
    }
    assert_eq!(run(&["run", "--lanes", "3"], &[&main, &program]).status.code(), Some(2));
}
