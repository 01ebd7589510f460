//! Values in memory with C's layout, for parameters that another language fixes: their sizes, and what they consist of. Separate from
//! the values of Rust, whose types know their layout.

use crate::error::Error;
use crate::fixed;
use crate::partial::Partial;
use crate::shape::{Bytes, text_of};
use nyala_sema::{ExportedType, Signatures};

/// What a parameter is fixed to: a value, or elements in memory.
pub struct Fixable<'a> {
    /// The type of the value, or of one element.
    ty: &'a ExportedType,
    all: &'a Signatures,
    /// Whether any number of elements may be given.
    many: bool,
    param: usize,
}

/// Size and alignment of a type in bytes, as C has them; `None` if there is an address in it, or no other language has the type.
pub fn layout(ty: &ExportedType, all: &Signatures) -> Option<(usize, usize)> {
    match ty {
        ExportedType::Prim(prim) => {
            let bytes = (prim.bits() as usize).div_ceil(8);
            Some((bytes, bytes))
        }
        ExportedType::Array(of, n) => {
            let (size, align) = layout(of, all)?;
            Some((size.checked_mul(usize::try_from(*n).ok()?)?, align))
        }
        ExportedType::Struct(index) => {
            let (mut size, mut align) = (0usize, 1);
            for (_, ty) in &all.structs[*index].fields {
                let (own, own_align) = layout(ty, all)?;
                size = size.checked_next_multiple_of(own_align)?.checked_add(own)?;
                align = align.max(own_align);
            }
            Some((size.checked_next_multiple_of(align)?, align))
        }
        _ => None,
    }
}

/// Appends a value without padding.
///
/// # Safety
/// A value of the type is at the address; it has a layout.
unsafe fn append(ty: &ExportedType, all: &Signatures, at: *const u8, to: &mut Bytes) {
    // SAFETY: the caller's promise: parts are where C has them.
    unsafe {
        match ty {
            ExportedType::Prim(_) => {
                let size = layout(ty, all).map_or(0, |l| l.0);
                to.extend_from_slice(std::slice::from_raw_parts(at, size));
            }
            ExportedType::Array(of, n) => {
                let size = layout(of, all).map_or(0, |l| l.0);
                (0..*n as usize).for_each(|i| append(of, all, at.add(i * size), to));
            }
            ExportedType::Struct(index) => {
                let mut offset = 0usize;
                for (_, ty) in &all.structs[*index].fields {
                    let (size, align) = layout(ty, all).unwrap_or((0, 1));
                    offset = offset.next_multiple_of(align);
                    append(ty, all, at.add(offset), to);
                    offset += size;
                }
            }
            _ => {}
        }
    }
}

impl Fixable<'_> {
    /// The type of the value, or of one element, as Impala writes it.
    pub fn text(&self) -> String {
        text_of(self.ty, self.all)
    }

    /// Its size in bytes; `None` if there is an address in it, so that it cannot be fixed.
    pub fn size(&self) -> Option<usize> {
        layout(self.ty, self.all).map(|l| l.0)
    }
}

impl Partial {
    /// What a parameter can be fixed to; functions have [`Partial::fix`].
    ///
    /// # Errors
    /// There is no such parameter, it is fixed, or its type cannot be fixed.
    pub fn fixable(&self, parameter: &str) -> Result<Fixable<'_>, Error> {
        let param = self.find(parameter)?;
        let (ty, all) = (&self.signature().params[param].1, self.program().signatures());
        let (ty, many) = match ty {
            ExportedType::Pointer { mutable: false, many, to } => (&**to, *many),
            _ => fixed::slice_elements(ty, all).map_or((ty, false), |of| (of, true)),
        };
        if layout(ty, all).is_none() {
            let why = format!("it is `{}`", text_of(&self.signature().params[param].1, all));
            return Err(self.refused(parameter, why));
        }
        Ok(Fixable { ty, all, many, param })
    }

    /// Fixes a parameter to values in memory, which are copied: [`Partial::fix`] for other languages.
    ///
    /// # Safety
    /// So many values of the type of [`Partial::fixable`] are at the address, with C's layout.
    ///
    /// # Errors
    /// As for [`Partial::fixable`], or there is not one value where one is wanted.
    pub unsafe fn fix_raw(&self, parameter: &str, values: *const (), count: usize) -> Result<Partial, Error> {
        let to = self.fixable(parameter)?;
        if !to.many && count != 1 {
            return Err(self.refused(parameter, format!("{count} values for one `{}`", to.text())));
        }
        let size = to.size().unwrap_or(0);
        // Before they are read.
        if count.checked_mul(size).is_none_or(|all| all > fixed::MAX_BYTES) {
            return Err(self
                .refused(parameter, format!("{count} values of {size} bytes are too many: pass them as an argument")));
        }
        let append = |key: &mut Bytes| {
            for i in 0..count {
                // SAFETY: the caller's promise.
                unsafe { append(to.ty, to.all, values.cast::<u8>().add(i * size), key) };
            }
            true
        };
        let mut made = self.clone();
        match fixed::add(made.key_mut(), to.param, append) {
            Ok(()) => Ok(made),
            Err(why) => Err(self.refused(parameter, why)),
        }
    }
}
