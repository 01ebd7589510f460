//! Parts of a large allocation: drivers have limits on how many allocations there are, and round each up. Separate from
//! the platform, since it knows no driver.

use std::collections::BTreeMap;

/// All parts begin at a multiple of this.
const ALIGN: u64 = 256;

/// The free ranges of an allocation: offsets and sizes. No two of them touch.
pub(super) struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    /// An allocation of `size` bytes, all free.
    pub fn new(size: u64) -> Self {
        Ranges(BTreeMap::from([(0, size)]))
    }

    /// Takes a part of at least `size` bytes out of the first range that has so many: its offset.
    pub fn take(&mut self, size: u64) -> Option<u64> {
        let size = size.max(1).next_multiple_of(ALIGN);
        let (offset, free) = self.0.iter().find(|(_, free)| **free >= size).map(|(o, f)| (*o, *f))?;
        self.0.remove(&offset);
        if free > size {
            self.0.insert(offset + size, free - size);
        }
        Some(offset)
    }

    /// Gives back a part that was taken with this size.
    pub fn give(&mut self, offset: u64, size: u64) {
        let mut size = size.max(1).next_multiple_of(ALIGN);
        let mut offset = offset;
        if let Some(after) = self.0.remove(&(offset + size)) {
            size += after;
        }
        if let Some((&before, &free)) = self.0.range(..offset).next_back()
            && before + free == offset
        {
            (offset, size) = (before, free + size);
        }
        self.0.insert(offset, size);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_do_not_overlap_and_come_back() {
        let mut ranges = Ranges::new(4 * ALIGN);
        let taken = [ranges.take(1), ranges.take(ALIGN), ranges.take(ALIGN + 1), ranges.take(0)];
        assert_eq!(taken, [Some(0), Some(ALIGN), Some(2 * ALIGN), None]);
        // In any order, neighbors become one range again.
        ranges.give(2 * ALIGN, ALIGN + 1);
        ranges.give(0, 1);
        assert_eq!((ranges.take(3 * ALIGN), ranges.take(1)), (None, Some(0)));
        ranges.give(0, 1);
        ranges.give(ALIGN, ALIGN);
        assert_eq!(ranges.take(4 * ALIGN), Some(0));
    }
}
