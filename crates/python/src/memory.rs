//! Types in memory as the plan of a call has them: where parts are, and the conversion of values between Python and bytes. Separate
//! from arrays, which are not converted.

use crate::formats::MAX_NUMBERS;
use nyala_embed::{ExportedType, Prim, Signatures, layout};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

/// A type of known size without addresses.
#[derive(Clone, Debug, PartialEq)]
pub struct Memory {
    pub size: usize,
    pub align: usize,
    pub form: Form,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Form {
    Number(Prim),
    Array(Box<Memory>, usize),
    /// Its name as the program writes it, its index, and name, offset and type of its fields.
    Struct(String, usize, Vec<(String, usize, Memory)>),
}

/// A value of Python that does not fit a type of Impala: which part of it does not, as in `.x` or `[2]`, and why.
pub struct Misfit {
    pub part: String,
    pub fault: Fault,
}

/// A fault of a value: it goes on `is …`.
pub enum Fault {
    Type(String),
    Value(String),
    Range(String),
    Raised(PyErr),
}

impl From<Fault> for Misfit {
    fn from(fault: Fault) -> Misfit {
        Misfit { part: String::new(), fault }
    }
}

impl From<PyErr> for Misfit {
    fn from(raised: PyErr) -> Misfit {
        Fault::Raised(raised).into()
    }
}

impl Misfit {
    /// The exception: `f: ` and the argument's name go before.
    pub fn raise(self, function: &str, argument: &str) -> PyErr {
        let told = |text| format!("{function}: `{argument}{}` is {text}", self.part);
        match self.fault {
            Fault::Type(text) => PyTypeError::new_err(told(text)),
            Fault::Value(text) => PyValueError::new_err(told(text)),
            Fault::Range(text) => PyOverflowError::new_err(told(text)),
            Fault::Raised(e) => e,
        }
    }

    /// The misfit of a value that is itself the part `part` of another value.
    fn within(self, part: &str) -> Misfit {
        Misfit { part: format!("{part}{}", self.part), ..self }
    }
}

/// The name that NumPy has for a type.
pub fn dtype_name(prim: Prim) -> &'static str {
    match prim {
        Prim::Bool => "bool",
        Prim::I8 => "int8",
        Prim::I16 => "int16",
        Prim::I32 => "int32",
        Prim::I64 => "int64",
        Prim::U8 => "uint8",
        Prim::U16 => "uint16",
        Prim::U32 => "uint32",
        Prim::U64 => "uint64",
        Prim::F16 => "float16",
        Prim::F32 => "float32",
        Prim::F64 => "float64",
    }
}

/// What a value of Python is, for messages.
pub fn kind_of(value: &Bound<'_, PyAny>) -> String {
    value.get_type().name().map_or("an object".into(), |name| name.to_string())
}

/// The limits of an integer type.
fn limits(prim: Prim) -> (i128, i128) {
    let bits = prim.bits();
    if prim.is_signed() { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) }
}

unsafe extern "C" {
    /// Part of the stable ABI since 3.8; the binding has the name that it has in PyPy.
    fn PyIndex_Check(object: *mut ffi::PyObject) -> std::ffi::c_int;
}

/// The integer that a value is; `None` for other values, `bool` among them.
fn integer(value: &Bound<'_, PyAny>) -> PyResult<Option<Option<i128>>> {
    let py = value.py();
    if value.is_instance_of::<PyBool>() {
        return Ok(None);
    }
    let index;
    let value = if value.is_instance_of::<PyInt>() {
        value
    } else {
        // SAFETY: an object.
        if unsafe { PyIndex_Check(value.as_ptr()) } == 0 {
            return Ok(None);
        }
        // SAFETY: an object; a new reference, or an exception.
        let made = unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyNumber_Index(value.as_ptr())) };
        match made {
            // Arrays have the method, but only those of one integer can be one.
            Err(e) if e.is_instance_of::<PyTypeError>(py) => return Ok(None),
            made => index = made?,
        }
        &index
    };
    let mut overflow = 0;
    // SAFETY: an integer.
    let small = unsafe { ffi::PyLong_AsLongLongAndOverflow(value.as_ptr(), &mut overflow) };
    if overflow == 0 {
        return Ok(Some(Some(i128::from(small))));
    }
    if overflow > 0 {
        // SAFETY: an integer.
        let large = unsafe { ffi::PyLong_AsUnsignedLongLong(value.as_ptr()) };
        if large != u64::MAX || !PyErr::occurred(py) {
            return Ok(Some(Some(i128::from(large))));
        }
        drop(PyErr::take(py));
    }
    Ok(Some(None))
}

fn not_a(value: &Bound<'_, PyAny>, prim: Prim) -> Misfit {
    let name = kind_of(value);
    let text = match prim {
        Prim::Bool => format!("{name}, expected bool"),
        _ if prim.is_float() => format!("{name}, expected a number ({})", dtype_name(prim)),
        _ => format!("{name}, expected an integer ({})", dtype_name(prim)),
    };
    Fault::Type(text).into()
}

/// The bits of a number, in the lowest bytes.
pub fn number(value: &Bound<'_, PyAny>, prim: Prim) -> Result<u64, Misfit> {
    match prim {
        Prim::Bool => boolean(value),
        _ if prim.is_float() => float(value, prim),
        _ => {
            let Some(found) = integer(value)? else { return Err(not_a(value, prim)) };
            let (low, high) = limits(prim);
            match found {
                // Two's complement.
                Some(i) if low <= i && i <= high => Ok(i as u64),
                _ => {
                    let shown = value.repr().map_or("it".into(), |text| text.to_string());
                    let text = format!("{shown}, out of the range of {} ({low} to {high})", dtype_name(prim));
                    Err(Fault::Range(text).into())
                }
            }
        }
    }
}

fn boolean(value: &Bound<'_, PyAny>) -> Result<u64, Misfit> {
    if let Ok(b) = value.cast::<PyBool>() {
        return Ok(u64::from(b.is_true()));
    }
    let ty = value.get_type();
    let is_numpys = ty.module().is_ok_and(|m| m == "numpy") && ty.name().is_ok_and(|n| n == "bool" || n == "bool_");
    if is_numpys { Ok(u64::from(value.is_truthy()?)) } else { Err(not_a(value, Prim::Bool)) }
}

fn float(value: &Bound<'_, PyAny>, prim: Prim) -> Result<u64, Misfit> {
    let py = value.py();
    let x = if let Ok(x) = value.cast::<PyFloat>() {
        x.value()
    } else if let Some(found) = integer(value)? {
        // Integers that are floats, too.
        let digits = match prim {
            Prim::F16 => 11,
            Prim::F32 => 24,
            _ => 53,
        };
        match found {
            Some(i) if i == 0 || 128 - i.unsigned_abs().leading_zeros() - i.trailing_zeros() <= digits => i as f64,
            _ => {
                let shown = value.repr().map_or("it".into(), |text| text.to_string());
                let text = format!("{shown}, which {} cannot represent: pass a float", dtype_name(prim));
                return Err(Fault::Range(text).into());
            }
        }
    } else if value.is_instance_of::<PyBool>() {
        return Err(not_a(value, prim));
    } else {
        // SAFETY: an object; -1 and an exception if it is no float.
        let x = unsafe { ffi::PyFloat_AsDouble(value.as_ptr()) };
        if x == -1.0
            && let Some(e) = PyErr::take(py)
        {
            return Err(if e.is_instance_of::<PyTypeError>(py) { not_a(value, prim) } else { e.into() });
        }
        x
    };
    let too_large = || {
        let text = format!("{x:?}, out of the range of {}", dtype_name(prim));
        Err(Fault::Range(text).into())
    };
    match prim {
        Prim::F16 => {
            let y = half::f16::from_f64(x);
            if x.is_finite() && !y.is_finite() { too_large() } else { Ok(u64::from(y.to_bits())) }
        }
        Prim::F32 => {
            let y = x as f32;
            if x.is_finite() && !y.is_finite() { too_large() } else { Ok(u64::from(y.to_bits())) }
        }
        _ => Ok(x.to_bits()),
    }
}

impl Memory {
    /// The type in memory; `None` if it has an address in it, or Python does not have it. It is as deep as the type.
    pub fn of(ty: &ExportedType, all: &Signatures) -> Option<Memory> {
        let (size, align) = layout(ty, all)?;
        let form = match ty {
            ExportedType::Prim(prim) => Form::Number(*prim),
            ExportedType::Array(of, n) => Form::Array(Box::new(Memory::of(of, all)?), usize::try_from(*n).ok()?),
            ExportedType::Struct(index) => {
                let known = &all.structs[*index];
                let (mut fields, mut offset) = (Vec::new(), 0usize);
                for (name, ty) in &known.fields {
                    let field = Memory::of(ty, all)?;
                    offset = offset.next_multiple_of(field.align);
                    let size = field.size;
                    fields.push((name.clone(), offset, field));
                    offset += size;
                }
                Form::Struct(known.name.clone(), *index, fields)
            }
            _ => return None,
        };
        Some(Memory { size, align, form })
    }

    /// How many arrays there are within each other.
    pub fn depth(&self) -> usize {
        match &self.form {
            Form::Array(of, _) => 1 + of.depth(),
            _ => 0,
        }
    }

    /// Appends the numbers that it consists of: where they are, the names of their fields, as in `a.b` and `a[2]`. It is as deep as
    /// the type.
    pub fn numbers(&self, offset: usize, to: &mut Vec<(usize, String, Prim)>) {
        match &self.form {
            Form::Number(prim) => to.push((offset, String::new(), *prim)),
            Form::Array(..) => {
                // Formats count the elements of nested arrays in a row.
                let (mut of, mut n) = (self, 1);
                while let Form::Array(part, m) = &of.form {
                    (of, n) = (part, n * m);
                }
                for i in 0..n {
                    // No format that is read has as many.
                    if to.len() > MAX_NUMBERS {
                        return;
                    }
                    let first = to.len();
                    of.numbers(offset + i * of.size, to);
                    to[first..].iter_mut().for_each(|(_, name, _)| {
                        let dot = if name.is_empty() { "" } else { "." };
                        *name = format!("[{i}]{dot}{name}");
                    });
                }
            }
            Form::Struct(_, _, fields) => {
                for (field, at, of) in fields {
                    let first = to.len();
                    of.numbers(offset + at, to);
                    to[first..].iter_mut().for_each(|(_, name, _)| {
                        let dot = if name.is_empty() || name.starts_with('[') { "" } else { "." };
                        *name = format!("{field}{dot}{name}");
                    });
                }
            }
        }
    }

    /// The type's name in messages.
    pub fn text(&self) -> String {
        match &self.form {
            Form::Number(prim) => dtype_name(*prim).into(),
            Form::Array(of, n) => format!("({n}) {}", of.text()),
            Form::Struct(name, ..) => name.clone(),
        }
    }

    /// The type for what is written in Python: the name of a number's, `(of, n)`, or `[size, (name, offset, of), …]`. It is as deep as the
    /// type.
    pub fn described<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(match &self.form {
            Form::Number(prim) => PyString::new(py, dtype_name(*prim)).into_any(),
            Form::Array(of, n) => (of.described(py)?, *n).into_pyobject(py)?.into_any(),
            Form::Struct(_, _, fields) => {
                let parts = PyList::new(py, [self.size])?;
                for (name, offset, of) in fields {
                    parts.append((name, *offset, of.described(py)?))?;
                }
                parts.into_any()
            }
        })
    }

    /// Writes a value. It is as deep as the type.
    pub fn write(&self, value: &Bound<'_, PyAny>, to: &mut [u8]) -> Result<(), Misfit> {
        match &self.form {
            Form::Number(prim) => {
                let bits = number(value, *prim)?.to_le_bytes();
                to[..self.size].copy_from_slice(&bits[..self.size]);
                Ok(())
            }
            Form::Array(of, n) => {
                let parts = self.parts(value, *n)?;
                for (i, part) in parts.iter().enumerate() {
                    let at = &mut to[i * of.size..][..of.size];
                    of.write(part, at).map_err(|m| m.within(&format!("[{i}]")))?;
                }
                Ok(())
            }
            Form::Struct(_, _, fields) => {
                let parts = match value.cast::<PyDict>() {
                    Ok(dict) => self.fields_of(dict, fields)?,
                    Err(_) => self.parts(value, fields.len())?,
                };
                for ((name, offset, field), part) in fields.iter().zip(&parts) {
                    let at = &mut to[*offset..][..field.size];
                    field.write(part, at).map_err(|m| m.within(&format!(".{name}")))?;
                }
                Ok(())
            }
        }
    }

    /// Writes a value to words, which are as many as it needs.
    pub fn write_words(&self, value: &Bound<'_, PyAny>, to: &mut [u64]) -> Result<(), Misfit> {
        let n = std::mem::size_of_val(to);
        // SAFETY: words are bytes.
        self.write(value, unsafe { std::slice::from_raw_parts_mut(to.as_mut_ptr().cast(), n) })
    }

    /// The elements of a sequence, so many.
    fn parts<'py>(&self, value: &Bound<'py, PyAny>, n: usize) -> Result<Vec<Bound<'py, PyAny>>, Misfit> {
        let is_sequence = !value.is_instance_of::<PyString>() && value.len().is_ok();
        if !is_sequence || value.is_instance_of::<PyDict>() {
            let what = match self.form {
                Form::Struct(..) => format!("`{}`: a tuple of {n}, or a dict", self.text()),
                _ => format!("{n} values"),
            };
            return Err(Fault::Type(format!("{}, expected {what}", kind_of(value))).into());
        }
        let parts: Vec<Bound<'py, PyAny>> = value.try_iter()?.collect::<PyResult<_>>()?;
        if parts.len() != n {
            let text = format!("{} of {} values, expected {n}", kind_of(value), parts.len());
            return Err(Fault::Value(text).into());
        }
        Ok(parts)
    }

    fn fields_of<'py>(
        &self,
        dict: &Bound<'py, PyDict>,
        fields: &[(String, usize, Memory)],
    ) -> Result<Vec<Bound<'py, PyAny>>, Misfit> {
        let mut parts = Vec::new();
        for (name, ..) in fields {
            match dict.get_item(name)? {
                Some(part) => parts.push(part),
                None => {
                    let text = format!("a dict without `{name}`, expected `{}`", self.text());
                    return Err(Fault::Value(text).into());
                }
            }
        }
        if dict.len() != fields.len() {
            let known = |key: &Bound<'_, PyAny>| fields.iter().any(|(name, ..)| key.eq(name).unwrap_or(false));
            let other = dict.keys().iter().find(|key| !known(key)).map_or(String::new(), |key| key.to_string());
            let text = format!("a dict with `{other}`, which `{}` has not", self.text());
            return Err(Fault::Value(text).into());
        }
        Ok(parts)
    }

    /// The value that bytes are. `named` gives the class of a struct by its index. It is as deep as the type.
    pub fn read<'py>(
        &self,
        py: Python<'py>,
        from: &[u8],
        named: &dyn Fn(&Memory) -> PyResult<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match &self.form {
            Form::Number(prim) => {
                let mut bytes = [0; 8];
                bytes[..self.size].copy_from_slice(&from[..self.size]);
                read_number(py, *prim, u64::from_le_bytes(bytes))
            }
            Form::Array(of, n) => {
                let parts = (0..*n).map(|i| of.read(py, &from[i * of.size..][..of.size], named));
                Ok(PyTuple::new(py, parts.collect::<PyResult<Vec<_>>>()?)?.into_any())
            }
            Form::Struct(_, _, fields) => {
                let parts =
                    fields.iter().map(|(_, offset, field)| field.read(py, &from[*offset..][..field.size], named));
                named(self)?.call1(PyTuple::new(py, parts.collect::<PyResult<Vec<_>>>()?)?)
            }
        }
    }
}

/// The number of these bits.
pub fn read_number<'py>(py: Python<'py>, prim: Prim, bits: u64) -> PyResult<Bound<'py, PyAny>> {
    let shift = 64 - prim.bits().min(64);
    // Extended from its own width.
    let (signed, unsigned) = (((bits << shift) as i64) >> shift, (bits << shift) >> shift);
    Ok(match prim {
        Prim::Bool => PyBool::new(py, bits & 1 != 0).to_owned().into_any(),
        Prim::F16 => PyFloat::new(py, half::f16::from_bits(bits as u16).to_f64()).into_any(),
        Prim::F32 => PyFloat::new(py, f64::from(f32::from_bits(bits as u32))).into_any(),
        Prim::F64 => PyFloat::new(py, f64::from_bits(bits)).into_any(),
        _ if prim.is_signed() => signed.into_pyobject(py)?.into_any(),
        _ => unsigned.into_pyobject(py)?.into_any(),
    })
}
