//! Typed `u32` ids and tables indexed by them.

use std::marker::PhantomData;

/// A `u32` newtype that names an entry of some table. Made by [`define_id!`](crate::define_id).
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

/// Facts about ids, dense: every id has a value, the default one until it is set.
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

impl<I: Id, T: Clone> SideTable<I, T> {
    pub fn with_default(default: T) -> Self {
        SideTable { entries: Vec::new(), default, id: PhantomData }
    }

    /// Forgets all entries.
    pub fn clear(&mut self) {
        self.entries.clear();
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
