//! Memory that a function has allocated and returned, as a buffer of `std::buffer`: its owner in Python, which exports it, and frees it when
//! nothing of it is exported any more. Separate from arrays of others, which only lend theirs.

use crate::memory::{Form, Memory};
use nyala_embed::Prim;
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::{CString, c_int};

/// Elements in memory of a program's.
#[pyclass(module = "nyala", name = "Elements", frozen)]
pub struct Owned {
    address: usize,
    shape: Vec<isize>,
    /// In bytes.
    strides: Vec<isize>,
    item: usize,
    format: CString,
}

impl Owned {
    /// A view of the elements at an address, which are this object's from now on.
    pub fn view<'py>(py: Python<'py>, address: u64, n: u64, of: &Memory) -> PyResult<Bound<'py, PyAny>> {
        let (mut item, mut inner) = (of, Vec::new());
        while let Form::Array(of, n) = &item.form {
            inner.push(*n as isize);
            item = of;
        }
        let n = isize::try_from(n).ok().filter(|n| n.checked_mul(of.size as isize).is_some() && address != 0);
        let shape: Vec<isize> = n.into_iter().chain(if n.is_none() { Some(0) } else { None }).chain(inner).collect();
        let mut strides = vec![item.size as isize; shape.len()];
        for i in (1..shape.len()).rev() {
            strides[i - 1] = strides[i] * shape[i];
        }
        let mut format = String::new();
        write_format(item, &mut format);
        let format = CString::new(format).map_err(|e| PyBufferError::new_err(e.to_string()))?;
        let owned = Owned { address: address as usize, shape, strides, item: item.size, format };
        let owned = Bound::new(py, owned)?;
        // SAFETY: an object; a new reference, or an exception.
        unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyMemoryView_FromObject(owned.as_ptr())) }
    }
}

/// A type as the buffer protocol has it (PEP 3118). Its padding is written out, so that nobody aligns. It is as deep as the type.
fn write_format(of: &Memory, to: &mut String) {
    match &of.form {
        Form::Number(prim) => to.push(letter(*prim)),
        Form::Array(of, n) => {
            to.push_str(&format!("({n})"));
            write_format(of, to);
        }
        Form::Struct(_, _, fields) => {
            to.push_str("T{=");
            let pad = |n: usize, to: &mut String| {
                if n > 0 {
                    to.push_str(&format!("{n}x"));
                }
            };
            let mut end = 0;
            for (name, offset, field) in fields {
                pad(offset - end, to);
                write_format(field, to);
                to.push_str(&format!(":{name}:"));
                end = offset + field.size;
            }
            pad(of.size - end, to);
            to.push('}');
        }
    }
}

fn letter(prim: Prim) -> char {
    match prim {
        Prim::Bool => '?',
        Prim::I8 => 'b',
        Prim::I16 => 'h',
        Prim::I32 => 'i',
        Prim::I64 => 'q',
        Prim::U8 => 'B',
        Prim::U16 => 'H',
        Prim::U32 => 'I',
        Prim::U64 => 'Q',
        Prim::F16 => 'e',
        Prim::F32 => 'f',
        Prim::F64 => 'd',
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: the function has allocated it and given it away; nothing of it is exported any more.
        unsafe { nyala_embed::free(std::ptr::with_exposed_provenance_mut(self.address)) }
    }
}

#[pymethods]
impl Owned {
    /// Exports the elements, which may be written.
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        if view.is_null() {
            return Err(PyBufferError::new_err("there is no view"));
        }
        let this = slf.get();
        let has = |flag: c_int| flags & flag == flag;
        let bytes = this.shape.iter().product::<isize>() * this.item as isize;
        // A buffer without elements may have no memory.
        static NOTHING: [u64; 2] = [0; 2];
        let address = if bytes == 0 { NOTHING.as_ptr() as usize } else { this.address };
        let or_null = |is_wanted: bool, p: *const isize| if is_wanted { p.cast_mut() } else { std::ptr::null_mut() };
        // SAFETY: a view to be filled; what it points to lives as long as the object, of which it has a reference.
        unsafe {
            (*view).buf = std::ptr::with_exposed_provenance_mut(address);
            (*view).len = bytes;
            (*view).readonly = 0;
            (*view).itemsize = this.item as isize;
            (*view).format = match has(ffi::PyBUF_FORMAT) {
                true => this.format.as_ptr().cast_mut(),
                false => std::ptr::null_mut(),
            };
            (*view).ndim = this.shape.len() as c_int;
            (*view).shape = or_null(has(ffi::PyBUF_ND), this.shape.as_ptr());
            (*view).strides = or_null(has(ffi::PyBUF_STRIDES), this.strides.as_ptr());
            (*view).suboffsets = std::ptr::null_mut();
            (*view).internal = std::ptr::null_mut();
            (*view).obj = slf.into_any().into_ptr();
        }
        Ok(())
    }
}
