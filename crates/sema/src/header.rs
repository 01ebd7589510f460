//! The C header of a program: its exported functions, and the structs that these and imported functions use, with the
//! comments above them.
//!
//! The header is made from the checked program, because the graph knows neither the names of parameters nor which
//! pointers may be written through.

use crate::diagnostics::{bad_symbol, not_in_c};
use crate::program::{FnInfo, FnKind, Program};
use crate::types::{Kind, Ty, TypeTable};
use nyala_base::{Diagnostic, Sources, Span};
use nyala_ir::Prim;
use nyala_syntax::ast::PatternKind;
use rustc_hash::{FxHashMap, FxHashSet};
use std::fmt::Write;

/// Words that are not valid as names in C or C++.
const KEYWORDS: &str = " alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl concept \
    const consteval constexpr constinit const_cast continue co_await co_return co_yield decltype default delete do double \
    dynamic_cast else enum explicit export extern false float for friend goto if inline int int8_t int16_t int32_t int64_t \
    uint8_t uint16_t uint32_t uint64_t long mutable namespace new noexcept not not_eq nullptr operator or or_eq private \
    protected public register reinterpret_cast requires restrict return short signed sizeof static static_assert \
    static_cast struct switch template this thread_local throw true try typedef typeid typename union unsigned using \
    virtual void volatile wchar_t while xor xor_eq ";

/// What the header says of parameters that are functions.
const CALLBACKS: &str = "\n// A function that is an argument is called with the `env` behind it, and only during that call: by several threads at once where the\n\
    // program runs a loop in parallel, once for each active lane where it runs one in lanes. It must return normally.\n";

/// Limit on the parts of a name that [`name_of_parts`] makes.
const MAX_WORDS: usize = 12;

struct Writer<'p, 'a> {
    p: &'p Program<'a>,
    sources: &'p Sources,
    /// The program's types, and the field types of generic structs.
    types: TypeTable,
    struct_names: FxHashMap<Ty, String>,
    /// Names of structs and functions that are in use.
    taken: FxHashSet<String>,
    /// The names of the structs that stand for tuples, and of those that stand for arrays by value.
    tuples: FxHashMap<Ty, String>,
    arrays: FxHashMap<Ty, String>,
    /// The aggregates to declare, in order of their first use.
    seen: Vec<Aggregate>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Aggregate {
    Struct(Ty),
    Tuple(Ty),
    Array(Ty),
}

/// A program as C sees it.
#[derive(Clone, Debug)]
pub struct Header {
    /// Definitions of the structs, with their comments, each guarded by a macro of its own.
    pub structs: String,
    /// In the order of the program.
    pub functions: Vec<Declared>,
}

/// An exported function as C sees it.
#[derive(Clone, Debug)]
pub struct Declared {
    /// Its symbol.
    pub symbol: String,
    /// Result and name, as in `float f`, or why C cannot call it.
    head: Result<String, Box<Diagnostic>>,
    /// Each parameter, or why C cannot give it.
    params: Vec<Result<String, Box<Diagnostic>>>,
    /// What comes behind the parameters.
    tail: String,
    /// The comment above it, after an empty line.
    comment: String,
    /// Whether it has parameters that are functions.
    has_callbacks: bool,
}

impl Header {
    /// The header's text, guarded by the macro `guard`.
    ///
    /// # Errors
    /// If a function has a type that cannot be passed to C.
    pub fn text(&self, guard: &str) -> Result<String, Box<Diagnostic>> {
        let mut out = format!("#ifndef {guard}\n#define {guard}\n\n#include <stdbool.h>\n#include <stdint.h>\n");
        out.push_str("\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n");
        out.push_str(&self.structs);
        if self.functions.iter().any(|f| f.has_callbacks) {
            out.push_str(CALLBACKS);
        }
        for f in &self.functions {
            let declaration = f.declaration(&[])?;
            let _ = writeln!(out, "{}{declaration};", f.comment);
        }
        let _ = writeln!(out, "\n#ifdef __cplusplus\n}}\n#endif\n\n#endif // {guard}");
        Ok(out)
    }
}

impl Declared {
    /// The comment above the function, without its slashes; empty if there is none.
    pub fn text_of_comment(&self) -> String {
        let lines: Vec<&str> = self.comment.lines().filter_map(|line| line.strip_prefix("//")).collect();
        // A blank after the slashes is no part of the text.
        let lines: Vec<&str> = lines.iter().map(|line| line.strip_prefix(' ').unwrap_or(line)).collect();
        lines.join("\n")
    }

    /// The declaration, as in `float f(const float *a)`, without the parameters at the positions `fixed`.
    ///
    /// # Errors
    /// C cannot call the function.
    pub fn declaration(&self, fixed: &[usize]) -> Result<String, Box<Diagnostic>> {
        let head = self.head.as_ref().map_err(Box::clone)?;
        let left = self.params.iter().enumerate().filter(|(i, _)| !fixed.contains(i)).map(|(_, param)| param.clone());
        let left: Vec<String> = left.collect::<Result<_, _>>()?;
        let params = if left.is_empty() { "void".into() } else { left.join(", ") };
        Ok(format!("{head}({params}){}", self.tail))
    }
}

/// The header of a checked program.
pub fn header(p: &Program, sources: &Sources) -> Header {
    let exported = |f: &&FnInfo| f.kind == FnKind::Defined && f.top_level && f.ast.exported;
    let mut w = Writer {
        p,
        sources,
        types: p.types.clone(),
        struct_names: FxHashMap::default(),
        taken: FxHashSet::default(),
        tuples: FxHashMap::default(),
        arrays: FxHashMap::default(),
        seen: Vec::new(),
    };
    let fns: Vec<&FnInfo> = p.fns.iter().filter(exported).filter(|f| f.module >= p.n_prelude).collect();
    w.taken.extend(fns.iter().map(|f| c_name(symbol(f))));
    let functions = fns.iter().filter_map(|f| w.function(f)).collect();
    // The author of an imported function needs its structs as well.
    for f in p.fns.iter().filter(|f| matches!(f.kind, FnKind::Foreign(_)) && f.module >= p.n_prelude) {
        w.name_structs(f);
    }
    Header { structs: w.structs(), functions }
}

fn symbol<'f>(f: &'f FnInfo) -> &'f str {
    f.ast.symbol.as_ref().map_or(&f.ast.name.text, |s| &s.0)
}

/// `name` as a valid name in C and C++.
fn c_name(name: &str) -> String {
    let mut out: String = name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' }).collect();
    if out.is_empty() || out.starts_with(|c: char| c.is_ascii_digit()) {
        out.insert(0, '_');
    }
    if KEYWORDS.contains(&format!(" {out} ")) {
        out.push('_');
    }
    out
}

/// A name for a struct that stands for a type without one: `tuple_i32_f32` for `(i32, f32)`. It does not depend on what else is in
/// the header, so that it is the same in all headers.
fn name_of_parts(kind: &str, shown: &str) -> String {
    let words = shown.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let mut name = String::from(kind);
    for word in words.take(MAX_WORDS) {
        name.push('_');
        name.push_str(word);
    }
    name
}

/// A macro that says that this struct is defined. Other headers may define the same one; two structs of one name that differ remain
/// an error.
fn guard_of(name: &str, body: &str) -> String {
    // FNV-1a.
    let hash = body.bytes().fold(0x811c_9dc5_u32, |hash, b| (hash ^ u32::from(b)).wrapping_mul(0x0100_0193));
    format!("NYALA_{name}_{hash:08x}")
}

fn prim_name(prim: Prim) -> &'static str {
    match prim {
        Prim::Bool => "bool",
        Prim::I8 => "int8_t",
        Prim::I16 => "int16_t",
        Prim::I32 => "int32_t",
        Prim::I64 => "int64_t",
        Prim::U8 => "uint8_t",
        Prim::U16 => "uint16_t",
        Prim::U32 => "uint32_t",
        Prim::U64 => "uint64_t",
        Prim::F16 => "_Float16",
        Prim::F32 => "float",
        Prim::F64 => "double",
    }
}

impl Writer<'_, '_> {
    fn kind(&self, ty: Ty) -> &Kind {
        self.types.final_kind(ty)
    }

    fn show(&self, ty: Ty) -> String {
        self.types.show(ty, self.p)
    }

    fn function(&mut self, f: &FnInfo) -> Option<Declared> {
        let Kind::Fn(params, result) = self.kind(f.ty).clone() else { return None };
        let mut comment = String::new();
        self.comment(f.ast.span, &mut comment);
        let has_callbacks = params.iter().any(|&ty| matches!(self.kind(ty), Kind::Fn(..)));
        // An explicit return continuation is not a parameter.
        let params = (0..).zip(params.iter()).map(|(i, &ty)| self.parameter(f, i, ty)).collect();
        let head = self.head(f, result);
        let name = c_name(symbol(f));
        // Keep the symbol unchanged.
        let tail = if name == symbol(f) { String::new() } else { format!(" __asm__(\"{}\")", symbol(f)) };
        Some(Declared { symbol: symbol(f).into(), head, params, tail, comment, has_callbacks })
    }

    fn parameter(&mut self, f: &FnInfo, i: usize, ty: Ty) -> Result<String, Box<Diagnostic>> {
        let (param, span) = match f.ast.params.get(i) {
            Some(p) => match &p.pattern.kind {
                PatternKind::Name { name, .. } if &*name.text != "_" => (c_name(&name.text), p.span),
                _ => (String::new(), p.span),
            },
            None => (String::new(), f.ast.name.span),
        };
        if let Kind::Fn(params, result) = self.kind(ty).clone() {
            return self.callback(ty, &params, result, &param, span);
        }
        self.check(ty, span, "a parameter")?;
        Ok(self.by_value(ty, param))
    }

    /// A parameter that is a function: a pointer to a function of C, and the environment that it gets.
    fn callback(
        &mut self,
        ty: Ty,
        params: &[Ty],
        result: Ty,
        name: &str,
        span: Span,
    ) -> Result<String, Box<Diagnostic>> {
        let shown = self.show(ty);
        if self.p.types.is_never(result) {
            return Err(Box::new(not_in_c::error(
                span,
                &format!("a function of type `{shown}`, which never returns,"),
            )));
        }
        let mut all = vec!["void *env".to_string()];
        for &param in params {
            self.check(param, span, &format!("a parameter of a parameter of type `{shown}`"))?;
            all.push(self.by_value(param, String::new()));
        }
        let head = format!("(*{name})({})", all.join(", "));
        let head = match self.kind(result) {
            Kind::Tuple(parts) if parts.is_empty() => format!("void {head}"),
            _ => {
                self.check(result, span, &format!("the result of a parameter of type `{shown}`"))?;
                self.by_value(result, head)
            }
        };
        let environment = if name.is_empty() { String::new() } else { format!("{name}_env") };
        Ok(format!("{head}, void *{environment}").trim_end().to_string())
    }

    fn head(&mut self, f: &FnInfo, result: Ty) -> Result<String, Box<Diagnostic>> {
        let name = c_name(symbol(f));
        if name != symbol(f)
            && let Some(fault) =
                bad_symbol::check_in_c(symbol(f), f.ast.symbol.as_ref().map_or(f.ast.name.span, |s| s.1))
        {
            return Err(Box::new(fault));
        }
        let unit = |t: Ty| matches!(self.kind(t), Kind::Tuple(parts) if parts.is_empty());
        if self.p.types.is_never(result) || unit(result) {
            return Ok(format!("void {name}"));
        }
        self.check(result, f.ast.name.span, "the result")?;
        Ok(self.by_value(result, name))
    }

    /// Names the structs and tuples that an imported function uses.
    fn name_structs(&mut self, f: &FnInfo) {
        let Kind::Fn(params, result) = self.kind(f.ty).clone() else { return };
        for ty in params.iter().copied().chain([result]) {
            // Structs of type parameters are no concrete types.
            if !self.types.has_param(ty) && !self.types.is_error(ty) {
                self.by_value(ty, String::new());
            }
        }
    }

    /// Returns an error if a value of this type cannot be passed to C.
    fn check(&self, ty: Ty, span: Span, what: &str) -> Result<(), Box<Diagnostic>> {
        match self.kind(ty) {
            Kind::Prim(_) | Kind::Ptr { .. } | Kind::Struct(..) | Kind::Array(..) => Ok(()),
            Kind::Tuple(parts) if !parts.is_empty() => Ok(()),
            _ => Err(Box::new(not_in_c::error(span, &format!("{what} of type `{}`", self.show(ty))))),
        }
    }

    /// C's declaration of a parameter, or of a function with its result in front. An array is a struct there.
    fn by_value(&mut self, ty: Ty, name: String) -> String {
        match self.kind(ty) {
            Kind::Array(..) => {
                let space = if name.is_empty() { "" } else { " " };
                format!("struct {}{space}{name}", self.array_name(ty))
            }
            _ => self.declaration(ty, name, false),
        }
    }

    /// C's declaration of `name` (or of a declarator in its place) with that type.
    fn declaration(&mut self, ty: Ty, name: String, is_const: bool) -> String {
        let qualifier = if is_const { "const " } else { "" };
        let space = if name.is_empty() { "" } else { " " };
        match self.kind(ty).clone() {
            Kind::Prim(prim) => format!("{qualifier}{}{space}{name}", prim_name(prim)),
            Kind::Ptr { access, to, .. } => {
                let star = if is_const && !name.is_empty() { "*const " } else { "*" };
                let to = match *self.kind(to) {
                    Kind::Indef(elem) => elem,
                    _ => to,
                };
                let name = match self.kind(to) {
                    Kind::Array(..) => format!("({star}{name})"),
                    _ => format!("{star}{name}"),
                };
                self.declaration(to, name, !access.is_mut())
            }
            Kind::Array(elem, n) => {
                let n = self.types.length(n);
                self.declaration(elem, format!("{name}[{n}]"), is_const)
            }
            Kind::Indef(elem) => self.declaration(elem, format!("{name}[]"), is_const),
            Kind::Struct(..) => format!("{qualifier}struct {}{space}{name}", self.struct_name(ty)),
            Kind::Tuple(parts) if parts.is_empty() => format!("{qualifier}void{space}{name}"),
            Kind::Tuple(_) => format!("{qualifier}struct {}{space}{name}", self.tuple_name(ty)),
            // A function value in memory: the code pointer, and the captured values.
            _ => format!("void *{qualifier}{name}[2]"),
        }
    }

    fn fresh(&mut self, wanted: &str) -> String {
        let mut name = c_name(wanted);
        let mut n = 1;
        while !self.taken.insert(name.clone()) {
            n += 1;
            name = format!("{}_{n}", c_name(wanted));
        }
        name
    }

    fn struct_name(&mut self, ty: Ty) -> String {
        if let Some(name) = self.struct_names.get(&ty) {
            return name.clone();
        }
        // `Vec[f32]` is `Vec_f32`.
        let shown = self.show(ty);
        let name = self.fresh(shown.trim_end_matches(']'));
        self.struct_names.insert(ty, name.clone());
        self.seen.push(Aggregate::Struct(ty));
        name
    }

    fn tuple_name(&mut self, ty: Ty) -> String {
        if let Some(name) = self.tuples.get(&ty) {
            return name.clone();
        }
        let name = self.fresh(&name_of_parts("tuple", &self.show(ty)));
        self.tuples.insert(ty, name.clone());
        self.seen.push(Aggregate::Tuple(ty));
        name
    }

    fn array_name(&mut self, ty: Ty) -> String {
        if let Some(name) = self.arrays.get(&ty) {
            return name.clone();
        }
        let name = self.fresh(&name_of_parts("array", &self.show(ty)));
        self.arrays.insert(ty, name.clone());
        self.seen.push(Aggregate::Array(ty));
        name
    }

    fn parts(&mut self, aggregate: Aggregate) -> Vec<(String, Ty)> {
        let (Aggregate::Struct(ty) | Aggregate::Tuple(ty) | Aggregate::Array(ty)) = aggregate;
        match self.kind(ty).clone() {
            Kind::Struct(id, args) => {
                let info = &self.p.structs[id.0 as usize];
                let of = |&(name, ty): &(&str, Ty)| (c_name(name), self.types.instantiate(ty, &info.generics, &args));
                info.fields.iter().map(of).collect()
            }
            Kind::Tuple(parts) => parts.iter().enumerate().map(|(i, &t)| (format!("_{i}"), t)).collect(),
            Kind::Array(..) => vec![("elements".into(), ty)],
            _ => Vec::new(),
        }
    }

    /// The struct or tuple that values of this type contain, if there is one.
    fn contained(&self, mut ty: Ty) -> Option<Aggregate> {
        loop {
            match self.kind(ty) {
                Kind::Array(elem, _) => ty = *elem,
                Kind::Struct(..) => return Some(Aggregate::Struct(ty)),
                Kind::Tuple(parts) if !parts.is_empty() => return Some(Aggregate::Tuple(ty)),
                _ => return None,
            }
        }
    }

    /// Definitions of all aggregates named so far, and of those they contain: parts before wholes.
    fn structs(&mut self) -> String {
        let mut bodies: FxHashMap<Aggregate, String> = FxHashMap::default();
        let mut next = 0;
        // Writing fields may name more structs.
        while let Some(&aggregate) = self.seen.get(next) {
            next += 1;
            let mut body = String::new();
            for (name, ty) in self.parts(aggregate) {
                // A field of type `()` takes no memory.
                if !matches!(self.kind(ty), Kind::Tuple(parts) if parts.is_empty()) {
                    let _ = writeln!(body, "    {};", self.declaration(ty, name, false));
                }
            }
            bodies.insert(aggregate, body);
        }
        let mut out = String::new();
        for aggregate in &self.seen {
            let name = self.name_of(*aggregate);
            let _ = writeln!(out, "{}typedef struct {name} {name};", if out.is_empty() { "\n" } else { "" });
        }
        let mut done: FxHashSet<Aggregate> = FxHashSet::default();
        for root in self.seen.clone() {
            let mut stack = vec![root];
            while let Some(&aggregate) = stack.last() {
                let parts = self.parts(aggregate);
                let inner = parts.iter().filter_map(|&(_, t)| self.contained(t)).find(|i| !done.contains(i));
                match inner {
                    // A struct that contains itself was refused by the checker.
                    Some(inner) if !done.contains(&aggregate) => stack.push(inner),
                    _ => {
                        stack.pop();
                        if done.insert(aggregate) {
                            let body = bodies.get(&aggregate).map_or("", |b| b);
                            let guard = guard_of(self.name_of(aggregate), body);
                            let _ = write!(out, "\n#ifndef {guard}\n#define {guard}");
                            match aggregate {
                                Aggregate::Struct(ty) => {
                                    if let Kind::Struct(id, _) = self.kind(ty) {
                                        self.comment(self.p.structs[id.0 as usize].ast.name.span, &mut out);
                                    }
                                }
                                Aggregate::Tuple(_) | Aggregate::Array(_) => out.push('\n'),
                            }
                            let _ = writeln!(out, "struct {} {{\n{body}}};\n#endif", self.name_of(aggregate));
                        }
                    }
                }
            }
        }
        out
    }

    fn name_of(&self, aggregate: Aggregate) -> &str {
        match aggregate {
            Aggregate::Struct(ty) => self.struct_names.get(&ty),
            Aggregate::Tuple(ty) => self.tuples.get(&ty),
            Aggregate::Array(ty) => self.arrays.get(&ty),
        }
        .map_or("", |n| n)
    }

    /// The `//` comments on the lines above an item, with an empty line before.
    fn comment(&self, span: Span, out: &mut String) {
        out.push('\n');
        let before = self.sources.text(span.file).get(..span.lo as usize).unwrap_or("");
        let line_start = before.rfind('\n').map_or(0, |i| i + 1);
        let mut lines: Vec<&str> = Vec::new();
        for line in before[..line_start].lines().rev() {
            match line.trim().strip_prefix("//") {
                Some(text) => lines.push(text),
                None => break,
            }
        }
        for line in lines.iter().rev() {
            // A backslash at the end of the line would continue the comment on the next one.
            let text = line.trim_end().trim_end_matches('\\').trim_end();
            let _ = writeln!(out, "//{text}");
        }
    }
}
