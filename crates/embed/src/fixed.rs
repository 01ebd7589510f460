//! Values that parameters are fixed to: how Rust gives them, and how the compiler takes them. In between they are bytes, which are the
//! keys of variants: equal bytes are equal values, floats by their bits.

use crate::program::Program;
use crate::shape::{Bytes, Shape, Type, difference, text_of};
use crate::{Args, Function, Partial, Return};
use nyala_driver::{Fixed, Variant};
use nyala_ir::Prim;
use nyala_sema::{ExportedType, Signature, Signatures};
use std::any::TypeId;

/// How many functions may be fixed within each other.
pub(crate) const MAX_DEPTH: usize = 64;
/// A bit of the number of a function in a key: its code is confined.
const CONFINED: usize = 1 << 31;
/// Limit on the bytes of a value. The compiler takes many times as much for each number that it knows.
pub(crate) const MAX_BYTES: usize = 8 << 20;

/// The type of the elements if a type is a slice of `std::slice` that is not written: nothing else with an address in it can be fixed by
/// value.
pub(crate) fn slice_elements<'a>(ty: &ExportedType, all: &'a Signatures) -> Option<&'a ExportedType> {
    any_slice(ty, all).filter(|(_, mutable)| !mutable).map(|(of, _)| of)
}

/// The type of the elements if a type is a slice of `std::slice`, and whether they are written.
pub(crate) fn any_slice<'a>(ty: &ExportedType, all: &'a Signatures) -> Option<(&'a ExportedType, bool)> {
    let ExportedType::Struct(index) = ty else { return None };
    match &all.structs[*index].fields[..] {
        [(data, ExportedType::Pointer { mutable, many: true, to }), (length, ExportedType::Prim(Prim::I64))]
            if data == "data" && length == "length" =>
        {
            Some((to, *mutable))
        }
        _ => None,
    }
}

/// Values that a parameter can be [fixed](Partial::fix) to.
///
/// | Rust | parameter in Impala |
/// |---|---|
/// | numbers, `bool`, structs with [`#[derive(Type)]`](derive@crate::Type) | the same, by value or as `&T` |
/// | `&[T]`, `&[T; N]` | `&[T]`, `Slice[T]` of `std::slice` |
/// | `&Partial`, `&Function` of the same program | a function |
///
/// The elements that a reference leads to are copied when the parameter is fixed. A struct with a pointer in it
/// cannot be fixed, nor can `&mut T`, nor more than 8 MiB.
pub trait Fix {
    /// What kind of value it is.
    #[doc(hidden)]
    fn kind(&self) -> FixedKind;
    /// Appends what it consists of; `false` if there is an address in it.
    #[doc(hidden)]
    fn append(&self, to: &mut Bytes) -> bool;
}

/// What kind of value a parameter is to be fixed to.
#[doc(hidden)]
pub struct FixedKind(Kind);

enum Kind {
    /// A value, of this type and the type of its address.
    Value(TypeId, fn() -> Shape, fn() -> Shape),
    /// Elements: the type of their address, and of a slice of them.
    Elements(TypeId, fn() -> Shape, fn() -> Shape),
    Function(Box<Partial>),
}

impl FixedKind {
    #[doc(hidden)]
    pub fn value<T: Type>() -> FixedKind {
        FixedKind(Kind::Value(TypeId::of::<T>(), T::shape, || Shape::pointer::<T>(false, Some(false))))
    }
}

macro_rules! scalars {
    ($($t:ident)*) => { $(
        impl Fix for $t {
            fn kind(&self) -> FixedKind {
                FixedKind::value::<$t>()
            }
            fn append(&self, to: &mut Bytes) -> bool {
                <$t as Type>::append(&[*self], to)
            }
        }
    )* };
}

scalars!(bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64);

impl<T: Type> Fix for &[T] {
    fn kind(&self) -> FixedKind {
        let pointer = || Shape::pointer::<T>(false, Some(true));
        FixedKind(Kind::Elements(TypeId::of::<[T]>(), pointer, || Shape::slice::<T>("Slice", false)))
    }
    fn append(&self, to: &mut Bytes) -> bool {
        T::append(self, to)
    }
}

impl<T: Type, const N: usize> Fix for &[T; N] {
    fn kind(&self) -> FixedKind {
        (&self[..]).kind()
    }
    fn append(&self, to: &mut Bytes) -> bool {
        T::append(&self[..], to)
    }
}

impl Fix for &Partial {
    fn kind(&self) -> FixedKind {
        FixedKind(Kind::Function(Box::new((*self).clone())))
    }
    fn append(&self, to: &mut Bytes) -> bool {
        to.extend_from_slice(self.key());
        true
    }
}

impl<A: Args, R: Return> Fix for &Function<A, R> {
    fn kind(&self) -> FixedKind {
        FixedKind(Kind::Function(Box::new(self.partial())))
    }
    fn append(&self, to: &mut Bytes) -> bool {
        (&self.partial()).append(to)
    }
}

impl FixedKind {
    /// Why a parameter cannot be fixed to it; `None` if it can.
    pub(crate) fn refusal(&self, program: &Program, ty: &ExportedType) -> Option<String> {
        let all = program.signatures();
        let differs = |shape: Shape| difference(shape, ty, all, "it");
        match &self.0 {
            Kind::Value(_, shape, pointer) => match ty {
                ExportedType::Pointer { mutable: false, many: false, .. } => differs(pointer()),
                _ => differs(shape()),
            },
            Kind::Elements(_, pointer, slice) => match ty {
                ExportedType::Struct(_) => differs(slice()),
                _ => differs(pointer()),
            },
            Kind::Function(function) if !function.program().is(program) => {
                Some("the function is of another program".into())
            }
            Kind::Function(function) => {
                let ExportedType::Function(params, result) = ty else {
                    return Some(format!("it is a function here, `{}` in the program", text_of(ty, all)));
                };
                let signature = function.signature();
                let left: Vec<&ExportedType> = function.parameters_left().map(|(_, ty)| ty).collect();
                if left.iter().copied().eq(params) && signature.result == **result {
                    return (function.depth() >= MAX_DEPTH)
                        .then(|| format!("more than {MAX_DEPTH} functions within each other"));
                }
                let left: Vec<String> = left.iter().map(|ty| text_of(ty, all)).collect();
                let here = format!("fn({}) -> {}", left.join(", "), text_of(&signature.result, all));
                Some(format!("it is `{here}` here, `{}` in the program", text_of(ty, all)))
            }
        }
    }

    /// The type of a value or of its elements, which alone decides whether the parameter can be fixed to it.
    pub(crate) fn id(&self) -> Option<TypeId> {
        match &self.0 {
            Kind::Value(id, ..) | Kind::Elements(id, ..) => Some(*id),
            Kind::Function(_) => None,
        }
    }

    /// How many functions it has within each other.
    pub(crate) fn depth(&self) -> usize {
        match &self.0 {
            Kind::Function(function) => function.depth(),
            _ => 0,
        }
    }
}

/// Reads what [`Fix::append`] has written.
struct Reader<'a> {
    bytes: &'a [u8],
}

/// The key was not written as it is read.
const BROKEN: &str = "the key of a variant cannot be read";

impl<'a> Reader<'a> {
    fn take(&mut self, n: usize) -> Result<&'a [u8], &'static str> {
        let (taken, rest) = self.bytes.split_at_checked(n).ok_or(BROKEN)?;
        self.bytes = rest;
        Ok(taken)
    }

    fn number(&mut self) -> Result<usize, &'static str> {
        let bytes: [u8; 4] = self.take(4)?.try_into().map_err(|_| BROKEN)?;
        Ok(u32::from_le_bytes(bytes) as usize)
    }

    /// A value. It is as deep as its type.
    fn value(&mut self, ty: &ExportedType, all: &Signatures) -> Result<Fixed, &'static str> {
        match ty {
            ExportedType::Prim(prim) => self.bits(*prim),
            ExportedType::Array(of, n) => {
                (0..*n).map(|_| self.value(of, all)).collect::<Result<_, _>>().map(Fixed::Parts)
            }
            ExportedType::Struct(index) => {
                let fields = &all.structs[*index].fields;
                fields.iter().map(|(_, ty)| self.value(ty, all)).collect::<Result<_, _>>().map(Fixed::Parts)
            }
            _ => Err(BROKEN),
        }
    }

    fn bits(&mut self, prim: Prim) -> Result<Fixed, &'static str> {
        let bytes = self.take(if prim == Prim::Bool { 1 } else { prim.bits() as usize / 8 })?;
        let bits = match *bytes {
            [byte] => u64::from(byte),
            [a, b] => u64::from(u16::from_ne_bytes([a, b])),
            [a, b, c, d] => u64::from(u32::from_ne_bytes([a, b, c, d])),
            _ => u64::from_ne_bytes(bytes.try_into().map_err(|_| BROKEN)?),
        };
        Ok(Fixed::Bits(bits))
    }

    /// Elements up to the end.
    fn elements(&mut self, ty: &ExportedType, all: &Signatures) -> Result<Vec<Fixed>, &'static str> {
        let mut elements = Vec::new();
        while !self.bytes.is_empty() {
            elements.push(self.value(ty, all)?);
        }
        Ok(elements)
    }
}

/// What a parameter of a type is fixed to, by functions that are at most `depth` within each other.
fn fixed(bytes: &[u8], ty: &ExportedType, all: &Signatures, depth: usize) -> Result<Fixed, &'static str> {
    let mut reader = Reader { bytes };
    match ty {
        ExportedType::Pointer { to, .. } => Ok(Fixed::Address(reader.elements(to, all)?)),
        ExportedType::Function(..) => Ok(Fixed::Function(Box::new(variant_within(bytes, all, depth)?))),
        _ if let Some(of) = slice_elements(ty, all) => {
            let elements = reader.elements(of, all)?;
            let length = Fixed::Bits(elements.len() as u64);
            Ok(Fixed::Parts(vec![Fixed::Address(elements), length]))
        }
        _ => reader.value(ty, all),
    }
}

/// The parameters of a key: their positions, and the bytes of what they are fixed to.
pub(crate) fn entries(key: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut reader = Reader { bytes: key.get(4..).unwrap_or_default() };
    std::iter::from_fn(move || {
        let param = reader.number().ok()?;
        let n = reader.number().ok()?;
        Some((param, reader.take(n).ok()?))
    })
}

/// The number of a key's function.
pub(crate) fn number_of(key: &[u8]) -> usize {
    Reader { bytes: key }.number().map_or(usize::MAX, |number| number & !CONFINED)
}

/// Whether the code of a key is confined.
pub(crate) fn is_confined(key: &[u8]) -> bool {
    Reader { bytes: key }.number().is_ok_and(|number| number & CONFINED != 0)
}

/// The function of a key.
pub(crate) fn function_of<'a>(key: &[u8], all: &'a Signatures) -> Option<&'a Signature> {
    all.functions.get(number_of(key))
}

/// What the compiler makes of a key.
pub(crate) fn variant(key: &[u8], all: &Signatures) -> Result<Variant, &'static str> {
    variant_within(key, all, MAX_DEPTH + 1)
}

/// How many functions a key has within each other, if it is one.
pub(crate) fn depth(key: &[u8], all: &Signatures) -> Result<usize, &'static str> {
    fn of(variant: &Variant) -> usize {
        let inner = variant.fixed.iter().flatten().map(|value| match value {
            Fixed::Function(function) => of(function),
            _ => 0,
        });
        1 + inner.max().unwrap_or(0)
    }
    let whole = 4 + entries(key).map(|(_, bytes)| 8 + bytes.len()).sum::<usize>();
    if whole == key.len() { Ok(of(&variant(key, all)?)) } else { Err(BROKEN) }
}

fn variant_within(key: &[u8], all: &Signatures, depth: usize) -> Result<Variant, &'static str> {
    let depth = depth.checked_sub(1).ok_or(BROKEN)?;
    let signature = function_of(key, all).ok_or(BROKEN)?;
    let mut values = vec![None; signature.params.len()];
    for (param, bytes) in entries(key) {
        let (_, ty) = signature.params.get(param).ok_or(BROKEN)?;
        values[param] = Some(fixed(bytes, ty, all, depth)?);
    }
    Ok(Variant { symbol: signature.symbol.clone(), fixed: values })
}

/// The key of a function without fixed parameters, whose code may have to be confined.
pub(crate) fn key_of(function: usize, is_confined: bool) -> Bytes {
    let number = function | if is_confined { CONFINED } else { 0 };
    (number as u32).to_le_bytes().to_vec()
}

/// Adds a parameter to a key, in the order of the parameters, so that the order of fixing does not matter; or says why it cannot be
/// fixed. `append` appends the bytes of the value, and returns `false` if there is an address in it.
pub(crate) fn add(key: &mut Bytes, param: usize, append: impl FnOnce(&mut Bytes) -> bool) -> Result<(), String> {
    let before: usize = entries(key).take_while(|(other, _)| *other < param).map(|(_, bytes)| bytes.len() + 8).sum();
    let end = key.len();
    key.extend_from_slice(&(param as u32).to_le_bytes());
    key.extend_from_slice(&[0; 4]);
    let has_no_address = append(key);
    let n = key.len() - end - 8;
    if !has_no_address || n > MAX_BYTES {
        key.truncate(end);
        return Err(match has_no_address {
            true => format!("it has {n} bytes, more than {MAX_BYTES}: pass it as an argument"),
            false => "there is an address in it, and what it leads to may change".into(),
        });
    }
    key[end + 4..end + 8].copy_from_slice(&(n as u32).to_le_bytes());
    if 4 + before < end {
        key[4 + before..].rotate_right(n + 8);
    }
    Ok(())
}
