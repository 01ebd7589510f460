//! Flat SSA in, C text out: loops, branches, assignments of block parameters, jumps, casts, structs.

use expect_test::{Expect, expect};
use nyala_flat::{read, verify};
use nyala_gen_c::{C, emit};

/// The text of the functions, without what every file begins with.
fn text(source: &str) -> String {
    let module = read(source).unwrap_or_else(|e| panic!("{e}"));
    verify(&module).unwrap_or_else(|e| panic!("{e}"));
    let text = emit(&module, &C, true).unwrap_or_else(|d| panic!("{}", d.message));
    text.strip_prefix(C.prologue).expect("the prologue").trim_start().to_string()
}

/// Compares the text of the functions that come after the declarations.
fn check(source: &str, expected: Expect) {
    let text = text(source);
    let start = text.find(") {").and_then(|at| text[..at].rfind("\n\n")).map_or(0, |at| at + 2);
    expected.assert_eq(&text[start..]);
}

#[test]
fn counted_loops_are_for() {
    check(
        "flat
export dot(&[f32], &[f32], i32) -> (f32) {
entry(a, b, n):
  jump head(0i32, 0.0f32)
head(i: i32, sum: f32):
  more: bool = lt(i, n)
  branch more, body(), done()
body():
  p: &f32 = lea(a, i)
  x: f32 = load(p)
  q: &f32 = lea(b, i)
  y: f32 = load(q)
  xy: f32 = mul(x, y)
  next: f32 = add(sum, xy)
  j: i32 = add(i, 1i32)
  jump head(j, next)
done():
  return(sum)
}
",
        expect![[r#"
            float dot(float *a, float *b, int n) {
                float sum = 0.0f;
                for (int i = 0; i < n; i++) {
                    sum += a[i] * b[i];
                }
                return sum;
            }
        "#]],
    );
}

#[test]
fn a_value_of_one_side_is_not_assigned_on_the_other() {
    check(
        "flat
export pick(&[i32], &[i32], bool, i32) -> () {
entry(a, to, c, d):
  q: &i32 = lea(a, 1i32)
  x: i32 = load(q)
  branch c, out(), on(x)
out():
  t: &i32 = lea(to, 0i32)
  store(t, d)
  return()
on(m: i32):
  more: bool = lt(m, d)
  branch more, big(), end(m)
big():
  jump end(d)
end(r: i32):
  s: &i32 = lea(to, m)
  store(s, r)
  return()
}
",
        expect![[r#"
            void pick(int *a, int *to, bool c, int d) {
                if (c) {
                    to[0] = d;
                    return;
                }
                int m = a[1];
                if (m >= d) {
                    d = m;
                }
                to[m] = d;
            }
        "#]],
    );
}

#[test]
fn steps_that_may_overflow_wrap_around() {
    check(
        "flat
export count(i32) -> (i32) {
entry(n):
  jump head(0i32, 0i32)
head(i: i32, c: i32):
  more: bool = le(i, n)
  branch more, body(), done()
body():
  d: i32 = add(c, i)
  j: i32 = add(i, 3i32)
  jump head(j, d)
done():
  return(c)
}
",
        expect![[r#"
            int count(int n) {
                int c = 0;
                for (int i = 0; i <= n; i = (int)(i + 3u)) {
                    c = (int)((unsigned)c + i);
                }
                return c;
            }
        "#]],
    );
}

#[test]
fn tests_after_the_body_are_do() {
    check(
        "flat
export digits(u32) -> (i32) {
entry(n):
  jump body(n, 0i32)
body(m: u32, c: i32):
  d: i32 = add(c, 1i32)
  k: u32 = div(m, 10u32)
  more: bool = ne(k, 0u32)
  branch more, body(k, d), done()
done():
  return(d)
}
",
        expect![[r#"
            int digits(unsigned n) {
                int c = 0;
                int d;
                for (;;) {
                    d = (int)(c + 1u);
                    unsigned k = n / 10u;
                    if (k == 0u) break;
                    n = k;
                    c = d;
                }
                return d;
            }
        "#]],
    );
}

#[test]
fn branches_end_early() {
    check(
        "flat
export sign(i32) -> (i32) {
entry(x):
  neg: bool = lt(x, 0i32)
  branch neg, less(), other()
less():
  return(-1i32)
other():
  pos: bool = gt(x, 0i32)
  branch pos, join(1i32), join(0i32)
join(s: i32):
  twice: i32 = mul(s, 2i32)
  return(twice)
}
",
        expect![[r#"
            int sign(int x) {
                if (x < 0) return -1;
                int s;
                if (x > 0) {
                    s = 1;
                } else {
                    s = 0;
                }
                return (int)(s * 2u);
            }
        "#]],
    );
}

#[test]
fn inner_loops_are_left_by_break_outer_ones_by_goto() {
    check(
        "flat
export search(&[i32], i32, i32) -> (i32) {
entry(a, n, x):
  jump rows(0i32)
rows(i: i32):
  more: bool = lt(i, n)
  branch more, row(), none()
row():
  jump columns(0i32)
columns(j: i32):
  inside: bool = lt(j, n)
  branch inside, cell(), next()
cell():
  k: i32 = mul(i, n)
  l: i32 = add(k, j)
  p: &i32 = lea(a, l)
  v: i32 = load(p)
  found: bool = eq(v, x)
  branch found, join(l), other()
other():
  past: bool = gt(v, x)
  branch past, next(), on()
on():
  j.1: i32 = add(j, 1i32)
  jump columns(j.1)
next():
  i.1: i32 = add(i, 1i32)
  jump rows(i.1)
none():
  jump join(-1i32)
join(r: i32):
  s: i32 = mul(r, 5i32)
  return(s)
}
",
        expect![[r#"
            int search(int *a, int n, int x) {
                int r;
                for (int i = 0; i < n; i++) {
                    for (int j = 0; j < n; j++) {
                        int l = (int)((unsigned)i * n + j);
                        int v = a[l];
                        if (v == x) {
                            r = l;
                            goto join;
                        }
                        if (v > x) break;
                    }
                }
                r = -1;
            join:;
                return (int)(r * 5u);
            }
        "#]],
    );
}

#[test]
fn parameters_of_blocks_are_assigned_at_once() {
    check(
        "flat
export fib(i32) -> (i32) {
entry(n):
  jump head(0i32, 1i32, n)
head(a: i32, b: i32, k: i32):
  more: bool = gt(k, 0i32)
  branch more, body(), done()
body():
  s: i32 = add(a, b)
  l: i32 = sub(k, 1i32)
  jump head(b, s, l)
done():
  return(a)
}
export turn(i32, i32, i32, bool) -> (i32) {
entry(x, y, z, c):
  jump head(x, y, z)
head(a: i32, b: i32, d: i32):
  f: bool = lt(a, b)
  branch f, again(), done()
again():
  branch c, head(b, d, a), head(d, b, a)
done():
  return(d)
}
",
        expect![[r#"
            int fib(int n) {
                int a = 0;
                int b = 1;
                for (; n > 0; n--) {
                    int old_a = a;
                    a = b;
                    b = (int)((unsigned)old_a + b);
                }
                return a;
            }

            int turn(int x, int y, int z, bool c) {
                while (x < y) {
                    if (c) {
                        int old_x = x;
                        x = y;
                        y = z;
                        z = old_x;
                    } else {
                        int old_x2 = x;
                        x = z;
                        z = old_x2;
                    }
                }
                return z;
            }
        "#]],
    );
}

#[test]
fn cycles_with_two_entries_have_goto() {
    check(
        "flat
export tangle(i32, bool) -> (i32) {
entry(n, c):
  branch c, even(n), odd(n)
even(a: i32):
  z: bool = eq(a, 0i32)
  branch z, yes(), odd.1()
odd.1():
  a.1: i32 = sub(a, 1i32)
  jump odd(a.1)
odd(b: i32):
  y: bool = eq(b, 0i32)
  branch y, no(), even.1()
even.1():
  b.1: i32 = sub(b, 1i32)
  jump even(b.1)
yes():
  return(1i32)
no():
  return(0i32)
}
",
        expect![[r#"
            int tangle(int n, bool c) {
                int a;
                int b;
                if (!c) {
                    b = n;
                    goto odd;
                }
                a = n;
            even:;
                if (a == 0) return 1;
                b = (int)(a - 1u);
            odd:;
                if (b == 0) return 0;
                a = (int)(b - 1u);
                goto even;
            }
        "#]],
    );
}

#[test]
fn values_move_past_no_write() {
    check(
        "flat
export swap(&i32, &i32) -> (i32) {
entry(p, q):
  x: i32 = load(p)
  y: i32 = load(q)
  store(p, y)
  store(q, x)
  z: i32 = load(p)
  f: i32 = call next(z)
  w: i32 = load(q)
  s: i32 = sub(f, w)
  return(s)
}
func next(i32) -> (i32) {
entry(n):
  m: i32 = add(n, 1i32)
  return(m)
}
",
        expect![[r#"
            int swap(int *p, int *q) {
                int x = *p;
                *p = *q;
                *q = x;
                int f = next(*p);
                return (int)((unsigned)f - *q);
            }

            static int next(int n) {
                return (int)(n + 1u);
            }
        "#]],
    );
}

#[test]
fn integers_wrap_and_casts_saturate() {
    check(
        "flat
export poly(i32, i32) -> (i32) {
entry(x, y):
  xx: i32 = mul(x, x)
  a: i32 = add(xx, y)
  b: i32 = shl(a, y)
  c: i32 = shr(b, 3i32)
  d: i32 = pdiv(c, y)
  return(d)
}
export narrow(u8, i8, u16) -> (u8) {
entry(a, b, c):
  s: u8 = add(a, 1u8)
  t: i8 = mul(b, b)
  u: u16 = mul(c, c)
  v: u8 = cast(u)
  w: u8 = cast(t)
  x: u8 = and(s, v)
  y: u8 = or(x, w)
  return(y)
}
export convert(f32, u32, bool) -> (i64) {
entry(x, n, b):
  i: i32 = cast(x)
  j: u32 = bitcast(x)
  k: u32 = xor(j, n)
  l: i32 = cast(k)
  m: i32 = add(i, l)
  o: i32 = cast(b)
  p: i32 = add(m, o)
  q: i64 = cast(p)
  return(q)
}
",
        expect![[r#"
            static inline int f32_to_i32(float x) {
                if (x >= 2147483600.0f) return 2147483647;
                if (x >= -2147483600.0f) return (int)x;
                return x != x ? 0 : (-2147483647 - 1);
            }

            static inline unsigned f32_as_u32(float x) {
                unsigned bits;
                memcpy(&bits, &x, sizeof bits);
                return bits;
            }

            static inline void division_fault_i32(void) {
                raise(SIGFPE);
                abort();
            }

            static inline int div_i32(int a, int b) {
                if (b == 0 || (b == -1 && a == (-2147483647 - 1))) division_fault_i32();
                return a / b;
            }

            int poly(int x, int y);
            uint8_t narrow(uint8_t a, int8_t b, uint16_t c);
            int64_t convert(float x, unsigned n, bool b);

            int poly(int x, int y) {
                return div_i32((int)(((unsigned)x * x + y) << (y & 31)) >> 3, y);
            }

            uint8_t narrow(uint8_t a, int8_t b, uint16_t c) {
                return ((uint8_t)(a + 1) & (uint8_t)(uint16_t)((unsigned)c * c)) | (uint8_t)(int8_t)(b * b);
            }

            int64_t convert(float x, unsigned n, bool b) {
                return (int64_t)(int)((unsigned)f32_to_i32(x) + (int)(f32_as_u32(x) ^ n) + b);
            }
        "#]],
    );
}

#[test]
fn structs_have_their_layout_and_names() {
    let text = text(
        "flat
struct Node { value: i32, next: &Node, at: [f32 * 2], for: bool }
export length(&Node) -> (i32) {
entry(list):
  none: &Node = bitcast(0u64)
  jump head(list, 0i32)
head(node: &Node, n: i32):
  more: bool = ne(node, none)
  branch more, body(), done()
body():
  p: &&Node = lea(node, 1i32)
  next: &Node = load(p)
  m: i32 = add(n, 1i32)
  jump head(next, m)
done():
  return(n)
}
export make(i32, f32) -> (Node) {
entry(v, x):
  a: [f32 * 2] = array(x, 1.5f32)
  none: &Node = bitcast(0u64)
  n: Node = struct(v, none, a, true)
  return(n)
}
export second(&Node) -> (f32, ()) {
entry(node):
  p: &[f32 * 2] = lea(node, 2i32)
  q: &f32 = lea(p, 1i32)
  x: f32 = load(q)
  u: () = tuple()
  return(x, u)
}
",
    );
    expect![[r#"
        typedef struct Node Node;
        typedef struct f32_array2 f32_array2;
        typedef struct tuple_f32 tuple_f32;
        struct f32_array2 {
            float at[2];
        };
        struct Node {
            int value;
            Node *next;
            f32_array2 at;
            bool for2;
        };
        struct tuple_f32 {
            float x0;
        };

        int length(Node *list);
        Node make(int v, float x);
        tuple_f32 second(Node *node);

        int length(Node *list) {
            int n = 0;
            while (list != NULL) {
                list = list->next;
                n = (int)(n + 1u);
            }
            return n;
        }

        Node make(int v, float x) {
            return (Node){v, NULL, {{x, 1.5f}}, true};
        }

        tuple_f32 second(Node *node) {
            return (tuple_f32){node->at.at[1]};
        }
    "#]]
    .assert_eq(&text);
}

#[test]
fn memory_read_as_another_type_may_alias() {
    let text = text(
        "flat
export bits(&f32) -> (u32) {
entry(p):
  q: &u32 = bitcast(p)
  n: u32 = load(q)
  return(n)
}
",
    );
    expect![[r#"
        typedef float f32 __attribute__((may_alias));
        typedef unsigned u32 __attribute__((may_alias));

        unsigned bits(f32 *p);

        unsigned bits(f32 *p) {
            return *(u32 *)p;
        }
    "#]]
    .assert_eq(&text);
}

#[test]
fn recursion_by_calls_in_tail_position_is_a_loop() {
    check(
        "flat
export gcd(u32, u32) -> (u32) {
entry(a, b):
  c: bool = eq(b, 0u32)
  branch c, done(), more()
done():
  return(a)
more():
  r: u32 = rem(a, b)
  tail_call gcd(b, r)
}
export even(u32) -> (bool) {
entry(n):
  c: bool = eq(n, 0u32)
  branch c, done(), more()
done():
  return(true)
more():
  m: u32 = sub(n, 1u32)
  tail_call odd(m)
}
func odd(u32) -> (bool) {
entry(n):
  c: bool = eq(n, 0u32)
  branch c, done(), more()
done():
  return(false)
more():
  m: u32 = sub(n, 1u32)
  tail_call even(m)
}
",
        expect![[r#"
            unsigned gcd(unsigned a, unsigned b) {
                while (b != 0u) {
                    unsigned old_a = a;
                    a = b;
                    b = old_a % b;
                }
                return a;
            }

            bool even(unsigned n) {
                return even_odd(0, n, 0);
            }

            static bool even_odd(int which, unsigned n, unsigned n2) {
                for (;;) {
                    if (which == 0) {
                        if (n == 0u) return true;
                        which = 1;
                        n2 = n - 1u;
                    } else {
                        if (n2 == 0u) break;
                        which = 0;
                        n = n2 - 1u;
                    }
                }
                return false;
            }
        "#]],
    );
}

#[test]
fn names_are_no_words_of_c() {
    check(
        "flat
export \"for\" f(i32, i32) -> (i32) {
entry(int, sqrtf):
  while: i32 = sub(int, sqrtf)
  a: i32 = call pow(while, while)
  return(a)
}
func pow(i32, i32) -> (i32) {
entry(x, x.1):
  y: i32 = sub(x, x.1)
  return(y)
}
",
        expect![[r#"
            int for2(int int2, int sqrtf2) {
                int while2 = (int)((unsigned)int2 - sqrtf2);
                return pow2(while2, while2);
            }

            static int pow2(int x, int x2) {
                return (int)((unsigned)x - x2);
            }
        "#]],
    );
}

#[test]
fn deep_expressions_and_branches_are_cut() {
    // A sum of 3000 parts, and 3000 branches in each other.
    let mut source = String::from("flat\nexport f(f32, i32) -> (f32) {\nentry(x, n):\n  v0: f32 = mul(x, x)\n");
    for i in 1..3000 {
        source += &format!("  v{i}: f32 = add(v{}, x)\n", i - 1);
    }
    source += "  jump b0(v2999)\n";
    for i in 0..3000 {
        let (a, b) = (i + 1, if i == 0 { "y0: f32".to_string() } else { String::new() });
        source += &format!("b{i}({b}):\n  c{i}: bool = gt(n, {i}i32)\n  branch c{i}, b{a}(), other()\n");
    }
    source +=
        "b3000():\n  z: f32 = mul(y0, 2.0f32)\n  return(z)\nother():\n  w: f32 = mul(y0, 3.0f32)\n  return(w)\n}\n";
    let text = text(&source);
    assert!(text.lines().all(|l| l.len() < 400), "no line is long");
}

#[test]
fn limitations_name_what_is_missing() {
    let module =
        read("flat\nexport f(f32) -> (f32) {\nentry(x):\n  y: f32 = rcp(x)\n  return(y)\n}\n").expect("flat text");
    let found = emit(&module, &C, true).map_err(|d| (d.code, d.message));
    assert_eq!(found, Err(("limitation", "`rcp`, an instruction of x86-64, cannot be written in C".to_string())));
}

#[test]
fn halves_are_their_bits_where_the_language_has_no_type() {
    let source = "flat

export f(f16, f16) -> (bool) {
entry(a, b):
  v: f16 = mul(a, b)
  w: f16 = sub(v, 0.25f16)
  c: bool = lt(w, 1.5f16)
  return(c)
}";
    let module = read(source).unwrap();
    let text = |dialect| emit(&module, dialect, false).unwrap();
    assert!(text(&nyala_gen_c::C).contains(
        "return (_Float16)((float)(_Float16)((float)a * (float)b) - (float)(_Float16)0.25f) < (_Float16)1.5f;"
    ));
    let opencl = text(&nyala_gen_c::OPENCL);
    assert!(
        opencl.contains(
            "return f16_to_f32(f32_to_f16(f16_to_f32(f32_to_f16(f16_to_f32(a) * f16_to_f32(b))) - 0.25f)) < 1.5f;"
        ),
        "{opencl}"
    );
    let cuda = text(&nyala_gen_c::CUDA);
    assert!(cuda.contains("return f16_to_f32(sub_f16(mul_f16(a, b), 0x3400)) < 1.5f;"), "{cuda}");
}

#[test]
fn votes_of_a_block_count_in_its_memory() {
    let source = "flat

foreign \"nyala_block_any\" any(bool) -> (bool)
kernel [64, 1, 1] \"vote\" vote(&[1][bool], bool) -> () {
entry(p, x):
  a: bool = call any(x)
  store(p, a)
  return()
}";
    let text = emit(&read(source).unwrap_or_else(|e| panic!("{e}")), &nyala_gen_c::OPENCL, false);
    let text = text.unwrap_or_else(|d| panic!("{}", d.message));
    assert!(text.contains("    __local int votes;\n") && text.contains("count_in_block(&votes, x) != 0"), "{text}");
    assert!(text.contains("if (holds) atomic_inc(votes);"), "{text}");
}
