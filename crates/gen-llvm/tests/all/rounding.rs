//! Functions of libm are those of the machine that runs: LLVM neither folds nor replaces their calls.

use nyala_flat::{read, verify};
use nyala_gen_llvm::{LlvmModule, Options, emit};
use nyala_ir::Op;

/// LLVM's text after optimization, and the assembly.
fn optimized(text: &str) -> (String, String) {
    let module = read(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    verify(&module).unwrap_or_else(|e| panic!("{e}"));
    let mut llvm: LlvmModule = emit(&module, &Options::default()).unwrap_or_else(|e| panic!("{}", e.message));
    llvm.optimize().unwrap_or_else(|e| panic!("{}", e.message));
    (llvm.ir_text(), llvm.asm_text().unwrap_or_else(|e| panic!("{}", e.message)))
}

#[test]
fn functions_of_constants_are_called() {
    let is_of_libm = |op: &Op| *op > Op::Copysign && *op <= Op::Atan2 && !op.is_approximate();
    let functions: Vec<Op> = Op::ALL.iter().copied().filter(is_of_libm).collect();
    assert!(functions.contains(&Op::Sin) && functions.contains(&Op::Cbrt) && functions.contains(&Op::Pow));
    let mut gone = Vec::new();
    for op in functions {
        for (ty, suffix) in [("f32", "f"), ("f64", "")] {
            for constant in ["-1.0", "0.0", "0.5", "1.0", "2.0", "2.5", "10.0"] {
                // The first is a constant, the second is, both are.
                let args: &[&str] = if op.arity() == 1 { &["c"] } else { &["c, x", "x, c", "c, c"] };
                for args in args {
                    let is_square = op == Op::Pow && constant == "2.0" && args.ends_with('c');
                    let (name, args) = (op.name(), args.replace('c', &format!("{constant}{ty}")));
                    let (_, asm) = optimized(&format!(
                        "flat\nexport f({ty}) -> ({ty}) {{\nentry(x):\n  r: {ty} = {name}({args})\n  return(r)\n}}\n"
                    ));
                    if !is_square && !asm.contains(&format!("{name}{suffix}")) {
                        gone.push(format!("{name}({args})"));
                    }
                }
            }
        }
    }
    assert!(gone.is_empty(), "not called: {}", gone.join(", "));
}

/// The text of a loop that writes what `op` gives for as many numbers as there are.
fn loop_of(op: &str, n: u32) -> (String, String) {
    optimized(&format!(
        "flat
export f(&[f32 * {n}]) -> () {{
entry(p):
  jump next(0i32)
next(i: i32):
  x: f32 = cast(i)
  r: f32 = {op}
  at: &f32 = lea(p, i)
  store(at, r)
  j: i32 = add(i, 1i32)
  c: bool = lt(j, {n}i32)
  branch c, next(j), done()
done():
  return()
}}
"
    ))
}

#[test]
fn loops_become_vector_code_without_folding() {
    let (ir, asm) = loop_of("sin(x)", 1000);
    assert!(ir.contains("x float> @llvm.sin.v"), "{ir}");
    assert!(asm.contains("sinf"), "{asm}");
    // A single round of vector code, of constants.
    let (_, asm) = loop_of("sin(x)", 16);
    assert!(asm.contains("sinf"), "{asm}");
    for power in ["pow(x, 0.5f32)", "pow(x, -1.0f32)", "pow(2.0f32, x)", "pow(10.0f32, x)", "pow(x, 0.3f32)"] {
        let (_, asm) = loop_of(power, 1000);
        assert!(asm.contains("powf"), "{power}: {asm}");
    }
}

#[test]
fn foreign_functions_are_called_unless_they_are_exact() {
    let ir = |name: &str, arg: &str| {
        let text = format!(
            "flat\nforeign \"{name}\" g(f32) -> (f32)\nexport f(f32) -> (f32) {{\nentry(x):\n  r: f32 = call g({arg})\n  return(r)\n}}\n"
        );
        optimized(&text).0
    };
    for name in ["tanf", "erff", "log1pf"] {
        let ir = ir(name, "2.5f32");
        assert!(ir.contains(&format!("call float @{name}(")), "{ir}");
    }
    // Instruction selection knows these.
    for name in ["floorf", "fabsf"] {
        let ir = ir(name, "x");
        assert!(!ir.contains("nobuiltin"), "{ir}");
    }
}

#[test]
fn a_sine_and_a_cosine_are_one_call() {
    let text = "flat
export f(f32) -> (f32) {
entry(x):
  s: f32 = sin(x)
  c: f32 = cos(x)
  r: f32 = add(s, c)
  return(r)
}
";
    if cfg!(all(target_arch = "x86_64", target_env = "gnu")) {
        assert!(optimized(text).1.contains("sincosf"), "{}", optimized(text).0);
    }
}
