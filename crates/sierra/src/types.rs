//! Types of the language, each with its type in the graph.

use nyala_base::Span;
use nyala_ir::{self as ir, Prim, World, layout};
use rustc_hash::FxHashMap;

/// Limit on the elements of an array.
pub const MAX_LENGTH: u64 = 1 << 32;

/// Limit on pointers and arrays within each other.
pub const MAX_DEPTH: u32 = 50;

/// Limit on structs and arrays that are parts of each other. C asks for 63 structs.
pub const MAX_NESTED: u32 = 64;

/// Limit on the values that a struct is made of, of which an array counts as one element: walks over types visit each.
pub const MAX_LEAVES: u64 = 1 << 14;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Ty(u32);

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct StructId(u32);

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    /// Of faulty code; nothing more is reported about it.
    Error,
    Void,
    /// A number or `bool`.
    Prim(Prim),
    Pointer {
        to: Ty,
        is_const: bool,
    },
    /// Of a parameter: the address of an argument.
    Reference {
        to: Ty,
        is_const: bool,
    },
    Array(Ty, u64),
    /// A short vector of ISPC's dialect: numbers, or ones with lanes.
    Short(Ty, u64),
    /// A struct or a union.
    Struct(StructId),
    /// A pointer to a function: 0, or the number of one whose address the program takes.
    Function(Signature),
    /// A number or `bool` in each lane.
    Varying(Prim, u32),
    /// A pointer to a function in each lane.
    VaryingFunction(Ty, u32),
    /// `n` elements of a struct, field by field: `block` is a struct of arrays.
    Soa {
        of: Ty,
        n: u32,
        block: Ty,
    },
    /// A pointer in each lane, as its bits.
    VaryingPointer {
        to: Ty,
        is_const: bool,
        n: u32,
    },
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Signature {
    pub params: Vec<Ty>,
    pub result: Ty,
    /// The lanes of the mode in which the function runs.
    pub simd: Option<u32>,
}

pub struct Field {
    pub name: String,
    pub ty: Ty,
    /// It says itself whether it has lanes; a struct with lanes has it as it is.
    pub is_bound: bool,
}

pub struct Struct {
    pub name: String,
    pub declared: Span,
    /// All fields lie at its beginning.
    pub is_union: bool,
    /// `None`: it was only named so far.
    pub fields: Option<Vec<Field>>,
    ir: (ir::StructId, ir::Ty),
}

/// What a type is made of.
#[derive(Clone, Copy, Default)]
pub struct Extent {
    /// How deep structs and arrays are parts of each other.
    nested: u32,
    /// Its values, an array counted as one element, and as all.
    leaves: u64,
    parts: u64,
}

impl Extent {
    pub fn is_too_large(self) -> bool {
        self.nested > MAX_NESTED || self.leaves > MAX_LEAVES
    }
}

const ONE: Extent = Extent { nested: 0, leaves: 1, parts: 1 };

pub struct Types {
    kinds: Vec<Kind>,
    /// How deep each type is: pointers and arrays within each other.
    depths: Vec<u32>,
    extents: Vec<Extent>,
    known: FxHashMap<Kind, Ty>,
    structs: Vec<Struct>,
    /// Structs with lanes, and the structs that they are made of.
    varying: FxHashMap<(StructId, u32), Ty>,
    /// Structs of arrays, by the structs that they are made of.
    blocks: FxHashMap<(StructId, u32), Ty>,
    origins: FxHashMap<StructId, (Ty, u32)>,
    /// Pointers to elements of `soa<n>` types, which are structs of a block's address and a number, and what each leads to.
    slices: FxHashMap<(Ty, bool), Ty>,
    sliced: FxHashMap<Ty, (Ty, bool)>,
    /// The number of structs with each name: names are unique in the graph.
    names: FxHashMap<String, u32>,
    /// Types are shown as ISPC's programs write them.
    pub is_ispc: bool,
}

impl Types {
    pub fn new() -> Types {
        let mut types = Types {
            kinds: Vec::new(),
            depths: Vec::new(),
            extents: Vec::new(),
            known: FxHashMap::default(),
            structs: Vec::new(),
            varying: FxHashMap::default(),
            blocks: FxHashMap::default(),
            origins: FxHashMap::default(),
            slices: FxHashMap::default(),
            sliced: FxHashMap::default(),
            names: FxHashMap::default(),
            is_ispc: false,
        };
        let first = [Kind::Error, Kind::Void].into_iter().chain(Prim::ALL.iter().map(|&p| Kind::Prim(p)));
        first.for_each(|kind| _ = types.intern(kind));
        types
    }

    pub const ERROR: Ty = Ty(0);
    pub const VOID: Ty = Ty(1);

    fn intern(&mut self, kind: Kind) -> Ty {
        *self.known.entry(kind).or_insert_with_key(|kind| {
            let depth = match *kind {
                Kind::Pointer { to: of, .. }
                | Kind::Reference { to: of, .. }
                | Kind::VaryingPointer { to: of, .. }
                | Kind::Array(of, _)
                | Kind::Short(of, _) => self.depths[of.0 as usize] + 1,
                Kind::VaryingFunction(of, _) => self.depths[of.0 as usize],
                Kind::Function(ref f) => {
                    let parts = f.params.iter().chain([&f.result]);
                    parts.map(|ty| self.depths[ty.0 as usize]).max().unwrap_or(0) + 1
                }
                _ => 0,
            };
            let extent = match *kind {
                Kind::Array(of, n) | Kind::Short(of, n) => {
                    let of = self.extents[of.0 as usize];
                    Extent { nested: of.nested + 1, leaves: of.leaves, parts: of.parts.saturating_mul(n) }
                }
                Kind::Soa { block, .. } => self.extents[block.0 as usize],
                // A struct's is known with its fields.
                _ => ONE,
            };
            self.kinds.push(kind.clone());
            self.depths.push(depth);
            self.extents.push(extent);
            Ty(self.kinds.len() as u32 - 1)
        })
    }

    pub fn is_too_deep(&self, ty: Ty) -> bool {
        self.depths[ty.0 as usize] > MAX_DEPTH
    }

    fn extent_of(&self, fields: &[Field]) -> Extent {
        fields.iter().fold(Extent::default(), |all, field| self.with_field(all, field.ty))
    }

    /// The extent of a struct with one more field.
    pub fn with_field(&self, all: Extent, ty: Ty) -> Extent {
        let field = self.extents[ty.0 as usize];
        Extent {
            nested: all.nested.max(field.nested + 1),
            leaves: all.leaves.saturating_add(field.leaves),
            parts: all.parts.saturating_add(field.parts),
        }
    }

    /// The values that a value is made of.
    pub fn n_parts(&self, ty: Ty) -> u64 {
        self.extents[ty.0 as usize].parts
    }

    pub fn prim(&mut self, prim: Prim) -> Ty {
        self.intern(Kind::Prim(prim))
    }

    /// A number's type, which is always there.
    pub fn known_prim(&self, prim: Prim) -> Ty {
        self.known.get(&Kind::Prim(prim)).copied().unwrap_or(Types::ERROR)
    }

    pub fn pointer(&mut self, to: Ty, is_const: bool) -> Ty {
        self.intern(Kind::Pointer { to, is_const })
    }

    pub fn reference(&mut self, to: Ty, is_const: bool) -> Ty {
        self.intern(Kind::Reference { to, is_const })
    }

    pub fn array(&mut self, of: Ty, n: u64) -> Ty {
        self.intern(Kind::Array(of, n))
    }

    pub fn short(&mut self, of: Ty, n: u64) -> Ty {
        self.intern(Kind::Short(of, n))
    }

    /// The elements of a short vector.
    pub fn as_short(&self, ty: Ty) -> Option<(Ty, u64)> {
        if let Kind::Short(of, n) = *self.kind(ty) { Some((of, n)) } else { None }
    }

    pub fn kind(&self, ty: Ty) -> &Kind {
        &self.kinds[ty.0 as usize]
    }

    pub fn as_prim(&self, ty: Ty) -> Option<Prim> {
        if let Kind::Prim(prim) = *self.kind(ty) { Some(prim) } else { None }
    }

    pub fn as_struct(&self, ty: Ty) -> Option<&Struct> {
        if let Kind::Struct(id) = *self.kind(ty) { Some(&self.structs[id.0 as usize]) } else { None }
    }

    pub fn declare_struct(&mut self, name: &str, declared: Span, world: &mut World) -> (StructId, Ty) {
        let n = self.names.entry(name.to_string()).and_modify(|n| *n += 1).or_insert(0);
        let unique = if *n == 0 { name.to_string() } else { format!("{name}.{n}") };
        let ir = world.types.declare_struct(&unique);
        let id = StructId(self.structs.len() as u32);
        self.structs.push(Struct { name: name.into(), declared, is_union: false, fields: None, ir });
        (id, self.intern(Kind::Struct(id)))
    }

    pub fn set_fields(&mut self, id: StructId, fields: Vec<Field>, world: &mut World) {
        let mut of_graph: Vec<(String, ir::Ty)> =
            fields.iter().map(|f| (f.name.clone(), self.ir(f.ty, world))).collect();
        if self.structs[id.0 as usize].is_union {
            let layouts = of_graph.iter().filter_map(|f| layout::size_align(&world.types, f.1));
            let (size, align) = layouts.fold((0, 1), |all, l| (all.0.max(l.0), all.1.max(l.1)));
            let words = [Prim::U8, Prim::U16, Prim::U32].into_iter().find(|p| u64::from(p.bits()) == align * 8);
            let word = world.types.prim(words.unwrap_or(Prim::U64));
            let align = align.min(8);
            of_graph = vec![("words".into(), world.types.array(word, size.div_ceil(align).max(1)))];
        }
        let mut extent = self.extent_of(&fields);
        if self.structs[id.0 as usize].is_union {
            // It has no parts side by side.
            extent = Extent { leaves: 1, parts: 1, ..extent };
        }
        if let Some(ty) = self.known.get(&Kind::Struct(id)) {
            self.extents[ty.0 as usize] = extent;
        }
        let data = &mut self.structs[id.0 as usize];
        world.types.set_fields(data.ir.0, of_graph);
        data.fields = Some(fields);
    }

    pub fn set_union(&mut self, id: StructId) {
        self.structs[id.0 as usize].is_union = true;
    }

    /// The types of a struct's fields; none of other types, and of unions, which have no parts side by side.
    pub fn fields(&self, ty: Ty) -> Vec<Ty> {
        let data = self.as_struct(ty).filter(|s| !s.is_union);
        data.and_then(|s| s.fields.as_ref()).into_iter().flatten().map(|f| f.ty).collect()
    }

    pub fn function(&mut self, signature: Signature) -> Ty {
        self.intern(Kind::Function(signature))
    }

    pub fn as_function(&self, ty: Ty) -> Option<&Signature> {
        if let Kind::Function(signature) = self.kind(ty) { Some(signature) } else { None }
    }

    /// The type with `n` lanes. Of a struct each field has them that has none yet. `None`: it has no lanes.
    pub fn varying(&mut self, ty: Ty, n: u32, world: &mut World) -> Option<Ty> {
        if n == 1 {
            return Some(ty);
        }
        match *self.kind(ty) {
            Kind::Error | Kind::Varying(..) | Kind::VaryingPointer { .. } | Kind::VaryingFunction(..) => Some(ty),
            Kind::Function(_) => Some(self.intern(Kind::VaryingFunction(ty, n))),
            Kind::Void | Kind::Reference { .. } | Kind::Soa { .. } => None,
            Kind::Prim(prim) => Some(self.intern(Kind::Varying(prim, n))),
            Kind::Pointer { to, is_const } => Some(self.intern(Kind::VaryingPointer { to, is_const, n })),
            Kind::Array(of, length) => {
                let of = self.varying(of, n, world)?;
                Some(self.array(of, length))
            }
            Kind::Short(of, length) => {
                let of = self.varying(of, n, world)?;
                Some(self.short(of, length))
            }
            Kind::Struct(id) if self.origins.contains_key(&id) => Some(ty),
            Kind::Struct(id) => {
                if let Some(&known) = self.varying.get(&(id, n)) {
                    return Some(known);
                }
                let data = &self.structs[id.0 as usize];
                if data.is_union {
                    return None;
                }
                let (name, declared) = (format!("{} varying({n})", data.name), data.declared);
                let fields =
                    data.fields.as_ref()?.iter().map(|f| (f.name.clone(), f.ty, f.is_bound)).collect::<Vec<_>>();
                let (made, made_ty) = self.declare_struct(&name, declared, world);
                self.varying.insert((id, n), made_ty);
                self.origins.insert(made, (ty, n));
                let mut varied = Vec::new();
                for (name, ty, is_bound) in fields {
                    let ty = if is_bound { ty } else { self.varying(ty, n, world)? };
                    varied.push(Field { name, ty, is_bound });
                }
                self.set_fields(made, varied, world);
                Some(made_ty)
            }
        }
    }

    /// `n` elements side by side. `None`: the type has parts with lanes, or unions.
    pub fn soa(&mut self, of: Ty, n: u32, world: &mut World) -> Option<Ty> {
        let block = self.block(of, n, world)?;
        Some(self.intern(Kind::Soa { of, n, block }))
    }

    /// The type in which each number of `ty` is an array of them.
    fn block(&mut self, ty: Ty, n: u32, world: &mut World) -> Option<Ty> {
        match *self.kind(ty) {
            Kind::Array(of, length) | Kind::Short(of, length) => {
                let of = self.block(of, n, world)?;
                Some(self.array(of, length))
            }
            Kind::Struct(id) => {
                if let Some(&known) = self.blocks.get(&(id, n)) {
                    return Some(known);
                }
                let data = self.structs.get(id.0 as usize).filter(|s| !s.is_union)?;
                let (name, declared) = (format!("{} soa({n})", data.name), data.declared);
                let fields = data.fields.as_ref()?.iter().map(|f| (f.name.clone(), f.ty)).collect::<Vec<_>>();
                let mut found = Vec::new();
                for (name, ty) in fields {
                    let ty = self.block(ty, n, world)?;
                    found.push(Field { name, ty, is_bound: true });
                }
                let (made, made_ty) = self.declare_struct(&name, declared, world);
                self.blocks.insert((id, n), made_ty);
                self.set_fields(made, found, world);
                Some(made_ty)
            }
            Kind::Error | Kind::Prim(_) | Kind::Pointer { .. } | Kind::Function(_) => Some(self.array(ty, n.into())),
            _ => None,
        }
    }

    /// A pointer to an element of a `soa<n>` type.
    pub fn slice(&mut self, soa: Ty, is_const: bool, world: &mut World) -> Ty {
        if let Some(&known) = self.slices.get(&(soa, is_const)) {
            return known;
        }
        let field = |name: &str, ty| Field { name: name.into(), ty, is_bound: false };
        let fields = vec![field("block", self.pointer(soa, is_const)), field("element", self.prim(Prim::I64))];
        let (id, ty) = self.declare_struct("pointer to soa", Span::NONE, world);
        self.slices.insert((soa, is_const), ty);
        self.sliced.insert(ty, (soa, is_const));
        self.set_fields(id, fields, world);
        ty
    }

    /// What a pointer to an element of a `soa<n>` type leads to, and whether that is constant; with lanes, too.
    pub fn as_slice(&self, ty: Ty) -> Option<(Ty, bool)> {
        let lane = match *self.kind(ty) {
            Kind::Struct(id) => self.origins.get(&id).map_or(ty, |o| o.0),
            _ => return None,
        };
        self.sliced.get(&lane).copied()
    }

    /// The number of lanes of a value; `None` if it has none.
    pub fn lanes(&self, ty: Ty) -> Option<u32> {
        match *self.kind(ty) {
            Kind::Varying(_, n) | Kind::VaryingPointer { n, .. } | Kind::VaryingFunction(_, n) => Some(n),
            Kind::Short(of, _) => self.lanes(of),
            Kind::Struct(id) => self.origins.get(&id).map(|o| o.1),
            _ => None,
        }
    }

    /// The type of one lane.
    pub fn lane(&mut self, ty: Ty) -> Ty {
        match *self.kind(ty) {
            Kind::Varying(prim, _) => self.prim(prim),
            Kind::VaryingPointer { to, is_const, .. } => self.pointer(to, is_const),
            Kind::VaryingFunction(lane, _) => lane,
            Kind::Short(of, n) => {
                let of = self.lane(of);
                self.short(of, n)
            }
            Kind::Struct(id) => self.origins.get(&id).map_or(ty, |o| o.0),
            _ => ty,
        }
    }

    /// Whether the type has lanes.
    pub fn is_varying(&self, ty: Ty) -> bool {
        self.lanes(ty).is_some()
    }

    /// Whether values of the type have a size.
    pub fn is_complete(&self, mut ty: Ty) -> bool {
        while let Kind::Array(of, _) = *self.kind(ty) {
            ty = of;
        }
        match *self.kind(ty) {
            Kind::Void => false,
            Kind::Struct(id) => self.structs[id.0 as usize].fields.is_some(),
            _ => true,
        }
    }

    /// The type in the graph. A pointer leads to any number of elements.
    pub fn ir(&self, ty: Ty, world: &mut World) -> ir::Ty {
        match *self.kind(ty) {
            Kind::Error | Kind::Void => world.types.unit(),
            Kind::Prim(prim) => world.types.prim(prim),
            Kind::Pointer { to, .. } | Kind::Reference { to, .. } => {
                // Structs end the chain of pointers.
                let to = if to == Types::VOID { world.types.prim(Prim::U8) } else { self.ir(to, world) };
                let elements = world.types.indef_array(to);
                world.types.ptr(elements)
            }
            Kind::Array(of, n) | Kind::Short(of, n) => {
                let of = self.ir(of, world);
                world.types.array(of, n)
            }
            Kind::Struct(id) => self.structs[id.0 as usize].ir.1,
            Kind::Soa { block, .. } => self.ir(block, world),
            Kind::Varying(prim, n) => world.types.vector(prim, n),
            Kind::Function(_) => world.types.prim(Prim::U64),
            Kind::VaryingPointer { n, .. } | Kind::VaryingFunction(_, n) => world.types.vector(Prim::U64, n),
        }
    }

    /// As the source has it.
    pub fn show(&self, ty: Ty) -> String {
        if self.is_ispc { self.show_rated(ty) } else { self.show_plain(ty) }
    }

    /// With `uniform` and `varying`.
    fn show_rated(&self, ty: Ty) -> String {
        let of_prim = |prim: Prim| match prim {
            Prim::I8 => "int8",
            Prim::I16 => "int16",
            Prim::I32 => "int",
            Prim::I64 => "int64",
            Prim::U8 => "uint8",
            Prim::U16 => "uint16",
            Prim::U32 => "uint",
            Prim::U64 => "uint64",
            other => other.name(),
        };
        let of_prim = |prim: Prim| match prim {
            Prim::F16 => "float16",
            Prim::F32 => "float",
            Prim::F64 => "double",
            other => of_prim(other),
        };
        match *self.kind(ty) {
            Kind::Prim(prim) => format!("uniform {}", of_prim(prim)),
            Kind::Varying(prim, _) => format!("varying {}", of_prim(prim)),
            Kind::Short(of, n) => format!("{}<{n}>", self.show_rated(of)),
            Kind::Pointer { to, is_const } | Kind::VaryingPointer { to, is_const, .. } => {
                let rate = if self.is_varying(ty) { "varying" } else { "uniform" };
                format!("{}{} * {rate}", if is_const { "const " } else { "" }, self.show_rated(to))
            }
            Kind::Reference { to, is_const } => {
                format!("{}{} &", if is_const { "const " } else { "" }, self.show_rated(to))
            }
            Kind::Array(..) => {
                let (mut base, mut lengths) = (ty, String::new());
                while let Kind::Array(of, n) = *self.kind(base) {
                    lengths += &format!("[{n}]");
                    base = of;
                }
                format!("{}{lengths}", self.show_rated(base))
            }
            Kind::Struct(_) if let Some((to, is_const)) = self.as_slice(ty) => {
                let rate = if self.is_varying(ty) { "varying" } else { "uniform" };
                format!("{}{} * {rate}", if is_const { "const " } else { "" }, self.show_rated(to))
            }
            Kind::Struct(id) => match self.origins.get(&id) {
                Some(&(of, _)) => format!("varying {}", self.show_plain(of)),
                None => format!("uniform {}", self.structs[id.0 as usize].name),
            },
            Kind::Function(_) if self.depths[ty.0 as usize] > 6 => "a pointer to a function".into(),
            Kind::Function(ref f) => {
                let params: Vec<String> = f.params.iter().map(|&ty| self.show_rated(ty)).collect();
                format!("{} (* uniform)({})", self.show_rated(f.result), params.join(", "))
            }
            Kind::VaryingFunction(lane, _) => format!("varying {}", self.show_rated(lane)),
            Kind::Soa { of, n, .. } => format!("soa<{n}> {}", self.show_plain(of)),
            Kind::Error | Kind::Void => self.show_plain(ty),
        }
    }

    fn show_plain(&self, ty: Ty) -> String {
        match *self.kind(ty) {
            Kind::Error => "?".into(),
            Kind::Void => "void".into(),
            Kind::Prim(prim) => match prim {
                Prim::Bool => "bool",
                Prim::I8 => "char",
                Prim::I16 => "short",
                Prim::I32 => "int",
                Prim::I64 => "long",
                Prim::U8 => "unsigned char",
                Prim::U16 => "unsigned short",
                Prim::U32 => "unsigned",
                Prim::U64 => "unsigned long",
                Prim::F16 => "float16",
                Prim::F32 => "float",
                Prim::F64 => "double",
            }
            .into(),
            Kind::Pointer { to, is_const } => {
                format!("{}{}*", if is_const { "const " } else { "" }, self.show(to))
            }
            Kind::Reference { to, is_const } => {
                format!("{}{}&", if is_const { "const " } else { "" }, self.show(to))
            }
            Kind::Array(of, n) => {
                // `int[2][3]`: the outer length comes first.
                let (mut base, mut lengths) = (of, format!("[{n}]"));
                while let Kind::Array(of, n) = *self.kind(base) {
                    lengths += &format!("[{n}]");
                    base = of;
                }
                format!("{}{lengths}", self.show(base))
            }
            Kind::Short(of, n) => format!("{}<{n}>", self.show(of)),
            Kind::Struct(id) => self.structs[id.0 as usize].name.clone(),
            Kind::Varying(prim, n) => {
                let known = self.known.get(&Kind::Prim(prim));
                format!("{} varying({n})", known.map_or(String::new(), |&ty| self.show(ty)))
            }
            // Types of arguments may be the same ones many times.
            Kind::Function(_) if self.depths[ty.0 as usize] > 6 => "a pointer to a function".into(),
            Kind::Function(ref f) => {
                let params: Vec<String> = f.params.iter().map(|&ty| self.show(ty)).collect();
                let simd = f.simd.map_or(String::new(), |n| format!("simd({n}) "));
                format!("{simd}{} (*)({})", self.show(f.result), params.join(", "))
            }
            Kind::VaryingFunction(lane, n) => format!("{} varying({n})", self.show(lane)),
            Kind::Soa { of, n, .. } => format!("soa<{n}> {}", self.show(of)),
            Kind::VaryingPointer { to, is_const, n } => {
                format!("{}{}* varying({n})", if is_const { "const " } else { "" }, self.show(to))
            }
        }
    }

    /// As Impala has it: numbers, and addresses of numbers.
    pub fn impala(&self, ty: Ty) -> Option<String> {
        match *self.kind(ty) {
            Kind::Prim(prim) => Some(prim.name().into()),
            Kind::Pointer { to, is_const } => {
                let to = if to == Types::VOID { Prim::U8 } else { self.as_prim(to)? };
                Some(format!("&{}[{}]", if is_const { "" } else { "mut " }, to.name()))
            }
            _ => None,
        }
    }
}
