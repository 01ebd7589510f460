//! The signatures of exported functions as data, for whoever calls them from another language. Separate from C's header, which is
//! the same as text: a caller compares types, and needs no names that C allows.

use crate::program::{FnInfo, FnKind, Program};
use crate::types::{Kind, Ty, TypeTable};
use nyala_ir::Prim;
use nyala_syntax::ast::PatternKind;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// A type as C sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExportedType {
    /// `()` as a result.
    Unit,
    /// A number or `bool`.
    Prim(Prim),
    /// `&T`, or `&[T]` if it leads to `many`.
    Pointer {
        /// Whether what it leads to may be written.
        mutable: bool,
        /// Whether it leads to any number of them.
        many: bool,
        /// What it leads to.
        to: Box<ExportedType>,
    },
    /// `[T * n]`.
    Array(Box<ExportedType>, u64),
    /// A struct, by its index in [`Signatures::structs`].
    Struct(usize),
    /// A function: its parameters, and its result.
    Function(Vec<ExportedType>, Box<ExportedType>),
    /// Another type, which no other language has: a tuple, a vector, memory of a device.
    Other,
}

/// A struct that exported functions use.
#[derive(Clone, Debug)]
pub struct ExportedStruct {
    /// As the program writes it: `Slice[f32]`.
    pub name: String,
    /// Names and types of the fields, in their order in memory.
    pub fields: Vec<(String, ExportedType)>,
}

/// An exported function.
#[derive(Clone, Debug)]
pub struct Signature {
    /// Its symbol.
    pub symbol: String,
    /// Names, empty ones among them, and types of its parameters.
    pub params: Vec<(String, ExportedType)>,
    /// Its result.
    pub result: ExportedType,
    /// As the program writes it: `fn f(x: i32) -> i32`.
    pub text: String,
}

/// All exported functions, and the structs that they use.
#[derive(Clone, Debug, Default)]
pub struct Signatures {
    /// In the order of the program.
    pub functions: Vec<Signature>,
    /// By index.
    pub structs: Vec<ExportedStruct>,
}

struct Reader<'p, 'a> {
    p: &'p Program<'a>,
    /// The program's types, and the field types of generic structs.
    types: TypeTable,
    structs: FxHashMap<Ty, usize>,
    /// Structs whose fields are not read yet.
    waiting: VecDeque<Ty>,
}

/// The signatures of the functions that a checked program exports.
pub fn signatures(p: &Program) -> Signatures {
    let exported = |f: &&FnInfo| f.kind == FnKind::Defined && f.top_level && f.ast.exported && f.module >= p.n_prelude;
    let mut reader = Reader { p, types: p.types.clone(), structs: FxHashMap::default(), waiting: VecDeque::new() };
    let mut found = Signatures {
        functions: p.fns.iter().filter(exported).filter_map(|f| reader.function(f)).collect(),
        structs: Vec::new(),
    };
    // Fields may name more structs, which get the next numbers.
    while let Some(ty) = reader.waiting.pop_front() {
        let name = reader.types.show(ty, p);
        let fields = reader.fields(ty);
        found.structs.push(ExportedStruct { name, fields });
    }
    found
}

impl Reader<'_, '_> {
    fn function(&mut self, f: &FnInfo) -> Option<Signature> {
        // The type that C sees: an explicit return continuation is not a parameter.
        let Kind::Fn(param_tys, result) = self.types.final_kind(f.ty).clone() else { return None };
        let symbol = f.ast.symbol.as_ref().map_or(&*f.ast.name.text, |s| &s.0).to_string();
        let (mut params, mut shown) = (Vec::new(), Vec::new());
        for (i, &ty) in param_tys.iter().enumerate() {
            let name = match f.ast.params.get(i).map(|p| &p.pattern.kind) {
                Some(PatternKind::Name { name, .. }) if &*name.text != "_" => name.text.to_string(),
                _ => String::new(),
            };
            let text = self.types.show(ty, self.p);
            shown.push(if name.is_empty() { text } else { format!("{name}: {text}") });
            params.push((name, self.of(ty)));
        }
        let text = format!("fn {symbol}({}) -> {}", shown.join(", "), self.types.show(result, self.p));
        let result = self.result(result);
        Some(Signature { symbol, params, result, text })
    }

    fn result(&mut self, ty: Ty) -> ExportedType {
        match self.types.final_kind(ty) {
            Kind::Tuple(parts) if parts.is_empty() => ExportedType::Unit,
            _ => self.of(ty),
        }
    }

    fn of(&mut self, ty: Ty) -> ExportedType {
        if let Kind::Fn(params, result) = self.types.final_kind(ty).clone() {
            let params = params.iter().map(|&ty| self.of(ty)).collect();
            return ExportedType::Function(params, Box::new(self.result(result)));
        }
        match *self.types.final_kind(ty) {
            Kind::Prim(prim) => ExportedType::Prim(prim),
            Kind::Ptr { access, space: 0, to } => {
                let (many, to) = match *self.types.final_kind(to) {
                    Kind::Indef(elem) => (true, elem),
                    _ => (false, to),
                };
                ExportedType::Pointer { mutable: access.is_mut(), many, to: Box::new(self.of(to)) }
            }
            Kind::Array(elem, n) => {
                let n = self.types.length(n);
                ExportedType::Array(Box::new(self.of(elem)), n)
            }
            Kind::Struct(..) => {
                let next = self.structs.len();
                let index = *self.structs.entry(ty).or_insert(next);
                if index == next {
                    self.waiting.push_back(ty);
                }
                ExportedType::Struct(index)
            }
            _ => ExportedType::Other,
        }
    }

    fn fields(&mut self, ty: Ty) -> Vec<(String, ExportedType)> {
        let Kind::Struct(id, args) = self.types.final_kind(ty).clone() else { return Vec::new() };
        let info = &self.p.structs[id.0 as usize];
        let field = |&(name, ty): &(&str, Ty)| {
            let ty = self.types.instantiate(ty, &info.generics, &args);
            (name.to_string(), self.of(ty))
        };
        info.fields.iter().map(field).collect()
    }
}
