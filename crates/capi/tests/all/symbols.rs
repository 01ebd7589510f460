//! The library exports the functions of the header, and nothing else.

use object::{Object, ObjectSymbol};
use std::collections::BTreeSet;

/// The functions that the header declares.
fn declared() -> BTreeSet<String> {
    let text = std::fs::read_to_string(crate::header()).expect("the header");
    let mut without_comments = String::new();
    let mut rest = &*text;
    while let Some((before, comment)) = rest.split_once("/*") {
        without_comments.push_str(before);
        rest = comment.split_once("*/").expect("comments end").1;
    }
    without_comments.push_str(rest);
    let code: String = without_comments.lines().filter(|l| !l.starts_with('#')).collect::<Vec<_>>().join("\n");
    let before_parentheses = code.split('(').map(|before| {
        let name = before.rsplit(|c: char| !c.is_ascii_alphanumeric() && c != '_').next();
        name.unwrap_or_default().to_string()
    });
    before_parentheses.filter(|name| name.starts_with("nyala_")).collect()
}

#[test]
fn the_library_exports_what_the_header_declares() {
    let declared = declared();
    assert!(declared.len() > 30 && declared.contains("nyala_program_function"), "{declared:?}");
    let bytes = std::fs::read(crate::library()).expect("the library");
    let file = object::File::parse(&*bytes).expect("it is an object file");
    let exported = file.dynamic_symbols().filter(|s| s.is_definition() && s.is_global());
    let exported: BTreeSet<String> = exported.map(|s| s.name().expect("a name").to_string()).collect();
    assert_eq!(exported, declared);
}
