//! What LLVM is told of memory: that allocated memory is nobody else's.

use nyala_flat::{read, verify};
use nyala_gen_llvm::{Jit, Options, emit};

/// Compiles the text at each level, calls `f` with its linker; the optimized text.
fn run(text: &str, f: impl Fn(&Jit)) -> String {
    let module = read(text).unwrap_or_else(|e| panic!("{e}"));
    verify(&module).unwrap_or_else(|e| panic!("{e}"));
    let mut optimized = String::new();
    for opt_level in [0, 1, 3] {
        let options = Options { opt_level, ..Options::default() };
        let mut llvm = emit(&module, &options).unwrap_or_else(|e| panic!("{}", e.message));
        llvm.optimize().unwrap_or_else(|e| panic!("{}", e.message));
        optimized = llvm.ir_text();
        let jit = Jit::new(&[]).expect("a JIT");
        jit.add(&llvm).unwrap_or_else(|e| panic!("{}", e.message));
        f(&jit);
    }
    optimized
}

fn call(jit: &Jit, x: i32) -> i32 {
    let address = jit.lookup("test").unwrap_or_else(|e| panic!("{}", e.message));
    // SAFETY: the tests state this type.
    unsafe { std::mem::transmute::<usize, extern "C" fn(i32) -> i32>(address)(x) }
}

#[test]
fn allocated_memory_is_nobody_elses_and_not_needed_after_it_is_free() {
    let optimized = run(
        "flat
foreign \"nyala_alloc\" alloc(i64) -> (&[u8])
foreign \"nyala_free\" free(&[u8]) -> ()
foreign \"nyala_print_bytes\" print(&[u8], i64) -> ()
func copy(&[u8], &[u8], i64) -> () {
entry(to, from, n):
  jump loop(0i64)
loop(i: i64):
  a: &u8 = lea(from, i)
  x: u8 = load(a)
  b: &u8 = lea(to, i)
  store(b, x)
  j: i64 = add(i, 1i64)
  c: bool = lt(j, n)
  branch c, loop(j), exit()
exit():
  return()
}
export test(i32) -> (i32) {
entry(x):
  n: i64 = cast(x)
  p: &[u8] = call alloc(n)
  a: &u8 = lea(p, 1i64)
  store(a, 7u8)
  u: () = call print(p, 0i64)
  q: &[u8] = call alloc(n)
  v: () = call copy(q, p, n)
  w: () = call free(p)
  b: &u8 = lea(q, 1i64)
  y: u8 = load(b)
  z: () = call free(q)
  none: &[u8] = bitcast(0i64)
  t: () = call free(none)
  r: i32 = cast(y)
  return(r)
}
",
        |jit| assert_eq!(call(jit, 50), 7),
    );
    // The loop is a copy of memory, without a check whether the two overlap, or nothing.
    assert_eq!(optimized.matches(" phi ").count(), 0, "{optimized}");
}
