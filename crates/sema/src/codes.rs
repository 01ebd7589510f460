//! The faults this crate reports, by code: what each means, and a program that has it.

pub struct Code {
    pub code: &'static str,
    pub about: &'static str,
    pub example: &'static str,
}

const fn code(code: &'static str, about: &'static str, example: &'static str) -> Code {
    Code { code, about, example }
}

/// Every code, in alphabetical order; the tests check each example.
pub const CODES: &[Code] = &[
    code(
        "ambiguous-type",
        "nothing says which type a variable, parameter or type argument has",
        "fn f() -> () { let x; }",
    ),
    code(
        "bad-array-length",
        "the length of an array is no integer literal or static",
        "fn f(a: [i32 * 1.5]) -> () { }",
    ),
    code("bad-cast", "`as` converts numbers, bools and pointers only", "fn f() -> i32 { (1, 2) as i32 }"),
    code("bad-operand", "an operator does not take operands of this type", "fn f(a: bool) -> bool { a + a }"),
    code("bad-pattern", "a tuple pattern meets another number of parts", "fn f() -> () { let (a, b) = (1, 2, 3); }"),
    code("duplicate-name", "two things of one scope have the same name", "fn f() -> () { } fn f() -> () { }"),
    code(
        "duplicate-field",
        "a struct value gives a field twice",
        "struct S { a: i32 } fn f() -> S { S { a: 1, a: 2 } }",
    ),
    code("filter-not-bool", "a filter is no `bool`", "fn @(n) f(n: i32) -> i32 { n }"),
    code("immutable", "something that is not `mut` is changed", "fn f() -> () { let x = 1; x = 2; }"),
    code("indefinite-array", "`[T]` stands where a value is needed", "fn f(a: [i32]) -> () { }"),
    code(
        "intrinsic-type",
        "an intrinsic is declared with a type that it cannot have",
        "extern \"thorin\" { fn sync(fn() -> ()) -> (); }",
    ),
    code(
        "leaves-parallel-body",
        "a body that other threads run goes on at a place outside of it",
        "extern \"thorin\" { fn parallel(i32, i32, i32, fn(i32) -> ()) -> (); } fn f() -> () { for i in parallel(0, 0, 9) { break() } }",
    ),
    code("limitation", "the language has this feature, this compiler does not yet", "enum E { A }"),
    code("literal-out-of-range", "a literal does not fit its type", "fn f() -> u8 { 256 }"),
    code("missing-field", "a struct value lacks a field", "struct S { a: i32 } fn f() -> S { S { } }"),
    code("no-such-field", "the struct has no field of this name", "struct S { a: i32 } fn f(s: S) -> i32 { s.b }"),
    code("not-a-function", "what is applied is no function, array or tuple", "fn f(x: i32) -> i32 { x(1) }"),
    code("not-a-place", "what is assigned or changed has no place", "fn f() -> () { 1 = 2; }"),
    code("not-a-type", "a name in a type is no type", "fn g() -> () { } fn f(x: g) -> () { }"),
    code("not-a-value", "a type's name stands where a value is needed", "struct S { } fn f() -> () { let x = S; }"),
    code("not-constant", "the initializer of a static is no constant", "fn g() -> i32 { 1 } static s = g();"),
    code("recursive-type", "a type contains itself without a pointer between", "struct S { s: S }"),
    code(
        "spawn-captures-mut",
        "a thread uses a variable of the function that started it, and may outlive it",
        "extern \"thorin\" { fn spawn(fn() -> ()) -> i32; } fn f() -> i32 { let mut x = 1; spawn(|| x = 2) }",
    ),
    code(
        "tuple-index",
        "parts of tuples are chosen by literals within their number",
        "fn f(t: (i32, i32)) -> i32 { t(2) }",
    ),
    code("type-mismatch", "a value has another type than its place expects", "fn f() -> i32 { true }"),
    code("type-too-deep", "a type nests too deep", ""),
    code("unknown-name", "nothing of this name is in scope", "fn f() -> i32 { x }"),
    code("unreachable-code", "what stands here can never run", "fn f() -> i32 { return(1); 2 }"),
    code(
        "used-before-declared",
        "a function runs before a variable it uses exists",
        "fn f() -> i32 { let y = g(); let x = 1; fn g() -> i32 { x } y }",
    ),
    code("wildcard-value", "`_` binds nothing and has no value", "fn f(_: i32) -> i32 { _ }"),
    code(
        "wrong-number-of-arguments",
        "a call passes more or fewer arguments than the function takes",
        "fn f() -> () { f(1) }",
    ),
];
