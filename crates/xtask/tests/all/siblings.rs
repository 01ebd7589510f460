//! The residual code of a function does not depend on how many other functions the program has.

use crate::common::{Folder, nyala, stderr};
use std::fmt::Write as _;

/// Functions that each have a loop and call a common helper; the loop is a function without filter.
fn program(n: usize) -> String {
    let mut text = String::from(
        "fn loop(a: i32, b: i32, body: fn(i32) -> ()) -> () { if a < b { body(a); loop(a + 1, b, body) } }
fn helper(x: i32) -> i32 { if x > 10 { helper(x - 7) + 3 } else { x } }
fn @(?n) power(x: i32, n: i32) -> i32 { if n == 0 { 1 } else { x * power(x, n - 1) } }
",
    );
    for i in 0..n {
        let _ = writeln!(
            text,
            "extern fn f{i}(n: i32, p: &mut [i32]) -> i32 {{
    let mut s = {i};
    for k in loop(0, n) {{ p(k) = s; s = s * 7 + k }}
    s + helper(power(s, 3))
}}"
        );
    }
    text
}

/// Residual text of one function, without the numbers of names: `unroll_step.17` is `unroll_step`.
fn residual(folder: &Folder, n: usize, function: &str) -> String {
    let file = folder.write(&format!("{n}.impala"), program(n));
    let output = nyala(&["emit".as_ref(), file.as_os_str(), "--fn".as_ref(), function.as_ref()], 120);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut out = String::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c == '.' && chars.peek().is_some_and(char::is_ascii_digit) {
            while chars.next_if(char::is_ascii_digit).is_some() {}
        } else {
            out.push(c);
        }
    }
    out
}

#[test]
fn ten_thousand_siblings_change_nothing() {
    let folder = Folder::new("siblings");
    let few = residual(&folder, 10, "f5");
    assert!(few.contains("f5(") && few.contains("helper(") && few.contains("branch("), "{few}");
    assert_eq!(few, residual(&folder, 3_200, "f5"));
    assert_eq!(few, residual(&folder, 10_000, "f5"));
}
