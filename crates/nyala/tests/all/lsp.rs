//! The language server, asked by a scripted client: over the streams of a process, and in this one. Separate from unit tests of
//! its parts, since what counts is what a client sees. A client waits for messages, never for time.

mod client;
mod editor;
mod garbled;

use client::{Client, Folder, labels, text_of};
use serde_json::{Value, json};

const PROGRAM: &str = "\
// A pair.
struct Pair { first: i32, second: f32 }

impl Pair {
    // Its sum.
    fn sum(self: &Pair) -> f32 { self.first as f32 + self.second }
}

// The power of a number.
fn @(?n) pow(x: i32, n: i32) -> i32 {
    if n == 0 { 1 } else { x * pow(x, n - 1) }
}

extern fn pow5(x: i32) -> i32 { pow(x, 5) }

fn main() -> i32 {
    let pair = Pair { first: 1, second: 2f };
    let x = \"𝑥\"; let total = pair.sum();
    print_f32(total);
    pow5(2) + x(0) as i32
}
";

#[test]
fn a_session_over_the_streams_of_a_process() {
    let folder = Folder::new();
    let file = folder.write("main.impala", "fn main() -> i32 { 0 }");
    let mut client = Client::process(folder);
    let info = client.initialize();
    assert_eq!(info["capabilities"]["positionEncoding"], "utf-16");
    client.open(&file, "fn main() -> i32 { true }");
    let found = client.diagnostics(&file);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0]["code"], "type-mismatch");
    assert_eq!(found[0]["range"]["start"], json!({ "line": 0, "character": 19 }));
    // The unsaved text counts, an edit of a part of it, too.
    let all = json!({ "start": { "line": 0, "character": 19 }, "end": { "line": 0, "character": 23 } });
    client.change(&file, 2, json!([{ "range": all, "text": "1" }]));
    assert_eq!(client.diagnostics(&file), Vec::<Value>::new());
    assert!(client.finish(), "the exit code is 0");
}

#[test]
fn a_client_that_vanishes_ends_the_server() {
    let folder = Folder::new();
    let mut client = Client::process(folder);
    client.initialize();
    assert!(!client.vanish(), "the exit code says that no shutdown was asked for");
}

#[test]
fn hover_tells_types_and_comments() {
    let (mut client, file) = Client::with(PROGRAM);
    let hover = |client: &mut Client, what: &str, nth: usize| {
        let place = client.place(&file, PROGRAM, what, nth);
        text_of(&client.request("textDocument/hover", place)["contents"])
    };
    assert_eq!(hover(&mut client, "pair.sum", 0), "```impala\nlet pair: Pair\n```");
    let method = hover(&mut client, "sum();", 0);
    assert!(method.contains("fn sum(self: &Pair) -> f32"), "{method}");
    assert!(method.contains("Its sum."), "{method}");
    let function = hover(&mut client, "pow(x, 5)", 0);
    assert!(function.contains("fn @(?n) pow(x: i32, n: i32) -> i32"), "{function}");
    assert!(function.contains("The power of a number."), "{function}");
    assert!(hover(&mut client, "first as", 0).contains("first: i32"));
    // Behind a character of two units of UTF-16.
    assert!(hover(&mut client, "total = ", 0).contains("let total: f32"));
    let prelude = hover(&mut client, "print_f32", 0);
    assert!(prelude.contains("print_f32(f32)"), "{prelude}");
    let literal = hover(&mut client, "5)", 0);
    // What partial evaluation says may have come by now.
    assert!(literal.starts_with("```impala\ni32\n```"), "{literal}");
    client.finish();
}

#[test]
fn definitions_and_references() {
    // A process, since embedded libraries are written to the user's cache.
    let mut client = Client::process(Folder::new());
    client.initialize();
    let file = client.open_new("main.impala", PROGRAM);
    let go = client.place(&file, PROGRAM, "sum();", 0);
    let found = client.request("textDocument/definition", go);
    assert_eq!(found["range"]["start"], json!({ "line": 5, "character": 7 }));
    // In a library that is embedded: a file that exists.
    let go = client.place(&file, PROGRAM, "print_f32", 0);
    let found = client.request("textDocument/definition", go);
    let path = found["uri"].as_str().expect("a file").strip_prefix("file://").expect("a file").to_string();
    let text = std::fs::read_to_string(&path).expect("it is there");
    let line = found["range"]["start"]["line"].as_u64().expect("a line") as usize;
    assert!(text.lines().nth(line).expect("a line").contains("print_f32"));
    // Declared, called by itself, called by `pow5`.
    let mut params = client.place(&file, PROGRAM, "pow(x, 5)", 0);
    params["context"] = json!({ "includeDeclaration": true });
    let lines = |found: Value| -> Vec<u64> {
        found
            .as_array()
            .expect("places")
            .iter()
            .map(|p| p["range"]["start"]["line"].as_u64().expect("a line"))
            .collect()
    };
    assert_eq!(lines(client.request("textDocument/references", params.clone())), [9, 10, 13]);
    params["context"] = json!({ "includeDeclaration": false });
    assert_eq!(lines(client.request("textDocument/references", params)), [10, 13]);
    let params = client.place(&file, PROGRAM, "first:", 0);
    assert_eq!(lines(client.request("textDocument/documentHighlight", params)), [1, 5, 16]);
    client.finish();
}

#[test]
fn outlines() {
    let (mut client, file) = Client::with(PROGRAM);
    let found = client.request("textDocument/documentSymbol", json!({ "textDocument": { "uri": file.uri } }));
    let names = |of: &Value| -> Vec<String> {
        of.as_array().into_iter().flatten().map(|s| s["name"].as_str().expect("a name").to_string()).collect()
    };
    assert_eq!(names(&found), ["Pair", "impl Pair", "pow", "pow5", "main"]);
    assert_eq!(names(&found[0]["children"]), ["first", "second"]);
    assert_eq!(names(&found[1]["children"]), ["sum"]);
    client.finish();
}

/// What is offered where `|` stands.
fn completed(client: &mut Client, name: &str, text: &str) -> Vec<String> {
    let at = text.find('|').expect("a place");
    let text = text.replacen('|', "", 1);
    let file = client.open_new(name, &text);
    let place = client.place_at(&file, &text, at);
    labels(&client.request("textDocument/completion", place))
}

#[test]
fn completion_in_unfinished_code() {
    let (mut client, _) = Client::with(PROGRAM);
    let types = "struct S { alpha: i32 }\nimpl S { fn beta(self: &S) -> i32 { 1 } fn gamma() -> S { S { alpha: 1 } } }\nenum E { One, Two(i32) }\n";
    let with = |code: &str| format!("{types}{code}");
    let members = completed(&mut client, "a.impala", &with("fn f(s: &S) -> i32 { s.| }"));
    assert_eq!(members, ["alpha", "beta"]);
    let members =
        completed(&mut client, "b.impala", &with("fn f(s: S) -> i32 {\n    let x = s.|\n    let y = 1;\n    y\n}"));
    assert_eq!(members, ["alpha", "beta"]);
    let members = completed(&mut client, "c.impala", &with("fn f(s: S) -> i32 {\n    print_i32(s.al|\n    1\n}"));
    assert_eq!(members, ["alpha", "beta"]);
    let members = completed(&mut client, "d.impala", &with("fn f() -> S { S::| }"));
    assert!(members.contains(&"gamma".into()), "{members:?}");
    let options = completed(&mut client, "e.impala", &with("fn f() -> E { E::| }"));
    assert_eq!(options, ["One", "Two"]);
    let names = completed(
        &mut client,
        "f.impala",
        &with(
            "fn f(outer: i32) -> i32 {\n    let inner = 1;\n    for i in range(0, 1) { | }\n    let later = 2;\n    1\n}",
        ),
    );
    for name in ["outer", "inner", "i", "f", "S", "E", "print_i32", "while"] {
        assert!(names.contains(&name.into()), "{name} in {names:?}");
    }
    assert!(!names.contains(&"later".into()));
    let hidden = "mod m {\n    struct T { priv alpha: i32, delta: i32 }\n    impl T {\n        priv fn beta(self: &T) -> i32 { 1 }\n        \
                  fn gamma(self: &T) -> i32 { 1 }\n        priv fn make() -> T { T { alpha: 1, delta: 2 } }\n    }\n    INSIDE\n}\n";
    let outside = |code: &str| hidden.replace("INSIDE", "") + code;
    let members = completed(&mut client, "i.impala", &outside("fn f(t: &m::T) -> i32 { t.| }"));
    assert_eq!(members, ["delta", "gamma"]);
    let members = completed(&mut client, "j.impala", &outside("fn f() -> i32 { m::T::| }"));
    assert_eq!(members, ["gamma"]);
    let members = completed(&mut client, "k.impala", &hidden.replace("INSIDE", "fn f(t: &T) -> i32 { t.| }"));
    assert_eq!(members, ["alpha", "delta", "beta", "gamma"]);
    let members = completed(&mut client, "l.impala", &hidden.replace("INSIDE", "fn f() -> i32 { T::| }"));
    assert_eq!(members, ["beta", "gamma", "make"]);
    let bounded = "trait Shape { fn area(Self) -> f32; }\nstruct Disc { r: f32 }\nimpl Shape for Disc { fn area(d: Disc) -> f32 { d.r } }\n\
                   struct Of[T] { part: T }\nimpl[T: Shape] Of[T] { fn of_shape(self: &Of[T]) -> i32 { 1 } }\n\
                   impl[T: Num] Of[T] { fn of_number(self: &Of[T]) -> i32 { 1 } }\nimpl Of[bool] { fn of_bool(self: &Of[bool]) -> i32 { 1 } }\n\
                   trait Named { fn name(&Self) -> i32; }\nimpl[T: Shape] Named for Of[T] { fn name(s: &Of[T]) -> i32 { 1 } }\n";
    let of_type = |ty: &str| format!("{bounded}fn f(x: &Of[{ty}]) -> i32 {{ x.| }}");
    let members = completed(&mut client, "m.impala", &of_type("Disc"));
    assert_eq!(members, ["part", "of_shape", "name"]);
    assert_eq!(completed(&mut client, "n.impala", &of_type("i32")), ["part", "of_number"]);
    assert_eq!(completed(&mut client, "o.impala", &of_type("bool")), ["part", "of_bool"]);
    assert_eq!(completed(&mut client, "p.impala", &of_type("Of[Disc]")), ["part"]);
    let libraries = completed(&mut client, "g.impala", "use std::|\nfn main() -> i32 { 0 }");
    assert!(libraries.contains(&"text".into()) && libraries.contains(&"sort".into()), "{libraries:?}");
    assert_eq!(completed(&mut client, "h.impala", "// a.|"), Vec::<String>::new());
    client.finish();
}

#[test]
fn signature_help_counts_arguments() {
    let (mut client, _) = Client::with(PROGRAM);
    let text = "fn add(first: i32, second: i32) -> i32 { first + second }\nfn f() -> i32 {\n    add(1, \n}\n";
    let file = client.open_new("a.impala", text);
    let place = client.place_at(&file, text, text.find("1, ").expect("is there") + 3);
    let help = client.request("textDocument/signatureHelp", place);
    assert_eq!(help["signatures"][0]["label"], "add(first: i32, second: i32) -> i32");
    assert_eq!(help["activeParameter"], 1);
    client.finish();
}

#[test]
fn renaming_changes_all_places_or_nothing() {
    let (mut client, file) = Client::with(PROGRAM);
    let rename = |client: &mut Client, what: &str, new: &str| {
        let mut params = client.place(&file, PROGRAM, what, 0);
        params["newName"] = new.into();
        client.ask("textDocument/rename", params)
    };
    let edit = rename(&mut client, "first:", "begin").expect("an edit");
    let lines: Vec<u64> = edit["changes"][&file.uri]
        .as_array()
        .expect("edits")
        .iter()
        .map(|e| e["range"]["start"]["line"].as_u64().expect("a line"))
        .collect();
    assert_eq!(lines, [1, 5, 16]);
    // It would be another one's name, is a keyword, belongs to the prelude.
    assert!(rename(&mut client, "first:", "second").is_err());
    assert!(rename(&mut client, "pair =", "while").is_err());
    assert!(rename(&mut client, "print_f32", "put").is_err());
    assert!(rename(&mut client, "pow5(x", "main").is_err());
    // Its use would mean the variable that follows it.
    assert!(rename(&mut client, "x = \"", "total").is_err());
    client.finish();
}

#[test]
fn renaming_a_module_renames_its_file() {
    let folder = Folder::new();
    let text = "mod part;\nmod inline { fn f() -> i32 { super::part::value() } }\nmod deep { mod far; }\n\
                use part::value;\nfn main() -> i32 { value() + part::value() + inline::f() + deep::far::g() }\n";
    let main = folder.write("main.impala", text);
    let part_text = "fn value() -> i32 { super::part::other() }\nfn other() -> i32 { 1 }\n";
    let part = folder.write("part.impala", part_text);
    folder.write("taken.impala", "fn f() -> i32 { 1 }\n");
    folder.write("deep/far.impala", "fn g() -> i32 { 1 }\n");
    let mut client = Client::memory(folder);
    client.initialize();
    client.open(&main, text);
    client.open(&part, part_text);
    assert_eq!(client.diagnostics(&main), Vec::<Value>::new());
    let mut rename = |what: &str, new: &str| {
        let mut params = client.place(&main, text, what, 0);
        params["newName"] = new.into();
        client.ask("textDocument/rename", params)
    };
    let edit = rename("part::value() }", "piece").expect("an edit");
    let changes = edit["documentChanges"].as_array().expect("changes");
    let n = |file: &client::File| {
        let of = changes.iter().find(|c| c["textDocument"]["uri"] == file.uri.as_str());
        of.and_then(|c| c["edits"].as_array()).map_or(0, Vec::len)
    };
    assert_eq!([n(&main), n(&part)], [4, 1], "{edit}");
    let last = changes.last().expect("a change");
    assert_eq!(last["kind"], "rename");
    assert_eq!(last["oldUri"], part.uri.as_str());
    assert_eq!(last["newUri"], part.uri.replace("part.impala", "piece.impala"));
    // A module in the file.
    let edit = rename("inline {", "inner").expect("an edit");
    assert_eq!(edit["changes"][&main.uri].as_array().map(Vec::len), Some(2), "{edit}");
    let why = rename("part;", "taken").expect_err("a file has the name");
    assert!(why.contains("exists"), "{why}");
    let why = rename("part;", "inline").expect_err("a module has the name");
    assert!(why.contains("the program would have an error"), "{why}");
    let why = rename("deep {", "depth").expect_err("it has a folder");
    assert!(why.contains("a folder of its name"), "{why}");
    client.finish();
}

#[test]
fn a_file_is_renamed_only_if_the_editor_can() {
    let folder = Folder::new();
    let text = "mod part;\nfn main() -> i32 { part::value() }\n";
    let main = folder.write("main.impala", text);
    folder.write("part.impala", "fn value() -> i32 { 1 }\n");
    let mut client = Client::memory(folder);
    client.initialize_with(json!({}));
    client.open(&main, text);
    let mut params = client.place(&main, text, "part;", 0);
    params["newName"] = "piece".into();
    let why = client.ask("textDocument/rename", params).expect_err("it can't");
    assert!(why.contains("cannot rename"), "{why}");
    client.finish();
}

#[test]
fn renaming_reaches_all_programs_of_a_package() {
    let folder = Folder::new();
    folder.write("nyala.toml", "[package]\nname = \"demo\"\n");
    let library = "fn @twice(x: i32) -> i32 { 2 * x }\n";
    let table = folder.write("src/demo/table.impala", library);
    let main = "use demo::table::*;\nfn main() -> i32 { twice(3) }\n";
    let main_file = folder.write("src/main.impala", main);
    let test = folder.write("tests/table.impala", "use demo::table::*;\n//? f() == 2\nfn f() -> i32 { twice(1) }\n");
    let other = folder.write("tests/other.impala", "fn twice(x: i32) -> i32 { x }\nfn f() -> i32 { twice(1) }\n");
    let mut client = Client::process(folder);
    client.initialize();
    let mut rename = |file: &client::File, text: &str, new: &str| {
        client.open(file, text);
        let mut params = client.place(file, text, "twice(", 0);
        params["newName"] = new.into();
        client.ask("textDocument/rename", params)
    };
    for (file, text) in [(&table, library), (&main_file, main)] {
        let edit = rename(file, text, "double").expect("an edit");
        let n = |file: &client::File| edit["changes"][&file.uri].as_array().map_or(0, Vec::len);
        assert_eq!([&table, &main_file, &test, &other].map(n), [1, 1, 1, 0], "{edit}");
    }
    // The test has a function of this name.
    assert!(rename(&table, library, "f").is_err());
    assert!(client.finish(), "the exit code is 0");
}

#[test]
fn formatting_is_that_of_the_command() {
    let (mut client, _) = Client::with(PROGRAM);
    let text = "fn main()->i32{\n0\n}\n";
    let file = client.open_new("a.impala", text);
    let params = json!({ "textDocument": { "uri": file.uri }, "options": { "tabSize": 4, "insertSpaces": true } });
    let edits = client.request("textDocument/formatting", params);
    assert_eq!(edits[0]["newText"], "fn main() -> i32 {\n    0\n");
    client.finish();
}

#[test]
fn hints_show_types_that_are_left_out() {
    let (mut client, file) = Client::with(PROGRAM);
    let whole = json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 99, "character": 0 } });
    let params = json!({ "textDocument": { "uri": file.uri }, "range": whole });
    let hints = client.request("textDocument/inlayHint", params);
    let labels: Vec<&str> = hints.as_array().expect("hints").iter().filter_map(|h| h["label"].as_str()).collect();
    assert!(labels.contains(&": Pair") && labels.contains(&": f32"), "{labels:?}");
    client.finish();
}

#[test]
fn partial_evaluation_follows_in_the_background() {
    let (mut client, file) = Client::with(PROGRAM);
    client.wait_for("$/nyala/evaluated");
    let hover = |client: &mut Client, text: &str| {
        let place = client.place(&file, text, "pow(x, 5)", 0);
        text_of(&client.request("textDocument/hover", place)["contents"])
    };
    let told = hover(&mut client, PROGRAM);
    assert!(told.contains("**partial evaluation**"), "{told}");
    assert!(told.contains("unfolded once: filter `?n` holds"), "{told}");
    let lenses = client.request("textDocument/codeLens", json!({ "textDocument": { "uri": file.uri } }));
    let lens = lenses.as_array().expect("lenses").iter().find(|l| l["command"]["arguments"][1] == "pow5").expect("one");
    let shown = client.request(
        "workspace/executeCommand",
        json!({ "command": lens["command"]["command"], "arguments": lens["command"]["arguments"] }),
    );
    assert!(shown["text"].as_str().expect("a text").contains("pow5"), "{shown}");
    // With an error there is nothing new; lines above still tell what was.
    let broken = PROGRAM.replace("    pow5(2)", "\n    pow5(true)");
    client.change(&file, 2, json!([{ "text": broken }]));
    let told = hover(&mut client, &broken);
    assert!(told.contains("**partial evaluation** (of an earlier text)"), "{told}");
    // A function that is not there.
    let missing = json!({ "command": "nyala.showResidual", "arguments": [file.uri, "nothing"] });
    assert!(client.ask("workspace/executeCommand", missing).is_err());
    client.finish();
}

#[test]
fn edits_end_an_evaluation() {
    // It would take minutes.
    let endless =
        "fn @f(n: i32) -> i32 { f(n + 1) }\nextern fn g(n: i32) -> i32 { f(n) }\nextern fn h() -> i32 { f(0) }\n";
    let (mut client, file) = Client::with(endless);
    let text = "extern fn g(n: i32) -> i32 { n }\n";
    client.change(&file, 2, json!([{ "text": text }]));
    assert_eq!(client.diagnostics(&file), Vec::<Value>::new());
    client.wait_for("$/nyala/evaluated");
    client.change(&file, 3, json!([{ "text": endless }]));
    assert_eq!(client.diagnostics(&file), Vec::<Value>::new());
    // The end of the session ends it, too.
    client.finish();
}

#[test]
fn files_of_a_program_are_checked_with_it() {
    let folder = Folder::new();
    let main = folder.write("main.impala", "mod part;\nfn main() -> i32 { part::value() }\n");
    let part = folder.write("part.impala", "fn value() -> i32 { super::other() }\n");
    let mut client = Client::memory(folder);
    client.initialize();
    // The part alone leads to its program, where its name is missing.
    client.open(&part, "fn value() -> i32 { super::other() }\n");
    let found = client.diagnostics(&part);
    assert_eq!(found.len(), 1, "{found:?}");
    client.open(&main, "mod part;\nfn other() -> i32 { 1 }\nfn main() -> i32 { part::value() }\n");
    assert_eq!(client.diagnostics(&part), Vec::<Value>::new());
    let place =
        client.place(&main, "mod part;\nfn other() -> i32 { 1 }\nfn main() -> i32 { part::value() }\n", "value", 0);
    let found = client.request("textDocument/definition", place);
    assert_eq!(found["uri"], part.uri);
    client.finish();
}

/// Diagnostics of grammar, names and types, and of staging; what names mean, also beside a fault.
#[test]
fn programs_in_deepcps_and_staged_c() {
    let text = "struct P { float x; int n; };\nint late(struct P p) { return twice(p.n); }\nint twice(int n) { return n * 2; }\n";
    let mut client = Client::memory(Folder::new());
    client.initialize();
    let file = client.open_new("late.stagedc", text);
    let hover = client.place(&file, text, "twice(p", 0);
    assert_eq!(text_of(&client.request("textDocument/hover", hover.clone())["contents"]), "```c\nint twice(int)\n```");
    let found = client.request("textDocument/definition", hover.clone());
    assert_eq!(found["range"]["start"], json!({ "line": 2, "character": 4 }));
    let place = client.place(&file, text, "p.n", 0);
    assert_eq!(text_of(&client.request("textDocument/hover", place)["contents"]), "```c\nstruct P p\n```");
    let mut params = hover;
    params["context"] = json!({ "includeDeclaration": true });
    assert_eq!(client.request("textDocument/references", params).as_array().map(Vec::len), Some(2));
    assert_eq!(
        client.request(
            "textDocument/formatting",
            json!({ "textDocument": { "uri": file.uri }, "options": { "tabSize": 4, "insertSpaces": true } })
        ),
        json!([])
    );
    let text = text.replace("n * 2", "m * 2");
    client.change(&file, 2, json!([{ "text": text }]));
    assert_eq!(client.diagnostics(&file)[0]["code"], "staging-name");
    let place = client.place(&file, &text, "twice(p", 0);
    assert_eq!(client.request("textDocument/definition", place)["range"]["start"]["line"], 2);
    let text = "let f (int n, fn[int] k) {\n  n + 1 (m)\n  k m\n}\n";
    let file = client.open_new("f.deepcps", text);
    let place = client.place(&file, text, "k m", 0);
    assert_eq!(text_of(&client.request("textDocument/hover", place.clone())["contents"]), "```c\nfn[int] k\n```");
    let found = client.request("textDocument/definition", place);
    assert_eq!(found["range"]["start"], json!({ "line": 0, "character": 22 }));
    // Found by evaluation, in the background.
    let text = text.replace("  n + 1", "  @always: n + 1");
    client.change(&file, 2, json!([{ "text": text }]));
    let mut found = client.diagnostics(&file);
    while found.is_empty() {
        found = client.diagnostics(&file);
    }
    assert_eq!(found[0]["code"], "stuck-body");
    client.finish();
}

#[test]
fn what_is_canceled_or_unknown_is_answered() {
    let (mut client, file) = Client::with(PROGRAM);
    assert!(client.ask("textDocument/unknown", json!({})).is_err());
    assert!(client.ask("textDocument/hover", json!({ "textDocument": { "uri": file.uri } })).is_err());
    let missing = json!({ "textDocument": { "uri": "untitled:a" }, "position": { "line": 0, "character": 0 } });
    assert!(client.ask("textDocument/hover", missing).is_err());
    client.finish();
}
