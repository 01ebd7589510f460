//! The text form, the verifier's rules, and the passes, from text to text.

#[allow(dead_code, reason = "processor time alone is asked for")]
#[path = "../../../xtask/src/child.rs"]
mod child;

use expect_test::{Expect, expect};
use nyala_flat::{Module, VectorOp, print_functions, promote_slots, read, simplify_branches, verify};

fn parse(text: &str) -> Module {
    let module = read(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    verify(&module).unwrap_or_else(|e| panic!("{e}\n{module}"));
    module
}

/// Runs `pass`, checks that the result holds and reads back, and compares its functions.
fn check(text: &str, pass: fn(&mut Module), expected: Expect) {
    let mut module = parse(text);
    pass(&mut module);
    verify(&module).unwrap_or_else(|e| panic!("{e}\n{module}"));
    let printed = module.to_string();
    assert_eq!(parse(&printed).to_string(), printed, "reads back");
    expected.assert_eq(&print_functions(&module));
}

fn both(module: &mut Module) {
    promote_slots(module);
    verify(module).unwrap_or_else(|e| panic!("{e}\n{module}"));
    simplify_branches(module);
}

#[test]
fn text_reads_back() {
    let text = r#"flat
struct Node { value: f32, next: &Node }
global numbers: [i32 * 3] = (1i32, -2i32, 3i32)
global mut head: Node = (0.5f32, $head + 0)
global text: [u8 * 4] = "a\x0a\x22\x00"
global space(3) mut shared: [f32 * 2] = zero
global space: u8 = 1u8
foreign "nyala_print_f64" print(f64) -> ()
export "main" main() -> (i32) {
entry():
  p: &i32 = lea($numbers, 1i64)
  i: i32 = load(p)
  f: code = select(true, @main, c@print)
  v1: i32 = call_indirect f()
  v2: () = call print(0x7ff8000000000001_f64)
  n: &Node = lea($[&[Node]]head, i)
  o: &[3]f32 = lea($shared, i)
  q: &[3]u8 = bitcast($space)
  w: &f32 = bitcast($[&f32]shared)
  store(n, undef[Node])
  c: bool = eq(ptr[&Node] 0, n)
  branch c, a(1u8), a(255u8)
a(x: u8):
  tail_call main()
}
func many() -> (i32, f32) {
entry():
  r: (i32, f32) = call many()
  s: [f32 * 2] = array(1e30f32, -0.0f32)
  unreachable
}
"#;
    let module = parse(text);
    assert_eq!(module.to_string(), text);
}

#[test]
fn vectorized_code_reads_back() {
    let text = r#"flat
func body(i32, &[f32]) -> () {
entry(i, p):
  return()
}
func f(&[f32], &f32, simd[i32 * 8], u64) -> (u64) {
entry(p, q, i, bits):
  vectorize[8] body(0i32, 100i32, p)
  m: simd[bool * 8] = expand_bits(bits)
  v1: simd[f32 * 8] = vload(p)
  v2: simd[f32 * 8] = vload(q, m)
  vstore(p, v1)
  vstore(q, v2, m)
  v3: simd[f32 * 8] = gather(p, i, 4i64)
  v4: simd[f32 * 8] = gather(p, i, 12i64, m)
  scatter(p, i, 4i64, v3)
  scatter(p, i, 12i64, v4, m)
  c: simd[f32 * 8] = compress(v3, m)
  b: u64 = mask_bits(m)
  return(b)
}
"#;
    let mut module = parse(text);
    assert_eq!(module.to_string(), text);
    // An operation that only reads or computes goes where nobody uses it.
    simplify_branches(&mut module);
    let left = module.to_string();
    assert!(!left.contains("compress") && left.contains("vectorize") && left.matches("scatter").count() == 2, "{left}");
    let ops = nyala_ir::Op::ALL.iter().map(|op| op.name());
    let words: Vec<&str> = ops.chain(VectorOp::ALL.iter().map(|op| op.name())).collect();
    assert!(words.iter().enumerate().all(|(i, word)| !words[..i].contains(word)));
}

#[test]
fn vectorized_code_has_rules() {
    let rule = |line: &str| {
        let text = format!(
            "flat\nfunc body(i32, f32) -> () {{\nentry(i, x):\n  return()\n}}\n\
             func gives(i32) -> (i32) {{\nentry(i):\n  return(i)\n}}\nforeign c(i32) -> ()\n\
             func f(&[f32], &[f32 * 4], simd[f32 * 8], simd[bool * 8], simd[bool * 4], simd[i32 * 8], simd[u32 * 8], u64, i64) -> () {{\n\
             entry(p, a, v, m, m4, i, u, bits, n):\n  {line}\n  return()\n}}\n"
        );
        let module = read(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        match verify(&module) {
            Ok(()) => String::new(),
            Err(faults) => faults.replace("function `f`, block `entry` (b0): ", "").replace('\n', "; "),
        }
    };
    for fine in [
        "r: simd[f32 * 8] = vload(a, m)",
        "r: simd[f32 * 1] = vload(p)",
        "vstore(p, v)",
        "r: simd[i16 * 8] = gather(p, i, 3i64)",
        "scatter(p, i, 1i64, v, m)",
        "r: u64 = mask_bits(m4)",
        "r: simd[bool * 64] = expand_bits(bits)",
        "r: simd[bool * 8] = compress(m, m)",
        "vectorize[64] body(1i32, 2i32, 0.5f32)",
    ] {
        assert_eq!(rule(fine), "", "{fine}");
    }
    let (mask, element) =
        ("a mask has a `bool` for each lane", "the address is one of an element, or of an array of them");
    let address = "takes an address, an i32, i64 or u64 for each lane, and a literal i64 from 1";
    let result = "what writes has no result, and other operations have one";
    let compress = "takes a vector and a mask of as many lanes, and gives such a vector";
    let args = "`vectorize` has two integers of one type and what its body takes after one of that type";
    let body = "the body of `vectorize` has blocks and no results";
    for (line, fault) in [
        ("r: simd[f32 * 8] = vload()", "`vload` has 1 to 2 operands".into()),
        ("r: simd[f32 * 8] = vload(p, m, m)", "`vload` has 1 to 2 operands".into()),
        ("r: simd[f32 * 8] = vload(p, m4)", mask.into()),
        ("r: simd[f32 * 8] = vload(p, i)", mask.into()),
        ("r: simd[f64 * 8] = vload(p)", format!("`vload`: {element}")),
        ("r: simd[f32 * 8] = vload(n)", format!("`vload`: {element}")),
        ("r: f32 = vload(p)", format!("`vload`: {element}")),
        ("vload(p)", format!("{result}; `vload`: {element}")),
        ("vstore(p, v, m4)", mask.into()),
        ("vstore(p, i)", format!("`vstore`: {element}")),
        ("r: simd[f32 * 8] = vstore(p, v)", result.into()),
        ("r: simd[f32 * 4] = gather(p, i, 4i64)", format!("`gather`: {address}")),
        ("r: simd[f32 * 8] = gather(p, u, 4i64)", format!("`gather`: {address}")),
        ("r: simd[f32 * 8] = gather(n, i, 4i64)", format!("`gather`: {address}")),
        ("r: simd[f32 * 8] = gather(p, i, 0i64)", format!("`gather`: {address}")),
        ("r: simd[f32 * 8] = gather(p, i, 4i32)", format!("`gather`: {address}")),
        ("r: simd[f32 * 8] = gather(p, i, n)", format!("`gather`: {address}")),
        ("r: simd[f32 * 8] = gather(p, i, 4i64, m4)", mask.into()),
        ("scatter(p, m, 4i64, v)", format!("`scatter`: {address}")),
        ("scatter(p, i, 4i64, v, m4)", mask.into()),
        ("r: i64 = mask_bits(m)", "`mask_bits`: takes a mask and gives a u64".into()),
        ("r: u64 = fast mask_bits(m)", "only operations on floats are `fast`, only stores `stream`".into()),
        ("r: u64 = mask_bits(i)", "`mask_bits`: takes a mask and gives a u64".into()),
        ("r: simd[i8 * 8] = expand_bits(bits)", "`expand_bits`: takes a u64 and gives a mask".into()),
        ("r: simd[bool * 8] = expand_bits(n)", "`expand_bits`: takes a u64 and gives a mask".into()),
        ("r: simd[f32 * 8] = compress(v, m4)", format!("`compress`: {compress}")),
        ("r: simd[f32 * 4] = compress(v, m4)", format!("`compress`: {compress}")),
        (
            "vectorize[65] body(1i32, 2i32, 0.5f32)",
            "`vectorize` has 1 to 64 lanes, or 0 if nobody knows how many".into(),
        ),
        ("vectorize[8] body(1i32, 2i32)", args.into()),
        ("vectorize[8] body(1i32, 2i64, 0.5f32)", args.into()),
        ("vectorize[8] body(1i64, 2i64, 0.5f32)", args.into()),
        ("vectorize[8] gives(1i32, 2i32)", body.into()),
        ("vectorize[8] c(1i32, 2i32)", body.into()),
        ("r: () = vectorize[8] body(1i32, 2i32, 0.5f32)", "`vectorize` has no result".into()),
    ] {
        assert_eq!(rule(line), fault, "{line}");
    }
}

#[test]
fn slots_escape_into_vectorized_code() {
    check(
        "flat
func body(i32, &i32) -> () {
entry(i, p):
  return()
}
func f(simd[i32 * 4]) -> (i32, i32, i32, i32) {
entry(i):
  a: &i32 = slot()
  store(a, 1i32)
  vectorize[4] body(0i32, 4i32, a)
  b: &[i32 * 4] = slot()
  vstore(b, i)
  c: &[i32 * 4] = slot()
  g: simd[i32 * 4] = gather(c, i, 4i64)
  d: &i32 = slot()
  store(d, 2i32)
  v1: i32 = load(a)
  v2: &i32 = lea(b, 0i64)
  v3: i32 = load(v2)
  v4: i32 = extract(g, 0i64)
  v5: i32 = load(d)
  return(v1, v3, v4, v5)
}
",
        both,
        expect![[r#"
            func body(i32, &i32) -> () {
            entry(i, p):
              return()
            }
            func f(simd[i32 * 4]) -> (i32, i32, i32, i32) {
            entry(i):
              a: &i32 = slot()
              store(a, 1i32)
              vectorize[4] body(0i32, 4i32, a)
              b: &[i32 * 4] = slot()
              vstore(b, i)
              c: &[i32 * 4] = slot()
              g: simd[i32 * 4] = gather(c, i, 4i64)
              v1: i32 = load(a)
              v2: &i32 = lea(b, 0i64)
              v3: i32 = load(v2)
              v4: i32 = extract(g, 0i64)
              return(v1, v3, v4, 2i32)
            }
        "#]],
    );
}

#[test]
fn wrong_text_has_a_line() {
    for (text, line) in [
        ("", 1),
        ("flat\nfunc f() -> () {\nentry():\n  return(x)\n}", 5),
        ("flat\nfunc f() -> () {\nentry():\n  jump b()\n}", 5),
        ("flat\nfunc f() -> () {\nentry():\n  x: i32 = nonsense()\n}", 4),
        ("flat\nglobal g: [[[ = 1i32", 2),
    ] {
        let error = read(text).expect_err(text);
        assert_eq!(error.line, line, "{error}");
    }
    let _ = read(&format!("flat\nglobal g: {}", "&".repeat(100_000))).expect_err("too deep");
}

#[test]
fn rules_are_sentences() {
    let broken = "flat\nfunc f(i32) -> (i32) {\nentry(x):\n  y: i64 = add(x, x)\n  jump b()\nb():\n  jump b(x)\n}\n";
    let faults = verify(&read(broken).expect("reads")).expect_err("is wrong");
    expect![[r#"
        function `f`, block `entry` (b0): `add`: operands and result of arithmetic have one primitive or vector type
        function `f`, block `b` (b1): a jump's arguments have the types of the block's parameters"#]]
    .assert_eq(&faults);
    let order = "flat\nfunc f(i32) -> (i32) {\nentry(x):\n  branch true, a(), b()\na():\n  y: i32 = add(x, x)\n  jump b()\nb():\n  return(y)\n}\n";
    let faults = verify(&read(order).expect("reads")).expect_err("is wrong");
    assert_eq!(faults, "function `f`, block `b` (b2): a definition dominates its uses");
}

#[test]
fn promotes_scalar_across_a_loop() {
    check(
        "flat
func sum(i32) -> (i32) {
entry(n):
  i: &i32 = slot()
  s: &i32 = slot()
  store(i, 0i32)
  store(s, 0i32)
  jump head()
head():
  v1: i32 = load(i)
  c: bool = lt(v1, n)
  branch c, body(), exit()
body():
  v2: i32 = load(s)
  v3: i32 = load(i)
  v4: i32 = add(v2, v3)
  store(s, v4)
  v5: i32 = add(v3, 1i32)
  store(i, v5)
  jump head()
exit():
  r: i32 = load(s)
  return(r)
}
",
        both,
        expect![[r#"
            func sum(i32) -> (i32) {
            entry(n):
              jump head(0i32, 0i32)
            head(i: i32, s: i32):
              c: bool = lt(i, n)
              branch c, body(), exit()
            body():
              v1: i32 = add(s, i)
              v2: i32 = add(i, 1i32)
              jump head(v2, v1)
            exit():
              return(s)
            }
        "#]],
    );
}

#[test]
fn promotes_aggregates_by_part() {
    check(
        "flat
struct P { x: i32, y: (f32, [i32 * 2]) }
func f(P, bool) -> (i32, P) {
entry(p, c):
  s: &P = slot()
  store(s, p)
  branch c, a(), b()
a():
  y: &(f32, [i32 * 2]) = lea(s, 1i32)
  t: &[i32 * 2] = lea(y, 1i32)
  e: &i32 = lea(t, 1i32)
  store(e, 7i32)
  jump b()
b():
  x: &i32 = lea(s, 0i32)
  v: i32 = load(x)
  q: P = load(s)
  return(v, q)
}
",
        both,
        expect![[r#"
            func f(P, bool) -> (i32, P) {
            entry(p, c):
              v: i32 = extract(p, 0i64)
              v1: (f32, [i32 * 2]) = extract(p, 1i64)
              v2: f32 = extract(v1, 0i64)
              v3: [i32 * 2] = extract(v1, 1i64)
              v4: i32 = extract(v3, 0i64)
              v5: i32 = extract(v3, 1i64)
              branch c, b(7i32), b(v5)
            b(s: i32):
              v6: [i32 * 2] = array(v4, s)
              v7: (f32, [i32 * 2]) = tuple(v2, v6)
              q: P = struct(v, v7)
              return(v, q)
            }
        "#]],
    );
}

#[test]
fn keeps_slots_whose_address_escapes_or_is_indexed() {
    check(
        "flat
foreign take(&i32) -> ()
func f(i32) -> (i32) {
entry(i):
  s: &i32 = slot()
  v0: () = call take(s)
  a: &[i32 * 8] = slot()
  e: &i32 = lea(a, i)
  store(e, 1i32)
  b: &i32 = slot()
  store(b, i)
  r: i32 = load(b)
  return(r)
}
",
        both,
        expect![[r#"
            foreign "take" take(&i32) -> ()
            func f(i32) -> (i32) {
            entry(i):
              s: &i32 = slot()
              v1: () = call take(s)
              a: &[i32 * 8] = slot()
              e: &i32 = lea(a, i)
              store(e, 1i32)
              return(i)
            }
        "#]],
    );
}

#[test]
fn large_aggregates_are_one_value() {
    check(
        "flat
func f([i32 * 100]) -> (i32) {
entry(a):
  s: &[i32 * 100] = slot()
  store(s, a)
  e: &i32 = lea(s, 3i32)
  store(e, 1i32)
  g: &i32 = lea(s, 4i32)
  r: i32 = load(g)
  return(r)
}
",
        both,
        expect![[r#"
            func f([i32 * 100]) -> (i32) {
            entry(a):
              v1: [i32 * 100] = insert(a, 3i64, 1i32)
              r: i32 = extract(v1, 4i64)
              return(r)
            }
        "#]],
    );
}

#[test]
fn slots_in_loops_begin_undefined() {
    check(
        "flat
func f(bool) -> (i32) {
entry(c):
  jump loop()
loop():
  s: &i32 = slot()
  branch c, set(), use()
set():
  store(s, 1i32)
  jump use()
use():
  v: i32 = load(s)
  d: bool = eq(v, 1i32)
  branch d, loop(), exit()
exit():
  return(v)
}
",
        both,
        expect![[r#"
            func f(bool) -> (i32) {
            entry(c):
              jump loop()
            loop():
              branch c, use(1i32), use(undef[i32])
            use(s: i32):
              d: bool = eq(s, 1i32)
              branch d, loop(), exit()
            exit():
              return(s)
            }
        "#]],
    );
}

#[test]
fn short_circuits_become_branches() {
    check(
        "flat
func f(bool, bool) -> (i32) {
entry(a, b):
  branch a, rhs(), skip()
rhs():
  jump test(b)
skip():
  jump test(false)
test(c: bool):
  branch c, yes(), no()
yes():
  jump join(1i32)
no():
  jump join(2i32)
join(r: i32):
  return(r)
dead(x: i32):
  jump dead(x)
}
",
        simplify_branches,
        expect![[r#"
            func f(bool, bool) -> (i32) {
            entry(a, b):
              branch a, test(), join(2i32)
            test():
              branch b, join(1i32), join(2i32)
            join(r: i32):
              return(r)
            }
        "#]],
    );
}

#[test]
fn endless_empty_loops_stay() {
    check(
        "flat
func f() -> () {
entry():
  jump a()
a():
  jump b()
b():
  jump a()
}
",
        simplify_branches,
        expect![[r#"
            func f() -> () {
            entry():
              jump a()
            a():
              jump a()
            }
        "#]],
    );
}

/// Straight-line code, nested control flow, many slots: time must grow as the text does. It takes half a second.
#[test]
fn large_functions_take_linear_time() {
    const N: usize = 20_000;
    let mut text = String::from("flat\nfunc f(i32) -> (i32) {\nentry(n):\n");
    for i in 0..N {
        text.push_str(&format!("  s{i}: &i32 = slot()\n  store(s{i}, n)\n"));
    }
    text.push_str("  jump b0()\n");
    for i in 0..N {
        text.push_str(&format!(
            "b{i}():\n  l{i}: i32 = load(s{i})\n  c{i}: bool = lt(l{i}, n)\n  branch c{i}, t{i}(), b{}()\n\
             t{i}():\n  store(s{i}, 5i32)\n  jump b{i}()\n",
            i + 1
        ));
    }
    text.push_str(&format!("b{N}():\n  r: i32 = load(s7)\n  return(r)\n}}\n"));
    let mut module = parse(&text);
    let begin = child::cpu_time(std::process::id());
    both(&mut module);
    let taken = child::cpu_time(std::process::id()) - begin;
    assert!(taken.as_secs() < 10, "{taken:?}");
    assert!(!module.to_string().contains("slot"));
}

#[test]
fn names_that_look_like_numbers_stay_distinct() {
    let text = "flat\nexport \"f\" f(i32, i32) -> (i32) {\nentry(v1, v2):\n  v3: i32 = mul(v1, v2)\n  return(v3)\n}\n";
    let mut module = parse(text);
    let function = &mut module.funcs[0];
    let second = function.blocks[0].params[1];
    function.set_name(second, "v1");
    expect![[r#"
        export "f" f(i32, i32) -> (i32) {
        entry(v1, v1.1):
          v2: i32 = mul(v1, v1.1)
          return(v2)
        }
    "#]]
    .assert_eq(&print_functions(&module));
}
