//! Reads the graph's text form back ([`print`](crate::print)). Lines that start with `;` are comments.

use crate::builtins::Builtin;
use crate::cont::{AsmInfo, Filter, Linkage};
use crate::layout;
use crate::ops::{Op, Rule};
use crate::scalar::float_bits;
use crate::types::{MAX_LANES, Prim, StructId, Ty, TyKind};
use crate::world::{Cont, Global, Val, World};
use rustc_hash::FxHashMap;

/// A syntax or type error in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadError {
    /// The line, from 1.
    pub line: usize,
    /// The reason: the text found, and the text expected.
    pub message: String,
}

/// Maximal depth of nested values in text.
const MAX_DEPTH: usize = 1000;

/// Reads the world that a text describes. Fails at the first error.
pub fn read(text: &str) -> Result<World> {
    let mut reader = Reader {
        w: World::new(),
        structs: FxHashMap::default(),
        names: FxHashMap::default(),
        globals: FxHashMap::default(),
    };
    let lines: Vec<(usize, &str)> = text
        .lines()
        .enumerate()
        .map(|(i, l)| (i + 1, l.trim()))
        .filter(|(_, l)| !l.is_empty() && !l.starts_with(';'))
        .collect();
    let Some(((_, "graph"), lines)) = lines.split_first() else {
        return Err(ReadError { line: 1, message: "expected `graph`".into() });
    };
    reader.run(lines)?;
    Ok(reader.w)
}

struct Reader {
    w: World,
    structs: FxHashMap<String, (StructId, Ty)>,
    names: FxHashMap<String, Val>,
    globals: FxHashMap<String, Global>,
}

/// A line of text from some point on.
struct Cursor<'a> {
    line: usize,
    rest: &'a str,
}

type Result<T> = std::result::Result<T, ReadError>;

impl<'a> Cursor<'a> {
    fn error<T>(&self, message: impl Into<String>) -> Result<T> {
        Err(ReadError { line: self.line, message: message.into() })
    }

    fn skip(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn eat(&mut self, token: &str) -> bool {
        self.skip();
        let Some(rest) = self.rest.strip_prefix(token) else { return false };
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if token.ends_with(is_word) && rest.starts_with(is_word) {
            return false;
        }
        self.rest = rest;
        true
    }

    fn expect(&mut self, token: &str) -> Result<()> {
        if self.eat(token) {
            return Ok(());
        }
        let found: String = self.rest.chars().take(20).collect();
        self.error(format!("found `{found}`, expected `{token}`"))
    }

    fn name(&mut self) -> Result<&'a str> {
        self.skip();
        let end = self.rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '.')).unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at(end);
        if name.is_empty() {
            let found: String = self.rest.chars().take(20).collect();
            return self.error(format!("found `{found}`, expected a name"));
        }
        self.rest = rest;
        Ok(name)
    }

    /// Bytes in quotes, as [`write_bytes`](crate::print::write_bytes) writes them.
    fn bytes(&mut self) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        let text = self.rest.strip_prefix('"')?;
        let mut at = 0;
        loop {
            let rest = text.as_bytes().get(at..)?;
            match rest {
                [b'"', ..] => break,
                [b'\\', b'x', a, b, ..] => {
                    let digit = |d: u8| (d as char).to_digit(16);
                    bytes.push((digit(*a)? * 16 + digit(*b)?) as u8);
                    at += 4;
                }
                [b'\\', ..] | [] => return None,
                [byte, ..] => {
                    bytes.push(*byte);
                    at += 1;
                }
            }
        }
        self.rest = &text[at + 1..];
        Some(bytes)
    }

    /// A text in quotes, with Rust's escapes.
    fn string(&mut self) -> Option<String> {
        self.skip();
        let mut chars = self.rest.strip_prefix('"')?.chars();
        let mut text = String::new();
        loop {
            text.push(match chars.next()? {
                '"' => break,
                '\\' => match chars.next()? {
                    'n' => '\n',
                    't' => '\t',
                    'r' => '\r',
                    '0' => '\0',
                    'u' => {
                        let (hex, rest) = chars.as_str().strip_prefix('{')?.split_once('}')?;
                        chars = rest.chars();
                        char::from_u32(u32::from_str_radix(hex, 16).ok()?)?
                    }
                    other => other,
                },
                c => c,
            });
        }
        self.rest = chars.as_str();
        Some(text)
    }
}

impl Reader {
    fn run(&mut self, lines: &[(usize, &str)]) -> Result<()> {
        let cursor = |&(line, rest): &(usize, &'_ str)| -> (usize, String) { (line, rest.to_string()) };
        let lines: Vec<(usize, String)> = lines.iter().map(cursor).collect();
        for (line, text) in &lines {
            let mut c = Cursor { line: *line, rest: text };
            if c.eat("struct") {
                let name = c.name()?;
                let made = self.w.types.declare_struct(name);
                self.structs.insert(name.into(), made);
            }
        }
        let mut conts: FxHashMap<usize, Cont> = FxHashMap::default();
        for (line, text) in &lines {
            let mut c = Cursor { line: *line, rest: text };
            if c.eat("struct") {
                self.read_struct(&mut c)?;
            } else if c.eat("static") {
                let mutable = c.eat("mut");
                let name = c.name()?;
                c.expect(":")?;
                let ty = self.ty(&mut c, 0)?;
                let g = self.w.declare_global(name, ty, mutable);
                self.globals.insert(name.into(), g);
            } else if !c.eat("let") {
                conts.insert(*line, self.declare(&mut c)?);
            }
        }
        for (line, text) in &lines {
            let mut c = Cursor { line: *line, rest: text };
            if c.eat("static") {
                c.eat("mut");
                let name = c.name()?;
                c.expect(":")?;
                self.ty(&mut c, 0)?;
                if c.eat("=") {
                    let init = self.value(&mut c, 0)?;
                    self.w.set_init(self.globals[name], init);
                }
            }
        }
        // `let` lines first: they stand behind the headers whose bodies use them.
        for (line, text) in &lines {
            let mut c = Cursor { line: *line, rest: text };
            if c.eat("let") {
                let name = c.name()?;
                c.expect("=")?;
                let v = self.value(&mut c, 0)?;
                self.names.insert(name.into(), v);
            }
        }
        for (line, text) in &lines {
            if let Some(&k) = conts.get(line) {
                let mut c = Cursor { line: *line, rest: text };
                self.define(&mut c, k)?;
            }
        }
        Ok(())
    }

    fn read_struct(&mut self, c: &mut Cursor) -> Result<()> {
        let (id, _) = self.structs[c.name()?];
        c.expect("{")?;
        let mut fields = Vec::new();
        while !c.eat("}") {
            let name = c.name()?.to_string();
            c.expect(":")?;
            fields.push((name, self.ty(c, 0)?));
            if !c.eat(",") {
                c.expect("}")?;
                break;
            }
        }
        self.w.types.set_fields(id, fields);
        Ok(())
    }

    /// Declares the continuation of a header: reads linkage, name, types and names of the parameters, and skips
    /// filters.
    fn declare(&mut self, c: &mut Cursor) -> Result<Cont> {
        let (linkage, symbol) = self.linkage(c)?;
        c.expect("cont")?;
        let name = c.name()?;
        c.expect("(")?;
        let (mut tys, mut names) = (Vec::new(), Vec::new());
        while !c.eat(")") {
            self.skip_filter(c)?;
            names.push(c.name()?);
            c.expect(":")?;
            tys.push(self.ty(c, 0)?);
            if !c.eat(",") {
                c.expect(")")?;
                break;
            }
        }
        let ty = self.w.types.cn(&tys);
        // `x.1` is `x`, made distinct by the printer.
        let plain = |n: &str| n.split('.').next().unwrap_or(n).to_string();
        let base: Vec<String> = names.iter().map(|n| plain(n)).collect();
        let base: Vec<&str> = base.iter().map(|s| s.as_str()).collect();
        let k = self.w.declare(&plain(name), ty, &base);
        let symbol = symbol.unwrap_or_else(|| plain(name));
        let linkage = match linkage {
            Linkage::Exported(_) => Linkage::Exported(symbol),
            Linkage::Foreign(_) => Linkage::Foreign(symbol),
            other => other,
        };
        self.w.cont_mut(k).linkage = linkage.into();
        for (i, n) in names.iter().enumerate() {
            let p = self.w.param(k, i);
            self.names.insert(n.to_string(), p);
        }
        let v = self.w.cont_val(k);
        self.names.insert(name.into(), v);
        Ok(k)
    }

    /// Reads the linkage before `cont`, and the symbol if it has one.
    fn linkage(&mut self, c: &mut Cursor) -> Result<(Linkage, Option<String>)> {
        if c.eat("asm") {
            let (Some(template), Some(constraints)) = (c.string(), c.string()) else {
                return c.error("expected the template and the constraints of assembly");
            };
            let (volatile, align_stack, intel) = (c.eat("volatile"), c.eat("alignstack"), c.eat("intel"));
            return Ok((Linkage::Asm(AsmInfo { template, constraints, volatile, align_stack, intel }), None));
        }
        let linkage = if c.eat("export") {
            Linkage::Exported(String::new())
        } else if c.eat("foreign") {
            Linkage::Foreign(String::new())
        } else {
            Linkage::Internal
        };
        Ok((linkage, c.string()))
    }

    fn skip_filter(&mut self, c: &mut Cursor) -> Result<()> {
        if c.eat("@") && c.eat("(") {
            let mut depth = 1;
            let end = c.rest.char_indices().find(|&(_, ch)| {
                depth += (ch == '(') as i32 - (ch == ')') as i32;
                depth == 0
            });
            let Some((end, _)) = end else { return c.error("a filter is not closed") };
            c.rest = &c.rest[end + 1..];
        }
        Ok(())
    }

    fn filter(&mut self, c: &mut Cursor) -> Result<Option<Val>> {
        if !c.eat("@") {
            return Ok(None);
        }
        if !c.eat("(") {
            return Ok(Some(self.w.lit_bool(true)));
        }
        let v = self.value(c, 0)?;
        c.expect(")")?;
        Ok(Some(v))
    }

    fn define(&mut self, c: &mut Cursor, k: Cont) -> Result<()> {
        self.linkage(c)?;
        c.expect("cont")?;
        c.name()?;
        c.expect("(")?;
        let mut filter = Filter::default();
        while !c.eat(")") {
            let f = self.filter(c)?;
            filter.params.push(f);
            c.name()?;
            c.expect(":")?;
            self.ty(c, 0)?;
            c.eat(",");
        }
        filter.all = self.filter(c)?;
        if filter.is_empty() {
            filter.params.clear();
        }
        self.w.cont_mut(k).filter = filter.into();
        if !c.eat("=") {
            return Ok(());
        }
        // `f(x)` calls `f`; `run(f)(x)` calls the value of an operation.
        let start = c.rest;
        let name = c.name()?;
        let callee = match self.operand(name) {
            Some(v) if !self.is_called_twice(c) => v,
            _ => {
                c.rest = start;
                self.value(c, 0)?
            }
        };
        let args = self.list(c, 0)?;
        c.skip();
        if !c.rest.is_empty() {
            return c.error(format!("found `{}`, expected the end of the line", c.rest));
        }
        self.w.define(k, callee, &args);
        Ok(())
    }

    fn is_called_twice(&self, c: &Cursor) -> bool {
        let mut depth = 0;
        for (i, ch) in c.rest.char_indices() {
            depth += (ch == '(') as i32 - (ch == ')') as i32;
            if depth == 0 && ch == ')' {
                return c.rest[i + 1..].trim_start().starts_with('(');
            }
        }
        false
    }

    fn operand(&mut self, name: &str) -> Option<Val> {
        if let Some(&v) = self.names.get(name) {
            return Some(v);
        }
        let b = Builtin::ALL.into_iter().find(|b| b.name() == name)?;
        Some(self.w.builtin(b))
    }

    fn list(&mut self, c: &mut Cursor, depth: usize) -> Result<Vec<Val>> {
        c.expect("(")?;
        let mut vals = Vec::new();
        while !c.eat(")") {
            vals.push(self.value(c, depth + 1)?);
            if !c.eat(",") {
                c.expect(")")?;
                break;
            }
        }
        Ok(vals)
    }

    fn value(&mut self, c: &mut Cursor, depth: usize) -> Result<Val> {
        if depth > MAX_DEPTH {
            return c.error("nests too deep");
        }
        c.skip();
        if c.eat("?") {
            let v = self.value(c, depth + 1)?;
            return Ok(self.w.op(Op::Known, &[v]));
        }
        if c.eat("&") {
            let name = c.name()?;
            let Some(&g) = self.globals.get(name) else { return c.error(format!("no static `{name}`")) };
            return Ok(self.w.global_val(g));
        }
        if c.rest.starts_with(|ch: char| ch.is_ascii_digit() || ch == '-') {
            return self.literal(c);
        }
        if c.rest.starts_with('"') {
            let Some(bytes) = c.bytes() else {
                return c.error("bytes are in quotes, with escapes `\\x` and two digits");
            };
            let elems: Vec<Val> = bytes.iter().map(|&b| self.w.lit_prim(Prim::U8, b.into())).collect();
            let elem = self.w.types.prim(Prim::U8);
            let ty = self.w.types.array(elem, elems.len() as u64);
            return Ok(self.w.op_ty(Op::Array, ty, &elems));
        }
        let mut name = c.name()?;
        // `fast` and `stream` are prefixes if a name follows, for no value follows another one.
        let word = name;
        let fast = matches!(word, "fast" | "stream")
            && c.rest.trim_start_matches(' ').starts_with(|ch: char| ch.is_ascii_lowercase());
        if fast {
            name = c.name()?;
        }
        match name {
            "true" | "false" => return Ok(self.w.lit_bool(name == "true")),
            "undef" => {
                c.expect("[")?;
                let ty = self.ty(c, 0)?;
                c.expect("]")?;
                return Ok(self.w.undef(ty));
            }
            "addr" => {
                c.expect("[")?;
                let ty = self.ty(c, 0)?;
                c.expect("]")?;
                c.expect("(")?;
                let bits = c.name()?.parse();
                c.expect(")")?;
                let Ok(bits) = bits else { return c.error("expected a number") };
                return Ok(self.w.lit(ty, bits));
            }
            _ => {}
        }
        if !c.rest.starts_with(['(', '[']) {
            return match self.operand(name) {
                Some(v) => Ok(v),
                None => c.error(format!("no value `{name}`")),
            };
        }
        let Some(op) = Op::from_name(name) else { return c.error(format!("no operation `{name}`")) };
        let stated = if op.rule() == Rule::Stated {
            c.expect("[")?;
            let ty = self.ty(c, 0)?;
            c.expect("]")?;
            Some(ty)
        } else {
            None
        };
        let args = self.list(c, depth)?;
        if let Err(e) = self.w.result_ty(op, stated, &args) {
            return c.error(format!("`{}`: {e}", op.name()));
        }
        let old = self.w.set_fast(fast);
        let val = match stated {
            Some(ty) => self.w.op_ty(op, ty, &args),
            None => self.w.op(op, &args),
        };
        self.w.set_fast(old);
        if word == "stream" {
            self.w.set_streaming(val);
        }
        Ok(val)
    }

    fn literal(&mut self, c: &mut Cursor) -> Result<Val> {
        let is_part = |(i, ch): (usize, char)| {
            ch.is_ascii_alphanumeric()
                || ch == '.'
                || ch == '_'
                || ((ch == '-' || ch == '+') && (i == 0 || c.rest[..i].ends_with('e')))
        };
        let end = c.rest.char_indices().find(|&p| !is_part(p)).map_or(c.rest.len(), |p| p.0);
        let (text, rest) = c.rest.split_at(end);
        let prim = Prim::ALL.into_iter().find(|p| text.ends_with(p.name()));
        let number = prim.map_or(text, |p| text[..text.len() - p.name().len()].trim_end_matches('_'));
        let prim = prim.unwrap_or(Prim::I32);
        let bits = if let Some(hex) = number.strip_prefix("0x") {
            u64::from_str_radix(hex, 16).ok()
        } else if prim == Prim::F32 {
            number.parse::<f32>().ok().map(|x| x.to_bits() as u64)
        } else if prim.is_float() {
            number.parse().ok().map(|x| float_bits(prim, x))
        } else {
            number.parse::<i128>().ok().map(|n| n as u64).filter(|&b| prim.normalize(b) == b)
        };
        let Some(bits) = bits else { return c.error(format!("`{text}` is no literal")) };
        c.rest = rest;
        Ok(self.w.lit_prim(prim, bits))
    }

    fn ty(&mut self, c: &mut Cursor, depth: usize) -> Result<Ty> {
        if depth > MAX_DEPTH {
            return c.error("a type nests too deep");
        }
        if c.eat("&") {
            let mut space = 0;
            if c.rest.starts_with('[') && c.rest[1..].starts_with(|ch: char| ch.is_ascii_digit()) {
                c.expect("[")?;
                let Ok(n) = c.name()?.parse() else { return c.error("expected an address space") };
                space = n;
                c.expect("]")?;
            }
            let pointee = self.ty(c, depth + 1)?;
            return Ok(self.w.types.intern(TyKind::Ptr { pointee, space }));
        }
        if c.eat("(") {
            let elems = self.tys(c, ")", depth)?;
            return Ok(self.w.types.tuple(&elems));
        }
        if c.eat("[") {
            let elem = self.ty(c, depth + 1)?;
            let ty = if c.eat("*") {
                let Ok(n) = c.name()?.parse() else { return c.error("expected a length") };
                self.w.types.array(elem, n)
            } else {
                self.w.types.indef_array(elem)
            };
            c.expect("]")?;
            if layout::size_align(&self.w.types, ty).is_none() && depth == 0 {
                return c.error("the type is too large");
            }
            return Ok(ty);
        }
        let name = c.name()?;
        if name == "cn" {
            c.expect("(")?;
            let params = self.tys(c, ")", depth)?;
            return Ok(self.w.types.cn(&params));
        }
        if let Some(prim) = Prim::from_name(name) {
            return Ok(self.w.types.prim(prim));
        }
        if name == "simd" {
            c.expect("[")?;
            let prim = Prim::from_name(c.name()?);
            c.expect("*")?;
            let n = c.name()?.parse().ok().filter(|n| (1..=MAX_LANES).contains(n));
            c.expect("]")?;
            let Some((prim, n)) = prim.zip(n) else {
                return c.error("expected `simd[T * n]`, a number or bool, 1 to 64");
            };
            return Ok(self.w.types.vector(prim, n));
        }
        match (name, self.structs.get(name)) {
            ("mem", _) => Ok(self.w.types.mem()),
            ("code", _) => Ok(self.w.types.code()),
            (_, Some(&(_, ty))) => Ok(ty),
            _ => c.error(format!("no type `{name}`")),
        }
    }

    fn tys(&mut self, c: &mut Cursor, end: &str, depth: usize) -> Result<Vec<Ty>> {
        let mut tys = Vec::new();
        while !c.eat(end) {
            tys.push(self.ty(c, depth + 1)?);
            if !c.eat(",") {
                c.expect(end)?;
                break;
            }
        }
        Ok(tys)
    }
}

#[cfg(test)]
mod tests {
    use super::read;
    use crate::print::print;

    /// Text that prints as it was read.
    fn check(text: &str) {
        let world = match read(text) {
            Ok(world) => world,
            Err(e) => panic!("line {}: {}", e.line, e.message),
        };
        assert_eq!(crate::verify::verify(&world, &world.roots()), Vec::<String>::new());
        assert_eq!(print(&world), text);
    }

    #[test]
    fn reads_what_it_prints() {
        check(
            "graph
export cont pow(m: mem, x: i32, @(?n) n: i32, ret: cn(mem, i32)) @(and(?n, ?x)) = branch(m, eq(n, 0), then, else)
  cont then(m.1: mem) = ret(m.1, 1)
  cont else(m.2: mem) = run(pow)(m.2, x, add(n, -1), k)
  cont k(m.3: mem, r: i32) = ret(m.3, mul(x, r))
",
        );
    }

    #[test]
    fn reads_memory_statics_and_structs() {
        check(
            "graph
struct P { x: f32, y: &P }
static mut counter: i32 = 7
static table: [i32 * 3] = array[[i32 * 3]](1, 2, 3)
export \"f\" cont g(m: mem, i: i64, p: &P, ret: cn(mem, f32, i32)) = ret(m.1, mul(t, 2.5f32), t.1)
  let m.1 = store(m, &counter, 1)
  let t = load(m.1, lea(p, 0i64))
  let t.1 = load(m.1, lea(&table, i))
",
        );
    }

    #[test]
    fn reads_bytes_as_text() {
        check(
            "graph
static greeting: [u8 * 27] = \"; a = b(c), \\x22d\\x22 \\x5c\\x0a{e} k: \\xff\\x00\"
static table: [[u8 * 2] * 2] = array[[[u8 * 2] * 2]](\"ab\", \"  \")
export cont f(m: mem, i: i32, b: u8, ret: cn(mem, [u8 * 2], [u8 * 2], simd[u8 * 2], u8)) = ret(m, \"z\\x00\", array[[u8 * 2]](b, 1u8), array[simd[u8 * 2]](97u8, 98u8), add(t, t.1))
  let t = load(m, lea(&greeting, i))
  let t.1 = load(m, lea(lea(&table, i), i))
",
        );
        for text in ["\"a", "\"", "\"\\x\"", "\"\\x0", "\"\\xg0\"", "\"\\n\""] {
            let error = read(&format!("graph\nstatic s: [u8 * 1] = {text}"));
            assert!(error.is_err_and(|e| e.line == 2 && e.message.starts_with("bytes are in quotes")), "{text}");
        }
    }

    #[test]
    fn says_what_is_wrong_and_where() {
        for (text, line, message) in [
            ("", 1, "expected `graph`"),
            ("graph\ncont f(m: mem) = g(m)", 2, "no operation `g`"),
            (
                "graph\n; a comment\ncont f(m: mem, x: i32) = f(m, add(x, true))",
                3,
                "`add`: operand 1 is bool, expected i32",
            ),
            ("graph\ncont f(m: foo)", 2, "no type `foo`"),
        ] {
            let error = read(text).err().map(|e| (e.line, e.message));
            assert_eq!(error, Some((line, message.to_string())), "{text}");
        }
    }
}
