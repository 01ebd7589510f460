//! Makes inputs: random characters, random tokens, programs with a few changes.

use super::From;
use crate::random::Rng;
use std::path::PathBuf;

pub struct Corpus {
    /// Seeds have them in turns.
    languages: Vec<Language>,
}

struct Language {
    /// Of its files' names.
    ending: &'static str,
    /// Words and symbols that programs consist of.
    tokens: &'static str,
    programs: Vec<Vec<String>>,
    /// The number of programs that are made for this purpose. They come first, and are chosen more often.
    n_own: usize,
}

/// Limit on the pieces of a program; larger ones are cut off.
const MAX_PIECES: usize = 6000;

const TOKENS: &str = "as asm do else enum extern false fn for if impl in let match mod mut priv pub simd static struct \
    trait true type typeof while with use self super Self return break continue _ i32 u8 u64 f32 f16 bool main T x \
    ( ) [ ] { } , ; : :: . .. -> => @ @@ $ ? ~ ! = += -= <<= || && == != < <= > >= | ^ & << >> + - * / % ++ -- \
    0 1 -1 2147483648 340282366920938463463374607431768211455 1.5 1e999 0x 'a' \"text\" \"C\" \"thorin\" \"device\" \
    // /* */ \" ' \\ # ä";

const DEEPCPS: &str = "let fix def extern fn stage bool int float double f g x y k ( ) ( ) { } { } [ ] , : @ & | ! + - * / mod and or not \
    == != < <= > >= if exit print put at field put_field shift sqrt compile to_float to_double to_int min pow neg 0 1 -1 2147483648 1.5 1e999 true false always \
    never \"text\" // \" ä";

const STAGED_C: &str = "void bool int float double stage struct compile extern if else for while return break continue always never true false f g x y \
    ( ) [ ] { } , ; : ? @ & | ! + - * / % && || == != < <= > >= = += -= *= /= %= ++ -- . -> (* 0 1 2147483648 1.5 1.5f 1e999 \"text\" print sqrt \
    min pow // /* */ \" ä";

const SIERRA: &str = "void bool char short int long signed unsigned float double const static extern typedef struct enum sizeof if else for while \
    do switch case default return break continue true false nullptr size_t uint8 f g x y P ( ) [ ] { } , ; : ? . -> & | ^ ~ ! << >> + - * / % && || \
    == != < <= > >= = += -= <<= ++ -- 0 1 0x7fu 2147483648 1.5 1.5f 1e999 'a' \"text\" print sqrt min goto template typename < T > union operator operator+ constexpr varying (4) simd \
    current_mask scalar int& (*f)(int) .x= [1]= #define #undef #if #ifdef #else #endif #include extern \"C\" # // /* */ \" ' \\ ä";

const ISPC: &str = "void bool int int8 uint16 int64 unsigned float double float16 const static extern typedef struct enum sizeof if else for while do switch case default \
    return break continue uniform varying export task launch [4] sync foreach ( i = 0 ... n ) foreach_active foreach_unique ( x in v ) foreach_tiled cif cwhile \
    cfor cdo unmasked new delete programIndex programCount taskIndex float<3> .xyz soa<4> template typename < T > inline noinline operator+ print assert \
    reduce_add any all select packed_store_active atomic_add_global RNGState f g x y P goto again again: alloca memcpy saturating_add dot4add_u8i8packed template<> __VA_ARGS__ ## # ( ) [ ] { } , ; : ? . -> & | ^ ~ ! << >> + - * / % && || == != < <= > \
    >= = += -= ++ -- 0 1 2k 0x7fu 0x1.8p3 2147483648 1.5 1.5d 1e999 \"text\" #define #if #endif extern \"C\" // /* */ \" ' \\ ä";

const VECIMP: &str = "bool int float varying simd const if else for while do break continue skip return true false f g x y main ( ) { } , ; = & | ^ ! + - * / % \
    == != < <= > >= 0 1 4 64 65 2147483648 1.5 4.f 1e999 # // /* */ ä";

impl Corpus {
    /// The programs that are made for this purpose, and others.
    pub fn new(from: From) -> Corpus {
        let own = [include_str!("../../../../fuzz/syntax.impala"), include_str!("../../../../fuzz/generics.impala")];
        let language = |ending, tokens, own: &[&str], others: Vec<PathBuf>| {
            let texts = others.into_iter().filter_map(|p| std::fs::read_to_string(p).ok());
            let programs = own.iter().map(|t| t.to_string()).chain(texts);
            let programs: Vec<_> = programs.map(|t| pieces(&t)).filter(|p| !p.is_empty()).collect();
            Language { ending, tokens, programs, n_own: own.len() }
        };
        let other = |ending, tokens| {
            let folders = [
                "crates/staging/tests",
                "bench/staging",
                "tests/run/sierra",
                "tests/run/ispc",
                "tests/run/vecimp",
                "tests/ui",
            ];
            language(ending, tokens, &[], super::programs(&folders, ending))
        };
        let languages = match from {
            From::Own => vec![language("impala", TOKENS, &own, Vec::new())],
            From::Impala => {
                vec![language("impala", TOKENS, &own, super::programs(&["tests", "examples", "lib"], "impala"))]
            }
            From::Other => vec![
                other("deepcps", DEEPCPS),
                other("stagedc", STAGED_C),
                other("sierra", SIERRA),
                other("ispc", ISPC),
                other("vecimp", VECIMP),
            ],
        };
        Corpus { languages }
    }
}

/// The pieces of a program: words, numbers, strings, comments, symbols and spaces.
pub fn pieces(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let word = |c: char| c.is_alphanumeric() || c == '_';
        let until = |from: usize, f: &dyn Fn(char) -> bool| rest[from..].find(f).map_or(rest.len(), |i| i + from);
        let len = if word(c) {
            until(0, &|c| !word(c))
        } else if c.is_whitespace() {
            until(0, &|c| !c.is_whitespace())
        } else if c == '"' {
            rest[1..].find(['"', '\n']).map_or(rest.len(), |i| i + 2)
        } else if rest.starts_with("//") {
            until(0, &|c| c == '\n')
        } else {
            let two = rest.get(..2).filter(|t| TOKENS.split_whitespace().any(|known| known == *t));
            two.map_or(c.len_utf8(), str::len)
        };
        out.push(rest[..len].to_string());
        rest = &rest[len..];
    }
    out
}

/// The input that a seed stands for, and the ending of its file's name.
pub fn input(seed: u64, corpus: &Corpus) -> (&'static str, String) {
    let mut rng = Rng::new(seed);
    let corpus = &corpus.languages[seed as usize % corpus.languages.len()];
    let text = match rng.below(20) {
        0 => characters(&mut rng),
        1 => tokens(&mut rng, corpus),
        2 => bytes(&mut rng, corpus),
        _ => changed(&mut rng, corpus),
    };
    (corpus.ending, text)
}

fn characters(rng: &mut Rng) -> String {
    let n = rng.below(2000);
    let random = |rng: &mut Rng| match rng.below(10) {
        0 => char::from_u32(rng.below(0x11_0000) as u32).unwrap_or('\u{fffd}'),
        1 => ['\0', '\n', '\r', '\u{feff}', '"', '\'', '\\', 'ä'][rng.below(8)],
        _ => (32 + rng.below(95) as u8) as char,
    };
    (0..n).map(|_| random(rng)).collect()
}

fn tokens(rng: &mut Rng, corpus: &Language) -> String {
    let n = rng.below(600);
    let mut out = String::new();
    for _ in 0..n {
        out.push_str(token(rng, corpus));
        out.push_str(["", " ", " ", " ", "\n"][rng.below(5)]);
    }
    out
}

fn token(rng: &mut Rng, corpus: &Language) -> &'static str {
    let n = corpus.tokens.split_whitespace().count();
    corpus.tokens.split_whitespace().nth(rng.below(n)).unwrap_or(";")
}

/// A random program with changed bytes.
fn bytes(rng: &mut Rng, corpus: &Language) -> String {
    let mut bytes = program(rng, corpus).concat().into_bytes();
    for _ in 0..1 + rng.below(8) {
        let at = rng.below(bytes.len());
        match rng.below(4) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, rng.below(256) as u8),
            _ if bytes.is_empty() => {}
            2 => bytes[at] ^= 1 << rng.below(8),
            _ => drop(bytes.remove(at)),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn program(rng: &mut Rng, corpus: &Language) -> Vec<String> {
    let n = corpus.programs.len();
    let which = if corpus.n_own > 0 && rng.chance(25) { rng.below(corpus.n_own) } else { rng.below(n) };
    let Some(all) = corpus.programs.get(which) else { return vec![";".into()] };
    let start = if all.len() > MAX_PIECES { rng.below(all.len() - MAX_PIECES) } else { 0 };
    all[start..].iter().take(MAX_PIECES).cloned().collect()
}

fn is_space(piece: &str) -> bool {
    piece.starts_with(char::is_whitespace)
}

/// A random index of a piece that is not a space.
fn place(rng: &mut Rng, pieces: &[String]) -> usize {
    let at = rng.below(pieces.len());
    let next = pieces.iter().enumerate().skip(at).find(|(_, p)| !is_space(p) && !p.starts_with("//"));
    next.map_or(at, |(i, _)| i)
}

/// The range of the pieces of the line that the piece `at` is in.
fn line(pieces: &[String], at: usize) -> std::ops::Range<usize> {
    let ends = |p: &&String| p.contains('\n');
    let start = pieces[..at].iter().rev().take_while(|p| !ends(p)).count();
    let end = pieces[at..].iter().take_while(|p| !ends(p)).count();
    at - start..(at + end + 1).min(pieces.len())
}

/// The range of pieces from a random opening bracket to the closing one.
fn group(rng: &mut Rng, pieces: &[String]) -> std::ops::Range<usize> {
    let from = rng.below(pieces.len());
    let is = |p: &String, brackets: &[&str]| brackets.contains(&p.as_str());
    let Some(open) = (from..pieces.len()).find(|&i| is(&pieces[i], &["(", "[", "{"])) else { return from..from };
    let mut depth = 0;
    for (i, piece) in pieces.iter().enumerate().skip(open) {
        depth += is(piece, &["(", "[", "{"]) as i32 - is(piece, &[")", "]", "}"]) as i32;
        if depth == 0 {
            return open..i + 1;
        }
    }
    open..open + 1
}

fn changed(rng: &mut Rng, corpus: &Language) -> String {
    let mut pieces = program(rng, corpus);
    // Most inputs have one or two changes.
    let n = [1, 1, 1, 2, 2, 3, 5, 10][rng.below(8)];
    for _ in 0..n {
        if pieces.is_empty() {
            break;
        }
        change(rng, &mut pieces, corpus);
    }
    pieces.concat()
}

fn change(rng: &mut Rng, pieces: &mut Vec<String>, corpus: &Language) {
    let at = place(rng, pieces);
    let is_word = |p: &&String| p.starts_with(|c: char| c.is_alphanumeric() || c == '_');
    match rng.below(16) {
        0 => drop(pieces.remove(at)),
        1 => pieces.insert(at, pieces[at].clone()),
        2 => {
            let other = place(rng, pieces);
            pieces.swap(at, other);
        }
        3 | 4 => pieces[at] = token(rng, corpus).into(),
        5 => pieces.insert(at, format!(" {} ", token(rng, corpus))),
        // Replaces a name by another name, or a number by another number, to test the checker.
        6..=8 => {
            let words: Vec<&String> = pieces.iter().filter(is_word).collect();
            let new = words.get(rng.below(words.len())).map_or_else(String::new, |w| w.to_string());
            if let Some(old) = (at..pieces.len()).find(|&i| is_word(&&pieces[i])) {
                pieces[old] = new;
            }
        }
        9 => {
            let words: Vec<usize> = (0..pieces.len()).filter(|&i| is_word(&&pieces[i])).collect();
            if let (Some(&a), Some(&b)) = (words.get(rng.below(words.len())), words.get(rng.below(words.len()))) {
                pieces[a] = pieces[b].clone();
            }
        }
        10 => drop(pieces.drain(line(pieces, at))),
        11 => {
            let copy: Vec<String> = pieces[line(pieces, at)].to_vec();
            let to = line(pieces, place(rng, pieces)).start;
            pieces.splice(to..to, copy);
        }
        12 => drop(pieces.drain(group(rng, pieces))),
        13 => {
            let copy: Vec<String> = pieces[group(rng, pieces)].to_vec();
            let over = group(rng, pieces);
            pieces.splice(over, copy);
        }
        14 => {
            let other = program(rng, corpus);
            let from = line(&other, rng.below(other.len()));
            let to = line(pieces, at).start;
            pieces.splice(to..to, other[from].to_vec());
        }
        // Joins the beginning of a program and the end of another one.
        _ => {
            let other = program(rng, corpus);
            let from = line(&other, rng.below(other.len())).start;
            pieces.truncate(line(pieces, at).start);
            pieces.extend_from_slice(&other[from..]);
        }
    }
}
