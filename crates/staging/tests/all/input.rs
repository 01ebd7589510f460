//! Texts that are no programs, or strange ones: an answer or diagnostics, never a panic, within limits.

use crate::random::Rng;
use nyala_base::{Sink, Sources};
use nyala_ir::World;
use nyala_staging::{Limits, evaluate, format, lower};

const WORDS: [&str; 48] = [
    "let",
    "fix",
    "def",
    "f",
    "g",
    "x",
    "y",
    "k",
    "(",
    ")",
    "(",
    ")",
    "{",
    "}",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "@",
    "&",
    "|",
    "!",
    "+",
    "-",
    "*",
    "/",
    "mod",
    "==",
    "<",
    "if",
    "exit",
    "0",
    "1",
    "2147483648",
    "1.5",
    "true",
    "always",
    "never",
    "int",
    "float",
    "stage",
    "fn",
    "bool",
    "not",
    "é",
    "// c\n",
];

const WORDS_OF_C: [&str; 48] = [
    "int", "float*", "void", "stage", "bool", "double", "f", "g", "x", "y", "(", ")", "(", ")", "{", "}", "{", "}",
    "[", "]", ",", ";", ";", ":", "@", "&", "|", "!", "+", "-", "*", "/", "==", "<", ">", "=", "+=", "++", "if",
    "else", "for", "while", "return", "0", "1.5", "?", "always", "print",
];

fn read(language: &str, text: String) {
    let mut sources = Sources::new();
    let file = sources.add(format!("t.{language}"), text);
    if language == "stagedc"
        && let Ok(formatted) = format::format(file, sources.text(file))
    {
        let again = format::format(file, &formatted);
        assert_eq!(again.ok().as_ref(), Some(&formatted), "{}", sources.text(file));
    }
    let mut sink = Sink::default();
    let limits = Limits { steps: 2_000, size: 100_000 };
    let residual = nyala_staging::read(&sources, &[file], &mut sink)
        .and_then(|mut programs| programs.pop())
        .and_then(|program| evaluate::evaluate(program, limits, &mut sink))
        .map(|mut residual| {
            let text = residual.print(&[]);
            // Not everything becomes code.
            let (mut world, mut faults) = (World::new(), Sink::default());
            lower::lower(&mut residual, &mut world, &mut |_| 0, &mut faults);
            if !faults.has_errors() {
                let faults = nyala_ir::verify::verify(&world, &world.roots());
                assert!(faults.is_empty(), "{faults:?} in\n{}", sources.text(file));
            }
            text
        });
    assert_eq!(residual.is_none(), sink.has_errors(), "{}", sources.text(file));
    for diagnostic in &sink.diagnostics {
        assert!(!diagnostic.primary.span.is_none(), "{diagnostic:?} in\n{}", sources.text(file));
        diagnostic.render(&sources, false);
    }
}

fn try_texts(seeds: std::ops::Range<u64>) {
    let programs = crate::programs::programs();
    for seed in seeds {
        let mut rng = Rng(seed);
        let (name, program) = &programs[rng.below(programs.len())];
        let (language, known) = match name.ends_with(".stagedc") {
            true => ("stagedc", &WORDS_OF_C),
            false => ("deepcps", &WORDS),
        };
        // Words at random.
        read(language, (0..rng.below(40)).map(|_| format!("{} ", known[rng.below(known.len())])).collect());
        // A program with some words replaced, left out or doubled.
        let mut words: Vec<&str> = program.split_inclusive(|c: char| !c.is_alphanumeric()).collect();
        for _ in 0..1 + rng.below(3) {
            let (at, n) = (rng.below(words.len()), words.len());
            match rng.below(4) {
                0 => _ = words.remove(at),
                1 => words.insert(at, known[rng.below(known.len())]),
                2 => words[at] = known[rng.below(known.len())],
                _ => words.swap(at, (at + 1) % n),
            }
        }
        read(language, words.concat());
    }
}

#[test]
fn any_text_has_an_answer() {
    try_texts(0..1_500);
}

#[test]
#[ignore = "takes 30 s: ./x test --all crates"]
fn any_text_of_many_has_an_answer() {
    try_texts(1_000_000..1_020_000);
}

#[test]
fn depth_is_limited_by_a_diagnostic_or_not_at_all() {
    let n = 20_000;
    for text in [
        "(".repeat(n),
        "f (x) { ".repeat(n),
        format!("@{}x: exit", "!".repeat(n)),
        format!("@{}always: exit", "(".repeat(n)),
        format!("let f ({} x) {{ exit }}", "fn[".repeat(n)),
        format!("exit {}", "1 + (".repeat(n)),
        format!("let x 1\n@{}x: exit 1", "x & ".repeat(n)),
        // The rest of a program is no nesting, nor are operators in a row.
        format!("let x 1\n{}exit x", "x + 1 (x)\n".repeat(n)),
        format!("let x 1\nx{} (y)\nexit y", " + 1".repeat(n)),
        format!("let f (int x, fn[int] k) {{ k x }}\n{}exit 1", "f 1 (x)\n".repeat(n)),
        // Function types that contain themselves.
        "let f (x, y) { x x y }\nlet g (x) { f f x }\nexit 1".to_string(),
    ] {
        read("deepcps", text);
    }
    for text in [
        "{".repeat(n),
        format!("int f() {{ return {}1; }}", "(".repeat(n)),
        format!("int f() {{ return {}1; }}", "-".repeat(n)),
        format!("void f() {{ {} }}", "if (true) ".repeat(n)),
        format!("void f() {{ {} }}", "if (true) ; else ".repeat(n)),
        format!("void f(stage s) {{ @{}s: f(s); }}", "!".repeat(n)),
        format!("void f(stage s) {{ @{}s: f(s); }}", "s & ".repeat(n)),
        format!("void f(stage s) {{ @{}s: f(s); }}", "s | ".repeat(n)),
        format!("void f(stage s) {{ {}f(s); }}", "@s: ".repeat(n)),
        format!("void f(float* a) {{ a{} = 1.0; }}", "[0]".repeat(n)),
        format!("int f() {{ return {}; }}", "f(".repeat(n)),
        format!("void f(int {} x) {{ }}", "*".repeat(n)),
        // Long programs are no nesting.
        format!("int f(int x) {{ return x{}; }}", " + 1".repeat(n)),
        format!("int f(int x) {{ {} return x; }}", "x += 1;\n".repeat(n)),
        format!("int f(int x) {{ {} return x; }}", "@x: x += 1; if (x > 0) x = 2;\n".repeat(n / 10)),
        (0..n / 10).map(|i| format!("int f{i}(int x) {{ return x; }}\n")).collect(),
    ] {
        read("stagedc", text);
    }
}
