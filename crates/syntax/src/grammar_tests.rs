//! Tests that the grammar in `docs/reference/grammar.md` is the parser's: the rules of that page derive every program
//! that the parser accepts. They are apart from other tests because they read the page and the programs, and derive with
//! an algorithm that works for any rules, Earley's.

use crate::lexer::{Tok, lex};
use nyala_base::{Sink, Sources};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The rules by number. Each has alternatives, which are lists of symbols.
#[derive(Default)]
struct Grammar {
    names: BTreeMap<String, usize>,
    rules: Vec<Vec<Vec<Symbol>>>,
    /// Whether a rule derives the empty text.
    empty: Vec<bool>,
    /// For each alternative of each rule, the words and tokens that what it derives may begin with.
    first: Vec<Vec<Vec<Symbol>>>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Symbol {
    Rule(usize),
    /// A word or operator as written.
    Text(String),
    Token(Tok),
}

impl Symbol {
    fn word(&self) -> Option<&str> {
        match self {
            Symbol::Text(text) => Some(text),
            _ => None,
        }
    }
}

impl Grammar {
    /// Reads the rules of a page: those in its block of the language `ebnf`.
    fn read(page: &str) -> Grammar {
        let block = page.split("```ebnf\n").nth(1).and_then(|b| b.split("```").next()).expect("a block of rules");
        // A rule goes on in lines that begin with blanks.
        let block = block.replace("\n  ", "   ");
        let lines: Vec<(&str, &str)> = block.lines().filter_map(|l| l.split_once(" = ")).collect();
        let mut grammar = Grammar::default();
        for (name, _) in &lines {
            let rule = grammar.fresh(Vec::new());
            assert_eq!(grammar.names.insert(name.trim().into(), rule), None, "two rules `{name}`");
        }
        for (name, text) in &lines {
            let words: Vec<&str> = text.split_whitespace().collect();
            let mut at = 0;
            let alternatives = grammar.alternatives(&words, &mut at);
            assert_eq!(at, words.len(), "`{name}` has a bracket too many");
            let rule = grammar.names[name.trim()];
            grammar.rules[rule] = alternatives;
        }
        grammar.find_empty();
        grammar.find_first();
        grammar
    }

    fn fresh(&mut self, alternatives: Vec<Vec<Symbol>>) -> usize {
        self.rules.push(alternatives);
        self.rules.len() - 1
    }

    /// Reads alternatives up to a closing bracket or the end.
    fn alternatives(&mut self, words: &[&str], at: &mut usize) -> Vec<Vec<Symbol>> {
        let mut out = vec![Vec::new()];
        while let Some(&word) = words.get(*at) {
            if matches!(word, ")" | "]" | "}") {
                break;
            }
            *at += 1;
            let symbol = match word {
                "|" => {
                    out.push(Vec::new());
                    continue;
                }
                "(" | "[" | "{" => {
                    let mut inner = self.alternatives(words, at);
                    *at += 1;
                    let rule = self.fresh(Vec::new());
                    if word == "{" {
                        // `{ x }` is nothing, or one more `x` after some.
                        inner.iter_mut().for_each(|x| x.insert(0, Symbol::Rule(rule)));
                    }
                    if word != "(" {
                        inner.push(Vec::new());
                    }
                    self.rules[rule] = inner;
                    Symbol::Rule(rule)
                }
                "NAME" => Symbol::Token(Tok::Ident),
                "INT" => Symbol::Token(Tok::Int),
                "FLOAT" => Symbol::Token(Tok::Float),
                "CHAR" => Symbol::Token(Tok::Char),
                "STRING" => Symbol::Token(Tok::Str),
                _ => match word.strip_prefix('"').and_then(|w| w.strip_suffix('"')) {
                    Some(text) => Symbol::Text(text.into()),
                    None => Symbol::Rule(*self.names.get(word).unwrap_or_else(|| panic!("no rule `{word}`"))),
                },
            };
            out.last_mut().expect("an alternative").push(symbol);
        }
        out
    }

    fn find_empty(&mut self) {
        self.empty = vec![false; self.rules.len()];
        loop {
            let is_empty = |s: &Symbol| matches!(s, Symbol::Rule(r) if self.empty[*r]);
            let new = self.rules.iter().map(|r| r.iter().any(|a| a.iter().all(is_empty))).collect();
            if self.empty == new {
                return;
            }
            self.empty = new;
        }
    }

    fn find_first(&mut self) {
        let mut of_rules: Vec<Vec<Symbol>> = vec![Vec::new(); self.rules.len()];
        let begins = |alternative: &[Symbol], of_rules: &[Vec<Symbol>], empty: &[bool]| {
            let mut found = Vec::new();
            for symbol in alternative {
                match symbol {
                    Symbol::Rule(r) => {
                        found.extend(of_rules[*r].iter().cloned());
                        if !empty[*r] {
                            break;
                        }
                    }
                    symbol => {
                        found.push(symbol.clone());
                        break;
                    }
                }
            }
            found
        };
        loop {
            let before: usize = of_rules.iter().map(Vec::len).sum();
            for (r, alternatives) in self.rules.iter().enumerate() {
                let found: Vec<Symbol> = alternatives.iter().flat_map(|a| begins(a, &of_rules, &self.empty)).collect();
                for symbol in found {
                    if !of_rules[r].contains(&symbol) {
                        of_rules[r].push(symbol);
                    }
                }
            }
            if before == of_rules.iter().map(Vec::len).sum() {
                break;
            }
        }
        let of_alternatives =
            |rule: &Vec<Vec<Symbol>>| rule.iter().map(|a| begins(a, &of_rules, &self.empty)).collect();
        self.first = self.rules.iter().map(of_alternatives).collect();
    }

    /// The number of tokens after which no derivation from `start` goes on; `None` if all of them are derived.
    fn stuck_at(&self, start: &str, tokens: &[(Tok, &str)]) -> Option<usize> {
        type Item = (usize, usize, usize, usize); // Rule, alternative, place in it, token where it began.
        let root = self.names[start];
        let mut columns: Vec<Vec<Item>> = vec![Vec::new()];
        // Items of each column that wait for a rule.
        let mut waiting: Vec<BTreeMap<usize, Vec<Item>>> = Vec::new();
        columns[0].extend((0..self.rules[root].len()).map(|a| (root, a, 0, 0)));
        let words: FxHashSet<&str> = self.rules.iter().flatten().flatten().filter_map(Symbol::word).collect();
        // For a token, by the word it is, the alternatives of each rule that may begin with it.
        let mut beginning: FxHashMap<(Tok, &str), Vec<Vec<usize>>> = FxHashMap::default();
        let none = vec![Vec::new(); self.rules.len()];
        let mut seen: FxHashSet<Item> = FxHashSet::default();
        for i in 0..=tokens.len() {
            seen.clear();
            seen.extend(&columns[i]);
            waiting.push(BTreeMap::new());
            let begin = match tokens.get(i) {
                None => &none,
                Some(token) => {
                    &*beginning.entry((token.0, words.get(token.1).copied().unwrap_or_default())).or_insert_with(|| {
                        let fit = |of: &Vec<Vec<Symbol>>| {
                            (0..of.len()).filter(|a| of[*a].iter().any(|s| fits(s, *token))).collect()
                        };
                        self.first.iter().map(fit).collect()
                    })
                }
            };
            let mut next = Vec::new();
            let mut at = 0;
            while let Some(&(rule, alternative, place, from)) = columns[i].get(at) {
                at += 1;
                let mut found = Vec::new();
                match self.rules[rule][alternative].get(place) {
                    None => {
                        let waiting = waiting[from].get(&rule).map_or(&[][..], |w| w);
                        found.extend(waiting.iter().map(|&(r, a, p, f)| (r, a, p + 1, f)));
                    }
                    Some(Symbol::Rule(inner)) => {
                        waiting[i].entry(*inner).or_default().push((rule, alternative, place, from));
                        // What the others derive is empty here.
                        found.extend(begin[*inner].iter().map(|&a| (*inner, a, 0, i)));
                        if self.empty[*inner] {
                            found.push((rule, alternative, place + 1, from));
                        }
                    }
                    Some(symbol) => {
                        if tokens.get(i).is_some_and(|token| fits(symbol, *token)) {
                            next.push((rule, alternative, place + 1, from));
                        }
                    }
                }
                columns[i].extend(found.into_iter().filter(|item| seen.insert(*item)));
            }
            if i < tokens.len() && next.is_empty() {
                return Some(i);
            }
            columns.push(next);
        }
        let ends = |&(r, a, p, f): &Item| r == root && f == 0 && p == self.rules[r][a].len();
        if columns[tokens.len()].iter().any(ends) { None } else { Some(tokens.len()) }
    }
}

fn fits(symbol: &Symbol, (tok, text): (Tok, &str)) -> bool {
    match symbol {
        Symbol::Token(t) => tok == *t,
        Symbol::Text(t) => tok != Tok::Str && t == text,
        Symbol::Rule(_) => false,
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn grammar() -> Grammar {
    let page = root().join("docs/reference/grammar.md");
    Grammar::read(&std::fs::read_to_string(page).expect("the page of the grammar"))
}

/// Whether the parser accepts a program, and where the rules get stuck.
fn both(grammar: &Grammar, text: &str) -> (bool, Option<usize>) {
    let mut sources = Sources::new();
    let file = sources.add("t.impala", text);
    let mut sink = Sink::default();
    crate::parse(file, text, &mut sink);
    let mut tokens = lex(file, text, &mut Vec::new());
    tokens.pop();
    let texts: Vec<(Tok, &str)> = tokens.iter().map(|t| (t.tok, &text[t.lo as usize..t.hi as usize])).collect();
    let stuck = grammar.stuck_at("file", &texts);
    (sink.diagnostics.is_empty(), stuck.map(|i| tokens.get(i).map_or(text.len(), |t| t.lo as usize)))
}

fn programs(folder: &Path, out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            programs(&path, out);
        } else if path.extension().is_some_and(|e| e == "impala") {
            out.push(path);
        }
    }
}

#[test]
fn rules_derive_all_programs() {
    let grammar = grammar();
    let mut files = Vec::new();
    for folder in ["examples", "lib", "tests/run", "tests/ui", "tests/seeds"] {
        programs(&root().join(folder), &mut files);
    }
    let check = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        // The limits of nesting are tested elsewhere, with programs that are large.
        if text.len() > 60_000 {
            return false;
        }
        let (accepts, stuck) = both(&grammar, &text);
        if let Some(at) = stuck.filter(|_| accepts) {
            let line = text[..at].matches('\n').count() + 1;
            panic!("{}:{line}: the rules derive nothing with this: {:?}", path.display(), &text[at..].lines().next());
        }
        accepts
    };
    let of_thread = |thread: usize| files.iter().skip(thread).step_by(2).filter(|path| check(path)).count();
    let accepted: usize = std::thread::scope(|scope| {
        let of_thread = &of_thread;
        let threads = [0, 1].map(|i| scope.spawn(move || of_thread(i)));
        threads.map(|thread| thread.join().expect("the rules derive the programs")).iter().sum()
    });
    assert!(accepted > 300, "only {accepted} programs");
}

#[test]
fn rules_and_parser_refuse_the_same() {
    let grammar = grammar();
    let wrong = [
        "fn f() -> i32 { 1 + }",
        "fn f(x) y -> () {}",
        "fn f() {} }",
        "struct S { x i32 }",
        "struct S { x: i32; y: i32 }",
        "enum E { A(i32, }",
        "static x = if c 1 else 2;",
        "static x = 1 as;",
        "static x = a.1;",
        "static x = [1, 2, .. 3];",
        "static x = simd(1, 2);",
        "fn f() -> () { let = 3; }",
        "fn f() -> () { let x 3; }",
        "fn f() -> () { match x { 1 -> 2 } }",
        "fn f[const N](x: i32) -> () {}",
        "trait T { static x = 1; }",
        "impl T for { }",
        "use a::{b, c};",
        "use a::* as b;",
        "mod m",
        "type T: i32;",
        "fn f() -> () { 1 1 }",
        "fn f() -> () { do x }",
        "fn f() -> & {}",
        "static x: [i32; 3];",
        "fn f() -> () { x = let y; }",
        "fn f(self) -> ! -> () {}",
        "static x = fn(x: i32) -> i32 { x };",
    ];
    for text in wrong {
        let (accepts, stuck) = both(&grammar, text);
        assert!(
            !accepts && stuck.is_some(),
            "{text}: accepted by the parser: {accepts}, by the rules: {}",
            stuck.is_none()
        );
    }
}
