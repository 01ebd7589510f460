//! Flat SSA of device modules in, SPIR-V text out: loops, jumps past code, memory, arguments; and limitations.

use expect_test::{Expect, expect};
use nyala_flat::{read, verify};
use nyala_gen_spirv::{Flavor, emit};

/// The text of a module.
fn text(source: &str, flavor: Flavor) -> String {
    let module = read(source).unwrap_or_else(|e| panic!("{e}"));
    verify(&module).unwrap_or_else(|e| panic!("{e}"));
    emit(&module, flavor).unwrap_or_else(|d| panic!("{}", d.message)).text()
}

/// Compares the bodies of functions, without the numbers of results.
fn check(source: &str, flavor: Flavor, expected: Expect) {
    let text = text(source, flavor);
    let body = text.split("OpTypeFunction").last().and_then(|t| t.split_once('\n')).expect("a function").1;
    let lines = body.lines().map(|line| {
        let words = line.split_whitespace().filter(|w| *w != "=");
        let words: Vec<&str> = words.map(|w| if w.starts_with('%') { "%" } else { w }).collect();
        words.join(" ")
    });
    expected.assert_eq(&(lines.collect::<Vec<_>>().join("\n") + "\n"));
}

/// The message of a limitation.
fn lacks(source: &str, flavor: Flavor) -> String {
    let module = read(source).unwrap_or_else(|e| panic!("{e}"));
    match emit(&module, flavor) {
        Ok(_) => panic!("it can be written"),
        Err(d) => d.message,
    }
}

const SUM: &str = "flat
kernel [64, 1, 1] \"sum\" sum(&[1][f32], i32) -> () {
entry(a, n):
  jump head(0i32, 0.0f32)
head(i: i32, s: f32):
  more: bool = lt(i, n)
  branch more, body(), done()
body():
  p: &[1]f32 = lea(a, i)
  x: f32 = load(p)
  t: f32 = add(s, x)
  j: i32 = add(i, 1i32)
  jump head(j, t)
done():
  q: &[1]f32 = lea(a, 0i32)
  store(q, s)
  return()
}
";

#[test]
fn loops_have_merges_and_variables() {
    check(
        SUM,
        Flavor::Vulkan,
        expect![[r#"
        % OpFunction % None %
        % OpLabel
        % OpVariable % Function
        % OpVariable % Function
        % OpAccessChain % % %
        % OpLoad % %
        % OpAccessChain % % %
        % OpLoad % %
        OpStore % %
        OpStore % %
        OpBranch %
        % OpLabel
        OpLoopMerge % % None
        OpBranch %
        % OpLabel
        % OpLoad % %
        % OpLoad % %
        % OpSLessThan % % %
        OpSelectionMerge % None
        OpBranchConditional % % %
        % OpLabel
        % OpSConvert % %
        % OpIMul % % %
        % OpIAdd % % %
        % OpConvertUToPtr % %
        % OpLoad % % Aligned 4
        % OpFAdd % % %
        % OpIAdd % % %
        OpStore % %
        OpStore % %
        OpBranch %
        % OpLabel
        OpBranch %
        % OpLabel
        OpUnreachable
        % OpLabel
        OpBranch %
        % OpLabel
        % OpConvertUToPtr % %
        OpStore % % Aligned 4
        OpReturn
        OpFunctionEnd
    "#]],
    );
}

#[test]
fn arguments_are_push_constants_or_parameters() {
    let vulkan = text(SUM, Flavor::Vulkan);
    assert!(vulkan.contains("OpModuleProcessed \"nyala sum push 16 0\""), "{vulkan}");
    let opencl = text(SUM, Flavor::OpenCl);
    assert_eq!(opencl.matches("OpFunctionParameter").count(), 2, "{opencl}");
    // More than fits push constants lies in memory.
    let params: Vec<String> = (0..20).map(|i| format!("x{i}")).collect();
    let many = format!(
        "flat\nkernel [1, 1, 1] \"k\" k({}) -> () {{\nentry({}):\n  return()\n}}\n",
        vec!["i64"; 20].join(", "),
        params.join(", ")
    );
    let vulkan = text(&many, Flavor::Vulkan);
    assert!(vulkan.contains("OpModuleProcessed \"nyala k memory 160 0\""), "{vulkan}");
}

#[test]
fn a_jump_past_code_tests_its_target() {
    // `then` and `y` go on at `join`; `entry` and `l` go to `y`.
    let source = "flat
kernel [1, 1, 1] \"k\" k(&[1]i32, i32, i32) -> () {
entry(p, c, d):
  a: bool = ne(c, 0i32)
  b: bool = ne(d, 0i32)
  branch a, l(), y()
l():
  branch b, then(), y()
then():
  store(p, 1i32)
  jump join()
y():
  store(p, 2i32)
  jump join()
join():
  store(p, 3i32)
  return()
}
";
    check(
        source,
        Flavor::Vulkan,
        expect![[r#"
        % OpFunction % None %
        % OpLabel
        % OpVariable % Function
        % OpAccessChain % % %
        % OpLoad % %
        % OpAccessChain % % %
        % OpLoad % %
        % OpAccessChain % % %
        % OpLoad % %
        % OpINotEqual % % %
        % OpINotEqual % % %
        OpSelectionMerge % None
        OpBranchConditional % % %
        % OpLabel
        OpSelectionMerge % None
        OpBranchConditional % % %
        % OpLabel
        % OpConvertUToPtr % %
        OpStore % % Aligned 4
        OpStore % %
        OpBranch %
        % OpLabel
        OpStore % %
        OpBranch %
        % OpLabel
        OpBranch %
        % OpLabel
        OpStore % %
        OpBranch %
        % OpLabel
        % OpLoad % %
        % OpIEqual % % %
        OpSelectionMerge % None
        OpBranchConditional % % %
        % OpLabel
        % OpConvertUToPtr % %
        OpStore % % Aligned 4
        OpStore % %
        OpBranch %
        % OpLabel
        % OpConvertUToPtr % %
        OpStore % % Aligned 4
        OpReturn
        OpFunctionEnd
    "#]],
    );
}

/// The greatest number of constructs that are open at once, in a text whose constructs end where their merges begin.
fn depth(text: &str) -> usize {
    let (mut open, mut deepest) = (Vec::new(), 0);
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["OpSelectionMerge" | "OpLoopMerge", merge, ..] => open.push(merge),
            [label, "=", "OpLabel"] if open.last() == Some(&label) => drop(open.pop()),
            _ => {}
        }
        deepest = deepest.max(open.len());
    }
    deepest
}

#[test]
fn deep_nesting_becomes_jumps() {
    let nested = |n: usize| {
        let mut source = String::from("flat\nkernel [1, 1, 1] \"k\" k(&[1]i32, i32) -> () {\nentry(p, n):\n");
        for i in 0..n {
            source.push_str(&format!("  c{i}: bool = lt(n, {i}i32)\n  branch c{i}, in{i}(), out()\nin{i}():\n"));
        }
        source + "  store(p, 1i32)\n  jump out()\nout():\n  store(p, 2i32)\n  return()\n}\n"
    };
    for n in [10, 100, 5000] {
        let text = text(&nested(n), Flavor::Vulkan);
        assert!(text.matches("OpSelectionMerge").count() >= n);
        assert!(depth(&text) <= 30, "{n}: {}", depth(&text));
    }
}

#[test]
fn loops_nested_too_deep_are_a_limitation() {
    let n = 80;
    let mut source = String::from("flat\nkernel [1, 1, 1] \"k\" k(&[1]i32, i32) -> () {\nentry(p, n):\n  jump h0()\n");
    for i in 0..n {
        let next = if i + 1 < n { format!("h{}", i + 1) } else { "body".into() };
        let out = if i > 0 { format!("h{}", i - 1) } else { "done".into() };
        source.push_str(&format!("h{i}():\n  x{i}: i32 = load(p)\n  c{i}: bool = lt(x{i}, {i}i32)\n"));
        source.push_str(&format!("  branch c{i}, {next}(), {out}()\n"));
    }
    source.push_str(&format!("body():\n  store(p, 1i32)\n  jump h{}()\ndone():\n  return()\n}}\n", n - 1));
    assert!(lacks(&source, Flavor::Vulkan).contains("nested more than 76 deep"));
}

#[test]
fn functions_that_drivers_lack_are_called() {
    let exp = "flat
kernel [1, 1, 1] \"k\" k(&[1]f64, f64) -> () {
entry(p, x):
  y: f64 = cbrt(x)
  store(p, y)
  return()
}
";
    let fast = exp.replace("= cbrt", "= fast cbrt");
    for source in [exp, &fast] {
        assert!(text(source, Flavor::Vulkan).contains("OpFunctionCall"), "{source}");
    }
    assert!(text(exp, Flavor::OpenCl).contains("cbrt"));
}

#[test]
fn memory_of_a_block_is_an_array_of_what_is_accessed() {
    let source = |access: &str| {
        format!(
            "flat
foreign \"nyala_block_shared\" nyala_block_shared(i64) -> (&[3][f32])
kernel [64, 1, 1] \"k\" k(&[1]f32, i32) -> () {{
entry(p, i):
  s: &[3][f32] = call nyala_block_shared(256i64)
  q: &[3]f32 = lea(s, i)
  store(q, 1.0f32)
{access}  return()
}}
"
        )
    };
    let floats = text(&source(""), Flavor::Vulkan);
    assert!(floats.contains("OpModuleProcessed \"nyala k push 16 256\""), "{floats}");
    assert!(!floats.contains("OpTypeInt 8 0"), "{floats}");
    let bytes = text(&source("  b: &[3]u8 = bitcast(q)\n  store(b, 1u8)\n"), Flavor::Vulkan);
    // A float is four bytes then.
    assert_eq!(bytes.matches("OpShiftRightLogical").count() - floats.matches("OpShiftRightLogical").count(), 7);
}
