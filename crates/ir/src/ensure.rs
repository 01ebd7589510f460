//! What a program asserts of its compiled code: `ensure_residual("no call, inner loads <= 2, vector 16")` and
//! `ensure_no_branch(x)`. Separate, since the front end reads the text, and flat SSA is judged by it (`nyala_flat::ensure`).
//!
//! ```text
//! text  = term { "," term }
//! term  = [ "inner" ] ( "no" thing | thing relation number ) | "vector" number
//! ```

use nyala_base::Span;

/// An assertion on the code that a block of the program becomes, in each of its copies.
#[derive(Clone, Debug)]
pub struct Ensure {
    /// The assertion.
    pub place: Span,
    /// The block that it stands in.
    pub scope: Span,
    /// The terms that hold; none for `ensure_no_branch`, whose value has an [`Op::Watch`](crate::Op::Watch).
    pub terms: Vec<Term>,
}

/// Things that are counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Thing {
    /// Memory of the heap that is allocated.
    Allocation,
    /// Atomic accesses of memory.
    Atomic,
    /// Branches that do not end the program or decide on another round of a loop.
    Branch,
    /// Calls of functions, known or not.
    Call,
    /// Functions as values.
    Closure,
    /// Quotients and remainders.
    Division,
    /// Loads of lanes from several places.
    Gather,
    /// Instructions of flat SSA.
    Instruction,
    /// Loads from memory, gathers included.
    Load,
    /// Loops that are left.
    Loop,
    /// Stores of lanes to several places.
    Scatter,
    /// Stores to memory, scatters included.
    Store,
    /// The most lanes that a vector has; 1 without vectors.
    Lanes,
}

/// Things by their names, in singular and plural.
pub const THINGS: &[(Thing, [&str; 2])] = &[
    (Thing::Allocation, ["allocation", "allocations"]),
    (Thing::Atomic, ["atomic", "atomics"]),
    (Thing::Branch, ["branch", "branches"]),
    (Thing::Call, ["call", "calls"]),
    (Thing::Closure, ["closure", "closures"]),
    (Thing::Division, ["division", "divisions"]),
    (Thing::Gather, ["gather", "gathers"]),
    (Thing::Instruction, ["instruction", "instructions"]),
    (Thing::Load, ["load", "loads"]),
    (Thing::Loop, ["loop", "loops"]),
    (Thing::Scatter, ["scatter", "scatters"]),
    (Thing::Store, ["store", "stores"]),
];

/// A comparison of a count with a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Relation {
    /// `==`
    Equal,
    /// `<=`
    AtMost,
    /// `>=`
    AtLeast,
}

/// One part of an assertion.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Term {
    /// As the program has it.
    pub text: String,
    /// Each innermost loop is counted alone.
    pub inner: bool,
    /// The thing that the term counts.
    pub thing: Thing,
    /// How the count compares with the number.
    pub relation: Relation,
    /// The number.
    pub number: u64,
}

impl Term {
    /// Whether so many are right.
    pub fn holds(&self, found: u64) -> bool {
        match self.relation {
            Relation::Equal => found == self.number,
            Relation::AtMost => found <= self.number,
            Relation::AtLeast => found >= self.number,
        }
    }
}

/// Reads the text of `ensure_residual`.
///
/// # Errors
/// The part that cannot be read.
pub fn read(text: &str) -> Result<Vec<Term>, String> {
    text.split(',').map(|part| term(part.trim()).ok_or_else(|| part.trim().to_string())).collect()
}

fn term(text: &str) -> Option<Term> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let (inner, words) = match &words[..] {
        ["inner", rest @ ..] => (true, rest),
        all => (false, all),
    };
    let thing = |name: &str| Some(THINGS.iter().find(|(_, names)| names.contains(&name))?.0);
    let number = |text: &str| text.parse::<u64>().ok();
    let (thing, relation, number) = match words {
        ["no", name] => (thing(name)?, Relation::Equal, 0),
        ["vector", lanes] if !inner => (Thing::Lanes, Relation::Equal, number(lanes)?),
        [name, "==", n] => (thing(name)?, Relation::Equal, number(n)?),
        [name, "<=", n] => (thing(name)?, Relation::AtMost, number(n)?),
        [name, "<", n] => (thing(name)?, Relation::AtMost, number(n)?.checked_sub(1)?),
        [name, ">=", n] => (thing(name)?, Relation::AtLeast, number(n)?),
        [name, ">", n] => (thing(name)?, Relation::AtLeast, number(n)?.checked_add(1)?),
        _ => return None,
    };
    Some(Term { text: text.into(), inner, thing, relation, number })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_terms() {
        let terms = read("no call, inner loads <= 2 , vector 16,branches < 3").unwrap();
        let shown: Vec<_> = terms.iter().map(|t| (t.inner, t.thing, t.relation, t.number)).collect();
        assert_eq!(
            shown,
            [
                (false, Thing::Call, Relation::Equal, 0),
                (true, Thing::Load, Relation::AtMost, 2),
                (false, Thing::Lanes, Relation::Equal, 16),
                (false, Thing::Branch, Relation::AtMost, 2),
            ]
        );
        for wrong in
            ["", "no", "no fun", "loads", "loads <= x", "loads < 0", "inner vector 4", "no call,", "no call; no load"]
        {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
