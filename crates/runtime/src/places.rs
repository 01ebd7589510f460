//! Which function and line of an executable's source code an address is. `nyala build` makes the table, since a linked executable has
//! no debug information.
//!
//! ```text
//! u64             the number of parts, that of all rows
//! u64, u64, u64   a part: the address where its code starts, the number of its bytes, the number of its rows
//! u32, u32        a row: an offset in the code, from which on code is of the text with this number; in order, those of a part together
//! bytes           the texts, each with a zero byte at its end
//! ```

use std::ffi::{CStr, c_char};

/// The start of a table.
#[repr(C)]
pub struct Places {
    n_parts: u64,
    n_rows: u64,
}

#[repr(C)]
struct Part {
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
        let parts = (&raw const *self).wrapping_add(1).cast::<Part>();
        // SAFETY: the caller's promise.
        unsafe {
            let parts = std::slice::from_raw_parts(parts, self.n_parts as usize);
            let all = std::slice::from_raw_parts(parts.as_ptr_range().end.cast::<[u32; 2]>(), self.n_rows as usize);
            let offset_in = |part: &Part| (address as u64).checked_sub(part.start).filter(|&offset| offset < part.size);
            let (at, offset) = parts.iter().enumerate().find_map(|(at, part)| Some((at, offset_in(part)?)))?;
            let first: u64 = parts[..at].iter().map(|part| part.n).sum();
            let rows = all.get(first as usize..(first + parts[at].n) as usize)?;
            let at = rows.partition_point(|row| u64::from(row[0]) <= offset).checked_sub(1)?;
            let mut text = all.as_ptr_range().end.cast::<c_char>();
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
        struct Table(Places, [Part; 3], [[u32; 2]; 5], [u8; 12]);
        let rows = [[0, 2], [4, 0], [10, 1], [12, 0], [2, 1]];
        let part = |start, size, n| Part { start, size, n };
        let parts = [part(2000, 8, 1), part(1000, 20, 3), part(500, 4, 1)];
        let table = Table(Places { n_parts: 3, n_rows: 5 }, parts, rows, *b"one\0two\0six\0");
        // SAFETY: a table.
        let find = |address| unsafe { table.0.find(address) };
        let expected = [
            (999, None),
            (1003, None),
            (1004, Some("one")),
            (1011, Some("two")),
            (1019, Some("one")),
            (1020, None),
            (2000, Some("six")),
            (2007, Some("six")),
            (2008, None),
            (501, None),
            (503, Some("two")),
        ];
        for (address, text) in expected {
            assert_eq!(find(address).as_deref(), text, "{address}");
        }
    }
}
