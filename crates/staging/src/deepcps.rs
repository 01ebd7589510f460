//! DeepCPS (section 4, Figure 3): text to a term of the calculus, with names and types, in one pass.
//!
//! One pass, since a call's continuation is what follows it: a long program nests deep, but is read as a list. Calls whose last
//! argument is still to be read wait in a list, and become terms from the last to the first. Only braces recurse, to a limit.
//!
//! ```text
//! body   = ["@" stage ":"] ( call | "let" ["[" name "]"] name (function | atom) body | "fix" ["def"] name function body
//!        | "extern" name head body )
//! call   = callee {atom | function} [head body]          // without `head body`, the last of its braces
//!        | expression [atom | function | head body]      // with operators: the continuation gets the result
//! callee = atom | function
//! function = head "{" body "}"
//! head   = "(" [parameter {"," parameter}] ")" ["[" [name] "]"]
//! parameter = [type] name | name ":" type
//! type   = "bool" | "int" | "float" | "double" | "stage" | "fn" "[" [type {"," type}] "]" | "[" type {"," type} "]"
//! atom   = name | number | text | "true" | "false" | "always" | "never" | "{" literal {"," literal} "}" | "[" atom "," atom {"," atom} "]"
//! literal = number | "true" | "false" | "[" literal "," literal {"," literal} "]"
//! stage  = and {"|" and}     and = not {"&" not}     not = "!" not | name | "always" | "never" | "(" stage ")"
//! ```
//!
//! **Natural staging.** A body without `@` is staged on the implicit stage of the function that it is the body of, the program's is
//! ⊤.
//!
//! **Names of `fix`.** `let f` of a function that calls itself is a `fix`, in whose body `let` binds `f` as soon as it is known. By
//! the rules, code within a `fix` is executed before its name is bound. So a call that names a fixed function is staged on that
//! name, too, and what follows `fix def f` is naturally staged on `f`. This delays nothing but until the `fix` itself is executed.
//!
//! **Aggregates.** `[x, y]` is a function that calls another one with its parts, `(k) { k x y }`, and its type `[A, B]` is
//! `fn[fn[A, B]]`. So an aggregate is known although its parts are not, and it is taken apart by a call: `point (x, y)`. An array
//! of aggregates is one of tuples, `field` and `put_field` load and store a part of an element.
//!
//! **Other code.** `extern f (float x, fn[float] return)` declares a function of an Impala program or a C library. Its calls are
//! executed when the program runs.
//!
//! **The end.** A file may end with `let`s: it exports what they bound. Otherwise `exit` says what its results are.

use crate::diagnostics::{staging_name, staging_syntax, staging_type};
use crate::lexer::{Kind, Token, text as text_bytes, tokens};
use crate::names::{Declaration, Names};
use crate::prim::Prim;
use crate::program::{Export, Program, Said, Signatures};
use crate::term::{Body, Const, Lam, MAX_STAGE_DEPTH, Stage, StageNode, Terms, Value, Var};
use crate::types::{Ty, TyNode, Types};
use nyala_base::{FileId, Sink, Sources, Span};
use rustc_hash::{FxHashMap, FxHashSet};

mod aggregates;
mod operators;

/// Limit on braces, brackets and parentheses within each other.
const MAX_DEPTH: u32 = 200;

/// Reads a file. `None`: what is wrong is in the sink.
pub fn read(sources: &Sources, file: FileId, sink: &mut Sink) -> Option<Program> {
    read_named(sources, file, Said { sink, names: None })
}

pub(crate) fn read_named(sources: &Sources, file: FileId, Said { sink, names }: Said) -> Option<Program> {
    let mut types = Types::default();
    let basic =
        [TyNode::Bool, TyNode::Int, TyNode::Float, TyNode::Stage, TyNode::Error, TyNode::Double].map(|t| types.add(t));
    let mut terms = Terms::default();
    let always = terms.stage(StageNode::Const(true));
    let mut reader = Reader {
        tokens: tokens(file, sources.text(file)),
        pos: 0,
        depth: 0,
        terms,
        types,
        basic,
        var_types: FxHashMap::default(),
        places: FxHashMap::default(),
        names: FxHashMap::default(),
        scope: Vec::new(),
        fixed: FxHashSet::default(),
        used: FxHashSet::default(),
        uses: Vec::new(),
        foreign: FxHashSet::default(),
        operands: Vec::new(),
        exports: Vec::new(),
        faults: Sink::default(),
    };
    let body = reader.body(always, true);
    if body.is_ok() {
        reader.check_operands();
    }
    if let Some(names) = names {
        reader.say_names(names);
    }
    let failed = reader.faults.has_errors();
    sink.diagnostics.append(&mut reader.faults.diagnostics);
    let Reader { terms, exports, types, var_types: of_vars, places, .. } = reader;
    let signatures = Signatures { types, error: basic[ERROR], of_vars, places };
    body.ok().filter(|_| !failed).map(|body| Program {
        terms,
        body,
        exports,
        signatures,
        is_bundled: false,
        in_order: false,
    })
}

/// A fault of the grammar, which is reported.
struct Reported;

type Read<T> = Result<T, Reported>;

#[derive(Clone, Copy)]
struct Operand {
    value: Value,
    ty: Ty,
    span: Span,
    /// The exact value of a literal, which may have to be a `double`.
    exact: Option<f64>,
}

struct Head {
    params: Vec<Var>,
    own: Var,
    ty: Ty,
}

/// A call or declaration that the rest of the body belongs to.
enum Pending {
    Call { stage: Stage, callee: Value, args: Vec<Value>, params: Vec<Var>, own: Var, span: Span },
    Let { stage: Stage, own: Var, var: Var, value: Value, fix: Option<(Var, Lam)>, span: Span },
    Fix { stage: Stage, var: Var, lam: Lam, span: Span },
}

/// What follows a call.
enum Next {
    /// The rest of the body, which is that of a function with this stage.
    Rest(Var),
    End(Body),
}

struct Reader<'s> {
    tokens: Vec<Token<'s>>,
    pos: usize,
    depth: u32,
    terms: Terms,
    types: Types,
    /// `bool`, `int`, `float`, `stage`, the type of faulty code, `double`.
    basic: [Ty; 6],
    var_types: FxHashMap<Var, Ty>,
    places: FxHashMap<Var, Span>,
    /// The variables of each name that are in scope, the visible one last; and what comes into scope in order.
    names: FxHashMap<&'s str, Vec<Var>>,
    scope: Vec<&'s str>,
    /// Bound by `fix`.
    fixed: FxHashSet<Var>,
    used: FxHashSet<Var>,
    uses: Vec<(Span, Var)>,
    /// Declared by `extern`.
    foreign: FxHashSet<Var>,
    /// Operands of built-in functions of several types.
    operands: Vec<(Prim, Ty, Span)>,
    exports: Vec<Export>,
    faults: Sink,
}

const BOOL: usize = 0;
const INT: usize = 1;
const FLOAT: usize = 2;
const STAGE: usize = 3;
const ERROR: usize = 4;
const DOUBLE: usize = 5;

impl<'s> Reader<'s> {
    // --- Tokens.

    fn token(&self) -> Token<'s> {
        self.tokens[self.pos.min(self.tokens.len() - 1)]
    }

    fn next(&mut self) -> Token<'s> {
        let token = self.token();
        self.pos += 1;
        token
    }

    fn at(&self, text: &str) -> bool {
        self.token().kind != Kind::End && self.token().text == text
    }

    fn eat(&mut self, text: &str) -> bool {
        let found = self.at(text);
        self.pos += usize::from(found);
        found
    }

    fn unexpected<T>(&mut self, expected: &str) -> Read<T> {
        let Token { text, span, .. } = self.token();
        self.faults.push(staging_syntax::unexpected(span, text, expected));
        Err(Reported)
    }

    fn expect(&mut self, text: &str) -> Read<Span> {
        if self.at(text) { Ok(self.next().span) } else { self.unexpected(&format!("`{text}`")) }
    }

    /// A built-in function's name may be given to something else, unless it stands between operands or has no result.
    fn is_word(text: &str) -> bool {
        let is_kept = |p: Prim| p.is_infix() || matches!(p, Prim::If | Prim::Exit);
        crate::print::WORDS.contains(&text) || Prim::from_name(text).is_some_and(is_kept)
    }

    fn name(&mut self) -> Read<(&'s str, Span)> {
        let token = self.token();
        if token.kind == Kind::Name && !Self::is_word(token.text) {
            self.pos += 1;
            return Ok((token.text, token.span));
        }
        self.unexpected("a name")
    }

    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Read<T>) -> Read<T> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            self.faults.push(staging_syntax::too_deep(self.token().span, MAX_DEPTH));
            return Err(Reported);
        }
        let result = read(self);
        self.depth -= 1;
        result
    }

    // --- Names.

    fn declare(&mut self, name: &'s str, span: Span, ty: Ty) -> Var {
        let var = self.terms.var(Some(name.into()));
        self.var_types.insert(var, ty);
        self.places.insert(var, span);
        var
    }

    fn enter(&mut self, name: &'s str, var: Var) {
        self.names.entry(name).or_default().push(var);
        self.scope.push(name);
    }

    fn leave(&mut self, mark: usize) {
        for name in self.scope.drain(mark..) {
            self.names.get_mut(name).and_then(Vec::pop);
        }
    }

    fn stage_var(&mut self, name: Option<(&'s str, Span)>) -> Var {
        match name {
            Some((name, span)) => {
                let var = self.declare(name, span, self.basic[STAGE]);
                self.enter(name, var);
                var
            }
            None => self.terms.var(Some("s".into())),
        }
    }

    fn of_var(&mut self, var: Var) -> Stage {
        self.terms.stage(StageNode::Var(var))
    }

    fn say_names(&mut self, names: &mut Names) {
        let mut places: Vec<(Var, Span)> = self.places.iter().map(|(&x, &place)| (x, place)).collect();
        places.sort();
        let mut declared: FxHashMap<Var, usize> = FxHashMap::default();
        for (x, place) in places {
            let ty = self.var_types.get(&x).map_or(String::new(), |&ty| self.types.show(ty));
            let text = format!("{ty} {}", self.terms.name(x).map_or("x", |n| n));
            declared.insert(x, names.declarations.len());
            names.declarations.push(Declaration { place, text });
        }
        names.uses.extend(self.uses.iter().filter_map(|(span, x)| Some((*span, *declared.get(x)?))));
    }

    // --- Stages and types.

    fn stage(&mut self) -> Read<Stage> {
        let mut stage = self.stage_and()?;
        while self.eat("|") {
            let right = self.stage_and()?;
            stage = self.join(StageNode::Or(stage, right))?;
        }
        Ok(stage)
    }

    fn stage_and(&mut self) -> Read<Stage> {
        let mut stage = self.stage_not()?;
        while self.eat("&") {
            let right = self.stage_not()?;
            stage = self.join(StageNode::And(stage, right))?;
        }
        Ok(stage)
    }

    fn join(&mut self, node: StageNode) -> Read<Stage> {
        let stage = self.terms.stage(node);
        // The program's own operators are added to it.
        if self.terms.stage_depth(stage) > MAX_STAGE_DEPTH / 2 {
            self.faults.push(staging_syntax::too_deep(self.token().span, MAX_STAGE_DEPTH / 2));
            return Err(Reported);
        }
        Ok(stage)
    }

    fn stage_not(&mut self) -> Read<Stage> {
        if self.eat("!") {
            let of = self.nested(Self::stage_not)?;
            return self.join(StageNode::Not(of));
        }
        if self.eat("(") {
            let stage = self.nested(Self::stage)?;
            self.expect(")")?;
            return Ok(stage);
        }
        for (word, known) in [("always", true), ("never", false)] {
            if self.eat(word) {
                return Ok(self.terms.stage(StageNode::Const(known)));
            }
        }
        let token = self.token();
        if token.kind != Kind::Name {
            return self.unexpected("a stage");
        }
        let operand = self.atom()?;
        Ok(match operand.value {
            Value::Var(x) => self.of_var(x),
            _ => self.terms.stage(StageNode::Const(true)),
        })
    }

    fn is_type(&self) -> bool {
        if self.at("[") {
            return true;
        }
        self.token().kind == Kind::Name
            && ["bool", "int", "float", "double", "stage", "fn"].contains(&self.token().text)
    }

    fn ty(&mut self) -> Read<Ty> {
        if !self.is_type() {
            return self.unexpected("a type");
        }
        Ok(match self.next().text {
            "[" => {
                let mut parts = vec![self.nested(Self::ty)?];
                while self.eat(",") {
                    parts.push(self.nested(Self::ty)?);
                }
                self.expect("]")?;
                match parts[..] {
                    [of] => self.types.add(TyNode::Array(of)),
                    _ => self.aggregate_ty(parts),
                }
            }
            "bool" => self.basic[BOOL],
            "int" => self.basic[INT],
            "float" => self.basic[FLOAT],
            "double" => self.basic[DOUBLE],
            "stage" => self.basic[STAGE],
            _ => {
                self.expect("[")?;
                let mut params = Vec::new();
                while !self.at("]") {
                    params.push(self.nested(Self::ty)?);
                    if !self.eat(",") {
                        break;
                    }
                }
                self.expect("]")?;
                self.types.add(TyNode::Fn(params.into()))
            }
        })
    }

    fn aggregate_ty(&mut self, parts: Vec<Ty>) -> Ty {
        let with = self.types.add(TyNode::Fn(parts.into()));
        self.types.add(TyNode::Fn([with].into()))
    }

    // --- Functions.

    /// Parameters and stage; they are in scope from here on.
    fn head(&mut self) -> Read<Head> {
        self.expect("(")?;
        let mut params = Vec::new();
        let mut types = Vec::new();
        while !self.at(")") {
            let ty = if self.is_type() { Some(self.ty()?) } else { None };
            let (name, span) = self.name()?;
            let ty = match ty {
                Some(ty) => ty,
                None if self.eat(":") => self.ty()?,
                None => self.types.open(),
            };
            let var = self.declare(name, span, ty);
            self.enter(name, var);
            params.push(var);
            types.push(ty);
            if !self.eat(",") {
                break;
            }
        }
        self.expect(")")?;
        let mut own = None;
        if self.eat("[") {
            if !self.at("]") {
                own = Some(self.name()?);
            }
            self.expect("]")?;
        }
        let own = self.stage_var(own);
        Ok(Head { params, own, ty: self.types.add(TyNode::Fn(types.into())) })
    }

    fn braces(&mut self, head: Head) -> Read<Lam> {
        self.expect("{")?;
        let natural = self.of_var(head.own);
        let body = self.nested(|r| r.body(natural, false))?;
        self.expect("}")?;
        Ok(self.terms.lam(head.own, head.params, body))
    }

    /// A function in braces, whose type is checked before its body is read.
    fn function(&mut self, expected: Ty) -> Read<Lam> {
        let mark = self.scope.len();
        let span = self.token().span;
        let head = self.head()?;
        self.unify(span, head.ty, expected);
        let lam = self.braces(head)?;
        self.leave(mark);
        Ok(lam)
    }

    /// At a parenthesis: whether it opens the parameters of a function, not an expression.
    fn is_function(&self) -> bool {
        let mut depth = 0;
        for i in self.pos..self.tokens.len() {
            match self.tokens[i].text {
                "(" => depth += 1,
                ")" => depth -= 1,
                "{" | "}" | "@" => return false,
                _ => (),
            }
            if depth == 0 {
                return self.tokens.get(i + 1).is_some_and(|t| t.text == "{" || t.text == "[");
            }
        }
        false
    }

    // --- Types of values.

    fn unify(&mut self, span: Span, found: Ty, expected: Ty) {
        if !self.types.unify(found, expected) {
            let (found, expected) = (self.types.show(found), self.types.show(expected));
            self.faults.push(staging_type::mismatch(span, &found, &expected));
        }
    }

    /// A value for a parameter: any for a stage, and an integer literal for a `float`.
    fn pass(&mut self, operand: Operand, expected: Ty) -> Value {
        match (self.types.get(expected), operand.value) {
            (TyNode::Stage, _) => (),
            (TyNode::Float, Value::Const(Const::Int(i))) => return Value::Const(Const::Float(i as f32)),
            (TyNode::Double, _) if let Some(exact) = operand.exact => return Value::Const(Const::Double(exact)),
            _ => self.unify(operand.span, operand.ty, expected),
        }
        operand.value
    }

    // --- Values and expressions.

    fn is_atom(&self) -> bool {
        let token = self.token();
        match token.kind {
            Kind::Int | Kind::Float | Kind::Text => true,
            Kind::Sign => token.text == "{" || token.text == "[",
            Kind::Name => {
                !["let", "extern", "fix", "fn", "stage", "bool", "int", "float", "double"].contains(&token.text)
            }
            _ => false,
        }
    }

    fn atom(&mut self) -> Read<Operand> {
        if !self.is_atom() {
            return self.unexpected("a value");
        }
        if self.at("{") {
            return self.array();
        }
        if self.at("[") {
            return self.nested(Self::aggregate);
        }
        let Token { kind, text, span } = self.next();
        let of =
            |value: Const, ty: usize| Operand { value: Value::Const(value), ty: self.basic[ty], span, exact: None };
        let bad = match kind {
            Kind::Int => match text.parse::<i32>() {
                Ok(i) => return Ok(Operand { exact: Some(i.into()), ..of(Const::Int(i), INT) }),
                Err(_) => true,
            },
            Kind::Float => match text.parse::<f64>() {
                Ok(f) if (f as f32).is_finite() => {
                    return Ok(Operand { exact: Some(f), ..of(Const::Float(f as f32), FLOAT) });
                }
                _ => true,
            },
            Kind::Text => {
                let text = self.terms.array(text_bytes(text));
                let ty = self.types.add(TyNode::Text);
                return Ok(Operand { value: Value::Const(Const::Text(text)), ty, span, exact: None });
            }
            _ => false,
        };
        if bad {
            self.faults.push(staging_syntax::number(span, text));
            return Err(Reported);
        }
        if let Some(&var) = self.names.get(text).and_then(|v| v.last()) {
            self.used.insert(var);
            self.uses.push((span, var));
            let ty = self.var_types[&var];
            let value = if self.foreign.contains(&var) { Value::Const(Const::Foreign(var)) } else { Value::Var(var) };
            return Ok(Operand { value, ty, span, exact: None });
        }
        match text {
            "true" => return Ok(of(Const::Bool(true), BOOL)),
            "false" => return Ok(of(Const::Bool(false), BOOL)),
            "always" => return Ok(of(Const::Stage(true), STAGE)),
            "never" => return Ok(of(Const::Stage(false), STAGE)),
            _ => (),
        }
        if let Some(prim) = Prim::from_name(text) {
            let ty = self.prim_ty(prim, span);
            return Ok(Operand { value: Value::Const(Const::Prim(prim)), ty, span, exact: None });
        }
        self.faults.push(staging_name::error(span, text));
        Ok(Operand { value: Value::Const(Const::Int(0)), ty: self.basic[ERROR], span, exact: None })
    }

    /// The built-in function of an operator, with how tightly it binds.
    fn operator(&self) -> Option<(Prim, u32)> {
        let token = self.token();
        if token.kind == Kind::End || self.names.get(token.text).is_some_and(|v| !v.is_empty()) {
            return None;
        }
        let prim = Prim::from_name(token.text)?;
        let binds = match prim {
            Prim::Or => 1,
            Prim::And => 2,
            Prim::Eq | Prim::Ne | Prim::Lt | Prim::Le | Prim::Gt | Prim::Ge => 3,
            Prim::Add | Prim::Sub => 4,
            Prim::Mul | Prim::Div | Prim::Mod => 5,
            _ => return None,
        };
        Some((prim, binds))
    }

    /// An expression whose operators bind at least that tightly. Each operator is a call, which it adds to `steps` with its result.
    fn expression(&mut self, at_least: u32, steps: &mut Vec<(Operand, [Value; 2], Operand)>) -> Read<Operand> {
        let mut left = if self.at("(") {
            self.next();
            let inner = self.nested(|r| r.expression(0, steps))?;
            self.expect(")")?;
            inner
        } else {
            self.atom()?
        };
        while let Some((prim, binds)) = self.operator()
            && binds >= at_least
        {
            let span = self.next().span;
            let right = self.nested(|r| r.expression(binds + 1, steps))?;
            let ty = self.prim_ty(prim, span);
            let TyNode::Fn(params) = self.types.get(ty) else { return Err(Reported) };
            // A literal takes the type of the other operand.
            let is_literal = left.exact.is_some();
            let operands = if is_literal {
                let right = self.pass(right, params[1]);
                [self.pass(left, params[0]), right]
            } else {
                let left = self.pass(left, params[0]);
                [left, self.pass(right, params[1])]
            };
            let TyNode::Fn(result) = self.types.get(params[2]) else { return Err(Reported) };
            let var = self.terms.var(Some("t".into()));
            self.var_types.insert(var, result[0]);
            let span = left.span.to(right.span);
            self.places.insert(var, span);
            let callee = Operand { value: Value::Const(Const::Prim(prim)), ty, span, exact: None };
            left = Operand { value: Value::Var(var), ty: result[0], span, exact: None };
            steps.push((callee, operands, left));
        }
        Ok(left)
    }

    // --- Bodies.

    /// A call that names a fixed function waits for it.
    fn wait_for_fixed(&mut self, mut stage: Stage, callee: Value, args: &[Value]) -> Stage {
        for value in std::iter::once(&callee).chain(args) {
            if let Value::Var(x) = *value
                && self.fixed.contains(&x)
                && !self.has_conjunct(stage, x)
            {
                let of_fixed = self.of_var(x);
                stage = self.terms.stage(StageNode::And(stage, of_fixed));
            }
        }
        stage
    }

    fn has_conjunct(&self, stage: Stage, var: Var) -> bool {
        match self.terms.stage_node(stage) {
            StageNode::Var(x) => x == var,
            StageNode::And(a, b) => self.has_conjunct(a, var) || self.has_conjunct(b, var),
            _ => false,
        }
    }

    fn body(&mut self, natural: Stage, is_program: bool) -> Read<Body> {
        let mark = self.scope.len();
        let mut natural = natural;
        let mut pending: Vec<Pending> = Vec::new();
        let mut exports: Vec<(&'s str, Var)> = Vec::new();
        let mut body = loop {
            if is_program && self.token().kind == Kind::End {
                let results: Vec<Value> = exports.iter().map(|&(_, x)| Value::Var(x)).collect();
                self.exports = exports
                    .iter()
                    .enumerate()
                    .map(|(at, (name, x))| Export { name: (*name).into(), var: *x, at, is_used: self.used.contains(x) })
                    .collect();
                let exit = Value::Const(Const::Prim(Prim::Exit));
                let span = self.token().span;
                break self.terms.apply(natural, exit, results, span);
            }
            let mut stage = natural;
            if self.eat("@") {
                stage = self.stage()?;
                self.expect(":")?;
            }
            let span = self.token().span;
            if self.eat("extern") {
                let (name, place) = self.name()?;
                let inner = self.scope.len();
                let head = self.head()?;
                self.leave(inner);
                let var = self.declare(name, place, head.ty);
                self.foreign.insert(var);
                self.enter(name, var);
            } else if self.eat("let") {
                let (name, item) = self.read_let(stage, span)?;
                let Pending::Let { own, var, .. } = item else { return Err(Reported) };
                pending.push(item);
                natural = self.of_var(own);
                // The last of a name is the one that is exported.
                exports.retain(|(other, _)| *other != name);
                exports.push((name, var));
            } else if self.eat("fix") {
                // `def` may be a name, too.
                if self.at("def") && self.tokens.get(self.pos + 1).is_some_and(|t| t.kind == Kind::Name) {
                    self.next();
                }
                let (name, place) = self.name()?;
                let ty = self.types.open();
                let var = self.declare(name, place, ty);
                self.fixed.insert(var);
                self.enter(name, var);
                let lam = self.function(ty)?;
                pending.push(Pending::Fix { stage, var, lam, span });
                natural = self.of_var(var);
            } else {
                match self.call(stage, &mut pending)? {
                    Next::Rest(own) => natural = self.of_var(own),
                    Next::End(body) => break body,
                }
            }
        };
        for item in pending.into_iter().rev() {
            body = match item {
                Pending::Call { stage, callee, mut args, params, own, span } => {
                    args.push(Value::Lam(self.terms.lam(own, params, body)));
                    self.terms.apply(stage, callee, args, span)
                }
                Pending::Let { stage, own, var, value, fix, span } => {
                    let then = Value::Lam(self.terms.lam(own, [var], body));
                    match fix {
                        None => self.terms.apply(stage, then, [value], span),
                        Some((fixed, lam)) => {
                            let of_fixed = self.of_var(fixed);
                            let rest = self.terms.apply(of_fixed, then, [Value::Var(fixed)], span);
                            self.terms.fix(stage, fixed, lam, rest, span)
                        }
                    }
                }
                Pending::Fix { stage, var, lam, span } => self.terms.fix(stage, var, lam, body, span),
            };
        }
        self.leave(mark);
        Ok(body)
    }

    /// Behind `let`. The stage and the name are in scope then.
    fn read_let(&mut self, stage: Stage, span: Span) -> Read<(&'s str, Pending)> {
        let mut own = None;
        if self.eat("[") {
            own = Some(self.name()?);
            self.expect("]")?;
        }
        let (name, place) = self.name()?;
        let (value, ty, fix) = if self.at("(") {
            let ty = self.types.open();
            let fixed = self.declare(name, place, ty);
            self.fixed.insert(fixed);
            let mark = self.scope.len();
            self.enter(name, fixed);
            let lam = self.function(ty)?;
            self.leave(mark);
            (Value::Lam(lam), ty, self.used.contains(&fixed).then_some((fixed, lam)))
        } else {
            let operand = self.atom()?;
            (operand.value, operand.ty, None)
        };
        let var = self.declare(name, place, ty);
        let own = self.stage_var(own);
        self.enter(name, var);
        Ok((name, Pending::Let { stage, own, var, value, fix, span: span.to(place) }))
    }

    /// A call, after those of the other operators in its expression.
    fn call(&mut self, stage: Stage, pending: &mut Vec<Pending>) -> Read<Next> {
        let mut stage = stage;
        let start = self.token().span;
        let mut args: Vec<Value> = Vec::new();
        let mut found: Vec<Ty> = Vec::new();
        let callee = if self.at("(") && self.is_function() {
            let ty = self.types.open();
            let lam = self.function(ty)?;
            Operand { value: Value::Lam(lam), ty, span: start, exact: None }
        } else if self.is_atom() || self.at("(") {
            let mut steps = Vec::new();
            let operand = self.expression(0, &mut steps)?;
            match steps.pop() {
                None => operand,
                Some((callee, operands, _)) => {
                    for (callee, args, result) in steps {
                        let Value::Var(var) = result.value else { return Err(Reported) };
                        let own = self.stage_var(None);
                        let stage_here = self.wait_for_fixed(stage, callee.value, &args);
                        pending.push(Pending::Call {
                            stage: stage_here,
                            callee: callee.value,
                            args: args.to_vec(),
                            params: vec![var],
                            own,
                            span: result.span,
                        });
                        stage = self.of_var(own);
                    }
                    args = operands.to_vec();
                    callee
                }
            }
        } else {
            return self.unexpected("a call");
        };
        let expected = match self.types.get(callee.ty) {
            TyNode::Fn(params) => Some(params),
            TyNode::Open | TyNode::Error | TyNode::Same(_) => None,
            _ => {
                let shown = self.types.show(callee.ty);
                self.faults.push(staging_type::not_a_function(callee.span, &shown));
                None
            }
        };
        // Operands of an operator come first: they have been checked.
        let n_checked = args.len();
        if let Some(params) = &expected {
            found.extend(&params[..n_checked.min(params.len())]);
        }
        let mut open = None;
        let mut span = callee.span;
        loop {
            let param = expected.as_ref().and_then(|p| p.get(args.len())).copied();
            if self.at("(") {
                let mark = self.scope.len();
                let place = self.token().span;
                let head = self.head()?;
                if let Some(param) = param {
                    self.unify(place, head.ty, param);
                }
                found.push(head.ty);
                if !self.at("{") {
                    open = Some(head);
                    break;
                }
                let lam = self.braces(head)?;
                self.leave(mark);
                args.push(Value::Lam(lam));
            } else if self.is_atom() {
                let operand = self.atom()?;
                span = span.to(operand.span);
                found.push(operand.ty);
                args.push(match param {
                    Some(param) => self.pass(operand, param),
                    None => operand.value,
                });
                if let (Value::Const(Const::Prim(prim @ (Prim::Field | Prim::PutField))), 3, Some(params)) =
                    (callee.value, args.len(), &expected)
                {
                    self.field(prim, params, args[2], operand.span);
                }
            } else {
                break;
            }
        }
        match &expected {
            Some(params) if params.len() != found.len() => {
                self.faults.push(staging_type::arguments(span, found.len(), params.len()));
            }
            None if matches!(self.types.get(callee.ty), TyNode::Open) => {
                let ty = self.types.add(TyNode::Fn(found.into()));
                self.unify(callee.span, callee.ty, ty);
            }
            _ => (),
        }
        let stage = self.wait_for_fixed(stage, callee.value, &args);
        Ok(match open {
            Some(Head { params, own, .. }) => {
                pending.push(Pending::Call { stage, callee: callee.value, args, params, own, span });
                Next::Rest(own)
            }
            None => Next::End(self.terms.apply(stage, callee.value, args, span)),
        })
    }
}
