//! Flat SSA in, results out: every operation through the JIT, at -O0 and -O3.

use nyala_flat::{read, verify};
use nyala_gen_llvm::{Jit, Options, emit, emit_text};
use nyala_ir::Target;

/// Compiles the text and calls `f` with its linker, at each level.
fn run(text: &str, f: impl Fn(&Jit)) {
    let module = read(text).unwrap_or_else(|e| panic!("{e}"));
    verify(&module).unwrap_or_else(|e| panic!("{e}"));
    for opt_level in [0, 1, 3] {
        let options = Options { opt_level, ..Options::default() };
        let mut llvm = emit(&module, &options)
            .unwrap_or_else(|e| panic!("{}\n{}", e.message, emit_text(&module, &options).unwrap_or_default()));
        llvm.optimize().unwrap_or_else(|e| panic!("{}", e.message));
        let jit = Jit::new(&[]).expect("a JIT");
        jit.add(&llvm).unwrap_or_else(|e| panic!("{}", e.message));
        f(&jit);
    }
}

macro_rules! get {
    ($jit:ident, $name:literal, fn($($arg:ty),*) -> $ret:ty) => {{
        let address = $jit.lookup($name).unwrap_or_else(|e| panic!("{}", e.message));
        // SAFETY: the tests state the types of the text.
        unsafe { std::mem::transmute::<usize, extern "C" fn($($arg),*) -> $ret>(address) }
    }};
}

#[test]
fn integers_are_signed_or_not_by_type() {
    run(
        "flat
export div(i32, i32) -> (i32) {
entry(a, b):
  q: i32 = pdiv(a, b)
  r: i32 = prem(a, b)
  h: i32 = mul(q, 1000i32)
  s: i32 = add(h, r)
  return(s)
}
export udiv(u8, u8) -> (u8) {
entry(a, b):
  q: u8 = div(a, b)
  return(q)
}
export shr(i8, i8) -> (i8) {
entry(a, b):
  q: i8 = shr(a, b)
  return(q)
}
export ushr(u8, u8) -> (u8) {
entry(a, b):
  q: u8 = shr(a, b)
  return(q)
}
export shl(i32, i32) -> (i32) {
entry(a, b):
  q: i32 = shl(a, b)
  return(q)
}
export less(u32, u32) -> (bool) {
entry(a, b):
  q: bool = lt(a, b)
  return(q)
}
export sless(i32, i32) -> (bool) {
entry(a, b):
  q: bool = lt(a, b)
  return(q)
}
",
        |jit| {
            assert_eq!(get!(jit, "div", fn(i32, i32) -> i32)(-7, 2), -3001);
            assert_eq!(get!(jit, "udiv", fn(u8, u8) -> u8)(255, 2), 127);
            assert_eq!(get!(jit, "shr", fn(i8, i8) -> i8)(-128, 3), -16);
            assert_eq!(get!(jit, "ushr", fn(u8, u8) -> u8)(128, 3), 16);
            let shl = get!(jit, "shl", fn(i32, i32) -> i32);
            assert_eq!((shl(1, 33), shl(1, -1)), (2, i32::MIN));
            assert!(!get!(jit, "less", fn(u32, u32) -> bool)(u32::MAX, 1));
            assert!(get!(jit, "sless", fn(i32, i32) -> bool)(-1, 1));
        },
    );
}

#[test]
fn casts_convert() {
    run(
        "flat
export sat(f32) -> (i8) {
entry(x):
  r: i8 = cast(x)
  return(r)
}
export usat(f64) -> (u32) {
entry(x):
  r: u32 = cast(x)
  return(r)
}
export truth(f32) -> (bool) {
entry(x):
  r: bool = cast(x)
  return(r)
}
export wide(i8) -> (u64) {
entry(x):
  r: u64 = cast(x)
  return(r)
}
export float(u64) -> (f32) {
entry(x):
  r: f32 = cast(x)
  return(r)
}
export of_bool(bool) -> (f64) {
entry(x):
  i: i32 = cast(x)
  u: u32 = cast(i)
  r: f64 = cast(u)
  return(r)
}
export bits(f32) -> (u32) {
entry(x):
  r: u32 = bitcast(x)
  return(r)
}
export pair(u64) -> (i32) {
entry(x):
  r: (i32, i32) = bitcast(x)
  a: i32 = extract(r, 1i32)
  return(a)
}
",
        |jit| {
            let sat = get!(jit, "sat", fn(f32) -> i8);
            assert_eq!((sat(1e9), sat(-1e9), sat(f32::NAN), sat(-3.9)), (127, -128, 0, -3));
            assert_eq!(get!(jit, "usat", fn(f64) -> u32)(-5.0), 0);
            let truth = get!(jit, "truth", fn(f32) -> bool);
            assert!(truth(0.5) && truth(f32::NAN) && !truth(-0.0));
            assert_eq!(get!(jit, "wide", fn(i8) -> u64)(-1), u64::MAX);
            assert_eq!(get!(jit, "float", fn(u64) -> f32)(u64::MAX), u64::MAX as f32);
            assert_eq!(get!(jit, "of_bool", fn(bool) -> f64)(true), 1.0);
            assert_eq!(get!(jit, "bits", fn(f32) -> u32)(1.5), 1.5f32.to_bits());
            assert_eq!(get!(jit, "pair", fn(u64) -> i32)(7 << 32), 7);
        },
    );
}

#[test]
fn floats_follow_ieee() {
    run(
        "flat
export ne(f64, f64) -> (bool) {
entry(a, b):
  r: bool = ne(a, b)
  return(r)
}
export ge(f64, f64) -> (bool) {
entry(a, b):
  r: bool = ge(a, b)
  return(r)
}
export fmin(f32, f32) -> (f32) {
entry(a, b):
  r: f32 = fmin(a, b)
  return(r)
}
export math(f64) -> (f64) {
entry(x):
  a: f64 = sin(x)
  b: f64 = sqrt(x)
  c: f64 = round(x)
  d: f64 = fma(a, b, c)
  e: f64 = pow(d, 0.3f64)
  f: f64 = rem(e, 0.25f64)
  return(f)
}
export single(f32) -> (f32) {
entry(x):
  a: f32 = cbrt(x)
  b: f32 = atan2(a, 0.1f32)
  c: f32 = copysign(b, -0.0f32)
  n: f32 = add(c, 0x7fc00000_f32)
  t: bool = ne(n, n)
  r: f32 = select(t, c, 0.0f32)
  return(r)
}
",
        |jit| {
            assert!(get!(jit, "ne", fn(f64, f64) -> bool)(f64::NAN, f64::NAN));
            assert!(!get!(jit, "ge", fn(f64, f64) -> bool)(f64::NAN, 1.0));
            let fmin = get!(jit, "fmin", fn(f32, f32) -> f32);
            assert_eq!((fmin(f32::NAN, 2.0), fmin(2.0, f32::NAN)), (2.0, 2.0));
            assert!(fmin(0.0, -0.0).is_sign_negative() && fmin(-0.0, 0.0).is_sign_negative());
            let expected = 1.5f64.sin().mul_add(1.5f64.sqrt(), 2.0).powf(0.3) % 0.25;
            assert_eq!(get!(jit, "math", fn(f64) -> f64)(1.5), expected);
            assert_eq!(get!(jit, "single", fn(f32) -> f32)(2.0), -2f32.cbrt().atan2(0.1));
        },
    );
}

#[test]
fn aggregates_and_memory() {
    run(
        "flat
struct P { a: i8, flag: bool, v: [f64 * 3], n: i32 }
global table: [i32 * 4] = (1i32, 2i32, 4i32, 8i32)
global mut count: i64 = 40i64
global text: [u8 * 3] = \"hi\\x00\"
global ps: [P * 2] = (zero, (1i8, true, (0.5f64, 1.5f64, 2.5f64), 9i32))
global where: (i32, &i32) = (1i32, $table + 8)
export pick(i32) -> (i32) {
entry(i):
  p: &i32 = lea($table, i)
  v: i32 = load(p)
  return(v)
}
export count() -> (i64) {
entry():
  c: i64 = load($count)
  d: i64 = add(c, 1i64)
  store($count, d)
  return(d)
}
export letter(u32) -> (u8) {
entry(i):
  p: &u8 = lea($text, i)
  v: u8 = load(p)
  return(v)
}
export field(i32) -> (f64) {
entry(i):
  p: &P = lea($ps, 1i32)
  s: P = load(p)
  v: [f64 * 3] = extract(s, 2i32)
  x: f64 = extract(v, i)
  flag: bool = extract(s, 1i32)
  not: bool = xor(flag, true)
  t: P = insert(s, 1i32, not)
  b: bool = extract(t, 1i32)
  r: f64 = select(b, 0.0f64, x)
  w: [f64 * 3] = insert(v, i, r)
  y: f64 = extract(w, 2i32)
  z: f64 = add(r, y)
  return(z)
}
export through() -> (i32) {
entry():
  pp: &&i32 = lea($where, 1i32)
  p: &i32 = load(pp)
  v: i32 = load(p)
  return(v)
}
export bools(i32) -> (bool) {
entry(i):
  s: &[bool * 5] = slot()
  all: [bool * 5] = splat(false)
  store(s, all)
  p: &bool = lea(s, i)
  store(p, true)
  q: [bool * 5] = load(s)
  b: bool = extract(q, 3i32)
  return(b)
}
export heap(i64) -> (i64) {
entry(n):
  p: &[i64] = alloc(n)
  jump loop(0i64)
loop(i: i64):
  c: bool = lt(i, n)
  branch c, body(), exit()
body():
  e: &i64 = lea(p, i)
  store(e, i)
  j: i64 = add(i, 1i64)
  jump loop(j)
exit():
  m: i64 = sub(n, 1i64)
  q: &i64 = lea(p, m)
  v: i64 = load(q)
  return(v)
}
",
        |jit| {
            assert_eq!(get!(jit, "pick", fn(i32) -> i32)(3), 8);
            let count = get!(jit, "count", fn() -> i64);
            assert_eq!((count(), count()), (41, 42));
            assert_eq!(get!(jit, "letter", fn(u32) -> u8)(1), b'i');
            assert_eq!(get!(jit, "field", fn(i32) -> f64)(1), 4.0);
            assert_eq!(get!(jit, "through", fn() -> i32)(), 4);
            let bools = get!(jit, "bools", fn(i32) -> bool);
            assert!(bools(3) && !bools(2));
            assert_eq!(get!(jit, "heap", fn(i64) -> i64)(1000), 999);
        },
    );
}

#[test]
fn large_values_live_in_memory() {
    run(
        "flat
func swap([i32 * 100], [i32 * 100]) -> ([i32 * 100], [i32 * 100]) {
entry(a, b):
  c: [i32 * 100] = insert(a, 0i32, 5i32)
  return(b, c)
}
export test(i32) -> (i32) {
entry(i):
  a: [i32 * 100] = splat(7i32)
  b: [i32 * 100] = insert(a, i, 1i32)
  r: ([i32 * 100], [i32 * 100]) = call swap(a, b)
  x: [i32 * 100] = extract(r, 0i32)
  y: [i32 * 100] = extract(r, 1i32)
  jump loop(x, y, 0i32)
loop(p: [i32 * 100], q: [i32 * 100], n: i32):
  c: bool = lt(n, 3i32)
  m: i32 = add(n, 1i32)
  branch c, loop(q, p, m), exit()
exit():
  e: i32 = extract(p, i)
  f: i32 = extract(q, i)
  g: i32 = extract(q, 0i32)
  h: i32 = extract(a, i)
  k: i32 = mul(e, 1000i32)
  l: i32 = mul(f, 100i32)
  m1: i32 = mul(h, 10i32)
  s: i32 = add(k, l)
  t: i32 = add(s, m1)
  u: i32 = add(t, g)
  return(u)
}
",
        |jit| assert_eq!(get!(jit, "test", fn(i32) -> i32)(42), 7000 + 100 + 70 + 7),
    );
}

#[test]
fn calls_give_any_results() {
    run(
        "flat
foreign \"nyala_time_ns\" time() -> (i64)
foreign \"abs\" c_abs(i32) -> (i32)
func two(i32) -> (i32, bool) {
entry(x):
  c: bool = gt(x, 0i32)
  return(x, c)
}
func many(i64) -> (i64, i64, i64, i64, bool) {
entry(x):
  y: i64 = add(x, 1i64)
  return(x, y, x, y, true)
}
func pass(i64) -> (i64, i64, i64, i64, bool) {
entry(x):
  tail_call many(x)
}
func nothing() -> () {
entry():
  return()
}
func unit(()) -> (()) {
entry(u):
  return(u)
}
export test(i32) -> (i32) {
entry(x):
  r: (i32, bool) = call two(x)
  a: i32 = extract(r, 0i32)
  b: bool = extract(r, 1i32)
  c: i32 = cast(b)
  m: (i64, i64, i64, i64, bool) = call pass(5i64)
  d: i64 = extract(m, 3i32)
  g: bool = extract(m, 4i32)
  u: () = call nothing()
  v: () = call unit(u)
  f: code = select(b, @c_abs, @half)
  h: i32 = call_indirect f(-8i32)
  i: i32 = cast(d)
  k: i32 = cast(g)
  t: i64 = call time()
  s1: i32 = add(a, c)
  s2: i32 = add(s1, h)
  s3: i32 = add(s2, i)
  s4: i32 = add(s3, k)
  return(s4)
}
func half(i32) -> (i32) {
entry(x):
  r: i32 = pdiv(x, 2i32)
  return(r)
}
",
        |jit| {
            let test = get!(jit, "test", fn(i32) -> i32);
            assert_eq!(test(1), 1 + 1 + 8 + 6 + 1);
            assert_eq!(test(-1), -1 - 4 + 6 + 1);
        },
    );
}

#[test]
fn tail_calls_take_no_stack() {
    let text = "flat
foreign \"nyala_time_ns\" time() -> (i64)
func is_even(i32) -> (bool) {
entry(n):
  c: bool = eq(n, 0i32)
  branch c, yes(), more()
yes():
  return(true)
more():
  m: i32 = sub(n, 1i32)
  tail_call is_odd(m, 1i64, 2i64, 3i64, 4i64, 5i64, 6i64, 7i64, 8.0f64)
}
func is_odd(i32, i64, i64, i64, i64, i64, i64, i64, f64) -> (bool) {
entry(n, a, b, c, d, e, f, g, h):
  s: &i32 = slot()
  store(s, n)
  z: bool = eq(n, 0i32)
  branch z, no(), more()
no():
  return(false)
more():
  l: i32 = load(s)
  m: i32 = sub(l, 1i32)
  even: code = select(z, @is_even, @is_even)
  tail_call_indirect even(m)
}
export \"is_even\" even(i32) -> (bool) {
entry(n):
  tail_call is_even(n)
}
func local(&i32, i32) -> (i32) {
entry(p, n):
  c: bool = eq(n, 0i32)
  branch c, done(), more()
done():
  v: i32 = load(p)
  return(v)
more():
  s: &i32 = slot()
  v.1: i32 = load(p)
  w: i32 = add(v.1, 1i32)
  store(s, w)
  m: i32 = sub(n, 1i32)
  tail_call local(s, m)
}
export count(i32) -> (i32) {
entry(n):
  s: &i32 = slot()
  store(s, 0i32)
  tail_call local(s, n)
}
";
    let run_it = move || {
        run(text, |jit| {
            assert!(get!(jit, "is_even", fn(i32) -> bool)(10_000_000));
            assert!(!get!(jit, "is_even", fn(i32) -> bool)(9_999_999));
            // The address of a local goes along: the frame stays.
            assert_eq!(get!(jit, "count", fn(i32) -> i32)(1000), 1000);
        })
    };
    // LLVM itself wants some stack; ten million frames would want far more.
    let thread = std::thread::Builder::new().stack_size(4 << 20).spawn(run_it).expect("a thread");
    thread.join().expect("fits the stack");
}

#[test]
fn branches_with_one_target() {
    run(
        "flat
export pick(bool, i32, i32) -> (i32) {
entry(c, a, b):
  branch c, join(a), join(b)
join(r: i32):
  return(r)
}
export never(i32) -> (i32) {
entry(a):
  c: bool = eq(a, 1i32)
  branch c, bad(), good()
bad():
  unreachable
good():
  return(a)
}
",
        |jit| {
            let pick = get!(jit, "pick", fn(bool, i32, i32) -> i32);
            assert_eq!((pick(true, 1, 2), pick(false, 1, 2)), (1, 2));
            assert_eq!(get!(jit, "never", fn(i32) -> i32)(3), 3);
        },
    );
}

#[test]
fn text_is_the_same_each_time_and_limits_are_told() {
    let text = "flat\nexport f(&[i64 * 4611686018427387904]) -> () {\nentry(p):\n  x: [i64 * 4611686018427387904] = load(p)\n  store(p, x)\n  return()\n}\n";
    let module = read(text).expect("reads");
    let error = emit_text(&module, &Options::default()).expect_err("the type is too large");
    assert_eq!(error.code, "limitation");
    let text = "flat\nexport a() -> () {\nentry():\n  return()\n}\nexport \"a\" b() -> () {\nentry():\n  return()\n}\n";
    let error = emit_text(&read(text).expect("reads"), &Options::default()).expect_err("same symbol");
    assert_eq!(error.code, "duplicate-symbol");
}

/// Objects of the text for every architecture.
fn objects(text: &str) {
    let mut module = read(text).unwrap_or_else(|e| panic!("{e}"));
    verify(&module).unwrap_or_else(|e| panic!("{e}"));
    for arch in nyala_gen_llvm::ARCHITECTURES {
        module.set_target(Target::new(Some(&format!("{arch}-unknown-linux-gnu")), None));
        for opt_level in [0, 3] {
            let options = Options { opt_level, ..Options::default() };
            let mut llvm = emit(&module, &options).unwrap_or_else(|e| panic!("{arch}: {}", e.message));
            llvm.optimize().unwrap_or_else(|e| panic!("{arch}: {}", e.message));
            assert!(!llvm.object().unwrap_or_else(|e| panic!("{arch}: {}", e.message)).is_empty());
        }
    }
}

#[test]
fn halves_on_every_machine() {
    objects(
        "flat
struct S { a: f16, b: i32 }
foreign show(f16, f64) -> (f16)
export f(f16, i64, f64) -> (f16) {
entry(x, i, d):
  a: f16 = cast(i)
  b: f16 = cast(d)
  c: f16 = fma(a, b, x)
  s: f16 = sin(c)
  q: f16 = sqrt(s)
  p: f16 = rem(q, 3.5f16)
  k: i64 = cast(p)
  y: f16 = cast(k)
  r: f16 = call show(y, d)
  n: i32 = cast(r)
  z: S = struct(r, n)
  at: &S = slot()
  store(at, z)
  e: &f16 = lea(at, 0i32)
  o: f16 = load(e)
  return(o)
}
",
    );
}

#[test]
fn vectors_lie_in_memory_as_the_graph_has_it() {
    use nyala_ir::{Prim, Types, layout};
    let mut types = Types::new();
    for arch in nyala_gen_llvm::ARCHITECTURES {
        let target = Target::new(Some(&format!("{arch}-unknown-linux-gnu")), None);
        let options = Options { opt_level: 1, ..Options::default() };
        let (mut text, mut expected) = (String::new(), Vec::new());
        for (prim, lane) in [(Prim::Bool, "i8"), (Prim::F16, "half"), (Prim::U32, "i32"), (Prim::F64, "double")] {
            for n in 1..=64 {
                let ty = types.vector(prim, n);
                let of = |end: &str, at: &str| {
                    format!("ptrtoint (ptr getelementptr ({{ i8, <{n} x {lane}>{end} }}, ptr null, {at}) to i64)")
                };
                let (begin, size) = (of("", "i32 0, i32 1"), of(", i8", "i32 0, i32 2"));
                text += &format!("define i64 @b{}() {{ ret i64 {begin} }}\n", expected.len());
                text += &format!("define i64 @s{}() {{ ret i64 {size} }}\n", expected.len());
                let (size, align) = layout::size_align(&types, ty).expect("has a layout");
                expected.push((prim, n, align, align + size));
            }
        }
        let mut module =
            nyala_gen_llvm::LlvmModule::from_text(&text, &target, &options).unwrap_or_else(|e| panic!("{}", e.message));
        module.optimize().unwrap_or_else(|e| panic!("{}", e.message));
        let text = module.ir_text();
        let number = |name: String| {
            let body = text.split_once(&format!("@{name}()")).map_or("", |t| t.1);
            let number = body.split_once("ret i64 ").and_then(|t| t.1.split_whitespace().next());
            number.and_then(|n| n.parse::<u64>().ok())
        };
        for (i, (prim, n, begin, end)) in expected.into_iter().enumerate() {
            let found = (number(format!("b{i}")), number(format!("s{i}")));
            // A byte after a vector shows how much room it takes.
            assert_eq!(found, (Some(begin), Some(end)), "{arch}: simd[{} * {n}]", prim.name());
        }
    }
}

#[test]
fn vectors_on_every_machine() {
    objects(
        "flat
struct S { a: u8, v: simd[f32 * 3], b: simd[bool * 5] }
func add(simd[f64 * 7], simd[f64 * 7], simd[bool * 7]) -> (simd[f64 * 7], simd[f32 * 4]) {
entry(a, b, c):
  s: simd[f64 * 7] = add(a, b)
  r: simd[f64 * 7] = select(c, s, a)
  t: simd[f32 * 7] = cast(r)
  i: simd[i32 * 4] = array(0i32, 9i32, 1i32, 13i32)
  q: simd[f32 * 4] = shuffle(t, t, i)
  return(r, q)
}
export f(&S, &simd[f64 * 7], i32) -> (f32) {
entry(p, x, i):
  s: S = load(p)
  v: simd[f32 * 3] = extract(s, 1i32)
  h: simd[f16 * 3] = cast(v)
  k: simd[i64 * 3] = cast(h)
  m: simd[i64 * 3] = shl(k, k)
  w: simd[f32 * 3] = cast(m)
  y: simd[f64 * 7] = load(x)
  c: simd[bool * 7] = lt(y, y)
  r: (simd[f64 * 7], simd[f32 * 4]) = call add(y, y, c)
  z: simd[f64 * 7] = extract(r, 0i32)
  store(x, z)
  e: simd[f32 * 4] = extract(r, 1i32)
  n: simd[f32 * 3] = sin(w)
  a: f32 = extract(n, i)
  b: f32 = extract(e, i)
  d: f32 = fmax(a, b)
  u: &simd[bool * 5] = lea(p, 2i32)
  g: &bool = lea(u, i)
  store(g, true)
  return(d)
}
",
    );
}

#[test]
fn atomics_on_every_machine() {
    let mut text = String::from("flat\n");
    for (i, ty) in ["i8", "u16", "i32", "u64", "f16", "f32", "f64", "bool"].iter().enumerate() {
        let is_float = ty.starts_with('f');
        let add = match *ty {
            "bool" => "0u32",
            _ if is_float => "11u32",
            _ => "1u32",
        };
        text += &format!(
            "export f{i}(&{ty}, {ty}, {ty}) -> ({ty}) {{
entry(p, x, y):
  a: {ty} = atomic({add}, p, x, 7u32, 0i32)
  b: {ty} = atomic(0u32, p, a, 2u32, 0i32)
  c: {ty} = atomic_load(p, 4u32, 0i32)
  atomic_store(p, b, 5u32, 0i32)
  fence(6u32, 0i32)
  d: ({ty}, bool) = cmpxchg(p, x, y, 7u32, 4u32, 0i32)
  e: ({ty}, bool) = cmpxchg_weak(p, x, c, 2u32, 2u32, 0i32)
  g: {ty} = extract(d, 0i32)
  h: bool = extract(e, 1i32)
  r: {ty} = select(h, g, c)
  return(r)
}}
"
        );
    }
    objects(&text);
}

/// The block of the loop is cut, and the loop's parameters have values from its end.
#[test]
fn blocks_of_huge_functions_are_cut() {
    let n = 17_000;
    let adds: String = (0..n).map(|i| format!("  s{}: u32 = add(s{i}, {}u32)\n", i + 1, i % 7)).collect();
    let text = format!(
        "flat
export sum(u32, u32) -> (u32) {{
entry(x, times):
  jump loop(x, 0u32)
loop(s0: u32, i: u32):
{adds}  j: u32 = add(i, 1u32)
  c: bool = lt(j, times)
  branch c, loop(s{n}, j), exit()
exit():
  return(s{n})
}}
"
    );
    let once: u32 = (0..n).map(|i| i % 7).sum();
    let module = read(&text).unwrap_or_else(|e| panic!("{e}"));
    let llvm = emit_text(&module, &Options::default()).unwrap_or_else(|e| panic!("{}", e.message));
    assert!(llvm.contains("b1.part17:") && !llvm.contains("b1.part18:"), "parts of 1000");
    // LLVM recurses on chains of operations.
    let runs = std::thread::Builder::new().stack_size(1 << 28).spawn(move || {
        run(&text, |jit| {
            let sum = get!(jit, "sum", fn(u32, u32) -> u32);
            assert_eq!(sum(5, 3), 5 + 3 * once);
        });
    });
    runs.expect("a thread").join().expect("no panic");
}
