//! Arithmetic on integers and floats. Integers are modulo 2^n: what C leaves undefined for signed types is computed on
//! unsigned ones, and types narrower than `int`, which C computes in `int`, are converted back.

use crate::emit::Emitter;
use crate::expr::{Expr, Form, Prec, apply, binary, cast};
use crate::function::Growth;
use crate::ops::{comparison, halves};
use crate::{Result, bug};
use nyala_ir::{Op, Prim};

/// The unsigned type of equal width.
pub(crate) fn unsigned(prim: Prim) -> Prim {
    match prim.bits() {
        8 => Prim::U8,
        16 => Prim::U16,
        32 => Prim::U32,
        _ => Prim::U64,
    }
}

/// A number as an operand of unsigned arithmetic; `true` if C computes in the unsigned type because of it.
fn unsigned_operand(e: &mut Emitter, prim: Prim, x: &Expr) -> (Expr, bool) {
    let to = unsigned(prim);
    match x.form {
        Form::Unsigned(_) => (x.clone().form(Form::Value), true),
        Form::Literal(_) => {
            let value: i128 = x.text.parse().unwrap_or(0);
            let bits = value as u64;
            let bits = if prim.bits() == 64 { bits } else { bits & ((1 << prim.bits()) - 1) };
            (
                Expr { text: format!("{bits}{}", e.dialect.suffix(to)), prec: Prec::Postfix, ..x.clone() }
                    .form(Form::Value),
                true,
            )
        }
        _ => (x.clone(), false),
    }
}

/// The two operands of an operation on unsigned numbers of at least the width of `int`.
fn unsigned_pair(e: &mut Emitter, prim: Prim, a: &Expr, b: &Expr) -> Result<(Expr, Expr)> {
    let (a, first) = unsigned_operand(e, prim, a);
    let (b, second) = unsigned_operand(e, prim, b);
    let (mut a, b) = (e.rendered(a, true)?, e.rendered(b, true)?);
    if !first && !second {
        a = cast(e.types.prim(unsigned(prim))?, &a);
    }
    Ok((a, b))
}

/// A type, the word in names of helpers.
fn word(prim: Prim) -> &'static str {
    prim.name()
}

pub(crate) fn arithmetic(e: &mut Emitter, op: Op, prim: Prim, a: &Expr, b: &Expr) -> Result<Expr> {
    if matches!(op, Op::Div | Op::Rem | Op::PDiv | Op::PRem) {
        return division(e, op, prim, a, b);
    }
    let (mut text, prec) = match op {
        Op::Add => ("+", Prec::Sum),
        Op::Sub => ("-", Prec::Sum),
        _ => ("*", Prec::Product),
    };
    let mut b = b.clone();
    if prim == Prim::F16 {
        return half(e, op, a, text, &b, prec);
    }
    // `a + -1` is `a - 1`.
    if matches!(b.form, Form::Literal(p) if p.is_signed()) && b.text.starts_with('-') && prec == Prec::Sum {
        text = if text == "+" { "-" } else { "+" };
        b.text.remove(0);
        b.prec = Prec::Postfix;
    }
    if prim.is_float() || !prim.is_signed() && prim.bits() >= 32 {
        let (a, b) = (e.rendered(a.clone(), true)?, e.rendered(b, true)?);
        return Ok(binary(&a, text, &b, prec));
    }
    if prim.bits() < 32 {
        // C computes in `int`, where only the product of two 16-bit numbers may overflow.
        let (mut x, y) = (e.rendered(a.clone(), false)?, e.rendered(b, false)?);
        if prim.bits() == 16 && op == Op::Mul {
            x = cast(e.types.prim(Prim::U32)?, &x);
        }
        let ty = e.types.prim(prim)?;
        return Ok(cast(ty, &binary(&x, text, &y, prec)));
    }
    if !e.wrap && !e.is_speculative {
        let (a, b) = (e.rendered(a.clone(), false)?, e.rendered(b, false)?);
        return Ok(binary(&a, text, &b, prec));
    }
    let (a, b) = unsigned_pair(e, prim, a, &b)?;
    Ok(binary(&a, text, &b, prec).form(Form::Unsigned(prim)))
}

/// Halves are computed in single precision, and rounded once.
fn half(e: &mut Emitter, op: Op, a: &Expr, text: &str, b: &Expr, prec: Prec) -> Result<Expr> {
    if let Some(computed) = halves::direct(e, op, &[a, b])? {
        return Ok(computed);
    }
    let (a, b) = (halves::widen(e, Prim::F32, a)?, halves::widen(e, Prim::F32, b)?);
    halves::narrow(e, Prim::F32, &binary(&a, text, &b, prec))
}

/// A quotient or remainder. An integer division that may fault stops the program as the machine's instruction does.
fn division(e: &mut Emitter, op: Op, prim: Prim, a: &Expr, b: &Expr) -> Result<Expr> {
    let is_quotient = matches!(op, Op::Div | Op::PDiv);
    if prim == Prim::F16 {
        if is_quotient {
            return half(e, op, a, "/", b, Prec::Product);
        }
        let name = crate::ops::math::name(e, Op::Rem, Prim::F32)?;
        let (a, b) = (halves::widen(e, Prim::F32, a)?, halves::widen(e, Prim::F32, b)?);
        return halves::narrow(e, Prim::F32, &apply(&name, &[&a, &b]));
    }
    let (a, divisor) = (e.rendered(a.clone(), true)?, e.rendered(b.clone(), true)?);
    if prim.is_float() {
        if is_quotient {
            return Ok(binary(&a, "/", &divisor, Prec::Product));
        }
        let name = crate::ops::math::name(e, Op::Rem, prim)?;
        return Ok(apply(&name, &[&a, &divisor]));
    }
    let is_harmless = match b.form {
        Form::Literal(_) => !matches!(b.text.as_str(), "0" | "-1"),
        _ => matches!(op, Op::Div | Op::Rem),
    };
    // Devices do not stop at a division by zero.
    let is_harmless = is_harmless || e.dialect.division_fault.is_empty();
    let text = if is_quotient { "/" } else { "%" };
    if is_harmless {
        let quotient = binary(&a, text, &divisor, Prec::Product);
        // C computes in `int`: -128 / -1 does not occur, so the quotient is in range.
        return Ok(quotient);
    }
    let stem = if is_quotient { "div" } else { "rem" };
    let name = e.helper(format!("{stem}_{}", word(prim)), |e, name| {
        let ty = e.types.prim(prim)?;
        let least = if prim.is_signed() {
            let least = e.literal(prim, 1u64.wrapping_shl(prim.bits() - 1).wrapping_neg())?;
            let least = e.rendered(least, true)?.text;
            format!(" || (b == -1 && a == {least})")
        } else {
            String::new()
        };
        let fault = e.fault()?;
        Ok(format!("{ty} {name}({ty} a, {ty} b) {{\n    if (b == 0{least}) {fault}();\n    return a {text} b;\n}}"))
    })?;
    Ok(Expr { must: true, ..apply(&name, &[&a, &divisor]) })
}

pub(crate) fn bitwise(e: &mut Emitter, op: Op, prim: Prim, a: &Expr, b: &Expr) -> Result<Expr> {
    if prim == Prim::Bool {
        let (text, prec) = match op {
            Op::And => ("&&", Prec::LogicalAnd),
            Op::Or => ("||", Prec::LogicalOr),
            _ if b.text == "true" => return Ok(a.not()),
            _ => ("!=", Prec::Equality),
        };
        return Ok(binary(a, text, b, prec));
    }
    let (text, prec) = match op {
        Op::And => ("&", Prec::And),
        Op::Or => ("|", Prec::Or),
        _ => ("^", Prec::Xor),
    };
    if matches!(a.form, Form::Unsigned(_)) || matches!(b.form, Form::Unsigned(_)) {
        let (a, b) = unsigned_pair(e, prim, a, b)?;
        return Ok(binary(&a, text, &b, prec).form(Form::Unsigned(prim)));
    }
    let (a, b) = (e.rendered(a.clone(), true)?, e.rendered(b.clone(), true)?);
    Ok(binary(&a, text, &b, prec))
}

pub(crate) fn shift(e: &mut Emitter, op: Op, prim: Prim, a: &Expr, by: &Expr) -> Result<Expr> {
    let most = prim.bits() - 1;
    let by = match by.form {
        Form::Literal(_) => {
            let amount: i128 = by.text.parse().unwrap_or(0);
            Expr { text: (amount as u64 & u64::from(most)).to_string(), prec: Prec::Postfix, ..by.clone() }
                .form(Form::Value)
        }
        _ => {
            let by = e.rendered(by.clone(), true)?;
            binary(&by, "&", &Expr::atom(most.to_string()), Prec::And)
        }
    };
    let narrow = prim.bits() < 32;
    if op == Op::Shr {
        let a = e.rendered(a.clone(), true)?;
        return Ok(binary(&a, ">>", &by, Prec::Shift));
    }
    if !prim.is_signed() && !narrow {
        let a = e.rendered(a.clone(), true)?;
        return Ok(binary(&a, "<<", &by, Prec::Shift));
    }
    let wide = if narrow { Prim::U32 } else { unsigned(prim) };
    let (x, is_unsigned) = if narrow { (a.clone(), false) } else { unsigned_operand(e, prim, a) };
    let mut x = e.rendered(x, true)?;
    if !is_unsigned {
        x = cast(e.types.prim(wide)?, &x);
    }
    let shifted = binary(&x, "<<", &by, Prec::Shift);
    if narrow { Ok(cast(e.types.prim(prim)?, &shifted)) } else { Ok(shifted.form(Form::Unsigned(prim))) }
}

pub(crate) fn compare(e: &mut Emitter, op: Op, prim: Prim, a: &Expr, b: &Expr) -> Result<Expr> {
    let (text, opposite, prec) = comparison(op);
    // `a == true` is `a`.
    if prim == Prim::Bool && matches!(op, Op::Eq | Op::Ne) {
        match (b.text.as_str(), op) {
            ("true", Op::Eq) | ("false", Op::Ne) => return Ok(a.clone()),
            ("false", Op::Eq) | ("true", Op::Ne) => return Ok(a.not()),
            _ => {}
        }
    }
    let (mut a, mut b) = (e.rendered(a.clone(), true)?, e.rendered(b.clone(), true)?);
    if prim == Prim::F16 && halves::are_bits(e) {
        (a, b) = (halves::widen(e, Prim::F32, &a)?, halves::widen(e, Prim::F32, &b)?);
    }
    let found = binary(&a, text, &b, prec);
    // With NaN neither a relation nor its opposite holds.
    let has_opposite = !prim.is_float() || prec == Prec::Equality;
    let inverse = has_opposite.then(|| (binary(&a, opposite, &b, prec).text, prec));
    Ok(Expr { inverse, ..found })
}

pub(crate) fn count(e: &mut Emitter, op: Op, prim: Prim, x: &Expr) -> Result<Expr> {
    let name = e.helper(format!("{}_{}", op.name(), word(prim)), |e, name| {
        let ty = e.types.prim(prim)?;
        let narrow = e.types.prim(unsigned(prim))?;
        let bits = prim.bits();
        let wide = if bits == 64 { 64 } else { 32 };
        let function = |op: Op| {
            let found = e.dialect.counts.iter().find(|c| c.0 == op);
            found.map(|(_, functions)| functions[(bits == 64) as usize])
        };
        let lacks = || bug(format!("`{}`, which the dialect does not count", op.name()));
        let (op, argument) = match function(op) {
            // The zeros below the lowest one become ones, all others zeros.
            None if op == Op::Ctz => (Op::Popcount, format!("({narrow})(~u & (u - 1))")),
            _ => (op, "u".to_string()),
        };
        let function = function(op).ok_or_else(lacks)?;
        let counted = match op {
            Op::Popcount => format!("{function}({argument})"),
            Op::Clz if bits < wide => format!("u == 0 ? {bits} : {function}(u) - {}", wide - bits),
            _ => format!("u == 0 ? {bits} : {function}(u)"),
        };
        Ok(format!("{ty} {name}({ty} x) {{\n    {narrow} u = x;\n    return {counted};\n}}"))
    })?;
    let x = e.rendered(x.clone(), true)?;
    Ok(apply(&name, &[&x]))
}

/// Gathers bits at the ones of a mask, or scatters them to there.
pub(crate) fn deposit(e: &mut Emitter, op: Op, prim: Prim, x: &Expr, mask: &Expr) -> Result<Expr> {
    let name = e.helper(format!("{}_{}", op.name(), word(prim)), |e, name| {
        let (ty, wide) = (e.types.prim(prim)?, e.types.prim(Prim::U64)?);
        let narrow = e.types.prim(unsigned(prim))?;
        let (from, to) = if op == Op::Pext { ("high", "low") } else { ("low", "high") };
        Ok(format!(
            "{ty} {name}({ty} x, {ty} mask) {{
    {wide} bits = ({narrow})x, ones = ({narrow})mask, result = 0;
    for (int high = 0, low = 0; high < {}; high++) {{
        if ((ones >> high & 1) == 0) continue;
        result |= (bits >> {from} & 1) << {to};
        low++;
    }}
    return ({ty})result;
}}",
            prim.bits()
        ))
    })?;
    let (x, mask) = (e.rendered(x.clone(), true)?, e.rendered(mask.clone(), true)?);
    Ok(apply(&name, &[&x, &mask]))
}

/// The text that changes the variable of a `for` between rounds. A test that holds in the round tells that a step by one in its
/// direction does not overflow.
pub(crate) fn step(e: &mut Emitter, var: &Expr, prim: Prim, growth: Growth) -> Result<String> {
    let Growth { op, by, test } = growth;
    let by = prim.normalize(by);
    let one = prim.normalize(1);
    let minus_one = prim.normalize(u64::MAX);
    let up = if op == Op::Add { by == one } else { by == minus_one };
    let down = if op == Op::Add { by == minus_one } else { by == one };
    let bounded_above = matches!(test, Some((Op::Lt, true) | (Op::Gt, false)));
    let bounded_below = matches!(test, Some((Op::Gt, true) | (Op::Lt, false)));
    // Unsigned and narrow types wrap around.
    let wraps = !prim.is_signed() || prim.bits() < 32;
    let name = &var.text;
    if up && (wraps || bounded_above) {
        return Ok(format!("{name}++"));
    }
    if down && (wraps || bounded_below) {
        return Ok(format!("{name}--"));
    }
    let by = e.literal(prim, by)?;
    if wraps && !prim.is_signed() {
        let sign = if op == Op::Add { "+" } else { "-" };
        return Ok(format!("{name} {sign}= {}", by.text));
    }
    e.is_speculative = false;
    let sum = arithmetic(e, op, prim, var, &by)?;
    Ok(format!("{name} = {}", e.rendered(sum, false)?.text))
}

impl Emitter<'_> {
    /// The name of the function that stops the program because of a division.
    pub fn fault(&mut self) -> Result<String> {
        let text = self.dialect.division_fault;
        self.helper("division_fault_i32".into(), |_, name| Ok(text.replace("NAME", name)))
    }
}
