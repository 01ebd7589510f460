//! C's calling convention: how parameters and results are passed, and the functions at the border: entries that C
//! calls, and thunks through which C functions are called.
//!
//! Tuples, arrays and several results are structs for C. LLVM knows how scalars are passed, but not structs by value. This is the System V ABI of x86-64 (section 3.2.3): a
//! struct of up to 16 bytes is passed as its 8-byte words, each in an integer or a floating-point register, if there
//! are registers left for all of them; other structs are passed in memory.

use crate::diagnostics::{bug, limitation};
use crate::emit::{Emitter, quote};
use crate::rounding;
use crate::types::RetClass;
use nyala_base::{Diagnostic, Span};
use nyala_flat::{Func, Function};
use nyala_ir::target::Structs;
use nyala_ir::{Prim, Ty, TyKind, layout};
use rustc_hash::FxHashSet;
use std::fmt::Write;

type Result<T> = std::result::Result<T, Box<Diagnostic>>;

/// How a value is passed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Pass {
    /// As LLVM passes a value of this type; followed by attributes.
    Scalar(String),
    /// A struct, as the types of its words.
    Words(Vec<&'static str>),
    /// A struct in memory: on the stack, or where the caller says.
    Memory,
}

pub(crate) struct Signature {
    /// `None` for `void`.
    pub ret: Option<(Ty, Pass)>,
    pub params: Vec<(Ty, Pass)>,
}

/// Registers for arguments that are still free.
struct Registers {
    ints: usize,
    floats: usize,
}

impl Signature {
    /// Whether structs are passed, so that a plain LLVM call does not suffice.
    pub fn has_structs(&self) -> bool {
        self.params.iter().chain(&self.ret).any(|(_, pass)| !matches!(pass, Pass::Scalar(_)))
    }
}

const INT: &str = "i64";
const FLOAT: &str = "double";

impl Emitter<'_> {
    /// The signature of a function in C's convention.
    pub fn signature(&mut self, function: &Function, what: &str) -> Result<Signature> {
        self.signature_of(function, what).map_err(|mut d| {
            d.place(function.span);
            d
        })
    }

    fn signature_of(&mut self, function: &Function, what: &str) -> Result<Signature> {
        let mut left = Registers { ints: 6, floats: 8 };
        let types = self.layouts.types;
        let ret = match &*function.rets {
            [] => None,
            [ty] => Some(*ty),
            // C has one result at most: a struct.
            many => {
                let tuple = types.find(&TyKind::Tuple(many.into()));
                Some(tuple.ok_or_else(|| bug(format!("{what}: several results without a type")))?)
            }
        };
        let ret = match ret.filter(|&ty| layout::size_align(types, ty).is_none_or(|(size, _)| size > 0)) {
            None => None,
            Some(ty) => {
                let pass = self.pass(ty, what, &mut Registers { ints: 2, floats: 2 })?;
                if pass == Pass::Memory {
                    left.ints -= 1;
                }
                Some((ty, pass))
            }
        };
        let params = function.params.iter().map(|&ty| Ok((ty, self.pass(ty, what, &mut left)?)));
        Ok(Signature { ret, params: params.collect::<Result<_>>()? })
    }

    fn pass(&mut self, ty: Ty, what: &str, left: &mut Registers) -> Result<Pass> {
        let is_struct = |kind: &TyKind| match kind {
            TyKind::Struct(_) | TyKind::Array(..) => true,
            TyKind::Tuple(parts) => !parts.is_empty(),
            _ => false,
        };
        if !is_struct(self.layouts.types.kind(ty)) {
            let text = self.layouts.c_type(ty, what)?;
            let class = if self.layouts.leaves(ty).0 > 0 { &mut left.ints } else { &mut left.floats };
            *class = class.saturating_sub(1);
            return Ok(Pass::Scalar(text));
        }
        if self.target().c_abi.structs != Structs::SystemV {
            let message = format!(
                "a value of type `{}` of {what} cannot be passed to C by value on `{}`, only on x86-64",
                self.layouts.types.display(ty),
                self.target().triple
            );
            return Err(Box::new(limitation::error(Span::NONE, message, BY_POINTER)));
        }
        let Some((size, _)) = layout::size_align(self.layouts.types, ty).filter(|(size, _)| *size <= 16) else {
            return if self.has_vector(ty) { Err(vector_limitation(what)) } else { Ok(Pass::Memory) };
        };
        let mut words = vec![FLOAT; size.div_ceil(8) as usize];
        self.classify(ty, &mut words, what)?;
        let ints = words.iter().filter(|&&w| w == INT).count();
        let floats = words.len() - ints;
        if ints > left.ints || floats > left.floats {
            return Ok(Pass::Memory);
        }
        left.ints -= ints;
        left.floats -= floats;
        Ok(Pass::Words(words))
    }

    /// Whether a vector is part of the type, at any depth.
    fn has_vector(&self, ty: Ty) -> bool {
        let types = self.layouts.types;
        let (mut seen, mut work) = (FxHashSet::default(), vec![ty]);
        while let Some(ty) = work.pop() {
            match types.kind(ty) {
                TyKind::Vector(..) => return true,
                TyKind::Array(elem, _) => work.push(*elem),
                TyKind::Tuple(_) | TyKind::Struct(_) if seen.insert(ty) => {
                    work.extend((0..types.n_parts(ty).unwrap_or(0)).filter_map(|i| types.part(ty, i)));
                }
                _ => {}
            }
        }
        false
    }

    /// Marks the words that contain a part other than a float as integer words.
    fn classify(&self, ty: Ty, words: &mut [&'static str], what: &str) -> Result<()> {
        let types = self.layouts.types;
        let mut parts = vec![(ty, 0u64)];
        // At most 16 parts have a size; parts without one are skipped.
        while let Some((ty, at)) = parts.pop() {
            match types.kind(ty) {
                TyKind::Prim(Prim::F16 | Prim::F32 | Prim::F64) => {}
                TyKind::Tuple(_) | TyKind::Struct(_) | TyKind::Array(..) => {
                    for i in 0..types.n_parts(ty).unwrap_or(0) {
                        let part = types.part(ty, i).zip(layout::offset(types, ty, i));
                        let (part, offset) = part.ok_or_else(|| bug(format!("{what}: a struct without layout")))?;
                        if layout::size_align(types, part).is_some_and(|(size, _)| size > 0) {
                            parts.push((part, at + offset));
                        } else if matches!(types.kind(ty), TyKind::Array(..)) {
                            break;
                        }
                    }
                }
                TyKind::Vector(..) => return Err(vector_limitation(what)),
                // A function value, the largest scalar, takes two words.
                TyKind::Cn(_) => words.fill(INT),
                _ => words[(at / 8) as usize] = INT,
            }
        }
        Ok(())
    }

    /// For a declaration, the result type with its attributes, and the parameters, each followed by the name `a{i}` if
    /// `named`.
    pub fn c_heads(&mut self, signature: &Signature, named: bool) -> Result<(String, Vec<String>)> {
        let mut params = Vec::new();
        let name = |text: String, name: String| if named { format!("{text} %{name}") } else { text };
        let ret = match &signature.ret {
            None => "void".into(),
            Some((_, Pass::Scalar(text))) => match text.split_once(' ') {
                Some((ty, attribute)) => format!("{attribute} {ty}"),
                None => text.clone(),
            },
            Some((_, Pass::Words(words))) => words_type(words),
            Some((ty, Pass::Memory)) => {
                params.push(name(self.in_caller("sret", *ty)?, "sret".into()));
                "void".into()
            }
        };
        for (i, (ty, pass)) in signature.params.iter().enumerate() {
            match pass {
                Pass::Scalar(text) => params.push(name(text.clone(), format!("a{i}"))),
                Pass::Words(words) => {
                    params.extend(words.iter().enumerate().map(|(j, w)| name(w.to_string(), format!("a{i}.{j}"))));
                }
                Pass::Memory => params.push(name(self.in_caller("byval", *ty)?, format!("a{i}"))),
            }
        }
        Ok((ret, params))
    }

    /// The type of a pointer to a struct that the caller provides: on the stack for a parameter (`byval`), anywhere for
    /// a result (`sret`).
    fn in_caller(&mut self, attribute: &str, ty: Ty) -> Result<String> {
        let align = if attribute == "byval" { 8 } else { self.size_align(ty)?.1 };
        Ok(format!("ptr {attribute}({}) align {align}", self.layouts.memory(ty)?))
    }

    fn size_align(&self, ty: Ty) -> Result<(u64, u64)> {
        layout::size_align(self.layouts.types, ty).ok_or_else(|| bug("a struct without size"))
    }

    /// An argument for a call with the internal convention, from a struct at `at`.
    fn argument_at(&mut self, ty: Ty, at: &str, name: &str, body: &mut String) -> Result<String> {
        if self.layouts.in_memory(ty) {
            return Ok(format!("ptr {at}"));
        }
        let text = self.layouts.memory(ty)?;
        let _ = writeln!(body, "  {name} = load {text}, ptr {at}, align 8");
        Ok(format!("{text} {name}"))
    }

    /// Copies a struct between its own memory and memory for its words.
    fn copy_struct(&mut self, ty: Ty, to: &str, from: &str, body: &mut String) -> Result<()> {
        let (size, align) = self.size_align(ty)?;
        self.declare_memcpy();
        let _ = writeln!(
            body,
            "  call void @llvm.memcpy.p0.p0.i64(ptr align {align} {to}, ptr align {align} {from}, i64 {size}, i1 false)"
        );
        Ok(())
    }

    /// Emits the entry of an exported function or callback, for callers that use C's convention.
    pub fn emit_entry(&mut self, linkage: &str, symbol: &str, func: Func) -> Result<()> {
        let function = self.module.func(func);
        let what = format!("exported function `{}`", function.name);
        let signature = self.signature(function, &what)?;
        let (c_ret, params) = self.c_heads(&signature, true)?;
        let mut body = String::new();
        let mut args = Vec::new();
        for (i, (ty, pass)) in signature.params.iter().enumerate() {
            args.push(match pass {
                Pass::Scalar(_) => format!("{} %a{i}", self.layouts.register(*ty)?),
                Pass::Words(words) => {
                    let names: Vec<String> = (0..words.len()).map(|j| format!("%a{i}.{j}")).collect();
                    store_words(words, &names, &format!("%m{i}"), &mut body);
                    self.argument_at(*ty, &format!("%m{i}"), &format!("%x{i}"), &mut body)?
                }
                Pass::Memory => self.argument_at(*ty, &format!("%a{i}"), &format!("%x{i}"), &mut body)?,
            });
        }
        let (name, cc) = (self.internal_name(func), self.convention(&function.params));
        // Inlined code keeps its lines only if the entry has debug information.
        let (scope, at) = self.scope(function);
        let class = self.layouts.ret_class(&function.rets)?;
        let pass = signature.ret.as_ref().map(|(_, pass)| pass);
        let result = match &class {
            RetClass::Memory => {
                let place = if pass == Some(&Pass::Memory) { "%sret" } else { "%rm" };
                if place == "%rm" {
                    body.push_str("  %rm = alloca [2 x i64], align 8\n");
                }
                args.insert(0, format!("ptr {place}"));
                let _ = writeln!(body, "  call {cc}void {name}({}){at}", args.join(", "));
                None
            }
            RetClass::Direct(ty) => {
                let result = if ty == "void" { "" } else { "%r = " };
                let _ = writeln!(body, "  {result}call {cc}{ty} {name}({}){at}", args.join(", "));
                Some(ty)
            }
        };
        match (pass, result) {
            (Some(Pass::Scalar(_)), Some(ty)) => {
                let _ = writeln!(body, "  ret {ty} %r{at}");
            }
            (Some(Pass::Words(words)), result) if !words.is_empty() => {
                if let Some(ty) = result {
                    let _ = writeln!(body, "  %rm = alloca [2 x i64], align 8\n  store {ty} %r, ptr %rm, align 8");
                }
                let names = load_words(words, "%rm", "%w", &mut body);
                match &names[..] {
                    [one] => {
                        let _ = writeln!(body, "  ret {} {one}{at}", words[0]);
                    }
                    _ => {
                        let ty = words_type(words);
                        let _ = writeln!(
                            body,
                            "  %r0 = insertvalue {ty} undef, {} {}, 0\n  %r1 = insertvalue {ty} %r0, {} {}, 1\n  ret {ty} %r1{at}",
                            words[0], names[0], words[1], names[1]
                        );
                    }
                }
            }
            (Some(Pass::Memory), Some(ty)) => {
                let align = match &signature.ret {
                    Some((ret, _)) => self.size_align(*ret)?.1,
                    None => 1,
                };
                let _ = writeln!(body, "  store {ty} %r, ptr %sret, align {align}\n  ret void{at}");
            }
            _ => {
                let _ = writeln!(body, "  ret void{at}");
            }
        }
        let params = params.join(", ");
        let version = self.version_attributes().to_string();
        let _ = writeln!(self.out, "define {linkage}{c_ret} {symbol}({params}) #0{version}{scope} {{\n{body}}}\n");
        Ok(())
    }

    /// Emits a function with the internal convention that calls a foreign one.
    pub fn emit_thunk(&mut self, func: Func) -> Result<()> {
        let function = self.module.func(func);
        let what = format!("foreign function `{}`", function.name);
        let signature = self.signature(function, &what)?;
        let (c_ret, mut c_params) = self.c_heads(&signature, false)?;
        let class = self.layouts.ret_class(&function.rets)?;
        let (mut heads, mut args, mut body) = (Vec::new(), Vec::new(), String::new());
        if class == RetClass::Memory {
            heads.push("ptr noalias %ret".to_string());
        }
        if let Some((ty, Pass::Memory)) = &signature.ret {
            let text = self.layouts.memory(*ty)?;
            let place = if class == RetClass::Memory { "%ret" } else { "%rm" };
            if place == "%rm" {
                let _ = writeln!(body, "  %rm = alloca {text}, align 8");
            }
            args.push(format!("{} {place}", self.in_caller("sret", *ty)?));
        }
        for (i, (ty, pass)) in signature.params.iter().enumerate() {
            let (text, is_memory) = (self.layouts.register(*ty)?, self.layouts.in_memory(*ty));
            heads.push(format!("{text} %a{i}"));
            match pass {
                Pass::Scalar(text) => args.push(format!("{text} %a{i}")),
                Pass::Words(words) => {
                    let _ = writeln!(body, "  %m{i} = alloca [2 x i64], align 8");
                    if is_memory {
                        self.copy_struct(*ty, &format!("%m{i}"), &format!("%a{i}"), &mut body)?;
                    } else {
                        let _ = writeln!(body, "  store {text} %a{i}, ptr %m{i}, align 8");
                    }
                    let names = load_words(words, &format!("%m{i}"), &format!("%w{i}."), &mut body);
                    args.extend(words.iter().zip(names).map(|(w, n)| format!("{w} {n}")));
                }
                Pass::Memory => {
                    // Memory elsewhere may be less aligned than C's stack.
                    let whole = self.layouts.memory(*ty)?;
                    let _ = writeln!(body, "  %m{i} = alloca {whole}, align 8");
                    if is_memory {
                        self.copy_struct(*ty, &format!("%m{i}"), &format!("%a{i}"), &mut body)?;
                    } else {
                        let _ = writeln!(body, "  store {text} %a{i}, ptr %m{i}, align 8");
                    }
                    args.push(format!("{} %m{i}", self.in_caller("byval", *ty)?));
                }
            }
        }
        let symbol = match function.is_call_of_address() {
            // Behind the place of a result in memory.
            true => {
                let at = usize::from(matches!(&signature.ret, Some((_, Pass::Memory))));
                c_params.remove(at);
                args.remove(at).trim_start_matches("ptr ").to_string()
            }
            false => self.c_name(func)?,
        };
        let result = if c_ret == "void" { "" } else { "%r = " };
        let attributes = rounding::attributes(&symbol, &c_ret, &c_params);
        let _ = writeln!(body, "  {result}call {c_ret} {symbol}({}) {attributes}", args.join(", "));
        // Whether the result is a struct, now at `%rm`.
        let mut is_struct = matches!(&signature.ret, Some((_, Pass::Memory)));
        if let Some((_, Pass::Words(words))) = &signature.ret
            && !words.is_empty()
        {
            is_struct = true;
            let mut names = vec!["%r".to_string()];
            if words.len() == 2 {
                let ty = words_type(words);
                names = vec!["%r.0".into(), "%r.1".into()];
                let _ = writeln!(body, "  %r.0 = extractvalue {ty} %r, 0\n  %r.1 = extractvalue {ty} %r, 1");
            }
            store_words(words, &names, "%rm", &mut body);
        }
        let ret = match (&class, &signature.ret) {
            (RetClass::Memory, Some((ty, pass))) => {
                if *pass != Pass::Memory {
                    self.copy_struct(*ty, "%ret", "%rm", &mut body)?;
                }
                body.push_str("  ret void\n");
                "void"
            }
            (RetClass::Direct(ty), _) if ty == "void" => {
                body.push_str("  ret void\n");
                "void"
            }
            (RetClass::Direct(ty), _) if is_struct => {
                let _ = writeln!(body, "  %x = load {ty}, ptr %rm, align 8\n  ret {ty} %x");
                ty
            }
            (RetClass::Direct(ty), _) if c_ret == "void" => {
                let _ = writeln!(body, "  ret {ty} zeroinitializer");
                ty
            }
            (RetClass::Direct(ty), _) => {
                let _ = writeln!(body, "  ret {ty} %r");
                ty
            }
            (RetClass::Memory, None) => return Err(bug(format!("{what}: a result in memory that is none"))),
        };
        let (name, cc) = (self.internal_name(func), self.convention(&function.params));
        let (heads, version) = (heads.join(", "), self.version_attributes().to_string());
        let _ = writeln!(self.out, "define internal {cc}{ret} {name}({heads}) #0{version} {{\n{body}}}\n");
        Ok(())
    }

    pub fn declare_foreign(&mut self, symbol: &str, function: &Function) -> Result<()> {
        self.declare_c(symbol, function, "")
    }

    /// Declares the entry of a callback, which another unit defines.
    pub fn declare_entry(&mut self, symbol: &str, function: &Function) -> Result<()> {
        let visibility = if self.options.hides_shared { "hidden " } else { "" };
        self.declare_c(symbol, function, visibility)
    }

    fn declare_c(&mut self, symbol: &str, function: &Function, visibility: &str) -> Result<()> {
        let what = format!("foreign function `{}`", function.name);
        let signature = self.signature(function, &what)?;
        let (ret, params) = self.c_heads(&signature, false)?;
        let head = format!("{ret}({})", params.join(", "));
        let known = RUNTIME.iter().find(|(name, plain, ..)| (*name, *plain) == (symbol, &*head));
        self.declare(symbol, || match known {
            Some((.., declaration)) => format!("declare {declaration}"),
            None => format!("declare {visibility}{ret} {}({}) #1", quote(symbol), params.join(", ")),
        });
        Ok(())
    }

    /// Result and parameters of a foreign function's C signature, if a plain LLVM call suffices for it.
    pub fn plain_foreign(&mut self, func: Func) -> Result<Option<(String, Vec<String>)>> {
        let function = self.module.func(func);
        if !matches!(function.linkage, nyala_flat::Linkage::Foreign(_)) {
            return Ok(None);
        }
        let signature = self.signature(function, &format!("foreign function `{}`", function.name))?;
        if signature.has_structs() { Ok(None) } else { self.c_heads(&signature, false).map(Some) }
    }
}

/// Attributes of functions of the runtime that programs call by name: name, plain type, and declaration.
const RUNTIME: &[(&str, &str, &str)] = &[
    ("nyala_alloc", "ptr(i64)", "noalias align 64 ptr @nyala_alloc(i64) #5"),
    ("nyala_free", "void(ptr)", "void @nyala_free(ptr allocptr captures(none)) #6"),
    ("nyala_print_bytes", "void(ptr, i64)", "void @nyala_print_bytes(ptr readonly captures(none), i64) #1"),
    ("nyala_print_string", "void(ptr)", "void @nyala_print_string(ptr readonly captures(none)) #1"),
];

const BY_POINTER: &str = "pass it by a pointer";

fn vector_limitation(what: &str) -> Box<Diagnostic> {
    let message = format!("a struct with a vector, of {what}, cannot be passed to C by value");
    Box::new(limitation::error(Span::NONE, message, BY_POINTER))
}

/// LLVM's type of a result in registers, one for each word.
fn words_type(words: &[&str]) -> String {
    match words {
        [] => "void".into(),
        [one] => one.to_string(),
        _ => format!("{{ {} }}", words.join(", ")),
    }
}

fn word_address(at: &str, j: usize, body: &mut String) -> String {
    let name = format!("{at}.at{j}");
    let _ = writeln!(body, "  {name} = getelementptr i8, ptr {at}, i64 {}", j * 8);
    name
}

/// Allocates memory `at` and stores these words there.
fn store_words(words: &[&str], names: &[String], at: &str, body: &mut String) {
    let _ = writeln!(body, "  {at} = alloca [2 x i64], align 8");
    for (j, (word, name)) in words.iter().zip(names).enumerate() {
        let address = word_address(at, j, body);
        let _ = writeln!(body, "  store {word} {name}, ptr {address}, align 8");
    }
}

/// Loads words from the memory `at`; their names begin with `prefix`.
fn load_words(words: &[&str], at: &str, prefix: &str, body: &mut String) -> Vec<String> {
    let mut names = Vec::new();
    for (j, word) in words.iter().enumerate() {
        let address = word_address(at, j, body);
        let name = format!("{prefix}{j}");
        let _ = writeln!(body, "  {name} = load {word}, ptr {address}, align 8");
        names.push(name);
    }
    names
}
