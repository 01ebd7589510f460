//! A hash that keeps locality: numbers that follow one another are neighbors in the table. Programs come by many numbers in
//! order, as by the constants of an unrolled loop; in a large table each would miss the caches otherwise.

use rustc_hash::FxHasher;
use std::hash::Hasher;

/// Hashes with locality in the `u64`s that it is given; everything else is hashed as by [`FxHasher`].
#[derive(Default)]
pub struct LocalityHasher {
    far: FxHasher,
    near: u32,
}

const NEAR_BITS: u32 = 4;

/// The hash that tables use for the 32 bits that it was [made](LocalityHasher::half) from: they want the upper seven bits good.
pub fn spread(half: u32) -> u64 {
    let mixed = (half as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed & 0xFE00_0000_0000_0000 | half as u64
}

impl LocalityHasher {
    /// All that there is of the hash.
    pub fn half(&self) -> u32 {
        let hash = self.far.finish();
        // Numbers that differ in their upper bits only (doubles do) differ in either half.
        ((hash ^ (hash >> 32)) as u32).rotate_left(NEAR_BITS) ^ self.near
    }
}

impl Hasher for LocalityHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.far.write(bytes);
    }
    fn write_u8(&mut self, n: u8) {
        self.far.write_u8(n);
    }
    fn write_u32(&mut self, n: u32) {
        self.far.write_u32(n);
    }
    fn write_u64(&mut self, n: u64) {
        self.far.write_u64(n >> NEAR_BITS);
        self.near ^= n as u32 & ((1 << NEAR_BITS) - 1);
    }
    fn write_usize(&mut self, n: usize) {
        self.far.write_usize(n);
    }
    fn finish(&self) -> u64 {
        spread(self.half())
    }
}
