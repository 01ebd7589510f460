//! The tree as S-expressions, one statement per line: the output of `nyala emit --stage ast`, which the tests compare.
//!
//! ```text
//! (fn pow @(?x) ((x i32)) i32
//!   {(return (* x x))})
//! ```

use crate::ast::*;
use std::fmt::Write;

/// The text of all items of a file, with a newline at the end unless it is empty.
pub fn print(module: &Module) -> String {
    let mut p = Printer { module, out: String::new(), indent: 0, marks: Marks::default() };
    for item in &module.items {
        p.item(item);
        p.out.push('\n');
    }
    p.out
}

struct Printer<'a> {
    module: &'a Module,
    out: String,
    indent: usize,
    /// What the current expression is inside of.
    marks: Marks,
}

impl Printer<'_> {
    fn put(&mut self, text: &str) {
        self.out.push_str(text);
    }

    fn line(&mut self) {
        self.out.push('\n');
        for _ in 0..self.indent {
            self.out.push_str("  ");
        }
    }

    fn item(&mut self, item: &Item) {
        if item.private {
            self.put("priv ");
        }
        match &item.kind {
            ItemKind::Fn(f) => self.function(f),
            ItemKind::Extern(block) => {
                let convention = block.convention.as_ref().map_or("C", |c| &c.0);
                let _ = write!(self.out, "(extern {convention:?}");
                self.functions(&block.fns);
            }
            ItemKind::Static(s) => {
                let _ = write!(self.out, "(static {}{}", if s.mutable { "mut " } else { "" }, s.name.text);
                if let Some(ty) = s.ty {
                    self.put(": ");
                    self.ty(ty);
                }
                if let Some(e) = s.init {
                    self.put(" ");
                    self.expr(e);
                }
                self.put(")");
            }
            ItemKind::Struct(s) => {
                let _ = write!(self.out, "(struct {}", s.name.text);
                self.type_params(&s.type_params);
                for field in &s.fields {
                    let _ = write!(self.out, " ({}{} ", if field.private { "priv " } else { "" }, field.name.text);
                    self.ty(field.ty);
                    self.put(")");
                }
                self.put(")");
            }
            ItemKind::Enum(e) => {
                let _ = write!(self.out, "(enum {}", e.name.text);
                self.type_params(&e.type_params);
                for option in &e.options {
                    let _ = write!(self.out, " ({}", option.name.text);
                    self.types(&option.parts);
                    self.put(")");
                }
                self.put(")");
            }
            ItemKind::Alias(a) => {
                let _ = write!(self.out, "(type {}", a.name.text);
                self.type_params(&a.type_params);
                self.put(" ");
                self.ty(a.ty);
                self.put(")");
            }
            ItemKind::Trait(t) => {
                let _ = write!(self.out, "(trait {}", t.name.text);
                self.type_params(&t.type_params);
                if !t.supers.is_empty() {
                    self.put(" :");
                    self.types(&t.supers);
                }
                self.functions(&t.fns);
            }
            ItemKind::Impl(i) => {
                self.put("(impl");
                self.type_params(&i.type_params);
                self.put(" ");
                if let Some(of) = i.of {
                    self.ty(of);
                    self.put(" for ");
                }
                self.ty(i.ty);
                self.functions(&i.fns);
            }
            ItemKind::Mod(m) => {
                let _ = write!(self.out, "({} {}", if m.items.is_some() { "mod" } else { "mod-file" }, m.name.text);
                self.indent += 1;
                for item in m.items.iter().flatten() {
                    self.line();
                    self.item(item);
                }
                self.indent -= 1;
                self.put(")");
            }
            ItemKind::Use(u) => {
                let path: Vec<&str> = u.names.iter().map(|n| &*n.text).collect();
                let root = if u.root { "::" } else { "" };
                let all = if u.all { "::*" } else { "" };
                let _ = write!(self.out, "(use {root}{}{all}", path.join("::"));
                if let Some(alias) = &u.alias {
                    let _ = write!(self.out, " as {}", alias.text);
                }
                self.put(")");
            }
        }
    }

    /// Prints functions and the closing parenthesis.
    fn functions(&mut self, fns: &[Fn]) {
        self.indent += 1;
        for f in fns {
            self.line();
            self.put(if f.private { "priv " } else { "" });
            self.function(f);
        }
        self.indent -= 1;
        self.put(")");
    }

    fn function(&mut self, f: &Fn) {
        self.put(if f.exported { "(extern-fn " } else { "(fn " });
        if let Some((symbol, _)) = &f.symbol {
            let _ = write!(self.out, "{symbol:?} ");
        }
        self.put(&f.name.text);
        self.type_params(&f.type_params);
        self.put(" ");
        if self.filter(&f.filter) {
            self.put(" ");
        }
        self.params(&f.params);
        self.ret(f.result);
        if let Some(body) = f.body {
            self.indent += 1;
            self.line();
            self.expr(body);
            self.indent -= 1;
        }
        self.put(")");
    }

    fn type_params(&mut self, params: &[TypeParam]) {
        if params.is_empty() {
            return;
        }
        self.put("[");
        for (i, param) in params.iter().enumerate() {
            self.put(if i > 0 { " " } else { "" });
            self.put(if param.constant.is_some() { "const " } else { "" });
            self.put(&param.name.text);
            for bound in param.bounds.iter().chain(&param.constant) {
                self.put(":");
                self.ty(*bound);
            }
        }
        self.put("]");
    }

    fn filter(&mut self, filter: &Filter) -> bool {
        match filter {
            Filter::Never => return false,
            Filter::Always(_) => self.put("@"),
            Filter::When(e) => {
                self.put("@(");
                self.expr(*e);
                self.put(")");
            }
        }
        true
    }

    fn params(&mut self, params: &[Param]) {
        self.put("(");
        for (i, param) in params.iter().enumerate() {
            self.put(if i > 0 { " " } else { "" });
            if self.filter(&param.filter) {
                self.put(" ");
            }
            self.put(if param.restrict { "restrict " } else { "" });
            self.pattern(&param.pattern);
        }
        self.put(")");
    }

    fn pattern(&mut self, pattern: &Pattern) {
        if pattern.ty.is_some() {
            self.put("(");
        }
        match &pattern.kind {
            PatternKind::Unnamed => self.put("_"),
            PatternKind::Name { mutable, name } => {
                self.put(if *mutable { "mut " } else { "" });
                self.put(&name.text);
            }
            PatternKind::Tuple(parts) => {
                self.put("(tuple");
                self.patterns(parts);
            }
            PatternKind::Literal(e) => self.expr(*e),
            PatternKind::Option { path, parts: None } => self.path(path),
            PatternKind::Option { path, parts: Some(parts) } => {
                self.put("(");
                self.path(path);
                self.patterns(parts);
            }
            PatternKind::Struct { path, fields, rest } => {
                self.put("(struct ");
                self.path(path);
                for (name, pattern) in fields {
                    let _ = write!(self.out, " ({} ", name.text);
                    self.pattern(pattern);
                    self.put(")");
                }
                self.put(if *rest { " ..)" } else { ")" });
            }
        }
        if let Some(ty) = pattern.ty {
            self.put(" ");
            self.ty(ty);
            self.put(")");
        }
    }

    /// Prints patterns and the closing parenthesis.
    fn patterns(&mut self, patterns: &[Pattern]) {
        for pattern in patterns {
            self.put(" ");
            self.pattern(pattern);
        }
        self.put(")");
    }

    fn ret(&mut self, ret: Ret) {
        match ret {
            Ret::Absent => {}
            Ret::Never(_) => self.put(" !"),
            Ret::Type(ty) => {
                self.put(" ");
                self.ty(ty);
            }
        }
    }

    fn path(&mut self, path: &Path) {
        let mut inner = path.inner_args.iter().peekable();
        for (i, name) in path.names.iter().enumerate() {
            self.put(if i > 0 || path.root { "::" } else { "" });
            self.put(&name.text);
            if let Some((_, args)) = inner.next_if(|(at, _)| *at as usize == i) {
                self.bracketed(args);
            }
        }
        self.type_args(&path.type_args);
    }

    fn type_args(&mut self, args: &Option<Vec<TypeId>>) {
        if let Some(args) = args {
            self.bracketed(args);
        }
    }

    fn types(&mut self, types: &[TypeId]) {
        for ty in types {
            self.put(" ");
            self.ty(*ty);
        }
    }

    fn bracketed(&mut self, args: &[TypeId]) {
        self.put("[");
        for (i, arg) in args.iter().enumerate() {
            self.put(if i > 0 { " " } else { "" });
            self.ty(*arg);
        }
        self.put("]");
    }

    fn ty(&mut self, id: TypeId) {
        let module = self.module;
        match &module[id].kind {
            TypeKind::Error => self.put("error"),
            TypeKind::Path(path) => self.path(path),
            TypeKind::Tuple(parts) => {
                self.put("(tuple");
                for part in parts {
                    self.put(" ");
                    self.ty(*part);
                }
                self.put(")");
            }
            TypeKind::Array(elem, n) => {
                self.put("[");
                self.ty(*elem);
                self.put(" * ");
                self.expr(*n);
                self.put("]");
            }
            TypeKind::Indefinite(elem) => {
                self.put("[");
                self.ty(*elem);
                self.put("]");
            }
            TypeKind::Pointer { mutable, space, to } => {
                self.put(if *mutable { "&mut " } else { "&" });
                if let Some(space) = space {
                    let _ = write!(self.out, "<{}>", space.text);
                }
                self.ty(*to);
            }
            TypeKind::Owned(to) => {
                self.put("~");
                self.ty(*to);
            }
            TypeKind::Fn { type_params, params, result } => {
                self.put("(fn");
                self.type_params(type_params);
                self.put(" (");
                for (i, param) in params.iter().enumerate() {
                    self.put(if i > 0 { " " } else { "" });
                    self.ty(*param);
                }
                self.put(")");
                self.ret(*result);
                self.put(")");
            }
            TypeKind::Typeof(e) => {
                self.put("(typeof ");
                self.expr(*e);
                self.put(")");
            }
            TypeKind::Const(e) => self.expr(*e),
            TypeKind::Simd(elem, n) => {
                self.put("simd[");
                self.ty(*elem);
                self.put(" * ");
                self.expr(*n);
                self.put("]");
            }
        }
    }

    /// `(head e1 e2 …)`.
    fn form(&mut self, head: &str, parts: &[ExprId]) {
        self.put("(");
        self.put(head);
        for part in parts {
            self.put(" ");
            self.expr(*part);
        }
        self.put(")");
    }

    fn expr(&mut self, id: ExprId) {
        let module = self.module;
        match &module[id].kind {
            ExprKind::Error => self.put("error"),
            ExprKind::Int { value, suffix } => {
                let _ = write!(self.out, "{value}{}", suffix.map_or("", Suffix::text));
            }
            ExprKind::Float { text, suffix } => {
                let point = if text.contains(['.', 'e', 'E']) { "" } else { ".0" };
                let _ = write!(self.out, "{text}{point}{}", suffix.map_or("", Suffix::text));
            }
            ExprKind::Bool(b) => self.put(if *b { "true" } else { "false" }),
            ExprKind::Char(b) => {
                let _ = write!(self.out, "'{}'", b.escape_ascii());
            }
            ExprKind::Str(bytes) => {
                let _ = write!(self.out, "\"{}\"", bytes[..bytes.len() - 1].escape_ascii());
            }
            ExprKind::Path(path) => self.path(path),
            ExprKind::Struct { path, fields, base } => {
                self.put("(struct ");
                self.path(path);
                for (name, e) in fields {
                    let _ = write!(self.out, " ({} ", name.text);
                    self.expr(*e);
                    self.put(")");
                }
                if let Some(base) = base {
                    self.put(" (.. ");
                    self.expr(*base);
                    self.put(")");
                }
                self.put(")");
            }
            ExprKind::Tuple(parts) => self.form("tuple", parts),
            ExprKind::Array(parts) => self.form("array", parts),
            ExprKind::Simd(parts) => self.form("simd", parts),
            ExprKind::Repeat(e, n) => self.form("repeat", &[*e, *n]),
            ExprKind::DynArray(n, ty) => {
                self.put("(array-of ");
                self.expr(*n);
                self.put(" ");
                self.ty(*ty);
                self.put(")");
            }
            ExprKind::Block(block) => self.block(block),
            ExprKind::Unary(op, e) => self.form(op.text(), &[*e]),
            ExprKind::AddrOf { mutable, place } => self.form(if *mutable { "&mut" } else { "&" }, &[*place]),
            ExprKind::IncDec { inc, prefix, place } => {
                let head = match (inc, prefix) {
                    (true, true) => "++_",
                    (true, false) => "_++",
                    (false, true) => "--_",
                    (false, false) => "_--",
                };
                self.form(head, &[*place]);
            }
            ExprKind::Binary { op, lhs, rhs, .. } => self.form(op.text(), &[*lhs, *rhs]),
            ExprKind::Assign { op, place, value, .. } => {
                let head = format!("{}=", op.map_or("", BinaryOp::text));
                self.form(&head, &[*place, *value]);
            }
            ExprKind::Cast(e, ty) => {
                self.put("(as ");
                self.expr(*e);
                self.put(" ");
                self.ty(*ty);
                self.put(")");
            }
            ExprKind::Call { callee, args } => {
                self.put("(");
                self.expr(*callee);
                for arg in args {
                    self.put(" ");
                    self.expr(*arg);
                }
                self.put(")");
            }
            ExprKind::Field { base, name, type_args } => {
                self.put("(. ");
                self.expr(*base);
                self.put(" ");
                self.put(&name.text);
                self.type_args(type_args);
                self.put(")");
            }
            ExprKind::Lambda(lambda) => {
                self.put("(lambda ");
                if self.filter(&lambda.filter) {
                    self.put(" ");
                }
                self.params(&lambda.params);
                self.ret(lambda.result);
                self.put(" ");
                self.expr(lambda.body);
                self.put(")");
            }
            ExprKind::If { arms, otherwise } => {
                self.put("(if");
                for (cond, then) in arms {
                    self.put(" ");
                    self.expr(*cond);
                    self.put(" ");
                    self.expr(*then);
                }
                if let Some(e) = otherwise {
                    self.put(" else ");
                    self.expr(*e);
                }
                self.put(")");
            }
            ExprKind::While { cond, body } => self.form("while", &[*cond, *body]),
            ExprKind::For(looped) => {
                self.put(if looped.with { "(with " } else { "(for " });
                self.params(&looped.params);
                self.put(" ");
                self.expr(looped.call);
                self.put(" ");
                if self.filter(&looped.filter) {
                    self.put(" ");
                }
                self.expr(looped.body);
                self.put(")");
            }
            ExprKind::Match { scrutinee, arms } => {
                self.put("(match ");
                self.expr(*scrutinee);
                self.indent += 1;
                for arm in arms {
                    self.line();
                    self.put("(");
                    self.pattern(&arm.pattern);
                    if let Some(guard) = arm.guard {
                        self.put(" if ");
                        self.expr(guard);
                    }
                    self.put(" => ");
                    self.expr(arm.body);
                    self.put(")");
                }
                self.indent -= 1;
                self.put(")");
            }
            ExprKind::Asm(asm) => self.asm(asm),
        }
    }

    fn asm(&mut self, asm: &Asm) {
        let _ = write!(self.out, "(asm {:?}", asm.template);
        for operands in [&asm.outs, &asm.ins] {
            self.put(" :");
            for (constraint, e) in operands {
                let _ = write!(self.out, " ({constraint:?} ");
                self.expr(*e);
                self.put(")");
            }
        }
        for texts in [asm.clobbers.iter().collect::<Vec<_>>(), asm.options.iter().map(|o| &o.0).collect()] {
            self.put(" :");
            for text in texts {
                let _ = write!(self.out, " {text:?}");
            }
        }
        self.put(")");
    }

    fn block(&mut self, block: &Block) {
        let old = std::mem::replace(&mut self.marks, block.marks);
        match block.marks {
            Marks { fast: true, .. } if !old.fast => self.put("@fast "),
            Marks { racy: true, .. } if !old.racy => self.put("@racy "),
            _ => {}
        }
        self.block_inner(block);
        self.marks = old;
    }

    fn block_inner(&mut self, block: &Block) {
        if block.stmts.is_empty() {
            self.put("{");
            if let Some(e) = block.result {
                self.expr(e);
            }
            self.put("}");
            return;
        }
        self.put("{");
        self.indent += 1;
        for (i, stmt) in block.stmts.iter().enumerate() {
            if i > 0 {
                self.line();
            }
            match stmt {
                Stmt::Let { pattern, init, .. } => {
                    self.put("(let ");
                    self.pattern(pattern);
                    if let Some(e) = init {
                        self.put(" ");
                        self.expr(*e);
                    }
                    self.put(")");
                }
                Stmt::Expr(e) => {
                    self.expr(*e);
                    self.put(";");
                }
                Stmt::Item(item) => self.item(item),
                Stmt::Defer(e) => {
                    self.put("defer ");
                    self.expr(*e);
                    self.put(";");
                }
            }
        }
        if let Some(e) = block.result {
            self.line();
            self.expr(e);
        }
        self.indent -= 1;
        self.put("}");
    }
}
