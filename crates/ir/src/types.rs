//! Types of the graph and of flat SSA: hash-consed, so equal types have equal ids. Structs are nominal, hence may
//! be recursive through pointers.

use crate::target::Spaces;
use nyala_base::Id;
use rustc_hash::{FxHashMap, FxHashSet};

nyala_base::define_id!(
    /// A type of a [`Types`] table.
    pub struct Ty, "t"
);
nyala_base::define_id!(
    /// A nominal struct of a [`Types`] table.
    pub struct StructId, "struct"
);

/// Maximal number of lanes of a vector.
pub const MAX_LANES: u32 = 64;

/// Maximal length in bytes of a type's text; longer ones are cut off.
const MAX_TEXT: usize = 1 << 16;

/// Primitive types. Signedness is part of the type, so that one `div` or `lt` serves both.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Prim {
    /// One byte, 0 or 1.
    Bool,
    /// Signed, 8 bits.
    I8,
    /// Signed, 16 bits.
    I16,
    /// Signed, 32 bits.
    I32,
    /// Signed, 64 bits.
    I64,
    /// Unsigned, 8 bits.
    U8,
    /// Unsigned, 16 bits.
    U16,
    /// Unsigned, 32 bits.
    U32,
    /// Unsigned, 64 bits.
    U64,
    /// IEEE 754, 16 bits.
    F16,
    /// IEEE 754, 32 bits.
    F32,
    /// IEEE 754, 64 bits.
    F64,
}

impl Prim {
    /// All of them, in the order of the declaration.
    pub const ALL: [Prim; 12] = [
        Prim::Bool,
        Prim::I8,
        Prim::I16,
        Prim::I32,
        Prim::I64,
        Prim::U8,
        Prim::U16,
        Prim::U32,
        Prim::U64,
        Prim::F16,
        Prim::F32,
        Prim::F64,
    ];

    /// The name in programs: `i32`.
    pub fn name(self) -> &'static str {
        match self {
            Prim::Bool => "bool",
            Prim::I8 => "i8",
            Prim::I16 => "i16",
            Prim::I32 => "i32",
            Prim::I64 => "i64",
            Prim::U8 => "u8",
            Prim::U16 => "u16",
            Prim::U32 => "u32",
            Prim::U64 => "u64",
            Prim::F16 => "f16",
            Prim::F32 => "f32",
            Prim::F64 => "f64",
        }
    }

    /// The primitive type of this name.
    pub fn from_name(name: &str) -> Option<Prim> {
        Prim::ALL.into_iter().find(|p| p.name() == name)
    }

    /// Width in bits; 1 for `bool`.
    pub fn bits(self) -> u32 {
        match self {
            Prim::Bool => 1,
            Prim::I8 | Prim::U8 => 8,
            Prim::I16 | Prim::U16 | Prim::F16 => 16,
            Prim::I32 | Prim::U32 | Prim::F32 => 32,
            Prim::I64 | Prim::U64 | Prim::F64 => 64,
        }
    }

    /// `f16`, `f32`, `f64`.
    pub fn is_float(self) -> bool {
        matches!(self, Prim::F16 | Prim::F32 | Prim::F64)
    }

    /// Signed integers; floats are not among them.
    pub fn is_signed(self) -> bool {
        matches!(self, Prim::I8 | Prim::I16 | Prim::I32 | Prim::I64)
    }

    /// Integers, `bool` excluded.
    pub fn is_int(self) -> bool {
        !self.is_float() && self != Prim::Bool
    }

    /// Normalizes the bit pattern of a literal of this type: integers are sign- or zero-extended to 64 bits, so that
    /// equal values have equal patterns.
    pub fn normalize(self, bits: u64) -> u64 {
        match self {
            Prim::Bool => bits & 1,
            Prim::I8 => bits as i8 as i64 as u64,
            Prim::I16 => bits as i16 as i64 as u64,
            Prim::I32 => bits as i32 as i64 as u64,
            Prim::U8 => bits as u8 as u64,
            Prim::U16 | Prim::F16 => bits as u16 as u64,
            Prim::U32 | Prim::F32 => bits as u32 as u64,
            Prim::I64 | Prim::U64 | Prim::F64 => bits,
        }
    }
}

/// The structure of a [`Ty`].
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum TyKind {
    /// A number or truth value.
    Prim(Prim),
    /// `simd[T * n]`: numbers or bools on which operations work lane by lane; 1 to [`MAX_LANES`].
    Vector(Prim, u32),
    /// The state of memory; a token, no data.
    Mem,
    /// Address of a `pointee` in `space` (0: generic; the numbers are in `docs/reference/memory.md`, Address spaces).
    Ptr {
        /// The type that it points to.
        pointee: Ty,
        /// The address space, 0 for memory of all kinds.
        space: u8,
    },
    /// Parts of these types; without parts it is `()`.
    Tuple(Box<[Ty]>),
    /// A struct of the program, by its declaration.
    Struct(StructId),
    /// `[T * n]`, a value.
    Array(Ty, u64),
    /// `[T]`, behind pointers only.
    IndefArray(Ty),
    /// A continuation with these parameters; it never returns.
    Cn(Box<[Ty]>),
    /// A bare code address, as `convert_closures` makes it; each call states the signature.
    Code,
}

impl TyKind {
    /// The kind with other parts: types, and the struct that it is.
    fn replaced(&self, mut ty: impl FnMut(Ty) -> Ty, mut of_struct: impl FnMut(StructId) -> StructId) -> TyKind {
        match self {
            TyKind::Prim(_) | TyKind::Vector(..) | TyKind::Mem | TyKind::Code => self.clone(),
            TyKind::Ptr { pointee, space } => TyKind::Ptr { pointee: ty(*pointee), space: *space },
            TyKind::Tuple(elems) => TyKind::Tuple(elems.iter().map(|&e| ty(e)).collect()),
            TyKind::Struct(id) => TyKind::Struct(of_struct(*id)),
            TyKind::Array(elem, n) => TyKind::Array(ty(*elem), *n),
            TyKind::IndefArray(elem) => TyKind::IndefArray(ty(*elem)),
            TyKind::Cn(params) => TyKind::Cn(params.iter().map(|&p| ty(p)).collect()),
        }
    }

    /// The types that it is made of; not the fields of structs.
    fn parts(&self) -> &[Ty] {
        match self {
            TyKind::Prim(_) | TyKind::Vector(..) | TyKind::Mem | TyKind::Code | TyKind::Struct(_) => &[],
            TyKind::Ptr { pointee: part, .. } | TyKind::Array(part, _) | TyKind::IndefArray(part) => {
                std::slice::from_ref(part)
            }
            TyKind::Tuple(parts) | TyKind::Cn(parts) => parts,
        }
    }
}

/// A struct that the program declares.
#[derive(Clone, Debug)]
pub struct StructData {
    /// As programs write it.
    pub name: String,
    /// Field names and types, empty until [`Types::set_fields`].
    pub fields: Vec<(String, Ty)>,
}

/// The table of all types of one world or module.
#[derive(Clone, Debug)]
pub struct Types {
    kinds: Vec<TyKind>,
    index: FxHashMap<TyKind, Ty>,
    structs: Vec<StructData>,
    orders: Vec<u8>,
    spaces: Spaces,
}

/// Types of a table, [extracted](Types::extract).
pub struct TypesPart {
    /// The new table. Its types are in the order of the old one.
    pub table: Types,
    /// For each type of the new table the one of the old table.
    pub types: Vec<Ty>,
    /// For each struct of the new table the one of the old table.
    pub structs: Vec<StructId>,
}

impl Default for Types {
    fn default() -> Self {
        Types::new()
    }
}

impl Types {
    /// Only primitive types, `mem` and `()`.
    pub fn new() -> Types {
        let mut types = Types {
            kinds: Vec::new(),
            index: FxHashMap::default(),
            structs: Vec::new(),
            orders: Vec::new(),
            spaces: Spaces::FLAT,
        };
        for prim in Prim::ALL {
            types.intern(TyKind::Prim(prim));
        }
        types.intern(TyKind::Mem);
        types.intern(TyKind::Tuple(Box::new([])));
        types
    }

    /// The types `used` and all that they are made of, as a table of their own.
    pub fn extract(&self, used: impl IntoIterator<Item = Ty>) -> TypesPart {
        let mut part = Types { spaces: self.spaces, ..Types::new() };
        // Those that each table has come first, in the same order.
        let mut types: Vec<Ty> = (0..part.kinds.len()).map(Ty::from_idx).collect();
        let mut new: FxHashMap<Ty, Ty> = types.iter().map(|&ty| (ty, ty)).collect();
        let mut structs: Vec<StructId> = Vec::new();
        let (n_common, mut work) = (types.len(), used.into_iter().collect::<Vec<Ty>>());
        let mut seen_structs: FxHashSet<StructId> = FxHashSet::default();
        while let Some(ty) = work.pop() {
            if new.contains_key(&ty) {
                continue;
            }
            new.insert(ty, ty);
            types.push(ty);
            match self.kind(ty) {
                TyKind::Struct(id) if seen_structs.insert(*id) => {
                    structs.push(*id);
                    work.extend(self.structs[id.idx()].fields.iter().map(|f| f.1));
                }
                kind => work.extend(kind.parts()),
            }
        }
        // Types come after those that they are made of, but for fields.
        types[n_common..].sort_unstable();
        structs.sort_unstable();
        let new_struct: FxHashMap<StructId, StructId> =
            structs.iter().enumerate().map(|(i, &old)| (old, StructId::from_idx(i))).collect();
        for &old in &types[n_common..] {
            let kind = self.kind(old).replaced(|ty| new[&ty], |id| new_struct[&id]);
            new.insert(old, part.intern(kind));
        }
        for old in &structs {
            let StructData { name, fields } = &self.structs[old.idx()];
            let fields = fields.iter().map(|(name, ty)| (name.clone(), new[ty])).collect();
            part.structs.push(StructData { name: name.clone(), fields });
        }
        TypesPart { table: part, types, structs }
    }

    /// Adds the types of a table that grew out of an [extracted](Types::extract) one: those that `types` has no entry for. `types` and
    /// `structs` have for each type and struct of `part` the one here; `types` is completed.
    pub fn absorb(&mut self, part: &Types, types: &mut Vec<Ty>, structs: &[StructId]) {
        for kind in &part.kinds[types.len()..] {
            let kind = kind.replaced(|ty| types[ty.idx()], |id| structs[id.idx()]);
            types.push(self.intern(kind));
        }
    }

    /// The address spaces of the machine that the types are laid out for.
    pub fn spaces(&self) -> Spaces {
        self.spaces
    }

    /// Lays the types out for a machine with these address spaces.
    pub fn set_spaces(&mut self, spaces: Spaces) {
        self.spaces = spaces;
    }

    /// The structure of a type.
    pub fn kind(&self, ty: Ty) -> &TyKind {
        &self.kinds[ty.idx()]
    }

    /// The type of this kind: equal kinds are one type.
    pub fn intern(&mut self, kind: TyKind) -> Ty {
        if let Some(&ty) = self.index.get(&kind) {
            return ty;
        }
        let order = self.compute_order(&kind);
        let ty = Ty::from_idx(self.kinds.len());
        self.kinds.push(kind.clone());
        self.orders.push(order);
        self.index.insert(kind, ty);
        ty
    }

    /// The order of a type: 0 for data; for a continuation, 1 + the highest order among its parameters. Data that
    /// contains functions has their order, except behind pointers (order 0) and in structs (see
    /// [`Types::has_function`]).
    fn compute_order(&self, kind: &TyKind) -> u8 {
        match kind {
            TyKind::Cn(params) => params.iter().map(|&p| self.order(p)).max().unwrap_or(0).saturating_add(1),
            TyKind::Tuple(elems) => elems.iter().map(|&p| self.order(p)).max().unwrap_or(0),
            TyKind::Array(elem, _) | TyKind::IndefArray(elem) => self.order(*elem),
            TyKind::Prim(_)
            | TyKind::Vector(..)
            | TyKind::Mem
            | TyKind::Ptr { .. }
            | TyKind::Struct(_)
            | TyKind::Code => 0,
        }
    }

    /// The order of a type, how deep functions are nested in it: 0 for data, 1 for blocks, 2 for functions that return.
    pub fn order(&self, ty: Ty) -> u8 {
        self.orders[ty.idx()]
    }

    /// Whether a value of this type is or contains a function (not behind a pointer).
    pub fn has_function(&self, ty: Ty) -> bool {
        match self.kind(ty) {
            TyKind::Cn(_) => return true,
            TyKind::Prim(_) | TyKind::Vector(..) | TyKind::Mem | TyKind::Ptr { .. } | TyKind::Code => return false,
            TyKind::Tuple(_) | TyKind::Struct(_) | TyKind::Array(..) | TyKind::IndefArray(_) => {}
        }
        // Visits each type once: parts may be shared, so a walk of the tree would be exponential.
        let mut seen: FxHashSet<Ty> = FxHashSet::default();
        let mut work = vec![ty];
        while let Some(ty) = work.pop() {
            match self.kind(ty) {
                TyKind::Cn(_) => return true,
                TyKind::Prim(_) | TyKind::Vector(..) | TyKind::Mem | TyKind::Ptr { .. } | TyKind::Code => {}
                _ if !seen.insert(ty) => {}
                TyKind::Tuple(elems) => work.extend(elems),
                TyKind::Array(elem, _) | TyKind::IndefArray(elem) => work.push(*elem),
                TyKind::Struct(id) => work.extend(self.structs[id.idx()].fields.iter().map(|f| f.1)),
            }
        }
        false
    }

    /// A primitive type.
    pub fn prim(&self, prim: Prim) -> Ty {
        Ty(prim as u32)
    }
    /// `bool`.
    pub fn bool(&self) -> Ty {
        self.prim(Prim::Bool)
    }
    /// `i32`.
    pub fn i32(&self) -> Ty {
        self.prim(Prim::I32)
    }
    /// `i64`.
    pub fn i64(&self) -> Ty {
        self.prim(Prim::I64)
    }
    /// The type of memory as a value.
    pub fn mem(&self) -> Ty {
        Ty(Prim::ALL.len() as u32)
    }
    /// `()`.
    pub fn unit(&self) -> Ty {
        Ty(Prim::ALL.len() as u32 + 1)
    }
    /// The address of a `pointee` in the generic address space.
    pub fn ptr(&mut self, pointee: Ty) -> Ty {
        self.intern(TyKind::Ptr { pointee, space: 0 })
    }
    /// The type of this kind, if there is one as yet.
    pub fn find(&self, kind: &TyKind) -> Option<Ty> {
        self.index.get(kind).copied()
    }

    /// A tuple of these types, also of a single one.
    pub fn tuple(&mut self, elems: &[Ty]) -> Ty {
        self.intern(TyKind::Tuple(elems.into()))
    }
    /// An array of `n` elements.
    pub fn array(&mut self, elem: Ty, n: u64) -> Ty {
        self.intern(TyKind::Array(elem, n))
    }
    /// An array whose length is not in the type.
    pub fn indef_array(&mut self, elem: Ty) -> Ty {
        self.intern(TyKind::IndefArray(elem))
    }
    /// A continuation with these parameters.
    pub fn cn(&mut self, params: &[Ty]) -> Ty {
        self.intern(TyKind::Cn(params.into()))
    }
    /// The type of code addresses, in flat code.
    pub fn code(&mut self) -> Ty {
        self.intern(TyKind::Code)
    }

    /// A new nominal struct type, its fields to be set once by [`Types::set_fields`].
    pub fn declare_struct(&mut self, name: &str) -> (StructId, Ty) {
        let id = StructId::from_idx(self.structs.len());
        self.structs.push(StructData { name: name.into(), fields: Vec::new() });
        (id, self.intern(TyKind::Struct(id)))
    }

    /// Sets the fields of a struct, in the order of memory.
    pub fn set_fields(&mut self, id: StructId, fields: Vec<(String, Ty)>) {
        self.structs[id.idx()].fields = fields;
    }

    /// Name and fields of a struct.
    pub fn struct_data(&self, id: StructId) -> &StructData {
        &self.structs[id.idx()]
    }

    /// All structs, in the order of their declaration.
    pub fn structs(&self) -> impl Iterator<Item = (StructId, &StructData)> {
        self.structs.iter().enumerate().map(|(i, s)| (StructId::from_idx(i), s))
    }

    /// The primitive type, if `ty` is one.
    pub fn as_prim(&self, ty: Ty) -> Option<Prim> {
        match self.kind(ty) {
            TyKind::Prim(p) => Some(*p),
            _ => None,
        }
    }

    /// A vector of `n` lanes.
    pub fn vector(&mut self, prim: Prim, n: u32) -> Ty {
        self.intern(TyKind::Vector(prim, n))
    }

    /// Lane type and number of lanes, if `ty` is a vector.
    pub fn as_vector(&self, ty: Ty) -> Option<(Prim, u32)> {
        match self.kind(ty) {
            TyKind::Vector(prim, n) => Some((*prim, *n)),
            _ => None,
        }
    }

    /// The type itself if it is primitive, the type of its lanes if it is a vector.
    pub fn lane_prim(&self, ty: Ty) -> Option<Prim> {
        match self.kind(ty) {
            TyKind::Prim(prim) | TyKind::Vector(prim, _) => Some(*prim),
            _ => None,
        }
    }

    /// Whether atomic operations work on values of this type: numbers, bools, addresses.
    pub fn is_atomic(&self, ty: Ty) -> bool {
        matches!(self.kind(ty), TyKind::Prim(_) | TyKind::Ptr { .. })
    }

    /// `prim`, or a vector of it with as many lanes as `ty` has.
    pub fn like(&mut self, ty: Ty, prim: Prim) -> Ty {
        match self.as_vector(ty) {
            Some((_, n)) => self.vector(prim, n),
            None => self.prim(prim),
        }
    }

    /// Whether two types are both primitive, or vectors with equally many lanes.
    pub fn same_lanes(&self, a: Ty, b: Ty) -> bool {
        let lanes = |ty| self.lane_prim(ty).map(|_| self.as_vector(ty).map(|v| v.1));
        lanes(a).is_some() && lanes(a) == lanes(b)
    }

    /// Parameters of a continuation type; `None` for other types.
    pub fn cn_params(&self, ty: Ty) -> Option<&[Ty]> {
        match self.kind(ty) {
            TyKind::Cn(params) => Some(params),
            _ => None,
        }
    }

    /// The type that an address points to; `None` for other types.
    pub fn pointee(&self, ty: Ty) -> Option<Ty> {
        match self.kind(ty) {
            TyKind::Ptr { pointee, .. } => Some(*pointee),
            _ => None,
        }
    }

    /// Number of parts of a tuple, struct, definite array or vector.
    pub fn n_parts(&self, ty: Ty) -> Option<u64> {
        match self.kind(ty) {
            TyKind::Tuple(elems) => Some(elems.len() as u64),
            TyKind::Struct(id) => Some(self.structs[id.idx()].fields.len() as u64),
            TyKind::Array(_, n) => Some(*n),
            TyKind::Vector(_, n) => Some(u64::from(*n)),
            _ => None,
        }
    }

    /// Type of part `idx` of a tuple or struct, or of any element of an array or vector.
    pub fn part(&self, ty: Ty, idx: u64) -> Option<Ty> {
        match self.kind(ty) {
            TyKind::Tuple(elems) => elems.get(idx as usize).copied(),
            TyKind::Struct(id) => self.structs[id.idx()].fields.get(idx as usize).map(|f| f.1),
            TyKind::Array(elem, _) | TyKind::IndefArray(elem) => Some(*elem),
            TyKind::Vector(prim, _) => Some(self.prim(*prim)),
            _ => None,
        }
    }

    /// The type as IR text.
    pub fn display(&self, ty: Ty) -> String {
        let mut out = String::new();
        self.write(ty, &mut out);
        out
    }

    fn write(&self, ty: Ty, out: &mut String) {
        // Shared parts are written out each time: a small table of types may have a text of exponential length.
        if out.len() > MAX_TEXT {
            if !out.ends_with('…') {
                out.push('…');
            }
            return;
        }
        let list = |elems: &[Ty], out: &mut String| {
            for (i, &e) in elems.iter().enumerate() {
                if i > 0 {
                    out.push_str(", ");
                }
                self.write(e, out);
            }
        };
        match self.kind(ty) {
            TyKind::Prim(p) => out.push_str(p.name()),
            TyKind::Vector(p, n) => out.push_str(&format!("simd[{} * {n}]", p.name())),
            TyKind::Mem => out.push_str("mem"),
            TyKind::Ptr { pointee, space } => {
                out.push('&');
                if *space != 0 {
                    out.push_str(&format!("[{space}]"));
                }
                self.write(*pointee, out);
            }
            TyKind::Tuple(elems) => {
                out.push('(');
                list(elems, out);
                if elems.len() == 1 {
                    out.push(',');
                }
                out.push(')');
            }
            TyKind::Struct(id) => out.push_str(&self.structs[id.idx()].name),
            TyKind::Array(elem, n) => {
                out.push('[');
                self.write(*elem, out);
                out.push_str(&format!(" * {n}]"));
            }
            TyKind::IndefArray(elem) => {
                out.push('[');
                self.write(*elem, out);
                out.push(']');
            }
            TyKind::Cn(params) => {
                out.push_str("cn(");
                list(params, out);
                out.push(')');
            }
            TyKind::Code => out.push_str("code"),
        }
    }
}
