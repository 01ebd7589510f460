//! Frames and captured values: records of words, found by index, and released at once or by marking.

use crate::code::{FuncIdx, Reg};
use rustc_hash::FxHashMap;

/// Index of a record.
pub type Frame = u32;
/// Stands for no record, in closures that capture nothing.
pub const NONE: Frame = u32::MAX;

/// Index of a size class of records.
pub type Class = u32;
/// Limit on the words of all records: 1 GiB.
pub const MAX_WORDS: usize = 1 << 27;

const GEN_MASK: u16 = 0xfff;
/// The position of the entry point's bits in a closure.
pub const ENTRY_SHIFT: u32 = 44;

/// The use of a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Free,
    /// The registers of a function's activation.
    Frame(FuncIdx),
    /// The values that a function value captured.
    Captured(FuncIdx),
}

// So that an index is shifted, not multiplied.
#[repr(align(32))]
#[derive(Clone, Copy, Debug)]
pub struct Record {
    pub base: u32,
    pub kind: Kind,
    /// The class of its size.
    pub class: Class,
    /// Counts how often the record was given back, so that stale references are recognized.
    generation: u16,
    marked: bool,
    /// For a free record, the next free one of its class.
    pub next: Frame,
    /// For a frame, the position after the call that it made.
    pub called_at: u32,
}

impl Record {
    /// Starts another generation, so that older references to the record become stale.
    #[inline]
    pub fn renew(&mut self) {
        self.generation = (self.generation + 1) & GEN_MASK;
    }

    /// Frees the record, which becomes the first of its class to be reused.
    #[inline]
    pub fn release(&mut self, frame: Frame, free: &mut [Frame]) {
        self.renew();
        self.kind = Kind::Free;
        self.next = std::mem::replace(&mut free[self.class as usize], frame);
    }

    /// A closure that refers to the record.
    #[inline]
    pub fn closure(&self, entry: u32, frame: Frame) -> Closure {
        Closure((entry as u64) << ENTRY_SHIFT | (self.generation as u64) << 32 | frame as u64)
    }

    /// Whether the record still is the one that a closure was made for.
    #[inline]
    pub fn is(&self, closure: Closure) -> bool {
        self.generation == closure.generation()
    }
}

/// A reference to an entry point with a record: 20 bits of entry, 12 of generation, 32 of record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Closure(pub u64);

/// Limit on the entry points that a closure can name.
pub const MAX_ENTRIES: usize = 1 << 20;

impl Closure {
    pub fn entry(self) -> u32 {
        (self.0 >> ENTRY_SHIFT) as u32
    }
    pub fn frame(self) -> Frame {
        self.0 as u32
    }
    /// A closure with this record and another entry point.
    pub fn at(self, entry: u32) -> Closure {
        Closure((entry as u64) << ENTRY_SHIFT | self.0 & ((1 << ENTRY_SHIFT) - 1))
    }
    fn generation(self) -> u16 {
        (self.0 >> 32) as u16 & GEN_MASK
    }

    /// A closure without a record, for one of several activations of an entry point. The low bits of `number` tell them
    /// apart.
    pub fn numbered(entry: u32, number: usize) -> Closure {
        Closure((entry as u64) << ENTRY_SHIFT | ((number as u64) & GEN_MASK as u64) << 32 | NONE as u64)
    }

    /// Whether the closure was made with this number.
    pub fn has_number(self, number: usize) -> bool {
        self.generation() == number as u16 & GEN_MASK
    }
}

/// Separate borrows of the heap's parts.
pub struct Parts<'a> {
    pub words: &'a mut [u64],
    pub records: &'a mut [Record],
    /// The first free record of each class.
    pub free: &'a mut [Frame],
}

/// All records.
#[derive(Default)]
pub struct Heap {
    pub words: Vec<u64>,
    pub records: Vec<Record>,
    classes: FxHashMap<u32, Class>,
    /// The number of words of the records of each class.
    sizes: Vec<u32>,
    /// The first free record of each class.
    free: Vec<Frame>,
    /// The number of records in use after the last marking, and of those added since.
    live_after: usize,
    made: usize,
    /// The number of words at the last marking.
    words_then: usize,
    max_words: usize,
}

impl Heap {
    pub fn new(max_words: usize) -> Heap {
        Heap { max_words, ..Heap::default() }
    }

    /// The class of records of that size.
    pub fn class(&mut self, size: u32) -> Class {
        let (free, sizes) = (&mut self.free, &mut self.sizes);
        *self.classes.entry(size).or_insert_with(|| {
            free.push(NONE);
            sizes.push(size);
            free.len() as Class - 1
        })
    }

    /// Whether to search for abandoned records, `steps` after the last search. It is time if many records are new, or
    /// if many steps were taken.
    pub fn wants_marking(&self, steps: u64) -> bool {
        steps > 2 * (self.records.len() as u64).max(1 << 16)
            || self.made > (1 << 18).max(self.live_after)
            || self.words.len() > 2 * self.words_then + (1 << 22)
    }

    /// A free record of that class, if there is one.
    #[inline]
    pub fn reuse(&mut self, kind: Kind, class: Class) -> Option<Frame> {
        let frame = self.free[class as usize];
        let record = self.records.get_mut(frame as usize)?;
        self.free[class as usize] = record.next;
        record.kind = kind;
        Some(frame)
    }

    /// Adds a new record.
    pub fn add(&mut self, kind: Kind, class: Class) -> Frame {
        self.made += 1;
        let base = self.words.len() as u32;
        self.words.resize(self.words.len() + self.sizes[class as usize] as usize, 0);
        self.records.push(Record { base, kind, class, generation: 0, marked: false, next: NONE, called_at: 0 });
        self.records.len() as Frame - 1
    }

    pub fn is_full(&self) -> bool {
        self.words.len() > self.max_words || self.records.len() > self.max_words / 4
    }

    #[inline]
    pub fn release(&mut self, frame: Frame) {
        self.records[frame as usize].release(frame, &mut self.free);
    }

    #[inline]
    pub fn parts(&mut self) -> Parts<'_> {
        Parts { words: &mut self.words, records: &mut self.records, free: &mut self.free }
    }

    #[inline]
    pub fn closure(&self, entry: u32, frame: Frame) -> Closure {
        match frame {
            NONE => Closure((entry as u64) << ENTRY_SHIFT | NONE as u64),
            _ => self.records[frame as usize].closure(entry, frame),
        }
    }

    /// Whether the record of a closure still is the one that it was made for.
    #[inline]
    pub fn is_alive(&self, closure: Closure) -> bool {
        let frame = closure.frame();
        frame == NONE || self.records.get(frame as usize).is_some_and(|r| r.is(closure))
    }

    #[inline]
    pub fn base(&self, frame: Frame) -> usize {
        self.records[frame as usize].base as usize
    }

    /// Marks the records that can be reached from `roots`. `refs` returns the registers of a record that hold closures,
    /// `others` the records that a frame refers to through memory, `owner` the frame whose variable an address points
    /// into.
    pub fn mark<'a>(
        &mut self,
        roots: Vec<Frame>,
        others: impl Fn(Frame) -> &'a [Frame],
        owner: impl Fn(u64) -> Option<Frame>,
        refs: impl Fn(Kind) -> &'a [Reg],
    ) {
        let mut work = roots;
        while let Some(frame) = work.pop() {
            let Some(record) = self.records.get_mut(frame as usize) else { continue };
            if record.marked || record.kind == Kind::Free {
                continue;
            }
            record.marked = true;
            let (base, kind) = (record.base as usize, record.kind);
            let size = self.sizes[record.class as usize] as usize;
            work.extend(others(frame));
            work.extend(refs(kind).iter().map(|&r| Closure(self.words[base + r as usize]).frame()));
            work.extend(self.words[base..base + size].iter().filter_map(|&word| owner(word)));
        }
    }

    /// All words of records that are in use.
    pub fn words_in_use(&self) -> impl Iterator<Item = u64> {
        let records = self.records.iter().filter(|r| r.kind != Kind::Free);
        records.flat_map(|r| {
            let (base, size) = (r.base as usize, self.sizes[r.class as usize] as usize);
            self.words[base..base + size].iter().copied()
        })
    }

    /// Returns the records that were not marked, and clears all marks.
    pub fn sweep(&mut self) -> Vec<Frame> {
        let mut dead = Vec::new();
        let mut live = 0;
        for (i, record) in self.records.iter_mut().enumerate() {
            if !std::mem::replace(&mut record.marked, false) {
                if record.kind != Kind::Free {
                    dead.push(i as Frame);
                }
            } else {
                live += 1;
            }
        }
        self.live_after = live;
        self.made = 0;
        self.words_then = self.words.len();
        dead
    }
}
