//! Arrays: memory that Python objects export by the buffer protocol, compared with what a parameter takes. Nothing is copied or
//! converted. Separate from values, which are.

use crate::memory::{Fault, Form as Shape, Memory, dtype_name, kind_of};
use crate::plan::{Elements, Form};
use nyala_embed::Prim;
use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::CStr;

/// A buffer that is exported until this is dropped, with the interpreter's lock held. It stays where it is: exporters let it point into
/// itself.
pub struct Buffer(Box<ffi::Py_buffer>);

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: it was exported, and is released once.
        unsafe { ffi::PyBuffer_Release(&raw mut *self.0) }
    }
}

/// A number as a format has it.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Class {
    Bool,
    Signed,
    Unsigned,
    Float,
}

fn class_of(prim: Prim) -> Class {
    match prim {
        Prim::Bool => Class::Bool,
        _ if prim.is_float() => Class::Float,
        _ if prim.is_signed() => Class::Signed,
        _ => Class::Unsigned,
    }
}

/// The number that a format of one letter stands for: its class, its size unless it depends on the machine, whether bytes are in this
/// machine's order.
fn parsed(format: &[u8]) -> Option<(Class, Option<usize>, bool)> {
    let (order, letter) = match *format {
        [letter] => (b'@', letter),
        [order, letter] => (order, letter),
        _ => return None,
    };
    let (class, native, standard) = match letter {
        b'?' => (Class::Bool, 1, 1),
        b'b' => (Class::Signed, 1, 1),
        b'B' => (Class::Unsigned, 1, 1),
        b'h' => (Class::Signed, 2, 2),
        b'H' => (Class::Unsigned, 2, 2),
        b'i' => (Class::Signed, 4, 4),
        b'I' => (Class::Unsigned, 4, 4),
        b'l' => (Class::Signed, size_of::<std::ffi::c_long>(), 4),
        b'L' => (Class::Unsigned, size_of::<std::ffi::c_long>(), 4),
        b'q' => (Class::Signed, 8, 8),
        b'Q' => (Class::Unsigned, 8, 8),
        b'n' => (Class::Signed, size_of::<isize>(), size_of::<isize>()),
        b'N' => (Class::Unsigned, size_of::<usize>(), size_of::<usize>()),
        b'e' => (Class::Float, 2, 2),
        b'f' => (Class::Float, 4, 4),
        b'd' => (Class::Float, 8, 8),
        _ => return None,
    };
    let size = if order == b'@' { native } else { standard };
    let is_own = match order {
        b'@' | b'=' => true,
        b'<' => cfg!(target_endian = "little") || size == 1,
        b'>' | b'!' => cfg!(target_endian = "big") || size == 1,
        _ => return None,
    };
    Some((class, Some(size), is_own))
}

/// The name that NumPy has for what a format stands for, or the format itself.
fn name_of(format: &[u8]) -> String {
    let own = parsed(format).and_then(|(class, size, is_own)| {
        let bits = size? * 8;
        let name = match class {
            Class::Bool => "bool".into(),
            Class::Signed => format!("int{bits}"),
            Class::Unsigned => format!("uint{bits}"),
            Class::Float => format!("float{bits}"),
        };
        Some(if is_own { name } else { format!("{name} with bytes in the other order") })
    });
    own.unwrap_or_else(|| match format {
        [.., b'Z', b'f'] => "complex64".into(),
        [.., b'Z', b'd'] => "complex128".into(),
        [b'O'] => "object".into(),
        _ => format!("of the format `{}`", String::from_utf8_lossy(format)),
    })
}

/// The way in which an array that has no buffer says where its memory is.
fn protocol(value: &Bound<'_, PyAny>) -> Option<&'static str> {
    let has = |name| value.hasattr(name).unwrap_or(false);
    ["__dlpack__", "__array_interface__"].into_iter().find(|name| has(*name))
}

/// The device whose memory an array with DLPack is in, if the processor does not reach it.
fn elsewhere(value: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    if !value.hasattr("__dlpack_device__")? {
        return Ok(None);
    }
    let (kind, number): (i32, i32) = value.call_method0("__dlpack_device__")?.extract()?;
    match kind {
        // The host's own memory, and memory of the host that CUDA's and AMD's devices reach as well, or that moves between them.
        1 | 3 | 11 | 13 => Ok(None),
        _ => Ok(Some(value.py().import("nyala._device")?.call_method1("name", (kind, number))?.extract()?)),
    }
}

/// An array of NumPy's with the memory of one that has no buffer.
fn foreign<'py>(value: &Bound<'py, PyAny>) -> Option<PyResult<Bound<'py, PyAny>>> {
    // SAFETY: an object.
    if unsafe { ffi::PyObject_CheckBuffer(value.as_ptr()) } != 0 {
        return None;
    }
    let make = if protocol(value)? == "__dlpack__" { "from_dlpack" } else { "asarray" };
    if make == "from_dlpack"
        && let Some(elsewhere) = elsewhere(value).transpose()
    {
        return Some(elsewhere.and_then(|device| {
            let text = format!(
                "it is that of {device}, which slices and addresses of programs take that are compiled with device=\"cuda\""
            );
            Err(PyBufferError::new_err(text))
        }));
    }
    Some(value.py().import("numpy").and_then(|numpy| numpy.call_method1(make, (value,))))
}

/// What an array is, for the hint how to convert it.
fn hint(value: &Bound<'_, PyAny>, argument: &str, wanted: &str) -> String {
    match value.hasattr("astype").unwrap_or(false) {
        true => format!(": pass {argument}.astype(numpy.{wanted})"),
        false => String::new(),
    }
}

impl Buffer {
    /// Whether an object that exports memory is no single number. Where it does not say why, [`Buffer::of`] will.
    pub fn has_dimensions(value: &Bound<'_, PyAny>) -> bool {
        Buffer::export(value, ffi::PyBUF_STRIDES).map_or(true, |buffer| buffer.0.ndim > 0)
    }

    fn export(value: &Bound<'_, PyAny>, flags: std::ffi::c_int) -> PyResult<Buffer> {
        let other;
        let value = match foreign(value) {
            None => value,
            Some(array) => {
                other = array?;
                &other
            }
        };
        let mut view = Box::<ffi::Py_buffer>::new_uninit();
        // SAFETY: an object and a place for what it exports, which is written then.
        unsafe {
            match ffi::PyObject_GetBuffer(value.as_ptr(), view.as_mut_ptr(), flags) {
                0 => Ok(Buffer(view.assume_init())),
                _ => Err(PyErr::fetch(value.py())),
            }
        }
    }

    /// The lengths of the dimensions, and the distances of their elements in bytes.
    pub fn layout(&self) -> (Vec<usize>, Vec<isize>) {
        let shape: Vec<usize> = self.dimensions().iter().map(|n| usize::try_from(*n).unwrap_or(0)).collect();
        if self.strides().len() == shape.len() {
            return (shape, self.strides().to_vec());
        }
        // Without strides, all elements are side by side.
        let mut next = self.0.itemsize;
        let mut strides = vec![0; shape.len()];
        for (stride, n) in strides.iter_mut().zip(&shape).rev() {
            *stride = next;
            next = next.saturating_mul((*n).max(1) as isize);
        }
        (shape, strides)
    }

    /// Whether an object exports memory.
    pub fn is_exported(value: &Bound<'_, PyAny>) -> bool {
        // SAFETY: an object.
        unsafe { ffi::PyObject_CheckBuffer(value.as_ptr()) != 0 || protocol(value).is_some() }
    }

    /// What an object exports as elements. `argument` is the name of its parameter, for hints.
    pub fn of(value: &Bound<'_, PyAny>, to: &Elements, argument: &str) -> Result<Buffer, Fault> {
        let buffer = match Buffer::export(value, ffi::PyBUF_FORMAT | ffi::PyBUF_STRIDES) {
            Ok(buffer) => buffer,
            Err(raised) => return Err(Buffer::refusal(value, to, argument, raised)),
        };
        buffer.check(value, to, argument)?;
        Ok(buffer)
    }

    /// What an object exports of the memory of a device of CUDA. Nobody reads it here.
    pub fn of_device(value: &Bound<'_, PyAny>, to: &Elements, argument: &str, number: i32) -> Result<Buffer, Fault> {
        let py = value.py();
        let view = py.import("nyala._device").and_then(|device| device.call_method1("view", (value, number)));
        match view {
            Ok(view) => Buffer::of(&view, to, argument),
            Err(raised) if raised.is_instance_of::<PyTypeError>(py) => Err(Fault::Type(raised.value(py).to_string())),
            Err(raised) => Err(Fault::Raised(raised)),
        }
    }

    /// Why an object exports nothing.
    fn refusal(value: &Bound<'_, PyAny>, to: &Elements, argument: &str, raised: PyErr) -> Fault {
        let py = value.py();
        let wanted = to.of.text();
        if raised.is_instance_of::<PyTypeError>(py) {
            let make = match to.of.form {
                Shape::Number(_) => format!(": pass numpy.asarray({argument}, numpy.{wanted})"),
                _ => String::new(),
            };
            let make = if value.is_none() { String::new() } else { make };
            return Fault::Type(format!("{}, expected an array of {wanted}{make}", kind_of(value)));
        }
        match raised.is_instance_of::<PyBufferError>(py) || raised.is_instance_of::<PyValueError>(py) {
            true => Fault::Value(format!("{}, which exports no memory: {}", kind_of(value), raised.value(py))),
            false => Fault::Raised(raised),
        }
    }

    fn format(&self) -> &[u8] {
        match self.0.format.is_null() {
            true => b"B",
            // SAFETY: a format is a C string.
            false => unsafe { CStr::from_ptr(self.0.format) }.to_bytes(),
        }
    }

    fn dimensions(&self) -> &[ffi::Py_ssize_t] {
        match self.0.shape.is_null() {
            true => &[],
            // SAFETY: as many as there are dimensions.
            false => unsafe { std::slice::from_raw_parts(self.0.shape, usize::try_from(self.0.ndim).unwrap_or(0)) },
        }
    }

    fn strides(&self) -> &[ffi::Py_ssize_t] {
        match self.0.strides.is_null() {
            true => &[],
            // SAFETY: as many as there are dimensions.
            false => unsafe { std::slice::from_raw_parts(self.0.strides, usize::try_from(self.0.ndim).unwrap_or(0)) },
        }
    }

    fn shape(&self) -> String {
        let parts: Vec<String> = self.dimensions().iter().map(|n| n.to_string()).collect();
        format!("({}{})", parts.join(", "), if parts.len() == 1 { "," } else { "" })
    }

    fn check(&self, value: &Bound<'_, PyAny>, to: &Elements, argument: &str) -> Result<(), Fault> {
        // The numbers of an element that is an array are the last dimensions.
        let (mut of, mut inner) = (&to.of, 0);
        while let Shape::Array(part, n) = &of.form {
            (of, inner) = (part, inner + 1);
            let at =
                self.dimensions().len().checked_sub(to.of.depth()).map(|outer| self.dimensions()[outer + inner - 1]);
            if at.and_then(|at| usize::try_from(at).ok()) != Some(*n) {
                let text = format!("of the shape {}, expected elements of {}", self.shape(), to.of.text());
                return Err(Fault::Value(text));
            }
        }
        match &of.form {
            Shape::Number(prim) => self.check_number(value, *prim, argument)?,
            _ => self.check_struct(of)?,
        }
        if to.mutable && self.0.readonly != 0 {
            return Err(Fault::Value("read-only, expected an array that can be written".into()));
        }
        let address = self.0.buf.addr();
        if !address.is_multiple_of(to.of.align) && self.0.len != 0 {
            let text = format!(
                "at an address that is no multiple of {}: pass numpy.require({argument}, requirements=\"A\")",
                to.of.align
            );
            return Err(Fault::Value(text));
        }
        match to.form {
            Form::Any => Ok(()),
            Form::Area => self.check_area(to, argument),
            // SAFETY: a buffer and the letter of C's order.
            _ if unsafe { ffi::PyBuffer_IsContiguous(&raw const *self.0, b'C' as std::ffi::c_char) } == 0 => {
                let what =
                    if to.mutable { "an array whose elements are side by side" } else { "elements side by side" };
                let shape = if self.dimensions().len() > 1 { ", row by row" } else { "" };
                let hint = match to.mutable {
                    true => format!(": pass numpy.ascontiguousarray({argument}), and copy it back"),
                    false => format!(": pass numpy.ascontiguousarray({argument})"),
                };
                Err(Fault::Value(format!("strided, expected {what}{shape}{hint}")))
            }
            Form::One if self.count(to) != 1 => {
                Err(Fault::Value(format!("of the shape {}, expected one {}", self.shape(), to.of.text())))
            }
            _ => Ok(()),
        }
    }

    fn check_number(&self, value: &Bound<'_, PyAny>, prim: Prim, argument: &str) -> Result<(), Fault> {
        let found = parsed(self.format());
        let size = (prim.bits() as usize).div_ceil(8);
        let fits = found == Some((class_of(prim), Some(size), true));
        // Formats of old exporters may leave the size to the items.
        if fits && self.0.itemsize == size as ffi::Py_ssize_t {
            return Ok(());
        }
        let wanted = dtype_name(prim);
        Err(Fault::Type(format!("{}, expected {wanted}{}", name_of(self.format()), hint(value, argument, wanted))))
    }

    fn check_struct(&self, of: &Memory) -> Result<(), Fault> {
        let mut wanted = Vec::new();
        of.numbers(0, &mut wanted);
        let shown = || format!("of the format `{}`", String::from_utf8_lossy(self.format()));
        let item = usize::try_from(self.0.itemsize).unwrap_or(0);
        if item != of.size {
            let text = format!("{}, {item} bytes for each element, expected `{}` of {}", shown(), of.text(), of.size);
            return Err(Fault::Type(text));
        }
        let Some(found) = crate::formats::numbers(self.format(), item) else {
            return Err(Fault::Type(format!("{}, expected `{}`", shown(), of.text())));
        };
        let same = found.len() == wanted.len()
            && found.iter().zip(&wanted).all(|(f, w)| {
                f.offset == w.0
                    && parsed(&f.letters) == Some((class_of(w.2), Some((w.2.bits() as usize).div_ceil(8)), true))
                    && f.name == w.1
            });
        if same { Ok(()) } else { Err(Fault::Type(format!("{}, expected `{}`", shown(), of.text()))) }
    }

    /// The number of elements.
    pub fn count(&self, to: &Elements) -> usize {
        usize::try_from(self.0.len).unwrap_or(0) / to.of.size
    }

    fn check_area(&self, to: &Elements, argument: &str) -> Result<(), Fault> {
        let size = to.of.size as ffi::Py_ssize_t;
        let &[_, width] = self.dimensions() else {
            return Err(Fault::Value(format!("of the shape {}, expected an area, of two dimensions", self.shape())));
        };
        // Without strides, all elements are side by side.
        let &[rows, columns] = self.strides() else { return Ok(()) };
        let side_by_side = width <= 1 || columns == size;
        if side_by_side && rows % size == 0 {
            return Ok(());
        }
        let hint = if to.mutable { ", and copy it back" } else { "" };
        Err(Fault::Value(format!(
            "strided within rows, expected rows whose elements are side by side: pass numpy.ascontiguousarray({argument}){hint}"
        )))
    }

    /// What the function gets.
    pub fn words(&self, to: &Elements, words: &mut [u64]) {
        words[0] = self.0.buf.expose_provenance() as u64;
        match to.form {
            Form::Many | Form::One | Form::Any => {}
            Form::Slice => words[1] = self.count(to) as u64,
            Form::Area => {
                if let &[height, width] = self.dimensions() {
                    let size = to.of.size as ffi::Py_ssize_t;
                    let stride = self.strides().first().map_or(width, |rows| rows / size);
                    words[1..].copy_from_slice(&[width as u64, height as u64, stride as u64]);
                }
            }
        }
    }
}
