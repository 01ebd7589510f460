//! The front end as a value: it has what is known of broken programs, and shares trees with the one that it was made from.

use nyala_driver::{Files, FrontEnd, Options};
use std::sync::Arc;

fn is_send<T: Send + Sync>(_: &T) {}

/// The messages of the errors.
fn errors(front: &FrontEnd) -> Vec<&str> {
    front.report.sink.diagnostics.iter().map(|d| d.message.as_str()).collect()
}

#[test]
fn a_front_end_has_what_is_known_of_a_broken_program() {
    let text =
        "extern fn f(a: i32) -> i32 { a + nothing }\nextern fn g() -> i32 { 2 + }\nextern fn h() -> i32 { f(1) }\n";
    let front = FrontEnd::new(Options::default(), Files::of("t.impala", text));
    is_send(&front);
    assert!(errors(&front).len() >= 2, "{:?}", errors(&front));
    let is_reported = |what: &str| errors(&front).iter().any(|e| e.contains(what));
    assert!(is_reported("nothing"), "{:?}", errors(&front));
    // The file's other functions are checked.
    assert_eq!(front.trees().program()[0].items.len(), 3);
    assert!(front.graph().is_err());
}

#[test]
fn unchanged_files_are_not_parsed_again() {
    let files = |text: &str| {
        let mut files = Files::of("a.impala", text);
        files.add("b.impala", "use std::slice::*;\nfn helper() -> i32 { 1 }\n");
        files
    };
    let first = FrontEnd::new(Options::default(), files("extern fn f() -> i32 { helper() }"));
    let second = first.again(files("extern fn f() -> i32 { helper() + true }"));
    let third = second.again(files("extern fn f() -> i32 { helper() }"));
    assert_eq!(errors(&first), Vec::<&str>::new());
    assert_eq!(errors(&second).len(), 1);
    assert_eq!(third.report.render(false), first.report.render(false));
    let shares = |a: &FrontEnd, b: &FrontEnd| {
        let both = a.trees().all().iter().zip(b.trees().all());
        both.map(|(a, b)| Arc::ptr_eq(a, b)).collect::<Vec<_>>()
    };
    let shared = shares(&first, &second);
    assert!(!shared[0] && shared.len() > 2 && shared[1..].iter().all(|s| *s), "{shared:?}");
    assert!(first.graph().is_ok() && second.graph().is_err() && third.graph().is_ok());
}

#[test]
fn unsaved_texts_stand_for_files() {
    let mut files = Files::of("dir/a.impala", "mod m;\nextern fn f() -> i32 { m::one() }");
    files.unsaved.insert("dir/m.impala".into(), "fn one() -> i32 { 1 }".into());
    let front = FrontEnd::new(Options::default(), files);
    assert_eq!(errors(&front), Vec::<&str>::new());
}
