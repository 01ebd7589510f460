//! Kernels for `hls`: what the text says to the tools of FPGAs, that it runs as C++, and what programs say without a device.

use crate::common::{Folder, nyala, root, sh, skip, stderr};
use expect_test::expect;
use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Output};

/// The kernel that writes, the one that reads, and how often rounds of their loops begin.
const SOURCE: &str = "\
struct channel_f32 { data: f32 }
extern \"thorin\" { fn hls(i32, fn() -> ()) -> (); fn pipeline(i32, i32, i32, fn(i32) -> ()) -> (); }
extern \"device\" { fn read_channel(&mut channel_f32) -> f32; fn write_channel(&mut channel_f32, f32) -> (); fn print_pragma(&[u8]) -> (); }
extern fn halve(n: i32, inp: &[f32], out: &mut [f32]) -> () {
    let mut numbers = channel_f32 { data: 0f };
    with hls(0) { for i in pipeline(1, 0, n) { write_channel(&mut numbers, inp(i)) } }
    with hls(0) { for i in pipeline(2, 0, n) { out(i) = 0.5f * read_channel(&mut numbers) } }
}
extern fn plain(n: i32, out: &mut [f32]) -> () { with hls(0) { for i in range(0, n) { print_pragma(\"HLS UNROLL factor=4\"); out(i) = 1f } } }
fn main() -> i32 {
    let out = alloc[f32](3i64);
    halve(3, [1f, 2f, 3f], out);
    for i in range(0, 3) { print_f32(out(i)); print_string(\" \") }
    free(out);
    0
}
";

fn emit(source: &Path, out: &Path) -> String {
    let args: [&OsStr; 6] =
        ["emit".as_ref(), "--stage".as_ref(), "hls".as_ref(), source.as_ref(), "-o".as_ref(), out.as_ref()];
    let output = nyala(&args, 120);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    std::fs::read_to_string(out).expect("the text")
}

/// Runs a program.
fn run(args: &[&str], source: &Path) -> Output {
    let mut all: Vec<&OsStr> = vec!["run".as_ref()];
    all.extend(args.iter().map(OsStr::new));
    all.push(source.as_ref());
    nyala(&all, 120)
}

#[test]
fn kernels_say_what_becomes_of_them() {
    let folder = Folder::new("text for hls");
    let source = folder.write("p.impala", SOURCE.split_once("fn main").expect("a main").0);
    let text = emit(&source, &folder.path("p.cpp"));
    let kernels = &text[text.find("\nextern \"C\" void halve_kernel").expect("a kernel")..];
    expect![[r#"

        extern "C" void halve_kernel(int n, float *inp, hls::stream<float> &channel) {
            float slot;
            for (int i = 0; i < n; i++) {
        #pragma HLS PIPELINE II=1
                slot = inp[i];
                channel.write(slot);
            }
        }

        #ifndef __SYNTHESIS__
        extern "C" void halve_kernel_call(void **args) {
            halve_kernel(*(int *)args[0], *(float **)args[1], channel_of<float>(*(void **)args[2]));
        }
        #endif

        extern "C" void halve_kernel_2(int n, float *out, hls::stream<float> &channel) {
            float slot;
            for (int i = 0; i < n; i++) {
        #pragma HLS PIPELINE II=2
                slot = channel.read();
                out[i] = 0.5f * slot;
            }
        }

        #ifndef __SYNTHESIS__
        extern "C" void halve_kernel_2_call(void **args) {
            halve_kernel_2(*(int *)args[0], *(float **)args[1], channel_of<float>(*(void **)args[2]));
        }
        #endif

        extern "C" void plain_kernel(int n, float *out) {
        #pragma HLS INTERFACE s_axilite port=n
        #pragma HLS INTERFACE m_axi port=out offset=slave bundle=gmem0
        #pragma HLS INTERFACE s_axilite port=out
        #pragma HLS INTERFACE s_axilite port=return
            for (int a = 0; a < n; a++) {
        #pragma HLS UNROLL factor=4
                out[a] = 1.0f;
            }
        }

        #ifndef __SYNTHESIS__
        extern "C" void plain_kernel_call(void **args) {
            plain_kernel(*(int *)args[0], *(float **)args[1]);
        }
        #endif

        extern "C" void halve_top(int n, float *inp, float *out) {
        #pragma HLS INTERFACE s_axilite port=n
        #pragma HLS INTERFACE m_axi port=inp offset=slave bundle=gmem0
        #pragma HLS INTERFACE s_axilite port=inp
        #pragma HLS INTERFACE m_axi port=out offset=slave bundle=gmem1
        #pragma HLS INTERFACE s_axilite port=out
        #pragma HLS INTERFACE s_axilite port=return
        #pragma HLS DATAFLOW
            hls::stream<float> channel;
            halve_kernel(n, inp, channel);
            halve_kernel_2(n, out, channel);
        }
    "#]]
    .assert_eq(kernels);
}

#[test]
fn circuits_of_several_kernels_run_as_cpp() {
    if Command::new("c++").arg("--version").output().is_err() {
        skip("a compiler of C++");
        return;
    }
    let folder = Folder::new("hls as cpp");
    let source = folder.write("p.impala", SOURCE.split_once("fn main").expect("a main").0);
    emit(&source, &folder.path("p.cpp"));
    let host = folder.write(
        "host.cpp",
        "#include <cstdio>\n\
         extern \"C\" void halve_top(int n, float *inp, float *out);\n\
         int main() {\n\
             float inp[] = {1, 3, 5}, out[3];\n\
             halve_top(3, inp, out);\n\
             std::printf(\"%g %g %g\\n\", out[0], out[1], out[2]);\n\
         }\n",
    );
    // As the tools compile it, and as they simulate it.
    for more in [&["-D__SYNTHESIS__"][..], &[]] {
        let mut compile = Command::new("c++");
        compile.args(["-std=c++14", "-Wall", "-Werror", "-Wno-unknown-pragmas", "-I"]).arg(root().join("tests/hls"));
        compile.args(more).arg("-o").arg(folder.path("p")).args([&folder.path("p.cpp"), &host]);
        sh(&mut compile);
        assert_eq!(sh(&mut Command::new(folder.path("p"))), "0.5 1.5 2.5\n");
    }
}

#[test]
fn programs_run_on_the_host_and_say_how_to_get_the_text() {
    let folder = Folder::new("hls without a device");
    let source = folder.write("p.impala", SOURCE);
    for args in [&["--engine", "interp"][..], &["--device", "host"], &["--device", "host", "--no-pe", "-O0"]] {
        let output = run(args, &source);
        assert_eq!(String::from_utf8_lossy(&output.stdout), "0.5 1 1.5 ", "{args:?}");
    }
    let unread = folder.write("unread.impala", SOURCE.replace("0.5f * read_channel(&mut numbers)", "0.5f * inp(i)"));
    let output = run(&["--device", "host", "-O0"], &unread);
    assert!(stderr(&output).contains("note: 12 bytes in a channel not read"), "{}", stderr(&output));
    let grid = "extern \"thorin\" { fn opencl(i32, (i32, i32, i32), (i32, i32, i32), fn() -> ()) -> (); }\n\
        fn main() -> () { with opencl(0, (64, 1, 1), (64, 1, 1)) {} }\n";
    let output = run(&["--device", "hls"], &folder.write("grid.impala", grid));
    assert!(stderr(&output).contains("a kernel for `hls` has one work item"), "{}", stderr(&output));
    let plain = "extern \"thorin\" { fn hls(i32, fn() -> ()) -> (); }\nfn main() -> () { with hls(0) {} }\n";
    let plain = folder.write("plain.impala", plain);
    let output = run(&[], &plain);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("`nyala emit --stage hls` prints it"), "{}", stderr(&output));
}

#[test]
fn an_empty_channel_is_reported() {
    let folder = Folder::new("an empty channel");
    let swapped = SOURCE.replace("write_channel(&mut numbers, inp(i))", "out(i) = inp(i)");
    let source = folder.write("p.impala", swapped);
    for args in [&["--engine", "interp"][..], &["--device", "host"], &["--device", "host", "-O0"]] {
        let output = run(args, &source);
        let said = stderr(&output);
        assert!(!output.status.success());
        assert!(said.contains("a kernel reads an empty channel") && said.contains("p.impala:7:"), "{args:?}: {said}");
    }
}
