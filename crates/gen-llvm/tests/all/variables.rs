//! Facts about memory in LLVM's IR: the lifetimes of local variables, and that nothing else points to allocated memory.

use nyala_flat::{read, verify};
use nyala_gen_llvm::{Jit, LlvmModule, Options, emit, emit_text};
use nyala_ir::Target;

/// Compiles the text at each level, calls `f` with its linker; the text for LLVM, not optimized and optimized.
fn run(text: &str, f: impl Fn(&Jit)) -> (String, String) {
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
    (emit_text(&module, &Options::default()).unwrap_or_else(|e| panic!("{}", e.message)), optimized)
}

fn call(jit: &Jit, x: i32) -> i32 {
    let address = jit.lookup("test").unwrap_or_else(|e| panic!("{}", e.message));
    // SAFETY: the tests state this type.
    unsafe { std::mem::transmute::<usize, extern "C" fn(i32) -> i32>(address)(x) }
}

/// The lines about variables and accesses to them, by block: `b1: start 3, store, end 3`.
fn life(text: &str) -> Vec<String> {
    let mut blocks: Vec<String> = Vec::new();
    for line in text.lines() {
        let number = || line.split("%v").nth(1).map_or("?", |rest| rest.trim_end_matches(')'));
        let what = match line {
            _ if line.starts_with('b') => {
                blocks.push(line.to_string());
                continue;
            }
            _ if line.contains("call void @llvm.lifetime.start") => format!(" start {}", number()),
            _ if line.contains("call void @llvm.lifetime.end") => format!(" end {}", number()),
            _ if line.contains("load [") || line.contains("load i32") => " load".into(),
            _ if line.starts_with("  store") => " store".into(),
            _ => continue,
        };
        if let Some(block) = blocks.last_mut() {
            block.push_str(&what);
        }
    }
    blocks.sort();
    blocks
}

#[test]
fn variables_of_branches_end_where_the_other_branch_begins_and_after_their_last_access() {
    let (text, _) = run(
        "flat
export test(i32) -> (i32) {
entry(x):
  p: &[i32 * 8] = slot()
  a: &i32 = lea(p, x)
  store(a, 5i32)
  c: bool = lt(x, 3i32)
  branch c, then(), else()
then():
  b: i32 = load(a)
  jump exit(b)
else():
  q: &[i32 * 8] = slot()
  d: &i32 = lea(q, x)
  store(d, 7i32)
  e: i32 = load(d)
  jump exit(e)
exit(r: i32):
  return(r)
}
",
        |jit| assert_eq!((call(jit, 2), call(jit, 3)), (5, 7)),
    );
    let expected = ["b0: start 1 store", "b1: load end 1", "b2: end 1 start 7 store load end 7", "b3:"];
    assert_eq!(life(&text), expected);
}

#[test]
fn variables_of_loops_begin_in_each_round_and_those_around_them_before() {
    let (text, _) = run(
        "flat
export test(i32) -> (i32) {
entry(n):
  p: &[i32 * 8] = slot()
  a: &i32 = lea(p, 1i32)
  store(a, 0i32)
  jump loop(0i32)
loop(i: i32):
  q: &[i32 * 8] = slot()
  k: i32 = and(i, 7i32)
  b: &i32 = lea(q, k)
  store(b, i)
  m: i32 = add(i, 1i32)
  c: bool = lt(m, n)
  branch c, next(), exit()
next():
  s: i32 = load(a)
  t: i32 = add(s, m)
  store(a, t)
  jump loop(m)
exit():
  u: i32 = load(b)
  v: i32 = load(a)
  w: i32 = mul(u, 1000i32)
  r: i32 = add(v, w)
  return(r)
}
",
        |jit| assert_eq!((call(jit, 1), call(jit, 5)), (0, 4010)),
    );
    let expected = ["b0: start 1 store", "b1: start 6 store", "b2: end 6 load store", "b3: load end 6 load end 1"];
    assert_eq!(life(&text), expected);
}

#[test]
fn variables_whose_address_goes_elsewhere_never_end() {
    let (text, _) = run(
        "flat
func set(&i32) -> () {
entry(p):
  store(p, 3i32)
  return()
}
export test(i32) -> (i32) {
entry(x):
  p: &[i32 * 8] = slot()
  q: &&i32 = slot()
  a: &i32 = lea(p, x)
  u: () = call set(a)
  s: &[i32 * 8] = slot()
  b: &i32 = lea(s, x)
  store(q, b)
  c: &i32 = load(q)
  store(c, 4i32)
  d: bool = lt(x, 3i32)
  t: &[i32 * 8] = slot()
  e: &i32 = lea(t, x)
  store(e, 5i32)
  branch d, other(a), other(e)
other(f: &i32):
  v: i32 = load(f)
  w: i32 = load(b)
  y: i32 = mul(w, 10i32)
  z: i32 = add(v, y)
  return(z)
}
",
        |jit| assert_eq!((call(jit, 2), call(jit, 3)), (43, 45)),
    );
    // Only `q` does.
    assert_eq!((text.matches("@llvm.lifetime.start.p0(ptr %").count(), text.matches("ptr %v2)").count()), (1, 2));
}

#[test]
fn variables_of_vector_code_never_end() {
    let text = "flat
export test(&[f32]) -> () {
entry(p):
  s: &simd[f32 * 4] = slot()
  x: simd[f32 * 4] = vload(p)
  store(s, x)
  y: simd[f32 * 4] = load(s)
  vstore(p, y)
  return()
}
";
    let module = read(text).unwrap_or_else(|e| panic!("{e}"));
    let text = emit_text(&module, &Options::default()).unwrap_or_else(|e| panic!("{}", e.message));
    assert_eq!(text.matches("lifetime").count(), 0, "{text}");
}

#[test]
fn allocated_memory_is_nobody_elses_and_not_needed_after_it_is_free() {
    let (_, optimized) = run(
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

/// How long they live is not followed for more than a number of variables that depends on the size of the function.
#[test]
fn a_block_has_many_variables() {
    let mut code = String::new();
    for k in 0..40 {
        code += &format!(
            "  p{k}: &[i32 * 8] = slot()\n  a{k}: &i32 = lea(p{k}, x)\n  store(a{k}, x)\n  v{k}: i32 = load(a{k})\n"
        );
    }
    let text = format!("flat\nexport test(i32) -> (i32) {{\nentry(x):\n{code}  return(v39)\n}}\n");
    run(&text, |jit| assert_eq!(call(jit, 3), 3));
}

/// LLVM probes the pages of a large frame by a loop with `r11`, which may have a value behind the first branch.
#[test]
fn large_frames_are_made_before_any_branch() {
    let text = |bytes: u32| {
        format!(
            "declare void @use(ptr, i64)
             define i64 @f(ptr %p, i64 %n) nounwind \"probe-stack\"=\"inline-asm\" {{
             entry:
               %a = alloca [{bytes} x i8]
               %none = icmp slt i64 %n, 1
               br i1 %none, label %exit, label %work
             work:
               call void @use(ptr %a, i64 %n)
               %x = load i64, ptr %a
               br label %exit
             exit:
               %r = phi i64 [ 0, %entry ], [ %x, %work ]
               ret i64 %r
             }}"
        )
    };
    let target = Target::new(Some("x86_64-unknown-linux-gnu"), Some("x86-64-v3"));
    let is_at_start = |bytes: u32| {
        let mut llvm = LlvmModule::from_text(&text(bytes), &target, &Options::default()).expect("well-formed");
        llvm.optimize().unwrap_or_else(|e| panic!("{}", e.message));
        let asm = llvm.asm_text().unwrap_or_else(|e| panic!("{}", e.message));
        let (frame, test) = (asm.find("subq"), asm.find("testq"));
        frame.expect("a frame") < test.expect("a test")
    };
    assert!(is_at_start(40_000) && is_at_start(20_000));
    assert!(!is_at_start(100), "small ones behind the branch that leaves early");
}
