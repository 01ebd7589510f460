//! How a function's arguments are taken, and what becomes of its result: made once of the types that the program exports. Separate
//! from calls, which only follow it.

use crate::memory::Memory;
use nyala_embed::{ExportedType, Prim, Signatures, Untyped, text_of};
use pyo3::prelude::*;
use pyo3::types::PyString;
use smallvec::SmallVec;
use std::sync::{Arc, Mutex};

/// A parameter.
pub struct Param {
    pub name: String,
    /// The name as an object, which names of keywords are in most calls.
    pub key: Py<PyString>,
    /// Its type as the program writes it.
    pub text: String,
    pub kind: Kind,
}

/// What a parameter takes.
pub enum Kind {
    Number(Prim),
    /// A struct or an array by value.
    Value(Memory),
    Elements(Elements),
    /// A function; `None` if only functions of the program can be fixed to it.
    Function(Option<Arc<Callback>>),
    /// A type that Python does not have.
    Limited,
}

/// A function of Python that a program calls: what it gets, and what it returns.
pub struct Callback {
    pub params: Vec<Memory>,
    pub result: Option<Memory>,
}

/// Memory that an array exports.
pub struct Elements {
    pub of: Memory,
    pub mutable: bool,
    pub form: Form,
}

/// How a function gets elements.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Form {
    /// `&[T]`: the address.
    Many,
    /// `&T`: the address of one.
    One,
    /// `Slice[T]`: address and number.
    Slice,
    /// `Slice2[T]`: address, width, height, and the distance of rows.
    Area,
    /// Elements that a loop finds by their strides: the address of the first.
    Any,
}

impl Form {
    /// The words that the function gets.
    pub fn n_words(self) -> usize {
        match self {
            Form::Many | Form::One | Form::Any => 1,
            Form::Slice => 2,
            Form::Area => 4,
        }
    }
}

/// What a call returns.
pub enum Returned {
    Nothing,
    Value(Memory),
    /// A buffer of `std::buffer`, of these elements: their address and their number. They are the caller's.
    Buffer(Memory),
    /// A type that Python does not have.
    Limited,
}

pub struct Plan {
    /// The function's symbol.
    pub symbol: String,
    pub params: Vec<Arc<Param>>,
    pub returned: Arc<Returned>,
    /// The type of the result as the program writes it.
    pub result: String,
    /// The plans of variants, by the positions of the parameters that they lack.
    variants: Mutex<Vec<(Positions, Arc<Plan>)>>,
}

/// Positions of parameters.
pub type Positions = SmallVec<[usize; 8]>;

/// The elements of a slice of `std::slice`: whether they may be written, their type, and how they are given.
fn slice<'a>(ty: &ExportedType, all: &'a Signatures) -> Option<(bool, &'a ExportedType, Form)> {
    let ExportedType::Struct(index) = ty else { return None };
    let known = &all.structs[*index];
    let head = known.name.split('[').next().unwrap_or_default();
    let (mutable, form) = match head {
        "Slice" => (false, Form::Slice),
        "MutSlice" => (true, Form::Slice),
        "Slice2" => (false, Form::Area),
        "MutSlice2" => (true, Form::Area),
        _ => return None,
    };
    let names = ["data", "length"];
    let names = if form == Form::Slice { &names[..] } else { &["data", "width", "height", "stride"] };
    let has_names = known.fields.iter().map(|(name, _)| name.as_str()).eq(names.iter().copied());
    let mut fields = known.fields.iter().map(|(_, ty)| ty);
    match fields.next() {
        Some(ExportedType::Pointer { mutable: is_mutable, many: true, to })
            if has_names && *is_mutable == mutable && fields.all(|ty| *ty == ExportedType::Prim(Prim::I64)) =>
        {
            Some((mutable, to, form))
        }
        _ => None,
    }
}

/// The elements of a buffer of `std::buffer`.
fn buffer(ty: &ExportedType, all: &Signatures) -> Option<Memory> {
    let ExportedType::Struct(index) = ty else { return None };
    let known = &all.structs[*index];
    match &known.fields[..] {
        [(data, ExportedType::Pointer { mutable: true, many: true, to }), (size, ExportedType::Prim(Prim::I64))]
            if known.name.starts_with("Buffer[") && data == "data" && size == "size" =>
        {
            Memory::of(to, all).filter(|of| of.size > 0)
        }
        _ => None,
    }
}

fn kind(ty: &ExportedType, all: &Signatures) -> Kind {
    let elements = |of: &ExportedType, mutable, form| match Memory::of(of, all) {
        // Without a size there is nothing to compare with the array's elements.
        Some(of) if of.size > 0 => Kind::Elements(Elements { of, mutable, form }),
        _ => Kind::Limited,
    };
    if let Some((mutable, of, form)) = slice(ty, all) {
        return elements(of, mutable, form);
    }
    match ty {
        ExportedType::Prim(prim) => Kind::Number(*prim),
        ExportedType::Pointer { mutable, many, to } => {
            elements(to, *mutable, if *many { Form::Many } else { Form::One })
        }
        ExportedType::Function(params, result) => {
            let params: Option<Vec<Memory>> = params.iter().map(|ty| Memory::of(ty, all)).collect();
            let result = match &**result {
                ExportedType::Unit => Some(None),
                ty => Memory::of(ty, all).map(Some),
            };
            Kind::Function(params.zip(result).map(|(params, result)| Arc::new(Callback { params, result })))
        }
        _ => Memory::of(ty, all).map_or(Kind::Limited, Kind::Value),
    }
}

impl Plan {
    /// The plan of a function with the parameters that are not fixed.
    pub fn new(py: Python<'_>, function: &Untyped) -> Plan {
        let all = function.program().signatures();
        let param = |(name, ty): (&str, &ExportedType)| Param {
            name: name.into(),
            key: PyString::intern(py, name).unbind(),
            text: text_of(ty, all),
            kind: kind(ty, all),
        };
        let params = function.parameters().map(param).map(Arc::new).collect();
        let returned = match function.result() {
            ExportedType::Unit => Returned::Nothing,
            ty => match buffer(ty, all) {
                Some(of) => Returned::Buffer(of),
                None => Memory::of(ty, all).map_or(Returned::Limited, Returned::Value),
            },
        };
        let result = text_of(function.result(), all);
        let symbol = function.symbol().into();
        Plan { symbol, params, returned: Arc::new(returned), result, variants: Mutex::default() }
    }

    /// The plan without parameters, by their positions in ascending order: made once.
    pub fn without(&self, fixed: Positions) -> Arc<Plan> {
        let variants = &mut *self.variants.lock().unwrap_or_else(|e| e.into_inner());
        if let Some((_, plan)) = variants.iter().find(|(other, _)| *other == fixed) {
            return plan.clone();
        }
        let left = self.params.iter().enumerate().filter(|(i, _)| !fixed.contains(i));
        let plan = Arc::new(Plan {
            symbol: self.symbol.clone(),
            params: left.map(|(_, param)| param.clone()).collect(),
            returned: self.returned.clone(),
            result: self.result.clone(),
            variants: Mutex::default(),
        });
        variants.push((fixed, plan.clone()));
        plan
    }
}
