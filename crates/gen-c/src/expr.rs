//! C expressions under construction: a text, its precedence, and what decides whether it may be nested in another expression. Separate
//! from the operations, since these need only a few ways to combine texts.
//!
//! An expression has one of a few forms. The address of a place is kept as the text of the place: `&p->x` is loaded as
//! `p->x`, not as `*&p->x`. Signed arithmetic is kept as the unsigned expression that computes it, so that a chain of
//! operations converts once: `(int)((unsigned)a * b + c)`.

use nyala_ir::Prim;

/// C's levels of precedence, weakest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Prec {
    Conditional,
    LogicalOr,
    LogicalAnd,
    Or,
    Xor,
    And,
    Equality,
    Relation,
    Shift,
    Sum,
    Product,
    Unary,
    Postfix,
}

/// What the text of an expression denotes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    /// The value.
    Value,
    /// The place whose address is the value.
    Place,
    /// The place of an array, or of a struct around it. The value is the address of the first element.
    ArrayPlace,
    /// An unsigned number that becomes the value by a conversion to this signed type.
    Unsigned(Prim),
    /// A literal of this type, without its suffix.
    Literal(Prim),
    /// The parts of an aggregate of the type with this name, in braces.
    Braces(String),
}

/// An expression.
#[derive(Clone, Debug)]
pub(crate) struct Expr {
    pub text: String,
    pub prec: Prec,
    pub form: Form,
    /// The variables that the text names.
    pub vars: Vec<u32>,
    /// The depth of nesting.
    pub depth: u32,
    /// It reads memory, so no write may come between this point and its use.
    pub reads: bool,
    /// It has to be evaluated exactly once, even if its value is not used: it contains a call, or may fault.
    pub must: bool,
    /// For a condition: the text of its negation, with the precedence.
    pub inverse: Option<(String, Prec)>,
    /// The name, the operator and the right side, if the text is `name op right`.
    pub update: Option<(String, String, String)>,
}

impl Expr {
    /// A value with this text.
    pub fn new(text: impl Into<String>, prec: Prec) -> Expr {
        Expr {
            text: text.into(),
            prec,
            form: Form::Value,
            vars: Vec::new(),
            depth: 0,
            reads: false,
            must: false,
            inverse: None,
            update: None,
        }
    }

    /// A name, or another text that binds as tightly as one.
    pub fn atom(text: impl Into<String>) -> Expr {
        Expr::new(text, Prec::Postfix)
    }

    /// A variable.
    pub fn var(name: &str, var: u32) -> Expr {
        Expr { vars: vec![var], ..Expr::atom(name) }
    }

    /// The expression with another form.
    pub fn form(self, form: Form) -> Expr {
        Expr { form, ..self }
    }

    /// Adds the variables, effects and depth of its operands.
    pub fn of(self, operands: &[&Expr]) -> Expr {
        let mut e = self;
        for operand in operands {
            e.vars.extend(&operand.vars);
            e.reads |= operand.reads;
            e.must |= operand.must;
            e.depth = e.depth.max(operand.depth + 1);
        }
        e.vars.sort_unstable();
        e.vars.dedup();
        e
    }

    /// The text as an operand of something that binds this tightly.
    pub fn at(&self, prec: Prec) -> String {
        if self.prec < prec { format!("({})", self.text) } else { self.text.clone() }
    }

    /// As an operand of a binary operator. Compilers warn where people may not know which operator binds more tightly.
    pub fn operand(&self, of: Prec, is_right: bool) -> String {
        let is_binary = self.prec < Prec::Unary;
        let confusing = match of {
            Prec::Shift | Prec::And | Prec::Xor | Prec::Or => is_binary && self.prec != of,
            // Compilers accept `a + b < c` without parentheses, but warn of `a < b == c`.
            Prec::Equality | Prec::Relation => is_binary && self.prec < Prec::Sum,
            Prec::LogicalOr => self.prec == Prec::LogicalAnd,
            _ => false,
        };
        let weak = self.prec < of || is_right && self.prec == of;
        if confusing || weak { format!("({})", self.text) } else { self.text.clone() }
    }

    /// The negation of a condition.
    pub fn not(&self) -> Expr {
        let opposite = match &self.inverse {
            Some((text, prec)) => Expr::new(text.clone(), *prec),
            None => Expr::new(format!("!{}", self.at(Prec::Unary)), Prec::Unary),
        };
        let inverse = Some((self.text.clone(), self.prec));
        Expr { inverse, vars: self.vars.clone(), depth: self.depth, reads: self.reads, must: self.must, ..opposite }
    }
}

/// A binary operation. Associative operators need no parentheses on the right.
pub(crate) fn binary(a: &Expr, op: &str, b: &Expr, prec: Prec) -> Expr {
    let associates = matches!(op, "&&" | "||" | "&" | "|" | "^");
    let is_assignable = prec >= Prec::Shift || matches!(op, "&" | "|" | "^");
    let update = is_assignable.then(|| (a.text.clone(), op.to_string(), b.text.clone()));
    let text = format!("{} {op} {}", a.operand(prec, false), b.operand(prec, !associates));
    Expr { update, ..Expr::new(text, prec) }.of(&[a, b])
}

/// A function applied to arguments.
pub(crate) fn apply(name: &str, args: &[&Expr]) -> Expr {
    let texts: Vec<&str> = args.iter().map(|a| a.text.as_str()).collect();
    Expr::atom(format!("{name}({})", texts.join(", "))).of(args)
}

/// A conversion.
pub(crate) fn cast(ty: &str, e: &Expr) -> Expr {
    Expr::new(format!("({ty}){}", e.at(Prec::Unary)), Prec::Unary).of(&[e])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parentheses_stand_where_they_must() {
        let [a, b, c] = ["a", "b", "c"].map(Expr::atom);
        let sum = binary(&a, "+", &b, Prec::Sum);
        assert_eq!(binary(&sum, "*", &c, Prec::Product).text, "(a + b) * c");
        assert_eq!(binary(&sum, "-", &c, Prec::Sum).text, "a + b - c");
        assert_eq!(binary(&c, "-", &sum, Prec::Sum).text, "c - (a + b)");
        assert_eq!(binary(&sum, "<<", &c, Prec::Shift).text, "(a + b) << c");
        assert_eq!(binary(&sum, "<", &c, Prec::Relation).text, "a + b < c");
        let less = binary(&a, "<", &b, Prec::Relation);
        assert_eq!(binary(&less, "==", &c, Prec::Equality).text, "(a < b) == c");
        let and = binary(&less, "&&", &c, Prec::LogicalAnd);
        assert_eq!(and.text, "a < b && c");
        assert_eq!(binary(&and, "||", &c, Prec::LogicalOr).text, "(a < b && c) || c");
        assert_eq!(binary(&binary(&a, "&", &b, Prec::And), "|", &c, Prec::Or).text, "(a & b) | c");
        assert_eq!(cast("int", &sum).text, "(int)(a + b)");
        assert_eq!(less.not().text, "!(a < b)");
    }
}
