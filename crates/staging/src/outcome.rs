//! What evaluation ends with, of either evaluator.
//!
//! Separate, since the two are compared by it.

use crate::prim::{Fault, Prim};
use crate::term::{Body, Var};
use nyala_base::Span;

/// Bounds on one evaluation.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Executed bodies.
    pub steps: u64,
    /// Bodies, lambdas and values that evaluation may make, and the bodies of the residual program.
    pub size: usize,
}

impl Limits {
    /// That many times as much as by default.
    pub fn times(budget: f64) -> Limits {
        let Limits { steps, size } = Limits::default();
        Limits { steps: (steps as f64 * budget) as u64, size: (size as f64 * budget) as usize }
    }
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { steps: 4_000_000, size: 50_000_000 }
    }
}

/// A limit that was reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exceeded {
    /// With the place of the body that was to be executed next.
    Steps(Span),
    Size(Span),
    /// Functions of the program have too many variables of those around them.
    Variables(Span),
    /// The reference evaluator recurses, so it takes small terms only.
    Depth,
}

/// A program that has no more body to execute.
#[derive(Debug)]
pub struct Outcome {
    /// What is left. Its active bodies are those that are stuck, those around them, and `exit`.
    pub body: Body,
    /// Executed bodies.
    pub steps: u64,
    /// Values that were copied or looked at: what evaluation costs, whatever the machine. 0 of the reference.
    pub work: u64,
    /// Steps of the program, each of which executes all bodies that are active while their subterms wait.
    pub rounds: u64,
    /// Active bodies that no rule executes, in the order of their places in the residual term.
    pub stuck: Vec<Stuck>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Stuck {
    pub span: Span,
    pub why: Why,
    /// The variable that is not bound.
    pub missing: Option<Var>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Why {
    /// What is called is not bound.
    UnboundCallee,
    /// What is called is a constant.
    NotAFunction,
    /// The function takes another number of arguments.
    Arguments {
        expected: usize,
        found: usize,
    },
    Fault(Prim, Fault),
}
