//! Folding against arithmetic written down once more, with Rust's own types and from the language's rules, not with what the
//! folder and the interpreter share: all pairs of 8-bit numbers, edges and random numbers of the others; then every rule
//! with an unknown operand, by giving the folded graph every value.

use nyala_ir::{Node, Op, Prim, Val, World};

const ARITHMETIC: &[Op] = &[Op::Add, Op::Sub, Op::Mul, Op::Div, Op::Rem, Op::And, Op::Or, Op::Xor, Op::Shl, Op::Shr];
const COMPARISONS: &[Op] = &[Op::Eq, Op::Ne, Op::Lt, Op::Le, Op::Gt, Op::Ge];
const INTEGERS: &[Prim] = &[Prim::I8, Prim::I16, Prim::I32, Prim::I64, Prim::U8, Prim::U16, Prim::U32, Prim::U64];
const FLOATS: &[Prim] = &[Prim::F16, Prim::F32, Prim::F64];

// The reference.

/// A number as its type's, bits as worlds have them: integers sign- or zero-extended.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Number {
    Bool(bool),
    Int(i128),
    Float(f64),
}

fn number(prim: Prim, bits: u64) -> Number {
    match prim {
        Prim::Bool => Number::Bool(bits == 1),
        Prim::I8 => Number::Int((bits as i8).into()),
        Prim::I16 => Number::Int((bits as i16).into()),
        Prim::I32 => Number::Int((bits as i32).into()),
        Prim::I64 => Number::Int((bits as i64).into()),
        Prim::U8 => Number::Int((bits as u8).into()),
        Prim::U16 => Number::Int((bits as u16).into()),
        Prim::U32 => Number::Int((bits as u32).into()),
        Prim::U64 => Number::Int(bits.into()),
        Prim::F16 => Number::Float(half_value(bits as u16)),
        Prim::F32 => Number::Float(f32::from_bits(bits as u32).into()),
        Prim::F64 => Number::Float(f64::from_bits(bits)),
    }
}

/// Least and largest of a type of integers.
fn range(prim: Prim) -> (i128, i128) {
    match prim {
        Prim::I8 => (i8::MIN.into(), i8::MAX.into()),
        Prim::I16 => (i16::MIN.into(), i16::MAX.into()),
        Prim::I32 => (i32::MIN.into(), i32::MAX.into()),
        Prim::I64 => (i64::MIN.into(), i64::MAX.into()),
        Prim::U8 => (0, u8::MAX.into()),
        Prim::U16 => (0, u16::MAX.into()),
        Prim::U32 => (0, u32::MAX.into()),
        _ => (0, u64::MAX.into()),
    }
}

/// The bits of an integer modulo 2^n.
fn wrapped(prim: Prim, i: i128) -> u64 {
    match prim {
        Prim::I8 => i as i8 as i64 as u64,
        Prim::I16 => i as i16 as i64 as u64,
        Prim::I32 => i as i32 as i64 as u64,
        Prim::I64 => i as i64 as u64,
        Prim::U8 => (i as u8).into(),
        Prim::U16 => (i as u16).into(),
        Prim::U32 => (i as u32).into(),
        _ => i as u64,
    }
}

/// The value of a half, by its definition.
fn half_value(bits: u16) -> f64 {
    let (sign, exponent, fraction) = (bits >> 15, i32::from(bits >> 10 & 31), f64::from(bits & 1023));
    let magnitude = match exponent {
        0 => fraction / 1024.0 * 2f64.powi(-14),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        e => (1.0 + fraction / 1024.0) * 2f64.powi(e - 15),
    };
    if sign == 1 { -magnitude } else { magnitude }
}

/// The half that is nearest to a number, of two the even one; infinity stands where the next half would be.
fn nearest_half(x: f64) -> u64 {
    if x.is_nan() {
        return 0x7e00;
    }
    let sign = if x.is_sign_negative() { 0x8000 } else { 0 };
    let x = x.abs();
    let value = |h: u16| if h == 0x7c00 { 65536.0 } else { half_value(h) };
    let (mut low, mut high) = (0u16, 0x7c00u16);
    if x >= 65536.0 {
        return sign | 0x7c00;
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if value(middle) <= x { low = middle } else { high = middle }
    }
    let (down, up) = (x - value(low), value(high) - x);
    sign | u64::from(if down < up || (down == up && low % 2 == 0) { low } else { high })
}

fn float_bits(prim: Prim, x: f64) -> u64 {
    match prim {
        Prim::F16 => nearest_half(x),
        Prim::F32 => (x as f32).to_bits().into(),
        _ => x.to_bits(),
    }
}

/// The result of an operation, none where it is undefined, and whether it overflows.
fn reference(op: Op, prim: Prim, a: u64, b: u64) -> (Option<u64>, bool) {
    let bits = match (number(prim, a), number(prim, b)) {
        (Number::Bool(x), Number::Bool(y)) => match op {
            Op::And => x & y,
            Op::Or => x | y,
            Op::Xor | Op::Ne => x != y,
            Op::Eq => x == y,
            Op::Lt => !x & y,
            Op::Le => !x | y,
            Op::Gt => x & !y,
            Op::Ge => x | !y,
            _ => panic!("no operation on bools"),
        }
        .into(),
        (Number::Float(x), Number::Float(y)) => match op {
            // Twice the precision and more: rounded to less, the result is the same.
            Op::Add if prim == Prim::F32 => u64::from((x as f32 + y as f32).to_bits()),
            Op::Sub if prim == Prim::F32 => u64::from((x as f32 - y as f32).to_bits()),
            Op::Mul if prim == Prim::F32 => u64::from((x as f32 * y as f32).to_bits()),
            Op::Div if prim == Prim::F32 => u64::from((x as f32 / y as f32).to_bits()),
            Op::Add => float_bits(prim, x + y),
            Op::Sub => float_bits(prim, x - y),
            Op::Mul => float_bits(prim, x * y),
            Op::Div => float_bits(prim, x / y),
            Op::Rem => float_bits(prim, x % y),
            Op::Eq => (x == y).into(),
            Op::Ne => (x != y).into(),
            Op::Lt => (x < y).into(),
            Op::Le => (x <= y).into(),
            Op::Gt => (x > y).into(),
            Op::Ge => (x >= y).into(),
            _ => panic!("no operation on floats"),
        },
        (Number::Int(x), Number::Int(y)) => {
            let (least, largest) = range(prim);
            let width = i128::from(prim.bits());
            // Shifts by the width or more are masked.
            let amount = y & (width - 1);
            let exact = match op {
                Op::Add => x + y,
                Op::Sub => x - y,
                // A product of unsigned 64-bit numbers has 128 bits, one more than `i128` has beside its sign.
                Op::Mul => x.wrapping_mul(y),
                Op::Div | Op::Rem if y == 0 || (x == least && y == -1) => return (None, false),
                Op::Div => x / y,
                Op::Rem => x % y,
                Op::And => x & y,
                Op::Or => x | y,
                Op::Xor => x ^ y,
                Op::Shl => return (Some(wrapped(prim, x << amount)), false),
                Op::Shr => x >> amount,
                Op::Eq => return (Some((x == y).into()), false),
                Op::Ne => return (Some((x != y).into()), false),
                Op::Lt => return (Some((x < y).into()), false),
                Op::Le => return (Some((x <= y).into()), false),
                Op::Gt => return (Some((x > y).into()), false),
                Op::Ge => return (Some((x >= y).into()), false),
                _ => panic!("no operation on integers"),
            };
            let overflows = least < 0 && !(least..=largest).contains(&exact);
            return (Some(wrapped(prim, exact)), overflows);
        }
        _ => panic!("operands of one type"),
    };
    (Some(bits), false)
}

fn reference_cast(from: Prim, to: Prim, bits: u64) -> u64 {
    match number(from, bits) {
        Number::Bool(b) if to.is_float() => float_bits(to, b.into()),
        Number::Bool(b) => b.into(),
        Number::Int(i) if to == Prim::Bool => (i != 0).into(),
        // 64-bit integers are rounded to single precision in one step.
        Number::Int(i) if to == Prim::F32 => (i as f32).to_bits().into(),
        Number::Int(i) if to.is_float() => float_bits(to, i as f64),
        Number::Int(i) => wrapped(to, i),
        Number::Float(x) if to == Prim::Bool => (x != 0.0).into(),
        Number::Float(x) if to.is_float() => float_bits(to, x),
        // Saturates; what is no number is 0.
        Number::Float(x) => {
            let (least, largest) = range(to);
            wrapped(to, (x as i128).clamp(least, largest))
        }
    }
}

/// Which NaN it is, is not specified.
fn same(prim: Prim, a: u64, b: u64) -> bool {
    let is_nan = |bits| matches!(number(prim, bits), Number::Float(x) if x.is_nan());
    a == b || (is_nan(a) && is_nan(b))
}

// Values.

struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}

/// All values of up to 8 bits; of more edges and random ones.
fn values(prim: Prim, n_random: usize) -> Vec<u64> {
    match prim {
        Prim::Bool => return vec![0, 1],
        Prim::I8 | Prim::U8 => return (0..256).map(|i| wrapped(prim, i)).collect(),
        _ => {}
    }
    let mut rng = Rng(0x5EED + prim.bits() as u64);
    let mut bits = Vec::new();
    if prim.is_float() {
        let edges = [
            0.0,
            1.0,
            2.0,
            0.5,
            1.5,
            3.0,
            0.1,
            127.0,
            128.0,
            255.5,
            256.0,
            2048.0,
            2049.0,
            32768.0,
            65504.0,
            65519.9,
            65520.0,
            6.0e-8,
            2.9e-8,
            6.1e-5,
            16777217.0,
            2147483647.0,
            2147483648.0,
            4294967296.0,
            9223372036854775807.0,
            18446744073709551615.0,
            1e-45,
            1.1754943508222875e-38,
            f32::MAX.into(),
            f64::MIN_POSITIVE,
            f64::MAX,
            f64::INFINITY,
            f64::NAN,
        ];
        bits.extend(edges.iter().flat_map(|&x| [float_bits(prim, x), float_bits(prim, -x)]));
        let mask = if prim.bits() == 64 { u64::MAX } else { (1 << prim.bits()) - 1 };
        bits.extend((0..n_random).map(|_| rng.next() & mask));
    } else {
        let (least, largest) = range(prim);
        for i in (0..prim.bits()).step_by(7).chain([prim.bits() - 1]) {
            bits.extend([1i128 << i, (1 << i) - 1, -(1 << i)].map(|x| wrapped(prim, x)));
        }
        bits.extend([least, least + 1, largest, largest - 1, 0, 1, 2, 3, 10, -1, -2, -7].map(|x| wrapped(prim, x)));
        // As many small numbers as large ones.
        bits.extend((0..n_random).map(|_| wrapped(prim, i128::from(rng.next() >> (rng.next() % 64)))));
    }
    bits.sort_unstable();
    bits.dedup();
    bits
}

fn fits(op: Op, prim: Prim) -> bool {
    match op {
        Op::Shl | Op::Shr => prim.is_int(),
        Op::Add | Op::Sub | Op::Mul | Op::Div | Op::Rem => prim != Prim::Bool,
        Op::And | Op::Or | Op::Xor => !prim.is_float(),
        _ => true,
    }
}

/// A world, its `mem`, and two unknown numbers of a type.
fn world(prim: Prim) -> (World, Val, [Val; 2]) {
    let mut w = World::new();
    let (mem, ty) = (w.types.mem(), w.types.prim(prim));
    let ty = w.types.cn(&[mem, ty, ty]);
    let k = w.declare("k", ty, &[]);
    let params = [w.param(k, 1), w.param(k, 2)];
    let mem = w.param(k, 0);
    (w, mem, params)
}

#[test]
fn operations_on_literals() {
    for &prim in INTEGERS.iter().chain(FLOATS).chain(&[Prim::Bool]) {
        let all = values(prim, 60);
        for &op in ARITHMETIC.iter().chain(COMPARISONS).filter(|&&op| fits(op, prim)) {
            let (mut w, mem, _) = world(prim);
            for &a in &all {
                for &b in &all {
                    let (expected, overflows) = reference(op, prim, a, b);
                    let (x, y) = (w.lit_prim(prim, a), w.lit_prim(prim, b));
                    let warnings = w.fold_warnings.len();
                    // Integers are divided where that may fault.
                    let folded = match op {
                        Op::Div if prim.is_int() => w.op(Op::PDiv, &[mem, x, y]),
                        Op::Rem if prim.is_int() => w.op(Op::PRem, &[mem, x, y]),
                        _ => w.op(op, &[x, y]),
                    };
                    let name = format!("{} {}({a:x}, {b:x})", prim.name(), op.name());
                    let to = if op.is_comparison() { Prim::Bool } else { prim };
                    // Overflow is left to the run.
                    match (w.as_lit(folded), expected.filter(|_| !overflows)) {
                        (Some(found), Some(expected)) => {
                            assert!(same(to, found, expected), "{name} is {found:x}, not {expected:x}")
                        }
                        (None, None) => {}
                        (found, expected) => panic!("{name} is {found:x?}, not {expected:x?}"),
                    }
                    let divides = matches!(op, Op::Div | Op::Rem) && expected.is_none();
                    let shifts = matches!(op, Op::Shl | Op::Shr) && b >= prim.bits().into();
                    let warns = overflows || divides || shifts;
                    assert_eq!(w.fold_warnings.len() > warnings, warns, "{name}: a warning");
                    w.fold_warnings.clear();
                }
            }
        }
    }
}

#[test]
fn casts_of_literals() {
    let all = || INTEGERS.iter().chain(FLOATS).chain(&[Prim::Bool]).copied();
    for from in all() {
        let mut w = World::new();
        let bits = if from == Prim::F16 { (0..=0xffff).collect() } else { values(from, 3000) };
        for to in all() {
            let ty = w.types.prim(to);
            for &bits in &bits {
                let x = w.lit_prim(from, bits);
                let folded = w.op_ty(Op::Cast, ty, &[x]);
                let (found, expected) = (w.as_lit(folded), reference_cast(from, to, bits));
                assert!(
                    found.is_some_and(|found| same(to, found, expected)),
                    "{}({bits:x}) as {} is {found:x?}, not {expected:x}",
                    from.name(),
                    to.name()
                );
            }
        }
    }
}

#[test]
fn counts_of_bits() {
    for &prim in INTEGERS {
        let mut w = World::new();
        for bits in values(prim, 2000) {
            let x = w.lit_prim(prim, bits);
            // Bit by bit.
            let width = prim.bits();
            let bit = |i: u32| bits >> i & 1 == 1;
            let expected = [
                (Op::Popcount, (0..width).filter(|&i| bit(i)).count()),
                (Op::Clz, (0..width).rev().take_while(|&i| !bit(i)).count()),
                (Op::Ctz, (0..width).take_while(|&i| !bit(i)).count()),
            ];
            for (op, expected) in expected {
                let folded = w.op(op, &[x]);
                assert_eq!(w.as_lit(folded), Some(expected as u64), "{} {}({bits:x})", prim.name(), op.name());
            }
        }
    }
}

#[test]
fn moved_bits() {
    for &prim in INTEGERS {
        let mut w = World::new();
        let values = values(prim, 60);
        for &bits in &values {
            for &mask in &values {
                let (x, y) = (w.lit_prim(prim, bits), w.lit_prim(prim, mask));
                // The bits in the order of the mask's ones, one by one.
                let ones: Vec<u32> = (0..prim.bits()).filter(|&i| mask >> i & 1 == 1).collect();
                let pext = ones.iter().enumerate().fold(0, |r, (low, &high)| r | (bits >> high & 1) << low);
                let pdep = ones.iter().enumerate().fold(0, |r, (low, &high)| r | (bits >> low & 1) << high);
                for (op, expected) in [(Op::Pext, pext), (Op::Pdep, pdep)] {
                    let folded = w.op(op, &[x, y]);
                    assert_eq!(w.as_lit(folded), Some(prim.normalize(expected)), "{} {bits:x} {mask:x}", op.name());
                }
            }
        }
    }
}

#[test]
fn bits_of_bools() {
    let mut w = World::new();
    let (bool, u64, u8) = (w.types.bool(), w.types.prim(Prim::U64), w.types.prim(Prim::U8));
    for n in [2, 8, 33, 64] {
        let ty = w.types.vector(Prim::Bool, n);
        for holds in [|i: u32| i % 3 == 1, |_| true, |_| false, |i| i == 0] {
            let lanes: Vec<Val> = (0..n).map(|i| w.lit(bool, holds(i) as u64)).collect();
            let vector = w.op_ty(Op::Array, ty, &lanes);
            let expected = (0..n).fold(0u64, |bits, i| bits | u64::from(holds(i)) << i);
            let (all, low) = (w.op_ty(Op::Bits, u64, &[vector]), w.op_ty(Op::Bits, u8, &[vector]));
            assert_eq!((w.as_lit(all), w.as_lit(low)), (Some(expected), Some(expected & 255)));
        }
    }
}

// Unknown operands.

/// An expression as it was before folding.
#[derive(Clone, Debug)]
enum Expr {
    Param(usize, Prim),
    Lit(u64, Prim),
    Op(Op, Box<Expr>, Box<Expr>),
    Cast(Prim, Box<Expr>),
    Select(Box<Expr>, Box<Expr>, Box<Expr>),
}

impl Expr {
    fn prim(&self) -> Prim {
        match self {
            Expr::Param(_, prim) | Expr::Lit(_, prim) | Expr::Cast(prim, _) => *prim,
            Expr::Op(op, ..) if op.is_comparison() => Prim::Bool,
            Expr::Op(_, a, _) => a.prim(),
            Expr::Select(_, a, _) => a.prim(),
        }
    }

    fn build(&self, w: &mut World, params: &[Val; 2]) -> Val {
        match self {
            Expr::Param(i, _) => params[*i],
            Expr::Lit(bits, prim) => w.lit_prim(*prim, *bits),
            Expr::Op(op, a, b) => {
                let args = [a.build(w, params), b.build(w, params)];
                w.op(*op, &args)
            }
            Expr::Cast(prim, a) => {
                let (ty, a) = (w.types.prim(*prim), a.build(w, params));
                w.op_ty(Op::Cast, ty, &[a])
            }
            Expr::Select(c, a, b) => {
                let args = [c.build(w, params), a.build(w, params), b.build(w, params)];
                w.op(Op::Select, &args)
            }
        }
    }

    /// None if something in it is undefined or overflows.
    fn eval(&self, inputs: [u64; 2]) -> Option<u64> {
        match self {
            Expr::Param(i, _) => Some(inputs[*i]),
            Expr::Lit(bits, _) => Some(*bits),
            Expr::Op(op, a, b) => apply(*op, a.prim(), a.eval(inputs)?, b.eval(inputs)?),
            Expr::Cast(to, a) => Some(reference_cast(a.prim(), *to, a.eval(inputs)?)),
            Expr::Select(c, a, b) => {
                let (c, a, b) = (c.eval(inputs)?, a.eval(inputs)?, b.eval(inputs)?);
                Some(if c == 1 { a } else { b })
            }
        }
    }
}

fn apply(op: Op, prim: Prim, a: u64, b: u64) -> Option<u64> {
    match reference(op, prim, a, b) {
        (result, false) => result,
        (_, true) => None,
    }
}

/// The value of a folded graph; none as for [`Expr::eval`].
fn eval_graph(w: &World, v: Val, params: &[Val; 2], inputs: [u64; 2]) -> Option<u64> {
    if let Some(i) = params.iter().position(|&p| p == v) {
        return Some(inputs[i]);
    }
    if let Some(bits) = w.as_lit(v) {
        return Some(bits);
    }
    let Node::Op(op) = w.node(v) else { panic!("neither a parameter nor a literal nor an operation") };
    let mut args = Vec::new();
    for &a in w.args(v) {
        args.push(eval_graph(w, a, params, inputs)?);
    }
    let prim = |v: Val| w.prim(v).expect("a number");
    match op {
        Op::Cast => Some(reference_cast(prim(w.args(v)[0]), prim(v), args[0])),
        Op::Select => Some(if args[0] == 1 { args[1] } else { args[2] }),
        _ => apply(op, prim(w.args(v)[0]), args[0], args[1]),
    }
}

/// Where the expression is defined, the folded one is, too, and is the same.
fn check(expr: &Expr, w: &mut World, params: &[Val; 2], inputs: &[[u64; 2]]) {
    let folded = expr.build(w, params);
    for &input in inputs {
        let Some(expected) = expr.eval(input) else { continue };
        let found = eval_graph(w, folded, params, input);
        assert!(
            found.is_some_and(|found| same(expr.prim(), found, expected)),
            "{expr:?} of {input:x?} is {expected:x}, folded {found:x?}"
        );
    }
}

/// `x op c`, `c op x`, `x op x` for every literal: identities, absorbing elements, `x - c` as `x + (-c)`, swapped operands.
#[test]
fn one_operand_is_known() {
    for prim in [Prim::I8, Prim::U8, Prim::Bool, Prim::F16, Prim::F32, Prim::F64] {
        let all = values(prim, 40);
        let inputs: Vec<[u64; 2]> = all.iter().map(|&x| [x, 0]).collect();
        let x = || Box::new(Expr::Param(0, prim));
        for &op in ARITHMETIC.iter().chain(COMPARISONS).filter(|&&op| fits(op, prim)) {
            let (mut w, _, params) = world(prim);
            if !matches!(op, Op::Div | Op::Rem) || prim.is_float() {
                check(&Expr::Op(op, x(), x()), &mut w, &params, &inputs);
            }
            for &c in &all {
                let lit = || Box::new(Expr::Lit(c, prim));
                check(&Expr::Op(op, x(), lit()), &mut w, &params, &inputs);
                check(&Expr::Op(op, lit(), x()), &mut w, &params, &inputs);
            }
        }
    }
}

/// Divisions that may fault lose that only where the divisor says that they cannot.
#[test]
fn divisor_is_known() {
    for prim in [Prim::I8, Prim::U8] {
        let all = values(prim, 0);
        for (partial, total) in [(Op::PDiv, Op::Div), (Op::PRem, Op::Rem)] {
            let (mut w, mem, params) = world(prim);
            for &c in &all {
                let c_val = w.lit_prim(prim, c);
                let folded = w.op(partial, &[mem, params[0], c_val]);
                let may_fault = c == 0 || (prim == Prim::I8 && c == u64::MAX);
                assert_eq!(w.is_op(folded, partial), may_fault, "{} by {c:x}", prim.name());
                for &x in all.iter().filter(|_| !may_fault) {
                    let found = eval_graph(&w, folded, &params, [x, 0]);
                    assert_eq!(found, reference(total, prim, x, c).0, "{x:x} {} {c:x}", total.name());
                }
            }
        }
    }
}

/// Two operations with literals around one unknown: constants that join, double negation, conditions negated, casts and
/// back.
#[test]
fn two_operations_with_literals() {
    for prim in [Prim::I8, Prim::U8] {
        let inputs: Vec<[u64; 2]> = values(prim, 0).iter().map(|&x| [x, 0]).collect();
        let literals = [0, 1, 2, 3, 7, 8, 64, 100, 127, 128, 200, 254, 255].map(|i| wrapped(prim, i));
        let ops: Vec<Op> =
            ARITHMETIC.iter().chain(COMPARISONS).copied().filter(|op| !matches!(op, Op::Div | Op::Rem)).collect();
        let (mut w, _, params) = world(prim);
        for &inner in &ops {
            for &outer in &ops {
                for &c in &literals {
                    for &d in &literals {
                        let lit = |bits| Box::new(Expr::Lit(bits, prim));
                        let x = Box::new(Expr::Param(0, prim));
                        let first = Expr::Op(inner, x, lit(c));
                        let second = match first.prim() {
                            Prim::Bool if !fits(outer, Prim::Bool) => continue,
                            Prim::Bool => Box::new(Expr::Lit(d & 1, Prim::Bool)),
                            _ => lit(d),
                        };
                        check(&Expr::Op(outer, Box::new(first), second), &mut w, &params, &inputs);
                    }
                }
            }
        }
    }
}

/// Random expressions of two unknowns, for random values of them.
#[test]
fn random_expressions() {
    let mut rng = Rng(1706);
    for round in 0..20_000 {
        let prim = if round % 2 == 0 { Prim::I8 } else { Prim::U8 };
        let (mut w, _, params) = world(prim);
        let to = if rng.next().is_multiple_of(3) { Prim::Bool } else { prim };
        let expr = random(&mut rng, prim, to, 4);
        let inputs: Vec<[u64; 2]> = (0..40).map(|_| [0, 1].map(|_| wrapped(prim, (rng.next() % 256).into()))).collect();
        check(&expr, &mut w, &params, &inputs);
    }
}

fn random(rng: &mut Rng, prim: Prim, to: Prim, depth: u32) -> Expr {
    let pick = |rng: &mut Rng, ops: &[Op]| ops[rng.next() as usize % ops.len()];
    let choice = rng.next() % 10;
    if depth == 0 || choice == 0 {
        let literals = [0, 1, 2, 127, 128, 255, 254, (rng.next() % 256).into()];
        let literal = literals[rng.next() as usize % literals.len()];
        return match to {
            Prim::Bool => Expr::Lit(rng.next() % 2, to),
            _ if to == prim && !rng.next().is_multiple_of(3) => Expr::Param((rng.next() % 2) as usize, to),
            _ => Expr::Lit(wrapped(to, literal), to),
        };
    }
    let mut part = |to| Box::new(random(rng, prim, to, depth - 1));
    match (choice, to) {
        (1, _) => Expr::Select(part(Prim::Bool), part(to), part(to)),
        (2, Prim::Bool) => Expr::Cast(to, part(prim)),
        (2, _) => Expr::Cast(to, part(Prim::Bool)),
        (3, _) => Expr::Cast(to, part(if to == Prim::I16 { prim } else { Prim::I16 })),
        (4..=6, Prim::Bool) => {
            let (a, b) = (part(Prim::Bool), part(Prim::Bool));
            Expr::Op(pick(rng, &[Op::And, Op::Or, Op::Xor, Op::Eq, Op::Ne, Op::Lt]), a, b)
        }
        (_, Prim::Bool) => {
            let (a, b) = (part(prim), part(prim));
            Expr::Op(pick(rng, COMPARISONS), a, b)
        }
        _ => {
            let (a, b) = (part(to), part(to));
            let ops = [Op::Add, Op::Sub, Op::Mul, Op::And, Op::Or, Op::Xor, Op::Shl, Op::Shr];
            Expr::Op(pick(rng, &ops), a, b)
        }
    }
}
