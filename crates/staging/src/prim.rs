//! The built-in functions: what each is called, what it takes, and what it computes on known values.
//!
//! Separate, since it is one table for names, types and both evaluators.
//!
//! A built-in function `p v̄ k` goes on with `k r`, where `r` is its result. It takes one step of evaluation, which is that `δ` rule; the call of
//! the continuation is another.

use crate::term::{Const, Terms};

macro_rules! prims {
    ($($(#[$meta:meta])* $prim:ident, $name:literal;)*) => {
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Prim { $($(#[$meta])* $prim),* }

        impl Prim {
            pub const ALL: &[Prim] = &[$(Prim::$prim),*];

            /// As it is written: a word is called, a sign stands between two operands.
            pub fn name(self) -> &'static str {
                match self { $(Prim::$prim => $name),* }
            }
        }
    };
}

prims! {
    Add, "+";
    Sub, "-";
    Mul, "*";
    Div, "/";
    /// Of `int`, with the sign of the first operand.
    Mod, "mod";
    Eq, "==";
    Ne, "!=";
    Lt, "<";
    Le, "<=";
    Gt, ">";
    Ge, ">=";
    And, "and";
    Or, "or";
    Not, "not";
    Sqrt, "sqrt";
    /// The nearest `float`.
    ToFloat, "to_float";
    /// Toward zero; the nearest `int` of a number that is out of range, 0 of NaN.
    ToInt, "to_int";
    /// `at a i`: an element of an array.
    At, "at";
    /// `put a i v`: stores an element; the continuation takes nothing.
    Put, "put";
    /// `if c t f` goes on with `t` or `f`, which take nothing.
    If, "if";
    /// Ends the program; its arguments are the results. No rule executes it, so it waits until it is the whole program.
    Exit, "exit";
}

/// What becomes of a call of a built-in function.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Step {
    /// The continuation gets this result.
    Result(Const),
    /// The argument of that index is called without arguments.
    Call(usize),
}

/// Why a call of a built-in function has no result.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Fault {
    /// The argument of that index is not bound.
    Unbound(usize),
    /// The arguments have no such types, or are of another number.
    Operands,
    DivisionByZero,
    /// The result is not an `int`.
    Overflow,
    /// The array has no such element.
    OutOfBounds,
    /// A constant array can't be changed.
    ConstantArray,
}

impl Prim {
    pub fn from_name(name: &str) -> Option<Prim> {
        Prim::ALL.iter().copied().find(|p| p.name() == name)
    }

    /// How many arguments have to be known; a continuation follows, two after `if`. `exit` takes any arguments.
    pub fn n_operands(self) -> usize {
        match self {
            Prim::Exit => 0,
            Prim::Put => 3,
            Prim::Not | Prim::Sqrt | Prim::ToFloat | Prim::ToInt | Prim::If => 1,
            _ => 2,
        }
    }

    pub fn n_args(self) -> usize {
        self.n_operands() + if self == Prim::If { 2 } else { 1 }
    }

    /// Stands between its operands.
    pub fn is_infix(self) -> bool {
        self.n_operands() == 2 && self != Prim::At
    }

    /// The step that `self` takes with these arguments, `None` where one is no constant.
    pub fn step(self, terms: &Terms, args: &[Option<Const>], is_bound: impl Fn(usize) -> bool) -> Result<Step, Fault> {
        if self == Prim::Exit || args.len() != self.n_args() {
            return Err(Fault::Operands);
        }
        let operands = &args[..self.n_operands()];
        if let Some(unbound) = (0..operands.len()).find(|&i| !is_bound(i)) {
            return Err(Fault::Unbound(unbound));
        }
        let result = match *operands {
            [Some(Const::Bool(c))] if self == Prim::If => return Ok(Step::Call(if c { 1 } else { 2 })),
            [Some(Const::Bool(a))] if self == Prim::Not => Const::Bool(!a),
            [Some(Const::Float(a))] if self == Prim::Sqrt => Const::Float(a.sqrt()),
            [Some(Const::Int(a))] if self == Prim::ToFloat => Const::Float(a as f32),
            [Some(Const::Float(a))] if self == Prim::ToInt => Const::Int(a as i32),
            [Some(Const::Array(a)), Some(Const::Int(i))] if self == Prim::At => {
                let element = usize::try_from(i).ok().and_then(|i| terms.elements(a).get(i));
                *element.ok_or(Fault::OutOfBounds)?
            }
            [Some(Const::Array(_)), _, _] => return Err(Fault::ConstantArray),
            [Some(Const::Int(a)), Some(Const::Int(b))] => self.of_ints(a, b)?,
            [Some(Const::Float(a)), Some(Const::Float(b))] => self.of_floats(a, b)?,
            [Some(Const::Bool(a)), Some(Const::Bool(b))] => Const::Bool(match self {
                Prim::And => a && b,
                Prim::Or => a || b,
                Prim::Eq => a == b,
                Prim::Ne => a != b,
                _ => return Err(Fault::Operands),
            }),
            _ => return Err(Fault::Operands),
        };
        Ok(Step::Result(result))
    }

    fn of_ints(self, a: i32, b: i32) -> Result<Const, Fault> {
        if matches!(self, Prim::Div | Prim::Mod) && b == 0 {
            return Err(Fault::DivisionByZero);
        }
        let int = |r: Option<i32>| r.map(Const::Int).ok_or(Fault::Overflow);
        match self {
            Prim::Add => int(a.checked_add(b)),
            Prim::Sub => int(a.checked_sub(b)),
            Prim::Mul => int(a.checked_mul(b)),
            Prim::Div => int(a.checked_div(b)),
            Prim::Mod => int(a.checked_rem(b)),
            Prim::Eq => Ok(Const::Bool(a == b)),
            Prim::Ne => Ok(Const::Bool(a != b)),
            Prim::Lt => Ok(Const::Bool(a < b)),
            Prim::Le => Ok(Const::Bool(a <= b)),
            Prim::Gt => Ok(Const::Bool(a > b)),
            Prim::Ge => Ok(Const::Bool(a >= b)),
            _ => Err(Fault::Operands),
        }
    }

    fn of_floats(self, a: f32, b: f32) -> Result<Const, Fault> {
        Ok(match self {
            Prim::Add => Const::Float(a + b),
            Prim::Sub => Const::Float(a - b),
            Prim::Mul => Const::Float(a * b),
            Prim::Div => Const::Float(a / b),
            Prim::Eq => Const::Bool(a == b),
            Prim::Ne => Const::Bool(a != b),
            Prim::Lt => Const::Bool(a < b),
            Prim::Le => Const::Bool(a <= b),
            Prim::Gt => Const::Bool(a > b),
            Prim::Ge => Const::Bool(a >= b),
            _ => return Err(Fault::Operands),
        })
    }
}
