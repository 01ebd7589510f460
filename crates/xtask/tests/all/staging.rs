//! Programs in DeepCPS and Staged-C, as files `.deepcps` and `.stagedc` of the command: what becomes of them under each engine, and
//! what is reported.

use crate::common::{Folder, nyala, root, sh, stderr};
use std::path::Path;
use std::process::{Command, Output};

/// Listing 6, on `int`: `pow5` is specialized before it is called, `main` calls it, and `early` is a number.
const POWER: &str = "
let [power] powergen (int base, int exp, fn[int] cont) {
  exp == 0 (bool b)
  if b () { cont 1 } ()
  exp mod 2 == 1 (bool b)
  if b () {
    exp-1 (em)
    powergen base em (part)[rec]
    @base & part: part * base (result)
    @rec: cont result
  } () {
    exp/2 (eh)
    powergen base eh (part)[rec]
    @part: part * part (result)
    @rec: cont result
  }
}
let pow5 (int base, fn[int] cont) {
  @power: powergen base 5 (result)
  @result: cont result
}
let early (fn[int] ret)[call] {
  @power: powergen 2 10 (r)
  @call: ret r
}
let main (fn[int] ret) {
  pow5 3 (r)
  r mod 200 (s)
  ret s
}
";

fn run(args: &[&str], file: &Path) -> Output {
    let mut all: Vec<&std::ffi::OsStr> = args.iter().map(|a| a.as_ref()).collect();
    all.push(file.as_os_str());
    nyala(&all, 60)
}

fn file(folder: &Folder, name: &str, text: &str) -> std::path::PathBuf {
    folder.write(name, text)
}

#[test]
fn every_engine_runs_what_is_left() {
    let folder = Folder::new("staging-runs");
    let program = file(&folder, "power.deepcps", POWER);
    for engine in ["jit", "interp", "c"] {
        let output = run(&["run", "--engine", engine], &program);
        assert_eq!(output.status.code(), Some(43), "{engine}: {}", stderr(&output));
    }
    let result = file(&folder, "result.deepcps", "3 + 4 (sum)\nexit sum\n");
    assert_eq!(run(&["run"], &result).status.code(), Some(7));
}

#[test]
fn nothing_of_early_stages_is_left() {
    let folder = Folder::new("staging-residual");
    let program = file(&folder, "power.deepcps", POWER);
    let output = run(&["emit", "--stage", "flat"], &program);
    let flat = String::from_utf8_lossy(&output.stdout).into_owned();
    let expected = "\
flat
export \"pow5\" pow5(i32) -> (i32) {
entry(base):
  v1: i32 = mul(base, base)
  v2: i32 = mul(v1, v1)
  v3: i32 = mul(v2, base)
  return(v3)
}
export \"early\" early() -> (i32) {
entry():
  return(1024i32)
}
export \"main\" main() -> (i32) {
entry():
  return(43i32)
}
";
    assert_eq!(flat, expected, "{}", stderr(&output));
}

/// All forms of statements and expressions, computed with.
const STATEMENTS: &str = "
int mirror(int i, int n) { return i < 0 ? -i - 1 : i >= n ? 2*n - 1 - i : i; }
int main() {
  int s = 0;
  for (int i = -3; i < 8; i++) {
    if (i == 2) continue;
    int m = mirror(i, 5);
    while (m > 3) { m -= 1; if (m == 100) break; }
    s += m * 10 + (i > 3 && 12 / i > 1 ? 1 : 0);
  }
  double d = 2.5;
  float f = d * 2 + pow(2.0, 3);
  return s + int(f) + int(max(1.0, d));
}
";

#[test]
fn every_engine_runs_staged_c() {
    let folder = Folder::new("staged-c-runs");
    let program = file(&folder, "statements.stagedc", STATEMENTS);
    for engine in ["jit", "interp", "c"] {
        let output = run(&["run", "--engine", engine], &program);
        assert_eq!(output.status.code(), Some(198), "{engine}: {}", stderr(&output));
    }
}

/// Either language calls Impala's functions, and Impala theirs.
#[test]
fn other_code_is_called_and_calls() {
    let folder = Folder::new("staging-other-code");
    let impala = "
extern fn cube(x: i32) -> i32 { x * x * x }
extern fn total(a: &[f32], n: i32) -> f32 { let mut s = 0f; for i in range(0, n) { s += a(i); } s }
extern \"C\" { fn pow5(i32) -> i32; fn cubes(i32) -> i32; fn sum3(&[f32]) -> f32; }
fn main() -> i32 {
    let mut a = [1f, 2f, 4f];
    print_f32(sum3(&mut a)); println();
    print_i32(pow5(3)); println();
    cubes(4)
}
";
    let impala = file(&folder, "both.impala", impala);
    let staged = include_str!("../../../staging/tests/stagedc/other_code.stagedc");
    let staged = file(&folder, "both.stagedc", staged).display().to_string();
    let cube = file(&folder, "cube.impala", "extern fn cube(x: i32) -> i32 { x + 1 }").display().to_string();
    let output_program = root().join("crates/staging/tests/deepcps/output.deepcps");
    for engine in ["jit", "interp", "c"] {
        let output = run(&["run", "--engine", engine, &staged], &impala);
        assert_eq!(String::from_utf8_lossy(&output.stdout), "sum 3.5\n3.5\n243\n", "{engine}: {}", stderr(&output));
        assert_eq!(output.status.code(), Some(65), "{engine}");
        let output = run(&["run", "--engine", engine, &cube], &output_program);
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(printed, "twice \"x\"\n71.41421352.5", "{engine}: {}", stderr(&output));
        assert_eq!(output.status.code(), Some(15), "{engine}");
    }
    for (text, code) in [
        ("extern float cube(int x);\nfloat f(int x) { return cube(x); }", "staging-type"),
        ("int cube(int x) { return x; }", "staging-name"),
    ] {
        let program = file(&folder, "fault.stagedc", text);
        let said = stderr(&run(&["check", &cube], &program));
        assert!(said.contains(&format!("error[{code}]")), "{said}");
    }
}

/// Files in Staged-C know each other's declarations; DeepCPS and Impala declare what they call.
#[test]
fn a_program_has_several_files() {
    let folder = Folder::new("staging-files");
    let shapes = file(
        &folder,
        "shapes.stagedc",
        "struct Shape { int width; int height; };\nint area(struct Shape s) { return s.width * scaled(s.height); }\n",
    );
    let scale = "int scaled(int x) { return x * factor(); }\nint area_of_4(int height) = area<(struct Shape){4, height}>;\nextern int factor();\nint total(struct Shape* all, int n) { int t = 0; for (int i = 0; i < n; i++) t += area(all[i]); return t; }\n";
    let scale = file(&folder, "scale.stagedc", scale);
    let factor = "extern area_of_4 (int height, fn[int] return)\nlet factor (fn[int] return) { return 3 }\nlet of_5 (fn[int] return) { area_of_4 5 (a) return a }\n";
    let factor = file(&folder, "factor.deepcps", factor);
    let main = "extern \"C\" { fn of_5() -> i32; fn total(&[(i32, i32)], i32) -> i32; }\nfn main() -> i32 { let shapes = [(1, 2), (3, 4)]; of_5() + total(&shapes, 2) }\n";
    let main = file(&folder, "main.impala", main).display().to_string();
    let [shapes, scale, factor] = [shapes, scale, factor].map(|f| f.display().to_string());
    for engine in ["jit", "interp", "c"] {
        let output = run(&["run", "--engine", engine, &main, &shapes, &factor], Path::new(&scale));
        assert_eq!(output.status.code(), Some(4 * 5 * 3 + 2 * 3 + 12 * 3), "{engine}: {}", stderr(&output));
    }
    let again = file(&folder, "again.stagedc", "int area(int x) { return x; }\n");
    let said = stderr(&run(&["check", &shapes, &scale], &again));
    assert!(said.contains("error[staging-name]: another function is called `area`"), "{said}");
    assert!(said.contains("again.stagedc:1:5") && said.contains("shapes.stagedc:2:5"), "{said}");
    let again = file(&folder, "again.deepcps", "let factor (fn[int] return) { return 4 }\n");
    let said = stderr(&run(&["check", &factor, &shapes, &scale], &again));
    assert!(said.contains("error[staging-name]") && said.contains("again.deepcps:1:"), "{said}");
}

/// A function is made of what is known when the program runs, if its compiler is there. Otherwise the general function is called.
#[test]
fn functions_are_made_while_a_program_runs() {
    let tests = root().join("crates/staging/tests");
    let program = tests.join("stagedc/compiled.stagedc");
    for (program, expected, code) in [
        (&program, "729\n64\n729\n7.5\n144\n", 7),
        (&tests.join("deepcps/compiled.deepcps"), "290\n1035\n65\n12\n2\n", 0),
    ] {
        for engine in ["jit", "interp", "c"] {
            let output = run(&["run", "--engine", engine], program);
            let printed = String::from_utf8_lossy(&output.stdout).into_owned();
            assert_eq!((&*printed, output.status.code()), (expected, Some(code)), "{engine}: {}", stderr(&output));
        }
    }
    let folder = Folder::new("staging-compile");
    let out = folder.path("out").display().to_string();
    let output = run(&["build", "-o", &out], &program);
    assert!(stderr(&output).contains("warning[limitation]: what is built has no compiler"), "{}", stderr(&output));
    let output = Command::new(&out).output().expect("it runs");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "729\n64\n729\n7.5\n144\n");
    assert_eq!(output.status.code(), Some(7));
    let text = "int f(int n) { @n: int m = 12 / n; @f: return m; }\nint main() { int n = 0; int g() = compile f<n>; return g(); }\n";
    let output = run(&["run"], &file(&folder, "zero.stagedc", text));
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("error[stuck-body]: `/` divides by zero"), "{}", stderr(&output));
    assert!(stderr(&output).contains("zero.stagedc:1:"), "{}", stderr(&output));
    let text = "float f(float* a, int n) { return a[n]; }\nfloat b(int n, float* p) { float g(int i) = compile f<p, i>; return g(n); }\n";
    let said = stderr(&run(&["check"], &file(&folder, "array.stagedc", text)));
    assert!(said.contains("error[limitation]: arrays and functions from around") && said.contains("`p`"), "{said}");
    // The length is known to the compiler only.
    let text = "let main (fn[int] return)[go] {\n  let n 3\n  compile (int x, fn[int] k) {\n    local n ([int] a)\n    put a 0 x ()\n    at a 0 (y)\n    k y\n  } (f)\n  f 5\n  return\n}\n";
    let program = file(&folder, "length.deepcps", &text.replace("f 5\n  return", "f 5 return"));
    let output = run(&["run"], &program);
    assert_eq!(output.status.code(), Some(5), "{}", stderr(&output));
    let output = run(&["run", "--engine", "interp"], &program);
    let said = stderr(&output);
    assert!(said.contains("error[limitation]: functions that only `compile` makes code of"), "{said}");
    assert!(said.contains("length.deepcps:4:5") && said.contains("local arrays whose length is no constant"), "{said}");
}

/// Impala calls such functions, which call none of Impala's.
#[test]
fn programs_of_several_languages_make_functions() {
    let folder = Folder::new("staging-compile-impala");
    let impala = "extern fn cube(x: i32) -> i32 { x * x * x }\nextern \"C\" { fn sum(i32) -> i32; }\nfn main() -> i32 { sum(3) }\n";
    let impala = file(&folder, "main.impala", impala).display().to_string();
    let text = "extern int cube(int x);\nint times(int x, int n) { @n: int k = n + 1; @x: int r = x * k; @times: return r; }\nint sum(int n) { int f(int x) = compile times<x, n>; return f(2) + cube(2); }\n";
    let output = run(&["run", &impala], &file(&folder, "sum.stagedc", text));
    assert_eq!(output.status.code(), Some(16), "{}", stderr(&output));
    let query = format!("//? sum(3) == 16\n{}", text.replace("cube(2)", "8"));
    let output = run(&["test"], &file(&folder, "query.stagedc", &query));
    let found = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(found.contains("1 passed, 0 failed"), "{found}{}", stderr(&output));
    let text = text.replace("x * k", "cube(x) * k");
    let said = stderr(&run(&["run", &impala], &file(&folder, "sum.stagedc", &text)));
    assert!(said.contains("error[limitation]: calls of the program's other code, as `cube`"), "{said}");
}

#[test]
fn queries_and_test_functions_are_tests() {
    let program = root().join("crates/staging/tests/stagedc/queries.stagedc");
    let output = run(&["test"], &program);
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let expected = [
        "5 passed, 2 failed, 0 skipped",
        "queries.stagedc:5: `pow5(3) == 244`: every engine",
        "queries.stagedc:20: `test_false`: every engine",
        "warning[not-a-test]: `test_number`",
    ];
    for text in expected {
        assert!(said.contains(text), "{text}\n{said}");
    }
    for (name, n) in [("local_arrays", 2), ("structs", 2), ("pointers_to_functions", 3), ("further_down", 5)] {
        let output = run(&["test"], &root().join(format!("crates/staging/tests/stagedc/{name}.stagedc")));
        let found = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(found.contains(&format!("{n} passed, 0 failed")), "{found}{}", stderr(&output));
    }
    let folder = Folder::new("staging-tests");
    let text = "//? twice(3) == 6\nlet twice (int x, fn[int] return) { x + x (y) return y }\n\
        let test_twice (fn[bool] return) { twice 4 (y) y == 8 (ok) return ok }\n";
    file(&folder, "t.deepcps", text);
    let output = run(&["test"], &folder.path("."));
    assert!(output.status.success(), "{}", stderr(&output));
}

/// The programs of the bench: what is specialized has the results of what is not, and the transform that of its definition.
#[test]
fn specialized_programs_have_the_same_results() {
    let folder = Folder::new("staging-bench");
    let impala = "
extern \"C\" {
    fn plain_power(f32, i32) -> f32;
    fn power72(f32) -> f32;
    fn plain_convolve(&[f32], i32, &[f32], i32, &[f32]) -> ();
    fn plain_convolve_mirror(&[f32], i32, &[f32], i32, &[f32]) -> ();
    fn convolve5(&[f32], i32, &[f32]) -> ();
    fn convolve5_mirror(&[f32], i32, &[f32]) -> ();
    fn plain_fft(&[f32], i32) -> ();
    fn fft_10(&[f32]) -> ();
}
fn near(a: f32, b: f32, most: f32) -> bool { a - b < most && b - a < most }
static N = 1024;
fn main() -> i32 {
    let mut faults = 0;
    if !near(power72(1.01f), plain_power(1.01f, 72), 1e-5f) { faults += 1; }
    let mut a = [0f, ..2048]; let mut b = [0f, ..2048]; let mut c = [0f, ..2048];
    for i in range(0, 2048) { a(i) = ((i * 37) % 101) as f32 * 0.01f; b(i) = 0f; c(i) = 0f; }
    let k = [-1f, -2f, 0f, 2f, 1f];
    convolve5(&a, N, &b); plain_convolve(&a, N, &k, 2, &c);
    for i in range(0, N) { if !near(b(i), c(i), 1e-5f) { faults += 1; } }
    if b(0) != 0f || b(2) == 0f { faults += 1; }
    convolve5_mirror(&a, N, &b); plain_convolve_mirror(&a, N, &k, 2, &c);
    for i in range(0, N) { if !near(b(i), c(i), 1e-5f) { faults += 1; } }
    if !near(b(0), a(2) + 2f * a(1) - 2f * a(0) - a(1), 1e-5f) { faults += 1; }
    for i in range(0, 2048) { b(i) = a(i); c(i) = a(i); }
    fft_10(&b); plain_fft(&c, 2048);
    for i in range(0, 2048) { if !near(b(i), c(i), 1e-3f) { faults += 1; } }
    // The sum, and the real part at the frequency N / 4, of which the factors are 1, -i, -1, i.
    let mut sum = 0f; let mut quarter = 0f;
    for i in range(0, N) {
        sum += a(2 * i);
        quarter += if i % 4 == 0 { a(2 * i) } else if i % 4 == 1 { a(2 * i + 1) } else if i % 4 == 2 { -a(2 * i) } else { -a(2 * i + 1) };
    }
    if !near(b(0), sum, 1e-2f) { faults += 1; }
    if !near(b(2 * N / 4), quarter, 1e-2f) && !near(b(2 * 3 * N / 4), quarter, 1e-2f) { faults += 1; }
    faults
}
";
    let impala = file(&folder, "results.impala", impala).display().to_string();
    let output = run(&["run", &impala], &root().join("bench/staging/staged.stagedc"));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

fn flat_of(folder: &Folder, text: &str, function: &str) -> String {
    let output = run(&["emit", "--stage", "flat", "--fn", function], &file(folder, "program.stagedc", text));
    assert!(output.status.success(), "{}", stderr(&output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Listing 9: what is left of (a) and (b) is the code of (c).
#[test]
fn listing_9c_is_what_is_left() {
    let folder = Folder::new("staged-c-listing-9");
    let staged = include_str!("../../../staging/tests/stagedc/listing_9.stagedc");
    let by_hand = "
void conv_spec(float* in, int size, float* out) {
  for (int x=0; x<size; ++x) {
    float v = 0;
    v += in[x-1]*-1.0;
    v += in[x+0]*0.0;
    v += in[x+1]*1.0;
    out[x] = v;
  }
}
";
    let [staged, by_hand] = [staged, by_hand].map(|text| flat_of(&folder, text, "conv_spec"));
    assert_eq!(staged, by_hand);
    assert_eq!(staged.matches("load(").count(), 3, "{staged}");
}

/// Written out, the type of the last parameter has 2^40 parts.
#[test]
fn types_that_share_parts_are_as_long_as_their_parts() {
    let folder = Folder::new("staging-types");
    let params: Vec<String> = (1..=40).map(|k| format!("y{k}")).collect();
    let calls: Vec<String> = (2..=40).map(|k| format!("    y{k} y{0} y{0} ()\n", k - 1)).collect();
    let text = format!(
        "let f (int n, fn[int] ret) {{\n  fix def loop (int i, {}) {{\n    y1 i i ()\n{}    ret i\n  }}\n  ret n\n}}\n",
        params.join(", "),
        calls.concat()
    );
    let output = run(&["emit", "--stage", "residual"], &file(&folder, "shared.deepcps", &text));
    let residual = String::from_utf8_lossy(&output.stdout);
    assert!(residual.contains("= ret(m, n)"), "{residual}{}", stderr(&output));
}

/// Listing 9: the kernel is known when the program is compiled, and nothing of it is left but its factors.
#[test]
fn c_calls_a_specialized_convolution() {
    let folder = Folder::new("staging-convolution");
    let program = root().join("crates/staging/tests/deepcps/listing_9.deepcps");
    let flat = run(&["emit", "--stage", "flat"], &program);
    let flat = String::from_utf8_lossy(&flat.stdout).into_owned();
    let of_spec = flat.split("export").find(|f| f.contains("conv_spec")).unwrap_or_default();
    let counts = ["load(", "store(", "branch ", "mul(", "call "].map(|op| of_spec.matches(op).count());
    // The product with 1 is folded.
    assert_eq!(counts, [3, 1, 1, 2, 0], "{flat}");
    let object = folder.path("conv.o");
    let output = run(&["build", "-o", &object.display().to_string()], &program);
    assert!(output.status.success(), "{}", stderr(&output));
    let main = folder.write(
        "main.c",
        "#include <stdio.h>
void conv_spec(const float *in, int size, float *out);
int main(void) {
    float in[] = {1, 2, 4, 8, 16, 32}, out[4];
    conv_spec(in + 1, 4, out);
    for (int i = 0; i < 4; i++) printf(\"%g \", out[i]);
}",
    );
    sh(Command::new("cc").arg("-o").arg(folder.path("main")).args([main, object]));
    assert_eq!(sh(&mut Command::new(folder.path("main"))), "3 6 12 24 ");
}

#[test]
fn faults_are_reported_where_they_are() {
    let folder = Folder::new("staging-faults");
    let faults = [
        ("staging-syntax", "let f (fn[int] k) { k 1 () }", "1:28"),
        ("staging-name", "exit nothing", "1:6"),
        ("staging-type", "let f (int n, fn[float] k) { k n }", "1:32"),
        ("stuck-body", "let [now] f (fn[int] k) { k 1 }\nlet g (int n, fn[int] k) {\n  @now: n+1 (m)\n  k m\n}", "3:9"),
        ("stuck-body", "let f (int n, fn[int] k) {\n  @never: k n\n}", "2:11"),
        ("stuck-body", "let f (fn[] k) {\n  put {1, 2} 0 3 ()\n  k\n}", "2:3"),
        ("staging-limit", "let f (int n) { 0+n (m) f m }\nf 1", "1:17"),
        // The sum runs before the store, since it does not wait for it; and so does what follows it.
        (
            "limitation",
            "let f ([int] a, int x, fn[] k) {\n  put a 0 x ()\n  @x: x+1 (y)\n  put a 1 y ()\n  k\n}",
            "4:3",
        ),
        ("limitation", "let f (int n, fn[int] k)[call] {\n  n+1 (m)\n  @call: k n\n}", "3:10"),
    ];
    for (code, text, place) in faults {
        let program = file(&folder, "fault.deepcps", text);
        let output = run(&["check"], &program);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{code}: {said}");
        assert!(
            said.contains(&format!("error[{code}]")) && said.contains(&format!("deepcps:{place}\n")),
            "{code}: {said}"
        );
    }
    // The caller has to pass another stage.
    let text = "void f(float* a, stage s) {\n  @s: a[0] = 1.0;\n}\nvoid g(float* a) = f<a, never>;\n";
    let said = stderr(&run(&["check"], &file(&folder, "never.stagedc", text)));
    assert!(said.contains("its stage is `never`") && said.contains("never.stagedc:2:7\n"), "{said}");
    // Forms of a program that only Impala's have.
    let program = file(&folder, "power.deepcps", POWER);
    for args in [&["emit", "--stage", "ast"][..], &["build", "--kind", "header", "-o", "power.h"]] {
        let output = run(args, &program);
        assert!(stderr(&output).contains("error[limitation]"), "{args:?}: {}", stderr(&output));
    }
}

#[test]
fn what_has_no_canonical_form_is_not_formatted() {
    let folder = Folder::new("staging format");
    let path = folder.write("p.deepcps", POWER);
    let output = nyala(&["fmt".as_ref(), path.as_os_str()], 20);
    assert_eq!(output.status.code(), Some(1));
    let text = stderr(&output);
    assert!(text.contains("error[limitation]: canonical forms of files `.deepcps` are not supported yet"), "{text}");
    assert_eq!(std::fs::read_to_string(&path).expect("the file"), POWER);
    // In a folder, it is passed over.
    let c = folder.write("c.stagedc", "int f (int*a){\n@a :if(a[0]<2) // two\nreturn -1 ;\nreturn 0;}\n");
    let output = nyala(&["fmt".as_ref(), folder.path(".").as_os_str()], 20);
    assert!(output.status.success(), "{}", stderr(&output));
    let expected = "int f(int* a) {\n  @a: if (a[0] < 2) // two\n    return -1;\n  return 0; }\n";
    assert_eq!(std::fs::read_to_string(&c).expect("the file"), expected);
}
