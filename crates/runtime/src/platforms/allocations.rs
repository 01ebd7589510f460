//! Memory of a device, by address: in which allocation an address lies. Every platform checks addresses by it, so that the same
//! mistake has the same words everywhere.

use super::{Arg, Error};
use std::collections::BTreeMap;

/// Allocations of a device, with what its platform has to know of each.
pub(super) struct Allocations<T>(BTreeMap<u64, Allocation<T>>);

struct Allocation<T> {
    size: usize,
    known: T,
}

/// A place in an allocation.
pub(super) struct Place<'a, T> {
    pub known: &'a T,
    /// The distance from the begin of the allocation, in bytes.
    pub offset: usize,
    /// The size of the allocation, in bytes.
    pub size: usize,
}

impl<T> Allocations<T> {
    pub fn new() -> Self {
        Allocations(BTreeMap::new())
    }

    /// Notes an allocation of `size` bytes.
    pub fn insert(&mut self, address: u64, size: usize, known: T) {
        self.0.insert(address, Allocation { size, known });
    }

    /// Forgets an allocation, by its first address.
    ///
    /// # Errors
    /// There is none.
    pub fn remove(&mut self, address: u64) -> Result<T, Error> {
        let found = self.0.remove(&address).map(|a| a.known);
        found.ok_or_else(|| format!("{address:#x} is no allocation of this device, or was released before"))
    }

    /// The place at an address.
    ///
    /// # Errors
    /// The address lies in no allocation, or not so many bytes of it follow.
    pub fn find(&self, address: u64, size: usize) -> Result<Place<'_, T>, Error> {
        let found = self.0.range(..=address).next_back();
        let (begin, found) = found.filter(|(begin, a)| address - **begin < a.size.max(1) as u64).ok_or_else(|| {
            format!("{address:#x} is no address of this device: it is the host's, another device's, or was released")
        })?;
        let (offset, length) = ((address - begin) as usize, found.size);
        match size > length - offset {
            true => Err(format!("{size} bytes from byte {offset} on do not fit an allocation of {length} bytes")),
            false => Ok(Place { known: &found.known, offset, size: length }),
        }
    }

    /// Checks the addresses among the arguments of a kernel: each is null, or lies in an allocation.
    ///
    /// # Errors
    /// One does not.
    pub fn check(&self, args: &[Arg]) -> Result<(), Error> {
        check(args, |address| self.find(address, 0).map(drop))
    }

    /// The first addresses of all allocations.
    pub fn addresses(&self) -> impl Iterator<Item = u64> {
        self.0.keys().copied()
    }
}

/// Checks the addresses among the arguments of a kernel that are not null, by what `find` says of each.
///
/// # Errors
/// The first that `find` has for one.
pub(super) fn check(args: &[Arg], find: impl Fn(u64) -> Result<(), Error>) -> Result<(), Error> {
    args.iter().enumerate().try_for_each(|(i, arg)| match arg {
        Arg::Address(pointer) if !pointer.is_null() => find(*pointer as u64).map_err(|e| format!("argument {i}: {e}")),
        Arg::Address(_) | Arg::Value { .. } => Ok(()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_lie_in_allocations() {
        let mut all = Allocations::new();
        all.insert(1000, 100, 'a');
        all.insert(2000, 0, 'b');
        let find =
            |address, size| all.find(address, size).map(|p| (*p.known, p.offset, p.size)).map_err(|e| e.len() > 20);
        assert_eq!(
            (find(1000, 100), find(1099, 1), find(2000, 0)),
            (Ok(('a', 0, 100)), Ok(('a', 99, 100)), Ok(('b', 0, 0)))
        );
        for (address, size) in [(999, 0), (1100, 0), (1099, 2), (1000, usize::MAX), (2001, 0), (2000, 1), (u64::MAX, 0)]
        {
            assert_eq!(find(address, size), Err(true), "{address}");
        }
        assert_eq!(all.addresses().collect::<Vec<_>>(), [1000, 2000]);
        assert!(all.remove(1001).is_err());
        assert_eq!((all.remove(1000), all.remove(1000).is_err()), (Ok('a'), true));
    }
}
