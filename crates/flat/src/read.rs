//! Reads the text form of flat SSA. The reader checks syntax and names; verify the module afterwards.

use crate::data::*;
use crate::vector::VectorOp;
use nyala_base::{Id, Span};
use nyala_ir::lanes::PLATFORMS;
use nyala_ir::scalar::float_bits;
use nyala_ir::types::MAX_LANES;
use nyala_ir::{AsmInfo, Op, Prim, Ty, TyKind, Types};
use rustc_hash::FxHashMap;

/// An error in a text, with its line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReadError {
    /// The line of the error, from 1.
    pub line: usize,
    /// The message, in lower case and without a full stop.
    pub message: String,
}

impl std::fmt::Display for ReadError {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

type Result<T> = std::result::Result<T, ReadError>;

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Word(String),
    Number(String),
    Text(Vec<u8>),
    Sign(char),
    End,
}

/// Maximal depth of nested types and initializers.
const MAX_DEPTH: usize = 200;

/// Reads a module.
pub fn read(text: &str) -> Result<Module> {
    let tokens = tokenize(text)?;
    let mut reader = Reader {
        tokens,
        at: 0,
        depth: 0,
        module: Module::default(),
        structs: FxHashMap::default(),
        funcs: FxHashMap::default(),
        globals: FxHashMap::default(),
    };
    reader.module()?;
    Ok(reader.module)
}

fn tokenize(text: &str) -> Result<Vec<(Token, usize)>> {
    let mut tokens = Vec::new();
    for (i, line) in text.lines().enumerate() {
        tokenize_line(line, i + 1, &mut tokens)?;
    }
    tokens.push((Token::End, text.lines().count().max(1)));
    Ok(tokens)
}

fn tokenize_line(text: &str, line: usize, tokens: &mut Vec<(Token, usize)>) -> Result<()> {
    let chars: Vec<char> = text.chars().collect();
    let mut i = 0;
    while i < chars.len() {
        let c = chars[i];
        let start = i;
        let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
        if c == ';' {
            break;
        } else if c.is_whitespace() {
            i += 1;
        } else if c.is_ascii_digit() || (c == '-' && chars.get(i + 1).is_some_and(char::is_ascii_digit)) {
            i += 1;
            let hex = chars[start..].starts_with(&['0', 'x']);
            while i < chars.len()
                && (is_word(chars[i]) || (!hex && matches!(chars[i], '-' | '+') && matches!(chars[i - 1], 'e' | 'E')))
            {
                i += 1;
            }
            tokens.push((Token::Number(chars[start..i].iter().collect()), line));
        } else if is_word(c) {
            while i < chars.len() && is_word(chars[i]) {
                i += 1;
            }
            tokens.push((Token::Word(chars[start..i].iter().collect()), line));
        } else if c == '"' {
            i += 1;
            let mut bytes = Vec::new();
            loop {
                match chars.get(i) {
                    None => return Err(ReadError { line, message: "text without end".into() }),
                    Some('"') => break,
                    Some('\\') => {
                        let digits: String = chars.iter().skip(i + 2).take(2).collect();
                        let byte = (chars.get(i + 1) == Some(&'x')).then(|| u8::from_str_radix(&digits, 16).ok());
                        let byte = byte.flatten();
                        bytes.push(byte.ok_or(ReadError { line, message: "escapes are `\\x` and two digits".into() })?);
                        i += 4;
                    }
                    Some(c) => {
                        bytes.extend(c.to_string().as_bytes());
                        i += 1;
                    }
                }
            }
            i += 1;
            tokens.push((Token::Text(bytes), line));
        } else if chars[i..].starts_with(&['-', '>']) {
            i += 2;
            tokens.push((Token::Sign('>'), line));
        } else {
            i += 1;
            tokens.push((Token::Sign(c), line));
        }
    }
    Ok(())
}

struct Reader {
    tokens: Vec<(Token, usize)>,
    at: usize,
    depth: usize,
    module: Module,
    structs: FxHashMap<String, (nyala_ir::StructId, Ty)>,
    funcs: FxHashMap<String, Func>,
    globals: FxHashMap<String, GlobalId>,
}

/// Names of one function while it is read.
#[derive(Default)]
struct Scope {
    values: FxHashMap<String, (Value, bool)>,
    blocks: FxHashMap<String, Block>,
}

impl Reader {
    fn peek(&self) -> &Token {
        &self.tokens[self.at].0
    }

    fn next(&mut self) -> Token {
        let token = self.tokens[self.at].0.clone();
        if self.at + 1 < self.tokens.len() {
            self.at += 1;
        }
        token
    }

    fn fail<T>(&self, message: impl Into<String>) -> Result<T> {
        Err(ReadError { line: self.tokens[self.at.saturating_sub(1)].1, message: message.into() })
    }

    fn accept(&mut self, sign: char) -> bool {
        let found = *self.peek() == Token::Sign(sign);
        if found {
            self.next();
        }
        found
    }

    fn accept_word(&mut self, word: &str) -> bool {
        let found = matches!(self.peek(), Token::Word(w) if w == word);
        if found {
            self.next();
        }
        found
    }

    fn small_number(&mut self, otherwise: &str) -> Result<u32> {
        match self.next() {
            Token::Number(n) => n.parse().or_else(|_| self.fail(otherwise)),
            _ => self.fail(otherwise),
        }
    }

    fn expect(&mut self, sign: char) -> Result<()> {
        match self.next() {
            Token::Sign(s) if s == sign => Ok(()),
            other => self.fail(format!("found {other:?}, expected `{sign}`")),
        }
    }

    fn word(&mut self) -> Result<String> {
        match self.next() {
            Token::Word(w) => Ok(w),
            other => self.fail(format!("found {other:?}, expected a name")),
        }
    }

    /// Reads items separated by commas up to `end`, which is consumed.
    fn list<T>(&mut self, end: char, mut item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let mut items = Vec::new();
        while !self.accept(end) {
            items.push(item(self)?);
            if !self.accept(',') {
                self.expect(end)?;
                break;
            }
        }
        Ok(items)
    }

    fn module(&mut self) -> Result<()> {
        if !self.accept_word("flat") {
            return self.fail("the text of a module begins with `flat`");
        }
        self.declare_structs()?;
        let mut bodies = Vec::new();
        let mut inits = Vec::new();
        while *self.peek() != Token::End {
            match self.word()?.as_str() {
                "struct" => self.struct_fields()?,
                "global" => {
                    let global = self.global()?;
                    inits.push((global, self.at));
                    let line = self.tokens[self.at].1;
                    while self.tokens[self.at].1 == line && *self.peek() != Token::End {
                        self.at += 1;
                    }
                }
                keyword @ ("func" | "piece" | "callback" | "export" | "kernel" | "foreign" | "asm") => {
                    let func = self.signature(keyword)?;
                    if !matches!(keyword, "foreign" | "asm") {
                        self.expect('{')?;
                        bodies.push((func, self.at));
                        while !matches!(self.next(), Token::Sign('}') | Token::End) {}
                    }
                }
                other => return self.fail(format!("found `{other}`, expected `struct`, `global`, `func`, …")),
            }
        }
        for (global, at) in inits {
            self.at = at;
            let init = self.init()?;
            self.module.globals[global.idx()].init = init;
        }
        for (func, at) in bodies {
            self.at = at;
            self.body(func)?;
        }
        Ok(())
    }

    /// Declares all structs first, for they may refer to each other in any order.
    fn declare_structs(&mut self) -> Result<()> {
        for i in 0..self.tokens.len().saturating_sub(2) {
            if let [(Token::Word(keyword), a), (Token::Word(name), _), (Token::Sign('{'), _)] = &self.tokens[i..i + 3]
                && keyword == "struct"
                && (i == 0 || self.tokens[i - 1].1 < *a)
            {
                let declared = self.module.types.declare_struct(name);
                self.structs.insert(name.clone(), declared);
            }
        }
        Ok(())
    }

    fn struct_fields(&mut self) -> Result<()> {
        let name = self.word()?;
        self.expect('{')?;
        let fields = self.list('}', |r| {
            let name = r.word()?;
            r.expect(':')?;
            Ok((name, r.ty()?))
        })?;
        match self.structs.get(&name) {
            Some(&(id, _)) => self.module.types.set_fields(id, fields),
            None => return self.fail(format!("unknown struct `{name}`")),
        }
        Ok(())
    }

    fn global(&mut self) -> Result<GlobalId> {
        // A global may itself be named `space`.
        let has_space = self.tokens.get(self.at + 1).is_some_and(|t| t.0 == Token::Sign('('));
        let mut space = 0;
        if has_space && self.accept_word("space") {
            self.expect('(')?;
            let number = match self.next() {
                Token::Number(n) => n.parse().ok(),
                _ => None,
            };
            let Some(number) = number else { return self.fail("expected an address space") };
            space = number;
            self.expect(')')?;
        }
        let mutable = self.accept_word("mut");
        let name = self.word()?;
        self.expect(':')?;
        let ty = self.ty()?;
        self.expect('=')?;
        let global = self.module.add_global(Global { name: name.clone(), ty, mutable, space, init: Init::Zero });
        self.globals.insert(name, global);
        Ok(global)
    }

    fn init(&mut self) -> Result<Init> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return self.fail("initializer nests too deep");
        }
        let init = match self.next() {
            Token::Word(w) if w == "zero" => Init::Zero,
            Token::Word(w) if w == "undef" => Init::Undef,
            Token::Word(w) if w == "true" => Init::Bits(1),
            Token::Word(w) if w == "false" => Init::Bits(0),
            Token::Number(n) => Init::Bits(self.number(&n)?.1),
            Token::Text(bytes) => Init::Bytes(bytes),
            Token::Sign('(') => Init::Parts(self.list(')', Self::init)?),
            Token::Sign('$') => {
                let global = self.global_name()?;
                self.expect('+')?;
                match self.next() {
                    Token::Number(n) => match n.parse() {
                        Ok(offset) => Init::Global(global, offset),
                        Err(_) => return self.fail("wrong offset"),
                    },
                    _ => return self.fail("an offset follows"),
                }
            }
            Token::Sign('@') => Init::Func(self.func_name()?),
            other => return self.fail(format!("found {other:?}, expected an initializer")),
        };
        self.depth -= 1;
        Ok(init)
    }

    fn global_name(&mut self) -> Result<GlobalId> {
        let name = self.word()?;
        match self.globals.get(&name) {
            Some(&g) => Ok(g),
            None => self.fail(format!("unknown global `{name}`")),
        }
    }

    fn func_name(&mut self) -> Result<Func> {
        let name = self.word()?;
        match self.funcs.get(&name) {
            Some(&f) => Ok(f),
            None => self.fail(format!("unknown function `{name}`")),
        }
    }

    fn text(&mut self) -> Option<String> {
        let Token::Text(bytes) = self.peek().clone() else { return None };
        self.next();
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn signature(&mut self, keyword: &str) -> Result<Func> {
        let block = match keyword {
            "kernel" => {
                self.expect('[')?;
                self.list(']', |s| s.small_number("an extent of a block is a number"))?
            }
            _ => Vec::new(),
        };
        let symbol = self.text();
        let asm = (keyword == "asm").then(|| AsmInfo {
            template: symbol.clone().unwrap_or_default(),
            constraints: self.text().unwrap_or_default(),
            volatile: self.accept_word("volatile"),
            align_stack: self.accept_word("alignstack"),
            intel: self.accept_word("intel"),
        });
        let name = self.word()?;
        self.expect('(')?;
        let params = self.list(')', Self::ty)?;
        self.expect('>')?;
        self.expect('(')?;
        let rets = self.list(')', Self::ty)?;
        let symbol = symbol.unwrap_or_else(|| name.clone());
        let linkage = match keyword {
            "asm" => Linkage::Asm(asm.unwrap_or_default()),
            "export" => Linkage::Exported(symbol),
            "kernel" => Linkage::Kernel(symbol, [0, 1, 2].map(|i| block.get(i).copied().unwrap_or(0))),
            "foreign" => Linkage::Foreign(symbol),
            "callback" => Linkage::Callback,
            _ => Linkage::Internal,
        };
        let func = self.module.declare(&name, linkage, &params, &rets);
        self.module.funcs[func.idx()].is_piece = keyword == "piece";
        if self.funcs.insert(name.clone(), func).is_some() {
            return self.fail(format!("function `{name}` is there twice"));
        }
        Ok(func)
    }

    fn types(&mut self) -> &mut Types {
        &mut self.module.types
    }

    fn ty(&mut self) -> Result<Ty> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return self.fail("type nests too deep");
        }
        let ty = match self.next() {
            Token::Word(w) => match w.as_str() {
                "mem" => self.types().mem(),
                "code" => self.types().code(),
                "cn" => {
                    self.expect('(')?;
                    let params = self.list(')', Self::ty)?;
                    self.types().cn(&params)
                }
                "simd" => {
                    self.expect('[')?;
                    let prim = Prim::from_name(&self.word()?);
                    self.expect('*')?;
                    let n = match self.next() {
                        Token::Number(n) => n.parse().ok().filter(|n| (1..=MAX_LANES).contains(n)),
                        _ => None,
                    };
                    self.expect(']')?;
                    match prim.zip(n) {
                        Some((prim, n)) => self.types().vector(prim, n),
                        None => return self.fail("a vector is `simd[T * n]`, a number or bool, 1 to 64"),
                    }
                }
                name => match (Prim::from_name(name), self.structs.get(name)) {
                    (Some(prim), _) => self.types().prim(prim),
                    (None, Some(&(_, ty))) => ty,
                    _ => return self.fail(format!("unknown type `{name}`")),
                },
            },
            Token::Sign('&') => {
                // `&[1]T` has an address space, `&[T]` has not.
                let space = match (self.peek().clone(), &self.tokens.get(self.at + 1).map(|t| t.0.clone())) {
                    (Token::Sign('['), Some(Token::Number(n))) => n.parse().ok(),
                    _ => None,
                };
                if space.is_some() {
                    self.at += 2;
                    self.expect(']')?;
                }
                let pointee = self.ty()?;
                self.types().intern(TyKind::Ptr { pointee, space: space.unwrap_or(0) })
            }
            Token::Sign('(') => {
                let elems = self.list(')', Self::ty)?;
                self.types().tuple(&elems)
            }
            Token::Sign('[') => {
                let elem = self.ty()?;
                if self.accept('*') {
                    let n = match self.next() {
                        Token::Number(n) => n.parse().ok(),
                        _ => None,
                    };
                    self.expect(']')?;
                    match n {
                        Some(n) => self.types().array(elem, n),
                        None => return self.fail("an array's length is a number"),
                    }
                } else {
                    self.expect(']')?;
                    self.types().indef_array(elem)
                }
            }
            other => return self.fail(format!("found {other:?}, expected a type")),
        };
        self.depth -= 1;
        Ok(ty)
    }

    /// Reads the type and the bits of a literal.
    fn number(&mut self, text: &str) -> Result<(Prim, u64)> {
        let Some(prim) = Prim::ALL.into_iter().find(|p| text.ends_with(p.name())) else {
            return self.fail(format!("literal `{text}` has no type"));
        };
        let digits = &text[..text.len() - prim.name().len()];
        let bits = if let Some(hex) = digits.strip_prefix("0x") {
            u64::from_str_radix(hex.trim_end_matches('_'), 16).ok()
        } else {
            match prim {
                Prim::F32 => digits.parse::<f32>().ok().map(|x| x.to_bits() as u64),
                _ if prim.is_float() => digits.parse().ok().map(|x| float_bits(prim, x)),
                _ => digits.parse::<i128>().ok().map(|x| x as u64),
            }
        };
        match bits {
            Some(bits) => Ok((prim, prim.normalize(bits))),
            None => self.fail(format!("wrong literal `{text}`")),
        }
    }

    fn function(&mut self, func: Func) -> &mut Function {
        &mut self.module.funcs[func.idx()]
    }

    fn constant(&mut self, func: Func, constant: Const, ty: Ty) -> Value {
        self.function(func).constant(constant, ty)
    }

    fn body(&mut self, func: Func) -> Result<()> {
        let mut scope = Scope::default();
        let mut order = Vec::new();
        while !self.accept('}') {
            let block = self.block(func, &mut scope)?;
            order.push(block);
        }
        if order.len() != self.module.func(func).blocks.len() {
            return self.fail("jump to an unknown block");
        }
        if let Some((name, _)) = scope.values.iter().filter(|(_, v)| !v.1).min_by_key(|(_, v)| v.0) {
            return self.fail(format!("unknown value `{name}`"));
        }
        // Blocks were numbered when first mentioned: renumbers them in the order of the text.
        let mut new_id = vec![Block(0); order.len()];
        for (i, b) in order.iter().enumerate() {
            new_id[b.idx()] = Block::from_idx(i);
        }
        let function = self.function(func);
        let mut old: Vec<Option<BlockData>> = std::mem::take(&mut function.blocks).into_iter().map(Some).collect();
        for b in order {
            if let Some(mut data) = old[b.idx()].take() {
                data.term.edges_mut().for_each(|e| e.block = new_id[e.block.idx()]);
                function.blocks.push(data);
            }
        }
        if function.blocks.len() != new_id.len() {
            return self.fail("a block is there twice");
        }
        Ok(())
    }

    fn block_name(&mut self, func: Func, scope: &mut Scope) -> Result<Block> {
        let name = self.word()?;
        if let Some(&b) = scope.blocks.get(&name) {
            return Ok(b);
        }
        let function = self.function(func);
        let wanted = name.split('.').next().unwrap_or(&name).to_string();
        function.blocks.push(BlockData {
            name: wanted,
            params: Vec::new(),
            insts: Vec::new(),
            term: Terminator::Unreachable,
        });
        let block = Block::from_idx(function.blocks.len() - 1);
        scope.blocks.insert(name, block);
        Ok(block)
    }

    fn define(&mut self, func: Func, scope: &mut Scope, name: String, ty: Ty) -> Result<Value> {
        let function = self.function(func);
        let entry = scope.values.entry(name);
        let name = entry.key().clone();
        let slot = entry.or_insert_with(|| (function.new_value(ty, plain_name(&name)), false));
        if std::mem::replace(&mut slot.1, true) {
            return self.fail(format!("value `{name}` is there twice"));
        }
        let value = slot.0;
        self.function(func).values[value.idx()].ty = ty;
        Ok(value)
    }

    fn block(&mut self, func: Func, scope: &mut Scope) -> Result<Block> {
        let is_entry = scope.blocks.is_empty();
        let block = self.block_name(func, scope)?;
        self.expect('(')?;
        let signature = self.module.func(func).params.clone();
        let mut n = 0;
        let params = self.list(')', |r| {
            let name = r.word()?;
            let ty = if is_entry && *r.peek() != Token::Sign(':') {
                match signature.get(n) {
                    Some(&ty) => ty,
                    None => return r.fail("the entry has more parameters than the function"),
                }
            } else {
                r.expect(':')?;
                r.ty()?
            };
            n += 1;
            r.define(func, scope, name, ty)
        })?;
        self.expect(':')?;
        self.function(func).blocks[block.idx()].params = params;
        loop {
            if let Some(term) = self.terminator(func, scope)? {
                self.function(func).blocks[block.idx()].term = term;
                return Ok(block);
            }
            let inst = self.inst(func, scope)?;
            self.function(func).blocks[block.idx()].insts.push(inst);
        }
    }

    fn edge(&mut self, func: Func, scope: &mut Scope) -> Result<Edge> {
        let block = self.block_name(func, scope)?;
        self.expect('(')?;
        let args = self.list(')', |r| r.value(func, scope))?;
        Ok(Edge { block, args })
    }

    fn terminator(&mut self, func: Func, scope: &mut Scope) -> Result<Option<Terminator>> {
        let Token::Word(word) = self.peek().clone() else { return self.fail("expected an instruction") };
        if !matches!(word.as_str(), "jump" | "branch" | "return" | "tail_call" | "tail_call_indirect" | "unreachable")
            || self.tokens.get(self.at + 1).is_some_and(|t| t.0 == Token::Sign(':'))
        {
            return Ok(None);
        }
        self.next();
        Ok(Some(match word.as_str() {
            "jump" => Terminator::Jump(self.edge(func, scope)?),
            "branch" => {
                let cond = self.value(func, scope)?;
                self.expect(',')?;
                let then = self.edge(func, scope)?;
                self.expect(',')?;
                Terminator::Branch { cond, then, els: self.edge(func, scope)? }
            }
            "return" => {
                self.expect('(')?;
                Terminator::Return(self.list(')', |r| r.value(func, scope))?)
            }
            "unreachable" => Terminator::Unreachable,
            _ => {
                let callee = if word == "tail_call" {
                    Callee::Func(self.func_name()?)
                } else {
                    Callee::Indirect(self.value(func, scope)?)
                };
                self.expect('(')?;
                Terminator::TailCall { callee, args: self.list(')', |r| r.value(func, scope))?, span: Span::NONE }
            }
        }))
    }

    fn inst(&mut self, func: Func, scope: &mut Scope) -> Result<Inst> {
        let named = self.tokens.get(self.at + 1).is_some_and(|t| t.0 == Token::Sign(':'));
        let result = if named {
            let name = self.word()?;
            self.expect(':')?;
            let ty = self.ty()?;
            self.expect('=')?;
            Some((name, ty))
        } else {
            None
        };
        let mut word = self.word()?;
        let fast = matches!(word.as_str(), "fast" | "stream");
        if fast {
            word = self.word()?;
        }
        let mut args = Args::new();
        let op = match word.as_str() {
            "call" => InstOp::Call(self.func_name()?),
            "call_indirect" => {
                args.push(self.value(func, scope)?);
                InstOp::CallIndirect
            }
            "vectorize" => {
                self.expect('[')?;
                let lanes = self.small_number("a number of lanes follows")?;
                let align = if self.accept(',') { self.small_number("what divides the bounds follows")? } else { 0 };
                self.expect(']')?;
                InstOp::Vectorize(self.func_name()?, lanes, align)
            }
            "launch" => {
                self.expect('[')?;
                let name = self.word()?;
                let Some(platform) = PLATFORMS.iter().position(|&p| p == name) else {
                    return self.fail(format!("unknown platform `{name}`"));
                };
                self.expect(']')?;
                InstOp::Launch(self.func_name()?, platform as u32)
            }
            _ => match (Op::from_name(&word), VectorOp::from_name(&word)) {
                (Some(op), _) => InstOp::Op(op),
                (None, Some(op)) => InstOp::Vector(op),
                (None, None) => return self.fail(format!("unknown instruction `{word}`")),
            },
        };
        self.expect('(')?;
        args.extend(self.list(')', |r| r.value(func, scope))?);
        let result = match result {
            Some((name, ty)) => Some(self.define(func, scope, name, ty)?),
            None => None,
        };
        Ok(Inst { op, args, result, span: Span::NONE, fast })
    }

    fn value(&mut self, func: Func, scope: &mut Scope) -> Result<Value> {
        match self.next() {
            Token::Number(n) => {
                let (prim, bits) = self.number(&n)?;
                let ty = self.types().prim(prim);
                Ok(self.constant(func, Const::Bits(bits), ty))
            }
            Token::Sign('@') => {
                let f = self.func_name()?;
                let ty = self.types().code();
                Ok(self.constant(func, Const::Func(f), ty))
            }
            Token::Sign('$') => {
                let stated = if self.accept('[') {
                    let ty = self.ty()?;
                    self.expect(']')?;
                    Some(ty)
                } else {
                    None
                };
                let global = self.global_name()?;
                let Global { ty: pointee, space, .. } = self.module.globals[global.idx()];
                let ty = stated.unwrap_or_else(|| self.types().intern(TyKind::Ptr { pointee, space }));
                Ok(self.constant(func, Const::Global(global), ty))
            }
            Token::Word(word) => match word.as_str() {
                "true" | "false" => {
                    let ty = self.module.types.bool();
                    Ok(self.constant(func, Const::Bits((word == "true") as u64), ty))
                }
                "undef" => {
                    self.expect('[')?;
                    let ty = self.ty()?;
                    self.expect(']')?;
                    Ok(self.constant(func, Const::Undef, ty))
                }
                "ptr" if *self.peek() == Token::Sign('[') => {
                    self.expect('[')?;
                    let ty = self.ty()?;
                    self.expect(']')?;
                    match self.next() {
                        Token::Number(n) => match n.parse() {
                            Ok(bits) => Ok(self.constant(func, Const::Bits(bits), ty)),
                            Err(_) => self.fail("wrong address"),
                        },
                        _ => self.fail("an address follows"),
                    }
                }
                "c" if *self.peek() == Token::Sign('@') => {
                    self.next();
                    let f = self.func_name()?;
                    let ty = self.types().code();
                    Ok(self.constant(func, Const::CFunc(f), ty))
                }
                name => {
                    let function = &mut self.module.funcs[func.idx()];
                    let unit = self.module.types.unit();
                    let entry = scope.values.entry(name.to_string());
                    Ok(entry.or_insert_with(|| (function.new_value(unit, plain_name(name)), false)).0)
                }
            },
            other => self.fail(format!("found {other:?}, expected a value")),
        }
    }
}

/// The name without the suffix that made it distinct; empty for a value that was printed without a name.
fn plain_name(name: &str) -> &str {
    let stem = name.split('.').next().unwrap_or(name);
    let numbered = stem.strip_prefix('v').is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
    if numbered { "" } else { stem }
}
