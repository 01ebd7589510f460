//! Types of flat SSA as C types: their names, and the definitions that the text begins with. Tuples, structs, arrays and
//! vectors are C structs; arrays so that they are values. A pointer to an array is a pointer to its first element.
//! Types without size vanish.

use crate::dialect::Dialect;
use crate::names::Names;
use crate::{Result, bug, limitation};
use nyala_base::Span;
use nyala_ir::{Prim, Ty, TyKind, Types, layout};
use rustc_hash::FxHashMap;
use std::fmt::Write;

/// The member of a struct around an array; and around the lanes of a vector.
pub(crate) const ELEMENTS: &str = "at";

/// Names and definitions of types.
pub(crate) struct CTypes<'m> {
    pub types: &'m Types,
    dialect: &'m Dialect,
    /// Whether memory is accessed at types that it does not have.
    aliasing: bool,
    names: FxHashMap<Ty, String>,
    /// Names of the members of structs.
    fields: FxHashMap<Ty, Vec<String>>,
    /// Names of types through which memory is accessed.
    accesses: FxHashMap<Ty, String>,
    forward: String,
    definitions: String,
    defined: FxHashMap<Ty, bool>,
    /// Structs that stand for channels, with the types of their elements.
    pub channels: FxHashMap<Ty, Ty>,
}

impl<'m> CTypes<'m> {
    /// No types are named yet.
    pub fn new(types: &'m Types, dialect: &'m Dialect, aliasing: bool) -> CTypes<'m> {
        CTypes {
            types,
            dialect,
            aliasing,
            names: FxHashMap::default(),
            fields: FxHashMap::default(),
            accesses: FxHashMap::default(),
            forward: String::new(),
            definitions: String::new(),
            defined: FxHashMap::default(),
            channels: FxHashMap::default(),
        }
    }

    /// Declarations and definitions, in an order that C accepts.
    pub fn text(&self) -> String {
        match (self.forward.is_empty(), self.definitions.is_empty()) {
            (true, true) => String::new(),
            _ => format!("{}{}\n", self.forward, self.definitions),
        }
    }

    /// Size and alignment in bytes.
    pub fn size_align(&self, ty: Ty) -> Result<(u64, u64)> {
        layout::size_align(self.types, ty).ok_or_else(|| {
            let what = format!("the type `{}`, which is larger than any memory,", self.types.display(ty));
            limitation(self.dialect, Span::NONE, &what, "make its arrays shorter")
        })
    }

    /// Whether a type has no size, so that its values vanish.
    pub fn is_void(&self, ty: Ty) -> bool {
        layout::size_align(self.types, ty).is_some_and(|(size, _)| size == 0)
    }

    /// The type of a channel, for the struct that stands for it.
    pub fn channel(&mut self, ty: Ty, names: &mut Names) -> Result<String> {
        let elem = *self.channels.get(&ty).ok_or_else(|| bug("no channel"))?;
        Ok(self.dialect.channel.replace('T', &self.name(elem, names)?))
    }

    /// The name of a primitive type.
    pub fn prim(&self, prim: Prim) -> Result<&'static str> {
        self.dialect.prim(prim).ok_or_else(|| bug(format!("{} without the type `{}`", self.dialect.name, prim.name())))
    }

    /// The name of a type of values, `void` if they vanish.
    pub fn name(&mut self, ty: Ty, names: &mut Names) -> Result<String> {
        if self.is_void(ty) {
            return Ok("void".into());
        }
        match self.types.kind(ty) {
            TyKind::Prim(p) => Ok(self.prim(*p)?.into()),
            TyKind::Ptr { pointee, .. } if self.channels.contains_key(pointee) => {
                Ok(format!("{} &", self.channel(*pointee, names)?))
            }
            // An address in memory says nothing of its space.
            TyKind::Ptr { space: 0, .. } if !self.dialect.has_generic_addresses() => Ok(self.dialect.address.into()),
            TyKind::Ptr { pointee, space } => {
                let qualifier = self.dialect.space(*space);
                let target = self.target(*pointee, names)?;
                let star = if target.ends_with('*') { "*" } else { " *" };
                Ok(format!("{qualifier}{target}{star}"))
            }
            TyKind::Code => self.code(),
            TyKind::Mem | TyKind::IndefArray(_) => Err(bug("a value of a type that has none")),
            _ => {
                let name = self.aggregate(ty, names);
                self.define(ty, names)?;
                Ok(name)
            }
        }
    }

    /// The name of what a pointer points to: for an array its element.
    fn target(&mut self, pointee: Ty, names: &mut Names) -> Result<String> {
        let target = match self.types.kind(pointee) {
            TyKind::Array(elem, _) | TyKind::IndefArray(elem) => *elem,
            _ => pointee,
        };
        // The layout of a struct is not known everywhere in its own definition.
        let is_struct = matches!(self.types.kind(target), TyKind::Struct(_));
        if matches!(self.types.kind(target), TyKind::IndefArray(_)) || self.is_void(target) {
            return Ok("void".into());
        }
        if is_struct {
            return Ok(self.aggregate(target, names));
        }
        if !self.aliasing || self.dialect.may_alias.is_empty() {
            return match self.types.kind(target) {
                TyKind::Prim(_) | TyKind::Ptr { .. } | TyKind::Code => self.name(target, names),
                _ => Ok(self.aggregate(target, names)),
            };
        }
        self.access(target, names)
    }

    /// The type of a variable with an address, or of a part, as it stands before a declared name: the one that pointers to
    /// it have, since GCC 12 takes `_Bool *` for another type than a pointer to a `_Bool` that may alias.
    pub fn stored(&mut self, ty: Ty, names: &mut Names) -> Result<String> {
        self.declared(ty, names)?;
        let target = self.target(ty, names)?;
        let is_plain = matches!(self.types.kind(ty), TyKind::Prim(_) | TyKind::Ptr { .. } | TyKind::Code);
        match is_plain {
            true if target.ends_with('*') => Ok(target),
            true => Ok(format!("{target} ")),
            false => self.declared(ty, names),
        }
    }

    /// The name of a type through which any memory may be accessed.
    fn access(&mut self, ty: Ty, names: &mut Names) -> Result<String> {
        if let Some(name) = self.accesses.get(&ty) {
            return Ok(name.clone());
        }
        let plain = match self.types.kind(ty) {
            TyKind::Prim(_) | TyKind::Ptr { .. } | TyKind::Code => self.name(ty, names)?,
            _ => return Ok(self.aggregate(ty, names)),
        };
        let name = names.pick_clean(self.short(ty));
        let star = if plain.ends_with('*') { "" } else { " " };
        let _ = writeln!(self.forward, "typedef {plain}{star}{name} {};", self.dialect.may_alias);
        self.accesses.insert(ty, name.clone());
        Ok(name)
    }

    /// A short name for a type, for names made of types.
    pub fn short(&self, ty: Ty) -> String {
        match self.types.kind(ty) {
            TyKind::Prim(p) => p.name().into(),
            TyKind::Vector(p, n) => format!("{}x{n}", p.name()),
            TyKind::Ptr { pointee, .. } => match self.types.kind(*pointee) {
                TyKind::Prim(_) | TyKind::Struct(_) => format!("{}_ptr", self.short(*pointee)),
                _ => "ptr".into(),
            },
            TyKind::Code => "code".into(),
            TyKind::Struct(id) => crate::names::clean(&self.types.struct_data(*id).name),
            TyKind::Array(elem, n) => format!("{}_array{n}", self.short(*elem)),
            TyKind::Tuple(parts) if parts.len() <= 4 => {
                let mut text = String::from("tuple");
                for &p in parts.iter().filter(|&&p| !self.is_void(p)) {
                    let _ = write!(text, "_{}", if text.len() < 40 { self.short_leaf(p) } else { String::new() });
                }
                text
            }
            TyKind::Tuple(parts) => format!("tuple{}", parts.len()),
            TyKind::Cn(_) => "closure".into(),
            TyKind::Mem | TyKind::IndefArray(_) => "none".into(),
        }
    }

    fn short_leaf(&self, ty: Ty) -> String {
        match self.types.kind(ty) {
            TyKind::Tuple(_) => "tuple".into(),
            TyKind::Array(..) => "array".into(),
            _ => self.short(ty),
        }
    }

    /// The name of a struct, tuple, array or vector.
    fn aggregate(&mut self, ty: Ty, names: &mut Names) -> String {
        if let Some(name) = self.names.get(&ty) {
            return name.clone();
        }
        let mut short = self.short(ty);
        if short.is_empty() {
            short.push_str("aggregate");
        }
        let name = names.pick_clean(short);
        let _ = writeln!(self.forward, "typedef struct {name} {name};");
        self.names.insert(ty, name.clone());
        name
    }

    /// Names of the members of a tuple or struct, by part.
    pub fn members(&mut self, ty: Ty) -> &[String] {
        let types = self.types;
        let reserved = self.dialect.reserved;
        self.fields.entry(ty).or_insert_with(|| {
            let mut names = Names::without(reserved.split_whitespace().map(String::from));
            let n = types.n_parts(ty).unwrap_or(0);
            match types.kind(ty) {
                TyKind::Struct(id) => {
                    let fields = &types.struct_data(*id).fields;
                    fields.iter().enumerate().map(|(i, f)| names.pick(&f.0, &format!("x{i}"))).collect()
                }
                TyKind::Cn(_) => vec!["code_".into(), "env".into()],
                _ => (0..n).map(|i| names.pick(&format!("x{i}"), "x")).collect(),
            }
        })
    }

    /// Defines a struct, after those that are its parts.
    pub fn define(&mut self, ty: Ty, names: &mut Names) -> Result<()> {
        if self.defined.contains_key(&ty) {
            return Ok(());
        }
        self.defined.insert(ty, true);
        let name = self.aggregate(ty, names);
        let mut body = String::new();
        let (size, align) = self.size_align(ty)?;
        let mut natural = 1;
        match self.types.kind(ty).clone() {
            TyKind::Vector(p, n) => {
                natural = layout::prim_size(p);
                let _ = writeln!(body, "    {} {ELEMENTS}[{n}];", self.prim(p)?);
            }
            TyKind::Array(elem, n) => {
                natural = self.size_align(elem)?.1;
                let elem = self.stored(elem, names)?;
                let _ = writeln!(body, "    {elem}{ELEMENTS}[{n}];");
            }
            TyKind::Cn(_) => {
                natural = align;
                let code = self.code()?;
                let _ = writeln!(body, "    {code} code_;\n    void *env;");
            }
            _ => {
                let members = self.members(ty).to_vec();
                let mut end = 0u64;
                for (i, member) in members.iter().enumerate() {
                    let part = self.types.part(ty, i as u64).ok_or_else(|| bug("a struct without this part"))?;
                    let (part_size, part_align) = self.size_align(part)?;
                    if part_size == 0 {
                        continue;
                    }
                    let at = layout::offset(self.types, ty, i as u64).unwrap_or(0);
                    let declared = self.stored(part, names)?;
                    // A part without size may have moved this one.
                    let moved = at != end.next_multiple_of(part_align);
                    let aligned = if moved {
                        format!(" {}", self.alignment(1 << at.trailing_zeros().min(6)))
                    } else {
                        String::new()
                    };
                    let _ = writeln!(body, "    {declared}{member}{aligned};");
                    natural = natural.max(part_align);
                    end = at + part_size;
                }
            }
        }
        let aligned = if natural < align { format!(" {}", self.alignment(align)) } else { String::new() };
        let alias = if self.aliasing && !self.dialect.may_alias.is_empty() {
            format!("{} ", self.dialect.may_alias)
        } else {
            String::new()
        };
        debug_assert!(size > 0);
        let _ = writeln!(self.definitions, "struct {alias}{name} {{\n{body}}}{aligned};");
        Ok(())
    }

    fn alignment(&self, align: u64) -> String {
        self.dialect.aligned.replace('N', &align.to_string())
    }

    /// The type of code addresses, which is declared.
    fn code(&mut self) -> Result<String> {
        if !self.dialect.has.function_pointers {
            let remedy = "keep a number that says which function it is, and call it by a `match`";
            return Err(limitation(self.dialect, Span::NONE, "a function as a value", remedy));
        }
        if !self.forward.contains(CODE) {
            self.forward.insert_str(0, CODE);
        }
        Ok("code".into())
    }

    /// The type as it stands before a declared name, with the space between them if there is one.
    pub fn declared(&mut self, ty: Ty, names: &mut Names) -> Result<String> {
        let name = self.name(ty, names)?;
        Ok(if name.ends_with(['*', '&']) { name } else { name + " " })
    }
}

/// The type of code addresses; a call converts them to the type of the function.
const CODE: &str = "typedef void (*code)(void);\n";
