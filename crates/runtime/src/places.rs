//! Which function and line of an executable's source code an address is. `nyala build` makes the table, since a linked executable has
//! no debug information.
//!
//! ```text
//! u64        the address where the program's code starts, the number of its bytes, the number of rows
//! u32, u32   a row: an offset in the code, from which on code is of the text with this number; in order
//! bytes      the texts, each with a zero byte at its end
//! ```

use std::ffi::{CStr, c_char};

/// The start of a table.
#[repr(C)]
pub struct Places {
    start: u64,
    size: u64,
    n: u64,
}

impl Places {
    /// The function and the line of the instruction at an address, as a text that follows the fault's.
    ///
    /// # Safety
    /// The table is as described above.
    pub(crate) unsafe fn find(&self, address: usize) -> Option<String> {
        let offset = (address as u64).checked_sub(self.start).filter(|&offset| offset < self.size)?;
        let rows = (&raw const *self).wrapping_add(1).cast::<[u32; 2]>();
        // SAFETY: the caller's promise.
        unsafe {
            let rows = std::slice::from_raw_parts(rows, self.n as usize);
            let at = rows.partition_point(|row| u64::from(row[0]) <= offset).checked_sub(1)?;
            let mut text = rows.as_ptr_range().end.cast::<c_char>();
            for _ in 0..rows[at][1] {
                text = text.add(CStr::from_ptr(text).count_bytes() + 1);
            }
            Some(CStr::from_ptr(text).to_string_lossy().into_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_of_the_row_before_it() {
        #[repr(C)]
        struct Table(Places, [[u32; 2]; 3], [u8; 12]);
        let rows = [[4, 0], [10, 1], [12, 0]];
        let table = Table(Places { start: 1000, size: 20, n: 3 }, rows, *b"one\0two\0xxx\0");
        // SAFETY: a table.
        let find = |address| unsafe { table.0.find(address) };
        let expected =
            [(999, None), (1003, None), (1004, Some("one")), (1011, Some("two")), (1019, Some("one")), (1020, None)];
        for (address, text) in expected {
            assert_eq!(find(address).as_deref(), text, "{address}");
        }
    }
}
