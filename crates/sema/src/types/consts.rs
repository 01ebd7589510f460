//! Constants among types: the lengths of arrays, and the arguments of `const` parameters. As types of their own kind,
//! they are substituted, unified and told apart in instances as all other types are.
//!
//! An expression over parameters, `{N + 1}`, is an operation until its parameters have values. Constants are integers
//! without limit, or `bool`: only the parameter or length that takes one limits it.

use super::*;
use nyala_syntax::ast::BinaryOp;

/// The value of a constant.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Const {
    Int(i128),
    Bool(bool),
}

impl Const {
    pub fn show(self) -> String {
        match self {
            Const::Int(n) => n.to_string(),
            Const::Bool(b) => b.to_string(),
        }
    }

    /// Whether values of this type include the constant.
    pub fn fits(self, prim: Prim) -> bool {
        match self {
            Const::Bool(_) => prim == Prim::Bool,
            Const::Int(n) if prim.is_int() && prim.is_signed() => {
                let half = 1i128 << (prim.bits() - 1);
                (-half..half).contains(&n)
            }
            Const::Int(n) => prim.is_int() && (0..1i128 << prim.bits()).contains(&n),
        }
    }

    pub fn bits(self) -> u64 {
        match self {
            Const::Int(n) => n as u64,
            Const::Bool(b) => b.into(),
        }
    }
}

/// The reason why there is no such type: a constant in it has a value that it must not have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    Length(Const),
    Lanes(Const),
    /// The operation has no result for these operands.
    Operation(BinaryOp, Const, Const),
}

/// Limit on the lengths of arrays.
const MAX_LENGTH: i128 = 1 << 40;
/// Limit on the lanes of a `simd` type.
pub const MAX_LANES: u64 = 64;

/// The result of an operation. `None` if there is none, or none of reasonable size.
fn fold(op: BinaryOp, a: Const, b: Const) -> Option<Const> {
    use BinaryOp::*;
    let (a, b) = match (a, b) {
        (Const::Int(a), Const::Int(b)) => (a, b),
        (Const::Bool(a), Const::Bool(b)) => {
            return Some(Const::Bool(match op {
                And | BitAnd => a & b,
                Or | BitOr => a | b,
                BitXor | Ne => a != b,
                Eq => a == b,
                _ => return None,
            }));
        }
        _ => return None,
    };
    let shift = || u32::try_from(b).ok().filter(|b| *b < 64);
    let result = match op {
        Add => a.checked_add(b)?,
        Sub => a.checked_sub(b)?,
        Mul => a.checked_mul(b)?,
        Div => a.checked_div(b)?,
        Rem => a.checked_rem(b)?,
        Shl => a.checked_mul(1i128 << shift()?)?,
        Shr => a >> shift()?,
        BitAnd => a & b,
        BitOr => a | b,
        BitXor => a ^ b,
        Eq => return Some(Const::Bool(a == b)),
        Ne => return Some(Const::Bool(a != b)),
        Lt => return Some(Const::Bool(a < b)),
        Le => return Some(Const::Bool(a <= b)),
        Gt => return Some(Const::Bool(a > b)),
        Ge => return Some(Const::Bool(a >= b)),
        And | Or => return None,
    };
    Some(Const::Int(result))
}

impl TypeTable {
    pub fn int(&mut self, n: u64) -> Ty {
        self.mk(Kind::Const(Const::Int(n.into())))
    }

    pub fn array(&mut self, elem: Ty, n: u64) -> Ty {
        let n = self.int(n);
        self.mk(Kind::Array(elem, n))
    }

    /// The value of a constant, if it is known.
    pub fn as_const(&self, ty: Ty) -> Option<Const> {
        match self.kinds[self.shallow(ty).0 as usize] {
            Kind::Const(value) => Some(value),
            _ => None,
        }
    }

    /// The length of an array or the number of lanes, in a type without parameters.
    pub fn length(&self, ty: Ty) -> u64 {
        match self.as_const(ty) {
            Some(Const::Int(n)) => n as u64,
            _ => 0,
        }
    }

    /// Whether a type or constant contains an operation.
    pub fn has_operation(&mut self, ty: Ty) -> bool {
        let mut seen = rustc_hash::FxHashSet::default();
        let mut work = vec![self.resolve(ty)];
        while let Some(ty) = work.pop() {
            if !self.has_param[ty.0 as usize] || !seen.insert(ty) {
                continue;
            }
            match &self.kinds[ty.0 as usize] {
                Kind::Operation(..) => return true,
                kind => Self::children(kind, &mut |t| work.push(t)),
            }
        }
        false
    }

    /// The operation, or its result. `None` if it has none for these operands.
    pub fn operation(&mut self, op: BinaryOp, a: Ty, b: Ty) -> Option<Ty> {
        match (self.as_const(a), self.as_const(b)) {
            (Some(a), Some(b)) => {
                let value = fold(op, a, b)?;
                Some(self.mk(Kind::Const(value)))
            }
            _ => Some(self.mk(Kind::Operation(op, a, b))),
        }
    }

    /// The table for instances. Types with an impossible constant have another one in its place there, so that code
    /// can be made: the error is reported, but code of other types would be wrong in ways of its own.
    pub fn for_lowering(&self) -> TypeTable {
        TypeTable { replaces_faults: true, ..self.clone() }
    }

    /// The kind in place of one with an impossible constant.
    pub(super) fn possible(&mut self, kind: Kind) -> Option<Kind> {
        if !self.replaces_faults {
            return None;
        }
        let one = self.int(1);
        match kind {
            Kind::Array(elem, _) => Some(Kind::Array(elem, one)),
            Kind::Simd(elem, _) => Some(Kind::Simd(elem, one)),
            _ => Some(Kind::Const(Const::Int(1))),
        }
    }

    /// A simpler kind than one that contains constants, if there is one. `Err` if a constant has a value that it must
    /// not have.
    pub(super) fn check_consts(&self, kind: &Kind) -> Result<Option<Kind>, Fault> {
        match *kind {
            Kind::Array(_, n) => match self.as_const(n) {
                Some(Const::Int(n)) if (0..MAX_LENGTH).contains(&n) => {}
                Some(n) => return Err(Fault::Length(n)),
                None => {}
            },
            Kind::Simd(_, n) => match self.as_const(n) {
                Some(Const::Int(n)) if (1..=i128::from(MAX_LANES)).contains(&n) => {}
                Some(n) => return Err(Fault::Lanes(n)),
                None => {}
            },
            Kind::Operation(op, a, b) => match (self.as_const(a), self.as_const(b)) {
                (Some(a), Some(b)) => {
                    return fold(op, a, b).map(|value| Some(Kind::Const(value))).ok_or(Fault::Operation(op, a, b));
                }
                // `1 + N` is `N + 1`.
                (Some(_), None) if matches!(op, BinaryOp::Add | BinaryOp::Mul) => {
                    return Ok(Some(Kind::Operation(op, b, a)));
                }
                _ => {}
            },
            _ => {}
        }
        Ok(None)
    }

    /// Whether two constants are equal, of which at least one is an operation. Nothing is inferred from operations: if
    /// they contain open parts, the constants are compared once these are known.
    pub(super) fn unify_operations(&mut self, a: Ty, b: Ty) -> bool {
        let (a, b) = (self.resolve(a), self.resolve(b));
        if a == b || a == TypeTable::ERROR || b == TypeTable::ERROR {
            return true;
        }
        let open = self.has_var[a.0 as usize] || self.has_var[b.0 as usize];
        if open {
            self.equations.push((a, b));
        }
        open
    }
}
