//! Ends frames: a frame of a function that passes an address of its variables to a tail call ends with the frame of that call, and so on
//! where addresses are handed on.

use super::*;
use rustc_hash::FxHashSet;

impl Machine<'_> {
    /// Reuses the frame of a function that ends with a call of itself.
    #[cold]
    pub(super) fn again(&mut self) {
        if !self.kept.is_empty() {
            let n = match &self.compiled[self.func as usize] {
                Some(f) => (f.n_params + f.n_captured) as usize,
                None => 0,
            };
            let words = self.heap.words[self.base..self.base + n].to_vec();
            if !self.is_handed(words) {
                self.free_kept(self.frame);
            }
        }
        self.heap.records[self.frame as usize].renew();
    }

    /// Lets the frames that would end with this one end with the next, if its arguments have an address of their variables: a
    /// function may pass on what it was given.
    #[cold]
    pub(super) fn hand_on(&mut self, next: Frame, words: Vec<u64>) {
        if self.is_handed(words)
            && let Some(kept) = self.kept.remove(&self.frame)
        {
            self.kept.entry(next).or_default().extend(kept);
        }
    }

    /// Whether words, or the records of function values among them, have an address of a variable whose frame ends with this one.
    fn is_handed(&self, mut open_words: Vec<u64>) -> bool {
        let (mut blocks, mut open) = (Vec::new(), vec![self.frame]);
        while let Some(frame) = open.pop() {
            for &kept in self.kept.get(&frame).into_iter().flatten() {
                open.push(kept);
                let record = &self.heap.records[kept as usize];
                let Kind::Frame(func) = record.kind else { continue };
                let Some(Some(function)) = self.compiled.get(func as usize) else { continue };
                let addresses = function.slots.iter().map(|&r| self.heap.words[record.base as usize + r as usize]);
                blocks
                    .extend(addresses.filter_map(|at| Some((at, self.l.memory.block_size(at as usize).ok()? as u64))));
            }
        }
        if blocks.is_empty() {
            return false;
        }
        let is_in = |word: u64| blocks.iter().any(|&(at, size)| word.wrapping_sub(at) <= size);
        if self.stored_addresses.values().any(|&word| is_in(word)) {
            return true;
        }
        let mut seen = FxHashSet::default();
        while let Some(word) = open_words.pop() {
            if is_in(word) {
                return true;
            }
            let (closure, frame) = (Closure(word), Closure(word).frame());
            let Some(record) = self.heap.records.get(frame as usize) else { continue };
            let Kind::Captured(func) = record.kind else { continue };
            let Some(Some(function)) = self.compiled.get(func as usize) else { continue };
            if record.is(closure) && seen.insert(frame) {
                let base = record.base as usize;
                open_words.extend(&self.heap.words[base..base + function.n_captured as usize]);
            }
        }
        false
    }

    /// Ends a frame and those that end with it, and frees their local variables.
    #[inline]
    pub(super) fn free_frame(&mut self, frame: Frame) {
        self.free_one(frame);
        if !self.kept.is_empty() {
            self.free_kept(frame);
        }
    }

    #[cold]
    pub(super) fn free_kept(&mut self, frame: Frame) {
        let mut open = vec![frame];
        while let Some(frame) = open.pop() {
            for kept in self.kept.remove(&frame).into_iter().flatten() {
                self.free_one(kept);
                open.push(kept);
            }
        }
    }

    #[inline]
    pub(super) fn free_one(&mut self, frame: Frame) {
        let Kind::Frame(func) = self.heap.records[frame as usize].kind else { return };
        self.free_slots(func, frame);
        self.heap.release(frame);
    }

    #[inline]
    pub(super) fn free_slots(&mut self, func: FuncIdx, frame: Frame) {
        let Some(Some(function)) = self.compiled.get(func as usize) else { return };
        let base = self.heap.base(frame);
        for &slot in &function.slots {
            let address = self.heap.words[base + slot as usize];
            if address != 0 {
                // This fails if the program has freed the memory itself.
                let _ = self.l.memory.free(address as usize);
            }
        }
    }
}
