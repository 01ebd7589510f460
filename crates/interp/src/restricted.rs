//! Checks the promises of `restrict`, as far as accesses tell by which parameter they are made.

use rustc_hash::FxHashMap;

/// The accesses to one byte during a call.
#[derive(Clone, Copy, Default)]
struct Byte {
    /// The parameter through which it was accessed first.
    first: u32,
    /// It was accessed through other parameters, too.
    several: bool,
    written: bool,
    /// One of these parameters is restricted.
    restricted: bool,
}

/// Limit on the bytes that are remembered. When it is exceeded, all are forgotten, and faults may go unnoticed.
const MAX_BYTES: usize = 1 << 22;
/// Larger accesses are not checked.
const MAX_SIZE: u32 = 1 << 16;

/// The accesses in calls of functions with restricted parameters.
#[derive(Default)]
pub struct Calls {
    n_calls: u64,
    bytes: FxHashMap<(u64, u64), Byte>,
}

/// An access through a parameter of a call.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    /// A number that identifies the parameter.
    pub param: u32,
    pub size: u32,
    pub write: bool,
    pub restricted: bool,
}

impl Calls {
    /// Begins a call and returns its number.
    pub fn begin(&mut self) -> u64 {
        self.n_calls += 1;
        self.n_calls
    }

    /// Notes an access. Returns whether the promise still holds.
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
