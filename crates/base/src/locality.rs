//! A hash function with locality: consecutive numbers are neighbors in the table. Programs have many consecutive
//! numbers, such as the constants of an unrolled loop; in a large table each would be a cache miss otherwise.

use rustc_hash::FxHasher;
use std::hash::Hasher;

/// Hashes the `u64`s that it is given with locality; everything else like [`FxHasher`].
#[derive(Default)]
pub struct LocalityHasher {
    far: FxHasher,
    near: u32,
}

const NEAR_BITS: u32 = 4;

/// Expands the 32 bits of [`half`](LocalityHasher::half) to the hash for tables, which need well-mixed upper seven
/// bits.
pub fn spread(half: u32) -> u64 {
    let mixed = (half as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed & 0xFE00_0000_0000_0000 | half as u64
}

impl LocalityHasher {
    /// The whole hash, in 32 bits.
    pub fn half(&self) -> u32 {
        let hash = self.far.finish();
        // Numbers that differ only in their upper bits, such as doubles, must differ in the folded half.
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
