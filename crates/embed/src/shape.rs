//! Types that both sides know, as Rust sees them, and the comparison with Impala's. Separate from what is passed in calls: a shape
//! is about memory.

use nyala_sema::{ExportedType, Signatures};
use std::any::TypeId;
use std::collections::HashSet;

/// What a type looks like in memory.
#[derive(Clone, Debug)]
pub struct Shape(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Scalar(&'static str),
    Pointer {
        mutable: bool,
        /// Whether it leads to any number of elements; `None` if it may.
        many: Option<bool>,
        /// The type that it leads to, and its shape, made when it is needed: structs may lead to themselves.
        id: TypeId,
        to: fn() -> Shape,
    },
    Array(Box<Shape>, u64),
    Struct(&'static str, Vec<(&'static str, Shape)>),
    /// A function that C has; without a result for `()`.
    Function(Vec<Shape>, Option<Box<Shape>>),
}

/// Types that have the same layout in Rust and Impala.
///
/// # Safety
/// [`Type::shape`] describes the layout. `#[derive(Type)]` implements the trait for structs.
pub unsafe trait Type: Copy + 'static {
    /// The type's shape.
    fn shape() -> Shape;
    /// Appends what values consist of, without padding, field after field. `false` if there is an address in them: what it leads to
    /// may change.
    #[doc(hidden)]
    fn append(values: &[Self], to: &mut Bytes) -> bool;
}

/// What values consist of, one after the other.
#[doc(hidden)]
pub type Bytes = Vec<u8>;

/// Types that are passed by value.
///
/// # Safety
/// Rust passes them by C's convention. `#[derive(Type)]` implements the trait for structs.
pub unsafe trait Value: Type {}

macro_rules! scalars {
    ($($t:ident)*) => { $(
        // SAFETY: the types of this name are the same in Rust, in C and in Impala.
        unsafe impl Type for $t {
            fn shape() -> Shape {
                Shape(Kind::Scalar(stringify!($t)))
            }
            fn append(values: &[$t], to: &mut Bytes) -> bool {
                // SAFETY: numbers have no padding.
                to.extend_from_slice(unsafe {
                    std::slice::from_raw_parts(values.as_ptr().cast(), std::mem::size_of_val(values))
                });
                true
            }
        }
        // SAFETY: as above.
        unsafe impl Value for $t {}
    )* };
}

scalars!(bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64);

// SAFETY: arrays are elements one after the other.
unsafe impl<T: Type, const N: usize> Type for [T; N] {
    fn shape() -> Shape {
        Shape(Kind::Array(Box::new(T::shape()), N as u64))
    }
    fn append(values: &[[T; N]], to: &mut Bytes) -> bool {
        T::append(values.as_flattened(), to)
    }
}

// SAFETY: a pointer to a sized type is an address.
unsafe impl<T: Type> Type for *const T {
    fn shape() -> Shape {
        Shape::pointer::<T>(false, None)
    }
    fn append(_: &[*const T], _: &mut Bytes) -> bool {
        false
    }
}
// SAFETY: as above.
unsafe impl<T: Type> Value for *const T {}

// SAFETY: as above.
unsafe impl<T: Type> Type for *mut T {
    fn shape() -> Shape {
        Shape::pointer::<T>(true, None)
    }
    fn append(_: &[*mut T], _: &mut Bytes) -> bool {
        false
    }
}
// SAFETY: as above.
unsafe impl<T: Type> Value for *mut T {}

impl Shape {
    /// The shape of a struct with C's layout, by its name and its fields. For `#[derive(Type)]`.
    #[doc(hidden)]
    pub fn of_struct(name: &'static str, fields: Vec<(&'static str, Shape)>) -> Shape {
        Shape(Kind::Struct(name, fields))
    }

    pub(crate) fn pointer<T: Type>(mutable: bool, many: Option<bool>) -> Shape {
        Shape(Kind::Pointer { mutable, many, id: TypeId::of::<T>(), to: T::shape })
    }

    /// The shape of a slice of `std::slice`.
    pub(crate) fn slice<T: Type>(name: &'static str, mutable: bool) -> Shape {
        Shape::of_struct(name, vec![("data", Shape::pointer::<T>(mutable, Some(true))), ("length", i64::shape())])
    }

    /// The shape of a function that the program calls.
    pub(crate) fn function(params: Vec<Shape>, result: Option<Shape>) -> Shape {
        Shape(Kind::Function(params, result.map(Box::new)))
    }

    /// Whether values of the type have an address that Rust code may have made of anything.
    pub(crate) fn has_raw_pointer(&self) -> bool {
        match &self.0 {
            Kind::Scalar(_) | Kind::Function(..) => false,
            Kind::Pointer { many, .. } => many.is_none(),
            Kind::Array(of, _) => of.has_raw_pointer(),
            Kind::Struct(_, fields) => fields.iter().any(|(_, shape)| shape.has_raw_pointer()),
        }
    }

    /// The type as Impala writes it.
    pub(crate) fn text(&self) -> String {
        match &self.0 {
            Kind::Scalar(name) => name.to_string(),
            Kind::Pointer { mutable, many, to, .. } => {
                let (access, to) = (if *mutable { "&mut " } else { "&" }, to().text());
                if *many == Some(true) { format!("{access}[{to}]") } else { format!("{access}{to}") }
            }
            Kind::Array(of, n) => format!("[{} * {n}]", of.text()),
            Kind::Struct(name, _) => name.to_string(),
            Kind::Function(params, result) => {
                let params: Vec<String> = params.iter().map(Shape::text).collect();
                let result = result.as_ref().map_or_else(|| "()".into(), |result| result.text());
                format!("fn({}) -> {result}", params.join(", "))
            }
        }
    }
}

/// An exported type as the program writes it.
pub fn text_of(ty: &ExportedType, all: &Signatures) -> String {
    match ty {
        ExportedType::Unit => "()".into(),
        ExportedType::Prim(prim) => prim.name().into(),
        ExportedType::Pointer { mutable, many, to } => {
            let (access, to) = (if *mutable { "&mut " } else { "&" }, text_of(to, all));
            if *many { format!("{access}[{to}]") } else { format!("{access}{to}") }
        }
        ExportedType::Array(of, n) => format!("[{} * {n}]", text_of(of, all)),
        ExportedType::Struct(index) => all.structs[*index].name.clone(),
        ExportedType::Function(params, result) => {
            let params: Vec<String> = params.iter().map(|ty| text_of(ty, all)).collect();
            format!("fn({}) -> {}", params.join(", "), text_of(result, all))
        }
        ExportedType::Other => "a type that only Impala has".into(),
    }
}

/// How a type of the program differs from one of Rust's, in words; `None` if they are the same. `what` names the value.
pub(crate) fn difference(rust: Shape, program: &ExportedType, all: &Signatures, what: &str) -> Option<String> {
    let mut waiting = vec![(rust, program, what.to_string())];
    // Structs may lead to themselves.
    let mut compared = HashSet::new();
    while let Some((rust, program, what)) = waiting.pop() {
        let differs = || Some(format!("{what} is `{}` here, `{}` in the program", rust.text(), text_of(program, all)));
        match (&rust.0, program) {
            (Kind::Scalar(name), ExportedType::Prim(prim)) if *name == prim.name() => {}
            (
                Kind::Pointer { mutable, many, id, to },
                ExportedType::Pointer { mutable: is_mutable, many: is_many, to: program },
            ) => {
                if mutable != is_mutable || many.is_some_and(|many| many != *is_many) {
                    return differs();
                }
                let program: &ExportedType = program;
                if compared.insert((*id, std::ptr::from_ref(program))) {
                    waiting.push((to(), program, format!("what {what} leads to")));
                }
            }
            (Kind::Array(of, n), ExportedType::Array(program, m)) if n == m => {
                waiting.push(((**of).clone(), program, format!("an element of {what}")));
            }
            (Kind::Struct(name, fields), ExportedType::Struct(index)) => {
                let known = &all.structs[*index];
                if fields.len() != known.fields.len() {
                    let (n, m) = (fields.len(), known.fields.len());
                    return Some(format!("{what}: `{name}` has {n} fields here, `{}` {m} in the program", known.name));
                }
                for ((field, shape), (known_field, ty)) in fields.iter().zip(&known.fields).rev() {
                    if field != known_field {
                        return Some(format!(
                            "{what}: a field of `{name}` is `{field}` here, `{known_field}` in the program"
                        ));
                    }
                    waiting.push((shape.clone(), ty, format!("field `{field}` of {what}")));
                }
            }
            (Kind::Function(params, result), ExportedType::Function(known, known_result))
                if params.len() == known.len() && result.is_none() == matches!(**known_result, ExportedType::Unit) =>
            {
                if let Some(result) = result {
                    waiting.push(((**result).clone(), known_result, format!("the result of {what}")));
                }
                for (i, (param, known)) in params.iter().zip(known).enumerate().rev() {
                    waiting.push((param.clone(), known, format!("parameter {} of {what}", i + 1)));
                }
            }
            _ => return differs(),
        }
    }
    None
}
