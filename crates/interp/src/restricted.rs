//! Whether what `restrict` promises is true, as far as the accesses say by which parameter they go.

use rustc_hash::FxHashMap;

/// What has happened to a byte in a call.
#[derive(Clone, Copy, Default)]
struct Byte {
    /// The parameter that it was accessed through first.
    first: u32,
    /// It was accessed through others, too.
    several: bool,
    written: bool,
    /// One of them is restricted.
    restricted: bool,
}

/// Bytes that are remembered. When there are more, all are forgotten, and faults may go unnoticed.
const MAX_BYTES: usize = 1 << 22;
/// Larger accesses are not looked at.
const MAX_SIZE: u32 = 1 << 16;

/// Calls of functions with restricted parameters.
#[derive(Default)]
pub struct Calls {
    n_calls: u64,
    bytes: FxHashMap<(u64, u64), Byte>,
}

/// An access through a parameter of a call.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    /// The parameter, whatever number it has.
    pub param: u32,
    pub size: u32,
    pub write: bool,
    pub restricted: bool,
}

impl Calls {
    /// The number of a call that begins.
    pub fn begin(&mut self) -> u64 {
        self.n_calls += 1;
        self.n_calls
    }

    /// Whether the promise holds still.
    pub fn access(&mut self, call: u64, address: u64, access: Access) -> bool {
        if access.size > MAX_SIZE {
            return true;
        }
        if self.bytes.len() > MAX_BYTES {
            self.bytes.clear();
        }
        (address..address.saturating_add(access.size.into())).all(|at| {
            let byte = self.bytes.entry((call, at)).or_insert(Byte { first: access.param, ..Byte::default() });
            byte.several |= byte.first != access.param;
            byte.written |= access.write;
            byte.restricted |= access.restricted;
            !(byte.several && byte.written && byte.restricted)
        })
    }
}
