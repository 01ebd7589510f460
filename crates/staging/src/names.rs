//! What names mean, for editors: where each is declared, and where it is used.
//!
//! Separate from the readers, which note both as they go, also in texts with faults.

use nyala_base::{FileId, Span};

/// A variable, function or field.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Declaration {
    /// The place of its name.
    pub place: Span,
    /// With its type, as its language writes it.
    pub text: String,
}

#[derive(Clone, Default, Debug)]
pub struct Names {
    pub(crate) declarations: Vec<Declaration>,
    /// Places with what the names there mean.
    pub(crate) uses: Vec<(Span, usize)>,
}

impl Names {
    /// The name that has that byte, or ends there.
    pub fn at(&self, file: FileId, offset: u32) -> Option<(Span, &Declaration)> {
        let is_there = |span: Span| span.file == file && (span.lo..=span.hi).contains(&offset);
        let used = self.uses.iter().find(|u| is_there(u.0)).map(|&(span, i)| (span, &self.declarations[i]));
        used.or_else(|| self.declarations.iter().find(|d| is_there(d.place)).map(|d| (d.place, d)))
    }

    /// The places of the name, its declaration first.
    pub fn places(&self, of: &Declaration) -> Vec<Span> {
        let mut places = vec![of.place];
        let uses = self.uses.iter().filter(|u| self.declarations[u.1].place == of.place);
        let mut uses: Vec<Span> = uses.map(|u| u.0).collect();
        uses.sort_by_key(|s| (s.file.0, s.lo));
        uses.dedup();
        places.extend(uses);
        places
    }
}
