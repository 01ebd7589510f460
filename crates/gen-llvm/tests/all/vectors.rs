//! Operations of vectorized code through the JIT: every number of lanes that is special, every type of lanes, on machines
//! with registers of 128 bits and 256 bits.

use nyala_flat::{read, verify};
use nyala_gen_llvm::{Jit, LlvmModule, Options, emit, emit_text};
use nyala_ir::layout::prim_size;
use nyala_ir::scalar::float_bits;
use nyala_ir::{Prim, Target};

const LANES: [u32; 7] = [1, 2, 3, 4, 8, 16, 64];
const PRIMS: [Prim; 10] =
    [Prim::Bool, Prim::I8, Prim::U8, Prim::U16, Prim::I32, Prim::U32, Prim::I64, Prim::F32, Prim::F16, Prim::F64];

/// Whether all tests run.
fn runs_all() -> bool {
    std::env::args().any(|a| a == "--include-ignored" || a == "--ignored")
}

/// The processors that code is made for: the same on most machines, and this one, too, if all tests run.
fn cpus() -> Vec<Option<&'static str>> {
    let all = runs_all();
    match cfg!(target_arch = "x86_64") {
        true if std::arch::is_x86_feature_detected!("avx2") => {
            [Some("x86-64"), Some("x86-64-v3")].into_iter().chain(all.then_some(None)).collect()
        }
        _ => vec![None],
    }
}

/// Compiles the text for several machines and levels, and calls `f` with its linker.
fn run(text: &str, f: impl Fn(&Jit)) {
    let mut module = read(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    verify(&module).unwrap_or_else(|e| panic!("{e}\n{text}"));
    assert_eq!(read(&module.to_string()).expect("reads back").to_string(), module.to_string());
    for cpu in cpus() {
        module.set_target(Target::new(None, cpu));
        for opt_level in [0, 3] {
            let options = Options { opt_level, ..Options::default() };
            let mut llvm = emit(&module, &options)
                .unwrap_or_else(|e| panic!("{}\n{}", e.message, emit_text(&module, &options).unwrap_or_default()));
            llvm.optimize().unwrap_or_else(|e| panic!("{}", e.message));
            let jit = Jit::new(&[]).expect("a JIT");
            jit.add(&llvm).unwrap_or_else(|e| panic!("{}", e.message));
            f(&jit);
        }
    }
}

fn address(jit: &Jit, name: &str) -> usize {
    jit.lookup(name).unwrap_or_else(|e| panic!("{}", e.message))
}

macro_rules! call {
    ($jit:expr, $name:expr, fn($($arg:ty),*) -> $ret:ty, $($value:expr),*) => {{
        // SAFETY: the tests state the types of the text.
        let f = unsafe { std::mem::transmute::<usize, extern "C" fn($($arg),*) -> $ret>(address($jit, $name)) };
        f($($value),*)
    }};
}

/// A small number as bytes of a type.
fn encode(prim: Prim, n: u64) -> Vec<u8> {
    let bits = match prim {
        Prim::Bool => n % 3 % 2,
        _ if prim.is_float() => float_bits(prim, n as f64),
        _ => prim.normalize(n),
    };
    bits.to_le_bytes()[..prim_size(prim) as usize].to_vec()
}

/// An array of them.
fn array(prim: Prim, numbers: impl IntoIterator<Item = u64>) -> Vec<u8> {
    numbers.into_iter().flat_map(|n| encode(prim, n)).collect()
}

/// Masks for some lanes: all, none, alternating, an arbitrary one.
fn masks(lanes: u32) -> [u64; 5] {
    let all = u64::MAX >> (64 - lanes);
    [all, 0, 0x5555_5555_5555_5555 & all, 0x9e37_79b9_7f4a_7c15 & all, 1 << (lanes - 1)]
}

/// Instances of a text for each number of lanes, with `L`, `T` and so on replaced.
fn for_each_lanes(prim: Prim, text: &str) -> String {
    let instance = |lanes: u32| {
        let (vector, mask) = (format!("simd[{} * {lanes}]", prim.name()), format!("simd[bool * {lanes}]"));
        text.replace("VECTOR", &vector)
            .replace("MASK", &mask)
            .replace("ELEM", prim.name())
            .replace("LANES", &lanes.to_string())
    };
    std::iter::once("flat\n".to_string()).chain(LANES.map(instance)).collect()
}

#[test]
fn lanes_go_to_and_from_memory() {
    let text = "
export all_LANES(&[ELEM], &[ELEM]) -> () {
entry(from, to):
  v: VECTOR = vload(from)
  vstore(to, v)
  return()
}
export some_LANES(&ELEM, &[ELEM * 64], u64) -> (u64) {
entry(from, to, bits):
  m: MASK = expand_bits(bits)
  v: VECTOR = vload(from, m)
  vstore(to, v, m)
  b: u64 = mask_bits(m)
  return(b)
}
export packed_LANES(&[ELEM], &[ELEM], u64) -> () {
entry(from, to, bits):
  v: VECTOR = vload(from)
  m: MASK = expand_bits(bits)
  p: VECTOR = compress(v, m)
  vstore(to, p)
  return()
}
";
    for prim in PRIMS {
        let size = prim_size(prim) as usize;
        // One element past an address of more alignment than the lanes'.
        let from = array(prim, (0..66).map(|i| i + 5));
        let untouched = array(prim, [1; 66]);
        run(&for_each_lanes(prim, text), |jit| {
            for lanes in LANES {
                let n = lanes as usize;
                let mut to = untouched.clone();
                let mut put = untouched.clone();
                put[size..(n + 1) * size].copy_from_slice(&from[size..(n + 1) * size]);
                let (source, target) = (from[size..].as_ptr(), to[size..].as_mut_ptr());
                call!(jit, &format!("all_{lanes}"), fn(*const u8, *mut u8) -> (), source, target);
                assert_eq!(to, put, "{lanes} {}", prim.name());
                for mask in masks(lanes) {
                    let mut to = untouched.clone();
                    let target = to[size..].as_mut_ptr();
                    let name = format!("some_{lanes}");
                    let bits =
                        call!(jit, &name, fn(*const u8, *mut u8, u64) -> u64, source, target, mask | !masks(lanes)[0]);
                    assert_eq!(bits, mask);
                    let active = |k: usize| mask >> k & 1 == 1;
                    for k in 0..n {
                        let at = (k + 1) * size..(k + 2) * size;
                        let wanted = if active(k) { &from[at.clone()] } else { &untouched[at.clone()] };
                        assert_eq!(&to[at], wanted, "{lanes} {} {mask:x}", prim.name());
                    }
                    let name = format!("packed_{lanes}");
                    call!(jit, &name, fn(*const u8, *mut u8, u64) -> (), source, to.as_mut_ptr(), mask);
                    for (place, k) in (0..n).filter(|&k| active(k)).enumerate() {
                        let lane = &from[(k + 1) * size..(k + 2) * size];
                        assert_eq!(&to[place * size..][..size], lane, "{lanes} {} {mask:x}", prim.name());
                    }
                }
            }
        });
    }
}

/// Lanes that are masked off touch nothing, not even memory that is not there.
#[test]
fn inactive_lanes_access_nothing() {
    let text = "
export f_LANES(&[ELEM]) -> (u64) {
entry(p):
  none: MASK = expand_bits(0u64)
  v: VECTOR = vload(p, none)
  vstore(p, v, none)
  i: simd[i64 * LANES] = splat(123456789i64)
  g: VECTOR = gather(p, i, 4i64, none)
  scatter(p, i, 4i64, g, none)
  b: u64 = mask_bits(none)
  return(b)
}
";
    for prim in PRIMS {
        run(&for_each_lanes(prim, text), |jit| {
            for lanes in LANES {
                assert_eq!(call!(jit, &format!("f_{lanes}"), fn(usize) -> u64, 64), 0);
            }
        });
    }
}

#[test]
fn gathers_and_scatters_by_index() {
    let text = "
export gather_INDEX_SCALE_LANES(&[ELEM], &[INDEX], &[ELEM], u64) -> () {
entry(base, index, to, bits):
  m: MASK = expand_bits(bits)
  i: simd[INDEX * LANES] = vload(index)
  v: VECTOR = gather(base, i, SCALEi64, m)
  vstore(to, v, m)
  return()
}
export scatter_INDEX_SCALE_LANES(&[ELEM], &[INDEX], &[ELEM], u64) -> () {
entry(from, index, base, bits):
  m: MASK = expand_bits(bits)
  i: simd[INDEX * LANES] = vload(index)
  v: VECTOR = vload(from)
  all: bool = eq(bits, 18446744073709551615u64)
  branch all, every(), some()
every():
  scatter(base, i, SCALEi64, v)
  return()
some():
  scatter(base, i, SCALEi64, v, m)
  return()
}
";
    for (i, prim) in PRIMS.into_iter().enumerate() {
        let size = prim_size(prim) as usize;
        // Types of one size share the kinds of indices, unless all tests run.
        let kinds = [("i32", 1), ("i64", 3), ("u64", 2), ("i32", 20)].into_iter().enumerate();
        for (_, (kind, step)) in kinds.filter(|(k, _)| runs_all() || (i + k) % 2 == 0) {
            let scale = step * size;
            let text = text.replace("INDEX", kind).replace("SCALE", &scale.to_string());
            let table = array(prim, (0..64 * step as u64).map(|i| i % 100));
            let middle = 20 * scale;
            // Some to the left of the base, and some twice.
            let places: Vec<i64> = (0..64).map(|k| (k * 7 + 3) % 40 - 20).collect();
            let bytes = |p: &i64| p.to_le_bytes()[..if kind == "i32" { 4 } else { 8 }].to_vec();
            let index: Vec<u8> = places.iter().flat_map(bytes).collect();
            let at = |k: usize| (middle as i64 + places[k] * scale as i64) as usize;
            run(&for_each_lanes(prim, &text), |jit| {
                for lanes in LANES {
                    for mask in masks(lanes).into_iter().chain([u64::MAX]) {
                        let active = |k: usize| k < lanes as usize && mask >> k & 1 == 1;
                        let mut to = array(prim, [1; 64]);
                        let name = format!("gather_{kind}_{scale}_{lanes}");
                        let (base, target) = (table[middle..].as_ptr(), to.as_mut_ptr());
                        call!(
                            jit,
                            &name,
                            fn(*const u8, *const u8, *mut u8, u64) -> (),
                            base,
                            index.as_ptr(),
                            target,
                            mask
                        );
                        for k in 0..64 {
                            let wanted = if active(k) { table[at(k)..][..size].to_vec() } else { encode(prim, 1) };
                            assert_eq!(to[k * size..][..size], wanted, "{name} {}", prim.name());
                        }
                        let mut to = array(prim, vec![1; 64 * step]);
                        let mut wanted = to.clone();
                        let name = format!("scatter_{kind}_{scale}_{lanes}");
                        let (from, base) = (table.as_ptr(), to[middle..].as_mut_ptr());
                        call!(
                            jit,
                            &name,
                            fn(*const u8, *const u8, *mut u8, u64) -> (),
                            from,
                            index.as_ptr(),
                            base,
                            mask
                        );
                        for k in (0..64).filter(|&k| active(k)) {
                            wanted[at(k)..][..size].copy_from_slice(&table[k * size..][..size]);
                        }
                        assert_eq!(to, wanted, "{name} {}", prim.name());
                    }
                }
            });
        }
    }
}

/// Small arrays, whose elements are permuted where the machine can. Without active lanes nothing is read.
#[test]
fn gathers_from_small_arrays() {
    let text = "
export gather_SIZE_INDEX_LANES(&[ELEM * SIZE], &[INDEX], &[ELEM], u64) -> () {
entry(table, index, to, bits):
  m: MASK = expand_bits(bits)
  i: simd[INDEX * LANES] = vload(index)
  base: &ELEM = lea(table, 0i64)
  all: bool = eq(bits, 18446744073709551615u64)
  branch all, every(), some()
every():
  v: VECTOR = gather(base, i, BYTESi64)
  vstore(to, v)
  return()
some():
  w: VECTOR = gather(base, i, BYTESi64, m)
  vstore(to, w, m)
  return()
}
";
    for prim in [Prim::Bool, Prim::I8, Prim::U16, Prim::U32, Prim::F32] {
        let bytes = prim_size(prim) as usize;
        for (size, kind) in [(2u64, "i32"), (5, "u64"), (8, "i64"), (16, "i32"), (17, "i32"), (32, "u64"), (64, "i32")]
        {
            let text =
                text.replace("INDEX", kind).replace("SIZE", &size.to_string()).replace("BYTES", &bytes.to_string());
            let table = array(prim, (0..size).map(|i| i * 3 % 100));
            let places: Vec<u64> = (0..64).map(|k| (k * 7 + 3) % size).collect();
            let number = |p: &u64| p.to_le_bytes()[..if kind == "i32" { 4 } else { 8 }].to_vec();
            let index: Vec<u8> = places.iter().flat_map(number).collect();
            run(&for_each_lanes(prim, &text), |jit| {
                for lanes in LANES {
                    for mask in masks(lanes).into_iter().chain([u64::MAX]) {
                        let mut to = array(prim, [1; 64]);
                        let name = format!("gather_{size}_{kind}_{lanes}");
                        let from = if mask == 0 { std::ptr::null() } else { table.as_ptr() };
                        call!(
                            jit,
                            &name,
                            fn(*const u8, *const u8, *mut u8, u64) -> (),
                            from,
                            index.as_ptr(),
                            to.as_mut_ptr(),
                            mask
                        );
                        for k in 0..64 {
                            let is_active = k < lanes as usize && mask >> k & 1 == 1;
                            let from = &table[places[k] as usize * bytes..][..bytes];
                            let wanted = if is_active { from.to_vec() } else { encode(prim, 1) };
                            assert_eq!(to[k * bytes..][..bytes], wanted, "{name} {} {mask:x}", prim.name());
                        }
                    }
                }
            });
        }
    }
}

/// A literal base: the index holds the addresses.
#[test]
fn gathers_from_addresses() {
    let text = "
export sum_LANES(&[u64]) -> (u64) {
entry(addresses):
  i: simd[u64 * LANES] = vload(addresses)
  v: simd[u64 * LANES] = gather(ptr[&u64] 0, i, 1i64)
  two: simd[u64 * LANES] = splat(2u64)
  w: simd[u64 * LANES] = mul(v, two)
  scatter(ptr[&u64] 0, i, 1i64, w)
  a: &u64 = slot()
  store(a, 5u64)
  b: u64 = bitcast(a)
  j: simd[u64 * LANES] = splat(b)
  x: simd[u64 * LANES] = gather(ptr[&u64] 0, j, 1i64)
  r: u64 = extract(x, 0i32)
  return(r)
}
";
    run(&for_each_lanes(Prim::U64, text), |jit| {
        for lanes in LANES {
            let mut numbers: Vec<u64> = (0..64).map(|i| i + 1).collect();
            let first = numbers.as_mut_ptr();
            let addresses: Vec<u64> = (0..64).map(|k| first.wrapping_add((k * 5) % 64) as u64).collect();
            let five = call!(jit, &format!("sum_{lanes}"), fn(*const u64) -> u64, addresses.as_ptr());
            assert_eq!(five, 5);
            let doubled = |i: usize| (0..lanes as usize).any(|k| (k * 5) % 64 == i);
            let wanted: Vec<u64> = (0..64).map(|i| (i as u64 + 1) * if doubled(i) { 2 } else { 1 }).collect();
            assert_eq!(numbers, wanted);
        }
    });
}

/// Vectors of any width are parameters, results, parts of tuples, structs and arrays, and go around loops.
#[test]
fn vectors_are_values_like_others() {
    let text = "
struct S_LANES { flag: bool, m: MASK, v: VECTOR }
func twist_LANES(MASK, (VECTOR, MASK), S_LANES, [VECTOR * 3], i32) -> (VECTOR, MASK) {
entry(m, pair, s, a, i):
  v: VECTOR = extract(pair, 0i32)
  n: MASK = extract(pair, 1i32)
  w: VECTOR = extract(s, 2i32)
  o: MASK = extract(s, 1i32)
  mn: MASK = xor(m, n)
  mno: MASK = xor(mn, o)
  u: VECTOR = extract(a, i)
  x: VECTOR = select(m, v, u)
  y: VECTOR = select(n, x, w)
  return(y, mno)
}
func same_LANES(VECTOR) -> (VECTOR) {
entry(v):
  return(v)
}
func same_mask_LANES(MASK) -> (MASK) {
entry(v):
  return(v)
}
func pass_on_LANES(MASK, (VECTOR, MASK), S_LANES, [VECTOR * 3], i32) -> (VECTOR, MASK) {
entry(m, pair, s, a, i):
  tail_call twist_LANES(m, pair, s, a, i)
}
export go_LANES(&[ELEM], &[ELEM], u64, u64, u64) -> (u64) {
entry(from, to, b1, b2, b3):
  m1: MASK = expand_bits(b1)
  m2.: MASK = expand_bits(b2)
  m2: MASK = call same_mask_LANES(m2.)
  m3: MASK = expand_bits(b3)
  v1: VECTOR = vload(from)
  i: simd[i32 * LANES] = splat(1i32)
  v2.: VECTOR = gather(from, i, SIZEi64)
  v2: VECTOR = call same_LANES(v2.)
  memory: &S_LANES = slot()
  s: S_LANES = struct(true, m3, v2)
  store(memory, s)
  jump loop(v1, m1, 0i32)
loop(v: VECTOR, m: MASK, n: i32):
  pair: (VECTOR, MASK) = tuple(v, m2)
  a: [VECTOR * 3] = array(v2, v1, v)
  s2: S_LANES = load(memory)
  r: (VECTOR, MASK) = call pass_on_LANES(m, pair, s2, a, n)
  v3: VECTOR = extract(r, 0i32)
  m4: MASK = extract(r, 1i32)
  n1: i32 = add(n, 1i32)
  more: bool = lt(n1, 3i32)
  branch more, loop(v3, m4, n1), exit()
exit():
  vstore(to, v3)
  bits: u64 = mask_bits(m4)
  return(bits)
}
";
    for prim in PRIMS {
        let size = prim_size(prim) as usize;
        let from = array(prim, (0..64).map(|i| i * 3 % 101));
        let lane = |k: usize| from[k * size..(k + 1) * size].to_vec();
        run(&for_each_lanes(prim, &text.replace("SIZE", &size.to_string())), |jit| {
            for lanes in LANES {
                let all = masks(lanes)[0];
                let (b1, b2, b3) =
                    (0xdead_beef_1234_5678 & all, 0x0f1e_2d3c_4b5a_6978 & all, 0x9e37_79b9_7f4a_7c15 & all);
                let mut to = vec![0; 64 * size];
                let name = format!("go_{lanes}");
                let (source, target) = (from.as_ptr(), to.as_mut_ptr());
                let bits = call!(jit, &name, fn(*const u8, *mut u8, u64, u64, u64) -> u64, source, target, b1, b2, b3);
                let mut m = b1;
                let mut v: Vec<Vec<u8>> = (0..lanes as usize).map(lane).collect();
                for round in 0..3 {
                    for (k, value) in v.iter_mut().enumerate() {
                        let is = |mask: u64| mask >> k & 1 == 1;
                        let old = value.clone();
                        let chosen = [lane(1), lane(k), old.clone()][round].clone();
                        let x = if is(m) { old } else { chosen };
                        *value = if is(b2) { x } else { lane(1) };
                    }
                    m ^= b2 ^ b3;
                }
                assert_eq!(bits, m & all, "{name} {}", prim.name());
                assert_eq!(to[..lanes as usize * size], v.concat(), "{name} {}", prim.name());
            }
        });
    }
}

/// Arithmetic, comparison, conversion and access to lanes, at every width.
#[test]
fn operations_work_at_every_width() {
    let text = "
export go_LANES(&[ELEM], &[ELEM], &[f64], i32, &ELEM) -> (u64) {
entry(from, to, wide, i, px):
  x: ELEM = load(px)
  v: VECTOR = vload(from)
  s: VECTOR = splat(x)
  less: MASK = lt(v, s)
  sum: VECTOR = add(v, s)
  c: VECTOR = select(less, sum, v)
  e: ELEM = extract(c, i)
  e2: ELEM = add(e, x)
  r: VECTOR = insert(c, i, e2)
  vstore(to, r)
  f: simd[f64 * LANES] = cast(r)
  vstore(wide, f)
  t: simd[bool * LANES] = cast(v)
  b: simd[i32 * LANES] = cast(t)
  b1: i32 = extract(b, i)
  bits: u64 = mask_bits(less)
  last: u64 = cast(b1)
  high: u64 = shl(last, 63u64)
  both: u64 = xor(bits, high)
  return(both)
}
";
    for prim in PRIMS.into_iter().filter(|&p| p != Prim::Bool) {
        let numbers: Vec<u64> = (0..64).map(|i| i * 7 % 31).collect();
        let from = array(prim, numbers.clone());
        let size = prim_size(prim) as usize;
        run(&for_each_lanes(prim, text), |jit| {
            let x = encode(prim, 9);
            for lanes in LANES {
                let n = lanes as usize;
                let i = n / 2;
                let (mut to, mut wide) = (vec![0; 64 * size], vec![0f64; 64]);
                let name = format!("go_{lanes}");
                let bits = call!(
                    jit,
                    &name,
                    fn(*const u8, *mut u8, *mut f64, i32, *const u8) -> u64,
                    from.as_ptr(),
                    to.as_mut_ptr(),
                    wide.as_mut_ptr(),
                    i as i32,
                    x.as_ptr()
                );
                let mut wanted: Vec<u64> = numbers[..n].iter().map(|&v| if v < 9 { v + 9 } else { v }).collect();
                wanted[i] += 9;
                assert_eq!(to[..n * size], array(prim, wanted.clone()), "{name} {}", prim.name());
                assert_eq!(wide[..n], wanted.iter().map(|&n| n as f64).collect::<Vec<_>>());
                let less: u64 = (0..n).map(|k| u64::from(numbers[k] < 9) << k).sum();
                assert_eq!(bits, less ^ u64::from(numbers[i] != 0) << 63);
            }
        });
    }
}

/// Arguments of random types, more than there are registers, through a call and a call in tail position.
#[test]
fn vectors_survive_on_registers_and_stack() {
    let mut state = 7u64;
    let mut random = |n: usize| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as usize % n
    };
    for _ in 0..12 {
        let mut text = String::from("flat\n");
        let mut sizes = Vec::new();
        for f in 0..8 {
            // The type of each argument, and its offset in memory.
            let (mut tys, mut ats, mut size) = (Vec::new(), Vec::new(), 0);
            for _ in 0..1 + random(10) {
                let (prim, lanes) = (PRIMS[random(PRIMS.len())], [1, 2, 3, 4, 5, 8, 16, 17, 32, 64][random(10)]);
                let vector = format!("simd[{} * {lanes}]", prim.name());
                let (ty, bytes) = match random(5) {
                    0 => (prim.name().to_string(), prim_size(prim)),
                    _ => (vector, prim_size(prim) * lanes),
                };
                ats.push(size);
                size += bytes;
                tys.push((prim, ty));
            }
            sizes.push(size as usize);
            let own: Vec<String> = tys.iter().map(|t| t.1.clone()).collect();
            let params = own.join(", ");
            let names: Vec<String> = (0..tys.len()).map(|i| format!("x{i}")).collect();
            let names = names.join(", ");
            let at = |i: usize, base: &str| {
                let prim = tys[i].0.name();
                format!("  {base}l{i}: &u8 = lea({base}, {}i64)\n  {base}{i}: &{prim} = bitcast({base}l{i})\n", ats[i])
            };
            text.push_str(&format!("func last_{f}(&[u8], {params}) -> () {{\nentry(to, {names}):\n"));
            for (i, ty) in own.iter().enumerate() {
                let store = if ty.starts_with("simd") { "vstore" } else { "store" };
                text.push_str(&format!("{}  {store}(to{i}, x{i})\n", at(i, "to")));
            }
            text.push_str(&format!(
                "  return()\n}}\nfunc jump_{f}(&[u8], {params}) -> () {{\nentry(to, {names}):\n  \
                 tail_call last_{f}(to, {names})\n}}\n\
                 export go_{f}(&[u8], &[u8], &[u8]) -> () {{\nentry(from, to, too):\n"
            ));
            for (i, ty) in own.iter().enumerate() {
                let load = if ty.starts_with("simd") { "vload" } else { "load" };
                text.push_str(&format!("{}  x{i}: {ty} = {load}(from{i})\n", at(i, "from")));
            }
            text.push_str(&format!(
                "  r: () = call last_{f}(to, {names})\n  s: () = call jump_{f}(too, {names})\n  return()\n}}\n"
            ));
        }
        // Ones and zeros are bools, and bytes of other things.
        let from: Vec<u8> = (0..8192).map(|_| random(2) as u8).collect();
        run(&text, |jit| {
            for (f, &size) in sizes.iter().enumerate() {
                let (mut to, mut too) = (vec![0; size], vec![0; size]);
                let (a, b) = (to.as_mut_ptr(), too.as_mut_ptr());
                call!(jit, &format!("go_{f}"), fn(*const u8, *mut u8, *mut u8) -> (), from.as_ptr(), a, b);
                assert!(to == from[..size] && too == from[..size], "{f} of:\n{text}");
            }
        });
    }
}

/// Steps from 0 to 100, each lane with a step of its own. All three ways of combining masks go around the loop, one of them from a mask
/// that is not defined at first.
const ROUNDS: &str = "
export rounds_LANES(&[ELEM], &[COUNT]) -> () {
entry(from, to):
  s: VECTOR = vload(from)
  zero: VECTOR = splat(ZERO)
  t: MASK = splat(true)
  f: MASK = splat(false)
  none: simd[COUNT * LANES] = splat(0COUNT)
  jump loop(zero, none, t, f, undef[MASK])
loop(x: VECTOR, n: simd[COUNT * LANES], m: MASK, d: MASK, u: MASK):
  limit: VECTOR = splat(LIMIT)
  y: VECTOR = add(x, s)
  high: MASK = ge(y, limit)
  ends: MASK = select(m, high, f)
  d.1: MASK = select(ends, t, d)
  u.1: MASK = select(m, high, u)
  go: MASK = xor(high, t)
  m.1: MASK = select(m, go, f)
  one: simd[COUNT * LANES] = splat(1COUNT)
  more: simd[COUNT * LANES] = add(n, one)
  n.1: simd[COUNT * LANES] = select(m, more, n)
  bits: u64 = mask_bits(m.1)
  again: bool = ne(bits, 0u64)
  branch again, loop(y, n.1, m.1, d.1, u.1), done()
done():
  both: MASK = and(d.1, u.1)
  r: simd[COUNT * LANES] = select(both, n.1, none)
  vstore(to, r)
  return()
}
";

/// The loop for elements of a type.
fn rounds(prim: Prim) -> String {
    let count = if prim_size(prim) == 8 { "i64" } else { "i32" };
    let number = |n: u32| if prim.is_float() { format!("{n}.0{}", prim.name()) } else { format!("{n}{}", prim.name()) };
    let text = ROUNDS.replace("COUNT", count).replace("ZERO", &number(0)).replace("LIMIT", &number(100));
    for_each_lanes(prim, &text)
}

#[test]
fn masks_go_around_loops() {
    for prim in [Prim::I32, Prim::U16, Prim::F32, Prim::I64, Prim::F64] {
        let size = if prim_size(prim) == 8 { 8 } else { 4 };
        run(&rounds(prim), |jit| {
            for n in LANES {
                let steps = (0..u64::from(n)).map(|k| 1 + k * 7 % 60);
                let from = array(prim, steps.clone());
                let mut to = vec![0; n as usize * size];
                call!(jit, &format!("rounds_{n}"), fn(*const u8, *mut u8) -> (), from.as_ptr(), to.as_mut_ptr());
                let wanted: Vec<u8> =
                    steps.flat_map(|step| 100u64.div_ceil(step).to_le_bytes()[..size].to_vec()).collect();
                assert_eq!(to, wanted, "{n} {}", prim.name());
            }
        });
    }
}

/// LLVM stores vectors to the stack only where there are more than registers.
#[test]
fn many_vectors_align_the_stack() {
    let alignment = |ty: &str, n: usize, cpu: &str| {
        let mut text = format!("flat\nexport sums(&{ty}) -> () {{\nentry(p):\n  x0: {ty} = load(p)\n");
        (1..n).for_each(|i| text.push_str(&format!("  x{i}: {ty} = add(x{}, x0)\n", i - 1)));
        text.push_str(&format!("  s: () = store(p, x{})\n  return()\n}}\n", n - 1));
        let mut module = read(&text).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
        module.set_target(Target::new(Some("x86_64-unknown-linux-gnu"), Some(cpu)));
        let text = emit_text(&module, &Options::default()).unwrap_or_else(|e| panic!("{}", e.message));
        text.split_once("alignstack(").and_then(|(_, rest)| rest.split(')').next()?.parse::<u32>().ok())
    };
    assert_eq!(alignment("simd[i32 * 8]", 64, "x86-64-v3"), Some(32));
    assert_eq!(alignment("simd[i32 * 16]", 64, "x86-64-v4"), Some(64));
    assert_eq!(alignment("simd[i32 * 8]", 63, "x86-64-v3"), None);
    assert_eq!(alignment("simd[i32 * 4]", 64, "x86-64-v3"), None);
    assert_eq!(alignment("simd[i32 * 8]", 64, "x86-64-v2"), None);
}

#[test]
fn masks_are_wide_where_there_are_no_registers_for_them() {
    let fences = |prim: Prim, cpu: &str, opt_level: u8| {
        let mut module = read(&rounds(prim)).expect("a module");
        module.set_target(Target::new(Some("x86_64-unknown-linux-gnu"), Some(cpu)));
        let options = Options { opt_level, ..Options::default() };
        emit_text(&module, &options).unwrap_or_else(|e| panic!("{}", e.message)).contains("@llvm.arithmetic.fence.v16")
    };
    assert!(fences(Prim::F32, "x86-64-v3", 3) && fences(Prim::F32, "x86-64-v2", 3) && fences(Prim::F64, "haswell", 3));
    assert!(!fences(Prim::F32, "x86-64-v4", 3) && !fences(Prim::F32, "x86-64-v3", 0));
}

#[test]
fn registers_of_sve_have_the_length_of_the_cpu() {
    let text = |cpu: &str| {
        let mut module = read(&rounds(Prim::F32)).expect("a module");
        module.set_target(Target::new(Some("aarch64-unknown-linux-gnu"), Some(cpu)));
        emit_text(&module, &Options::default()).unwrap_or_else(|e| panic!("{}", e.message))
    };
    assert!(text("neoverse-v1").contains(" vscale_range(2,2)") && text("a64fx").contains(" vscale_range(4,4)"));
    assert!(!text("neoverse-v2").contains("vscale_range") && !text("generic").contains("vscale_range"));
}

/// Sums of neighbors, `b[i] = a[i] + a[i + 1]`: what a round loads is loaded again in the next, which costs less than shuffles do.
#[test]
fn vectorized_loops_carry_no_loads() {
    let text = "define void @f(ptr noalias %a, ptr noalias %b) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %j, %loop ]
  %j = add nuw nsw i64 %i, 1
  %p = getelementptr float, ptr %a, i64 %i
  %q = getelementptr float, ptr %a, i64 %j
  %x = load float, ptr %p
  %y = load float, ptr %q
  %s = fadd float %x, %y
  %r = getelementptr float, ptr %b, i64 %i
  store float %s, ptr %r
  %done = icmp eq i64 %j, 4096
  br i1 %done, label %end, label %loop
end:
  ret void
}
";
    let target = Target::new(Some("x86_64-unknown-linux-gnu"), Some("x86-64-v3"));
    let mut module =
        LlvmModule::from_text(text, &target, &Options::default()).unwrap_or_else(|e| panic!("{}", e.message));
    module.optimize().unwrap_or_else(|e| panic!("{}", e.message));
    let made = module.ir_text();
    assert!(made.contains("fadd <8 x float>") && !made.contains("shufflevector"), "{made}");
}

/// A loop that is no vector, `while a[i] < a[i + 1]`, carries what it loads: one load a round.
#[test]
fn other_loops_carry_loads() {
    let text = "define i64 @f(ptr noalias readonly %a) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %j, %loop ]
  %j = add nuw nsw i64 %i, 1
  %p = getelementptr float, ptr %a, i64 %i
  %q = getelementptr float, ptr %a, i64 %j
  %x = load float, ptr %p
  %y = load float, ptr %q
  %more = fcmp olt float %x, %y
  br i1 %more, label %loop, label %end
end:
  ret i64 %i
}
";
    let target = Target::new(Some("x86_64-unknown-linux-gnu"), Some("x86-64-v3"));
    let mut module =
        LlvmModule::from_text(text, &target, &Options::default()).unwrap_or_else(|e| panic!("{}", e.message));
    module.optimize().unwrap_or_else(|e| panic!("{}", e.message));
    let made = module.ir_text();
    // One before the loop, one in it.
    assert_eq!(made.matches("= load float").count(), 2, "{made}");
    assert!(made.contains("phi float"), "{made}");
}
