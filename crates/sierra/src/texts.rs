//! Texts that macros make, which live as long as the tokens do.
//!
//! Separate, since a token borrows its text from a source, and what `#` and `##` make stands in none.

use std::cell::{Cell, OnceCell};

/// A list of texts to which a shared reference may add. Each part is twice as long as the one before it, so that few of them lie within each other.
pub struct Texts {
    known: Vec<OnceCell<Box<str>>>,
    n: Cell<usize>,
    more: OnceCell<Box<Texts>>,
}

impl Default for Texts {
    fn default() -> Texts {
        Texts::of(64)
    }
}

impl Texts {
    fn of(n: usize) -> Texts {
        Texts { known: (0..n).map(|_| OnceCell::new()).collect(), n: Cell::new(0), more: OnceCell::new() }
    }

    pub fn add(&self, text: String) -> &str {
        let mut part = self;
        while part.n.get() == part.known.len() {
            part = part.more.get_or_init(|| Box::new(Texts::of(2 * part.known.len())));
        }
        let at = part.n.replace(part.n.get() + 1);
        part.known[at].get_or_init(|| text.into_boxed_str())
    }
}
