//! Files in every broken state: real programs, cut off and changed at random places, and everything asked at random
//! positions. Whatever the answers are, they come, and the server goes on. Separate from the sessions, which know what to
//! expect.

use super::client::Client;
use serde_json::{Value, json};

const PROGRAMS: [&str; 4] = [
    include_str!("../../../../../examples/01_power.impala"),
    include_str!("../../../../../examples/04_continuations.impala"),
    include_str!("../../../../../examples/11_traits.impala"),
    include_str!("../../../../../tests/run/language/defer_nested.impala"),
];

/// Pieces that are put in.
const PIECES: [&str; 14] =
    ["{", "}", "(", ")", ".", "::", "fn ", "let ", "\"", "/*", "use std::", "impl ", "|x|", "match x { "];

const QUESTIONS: [&str; 8] = [
    "textDocument/hover",
    "textDocument/definition",
    "textDocument/references",
    "textDocument/documentHighlight",
    "textDocument/prepareRename",
    "textDocument/signatureHelp",
    "textDocument/completion",
    "textDocument/rename",
];

/// Numbers that look random and are the same each time (xorshift64).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n.max(1) as u64) as usize
    }
}

fn boundary(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn garbled(text: &str, numbers: &mut Numbers) -> String {
    let at = boundary(text, numbers.below(text.len()));
    let end = boundary(text, (at + numbers.below(60)).min(text.len()));
    let piece = PIECES[numbers.below(PIECES.len())];
    match numbers.below(4) {
        0 => text[..at].to_string(),
        1 => text[..at].to_string() + &text[end.max(at)..],
        2 => text[..at].to_string() + piece + &text[at..],
        _ => text[..at].to_string() + piece + &text[end.max(at)..],
    }
}

fn survive(seed: u64, n: usize) {
    let mut numbers = Numbers(seed);
    let (mut client, file) = Client::with(PROGRAMS[0]);
    for i in 0..n {
        let mut text = PROGRAMS[i % PROGRAMS.len()].to_string();
        for _ in 0..=numbers.below(3) {
            text = garbled(&text, &mut numbers);
        }
        client.change(&file, 2 + i as i32, json!([{ "text": text }]));
        let place = |numbers: &mut Numbers| boundary(&text, numbers.below(text.len() + 1));
        // One question about the checked program, and one of each other kind now and then.
        for question in [QUESTIONS[i % 5], QUESTIONS[numbers.below(if i % 4 == 0 { 8 } else { 5 })]] {
            let mut params = client.place_at(&file, &text, place(&mut numbers));
            params["context"] = json!({ "includeDeclaration": true });
            params["newName"] = "other".into();
            let failed = client.ask(question, params).err();
            assert!(!failed.iter().any(|e| e.contains("has failed")), "seed {seed}, text {i}, {question}:\n{text}");
        }
        let whole = json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 9999, "character": 0 } });
        let document = json!({ "textDocument": { "uri": file.uri }, "range": whole, "options": { "tabSize": 4, "insertSpaces": true } });
        for question in ["documentSymbol", "inlayHint", "codeLens", "formatting"] {
            let failed = client.ask(&format!("textDocument/{question}"), document.clone()).err();
            assert!(failed.is_none(), "seed {seed}, text {i}, {question}: {failed:?}\n{text}");
        }
    }
    // It still knows a good program.
    client.change(&file, i32::MAX, json!([{ "text": PROGRAMS[0] }]));
    let hover = client.place(&file, PROGRAMS[0], "pow", 0);
    let _ = client.ask("textDocument/hover", hover).expect("an answer");
    assert_ne!(
        client.request("textDocument/documentSymbol", json!({ "textDocument": { "uri": file.uri } })),
        Value::Null
    );
    assert!(client.finish());
}

#[test]
fn files_in_broken_states() {
    survive(1, 60);
}

#[test]
#[ignore = "takes a minute: ./x test --all crates"]
fn files_in_many_broken_states() {
    survive(2, 1000);
}
