//! Typed `u32` ids and tables indexed by them.

use std::marker::PhantomData;

/// A `u32` newtype that identifies an entry of a table. Made by [`define_id!`](crate::define_id).
pub trait Id: Copy + Eq + Ord + std::hash::Hash + std::fmt::Debug {
    fn from_idx(idx: usize) -> Self;
    fn idx(self) -> usize;
}

/// `define_id!(pub struct Val, "v")` makes an id that prints as `v7`.
#[macro_export]
macro_rules! define_id {
    ($(#[$meta:meta])* $vis:vis struct $name:ident, $prefix:literal) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $vis struct $name(pub u32);
        impl $crate::Id for $name {
            fn from_idx(idx: usize) -> Self {
                $name(u32::try_from(idx).expect("more than 2^32 ids"))
            }
            fn idx(self) -> usize {
                self.0 as usize
            }
        }
        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
    };
}

/// A dense table of facts about ids: every id has a value, the default until it is set.
#[derive(Clone, Debug)]
pub struct SideTable<I, T> {
    entries: Vec<T>,
    default: T,
    id: PhantomData<I>,
}

impl<I: Id, T: Clone + Default> Default for SideTable<I, T> {
    fn default() -> Self {
        SideTable { entries: Vec::new(), default: T::default(), id: PhantomData }
    }
}

impl<I: Id, T: Clone + Default> SideTable<I, T> {
    /// A table with capacity for facts about the first `n` ids.
    pub fn with_room(n: usize) -> Self {
        SideTable { entries: Vec::with_capacity(n), default: T::default(), id: PhantomData }
    }
}

impl<I: Id, T: Clone> SideTable<I, T> {
    pub fn with_default(default: T) -> Self {
        SideTable { entries: Vec::new(), default, id: PhantomData }
    }

    /// Forgets all entries.
    pub fn clear(&mut self) {
        self.entries.clear();
    }

    /// The entries up to the last one that was set.
    pub fn iter(&self) -> impl Iterator<Item = (I, &T)> {
        self.entries.iter().enumerate().map(|(i, entry)| (I::from_idx(i), entry))
    }

    /// The entries up to the last one that was set, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.entries.iter_mut()
    }
}

impl<I: Id, T: Clone> std::ops::Index<I> for SideTable<I, T> {
    type Output = T;
    fn index(&self, id: I) -> &T {
        self.entries.get(id.idx()).unwrap_or(&self.default)
    }
}

impl<I: Id, T: Clone> std::ops::IndexMut<I> for SideTable<I, T> {
    fn index_mut(&mut self, id: I) -> &mut T {
        if id.idx() >= self.entries.len() {
            self.entries.resize(id.idx() + 1, self.default.clone());
        }
        &mut self.entries[id.idx()]
    }
}

/// A list for each id, all in one allocation.
///
/// ```
/// nyala_base::define_id!(struct Node, "n");
/// use nyala_base::{Id, Lists};
/// let node = Node::from_idx;
/// let mut lists = Lists::of_pairs(&[(node(2), 'a'), (node(0), 'b'), (node(2), 'c')]);
/// assert_eq!((&lists[node(2)], &lists[node(1)], &lists[node(9)]), (&['a', 'c'][..], &[][..], &[][..]));
/// lists.set(node(1), ['d', 'e']);
/// lists.list_mut(node(1)).reverse();
/// assert_eq!((&lists[node(1)], &lists[node(2)]), (&['e', 'd'][..], &['a', 'c'][..]));
/// ```
#[derive(Clone, Debug)]
pub struct Lists<I, T> {
    /// Start and end of each list in `items`.
    ranges: SideTable<I, (u32, u32)>,
    items: Vec<T>,
}

impl<I: Id, T> Default for Lists<I, T> {
    fn default() -> Self {
        Lists { ranges: SideTable::default(), items: Vec::new() }
    }
}

impl<I: Id, T: Copy> Lists<I, T> {
    /// For each id the list of its partners in `pairs`, in the given order.
    pub fn of_pairs(pairs: &[(I, T)]) -> Self {
        let mut ranges: SideTable<I, (u32, u32)> = SideTable::default();
        for &(id, _) in pairs {
            ranges[id].1 += 1;
        }
        let mut start = 0;
        for range in &mut ranges.entries {
            let n = range.1;
            *range = (start, start);
            start += n;
        }
        let mut items: Vec<T> = pairs.iter().map(|p| p.1).collect();
        for &(id, item) in pairs {
            let end = &mut ranges[id].1;
            items[*end as usize] = item;
            *end += 1;
        }
        Lists { ranges, items }
    }

    /// Sets the list of an id, once.
    pub fn set(&mut self, id: I, list: impl IntoIterator<Item = T>) {
        let start = self.items.len() as u32;
        self.items.extend(list);
        self.ranges[id] = (start, self.items.len() as u32);
    }

    pub fn list_mut(&mut self, id: I) -> &mut [T] {
        let (start, end) = self.ranges[id];
        &mut self.items[start as usize..end as usize]
    }
}

impl<I: Id, T> std::ops::Index<I> for Lists<I, T> {
    type Output = [T];
    fn index(&self, id: I) -> &[T] {
        let (start, end) = self.ranges[id];
        &self.items[start as usize..end as usize]
    }
}
