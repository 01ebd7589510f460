//! A module as C text: names, globals, declarations, and the helper functions that the text needs. Functions are written
//! first; what they turn out to need stands before them.

use crate::dialect::Dialect;
use crate::expr::{Expr, Form, Prec};
use crate::function::emit_body;
use crate::names::Names;
use crate::types::CTypes;
use crate::{Result, aliasing, bug, calls, globals};
use nyala_base::diagnostics::{device_code_on_host, duplicate_symbol};
use nyala_base::{Diagnostic, Id, Span};
use nyala_flat::{Const, Func, Function, GlobalId, Linkage, Module};
use nyala_ir::callbacks::is_call_of_address;
use nyala_ir::{Prim, Ty, TyKind};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt::Write;

/// State of the emission of one module.
pub(crate) struct Emitter<'m> {
    pub module: &'m Module,
    pub dialect: &'m Dialect,
    pub types: CTypes<'m>,
    /// Names of the file: types, functions, globals.
    pub names: Names,
    pub funcs: Vec<String>,
    pub globals: Vec<String>,
    /// The types of the tuples that functions with several results return.
    results: FxHashMap<Vec<Ty>, Ty>,
    helpers: FxHashSet<String>,
    helper_text: String,
    /// Declarations of foreign functions, by name.
    foreign: FxHashSet<String>,
    foreign_text: String,
    /// Functions and globals that the text refers to, and that are not written yet.
    wanted: Vec<Func>,
    wanted_globals: Vec<GlobalId>,
    /// Functions whose lanes are several: bodies of `vectorize`, and what they call.
    pub in_lanes: Vec<bool>,
    /// Signed arithmetic is modulo 2ⁿ.
    pub wrap: bool,
    /// Whether the operation that is written now is computed where the program may not compute it, so that it may overflow
    /// although the program's does not.
    pub is_speculative: bool,
    /// Whether some lanes of vectors are read from memory, and others are not.
    pub masked_loads: bool,
}

/// Tuples of the results of functions that have several.
pub(crate) fn result_types(module: &mut Module) -> FxHashMap<Vec<Ty>, Ty> {
    let all: Vec<Vec<Ty>> = module.funcs.iter().map(|f| f.rets.clone()).filter(|r| r.len() != 1).collect();
    all.into_iter().map(|rets| (rets.clone(), module.types.tuple(&rets))).collect()
}

/// Writes a module, in which calls in tail position are no recursion any more.
pub(crate) fn emit(
    module: &Module,
    results: FxHashMap<Vec<Ty>, Ty>,
    dialect: &Dialect,
    wrap: bool,
    main: Option<Func>,
) -> Result<String> {
    let aliasing = aliasing::reinterprets(module);
    let mut names = Names::without(dialect.reserved.split_whitespace().map(String::from));
    let (funcs, symbols) = function_names(module, dialect, &mut names)?;
    let globals = module.globals.iter().map(|g| names.pick(&g.name, "global")).collect();
    let mut e = Emitter {
        module,
        dialect,
        types: CTypes::new(&module.types, dialect, aliasing),
        names,
        funcs,
        globals,
        results,
        helpers: FxHashSet::default(),
        helper_text: String::new(),
        foreign: FxHashSet::default(),
        foreign_text: String::new(),
        wanted: Vec::new(),
        wanted_globals: Vec::new(),
        in_lanes: calls::in_lanes(module),
        wrap,
        is_speculative: false,
        masked_loads: false,
    };
    if !dialect.channel.is_empty() {
        e.types.channels = crate::devices::channels(module);
    }
    // Exported functions and all that they refer to are written; without an export, all functions are.
    let exported = |f: &Function| matches!(f.linkage, Linkage::Exported(_) | Linkage::Kernel(..));
    let has_export = main.is_some() || module.funcs.iter().any(exported);
    let all = module.funcs.iter().enumerate().filter(|(_, f)| !f.is_foreign() && (!has_export || exported(f)));
    e.wanted = all.map(|(i, _)| Func::from_idx(i)).chain(main).collect();
    let (mut functions, mut statics) = (BTreeMap::new(), BTreeMap::new());
    let mut recurses = false;
    loop {
        if let Some(func) = e.wanted.pop() {
            if module.func(func).is_foreign() || functions.contains_key(&func) {
                continue;
            }
            recurses |= calls::returns_by_recursion(module.func(func), func);
            let text = e.function(func).map_err(|mut d| {
                d.place(module.func(func).span);
                d
            })?;
            functions.insert(func, text);
        } else if let Some(global) = e.wanted_globals.pop() {
            if let Entry::Vacant(place) = statics.entry(global) {
                place.insert(globals::emit(&mut e, global)?);
            }
        } else {
            break;
        }
    }
    let (mut prototypes, mut bodies) = (String::new(), String::new());
    for (func, (head, body, after)) in functions {
        if !matches!(module.func(func).linkage, Linkage::Kernel(..)) {
            let _ = writeln!(prototypes, "{head}{};", symbols[func.idx()]);
        }
        let [before, behind] = e.under_condition(func);
        let _ = write!(bodies, "\n{before}{head} {{\n{body}}}\n{after}{behind}");
    }
    let (mut declared, mut defined) = (String::new(), String::new());
    for (first, second) in statics.into_values() {
        declared.push_str(&first);
        defined.push_str(&second);
    }
    if let Some(main) = main {
        bodies.push_str(&e.start(main));
    }
    let mut out = String::from("\n");
    if recurses {
        out.push_str(dialect.recursion);
        out.push('\n');
    }
    if e.masked_loads {
        out.push_str(dialect.masked_loads);
        out.push('\n');
    }
    out.push_str(&e.types.text());
    for part in [&e.foreign_text, &e.helper_text, &declared, &prototypes, &defined] {
        if !part.is_empty() {
            out.push_str(part);
            if !part.ends_with("\n\n") {
                out.push('\n');
            }
        }
    }
    let text = match out.trim_end() {
        "" => bodies,
        out => format!("{out}\n{bodies}"),
    };
    let extensions = (dialect.extensions)(&text);
    let text = if text.trim_start().is_empty() { String::new() } else { text };
    Ok(format!("{extensions}{}{text}", dialect.prologue))
}

/// Names of functions and, for those whose symbol cannot be their name, what says it.
fn function_names(module: &Module, dialect: &Dialect, names: &mut Names) -> Result<(Vec<String>, Vec<String>)> {
    let mut exported: FxHashMap<&str, Span> = FxHashMap::default();
    let mut symbols = vec![String::new(); module.funcs.len()];
    let mut picked = vec![String::new(); module.funcs.len()];
    // The names of exported functions are fixed.
    for (i, f) in module.funcs.iter().enumerate() {
        let (Linkage::Exported(symbol) | Linkage::Kernel(symbol, _)) = &f.linkage else { continue };
        if let Some(first) = exported.insert(symbol, f.span) {
            return Err(Box::new(duplicate_symbol::error(f.span, symbol, first)));
        }
        let is_plain = is_identifier(symbol) && (names.reserve(symbol) || is_main(symbol, f));
        if is_plain {
            picked[i] = symbol.clone();
            continue;
        }
        picked[i] = names.pick(symbol, "exported");
        symbols[i] = symbol_attribute(dialect, symbol)?;
    }
    for (i, f) in module.funcs.iter().enumerate() {
        if matches!(f.linkage, Linkage::Internal | Linkage::Callback) {
            picked[i] = names.pick(&f.name, "function");
        }
    }
    for (i, f) in module.funcs.iter().enumerate() {
        if let Linkage::Foreign(symbol) = &f.linkage {
            // Operations of lanes, and of channels, are written out, and calls of addresses. They are functions of one symbol for each type.
            let is_channel = !dialect.channel.is_empty() && nyala_ir::lanes::is_channel(symbol);
            let is_operation = nyala_ir::LaneOp::of_symbol(symbol).is_some() || is_call_of_address(symbol);
            if is_channel || is_operation {
                picked[i] = symbol.clone();
                continue;
            }
            if let Some(name) = nyala_ir::lanes::device_function(symbol) {
                names.reserve(name);
                picked[i] = name.into();
                continue;
            }
            if is_identifier(symbol) && (names.reserve(symbol) || is_known_math(dialect, f, symbol, &module.types)) {
                picked[i] = symbol.clone();
                continue;
            }
            picked[i] = names.pick(symbol, "foreign");
            symbols[i] = symbol_attribute(dialect, symbol)?;
        }
    }
    Ok((picked, symbols))
}

/// Whether it is a `main` of a type that C's may have.
fn is_main(symbol: &str, f: &Function) -> bool {
    symbol == "main" && f.params.is_empty() && f.rets.len() == 1
}

pub(crate) fn is_identifier(symbol: &str) -> bool {
    symbol.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && symbol.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Whether a header declares the function in the same way.
fn is_known_math(dialect: &Dialect, f: &Function, symbol: &str, types: &nyala_ir::Types) -> bool {
    let is = |ty: &Ty, prim: Prim| types.as_prim(*ty) == Some(prim);
    let of = |prim| f.rets.len() == 1 && f.rets.iter().chain(&f.params).all(|ty| is(ty, prim));
    dialect.math.iter().any(|(op, names)| {
        let n = f.params.len();
        let arity = if *op == nyala_ir::Op::Rem { 2 } else { op.arity() };
        arity == n as i32 && (names[0] == symbol && of(Prim::F32) || names[1] == symbol && of(Prim::F64))
    })
}

/// The attribute that gives a function another symbol than its name.
fn symbol_attribute(dialect: &Dialect, symbol: &str) -> Result<String> {
    if !dialect.has.symbols {
        return Err(bug(format!("a kernel needs the symbol `{symbol}`, which cannot be a name")));
    }
    Ok(format!(" __asm__({})", globals::quoted(symbol.as_bytes())))
}

impl<'m> Emitter<'m> {
    /// A function: the beginning of its definition, its body, and what follows it.
    fn function(&mut self, func: Func) -> Result<(String, String, String)> {
        let mut params = Vec::new();
        let mut body = emit_body(self, func, &mut params)?;
        let mut after = String::new();
        if let (Linkage::Kernel(..), Some(kernels)) = (&self.module.func(func).linkage, self.dialect.kernels) {
            let [first, second] = (kernels.interface)(&crate::devices::interface(self, func, &params)?);
            (body, after) = (first + &body, second);
        }
        Ok((self.head(func, &params)?, body, after))
    }

    /// The beginning of a function's definition and of its declaration.
    fn head(&mut self, func: Func, params: &[String]) -> Result<String> {
        let function = self.module.func(func);
        let linkage = match &function.linkage {
            Linkage::Exported(_) => "",
            Linkage::Kernel(symbol, sizes) => {
                let kernels = self.dialect.kernels.ok_or_else(|| bug("a kernel in a language without kernels"))?;
                let bounds = if sizes.contains(&0) { String::new() } else { (kernels.bounds)(*sizes) };
                let params = params.join(", ");
                return Ok(format!("{}{bounds}void {symbol}({params})", kernels.kernel));
            }
            _ => self.dialect.internal,
        };
        let ret = self.returned(&function.rets)?;
        let params = if params.is_empty() { "void".to_string() } else { params.join(", ") };
        Ok(format!("{linkage}{ret}{}({params})", self.funcs[func.idx()]))
    }

    /// What stands before and behind a kernel that needs extensions which the others do not need.
    fn under_condition(&self, func: Func) -> [String; 2] {
        let known = self.dialect.kernels.map_or(&[][..], |kernels| kernels.parted);
        let (Linkage::Kernel(symbol, _), false) = (&self.module.func(func).linkage, known.is_empty()) else {
            return Default::default();
        };
        let parted = crate::parted::parted(self.module, func);
        let mut needs: Vec<&str> = known.iter().filter(|k| parted.contains(&k.0)).map(|k| k.1).collect();
        needs.dedup();
        if needs.is_empty() {
            return Default::default();
        }
        let notes: String = needs.iter().map(|need| format!("// {symbol} needs {need}\n")).collect();
        let defined: Vec<String> = needs.iter().map(|need| format!("defined({need})")).collect();
        [format!("{notes}#if {}\n", defined.join(" && ")), "#endif\n".into()]
    }

    /// The type that a function with these results returns, as it stands before the function's name.
    pub fn returned(&mut self, rets: &[Ty]) -> Result<String> {
        let ty = self.result_ty(rets)?;
        self.types.declared(ty, &mut self.names)
    }

    /// The only result, or the tuple of several.
    pub fn result_ty(&self, rets: &[Ty]) -> Result<Ty> {
        match rets {
            [ty] => Ok(*ty),
            _ => self.results.get(rets).copied().ok_or_else(|| bug("results without a type")),
        }
    }

    /// C's `main`, which runs the program's on a large stack.
    fn start(&mut self, main: Func) -> String {
        self.runtime("nyala_start", "int nyala_start(int (*program)(int, char **), int argc, char **argv)");
        let (function, name) = (self.module.func(main), self.funcs[main.idx()].clone());
        let start = self.names.pick("start", "start");
        let args = if function.params.is_empty() { "" } else { "argc, (void *)argv" };
        let call = match function.rets.is_empty() {
            true => format!("{name}({args});\n    return 0"),
            false => format!("return {name}({args})"),
        };
        format!(
            "\nstatic int {start}(int argc, char **argv) {{\n    {call};\n}}\n\n\
             int main(int argc, char **argv) {{\n    return nyala_start({start}, argc, argv);\n}}\n"
        )
    }

    /// Names for the variables of a function.
    pub fn local_names(&self) -> Names {
        self.names.clone()
    }

    /// The name of a helper function that the text needs; `text` writes its definition.
    pub fn helper(&mut self, name: String, text: impl FnOnce(&mut Self, &str) -> Result<String>) -> Result<String> {
        if self.helpers.insert(name.clone()) {
            let text = text(self, &name)?;
            let _ = writeln!(self.helper_text, "{}{text}\n", self.dialect.inline);
        }
        Ok(name)
    }

    /// Declares a function of the runtime.
    pub fn runtime(&mut self, name: &str, declaration: &str) {
        let is_foreign = |f: &Function| matches!(&f.linkage, Linkage::Foreign(s) if s == name);
        if !self.module.funcs.iter().any(is_foreign) && self.foreign.insert(name.to_string()) {
            let _ = writeln!(self.foreign_text, "{declaration};");
        }
    }

    /// The name of a function, which is declared.
    pub fn func_name(&mut self, func: Func) -> Result<String> {
        let function = self.module.func(func);
        let name = self.funcs[func.idx()].clone();
        let Linkage::Foreign(symbol) = &function.linkage else {
            self.wanted.push(func);
            return Ok(name);
        };
        if is_known_math(self.dialect, function, symbol, &self.module.types) && name == *symbol {
            return Ok(name);
        }
        if nyala_ir::lanes::device_function(symbol).is_some() {
            return match self.dialect.has.device_functions {
                true => Ok(name),
                false => Err(Box::new(device_code_on_host::function(function.span, &name))),
            };
        }
        if self.foreign.insert(name.clone()) {
            let ret = self.returned(&function.rets)?;
            let mut params = Vec::new();
            for &ty in &function.params {
                if self.types.is_void(ty) {
                    continue;
                }
                params.push(self.types.name(ty, &mut self.names)?);
            }
            let params = if params.is_empty() { "void".to_string() } else { params.join(", ") };
            let other = if name == *symbol { String::new() } else { symbol_attribute(self.dialect, symbol)? };
            let _ = writeln!(self.foreign_text, "{ret}{name}({params}){other};");
        }
        Ok(name)
    }

    /// An expression as a value of its type. Literals get their suffix if `with_suffix`.
    pub fn rendered(&mut self, e: Expr, with_suffix: bool) -> Result<Expr> {
        match e.form.clone() {
            Form::Value => Ok(e),
            // The address of the first element is that of the array.
            Form::Place if e.text.ends_with("[0]") => {
                let text = e.text[..e.text.len() - 3].to_string();
                Ok(Expr { text, prec: Prec::Postfix, form: Form::Value, ..e })
            }
            Form::Place => {
                Ok(Expr { text: format!("&{}", e.at(Prec::Unary)), prec: Prec::Unary, form: Form::Value, ..e })
            }
            Form::ArrayPlace => {
                let text = format!("{}.{}", e.at(Prec::Postfix), crate::types::ELEMENTS);
                Ok(Expr { text, prec: Prec::Postfix, form: Form::Value, ..e })
            }
            Form::Unsigned(prim) => {
                let ty = self.types.prim(prim)?;
                Ok(Expr {
                    text: format!("({ty})({})", e.text),
                    prec: Prec::Unary,
                    form: Form::Value,
                    update: None,
                    ..e
                })
            }
            Form::Literal(prim) => {
                let suffix = if with_suffix { self.dialect.suffix(prim) } else { "" };
                Ok(Expr { text: e.text.clone() + suffix, form: Form::Value, ..e })
            }
            Form::Braces(ty) => {
                let text = self.dialect.compound.value(&ty, &e.text);
                Ok(Expr { text, prec: Prec::Postfix, form: Form::Value, ..e })
            }
        }
    }

    /// A constant of a type.
    pub fn constant(&mut self, constant: Const, ty: Ty) -> Result<Expr> {
        match constant {
            Const::Bits(bits) => match self.module.types.as_prim(ty) {
                Some(prim) => self.literal(prim, bits),
                None if bits == 0 => Ok(Expr::atom(self.dialect.null)),
                None => {
                    let (ty, address) = (self.types.name(ty, &mut self.names)?, self.dialect.address);
                    Ok(Expr::new(format!("({ty})({address}){bits:#x}"), Prec::Unary))
                }
            },
            Const::Undef => match self.module.types.kind(ty) {
                TyKind::Prim(prim) => self.literal(*prim, 0),
                TyKind::Ptr { .. } | TyKind::Code => Ok(Expr::atom(self.dialect.null)),
                _ if self.types.is_void(ty) => Ok(Expr::atom("0")),
                _ => {
                    let name = self.types.name(ty, &mut self.names)?;
                    Ok(Expr::atom("{}").form(Form::Braces(name)))
                }
            },
            Const::Func(func) | Const::CFunc(func) => {
                let code = self.module.types.kind(ty).clone();
                debug_assert!(code == TyKind::Code);
                self.types.name(ty, &mut self.names)?;
                Ok(Expr::new(format!("(code){}", self.func_name(func)?), Prec::Unary))
            }
            Const::Global(global) => Ok(self.global(global)),
        }
    }

    fn global(&mut self, id: GlobalId) -> Expr {
        self.wanted_globals.push(id);
        let name = Expr::atom(self.globals[id.idx()].clone());
        let ty = self.module.globals[id.idx()].ty;
        match self.module.types.kind(ty) {
            _ if self.types.is_void(ty) => Expr::atom(self.dialect.null),
            TyKind::Array(..) => name,
            _ => name.form(Form::Place),
        }
    }

    /// A literal of a primitive type.
    pub fn literal(&mut self, prim: Prim, bits: u64) -> Result<Expr> {
        let integer = |text: String| {
            let prec = if text.starts_with('-') { Prec::Unary } else { Prec::Postfix };
            Ok(Expr::new(text, prec).form(Form::Literal(prim)))
        };
        match prim {
            Prim::Bool => Ok(Expr::atom(if bits != 0 { "true" } else { "false" })),
            Prim::F16 | Prim::F32 | Prim::F64 => self.float(prim, bits),
            Prim::I32 if bits as i32 == i32::MIN => Ok(Expr::atom("(-2147483647 - 1)")),
            Prim::I64 if bits as i64 == i64::MIN => {
                let suffix = self.dialect.suffix(Prim::I64);
                Ok(Expr::atom(format!("(-9223372036854775807{suffix} - 1)")))
            }
            Prim::U64 if bits > i64::MAX as u64 => Ok(Expr::atom(format!("{bits}{}", self.dialect.suffix(prim)))),
            p if p.is_signed() => integer((bits as i64).to_string()),
            _ => integer(bits.to_string()),
        }
    }

    fn float(&mut self, prim: Prim, bits: u64) -> Result<Expr> {
        if prim == Prim::F16 && crate::ops::halves::are_bits(self) {
            self.types.prim(prim)?;
            return Ok(Expr::atom(format!("{bits:#06x}")));
        }
        let x = nyala_ir::scalar::float_value(prim, bits);
        let suffix = self.dialect.suffix(prim);
        let text = match prim {
            _ if x.is_nan() || x.is_infinite() => {
                let unsigned = match prim {
                    Prim::F16 => Prim::U16,
                    Prim::F32 => Prim::U32,
                    _ => Prim::U64,
                };
                if x.is_infinite() && prim == Prim::F16 {
                    let name = self.types.prim(prim)?;
                    let sign = if x < 0.0 { "-" } else { "" };
                    return Ok(Expr::new(format!("({name}){sign}{}", self.dialect.infinity[0]), Prec::Unary));
                }
                if x.is_infinite() {
                    let sign = if x < 0.0 { "-" } else { "" };
                    let prec = if x < 0.0 { Prec::Unary } else { Prec::Postfix };
                    return Ok(Expr::new(
                        format!("{sign}{}", self.dialect.infinity[(prim == Prim::F64) as usize]),
                        prec,
                    ));
                }
                let read =
                    crate::ops::casts::reader(self, self.module.types.prim(unsigned), self.module.types.prim(prim))?;
                return Ok(Expr::atom(format!("{read}({bits:#x}{})", self.dialect.suffix(unsigned))));
            }
            Prim::F32 => format!("{:?}{suffix}", f32::from_bits(bits as u32)),
            Prim::F64 => format!("{x:?}"),
            _ => {
                let name = self.types.prim(prim)?;
                return Ok(Expr::new(format!("({name}){:?}{suffix}", x as f32), Prec::Unary));
            }
        };
        let prec = if text.starts_with('-') { Prec::Unary } else { Prec::Postfix };
        Ok(Expr::new(text, prec))
    }
}

impl Emitter<'_> {
    /// See [`limitation`](crate::limitation).
    pub fn limitation(&self, span: Span, what: &str, remedy: &str) -> Box<Diagnostic> {
        crate::limitation(self.dialect, span, what, remedy)
    }
}
