//! The grammars of `editors`: they know the compiler's words, and read every program that its parser accepts.

use crate::common::{root, skip};
use nyala_base::{Sink, Sources};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use tree_sitter::{Language, Node, Parser, Query};

/// The quoted words of a file between two texts.
fn table(file: &str, begin: &str, end: &str) -> BTreeSet<String> {
    let text = std::fs::read_to_string(root().join(file)).unwrap();
    let (_, rest) = text.split_once(begin).unwrap_or_else(|| panic!("{file} has no `{begin}`"));
    let (table, _) = rest.split_once(end).unwrap();
    let words: BTreeSet<String> = table.split('"').skip(1).step_by(2).map(str::to_string).collect();
    assert!(!words.is_empty(), "no words in {file}");
    words
}

fn is_word(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') && text.starts_with(|c: char| c.is_ascii_alphabetic())
}

fn keywords() -> BTreeSet<String> {
    table("crates/syntax/src/lexer.rs", "match &self.text[lo..self.pos] {", "_ => Ident")
}

/// The words that are names in most places.
fn other_words() -> BTreeSet<String> {
    let mut words = table("crates/syntax/src/parser/exprs.rs", "fn mark(", "_ => None");
    words.extend(table("crates/syntax/src/parser/types.rs", "ADDRESS_SPACES: [&str; 5] = ", ";"));
    words.extend(["const", "defer", "restrict", "use"].map(String::from));
    words
}

fn types() -> BTreeSet<String> {
    let mut types = table("crates/sema/src/check/collect.rs", "pub(super) fn primitive(", "_ =>");
    let prims = ["bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "f32", "f64"];
    for prim in prims {
        assert!(nyala_ir::Prim::from_name(prim).is_some(), "there is no `{prim}`");
        types.insert(prim.into());
    }
    types
}

/// The intrinsics that programs call by their own names.
fn intrinsics() -> BTreeSet<String> {
    let names = table("crates/sema/src/intrinsics.rs", "pub fn find(", "_ => {");
    names.into_iter().filter(|name| is_word(name)).collect()
}

/// The words of a grammar in `editors` as text: those of `\b(?:a|b)\b`, and others between word boundaries.
fn words_of_expressions(text: &str) -> BTreeSet<String> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|w| is_word(w)).map(str::to_string).collect()
}

fn language() -> Language {
    Language::new(tree_sitter_impala::LANGUAGE)
}

#[test]
fn tree_sitter_knows_the_words() {
    let known: BTreeSet<String> = keywords().union(&other_words()).cloned().collect();
    let grammar = std::fs::read_to_string(root().join("editors/tree-sitter-impala/grammar.js")).unwrap();
    let quoted: BTreeSet<&str> = grammar.split('"').skip(1).step_by(2).collect();
    let missing: Vec<&String> = known.iter().filter(|w| !quoted.contains(&***w)).collect();
    // It has no meaning yet: a program with it is refused.
    assert_eq!(missing, ["do"], "these words are missing in grammar.js");
    let language = language();
    let n_kinds = language.node_kind_count() as u16;
    let is_visible = |kind: &u16| language.node_kind_is_visible(*kind) && !language.node_kind_is_named(*kind);
    let kinds = (0..n_kinds).filter(is_visible);
    let words: Vec<&str> = kinds.filter_map(|kind| language.node_kind_for_id(kind)).filter(|w| is_word(w)).collect();
    assert!(words.len() > 20, "{words:?}");
    let unknown: Vec<&&str> = words.iter().filter(|w| !known.contains(**w)).collect();
    assert!(unknown.is_empty(), "the compiler does not know these words of the grammar: {unknown:?}");
}

#[test]
fn queries_fit_the_grammar_and_the_words() {
    let queries = [
        tree_sitter_impala::HIGHLIGHTS,
        tree_sitter_impala::FOLDS,
        tree_sitter_impala::INDENTS,
        tree_sitter_impala::LOCALS,
    ];
    for query in queries {
        let query = Query::new(&language(), query).unwrap_or_else(|e| panic!("{e}"));
        assert!(query.pattern_count() > 0);
    }
    let highlighted = words_of_expressions(tree_sitter_impala::HIGHLIGHTS);
    let missing: Vec<String> = types().union(&intrinsics()).filter(|w| !highlighted.contains(*w)).cloned().collect();
    assert!(missing.is_empty(), "queries/highlights.scm lacks {missing:?}");
}

#[test]
fn text_mate_knows_the_words() {
    let path = root().join("editors/vscode/syntaxes/impala.tmLanguage.json");
    let grammar: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let expressions = |part: &str| -> BTreeSet<String> {
        let patterns = grammar["repository"][part]["patterns"].as_array().unwrap();
        let texts = patterns.iter().filter_map(|p| p["match"].as_str());
        texts.flat_map(|text| words_of_expressions(&text.replace("\\b", " ").replace("\\s", " "))).collect()
    };
    let words = expressions("words");
    let mut known: BTreeSet<String> = keywords();
    known.extend(types());
    known.extend(intrinsics());
    let missing: Vec<&String> = known.difference(&words).collect();
    assert!(missing.is_empty(), "impala.tmLanguage.json lacks {missing:?}");
    known.extend(["break", "continue", "return", "self", "super"].map(String::from));
    let unknown: Vec<&String> = words.difference(&known).collect();
    assert!(unknown.is_empty(), "the compiler does not know {unknown:?}");
    let rest: BTreeSet<String> = expressions("declarations").union(&expressions("annotations")).cloned().collect();
    let missing: Vec<String> = other_words().difference(&rest).cloned().collect();
    assert!(missing.is_empty(), "impala.tmLanguage.json lacks {missing:?}");
}

/// The first node that is an error, or stands for a token that is missing.
fn first_error(root: Node) -> Option<Node> {
    let mut work = vec![root];
    while let Some(node) = work.pop() {
        if node.is_error() || node.is_missing() {
            return Some(node);
        }
        if node.has_error() {
            work.extend((0..node.child_count()).rev().filter_map(|i| node.child(i)));
        }
    }
    None
}

fn programs(folder: &Path, out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("node_modules") {
            programs(&path, out);
        } else if path.extension().is_some_and(|e| e == "impala") {
            out.push(path);
        }
    }
}

#[test]
fn every_program_has_a_tree_without_errors() {
    let mut paths = Vec::new();
    for folder in ["bench", "crates", "docs", "editors", "examples", "lib", "tests"] {
        programs(&root().join(folder), &mut paths);
    }
    let mut parser = Parser::new();
    parser.set_language(&language()).unwrap();
    let mut accepted = 0;
    for path in paths {
        // Some files of `tests/ui` are no text.
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        let mut sources = Sources::new();
        let file = sources.add("program", text.clone());
        let mut sink = Sink::default();
        nyala_syntax::parse(file, &text, &mut sink);
        if sink.has_errors() {
            continue;
        }
        accepted += 1;
        let tree = parser.parse(&text, None).unwrap();
        if let Some(node) = first_error(tree.root_node()) {
            let line = node.start_position().row;
            panic!("{}:{}: {:?}", path.display(), line + 1, text.lines().nth(line));
        }
    }
    assert!(accepted > 700, "only {accepted} programs");
}

/// The tree of a function's body, as text without fields.
fn body(text: &str) -> String {
    let mut parser = Parser::new();
    parser.set_language(&language()).unwrap();
    let text = format!("fn f() -> () {{ {text} }}");
    let tree = parser.parse(&text, None).unwrap();
    let block = tree.root_node().child(0).unwrap().child_by_field_name("body").unwrap();
    let mut out = block.to_sexp();
    for field in
        ["left", "right", "operator", "function", "arguments", "condition", "then", "body", "loop", "value", "pattern"]
    {
        out = out.replace(&format!("{field}: "), "");
    }
    out.replace("(path (identifier))", "x")
}

#[test]
fn rules_that_no_grammar_says() {
    for (text, expected) in [
        (
            "if c { f() } (g)()",
            "(block (expression_statement (if x (block (call x (arguments))))) (call (tuple x) (arguments)))",
        ),
        (
            "let x = 1 + if c { 2 } else { 3 } * 4;",
            "(block (let (identifier) (binary (int_literal) (binary (if x (block (int_literal)) else: (block (int_literal))) (int_literal)))))",
        ),
        ("while a { b; }", "(block (expression_statement (while x (block (expression_statement x)))))"),
        ("if a {} f(x)", "(block (expression_statement (if x (block))) (call x (arguments x)))"),
        (
            "let v = P { x: 1 };",
            "(block (let (identifier) (struct_value x (field_value name: (identifier) (int_literal)))))",
        ),
        (
            "let v = P { x: 1, ..q };",
            "(block (let (identifier) (struct_value x (field_value name: (identifier) (int_literal)) (base_value x))))",
        ),
        (
            "if P { x: 1 }.x == y { }",
            "(block (expression_statement (if (binary (field_access (struct_value x (field_value name: (identifier) (int_literal))) name: (identifier)) (operator) x) (block))))",
        ),
        (
            "match e { A => { 1 } (a, b) => 2, }",
            "(block (expression_statement (match x (arm (identifier) (block (int_literal))) (arm (tuple_pattern (identifier) (identifier)) (int_literal)))))",
        ),
        ("@(c) |x| x", "(block (lambda (filter x) (lambda_param (identifier)) x))"),
        ("@(c)(x)", "(block (run (call (tuple x) (arguments x))))"),
        ("|a||b| a", "(block (lambda (lambda_param (identifier)) (lambda (lambda_param (identifier)) x)))"),
        ("@fast { 1 } x", "(block (expression_statement (marked (block (int_literal)))) x)"),
        ("1.max(2) + 1..x", "(block (ERROR"),
        (
            "for i in r(0, n) @ { }",
            "(block (expression_statement (for (lambda_param (identifier)) (call x (arguments (int_literal) x)) (filter) (block))))",
        ),
        (
            "a = -b as i32 + $c * 2;",
            "(block (expression_statement (assignment place: x (binary (cast (unary x) type: x) (halt (binary x (int_literal)))))))",
        ),
    ] {
        let found = body(text);
        assert!(
            if expected.ends_with("ERROR") { found.contains("ERROR") } else { found == expected },
            "{text}\n{found}\n{expected}"
        );
    }
}

#[test]
#[ignore = "needs tree-sitter's command: ./x test --all crates"]
fn parser_is_generated_from_the_grammar() {
    let folder = root().join("editors/tree-sitter-impala");
    let copy = tempfile::tempdir().unwrap();
    for name in ["grammar.js", "tree-sitter.json"] {
        std::fs::copy(folder.join(name), copy.path().join(name)).unwrap();
    }
    let output = Command::new("tree-sitter").args(["generate", "--abi", "14"]).current_dir(copy.path()).output();
    let Ok(output) = output else {
        return skip("tree-sitter");
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = |folder: &Path| std::fs::read_to_string(folder.join("src/parser.c")).unwrap();
    assert!(text(&folder) == text(copy.path()), "generate src/parser.c again: editors/tree-sitter-impala/README.md");
}

#[test]
#[ignore = "needs Node.js and the modules of editors/vscode: ./x test --all crates"]
fn text_mate_reads_every_program() {
    let folder = root().join("editors/vscode");
    if !folder.join("node_modules").exists() {
        return skip("folder editors/vscode/node_modules, which `npm install` makes");
    }
    let output = Command::new("npm").arg("test").current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}
