//! The built-in functions: what each is called, what it takes, and what it computes on known values.
//!
//! Separate, since it is one table for names, types and both evaluators.
//!
//! A built-in function `p v̄ k` goes on with `k r`, where `r` is its result. It takes one step of evaluation, which is that `δ`
//! rule; the call of the continuation is another.

use crate::term::{Const, Terms};

macro_rules! prims {
    ($($(#[$meta:meta])* $prim:ident, $name:literal;)*) => {
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Prim { $($(#[$meta])* $prim),* }

        impl Prim {
            pub const ALL: &[Prim] = &[$(Prim::$prim),*];

            pub fn from_name(name: &str) -> Option<Prim> {
                match name { $($name => Some(Prim::$prim),)* _ => None }
            }

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
    /// The number with the other sign.
    Neg, "neg";
    Abs, "abs";
    /// The lesser operand; NaN and zeros as [`Op::Fmin`](nyala_ir::Op::Fmin) has them.
    Min, "min";
    Max, "max";
    Sqrt, "sqrt";
    Floor, "floor";
    Ceil, "ceil";
    Sin, "sin";
    Cos, "cos";
    Tan, "tan";
    Exp, "exp";
    Log, "log";
    Pow, "pow";
    /// The nearest `float`.
    ToFloat, "to_float";
    /// The nearest `double`.
    ToDouble, "to_double";
    /// Toward zero; the nearest `int` of a number that is out of range, 0 of NaN.
    ToInt, "to_int";
    /// `at a i`: an element of an array.
    At, "at";
    /// `field a i n`: a field of an element, which is an aggregate, by its number. Fields of fields count one by one.
    Field, "field";
    /// `shift a i`: the array from that element on.
    Shift, "shift";
    /// `put a i v`: stores an element; the continuation takes nothing.
    Put, "put";
    /// `put_field a i n v`: stores a field.
    PutField, "put_field";
    /// `local n`: a new array of so many elements, which have no values yet. It ends with the function that has it.
    Local, "local";
    /// `print x`: prints a number, a `bool` or a text; the continuation takes nothing. No rule executes it: programs print when
    /// they run.
    Print, "print";
    /// `compile f`: a function that does what `f` does, made of what is known when the program runs ([`site`](crate::site)).
    Compile, "compile";
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

/// A number in a constant aggregate.
fn leaf(terms: &Terms, aggregate: Const, mut n: i32) -> Option<Const> {
    let mut work = vec![aggregate];
    while let Some(part) = work.pop() {
        match part {
            Const::Array(parts, 0) => work.extend(terms.elements(parts).iter().rev()),
            number if n == 0 => return Some(number),
            _ => n -= 1,
        }
    }
    None
}

impl Prim {
    /// How many arguments have to be known; a continuation follows, two after `if`. `exit` takes any arguments.
    pub fn n_operands(self) -> usize {
        match self {
            Prim::Exit => 0,
            Prim::PutField => 4,
            Prim::Put | Prim::Field => 3,
            Prim::Not | Prim::If | Prim::Print | Prim::Local | Prim::Compile => 1,
            Prim::ToFloat | Prim::ToDouble | Prim::ToInt | Prim::Neg | Prim::Abs => 1,
            Prim::Sqrt | Prim::Floor | Prim::Ceil | Prim::Sin | Prim::Cos | Prim::Tan | Prim::Exp | Prim::Log => 1,
            _ => 2,
        }
    }

    pub fn n_args(self) -> usize {
        self.n_operands() + if self == Prim::If { 2 } else { 1 }
    }

    /// Stands between its operands.
    pub fn is_infix(self) -> bool {
        self.n_operands() == 2 && !matches!(self, Prim::At | Prim::Shift | Prim::Min | Prim::Max | Prim::Pow)
    }

    /// No rule executes it.
    pub fn waits(self) -> bool {
        matches!(self, Prim::Exit | Prim::Print | Prim::Local | Prim::Compile)
    }

    /// Takes no `int`s.
    pub fn is_of_floats(self) -> bool {
        matches!(
            self,
            Prim::Sqrt
                | Prim::Floor
                | Prim::Ceil
                | Prim::Sin
                | Prim::Cos
                | Prim::Tan
                | Prim::Exp
                | Prim::Log
                | Prim::Pow
        )
    }

    /// The step that `self` takes with these arguments, `None` where one is no constant.
    pub fn step(self, terms: &Terms, args: &[Option<Const>], is_bound: impl Fn(usize) -> bool) -> Result<Step, Fault> {
        if self.waits() || args.len() != self.n_args() {
            return Err(Fault::Operands);
        }
        let operands = &args[..self.n_operands()];
        if let Some(unbound) = (0..operands.len()).find(|&i| !is_bound(i)) {
            return Err(Fault::Unbound(unbound));
        }
        let result = match *operands {
            [Some(Const::Bool(c))] if self == Prim::If => return Ok(Step::Call(if c { 1 } else { 2 })),
            [Some(Const::Bool(a))] if self == Prim::Not => Const::Bool(!a),
            [Some(Const::Int(a))] => match self {
                Prim::ToFloat => Const::Float(a as f32),
                Prim::ToDouble => Const::Double(a.into()),
                Prim::Neg => Const::Int(a.checked_neg().ok_or(Fault::Overflow)?),
                Prim::Abs => Const::Int(a.checked_abs().ok_or(Fault::Overflow)?),
                _ => return Err(Fault::Operands),
            },
            [Some(Const::Float(a))] => match self {
                Prim::ToDouble => Const::Double(a.into()),
                Prim::ToInt => Const::Int(a as i32),
                // Libraries differ in the last bit of a `double`. Rounded to `float`, their results are nearly always equal.
                _ => Const::Float(self.of_double(a.into())? as f32),
            },
            [Some(Const::Double(a))] => match self {
                Prim::ToFloat => Const::Float(a as f32),
                Prim::ToInt => Const::Int(a as i32),
                _ => Const::Double(self.of_double(a)?),
            },
            [Some(Const::Array(a, start)), Some(Const::Int(i))] => {
                let at = usize::try_from(i64::from(start) + i64::from(i)).map_err(|_| Fault::OutOfBounds)?;
                let elements = terms.elements(a);
                match self {
                    Prim::At => *elements.get(at).ok_or(Fault::OutOfBounds)?,
                    Prim::Shift if at <= elements.len() => Const::Array(a, at as u32),
                    _ => return Err(Fault::OutOfBounds),
                }
            }
            [Some(Const::Array(a, start)), Some(Const::Int(i)), Some(Const::Int(n))] if self == Prim::Field => {
                let at = usize::try_from(i64::from(start) + i64::from(i)).map_err(|_| Fault::OutOfBounds)?;
                let &element = terms.elements(a).get(at).ok_or(Fault::OutOfBounds)?;
                leaf(terms, element, n).ok_or(Fault::Operands)?
            }
            [Some(Const::Array(..)), _, _, ..] => return Err(Fault::ConstantArray),
            [Some(Const::Int(a)), Some(Const::Int(b))] => self.of_ints(a, b)?,
            [Some(Const::Float(a)), Some(Const::Float(b))] => match self {
                // `+ - * /` of two `float`s, computed as `double` and rounded to `float`, are rounded right.
                Prim::Add | Prim::Sub | Prim::Mul | Prim::Div | Prim::Min | Prim::Max | Prim::Pow => {
                    match self.of_doubles(a.into(), b.into())? {
                        Const::Double(r) => Const::Float(r as f32),
                        other => other,
                    }
                }
                _ => self.of_doubles(a.into(), b.into())?,
            },
            [Some(Const::Double(a)), Some(Const::Double(b))] => self.of_doubles(a, b)?,
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
            Prim::Min => Ok(Const::Int(a.min(b))),
            Prim::Max => Ok(Const::Int(a.max(b))),
            Prim::Eq => Ok(Const::Bool(a == b)),
            Prim::Ne => Ok(Const::Bool(a != b)),
            Prim::Lt => Ok(Const::Bool(a < b)),
            Prim::Le => Ok(Const::Bool(a <= b)),
            Prim::Gt => Ok(Const::Bool(a > b)),
            Prim::Ge => Ok(Const::Bool(a >= b)),
            _ => Err(Fault::Operands),
        }
    }

    fn of_double(self, a: f64) -> Result<f64, Fault> {
        Ok(match self {
            Prim::Neg => -a,
            Prim::Abs => a.abs(),
            Prim::Sqrt => a.sqrt(),
            Prim::Floor => a.floor(),
            Prim::Ceil => a.ceil(),
            Prim::Sin => a.sin(),
            Prim::Cos => a.cos(),
            Prim::Tan => a.tan(),
            Prim::Exp => a.exp(),
            Prim::Log => a.ln(),
            _ => return Err(Fault::Operands),
        })
    }

    fn of_doubles(self, a: f64, b: f64) -> Result<Const, Fault> {
        Ok(match self {
            Prim::Add => Const::Double(a + b),
            Prim::Sub => Const::Double(a - b),
            Prim::Mul => Const::Double(a * b),
            Prim::Div => Const::Double(a / b),
            Prim::Min if a == b => Const::Double(if a.is_sign_negative() { a } else { b }),
            Prim::Max if a == b => Const::Double(if a.is_sign_negative() { b } else { a }),
            Prim::Min => Const::Double(a.min(b)),
            Prim::Max => Const::Double(a.max(b)),
            Prim::Pow => Const::Double(a.powf(b)),
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
