//! Types of functions as C writes them: reading them, and comparing the caller's with the program's. Both are C text, so one reader
//! serves both, and what C sees of a program is decided in one place, its header.
//!
//! Read are declarations of functions, named or not, after definitions of structs. That is less than C: what the header of a
//! program can have, in the ways in which people write it.

use crate::failure::{Failure, Status};
use std::collections::HashMap;
use std::ffi::{c_char, c_int, c_long, c_longlong, c_short};

/// Declarators and structs may nest this deep; pointers count.
const MAX_DEPTH: usize = 100;
/// More than a declaration has. It bounds the work of reading one.
const MAX_BYTES: usize = 1 << 20;

#[derive(Clone, Debug)]
enum Type {
    Void,
    Bool,
    /// `char`, which C uses for any byte.
    Char,
    Integer {
        signed: bool,
        bytes: usize,
    },
    /// By its size in bytes.
    Float(usize),
    Struct(String),
    Pointer(Box<Qualified>),
    Array(Box<Qualified>, u64),
    Function(Box<Function>),
}

#[derive(Clone, Debug)]
struct Qualified {
    is_const: bool,
    ty: Type,
}

#[derive(Clone, Debug)]
struct Function {
    params: Vec<Param>,
    result: Qualified,
}

#[derive(Clone, Debug)]
struct Param {
    ty: Qualified,
    /// As it is written, for people.
    text: String,
}

/// The structs that a text defines: names and types of fields.
type Structs = HashMap<String, Vec<(String, Qualified)>>;

/// Compares the type that C states for a value with Impala's; both with their sizes in bytes. Structs are compared by size.
///
/// # Errors
/// `stated` is no type of a value, or another one.
pub fn compare_value(
    parameter: &str,
    (stated, stated_size): (&str, usize),
    (impala, size): (&str, usize),
) -> Result<(), Failure> {
    let (_, here) = read(&format!("void f({stated} value);")).map_err(|why| {
        let message = format!("the type of `{parameter}` cannot be read: {why}\n    here: {stated}");
        Failure::new(Status::BadArgument, message)
    })?;
    let prim = |signed, bytes| Type::Integer { signed, bytes };
    let known = match impala {
        "bool" => Some(Type::Bool),
        "i8" => Some(prim(true, 1)),
        "i16" => Some(prim(true, 2)),
        "i32" => Some(prim(true, 4)),
        "i64" => Some(prim(true, 8)),
        "u8" => Some(prim(false, 1)),
        "u16" => Some(prim(false, 2)),
        "u32" => Some(prim(false, 4)),
        "u64" => Some(prim(false, 8)),
        "f32" => Some(Type::Float(4)),
        "f64" => Some(Type::Float(8)),
        _ => None,
    };
    let fits = match (&here.params[..], &known) {
        ([param], Some(known)) => same(&param.ty.ty, known),
        // The caller vouches that it is the struct of the header.
        ([Param { ty: Qualified { ty: Type::Struct(_) | Type::Array(..), .. }, .. }], None) => true,
        _ => false,
    };
    let message = format!(
        "`{parameter}` has another type: it is `{stated}` of {stated_size} bytes here, `{impala}` of {size} in the program"
    );
    if fits && stated_size == size { Ok(()) } else { Err(Failure::new(Status::WrongType, message)) }
}

/// Compares the type that C wants for a function with the program's.
///
/// # Errors
/// `wanted` is no type of a function, or another one than the declaration's.
pub fn compare(symbol: &str, wanted: &str, declaration: &str, structs: &str) -> Result<(), Failure> {
    let (own_structs, here) = read(wanted).map_err(|why| {
        let message = format!("the type of `{symbol}` cannot be read: {why}\n    here: {wanted}");
        Failure::new(Status::BadArgument, message)
    })?;
    let unread =
        |why| Failure::new(Status::Internal, format!("a bug of the compiler: its header cannot be read: {why}"));
    let (_, there) = read(declaration).map_err(unread)?;
    let mut difference = difference(&here, &there);
    if difference.is_none() && !own_structs.is_empty() {
        let known = Reader::new(structs).and_then(|mut r| r.structs().map(|()| r.structs)).map_err(unread)?;
        difference = own_structs.iter().filter_map(|(name, own)| differing_field(name, own, known.get(name)?)).min();
    }
    match difference {
        None => Ok(()),
        Some(difference) => Err(Failure::new(
            Status::WrongType,
            format!(
                "`{symbol}` has another type: {difference}\n    here:           {wanted}\n    in the program: {declaration}"
            ),
        )),
    }
}

fn difference(here: &Function, there: &Function) -> Option<String> {
    let (n, m) = (here.params.len(), there.params.len());
    if n != m {
        return Some(format!(
            "it has {n} {} here, {m} in the program",
            if n == 1 { "parameter" } else { "parameters" }
        ));
    }
    let both = here.params.iter().zip(&there.params).enumerate();
    for (i, (own, known)) in both {
        if !same(&own.ty.ty, &known.ty.ty) {
            return Some(format!("parameter {} is `{}` here, `{}` in the program", i + 1, own.text, known.text));
        }
    }
    (!same(&here.result.ty, &there.result.ty)).then(|| "the result is another one".into())
}

fn differing_field(name: &str, own: &[(String, Qualified)], known: &[(String, Qualified)]) -> Option<String> {
    if own.len() != known.len() {
        return Some(format!("`struct {name}` has {} fields here, {} in the program", own.len(), known.len()));
    }
    own.iter().zip(known).find_map(|((field, ty), (known_field, known_ty))| {
        if field != known_field {
            return Some(format!("a field of `struct {name}` is `{field}` here, `{known_field}` in the program"));
        }
        (!same(&ty.ty, &known_ty.ty)).then(|| format!("field `{field}` of `struct {name}` has another type"))
    })
}

/// Whether two types are the same, whatever is const at the top.
fn same(a: &Type, b: &Type) -> bool {
    let qualified = |a: &Qualified, b: &Qualified| a.is_const == b.is_const && same(&a.ty, &b.ty);
    match (a, b) {
        (Type::Void, Type::Void) | (Type::Bool, Type::Bool) | (Type::Char, Type::Char) => true,
        (Type::Char, Type::Integer { bytes, .. }) | (Type::Integer { bytes, .. }, Type::Char) => *bytes == 1,
        (Type::Integer { signed, bytes }, Type::Integer { signed: s, bytes: n }) => signed == s && bytes == n,
        (Type::Float(n), Type::Float(m)) => n == m,
        (Type::Struct(a), Type::Struct(b)) => a == b,
        (Type::Pointer(a), Type::Pointer(b)) => qualified(a, b),
        (Type::Array(a, n), Type::Array(b, m)) => n == m && qualified(a, b),
        (Type::Function(a), Type::Function(b)) => difference(a, b).is_none(),
        _ => false,
    }
}

/// Reads structs and the type of a function.
fn read(text: &str) -> Result<(Structs, Function), String> {
    let mut reader = Reader::new(text)?;
    reader.structs()?;
    let (base, text_begin) = (reader.specifiers(0)?, reader.at);
    let (_, ty) = reader.declarator(base, 0)?;
    // The symbol of a function whose name C does not have.
    if reader.eat("__asm__") {
        reader.at = reader.tokens.len();
    }
    let _ = reader.eat(";");
    match (ty.ty, reader.tokens.get(reader.at)) {
        (_, Some(token)) => Err(format!("`{}` is not expected", token.text)),
        (Type::Function(function), None) => Ok((reader.structs, *function)),
        (_, None) if text_begin == 0 => Err("it is empty".into()),
        (_, None) => Err("it is no type of a function".into()),
    }
}

struct Token<'t> {
    text: &'t str,
    /// Where it begins.
    begin: usize,
}

impl Token<'_> {
    fn is_word(&self) -> bool {
        self.text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
    }
}

/// A part of a declarator: what it makes of a type.
enum Wrap {
    Pointer { is_const: bool },
    Array(Option<u64>),
    Function(Vec<Param>),
}

struct Reader<'t> {
    text: &'t str,
    tokens: Vec<Token<'t>>,
    at: usize,
    structs: Structs,
}

impl<'t> Reader<'t> {
    fn new(text: &'t str) -> Result<Reader<'t>, String> {
        if text.len() > MAX_BYTES {
            return Err("it is too long".into());
        }
        Ok(Reader { text, tokens: tokens(text)?, at: 0, structs: Structs::new() })
    }

    fn peek(&self, ahead: usize) -> &'t str {
        self.tokens.get(self.at + ahead).map_or("", |t| t.text)
    }

    fn eat(&mut self, what: &str) -> bool {
        let is_there = self.peek(0) == what;
        self.at += usize::from(is_there);
        is_there
    }

    fn expect(&mut self, what: &str) -> Result<(), String> {
        match self.eat(what) {
            true => Ok(()),
            false if self.peek(0).is_empty() => Err(format!("it ends before `{what}`")),
            false => Err(format!("`{what}` is expected before `{}`", self.peek(0))),
        }
    }

    fn name(&mut self) -> Option<&'t str> {
        let token = self.tokens.get(self.at).filter(|t| t.is_word() && !is_keyword(t.text))?;
        self.at += 1;
        Some(token.text)
    }

    /// Reads `struct X { … };`, `typedef struct X X;` and `typedef struct X { … } X;`.
    fn structs(&mut self) -> Result<(), String> {
        loop {
            let is_typedef = self.eat("typedef");
            if !is_typedef && !(self.peek(0) == "struct" && (self.peek(2) == "{" || self.peek(2) == ";")) {
                return Ok(());
            }
            let Type::Struct(name) = self.specifiers(0)?.ty else {
                return Err("a `typedef` is for structs only".into());
            };
            if is_typedef && self.name() != Some(&name) {
                return Err(format!("a `typedef` of `struct {name}` has the same name"));
            }
            self.expect(";")?;
        }
    }

    fn specifiers(&mut self, depth: usize) -> Result<Qualified, String> {
        let (mut is_const, mut words, mut found) = (false, Vec::new(), None);
        while let Some(token) = self.tokens.get(self.at) {
            let word = token.text;
            match word {
                "const" => is_const = true,
                "void" | "char" | "short" | "int" | "long" | "float" | "double" | "signed" | "unsigned" => {
                    words.push(word);
                }
                "struct" if found.is_none() && words.is_empty() => {
                    self.at += 1;
                    let name = self.name().ok_or("a struct has a name")?;
                    found = Some(Type::Struct(name.into()));
                    if self.eat("{") {
                        let fields = self.fields(depth + 1)?;
                        self.structs.insert(name.into(), fields);
                    }
                    continue;
                }
                _ if !token.is_word() || is_keyword(word) || found.is_some() || !words.is_empty() => break,
                _ => found = Some(named(word)),
            }
            self.at += 1;
        }
        let ty = match found {
            Some(ty) if words.is_empty() => ty,
            Some(_) => return Err(format!("`{}` goes with no other type", words.join(" "))),
            None if words.is_empty() => {
                let next = self.peek(0);
                return Err(if next.is_empty() { "a type is missing".into() } else { format!("`{next}` is no type") });
            }
            None => arithmetic(&words).ok_or_else(|| format!("`{}` is no type", words.join(" ")))?,
        };
        Ok(Qualified { is_const, ty })
    }

    /// The fields of a struct, and its closing brace.
    fn fields(&mut self, depth: usize) -> Result<Vec<(String, Qualified)>, String> {
        if depth > MAX_DEPTH {
            return Err("it nests too deeply".into());
        }
        let mut fields = Vec::new();
        while !self.eat("}") {
            let base = self.specifiers(depth)?;
            loop {
                let (name, ty) = self.declarator(base.clone(), depth)?;
                fields.push((name.ok_or("a field has a name")?, ty));
                if !self.eat(",") {
                    break;
                }
            }
            self.expect(";")?;
        }
        Ok(fields)
    }

    /// Reads what is around the name, and the name, which may be missing.
    fn declarator(&mut self, base: Qualified, depth: usize) -> Result<(Option<String>, Qualified), String> {
        let mut wraps = Vec::new();
        let name = self.wraps(&mut wraps, depth)?;
        Ok((name, applied(base, wraps)?))
    }

    /// Adds what a declarator applies, the nearest to the name first.
    fn wraps(&mut self, out: &mut Vec<Wrap>, depth: usize) -> Result<Option<String>, String> {
        if depth > MAX_DEPTH {
            return Err("it nests too deeply".into());
        }
        let mut pointers = Vec::new();
        while self.eat("*") {
            let mut is_const = false;
            loop {
                match self.peek(0) {
                    "const" => is_const = true,
                    "restrict" | "__restrict" => {}
                    _ => break,
                }
                self.at += 1;
            }
            pointers.push(Wrap::Pointer { is_const });
        }
        let name = if self.peek(0) == "(" && self.peek(1) == "*" {
            self.at += 1;
            let name = self.wraps(out, depth + 1)?;
            self.expect(")")?;
            name
        } else {
            self.name().map(String::from)
        };
        loop {
            if self.eat("(") {
                out.push(Wrap::Function(self.params(depth + 1)?));
            } else if self.eat("[") {
                let n = match self.peek(0) {
                    "]" => None,
                    n => {
                        self.at += 1;
                        Some(n.parse().map_err(|_| format!("`{n}` is no length"))?)
                    }
                };
                self.expect("]")?;
                out.push(Wrap::Array(n));
            } else {
                break;
            }
        }
        out.extend(pointers.into_iter().rev());
        Ok(name)
    }

    /// The parameters of a function, and its closing parenthesis.
    fn params(&mut self, depth: usize) -> Result<Vec<Param>, String> {
        let mut params = Vec::new();
        if self.eat(")") {
            return Ok(params);
        }
        if self.peek(0) == "void" && self.peek(1) == ")" {
            self.at += 2;
            return Ok(params);
        }
        loop {
            let begin = self.at;
            let base = self.specifiers(depth)?;
            let mut wraps = Vec::new();
            self.wraps(&mut wraps, depth)?;
            // An array as a parameter is a pointer, whatever its length.
            if let Some(first @ Wrap::Array(_)) = wraps.first_mut() {
                *first = Wrap::Pointer { is_const: false };
            }
            let ty = applied(base, wraps)?;
            params.push(Param { ty, text: self.text_since(begin) });
            if !self.eat(",") {
                break;
            }
        }
        self.expect(")")?;
        Ok(params)
    }

    fn text_since(&self, begin: usize) -> String {
        let range = self.tokens.get(begin).zip(self.at.checked_sub(1).and_then(|last| self.tokens.get(last)));
        range.and_then(|(first, last)| self.text.get(first.begin..last.begin + last.text.len())).unwrap_or("").into()
    }
}

/// The type that a declarator makes of another.
fn applied(base: Qualified, wraps: Vec<Wrap>) -> Result<Qualified, String> {
    if wraps.len() > MAX_DEPTH {
        return Err("it nests too deeply".into());
    }
    let mut ty = base;
    for wrap in wraps.into_iter().rev() {
        ty = match wrap {
            Wrap::Pointer { is_const } => Qualified { is_const, ty: Type::Pointer(Box::new(ty)) },
            Wrap::Array(n) => {
                Qualified { is_const: false, ty: Type::Array(Box::new(ty), n.ok_or("an array has no length")?) }
            }
            Wrap::Function(params) => {
                Qualified { is_const: false, ty: Type::Function(Box::new(Function { params, result: ty })) }
            }
        };
    }
    Ok(ty)
}

fn is_keyword(word: &str) -> bool {
    const KEYWORDS: &str = " __asm__ char const double enum extern float int long restrict short signed static struct typedef \
        union unsigned void volatile ";
    KEYWORDS.contains(&format!(" {word} "))
}

/// A type of one name: a number's, or a struct's.
fn named(word: &str) -> Type {
    let integer = |signed, bytes| Type::Integer { signed, bytes };
    match word {
        "bool" | "_Bool" => Type::Bool,
        "_Float16" => Type::Float(2),
        "int8_t" => integer(true, 1),
        "int16_t" => integer(true, 2),
        "int32_t" => integer(true, 4),
        "int64_t" => integer(true, 8),
        "uint8_t" => integer(false, 1),
        "uint16_t" => integer(false, 2),
        "uint32_t" => integer(false, 4),
        "uint64_t" => integer(false, 8),
        "size_t" | "uintptr_t" => integer(false, size_of::<usize>()),
        "ssize_t" | "ptrdiff_t" | "intptr_t" => integer(true, size_of::<usize>()),
        _ => Type::Struct(word.into()),
    }
}

/// A type of several words in any order.
fn arithmetic(words: &[&str]) -> Option<Type> {
    let count = |word: &str| words.iter().filter(|w| **w == word).count();
    let (signed, unsigned, long, int) = (count("signed"), count("unsigned"), count("long"), count("int"));
    if let [word @ ("void" | "float" | "double" | "char")] = words {
        return Some(match *word {
            "void" => Type::Void,
            "float" => Type::Float(4),
            "double" => Type::Float(8),
            _ => Type::Char,
        });
    }
    let bytes = match (count("char"), count("short"), long) {
        (1, 0, 0) if int == 0 => size_of::<c_char>(),
        (0, 1, 0) => size_of::<c_short>(),
        (0, 0, 0) => size_of::<c_int>(),
        (0, 0, 1) => size_of::<c_long>(),
        (0, 0, 2) => size_of::<c_longlong>(),
        _ => return None,
    };
    let others = count("void") + count("float") + count("double");
    (others == 0 && int <= 1 && signed + unsigned <= 1).then_some(Type::Integer { signed: unsigned == 0, bytes })
}

/// Words, numbers and signs; without comments, and lines that begin with `#`.
fn tokens(text: &str) -> Result<Vec<Token<'_>>, String> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        let length = if c.is_ascii_whitespace() {
            c.len_utf8()
        } else if rest.starts_with("//") || c == '#' {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").ok_or("a comment does not end")? + 2
        } else {
            let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len()).max(c.len_utf8());
            tokens.push(Token { text: &rest[..length], begin: at });
            length
        };
        at += length;
    }
    Ok(tokens)
}
