//! `--check`: native code reports what the interpreter reports, with the same code, at the same line, in memory and as an
//! executable; and says nothing of programs that are right.

use crate::common::{Folder, RunToEnd, command, nyala, skip, stderr};
use std::path::Path;
use std::process::Command;

/// A program, the code of its report, and the text of the line that is reported, without blanks at its ends.
const FAULTS: &[(&str, &str, &str)] = &[
    (
        "fn get(a: &[i32], i: i32) -> i32 {\n    a(i)\n}\nfn main(argc: i32, _: &[&[u8]]) -> i32 {\n    let a = alloc[i32](10);\n    for i in range(0, 10) { a(i) = i }\n    get(a, 9 + argc)\n}\n",
        "invalid-access",
        "a(i)",
    ),
    // Far beyond, where other blocks are; before the start.
    (
        "fn main(argc: i32, _: &[&[u8]]) -> i32 {\n    let (a, b) = (alloc[u8](100), alloc[u8](1 << 20));\n    b(7) = 1u8;\n    let far = (&b(7)) as u64 - (a as u64);\n    a(far as i64 * argc as i64) = 2u8;\n    0\n}\n",
        "invalid-access",
        "a(far as i64 * argc as i64) = 2u8;",
    ),
    (
        "fn main(argc: i32, _: &[&[u8]]) -> i32 {\n    let a = alloc[i32](10);\n    a(-argc)\n}\n",
        "invalid-access",
        "a(-argc)",
    ),
    (
        "fn main(argc: i32, _: &[&[u8]]) -> i32 {\n    let a = alloc[i32](10);\n    a(argc) = 4;\n    free(a);\n    a(argc)\n}\n",
        "invalid-access",
        "a(argc)",
    ),
    (
        "struct Node { x: i32, next: &Node }\nfn walk(n: &Node, k: i32) -> i32 {\n    if k == 0 { n.x } else { walk(n.next, k - 1) }\n}\nfn main(argc: i32, _: &[&[u8]]) -> i32 {\n    let last = Node { x: 3, next: 0u64 as &Node };\n    walk(&last, argc)\n}\n",
        "invalid-access",
        "if k == 0 { n.x } else { walk(n.next, k - 1) }",
    ),
    (
        "fn main(argc: i32, _: &[&[u8]]) -> i32 {\n    let mut a = [1, 2, 3];\n    a(argc) = 5;\n    a(argc + 2)\n}\n",
        "invalid-access",
        "a(argc + 2)",
    ),
    (
        "static table = [1, 2, 3];\nfn look(t: &[i32], i: i32) -> i32 {\n    t(i)\n}\nfn main(argc: i32, _: &[&[u8]]) -> i32 { look(&table, argc + 2) }\n",
        "invalid-access",
        "t(i)",
    ),
    (
        "fn main(argc: i32, _: &[&[u8]]) -> i32 {\n    let a = alloc[i32](10);\n    free(a);\n    if argc == 1 { free(a) }\n    0\n}\n",
        "invalid-access",
        "if argc == 1 { free(a) }",
    ),
    ("fn main(argc: i32, _: &[&[u8]]) -> i32 {\n    let n = argc * 70000;\n    n * n\n}\n", "signed-overflow", "n * n"),
    (
        "fn main(argc: i32, _: &[&[u8]]) -> i32 {\n    let n = argc as i64 << 62;\n    (n + n) as i32\n}\n",
        "signed-overflow",
        "(n + n) as i32",
    ),
    (
        "fn main(argc: i32, _: &[&[u8]]) -> i32 {\n    let n = argc as i64 << 40;\n    (n * n) as i32\n}\n",
        "signed-overflow",
        "(n * n) as i32",
    ),
    (
        "fn main(argc: i32, _: &[&[u8]]) -> i32 {\n    let a = alloc[i32](10);\n    for i in range(0, 5) { a(i) = i }\n    a(argc + 4)\n}\n",
        "uninitialized-read",
        "a(argc + 4)",
    ),
    (
        "fn main(argc: i32, _: &[&[u8]]) -> i32 {\n    let (a, b) = (alloc[f32](100), alloc[f32](99));\n    for i in range(0, 99) { b(i) = 1f }\n    for i in vec(8, 0, 99 + argc) {\n        a(i) = b(i) * 2f\n    }\n    0\n}\n",
        "invalid-access",
        "a(i) = b(i) * 2f",
    ),
    (
        "fn main(argc: i32, _: &[&[u8]]) -> i32 {\n    let (a, b) = (alloc[f32](100), alloc[f32](100));\n    for i in range(0, 100) { b(i) = 1f }\n    for i in vec(8, 0, 40) {\n        a(i) = b(argc * 3 * i)\n    }\n    0\n}\n",
        "invalid-access",
        "a(i) = b(argc * 3 * i)",
    ),
    // In loops that count: the first round is out of bounds, the last, one that a condition chooses, one before a break.
    (
        "fn main(argc: i32, _: &[&[u8]]) -> i32 {\n    let a = alloc[i32](10);\n    for i in range(0, 10) { a(i) = i }\n    let mut sum = 0;\n    for i in range(0, 9) {\n        sum += a(i - argc)\n    }\n    print_i32(sum);\n    0\n}\n",
        "invalid-access",
        "sum += a(i - argc)",
    ),
    (
        "fn main(argc: i32, _: &[&[u8]]) -> i32 {\n    let a = alloc[i32](10);\n    for i in range(0, 10) { a(i) = i }\n    let mut sum = 0;\n    for i in range(0, 9) {\n        sum += a(i + argc + 1)\n    }\n    print_i32(sum);\n    0\n}\n",
        "invalid-access",
        "sum += a(i + argc + 1)",
    ),
    (
        "fn main(argc: i32, _: &[&[u8]]) -> i32 {\n    let a = alloc[i32](10);\n    for i in range(0, 10) { a(i) = i }\n    let mut sum = 0;\n    for i in range(0, 9) {\n        if i == 5 { sum += a(i * 2 * argc) }\n    }\n    print_i32(sum);\n    0\n}\n",
        "invalid-access",
        "if i == 5 { sum += a(i * 2 * argc) }",
    ),
    (
        "fn main(argc: i32, _: &[&[u8]]) -> i32 {\n    let a = alloc[i32](10);\n    for i in range(0, 10) { a(i) = i }\n    let mut sum = 0;\n    let mut i = 9 * argc;\n    while i >= -1 {\n        sum += a(i);\n        i -= 2;\n    }\n    print_i32(sum);\n    0\n}\n",
        "invalid-access",
        "sum += a(i);",
    ),
    // Sums and products of loops, some of which are looked at when the loop has ended.
    (
        "fn main(argc: i32, _: &[&[u8]]) -> i32 {\n    let mut sum = 1 << 30;\n    let a = [1, 1 << 30, argc];\n    for i in range(0, argc + 2) {\n        sum += a(i)\n    }\n    print_i32(sum);\n    0\n}\n",
        "signed-overflow",
        "sum += a(i)",
    ),
    (
        "fn main(argc: i32, _: &[&[u8]]) -> i32 {\n    let a = alloc[i64](100);\n    for i in range(0, 100) { a(i) = i as i64 + 1i64 }\n    let k = (argc as i64) << 57i64;\n    for i in range(0, 100) {\n        a(i) = a(i) * k\n    }\n    0\n}\n",
        "signed-overflow",
        "a(i) = a(i) * k",
    ),
    (
        "fn main(argc: i32, _: &[&[u8]]) -> i32 {\n    let a = alloc[i64](100);\n    for i in range(0, 100) { a(i) = -9223372036854775807i64 - 1i64 }\n    let k = -argc as i64;\n    for i in range(0, 100) {\n        a(i) = a(i) * k\n    }\n    0\n}\n",
        "signed-overflow",
        "a(i) = a(i) * k",
    ),
    (
        "fn main(argc: i32, _: &[&[u8]]) -> i32 {\n    let a = alloc[i32](100);\n    for i in range(0, 100) {\n        a(i) = (i + 50000 * argc) * (i + 50000)\n    }\n    0\n}\n",
        "signed-overflow",
        "a(i) = (i + 50000 * argc) * (i + 50000)",
    ),
    (
        "fn main(argc: i32, _: &[&[u8]]) -> i32 {\n    let mut i = 2147483000 * argc;\n    let mut sum = 0u32;\n    while i > 0 {\n        sum += i as u32;\n        i += 100\n    }\n    print_u32(sum);\n    0\n}\n",
        "signed-overflow",
        "i += 100",
    ),
    (
        "fn main(argc: i32, _: &[&[u8]]) -> i32 {\n    let a = [100i8, 3i8];\n    let mut sum = 30i8;\n    for i in range(0, argc + 1) {\n        sum += a(i)\n    }\n    print_i32(sum as i32);\n    0\n}\n",
        "signed-overflow",
        "sum += a(i)",
    ),
    // What loops fill: not to the end, with gaps, where a condition holds, up to a break, no round at all.
    (
        "fn main(argc: i32, _: &[&[u8]]) -> i32 {\n    let a = alloc[i32](10);\n    for i in range(0, 8 + argc) { a(i) = i }\n    let mut sum = 0;\n    for i in range(0, 10) {\n        sum += a(i)\n    }\n    print_i32(sum);\n    0\n}\n",
        "uninitialized-read",
        "sum += a(i)",
    ),
    (
        "fn main(argc: i32, _: &[&[u8]]) -> i32 {\n    let a = alloc[i32](10);\n    for i in range_step(0, 10 * argc, 2) { a(i) = i }\n    let mut sum = 0;\n    for i in range(0, 10) {\n        sum += a(i)\n    }\n    print_i32(sum);\n    0\n}\n",
        "uninitialized-read",
        "sum += a(i)",
    ),
    (
        "fn main(argc: i32, _: &[&[u8]]) -> i32 {\n    let a = alloc[i32](10);\n    for i in range(0, 10) { if i != argc { a(i) = i } }\n    let mut sum = 0;\n    for i in range(0, 10) {\n        sum += a(i)\n    }\n    print_i32(sum);\n    0\n}\n",
        "uninitialized-read",
        "sum += a(i)",
    ),
    (
        "fn main(argc: i32, _: &[&[u8]]) -> i32 {\n    let a = alloc[i32](10);\n    let mut k = 0;\n    while k < 10 {\n        if k == 5 + argc { break() }\n        a(k) = k;\n        k++\n    }\n    let mut sum = 0;\n    for i in range(0, 10) {\n        sum += a(i)\n    }\n    print_i32(sum);\n    0\n}\n",
        "uninitialized-read",
        "sum += a(i)",
    ),
    (
        "fn main(argc: i32, _: &[&[u8]]) -> i32 {\n    let a = alloc[i32](10);\n    for i in range(1, 10) { a(i) = i }\n    for i in range(0, argc - 1) { a(i) = i }\n    let mut sum = 0;\n    for i in range(0, 10) {\n        sum += a(i)\n    }\n    print_i32(sum);\n    0\n}\n",
        "uninitialized-read",
        "sum += a(i)",
    ),
    (
        "fn main(argc: i32, _: &[&[u8]]) -> i32 {\n    let a = alloc[i32](64);\n    for i in range(0, 64) { a(i) = (1 << 30) * argc + i - 10 }\n    for i in vec(8, 0, 60) {\n        if i > 40 {\n            a(i) = a(i) + a(i - 40)\n        }\n    }\n    print_i32(a(3));\n    0\n}\n",
        "signed-overflow",
        "a(i) = a(i) + a(i - 40)",
    ),
    (
        "fn main(argc: i32, _: &[&[u8]]) -> i32 {\n    let a = alloc[i64](64);\n    for i in range(0, 64) { a(i) = (i as i64) << (58 * argc) as i64 }\n    for i in vec(8, 0, 60) {\n        if i < 3 { a(i) = a(i) * a(1) }\n    }\n    print_i64(a(3));\n    0\n}\n",
        "signed-overflow",
        "if i < 3 { a(i) = a(i) * a(1) }",
    ),
    (
        "fn square(x: i32) -> i32 {\n    x * x\n}\nfn main(argc: i32, _: &[&[u8]]) -> i32 {\n    let a = alloc[i32](64);\n    for i in range(0, 64) { a(i) = i * 1000 * argc }\n    for i in vec(8, 0, 60) { a(i) = square(a(i)) }\n    print_i32(a(3));\n    0\n}\n",
        "signed-overflow",
        "x * x",
    ),
    (
        "fn main(argc: i32, _: &[&[u8]]) -> i32 {\n    let a = alloc[i8](64);\n    for i in range(0, 64) { a(i) = (i * argc) as i8 }\n    for i in vec(16, 0, 60) {\n        let mut k = 0i8;\n        while k < 100i8 {\n            k -= a(i) + 1i8\n        }\n        a(i) = k\n    }\n    print_i32(a(3) as i32);\n    0\n}\n",
        "signed-overflow",
        "k -= a(i) + 1i8",
    ),
    // Variables that do not leave their function: a part of an array, fields, lanes, large ones.
    (
        "fn main(argc: i32, _: &[&[u8]]) -> i32 {\n    let mut a: [i32 * 10];\n    for i in range(0, 8 + argc) { a(i) = i * argc }\n    let mut sum = 0;\n    for i in range(0, 9 + argc) {\n        sum += a(i)\n    }\n    print_i32(sum);\n    0\n}\n",
        "uninitialized-read",
        "sum += a(i)",
    ),
    (
        "struct Pair { a: u8, b: i64 }\nfn main(argc: i32, _: &[&[u8]]) -> i32 {\n    let mut a: [Pair * 4];\n    for i in range(0, 4) { a(i * argc).a = 1u8 }\n    a(argc).b = 5i64;\n    let near = a(argc).b + a(argc + 2).a as i64;\n    print_i64(near);\n    let far = a(argc + 1).b;\n    print_i64(far);\n    0\n}\n",
        "uninitialized-read",
        "let far = a(argc + 1).b;",
    ),
    (
        "fn main(argc: i32, _: &[&[u8]]) -> i32 {\n    let mut a: [i32 * 24];\n    let b = alloc[i32](24);\n    for i in range(0, 20) { a(i) = i * argc }\n    for i in vec(8, 0, 8 * argc) { b(i) = a(i) }\n    for i in vec(8, 8, 24 * argc) {\n        b(i) = a(i)\n    }\n    print_i32(b(3));\n    0\n}\n",
        "uninitialized-read",
        "b(i) = a(i)",
    ),
    (
        "fn main(argc: i32, _: &[&[u8]]) -> i32 {\n    let mut sum = 0;\n    for k in range(0, 3 + argc) {\n        let mut a = [7, .. 3000];\n        let mut b: [i32 * 3000];\n        a(k) = argc;\n        if k < 3 { b(k * 900) = 1 }\n        sum += a(k + 1);\n        sum += b(k * 800)\n    }\n    print_i32(sum);\n    0\n}\n",
        "uninitialized-read",
        "sum += b(k * 800)",
    ),
    // Numbers that partial evaluation knows; a value that is used behind a loop, in a loop, on one way.
    (
        "static SIDE = 5794;\nfn @size() -> [i32 * 2] { [SIDE * 64, SIDE] }\nfn main() -> i32 {\n    let s = size();\n    print_i32(s(0) * s(1));\n    0\n}\n",
        "signed-overflow",
        "print_i32(s(0) * s(1));",
    ),
    (
        "fn main(argc: i32, _: &[&[u8]]) -> i32 {\n    let mut a = [1, .. 5];\n    for i in range(0, 5) { a(i) = i * 3 + argc - 1 }\n    let mut sum = 0;\n    let product = (a(4) * 715827882) as u32;\n    for i in range(0, 5) { sum += a(i) }\n    print_u32(product + sum as u32);\n    0\n}\n",
        "signed-overflow",
        "let product = (a(4) * 715827882) as u32;",
    ),
    (
        "fn main(argc: i32, _: &[&[u8]]) -> i32 {\n    let product = (argc + 11) * 715827882;\n    let mut sum = 0;\n    for i in range(0, argc + 3) { sum ^= product ^ i }\n    print_i32(sum);\n    0\n}\n",
        "signed-overflow",
        "let product = (argc + 11) * 715827882;",
    ),
    (
        "fn main(argc: i32, _: &[&[u8]]) -> i32 {\n    let product = (argc + 11) * 715827882;\n    if argc < 7 { print_i32(product) }\n    0\n}\n",
        "signed-overflow",
        "let product = (argc + 11) * 715827882;",
    ),
    // Stores that nobody reads; a sum with two constants, of which the first one overflows.
    (
        "fn main(argc: i32, _: &[&[u8]]) -> i32 {\n    let mut cells: [i32 * 23];\n    let a = &mut cells as &mut [i32];\n    for i in range(0, 23) { a(i) = i }\n    for i in vec(8, 0, 23) {\n        a(i + argc) = a(i + argc) ^ 1\n    }\n    print_i32(5);\n    0\n}\n",
        "invalid-access",
        "a(i + argc) = a(i + argc) ^ 1",
    ),
    (
        "fn @more(x: i32) -> i32 {\n    x + 2147483647\n}\nfn main(argc: i32, _: &[&[u8]]) -> i32 { print_i32(more(argc) - 7); 0 }\n",
        "signed-overflow",
        "x + 2147483647",
    ),
    // Two functions have the same known fault.
    (
        "fn @known(x: i32) -> i32 { x }\nfn early(x: i32) -> i32 {\n    if x > 5 { known(2147483647) + known(1) } else { x }\n}\nfn late(x: i32) -> i32 {\n    known(2147483647) + known(1) - x\n}\nfn main(argc: i32, _: &[&[u8]]) -> i32 { early(argc) + late(argc) }\n",
        "signed-overflow",
        "known(2147483647) + known(1) - x",
    ),
    // Divisions, of the least number, by zero, in lanes.
    (
        "fn divide(a: i32, b: i32) -> i32 {\n    a / b\n}\nfn main(argc: i32, _: &[&[u8]]) -> i32 { divide(-2147483647 - argc, -argc) }\n",
        "signed-overflow",
        "a / b",
    ),
    (
        "fn main(argc: i32, _: &[&[u8]]) -> i32 {\n    let a = alloc[u8](40);\n    for i in range(0, 40) { a(i) = (20 - i * argc) as u8 }\n    for i in vec(8, 0, 40) {\n        if i > 7 { a(i) = 100u8 % a(i) }\n    }\n    print_i32(a(3) as i32);\n    0\n}\n",
        "division-by-zero",
        "if i > 7 { a(i) = 100u8 % a(i) }",
    ),
    // An overflow comes before a read of a variable in the next round.
    (
        "fn main(argc: i32, _: &[&[u8]]) -> i32 {\n    let b = alloc[i32](10);\n    for i in range(0, 10) { b(i) = (1 << 30) * argc }\n    let mut a: [i32 * 10];\n    for i in range(0, 8) { a(i) = i * argc }\n    let (mut sum, mut bits) = (0, 0);\n    for i in range(0, 9 + argc) {\n        sum += b(i);\n        bits ^= a(i)\n    }\n    print_i32(sum + bits);\n    0\n}\n",
        "signed-overflow",
        "sum += b(i);",
    ),
    // Variables are not given back.
    (
        "fn main(argc: i32, _: &[&[u8]]) -> i32 {\n    let mut x = [argc, 2];\n    x(1) += 1;\n    free(&mut x);\n    x(0)\n}\n",
        "invalid-access",
        "free(&mut x);",
    ),
    (
        "struct Pair { a: i32, b: i32 }\nfn end(p: &mut Pair) -> i32 {\n    free(p as &mut [i32]);\n    p.b\n}\nfn main(argc: i32, _: &[&[u8]]) -> i32 {\n    let mut x = Pair { a: argc, b: 2 };\n    end(&mut x)\n}\n",
        "invalid-access",
        "free(p as &mut [i32]);",
    ),
    // Variables that have no value on one way, before a round of a loop, on any way.
    (
        "fn f(c: bool) -> i32 {\n    let mut x: i32;\n    if c { x = 4 }\n    x + 1\n}\nfn main(argc: i32, _: &[&[u8]]) -> i32 {\n    f(argc > 1)\n}\n",
        "uninitialized-read",
        "x + 1",
    ),
    (
        "fn main(argc: i32, _: &[&[u8]]) -> i32 {\n    let mut x: i32;\n    for i in range(0, argc) { if i == 5 { x = i } }\n    print_i32(x * 3);\n    0\n}\n",
        "uninitialized-read",
        "print_i32(x * 3);",
    ),
    (
        "fn main(argc: i32, _: &[&[u8]]) -> i32 {\n    let mut x: i32;\n    let mut y = 0;\n    while y < argc + 9 {\n        if x > 3 { y = 100 }\n        x = y;\n        y += 1\n    }\n    y\n}\n",
        "uninitialized-read",
        "if x > 3 { y = 100 }",
    ),
    (
        "fn main(argc: i32, _: &[&[u8]]) -> i32 {\n    let mut x: f32;\n    print_f32(x + argc as f32);\n    0\n}\n",
        "uninitialized-read",
        "print_f32(x + argc as f32);",
    ),
    (
        "fn main(argc: i32, _: &[&[u8]]) -> i32 {\n    let a = [1, 2, 3, argc];\n    let mut i: i64;\n    if argc > 3 { i = 2i64 }\n    print_i32(a(i));\n    0\n}\n",
        "uninitialized-read",
        "print_i32(a(i));",
    ),
    // Where they go: to memory, into functions and back, also by calls in tail position; parts of structs, tuples and arrays.
    (
        "fn main(argc: i32, _: &[&[u8]]) -> i32 {\n    let mut x: i32;\n    if argc > 5 { x = 3 }\n    let a = alloc[i32](2);\n    a(0) = x;\n    a(1) = argc;\n    print_i32(a(1));\n    a(0) + 1\n}\n",
        "uninitialized-read",
        "a(0) + 1",
    ),
    (
        "fn add(x: i32, y: i32) -> i32 {\n    y + x\n}\nfn main(argc: i32, _: &[&[u8]]) -> i32 {\n    let mut x: i32;\n    if argc > 5 { x = 3 }\n    print_i32(add(argc, 4));\n    add(x, argc)\n}\n",
        "uninitialized-read",
        "y + x",
    ),
    (
        "fn maybe(c: bool) -> i32 { let mut x: i32; if c { x = 3 } x }\nfn main(argc: i32, _: &[&[u8]]) -> i32 {\n    let (a, b) = (maybe(argc > 5), maybe(argc == 1));\n    print_i32(b * 2);\n    a + 1\n}\n",
        "uninitialized-read",
        "a + 1",
    ),
    (
        "fn even(n: i32, seen: i32) -> i32 { if n == 0 { seen } else { odd(n - 1, seen) } }\nfn odd(n: i32, seen: i32) -> i32 { if n == 0 { 0 } else { even(n - 1, seen) } }\nfn main(argc: i32, _: &[&[u8]]) -> i32 {\n    let mut x: i32;\n    if argc > 5 { x = 3 }\n    print_i32(odd(argc + 5, x) + even(argc + 5, 7));\n    even(argc + 5, x) + 1\n}\n",
        "uninitialized-read",
        "even(argc + 5, x) + 1",
    ),
    (
        "struct P { x: i32, y: i32 }\nfn main(argc: i32, _: &[&[u8]]) -> i32 {\n    let p = alloc[P](2);\n    p(argc).x = 1;\n    let q = p(argc);\n    print_i32(q.x);\n    q.y + 1\n}\n",
        "uninitialized-read",
        "q.y + 1",
    ),
    (
        "struct P { x: i32, y: i32 }\nfn main(argc: i32, _: &[&[u8]]) -> i32 {\n    let (p, r) = (alloc[P](2), alloc[P](2));\n    p(argc).x = 1;\n    r(0) = p(argc);\n    print_i32(r(0).x);\n    r(0).y + 1\n}\n",
        "uninitialized-read",
        "r(0).y + 1",
    ),
    (
        "fn main(argc: i32, _: &[&[u8]]) -> i32 {\n    let mut t: (i32, i32);\n    t(0) = argc;\n    if argc > 5 { t(1) = 3 }\n    print_i32(t(0) + 1);\n    t(1) + 1\n}\n",
        "uninitialized-read",
        "t(1) + 1",
    ),
    (
        "struct P { x: i32, y: f64, z: [i32 * 3] }\nfn make(c: bool) -> P { let mut p: P; p.x = 1; p.z(1) = 2; if c { p.y = 2.0 } p }\nfn take(p: P) -> i32 {\n    if p.y > 1.0 { p.x } else { p.z(1) }\n}\nfn main(argc: i32, _: &[&[u8]]) -> i32 {\n    print_i32(take(make(argc == 1)));\n    take(make(argc > 5))\n}\n",
        "uninitialized-read",
        "if p.y > 1.0 { p.x } else { p.z(1) }",
    ),
];

pub const ALL: &str = "--check=bounds,overflow,null,uninit";

/// The interpreter and kinds of native code.
const ENGINES: [&str; 6] = ["interp", "-O0", "-O3", "--check", "no-pe", "built"];

/// Each program under the interpreter and at -O0, and under one of the others.
#[test]
fn faults_are_those_of_the_interpreter() {
    have_faults("checked faults", FAULTS, |i, engine| engine < 2 || engine == 2 + i % 4);
}

#[test]
#[ignore = "takes 8 s: ./x test --all crates"]
fn faults_are_those_of_the_interpreter_under_all_other_engines() {
    have_faults("checked faults of all", FAULTS, |i, engine| engine >= 2 && engine != 2 + i % 4);
}

/// Runs the programs, by index, under engines.
pub fn have_faults(name: &str, faults: &[(&str, &str, &str)], is_wanted: impl Fn(usize, usize) -> bool) {
    let folder = Folder::new(name);
    for (i, (text, code, line)) in faults.iter().enumerate() {
        let program = folder.write(&format!("p{i}.impala"), text);
        let number = text.lines().position(|l| l.trim() == *line).map_or(0, |i| i + 1);
        let built = folder.0.join(format!("p{i}"));
        let path = program.as_os_str();
        for (_, engine) in ENGINES.into_iter().enumerate().filter(|(engine, _)| is_wanted(i, *engine)) {
            // The interpreter takes an address for one of the block that it lies in.
            if engine == "interp" && text.contains("let far") {
                continue;
            }
            // That check is not among the usual ones.
            if engine == "--check" && *code == "uninitialized-read" {
                continue;
            }
            let run = |options: &[&str]| {
                let options = options.iter().map(std::ffi::OsStr::new);
                nyala(&std::iter::once("run".as_ref()).chain(options).chain([path]).collect::<Vec<_>>(), 60)
            };
            let output = match engine {
                "interp" => run(&["--engine", "interp"]),
                "-O0" => run(&[ALL, "-O0"]),
                "-O3" => run(&[ALL]),
                "--check" => run(&["--check"]),
                "no-pe" => run(&[ALL, "--no-pe"]),
                _ => {
                    let made = nyala(&["build".as_ref(), ALL.as_ref(), path, "-o".as_ref(), built.as_os_str()], 60);
                    assert!(made.status.success(), "{}", stderr(&made));
                    Command::new(&built).run_to_end()
                }
            };
            let err = stderr(&output);
            let report = err.split("warning[").find(|r| r.contains("error[")).unwrap_or(&err).to_string();
            assert_eq!(output.status.code(), Some(3), "{engine}: {text}{err}");
            assert!(report.contains(&format!("error[{code}]")), "{engine}: {text}{err}");
            assert!(report.contains(&format!("p{i}.impala:{number}:")), "{engine}: line {number}: {text}{err}");
        }
    }
}

/// Memory of devices is for kernels and copies, also where the host stands for the device.
#[test]
fn the_host_does_not_access_memory_of_devices() {
    let folder = Folder::new("checked devices");
    let head = "use std::device::*;\nuse std::slice::*;\nextern \"C\" { fn anydsl_alloc_unified(i32, i64) -> &mut [i8]; fn anydsl_release(i32, &[i8]) -> (); }\n";
    let program = |name: &str, own: &str| {
        let text = format!(
            "{head}fn main(argc: i32, _: &[&[u8]]) -> i32 {{\n    let gpu = opencl(0);\n    let a = gpu.buffer[i32](100);\n    for i in gpu.range(0, 100) {{ a.data(i) = i }}\n{own}\n}}\n"
        );
        folder.write(name, &text)
    };
    // The fault is in line 8.
    let faults = [
        ("reads", "    a.data(argc + 2)"),
        ("writes", "    a.data(argc) = 4; 0"),
        ("lanes", "    for i in vec(8, 0, 16) { a.data(i) = i } a.get(3i64)"),
        ("kept", "    let p = [a.data]; p(argc - 1)(3)"),
    ];
    let fine = program(
        "fine.impala",
        "    let mut own: [i32 * 100];\n    a.read(mut_slice(&mut own as &mut [i32], 100i64));\n    let b = host().buffer[i32](3);\n    b.data(0) = own(argc + 2);\n             let u = anydsl_alloc_unified(2, 8i64) as &mut [i32];\n    u(0) = a.get(4i64);\n    for i in gpu.range(0, 1) { u(1) = u(0) + a.data(5) }\n             a.free();\n    let c = alloc[i32](100);\n    c(99) = u(1);\n    anydsl_release(2, u as &[i8]);\n    let sum = c(99) + b.data(0) - 12;\n    free(c);\n    b.free();\n    sum",
    );
    let engines =
        [&["--engine", "interp"][..], &["--check", "--device", "host"], &["--check", "--device", "host", "-O0"]];
    let run =
        |program: &Path, options: &[&str]| Command::new(command()).arg("run").args(options).arg(program).run_to_end();
    for (i, (name, own)) in faults.iter().enumerate() {
        let program = program(&format!("{name}.impala"), own);
        for options in [engines[0], engines[1 + i % 2]] {
            let output = run(&program, options);
            let err = stderr(&output);
            assert_eq!(output.status.code(), Some(3), "{name} {options:?}: {err}");
            assert!(
                err.contains("error[invalid-access]: access of the host to memory of a device"),
                "{name} {options:?}: {err}"
            );
            assert!(err.contains(&format!("{name}.impala:8:")), "{name} {options:?}: {err}");
        }
    }
    for options in engines.into_iter().chain([&["--device", "host"][..]]) {
        let output = run(&fine, options);
        assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()), "{options:?}");
    }
}

/// How far a stencil reads is compared with its radius where accesses are checked; where the compiler knows it, always.
#[test]
fn stencils_read_no_farther_than_they_say() {
    let folder = Folder::new("checked stencils");
    let text = "use image::*;\nfn main(argc: i32, _: &[&[u8]]) -> i32 {\n    let (a, b) = (make_plane[f32](20, 10), make_plane[f32](20, 10));\n    assign(view(a), computed(20, 10, @|x, y| (x + y) as f32), combine_xy(range, range));\n    let s = stencil(source(view(a), clamp_to), 2, 1, @|read, x, y| read(x - OFFSET, y) + read(x, y + 1));\n    render(view(b), s, whole, lanes(8));\n    view(b).get(10, 5) as i32 - RESULT\n}\n";
    let program = |name: &str, offset: &str, result: &str| {
        folder.write(name, text.replace("OFFSET", offset).replace("RESULT", result))
    };
    let run =
        |program: &Path, options: &[&str]| Command::new(command()).arg("run").args(options).arg(program).run_to_end();
    let (near, far) = (program("near.impala", "2 * argc", "29"), program("far.impala", "3 * argc", "28"));
    for options in [&["--engine", "interp"][..], &["--check"], &[]] {
        let output = run(&near, options);
        assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()), "{options:?}");
        let output = run(&far, options);
        let err = stderr(&output);
        if options.is_empty() {
            assert_eq!((output.status.code(), err), (Some(0), String::new()));
        } else {
            assert!(
                err.contains("error[panic]: a stencil reads farther away than its radius says"),
                "{options:?}: {err}"
            );
            assert!(err.contains("far.impala:"), "{options:?}: {err}");
        }
    }
}

#[test]
fn calls_lead_to_the_fault() {
    let folder = Folder::new("checked calls");
    let program = folder.write(
        "p.impala",
        "fn get(a: &[i32], i: i32) -> i32 {\n    a(i) + 1\n}\nfn twice(a: &[i32], i: i32) -> i32 {\n    $get(a, i) + $get(a, i + 1)\n}\nfn main(argc: i32, _: &[&[u8]]) -> i32 {\n    let a = [1, 2, argc];\n    $twice(&a, 2)\n}\n",
    );
    let err = stderr(&nyala(&["run".as_ref(), "--check".as_ref(), program.as_os_str()], 60));
    for place in ["p.impala:2:", "called at", "p.impala:5:"] {
        assert!(err.contains(place), "{place}: {err}");
    }
}

/// Variables that have a value on every way that uses them are no fault.
#[test]
fn variables_may_get_their_value_late() {
    let folder = Folder::new("checked variables");
    let program = folder.write(
        "p.impala",
        "fn main(argc: i32, _: &[&[u8]]) -> i32 {\n    let mut x: i32;\n    let mut i = 0;\n    while i < argc + 2 {\n        if i == 0 { x = 5 } else { x += i }\n        i += 1\n    }\n    print_i32(x);\n    let mut y: i32;\n    if argc > 0 { y = argc }\n    if argc > 0 { print_i32(y + 1) }\n    let mut z: f32;\n    let s = z;\n    z = 2f;\n    if argc > 5 { print_f32(s) }\n    print_f32(z);\n    0\n}\n",
    );
    for options in [&["--engine", "interp"][..], &[ALL, "-O0"], &[ALL], &[ALL, "--no-pe"]] {
        let output = Command::new(command()).arg("run").args(options).arg(&program).run_to_end();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "822", "{options:?}: {}", stderr(&output));
    }
}

/// A panic tells the calls that led there: those that were unfolded, with `--check` the others, too.
#[test]
fn calls_lead_to_a_panic() {
    let folder = Folder::new("panics");
    let text = "fn @checked(i: i32) -> i32 {\n    assert(i < 4);\n    i\n}\nfn @twice(i: i32) -> i32 {\n    2 * checked(i)\n}\nfn down(n: i32) -> i32 {\n    if n > 0 { $down(n - 1) + 1 } else { checked(n + 7) }\n}\nfn main(argc: i32, _: &[&[u8]]) -> i32 {\n    let x = checked(argc);\n    if argc == 2 { twice(x + 1) } else {\n        if argc == 3 { twice(x + 9) } else { down(argc) }\n    }\n}\n";
    let program = folder.write("p.impala", text);
    let built = folder.path("p");
    let made = nyala(&["build".as_ref(), program.as_os_str(), "-o".as_ref(), built.as_os_str()], 60);
    assert!(made.status.success(), "{}", stderr(&made));
    // By arguments, the lines of the calls.
    let calls: [(&[&str], &[usize]); 3] = [(&["a", "b"], &[6, 14]), (&["a", "b", "c", "d"], &[12]), (&[], &[9])];
    for (args, lines) in calls {
        for options in [&["run"][..], &["run", "--check"], &["run", "-O0"], &["run", "--engine", "c"], &["built"]] {
            let mut command = match options[0] {
                "built" => Command::new(&built),
                _ => Command::new(command()),
            };
            if options[0] != "built" {
                command.args(options).arg(&program).arg("--");
            }
            let output = command.args(args).run_to_end();
            let err = stderr(&output);
            assert!(err.contains("p.impala:2:5") && err.contains("assertion failed: `i < 4`"), "{options:?}: {err}");
            let is_checked = options.contains(&"--check");
            for line in lines {
                let place =
                    if is_checked { format!("{line} |") } else { format!("called at {}:{line}:", program.display()) };
                assert!(err.contains(&place), "{options:?} {args:?}: no call in line {line}: {err}");
            }
            for other in [6, 9, 12, 14].iter().filter(|line| !lines.contains(line)) {
                assert!(
                    !err.contains(&format!("called at {}:{other}:", program.display())),
                    "{options:?} {args:?}: {err}"
                );
            }
            if is_checked && args.is_empty() {
                assert!(err.contains("note: called at"), "{err}");
            }
        }
    }
}

/// Lanes that do not execute an operation do not overflow in it.
#[test]
fn inactive_lanes_do_not_overflow() {
    let folder = Folder::new("checked lanes");
    let program = folder.write(
        "p.impala",
        "fn main(argc: i32, _: &[&[u8]]) -> i32 {\n    let a = alloc[i32](64);\n    for i in range(0, 64) { a(i) = 100000 * (i % 3) * argc }\n    let k = 50000 * argc;\n    for i in vec(8, 0, 64) {\n        if a(i) == 0 { a(i) = (a(i) + 2) * k }\n        if a(i) < 0 { a(i) = k * k }\n    }\n    let mut sum = 0;\n    for i in range(0, 6) { sum += a(i) }\n    print_i32(sum);\n    0\n}\n",
    );
    for options in [&["--check"][..], &["--check=overflow", "-O0"], &["--check", "--no-pe"]] {
        let output = Command::new(command()).arg("run").args(options).arg(&program).run_to_end();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "800000", "{options:?}: {}", stderr(&output));
    }
}

/// A loop has a copy without branches for checks, so that it is vectorized as it is without them.
#[test]
fn counted_loops_are_vectorized() {
    let folder = Folder::new("checked loops");
    let program = folder.write(
        "p.impala",
        "extern fn f(n: i32, a: &mut [i32], b: &[i32], k: i64, c: &mut [i64]) -> () {\n    for i in range(0, n) { a(i) = b(i) + b(i + 1) }\n    for i in range(0, n) { c(i) *= k }\n}\n",
    );
    for check in ["--check", "--check=overflow", "--check=bounds"] {
        let args = ["emit", "--stage", "asm", "--cpu", "x86-64-v3", "--target", "x86_64-unknown-linux-gnu", check];
        let output = Command::new(command()).args(args).arg(&program).run_to_end();
        let text = String::from_utf8_lossy(&output.stdout);
        for vectors in ["vpaddd", "vpmuludq"] {
            assert!(text.contains(vectors), "{check}: no {vectors}: {}", stderr(&output));
        }
    }
}

#[test]
fn options_are_checked() {
    let folder = Folder::new("checked options");
    let program = folder.write("p.impala", "fn main() -> i32 { 0 }");
    let output = nyala(&["run".as_ref(), "--check=bonds".as_ref(), program.as_os_str()], 60);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("there are bounds, overflow, null, uninit"), "{}", stderr(&output));
    let output = Command::new(command()).args(["run", "--check", "--wrap"]).arg(&program).run_to_end();
    assert!(output.status.success(), "{}", stderr(&output));
}

const LIBRARY: &str = "static mut counter = 0;\nextern fn bump(n: i32) -> i32 {\n    for i in range(0, n) { counter += 1 }\n    counter\n}\n\
                       extern fn total(a: &[i32], n: i32) -> i32 {\n    let mut sum = 0;\n    for i in range(0, n) { sum += a(i) }\n    sum\n}\n";
const USER: &str = "#include <pthread.h>\n#include <stdio.h>\n#include <stdlib.h>\nint total(const int *a, int n);\nint bump(int n);\n\
                    static void *go(void *p) { bump(1000); return p; }\nint main(int argc, char **argv) {\n    (void)argv;\n    \
                    int *a = calloc(10, sizeof(int)), s = total(a, argc == 2 ? 11 : 10);\n    free(a);\n    pthread_t t;\n    \
                    pthread_create(&t, 0, go, 0);\n    if (argc == 3) bump(1000);\n    pthread_join(t, 0);\n    \
                    printf(\"%d %d\\n\", s, bump(0));\n    return 0;\n}\n";

/// Tools that watch a library which C calls. The arguments of the C program choose what it does wrong.
#[test]
fn sanitizers() {
    let folder = Folder::new("sanitizers");
    folder.write("lib.impala", LIBRARY);
    folder.write("use.c", USER);
    for (tool, wrong, says, line) in
        [("address", 1, "heap-buffer-overflow", "lib.impala:8"), ("thread", 2, "data race", "lib.impala:3")]
    {
        let flag = format!("-fsanitize={tool}");
        let compile = |args: &[&str]| {
            let mut cc = Command::new("cc");
            cc.current_dir(&folder.0).args(["-g", &flag, "use.c"]).args(args).run_to_end()
        };
        // The compiler may come without the tool's runtime.
        folder.write("none.c", "int total(const int *a, int n) { return a[n - 1]; } int bump(int n) { return n; }\n");
        if !compile(&["none.c", "-o", "none", "-lpthread"]).status.success() {
            skip(&format!("the C compiler's runtime for {flag}"));
            continue;
        }
        for out in ["lib.o", "lib.a"] {
            let made = Command::new(command())
                .current_dir(&folder.0)
                .args(["build", "--sanitize", tool, "-g", "lib.impala", "-o", out])
                .run_to_end();
            assert!(made.status.success(), "{}", stderr(&made));
            let made = compile(&[out, "-o", "use", "-lpthread"]);
            assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
            for n in 0..3 {
                let args = ["x"; 2].into_iter().take(n);
                let ran = Command::new(folder.0.join("use")).args(args).run_to_end();
                let text = String::from_utf8_lossy(&ran.stderr);
                assert_eq!(ran.status.success(), n != wrong, "{tool}, {out}, {n}: {text}");
                assert_eq!(text.contains(says) && text.contains(line), n == wrong, "{tool}, {out}, {n}: {text}");
            }
        }
    }
    // Threads of the runtime are not watched, and the compiler says so.
    let source = folder
        .write("par.impala", "extern fn f(n: i32, a: &mut [i32]) -> () {\n    for i in par(0, n) { a(i) = i }\n}\n");
    let made = Command::new(command())
        .args(["build", "--sanitize", "thread", "-o"])
        .arg(folder.0.join("par.o"))
        .arg(&source)
        .run_to_end();
    assert!(
        made.status.success() && String::from_utf8_lossy(&made.stderr).contains("limitation"),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
}
