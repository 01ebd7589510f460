//! Random patterns: `std::pattern` must find what the `regex` crate finds, in random texts. One program gets the patterns
//! as data, so that it matches by tables; in others they are known, a few patterns in each, and become code. Strings of
//! signs that are no patterns must be refused as such.

use crate::random::Rng;
use crate::texts::output_within;
use crate::{Tally, root};
use regex::bytes::{Regex, RegexBuilder};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// The texts for each pattern.
const N_TEXTS: usize = 4;
/// The patterns that are given to the program with tables at once, and to one program in which they are known.
const BATCH: usize = 500;
const KNOWN: usize = 30;
/// One in this many batches also becomes code, which takes twenty times as long.
const CODE_EVERY: u64 = 4;
/// The levels of optimization of these programs, in turns.
const LEVELS: [&str; 4] = ["-O0", "-O0", "-O0", "-O3"];
const TIME_LIMIT: Duration = Duration::from_secs(300);
const MAX_FAULTS: usize = 5;

/// Prints a number for the text in which matches are replaced.
const REPLACED: &str = r#"
fn @show_replaced(pattern: &[u8], text: Str, form: &[u8]) -> () {
    let mut replaced = replace_all(pattern, text, form);
    let mut hash = 14695981039346656037u64;
    for i in range(0i64, replaced.length) { hash = (hash ^ replaced.data(i) as u64) * 1099511628211u64; }
    replaced.free();
    print_string("| "); print_i64(hash as i64);
}
"#;

/// Reads patterns, what replaces their matches, and texts from a file. Prints for each text where the matches begin and end, then the
/// groups of each, and a number for the text in which they are replaced.
const TABLES: &str = r#"
use std::files::*;
use std::pattern::*;
use std::slice::*;
fn number(data: &[u8], at: i64) -> i64 { data(at) as i64 + 256i64 * data(at + 1i64) as i64 }
fn main(argc: i32, argv: &[&[u8]]) -> i32 {
    let file = read_file(argv(1));
    let mut at = 0i64;
    while argc > 1 && at < file.size {
        let size = number(file.data, at);
        let pattern = &file.data(at + 2i64) as &[u8];
        at += 3i64 + size;
        let form = &file.data(at + 2i64) as &[u8];
        at += 3i64 + number(file.data, at);
        let mut error = pattern_error(pattern);
        for _ in range(0, 4) {
            let n = number(file.data, at);
            let text = slice(&file.data(at + 2i64) as &[u8], n);
            at += 2i64 + n;
            if error.length == 0i64 {
                for start, end in matches(pattern, text) { print_i64(start); print_char(' '); print_i64(end); print_char(' '); }
                print_char('|');
                for c in captures(pattern, text) {
                    for k in range(0, c.n_groups + 1) { print_char(' '); print_i64(c.start(k)); print_char(' '); print_i64(c.end(k)); }
                    print_char(',');
                }
                show_replaced(pattern, text, form);
            } else {
                print_string(error.string());
            }
            println();
        }
        error.free();
    }
    0
}
"#;

/// The functions of programs in which patterns are known.
const CODE: &str = r#"
use std::pattern::*;
use std::slice::*;
fn show(start: i64, end: i64) -> () { print_i64(start); print_char(' '); print_i64(end); print_char(' '); }
fn show_groups(n: i32, places: &[i64]) -> () {
    for k in range(0, 2 * n) { print_char(' '); print_i64(places(k)); }
    print_char(',');
}
fn @try(pattern: &[u8], form: &[u8], has_groups: bool, sizes: [i64 * 4], texts: &[u8]) -> () {
    let mut at = 0i64;
    for k in range(0, 4) {
        let n = sizes(k);
        let text = slice(&texts(at) as &[u8], n);
        for start, end in matches(pattern, text) { show(start, end) }
        print_char('|');
        if has_groups { for c in captures(pattern, text) { show_groups(c.n_groups + 1, c.places) } }
        show_replaced(pattern, text, form);
        println();
        at += n;
    }
}
"#;

struct Case {
    pattern: String,
    /// The library may refuse it although it is a pattern to the crate.
    is_unsupported: bool,
    texts: Vec<Vec<u8>>,
    /// What replaces matches.
    form: String,
}

/// A random pattern. Its texts contain what it matches more often than chance would.
enum Node {
    Bytes(String, Vec<u8>),
    /// An assertion.
    Look(&'static str),
    /// Flags for what follows in the group around them.
    Flags(String),
    /// A group with flags.
    Flagged(String, Box<Node>),
    /// A group with a name.
    Named(String, Box<Node>),
    Sequence(Vec<Node>),
    Either(Vec<Node>),
    Repeated(Box<Node>, String, usize, usize),
}

/// Flags, some of them perhaps switched off.
fn flags(rng: &mut Rng) -> String {
    ["i", "m", "s", "im", "ms", "i-s", "-i", "-m", "s-im", "ims"][rng.below(10)].to_string()
}

fn node(rng: &mut Rng, depth: usize) -> Node {
    if rng.chance(8) {
        return Node::Look(["^", "$", r"\A", r"\z", r"\b", r"\b", r"\B", "$"][rng.below(8)]);
    }
    if depth > 0 && rng.chance(10) {
        if rng.chance(40) {
            let name = format!("{}<n{}>", if rng.chance(50) { "P" } else { "" }, rng.below(40));
            return Node::Named(name, Box::new(node(rng, depth - 1)));
        }
        let flags = flags(rng);
        return if rng.chance(50) { Node::Flags(flags) } else { Node::Flagged(flags, Box::new(node(rng, depth - 1))) };
    }
    match rng.below(if depth == 0 { 4 } else { 10 }) {
        4..=6 => Node::Sequence((0..rng.below(4)).map(|_| node(rng, depth - 1)).collect()),
        7 => Node::Either((0..1 + rng.below(3)).map(|_| node(rng, depth - 1)).collect()),
        8 | 9 => {
            let (sign, least, most) = match rng.below(6) {
                0 => ("*".to_string(), 0, 5),
                1 => ("+".to_string(), 1, 5),
                2 => ("?".to_string(), 0, 1),
                3 => (format!("{{{}}}", 2 + depth % 2), 2 + depth % 2, 2 + depth % 2),
                4 => ("{1,}".to_string(), 1, 4),
                _ => (format!("{{{},{}}}", depth % 3, depth % 3 + 2), depth % 3, depth % 3 + 2),
            };
            let lazy = if rng.chance(30) { "?" } else { "" };
            Node::Repeated(Box::new(node(rng, depth - 1)), sign + lazy, least, most)
        }
        _ => {
            let (pattern, bytes): (&str, &[u8]) = [
                ("a", &b"a"[..]),
                ("b", b"b"),
                ("c", b"c"),
                ("ab", b""),
                ("[ab]", b"ab"),
                ("[^a]", b"bc\n\x80"),
                ("[a-c_]", b"abc_"),
                (".", b"ab \xff"),
                (r"\d", b"019"),
                (r"\w", b"ab_0"),
                (r"\s", b" \n"),
                (r"\D", b"a "),
                (r"\W", b" -"),
                (r"\S", b"a0"),
                ("-", b"-"),
                (r"\.", b"."),
                (r"\x80", b"\x80"),
                ("[]b-]", b"]b-"),
                (r"[^\w\n]", b" -"),
                (r"[\x00-\x1f]", b"\0\n"),
            ][rng.below(20)];
            if pattern == "ab" {
                let part = |s: &str| Node::Bytes(s.into(), s.into());
                return Node::Sequence(vec![part("a"), part("b")]);
            }
            Node::Bytes(pattern.into(), bytes.into())
        }
    }
}

/// The text of a pattern. A sequence or an alternative in a larger one is put into a group.
fn write(node: &Node, rng: &mut Rng, out: &mut String) {
    let group = |rng: &mut Rng| if rng.chance(50) { "(" } else { "(?:" };
    match node {
        Node::Bytes(pattern, _) => out.push_str(pattern),
        Node::Look(pattern) => out.push_str(pattern),
        Node::Flags(flags) => {
            let _ = write!(out, "(?{flags})");
        }
        Node::Flagged(head, part) | Node::Named(head, part) => {
            let _ = write!(out, "(?{head}{}", if matches!(node, Node::Named(..)) { "" } else { ":" });
            write(part, rng, out);
            out.push(')');
        }
        Node::Sequence(parts) => {
            for part in parts {
                if matches!(part, Node::Either(_)) {
                    out.push_str(group(rng));
                    write(part, rng, out);
                    out.push(')');
                } else {
                    write(part, rng, out);
                }
            }
        }
        Node::Either(parts) => {
            for (i, part) in parts.iter().enumerate() {
                if i > 0 {
                    out.push('|');
                }
                write(part, rng, out);
            }
        }
        Node::Repeated(part, sign, ..) => {
            let is_single = matches!(**part, Node::Bytes(..) | Node::Look(_) | Node::Flagged(..) | Node::Named(..));
            if !is_single {
                out.push_str(group(rng));
            }
            write(part, rng, out);
            out.push_str(if is_single { "" } else { ")" });
            out.push_str(sign);
        }
    }
}

/// Appends something that the pattern matches.
fn sample(node: &Node, rng: &mut Rng, out: &mut Vec<u8>) {
    match node {
        Node::Bytes(_, bytes) => out.push(bytes[rng.below(bytes.len())]),
        Node::Look(_) | Node::Flags(_) => {}
        Node::Flagged(_, part) | Node::Named(_, part) => sample(part, rng, out),
        Node::Sequence(parts) => parts.iter().for_each(|part| sample(part, rng, out)),
        Node::Either(parts) => sample(&parts[rng.below(parts.len())], rng, out),
        Node::Repeated(part, _, least, most) => {
            for _ in 0..least + rng.below(most - least + 1) {
                if out.len() < 2_000 {
                    sample(part, rng, out);
                }
            }
        }
    }
}

/// A text of noise and of what the pattern matches, parts of it repeated.
fn text(node: Option<&Node>, rng: &mut Rng) -> Vec<u8> {
    let alphabet: &[u8] =
        [&b"ab"[..], b"abc01-_ .\n", b"a ]b\x80\xff\0zxy", b"abcdefghijklmnopqrstuvwxyz  \n", b"aB \n"][rng.below(5)];
    let size = [0, 1, 5, 40, 150, 400][rng.below(6)];
    let mut out = Vec::new();
    while out.len() < size {
        match rng.below(4) {
            0 => (0..rng.below(30)).for_each(|_| out.push(alphabet[rng.below(alphabet.len())])),
            1 => (0..rng.below(100)).for_each(|_| out.push(alphabet[0])),
            _ => match node {
                Some(node) => sample(node, rng, &mut out),
                None => out.push(alphabet[rng.below(alphabet.len())]),
            },
        }
    }
    out.truncate(size);
    if rng.chance(25) {
        out.iter_mut().filter(|_| rng.chance(30)).for_each(|b| b.make_ascii_uppercase());
    }
    out
}

/// Something that replaces matches.
fn form(rng: &mut Rng) -> String {
    const PARTS: [&str; 16] =
        ["$1", "${1}", "$2", "$0", "${3}", "$$", "$", "-", "x", "${", "}", "$1x", "$11", "${01}", "$n", "ab cd"];
    let part = |rng: &mut Rng| match rng.below(6) {
        0 => format!("${{n{}}}", rng.below(40)),
        1 => format!("$n{} ", rng.below(40)),
        _ => PARTS[rng.below(PARTS.len())].to_string(),
    };
    (0..rng.below(6)).map(|_| part(rng)).collect()
}

fn case(rng: &mut Rng) -> Case {
    // One in eight is a string of signs, which need not be a pattern.
    if rng.chance(12) {
        let signs = b"ab(){}[]|*+?\\^$-,.123dwsxnDW:&~imABz";
        let pattern: String = (0..1 + rng.below(10)).map(|_| signs[rng.below(signs.len())] as char).collect();
        let is_unsupported = is_unsupported(&pattern);
        return Case {
            pattern,
            is_unsupported,
            texts: (0..N_TEXTS).map(|_| text(None, rng)).collect(),
            form: form(rng),
        };
    }
    let mut node = node(rng, 4);
    if rng.chance(8) {
        // What is looked for behind the repetition with which a line begins.
        let (bytes, sample) = [(".", "ab "), ("[a-c]", "abc"), (r"\w", "ab0"), (r"[^b]", "a\n")][rng.below(4)];
        let item = Node::Bytes(bytes.into(), sample.into());
        let sign = ["*", "+", "*?"][rng.below(3)].to_string();
        let repeated = Node::Repeated(Box::new(item), sign, 1, 5);
        node = Node::Sequence(vec![Node::Flags("m".into()), Node::Look("^"), repeated, node]);
    }
    let mut pattern = String::new();
    write(&node, rng, &mut pattern);
    Case {
        pattern,
        is_unsupported: false,
        texts: (0..N_TEXTS).map(|_| text(Some(&node), rng)).collect(),
        form: form(rng),
    }
}

fn regex(pattern: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(pattern).unicode(false).build()
}

/// A line for each text: matches, and groups of each.
fn expected(case: &Case, regex: &Regex, has_groups: bool) -> Vec<String> {
    let line = |text: &Vec<u8>| {
        let mut line = String::new();
        for found in regex.find_iter(text) {
            let _ = write!(line, "{} {} ", found.start(), found.end());
        }
        line.push('|');
        for captures in regex.captures_iter(text).filter(|_| has_groups) {
            for group in captures.iter() {
                let (start, end) = group.map_or((-1, -1), |g| (g.start() as isize, g.end() as isize));
                let _ = write!(line, " {start} {end}");
            }
            line.push(',');
        }
        let replaced = regex.replace_all(text, case.form.as_bytes());
        let add = |hash: u64, &byte: &u8| (hash ^ u64::from(byte)).wrapping_mul(1_099_511_628_211);
        let _ = write!(line, "| {}", replaced.iter().fold(14_695_981_039_346_656_037, add) as i64);
        line
    };
    case.texts.iter().map(line).collect()
}

/// Tries patterns until there are `max`, or the time is over. Says every pattern that fails.
pub fn run(first: u64, time: Duration, max: u64, say: &dyn Fn(String)) -> Tally {
    let start = Instant::now();
    let mut rng = Rng::new(first);
    let (mut n, mut n_code, mut n_refused, mut round) = (0, 0, 0, 0);
    let mut faults = Vec::new();
    while n < max && faults.len() < MAX_FAULTS && (n == 0 || start.elapsed() < time) {
        let cases: Vec<Case> = (0..BATCH.min((max - n) as usize)).map(|_| case(&mut rng)).collect();
        let is_code = (n / BATCH as u64).is_multiple_of(CODE_EVERY);
        n += cases.len() as u64;
        match by_tables(&cases, &mut n_refused) {
            Ok(found) => faults.extend(found),
            Err(e) => faults.push(e),
        }
        let right: Vec<&Case> =
            cases.iter().filter(|c| is_code && regex(&c.pattern).is_ok() && !c.is_unsupported).collect();
        for chunk in right.chunks(KNOWN) {
            if faults.len() < MAX_FAULTS && (round == 0 || start.elapsed() < time) {
                match by_code(chunk, LEVELS[round % LEVELS.len()]) {
                    Ok(found) => faults.extend(found),
                    Err(e) => faults.push(e),
                }
                n_code += chunk.len();
                round += 1;
            }
        }
    }
    for fault in &faults {
        say(format!("FAILED random pattern: {fault}"));
    }
    say(format!("{n} random patterns tried, {n_code} of them as code; {n_refused} were refused as by regex"));
    Tally { passed: faults.is_empty() as usize, failed: !faults.is_empty() as usize, skipped: 0 }
}

/// Whether a string of signs uses what the `regex` crate has and the library refuses with a message of its own.
fn is_unsupported(pattern: &str) -> bool {
    // Other flags; operations on classes, and a class in a class.
    let has_other_flag = pattern
        .split("(?")
        .skip(1)
        .any(|flags| flags.split([':', ')']).next().is_some_and(|flags| flags.contains(['x', 'U', 'u', 'R'])));
    let signs = ["{,", "[[", "&&", "--", "~~"];
    has_other_flag || signs.iter().any(|s| pattern.contains(s)) || pattern.matches('[').count() > 1
}

fn folder() -> Result<PathBuf, String> {
    let folder = root().join("target/patterns").join(std::process::id().to_string());
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    Ok(folder)
}

fn write_file(path: &Path, content: impl AsRef<[u8]>) -> Result<(), String> {
    std::fs::write(path, content).map_err(|e| format!("cannot write {}: {e}", path.display()))
}

fn lines_of(args: &[&str], path: &Path, rest: &[&Path]) -> Result<Vec<String>, String> {
    let nyala = std::env::current_exe().map_err(|e| e.to_string())?.with_file_name("nyala");
    let mut command = Command::new(nyala);
    command.arg("run").args(args).arg(path).arg("--").args(rest);
    if rest.is_empty() {
        // Programs that run once are not kept in the user's cache.
        command.env_remove("HOME").env_remove("XDG_CACHE_HOME");
    }
    let (code, out, err) = output_within(&mut command, TIME_LIMIT)?;
    if code != Some(0) {
        return Err(format!("{}: exit code {code:?}\n{err}", path.display()));
    }
    Ok(out.lines().map(str::to_string).collect())
}

fn by_tables(cases: &[Case], n_refused: &mut u64) -> Result<Vec<String>, String> {
    let (path, data) = (folder()?.join("tables.impala"), folder()?.join("cases"));
    let mut bytes = Vec::new();
    for case in cases {
        bytes.extend((case.pattern.len() as u16).to_le_bytes());
        bytes.extend(case.pattern.as_bytes());
        bytes.push(0);
        bytes.extend((case.form.len() as u16).to_le_bytes());
        bytes.extend(case.form.as_bytes());
        bytes.push(0);
        for text in &case.texts {
            bytes.extend((text.len() as u16).to_le_bytes());
            bytes.extend(text);
        }
    }
    write_file(&path, TABLES.to_string() + REPLACED)?;
    write_file(&data, bytes)?;
    let lines = lines_of(&[], &path, &[&data])?;
    let mut faults = Vec::new();
    for (case, found) in cases.iter().zip(lines.chunks(N_TEXTS)) {
        let is_refused = found[0].starts_with("pattern: ");
        match regex(&case.pattern) {
            Ok(regex) if !is_refused => faults.extend(compare(case, found, &expected(case, &regex, true), "tables")),
            Ok(_) if !case.is_unsupported => {
                faults.push(format!("`{}` is refused: {}", case.pattern, found[0]));
            }
            Err(e) if !is_refused => faults.push(format!("`{}` is not refused: {e}", case.pattern)),
            _ => *n_refused += 1,
        }
    }
    if lines.len() != cases.len() * N_TEXTS {
        faults.push(format!("{} lines of output for {} patterns", lines.len(), cases.len()));
    }
    Ok(faults)
}

fn by_code(cases: &[&Case], level: &str) -> Result<Vec<String>, String> {
    let path = folder()?.join("code.impala");
    let mut program = CODE.to_string() + REPLACED;
    let mut main = String::new();
    for (i, case) in cases.iter().enumerate() {
        let sizes: Vec<String> = case.texts.iter().map(|t| format!("{}i64", t.len())).collect();
        let _ = writeln!(
            program,
            "fn case{i}() -> () {{ let sizes = [{}]; try({}, {}, {}, sizes, {}) }}",
            sizes.join(", "),
            literal(case.pattern.as_bytes()),
            literal(case.form.as_bytes()),
            has_groups(case),
            literal(&case.texts.concat())
        );
        let _ = write!(main, "case{i}(); ");
    }
    let _ = writeln!(program, "fn main() -> i32 {{ {main} 0 }}");
    write_file(&path, &program)?;
    let lines = lines_of(&[level], &path, &[])?;
    let mut faults = Vec::new();
    for (case, found) in cases.iter().zip(lines.chunks(N_TEXTS)) {
        let regex = regex(&case.pattern).map_err(|e| e.to_string())?;
        faults.extend(compare(case, found, &expected(case, &regex, has_groups(case)), &format!("code, {level}")));
    }
    if lines.len() != cases.len() * N_TEXTS {
        faults.push(format!("{} lines of output for {} patterns", lines.len(), cases.len()));
    }
    Ok(faults)
}

/// Whether there are groups whose places are compared where the pattern becomes code.
fn has_groups(case: &Case) -> bool {
    regex(&case.pattern).is_ok_and(|regex| regex.captures_len() > 1)
}

fn compare(case: &Case, found: &[String], expected: &[String], how: &str) -> Option<String> {
    let i = (0..N_TEXTS).find(|&i| found.get(i) != Some(&expected[i]))?;
    let text = literal(&case.texts[i]);
    let found = found.get(i).map_or("", String::as_str);
    Some(format!(
        "`{}`, replaced by `{}`, by {how}\n  in {text}\n  regex {}\n  ours  {found}",
        case.pattern, case.form, expected[i]
    ))
}

/// A string of the language.
fn literal(bytes: &[u8]) -> String {
    let mut text = "\"".to_string();
    for &b in bytes {
        match b {
            b'"' | b'\\' => text.extend(['\\', b as char]),
            b' '..=b'~' => text.push(b as char),
            _ => {
                let _ = write!(text, "\\x{b:02x}");
            }
        }
    }
    text + "\""
}
