//! Math functions on vectors against those on numbers: within 4 ULP, at edges as anywhere, whatever the CPU.

use nyala_flat::{read, verify};
use nyala_gen_llvm::{Jit, Options, emit, emit_text};
use nyala_ir::Target;
use std::f64::consts::{FRAC_PI_2, FRAC_PI_4, PI, TAU};
use std::fmt::Debug;

const UNARY: [&str; 18] = [
    "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "exp", "exp2", "expm1", "log", "log2",
    "log10", "log1p", "cbrt", "erf",
];
const BINARY: [&str; 2] = ["pow", "atan2"];

fn compile(text: &str, target: Target) -> Jit {
    let mut module = read(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    verify(&module).unwrap_or_else(|e| panic!("{e}\n{text}"));
    module.set_target(target);
    let mut llvm = emit(&module, &Options::default()).unwrap_or_else(|e| panic!("{}", e.message));
    llvm.optimize().unwrap_or_else(|e| panic!("{}", e.message));
    let jit = Jit::new(&[]).expect("a JIT");
    jit.add(&llvm).unwrap_or_else(|e| panic!("{}", e.message));
    jit
}

/// All functions: `LANES` at a time, and as `op_0` one number in double precision.
fn program(ty: &str, lanes: &[u32]) -> String {
    let mut text = String::from("flat\n");
    for op in UNARY.iter().chain(&BINARY) {
        let args = if BINARY.contains(op) { "x, y" } else { "x" };
        for &n in lanes {
            let vector = format!("simd[{ty} * {n}]");
            text.push_str(&format!(
                "export {op}_{n}(&[{ty}], &[{ty}], &[{ty}]) -> () {{\nentry(a, b, to):\n  x: {vector} = vload(a)\n  \
                 y: {vector} = vload(b)\n  r: {vector} = {op}({args})\n  vstore(to, r)\n  return()\n}}\n"
            ));
        }
        text.push_str(&format!(
            "export {op}_0(f64, f64) -> (f64) {{\nentry(x, y):\n  r: f64 = {op}({args})\n  return(r)\n}}\n"
        ));
    }
    text
}

trait Float: Copy + Debug {
    const NAME: &'static str;
    fn of(bits: u64) -> Self;
    fn near(x: f64) -> Self;
    fn wide(self) -> f64;
    /// A number that counts the floats from the least one up, both zeros at one place.
    fn rank(self) -> i64;
    fn is_nan(self) -> bool;
}

macro_rules! float {
    ($float:ident, $int:ident, $signed:ident) => {
        impl Float for $float {
            const NAME: &'static str = stringify!($float);
            fn of(bits: u64) -> Self {
                $float::from_bits(bits as $int)
            }
            fn near(x: f64) -> Self {
                x as $float
            }
            fn wide(self) -> f64 {
                self.into()
            }
            fn rank(self) -> i64 {
                let bits = self.to_bits() as $signed;
                i64::from(if bits < 0 { $signed::MIN.wrapping_sub(bits) } else { bits })
            }
            fn is_nan(self) -> bool {
                self.is_nan()
            }
        }
    };
}
float!(f32, u32, i32);
float!(f64, u64, i64);

/// Numbers of all sizes: special ones, where functions overflow or turn, and random ones.
fn numbers<T: Float>(n: usize) -> Vec<T> {
    let mut numbers = Vec::new();
    let special = [
        0.0,
        1.0,
        0.5,
        2.0,
        1e-300,
        1e-40,
        1e-45,
        5e-324,
        1e-20,
        1e-8,
        1e-3,
        0.999,
        0.9999999,
        1.0000001,
        1.001,
        3.0,
        10.0,
        FRAC_PI_4,
        FRAC_PI_2,
        PI,
        TAU,
        22.0,
        88.0,
        88.72,
        88.73,
        89.5,
        103.9,
        104.1,
        126.9,
        127.9,
        128.0,
        149.0,
        150.1,
        300.0,
        709.7,
        709.79,
        710.5,
        744.4,
        745.2,
        1022.5,
        1023.9,
        1024.0,
        1074.0,
        1075.5,
        1e4,
        1e5,
        1e6,
        1e9,
        1e10,
        1e15,
        1e22,
        1e30,
        3.4028234e38,
        1e100,
        1e300,
        f64::MAX,
        f64::INFINITY,
        f64::NAN,
    ];
    for x in special {
        numbers.extend([T::near(x), T::near(-x)]);
    }
    let mut state = 1u64;
    let mut random = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 32) ^ (state << 31)
    };
    for i in 0..n {
        let unit = (random() >> 11) as f64 / (1u64 << 52) as f64 * 2.0 - 1.0;
        numbers.push(match i % 4 {
            0 => T::of(random() ^ random().rotate_left(23)),
            1 => T::near(unit),
            2 => T::near(unit * 100.0),
            _ => T::near(unit * 800.0),
        });
    }
    numbers
}

type Math<T> = extern "C" fn(*const T, *const T, *mut T);

/// How far the functions of `lanes` numbers go astray at most.
struct Distance {
    op: &'static str,
    ulp: i64,
    example: String,
    /// Zeros of the wrong sign.
    signs: usize,
}

/// `n` random numbers for each function.
fn distances<T: Float>(cpu: Option<&str>, lanes: usize, n: usize) -> Vec<Distance> {
    let jit = compile(&program(T::NAME, &[lanes as u32]), Target::new(None, cpu));
    let mut a: Vec<T> = numbers(n);
    a.resize(a.len().next_multiple_of(lanes), T::near(1.0));
    let mut b = a.clone();
    b.rotate_left(17);
    let measure = |op: &'static str| {
        let address = |name: String| jit.lookup(&name).unwrap_or_else(|e| panic!("{}", e.message));
        // SAFETY: so the text has it.
        let (vector, exact) = unsafe {
            (
                std::mem::transmute::<usize, Math<T>>(address(format!("{op}_{lanes}"))),
                std::mem::transmute::<usize, extern "C" fn(f64, f64) -> f64>(address(format!("{op}_0"))),
            )
        };
        let mut worst = Distance { op, ulp: 0, example: String::new(), signs: 0 };
        let mut got = vec![T::near(0.0); lanes];
        for at in (0..a.len()).step_by(lanes) {
            vector(a[at..].as_ptr(), b[at..].as_ptr(), got.as_mut_ptr());
            for (k, &got) in got.iter().enumerate() {
                let (x, y) = (a[at + k], b[at + k]);
                let wanted = T::near(exact(x.wide(), y.wide()));
                let ulp = match (got.is_nan(), wanted.is_nan()) {
                    (true, true) => 0,
                    (false, false) => got.rank().saturating_sub(wanted.rank()).saturating_abs(),
                    _ => i64::MAX,
                };
                if ulp > worst.ulp {
                    worst.ulp = ulp;
                    worst.example = format!("{op}({x:?}, {y:?}) = {got:?}, not {wanted:?}");
                }
                let is_zero = got.wide() == 0.0 && wanted.wide() == 0.0;
                if is_zero && got.wide().is_sign_negative() != wanted.wide().is_sign_negative() {
                    worst.signs += 1;
                    worst.example = format!("{op}({x:?}, {y:?}) = {got:?}, not {wanted:?}");
                }
            }
        }
        worst
    };
    UNARY.into_iter().chain(BINARY).map(measure).collect()
}

/// As far as `docs/design/targets.md`, Math functions, lets vectors go; what is exact but for its last rounding may look half
/// of one farther.
const MAX_ULP: i64 = 4;

#[test]
fn vectors_agree_with_numbers() {
    let cpus: &[Option<&str>] = match cfg!(target_arch = "x86_64") {
        true if std::arch::is_x86_feature_detected!("avx2") => &[Some("x86-64"), Some("x86-64-v3")],
        _ => &[None],
    };
    cpus.iter().for_each(|cpu| agrees_with_numbers(*cpu));
}

#[test]
#[ignore = "differs with the processor: ./x test --all crates"]
fn vectors_of_this_machine_agree_with_numbers() {
    agrees_with_numbers(None);
}

fn agrees_with_numbers(cpu: Option<&str>) {
    // More than a register, less, several, and one.
    for (lanes, n) in [(16, 100_000), (1, 100), (2, 10_000), (3, 10_000), (13, 10_000), (21, 10_000), (64, 10_000)] {
        for d in distances::<f32>(cpu, lanes, n).into_iter().chain(distances::<f64>(cpu, lanes, n)) {
            assert!(d.ulp <= MAX_ULP && d.signs == 0, "{lanes} lanes on {cpu:?}: {}: {}", d.op, d.example);
        }
    }
}

/// The calls are there where the library is, in registers of the machine's width.
#[test]
fn whole_registers_are_called() {
    let text = "flat
export f(&[f32]) -> () {
entry(p):
  x: simd[f32 * 20] = vload(p)
  y: simd[f32 * 20] = sin(x)
  vstore(p, y)
  return()
}
";
    let mut module = read(text).expect("reads");
    let mut calls = |target: Option<&str>, cpu: &str| {
        module.set_target(Target::new(target, Some(cpu)));
        let text = emit_text(&module, &Options::default()).unwrap_or_else(|e| panic!("{}", e.message));
        let called = text.lines().filter(|l| l.contains("call")).filter_map(|l| l.split_once('@'));
        let mut names: Vec<String> = called.filter_map(|(_, l)| Some(l.split_once('(')?.0.to_string())).collect();
        names.retain(|name| name.contains("sin"));
        names
    };
    if cfg!(all(target_arch = "x86_64", target_env = "gnu")) {
        assert_eq!(calls(None, "x86-64"), ["_ZGVbN4v_sinf"; 5]);
        assert_eq!(calls(None, "x86-64-v3"), ["_ZGVdN8v_sinf", "_ZGVdN8v_sinf", "_ZGVbN4v_sinf"]);
        assert_eq!(calls(None, "x86-64-v4"), ["_ZGVeN16v_sinf", "_ZGVbN4v_sinf"]);
        assert_eq!(calls(None, "skylake-avx512"), calls(None, "x86-64-v4"));
        assert_eq!(calls(None, "corei7-avx"), calls(None, "x86-64"));
    }
    // Nobody knows what is there.
    assert_eq!(calls(Some("aarch64-unknown-linux-gnu"), "generic"), ["llvm.sin.f32"; 20]);
    assert_eq!(calls(Some("x86_64-unknown-linux-musl"), "x86-64"), ["llvm.sin.f32"; 20]);
}

/// Exponentials and logarithms in single precision are written out on all machines; a fast power of an exponential is one.
#[test]
fn polynomials_call_nothing() {
    let text = "flat
export f(&[f32], &[f32]) -> () {
entry(p, q):
  x: simd[f32 * 16] = vload(p)
  y: simd[f32 * 16] = vload(q)
  a: simd[f32 * 16] = fast exp(x)
  b: simd[f32 * 16] = fast pow(a, y)
  c: simd[f32 * 16] = log(b)
  d: simd[f32 * 16] = exp2(c)
  e: simd[f32 * 16] = log2(d)
  vstore(p, e)
  return()
}
";
    let mut module = read(text).expect("reads");
    for (target, cpu) in [(None, "x86-64"), (None, "x86-64-v4"), (Some("aarch64-unknown-linux-gnu"), "generic")] {
        module.set_target(Target::new(target, Some(cpu)));
        let text = emit_text(&module, &Options::default()).unwrap_or_else(|e| panic!("{}", e.message));
        let is_foreign = |l: &&str| l.contains(" call ") && !l.contains("@llvm.") && !l.contains("@\"impala.f");
        let foreign = text.lines().filter(is_foreign);
        assert_eq!(foreign.collect::<Vec<_>>(), Vec::<&str>::new(), "{cpu}");
        assert_eq!(text.matches("fmul fast").count(), 1, "{text}");
    }
}
