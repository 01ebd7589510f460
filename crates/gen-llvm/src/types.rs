//! LLVM's types for types of flat SSA: in registers, in memory, in signatures.

use crate::diagnostics::{bug, limitation, not_in_c};
use nyala_base::{Diagnostic, Id, Span};
use nyala_ir::target::{CAbi, Extension};
use nyala_ir::{Prim, Ty, TyKind, Types};
use rustc_hash::FxHashMap;
use std::fmt::Write;

/// Values with more scalars than this are kept in memory.
const MAX_DIRECT: u64 = 16;
/// Scalars that x86-64 returns in registers; larger results go through memory, so that calls in tail position stay
/// jumps.
const MAX_RET_INTS: u64 = 3;
const MAX_RET_FLOATS: u64 = 2;

/// A number of scalars larger than any limit on registers.
const TOO_MANY: u64 = 1 << 20;

/// Facts about types, computed once each.
pub(crate) struct Layouts<'m> {
    pub types: &'m Types,
    c_abi: CAbi,
    memory_text: Vec<Option<String>>,
    leaves: Vec<Option<(u64, u64)>>,
    weights: FxHashMap<Ty, u64>,
}

/// How a function returns its results.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum RetClass {
    /// As LLVM's result of this type: the type of the call's value, `void` if it has no parts.
    Direct(String),
    /// Written to memory at the first parameter; laid out as in a tuple.
    Memory,
}

impl<'m> Layouts<'m> {
    pub fn new(types: &'m Types, c_abi: CAbi) -> Layouts<'m> {
        Layouts { types, c_abi, memory_text: Vec::new(), leaves: Vec::new(), weights: FxHashMap::default() }
    }

    /// Number of integer and pointer scalars, and of floats, for counting argument registers. A vector that fills one
    /// register counts as a float; others count as too many, since LLVM splits them in its own way.
    pub fn leaves(&mut self, ty: Ty) -> (u64, u64) {
        if let Some(Some(n)) = self.leaves.get(ty.idx()) {
            return *n;
        }
        let n = match self.types.kind(ty) {
            TyKind::Prim(p) if p.is_float() => (0, 1),
            TyKind::Vector(p, n) if *p != Prim::Bool && n.is_power_of_two() && p.bits() * n <= 128 => (0, 1),
            TyKind::Vector(..) => (0, TOO_MANY),
            TyKind::Array(elem, n) => {
                let (ints, floats) = self.leaves(*elem);
                (ints.saturating_mul(*n), floats.saturating_mul(*n))
            }
            TyKind::Tuple(_) | TyKind::Struct(_) => {
                let mut sum = (0u64, 0u64);
                for i in 0..self.types.n_parts(ty).unwrap_or(0) {
                    if let Some(part) = self.types.part(ty, i) {
                        let (ints, floats) = self.leaves(part);
                        sum = (sum.0.saturating_add(ints), sum.1.saturating_add(floats));
                    }
                }
                sum
            }
            TyKind::Cn(_) => (2, 0),
            _ => (1, 0),
        };
        if self.leaves.len() <= ty.idx() {
            self.leaves.resize(ty.idx() + 1, None);
        }
        self.leaves[ty.idx()] = Some(n);
        n
    }

    /// Number of registers that a value takes, with one for each 16 bytes of a vector.
    fn weight(&mut self, ty: Ty) -> u64 {
        if let Some(&known) = self.weights.get(&ty) {
            return known;
        }
        let weight = match self.types.kind(ty) {
            TyKind::Vector(p, n) => u64::from((p.bits() * n).div_ceil(128)),
            TyKind::Array(elem, n) => self.weight(*elem).saturating_mul(*n),
            TyKind::Tuple(_) | TyKind::Struct(_) => {
                let parts = 0..self.types.n_parts(ty).unwrap_or(0);
                let parts: Vec<Ty> = parts.filter_map(|i| self.types.part(ty, i)).collect();
                parts.into_iter().fold(0, |sum: u64, p| sum.saturating_add(self.weight(p)))
            }
            TyKind::Cn(_) => 2,
            _ => 1,
        };
        self.weights.insert(ty, weight);
        weight
    }

    /// Adds the parts of a value that go in float and vector registers: type, lanes, whether it is a vector.
    fn vector_parts(&mut self, ty: Ty, parts: &mut Vec<(Prim, u32, bool)>) {
        match self.types.kind(ty) {
            TyKind::Vector(p, n) => parts.push((*p, *n, true)),
            TyKind::Prim(p) if p.is_float() => parts.push((*p, 1, false)),
            // Bounded: only types with few parts are followed.
            TyKind::Array(..) | TyKind::Tuple(_) | TyKind::Struct(_) if self.weight(ty) > 0 && !self.in_memory(ty) => {
                for i in 0..self.types.n_parts(ty).unwrap_or(0) {
                    if let Some(part) = self.types.part(ty, i) {
                        self.vector_parts(part, parts);
                    }
                }
            }
            _ => {}
        }
    }

    /// Whether all parameters that contain vectors fit in registers: eight of `vector_bits` each. True if there is no
    /// vector.
    pub fn vectors_fit(&mut self, params: &[Ty], vector_bits: u32) -> bool {
        let mut parts = Vec::new();
        params.iter().for_each(|&ty| self.vector_parts(ty, &mut parts));
        let fit = |width: u32| {
            let mut registers = 0;
            for &(prim, n, _) in &parts {
                let bits = n * prim.bits().max(8);
                // LLVM splits only powers of two into registers.
                registers += if bits <= width || n.is_power_of_two() { bits.div_ceil(width) } else { u32::MAX / 64 };
            }
            registers <= 8
        };
        !parts.iter().any(|p| p.2) || fit(128) || fit(vector_bits)
    }

    /// Whether a vector is part of the type, not behind an address.
    pub fn has_vector(&mut self, ty: Ty) -> bool {
        let mut parts = Vec::new();
        self.vector_parts(ty, &mut parts);
        parts.iter().any(|p| p.2)
    }

    /// Whether it is a vector of bools, which is an integer or a vector of bytes where it is passed.
    pub fn is_mask(&self, ty: Ty) -> bool {
        self.is_bool(ty) && self.types.as_vector(ty).is_some()
    }

    /// Whether a value of this type is kept in memory and named by its address. Vectors never are.
    pub fn in_memory(&mut self, ty: Ty) -> bool {
        self.types.as_vector(ty).is_none() && self.weight(ty) > MAX_DIRECT
    }

    /// The LLVM type of a value in memory or as a part of an aggregate.
    pub fn memory(&mut self, ty: Ty) -> Result<String, Box<Diagnostic>> {
        if let Some(Some(text)) = self.memory_text.get(ty.idx()) {
            return Ok(text.clone());
        }
        let text = match self.types.kind(ty) {
            TyKind::Prim(p) => match p {
                Prim::Bool | Prim::I8 | Prim::U8 => "i8",
                Prim::I16 | Prim::U16 => "i16",
                Prim::I32 | Prim::U32 => "i32",
                Prim::I64 | Prim::U64 => "i64",
                Prim::F16 => "half",
                Prim::F32 => "float",
                Prim::F64 => "double",
            }
            .to_string(),
            TyKind::Vector(p, n) => {
                let lane = self.memory(self.types.prim(*p))?;
                format!("<{n} x {lane}>")
            }
            TyKind::Ptr { .. } | TyKind::Code => "ptr".into(),
            TyKind::Cn(_) => "{ ptr, ptr }".into(),
            TyKind::Array(elem, n) => format!("[{n} x {}]", self.memory(*elem)?),
            TyKind::IndefArray(elem) => format!("[0 x {}]", self.memory(*elem)?),
            TyKind::Tuple(_) | TyKind::Struct(_) => {
                let mut text = String::from("{");
                for i in 0..self.types.n_parts(ty).unwrap_or(0) {
                    if let Some(part) = self.types.part(ty, i) {
                        let part = self.memory(part)?;
                        let _ = write!(text, "{}{part}", if i > 0 { ", " } else { " " });
                    }
                }
                text + " }"
            }
            TyKind::Mem => return Err(bug("a memory state as a value")),
        };
        if text.len() > 1 << 16 {
            let message =
                format!("the type `{}` has some thousand fields, too many for machine code", self.types.display(ty));
            let hint = "make an array of fields of one type, or put some behind a pointer";
            return Err(Box::new(limitation::error(Span::NONE, message, hint)));
        }
        if self.memory_text.len() <= ty.idx() {
            self.memory_text.resize(ty.idx() + 1, None);
        }
        self.memory_text[ty.idx()] = Some(text.clone());
        Ok(text)
    }

    /// Whether a type is bool or a vector of bools: a bit in registers, a byte in memory.
    pub fn is_bool(&self, ty: Ty) -> bool {
        self.types.lane_prim(ty) == Some(Prim::Bool)
    }

    /// The LLVM type of a value in a register; an address for values kept in memory.
    pub fn register(&mut self, ty: Ty) -> Result<String, Box<Diagnostic>> {
        if self.is_bool(ty) {
            Ok(self.types.as_vector(ty).map_or("i1".into(), |(_, n)| format!("<{n} x i1>")))
        } else if self.in_memory(ty) {
            Ok("ptr".into())
        } else {
            self.memory(ty)
        }
    }

    pub fn ret_class(&mut self, rets: &[Ty]) -> Result<RetClass, Box<Diagnostic>> {
        let (mut ints, mut floats) = (0u64, 0u64);
        for &ty in rets {
            let (i, f) = self.leaves(ty);
            ints = ints.saturating_add(i);
            floats = floats.saturating_add(f);
        }
        if ints > MAX_RET_INTS || floats > MAX_RET_FLOATS {
            return Ok(RetClass::Memory);
        }
        Ok(RetClass::Direct(match rets {
            [] => "void".into(),
            [ty] if self.types.n_parts(*ty) == Some(0) => "void".into(),
            [ty] => self.register(*ty)?,
            many => {
                let texts = many.iter().map(|&t| self.memory(t)).collect::<Result<Vec<_>, _>>()?;
                format!("{{ {} }}", texts.join(", "))
            }
        }))
    }

    /// Type and attributes of a parameter or result in C's convention.
    pub fn c_type(&mut self, ty: Ty, what: &str) -> Result<String, Box<Diagnostic>> {
        let attribute = |extension| match extension {
            Extension::None => "",
            Extension::Sign => " signext",
            Extension::Zero => " zeroext",
        };
        let extension = match self.types.kind(ty) {
            TyKind::Prim(Prim::Bool | Prim::U8 | Prim::U16) => " zeroext",
            TyKind::Prim(Prim::I8 | Prim::I16) => " signext",
            TyKind::Prim(Prim::I32) => attribute(self.c_abi.i32),
            TyKind::Prim(Prim::U32) => attribute(self.c_abi.u32),
            TyKind::Prim(_) | TyKind::Ptr { .. } | TyKind::Code => "",
            _ => {
                let ty = self.types.display(ty);
                return Err(Box::new(not_in_c::error(Span::NONE, &format!("a value of type `{ty}` of {what}"))));
            }
        };
        Ok(format!("{}{extension}", self.register(ty)?))
    }
}
