//! Exponentials and logarithms of vectors in single precision, inlined: a call would force every vector register to be
//! saved.
//!
//! Arguments are reduced as usual (Cody and Waite, *Software Manual for the Elementary Functions*, 1980): `x` is `n·ln
//! 2 + r`, or `2^e·m`, with the constant in two parts, the upper of which has so few bits that its product with `n` is
//! exact. The polynomials are minimax approximations for the relative error, which is less than a tenth of an ULP; the
//! results are within 1 ULP (`log2`: 2) for all of 20 million numbers tried per function, with and without fused
//! multiplication, denormal numbers included. No operation here may be reassociated, so none is `fast`; a `fast`
//! function only omits the handling of arguments whose results are NaN or infinity.

use crate::function::FunctionEmitter;
use crate::ops::number_text;
use nyala_ir::{Op, Prim};

const LN2_HIGH: f32 = 0.693_145_75;
const LN2_LOW: f32 = 1.428_606_8e-6;
/// 1.5·2^23: adding it rounds a number to an integer, in the lowest bits of the sum.
const ROUNDER: f32 = 12_582_912.0;
/// Coefficients from the highest power down; `(e^r - 1 - r)/r²` for `|r| ≤ ln 2 / 2`.
const EXP: [f32; 5] = [0.001_381_454, 0.008_368_745, 0.041_668_39, 0.166_665_2, 0.499_999_93];
/// `(ln(1 + f) - f + f²/2)/f³` for `-¼ ≤ f < ½`.
const LOG: [f32; 8] = [
    -4.507_478_4e-2,
    0.104_630_19,
    -0.131_611_92,
    0.144_783_95,
    -0.166_473_12,
    0.199_908_61,
    -0.250_000_96,
    0.333_334_5,
];

/// Emits operations on `n` lanes; operands and results are LLVM's operands.
struct Lanes<'a, 'e, 'm> {
    f: &'a mut FunctionEmitter<'e, 'm>,
    n: u32,
}

impl Lanes<'_, '_, '_> {
    fn text(&self, prim: Prim) -> String {
        number_text(prim, Some(self.n))
    }

    fn result(&mut self, operation: std::fmt::Arguments) -> String {
        let result = self.f.temp();
        self.f.line(format_args!("{result} = {operation}"));
        result
    }

    /// An operation on float lanes.
    fn float(&mut self, op: &str, a: &str, b: &str) -> String {
        let ty = self.text(Prim::F32);
        self.result(format_args!("{op} {ty} {a}, {b}"))
    }

    /// An operation on integer lanes with a constant.
    fn int(&mut self, op: &str, a: &str, b: i32) -> String {
        let ty = self.text(Prim::I32);
        self.result(format_args!("{op} {ty} {a}, splat (i32 {b})"))
    }

    /// The greater (`smax`) or the less (`smin`) of integers and a constant.
    fn limit(&mut self, op: &str, a: &str, b: i32) -> String {
        let (name, ty) = (format!("llvm.{op}.v{}i32", self.n), self.text(Prim::I32));
        self.f.e.declare(&name, || format!("declare {ty} @{name}({ty}, {ty})"));
        self.result(format_args!("call {ty} @{name}({ty} {a}, {ty} splat (i32 {b}))"))
    }

    fn convert(&mut self, op: &str, from: Prim, value: &str, to: Prim) -> String {
        let (from, to) = (self.text(from), self.text(to));
        self.result(format_args!("{op} {from} {value} to {to}"))
    }

    fn bits(&mut self, value: &str) -> String {
        self.convert("bitcast", Prim::F32, value, Prim::I32)
    }

    fn of_bits(&mut self, value: &str) -> String {
        self.convert("bitcast", Prim::I32, value, Prim::F32)
    }

    /// `yes` in lanes where `a` compares with `b` by `compare`, else `no`.
    fn choose(&mut self, compare: &str, a: &str, b: &str, yes: &str, no: &str) -> String {
        let (ty, mask) = (self.text(Prim::F32), self.text(Prim::Bool));
        let is = self.result(format_args!("fcmp {compare} {ty} {a}, {b}"));
        self.result(format_args!("select {mask} {is}, {ty} {yes}, {ty} {no}"))
    }

    /// `a·b + c`, rounded once where the machine has fused multiplication.
    fn mul_add(&mut self, a: &str, b: &str, c: &str) -> String {
        let (name, ty) = (format!("llvm.fmuladd.v{}f32", self.n), self.text(Prim::F32));
        self.f.e.declare(&name, || format!("declare {ty} @{name}({ty}, {ty}, {ty})"));
        self.result(format_args!("call {ty} @{name}({ty} {a}, {ty} {b}, {ty} {c})"))
    }

    /// Evaluates pairs of terms by powers of `square`, which is `x²`: half the latency of Horner's scheme.
    fn polynomial(&mut self, coefficients: &[f32], x: &str, square: &str) -> String {
        let (single, pairs) = coefficients.split_at(coefficients.len() % 2);
        let mut sum = single.first().map(|&c| splat(c));
        for pair in pairs.chunks(2) {
            let terms = self.mul_add(&splat(pair[0]), x, &splat(pair[1]));
            sum = Some(match sum {
                None => terms,
                Some(sum) => self.mul_add(&sum, square, &terms),
            });
        }
        sum.unwrap_or_else(|| splat(0.0))
    }

    /// Whether the lanes fill a register of AVX-512, for which there are instructions such as `vscalefps`.
    fn is_avx512(&mut self) -> bool {
        self.n == 16 && self.f.e.target().has_avx512()
    }

    /// `x·2^n` for integers `n` from -150 to 129, given as a float and as the sum with [`ROUNDER`].
    fn scale(&mut self, x: &str, float: &str, sum: &str) -> String {
        if self.is_avx512() {
            let (name, ty) = ("llvm.x86.avx512.mask.scalef.ps.512", self.text(Prim::F32));
            self.f.e.declare(name, || format!("declare {ty} @{name}({ty}, {ty}, {ty}, i16, i32)"));
            return self.result(format_args!("call {ty} @{name}({ty} {x}, {ty} {float}, {ty} {x}, i16 -1, i32 4)"));
        }
        // In two steps, since neither `2^-150` nor `2^129` is a normal number.
        let ty = self.text(Prim::I32);
        let sum = self.bits(sum);
        // The exponent of `2^n`. The bits of ROUNDER leave to the left.
        let n = self.int("shl", &sum, 23);
        let first = self.limit("smax", &n, -100 << 23);
        let first = self.limit("smin", &first, 100 << 23);
        let scaled = if self.f.is_fast() {
            let bits = self.bits(x);
            let bits = self.result(format_args!("add {ty} {bits}, {first}"));
            self.of_bits(&bits)
        } else {
            // A product, which is NaN if `x` is.
            let power = self.int("add", &first, 127 << 23);
            let power = self.of_bits(&power);
            self.float("fmul", x, &power)
        };
        let rest = self.result(format_args!("sub {ty} {n}, {first}"));
        let power = self.int("add", &rest, 127 << 23);
        let power = self.of_bits(&power);
        self.float("fmul", &scaled, &power)
    }

    /// `e^r·2^n`; `sum` is `n + ROUNDER`.
    fn exp_of_parts(&mut self, r: &str, n: &str, sum: &str) -> String {
        let square = self.float("fmul", r, r);
        let p = self.polynomial(&EXP, r, &square);
        let p = self.mul_add(&p, &square, r);
        let p = self.float("fadd", &p, &splat(1.0));
        self.scale(&p, n, sum)
    }

    /// `x` clamped to an interval outside of which the result is 0 or infinite; NaN stays.
    fn limited(&mut self, x: &str, low: f32, high: f32) -> String {
        let x = self.choose("olt", x, &splat(low), &splat(low), x);
        if self.f.is_fast() { x } else { self.choose("ogt", &x, &splat(high), &splat(high), &x) }
    }

    fn exp(&mut self, x: &str) -> String {
        let x = self.limited(x, -104.0, 89.0);
        let sum = self.mul_add(&x, &splat(std::f32::consts::LOG2_E), &splat(ROUNDER));
        let n = self.float("fsub", &sum, &splat(ROUNDER));
        let r = self.mul_add(&n, &splat(-LN2_HIGH), &x);
        let r = self.mul_add(&n, &splat(-LN2_LOW), &r);
        self.exp_of_parts(&r, &n, &sum)
    }

    fn exp2(&mut self, x: &str) -> String {
        let x = self.limited(x, -151.0, 129.0);
        let sum = self.float("fadd", &x, &splat(ROUNDER));
        let n = self.float("fsub", &sum, &splat(ROUNDER));
        let r = self.float("fsub", &x, &n);
        let r = self.float("fmul", &r, &splat(std::f32::consts::LN_2));
        self.exp_of_parts(&r, &n, &sum)
    }

    /// Splits `x` into `2^e·m` with `¾ ≤ m < 1½`.
    fn parts(&mut self, x: &str) -> (String, String) {
        if self.is_avx512() {
            let ty = self.text(Prim::F32);
            let (exponent, mantissa) = ("llvm.x86.avx512.mask.getexp.ps.512", "llvm.x86.avx512.mask.getmant.ps.512");
            self.f.e.declare(exponent, || format!("declare {ty} @{exponent}({ty}, {ty}, i16, i32)"));
            self.f.e.declare(mantissa, || format!("declare {ty} @{mantissa}({ty}, i32, {ty}, i16, i32)"));
            // 3: from ¾ below 1½; 8: NaN of what is less than 0.
            let m = self
                .result(format_args!("call {ty} @{mantissa}({ty} {x}, i32 11, {ty} zeroinitializer, i16 -1, i32 4)"));
            let mut of = |x: &str| {
                self.result(format_args!("call {ty} @{exponent}({ty} {x}, {ty} zeroinitializer, i16 -1, i32 4)"))
            };
            let (whole, own) = (of(x), of(&m));
            return (m, self.float("fsub", &whole, &own));
        }
        const UP: i32 = 23;
        let larger = self.float("fmul", x, &splat((1u32 << UP) as f32));
        let least = splat(f32::MIN_POSITIVE);
        let normal = self.choose("olt", x, &least, &larger, x);
        let offset = self.choose("olt", x, &least, &splat(-(UP as f32)), &splat(0.0));
        let bits = self.bits(&normal);
        let lowest = 0.75f32.to_bits() as i32;
        let above = self.int("sub", &bits, lowest);
        let e = self.int("ashr", &above, 23);
        let e = self.convert("sitofp", Prim::I32, &e, Prim::F32);
        let e = self.float("fadd", &e, &offset);
        let fraction = self.int("and", &above, 0x7f_ffff);
        let m = self.int("add", &fraction, lowest);
        (self.of_bits(&m), e)
    }

    /// Logarithms to base `e`, or to base 2.
    fn log(&mut self, x: &str, base_is_2: bool) -> String {
        let (m, e) = self.parts(x);
        let f = self.float("fsub", &m, &splat(1.0));
        let square = self.float("fmul", &f, &f);
        let cube = self.float("fmul", &square, &f);
        let p = self.polynomial(&LOG, &f, &square);
        let mut p = self.float("fmul", &p, &cube);
        if !base_is_2 {
            p = self.mul_add(&e, &splat(LN2_LOW), &p);
        }
        let p = self.mul_add(&square, &splat(-0.5), &p);
        let result = if base_is_2 {
            // log2 e is 1 plus a rest: multiplying by the rest only is more precise.
            let rest = splat(std::f32::consts::LOG2_E - 1.0);
            let sum = self.float("fmul", &p, &rest);
            let sum = self.mul_add(&f, &rest, &sum);
            let sum = self.float("fadd", &sum, &p);
            let sum = self.float("fadd", &sum, &f);
            self.float("fadd", &sum, &e)
        } else {
            let sum = self.float("fadd", &f, &p);
            self.mul_add(&e, &splat(LN2_HIGH), &sum)
        };
        if self.f.is_fast() || self.is_avx512() {
            return result;
        }
        // The logarithm of +∞ is +∞, of 0 -∞; of negative numbers and NaN it is NaN.
        let infinity = splat(f32::INFINITY);
        let result = self.choose("oeq", x, &infinity, &infinity, &result);
        let result = self.choose("oeq", x, &splat(0.0), &splat(f32::NEG_INFINITY), &result);
        self.choose("oge", x, &splat(0.0), &result, &splat(f32::NAN))
    }
}

fn splat(x: f32) -> String {
    format!("splat (float {})", crate::emit::prim_text(Prim::F32, x.to_bits().into()))
}

/// Emits a function on `n` lanes; returns the result. `None` if there is no polynomial for it here.
pub(crate) fn write(f: &mut FunctionEmitter, op: Op, prim: Prim, n: u32, values: &[String]) -> Option<String> {
    let mut lanes = Lanes { f, n };
    match (op, prim, values) {
        (Op::Exp, Prim::F32, [x]) => Some(lanes.exp(x)),
        (Op::Exp2, Prim::F32, [x]) => Some(lanes.exp2(x)),
        (Op::Log, Prim::F32, [x]) => Some(lanes.log(x, false)),
        (Op::Log2, Prim::F32, [x]) => Some(lanes.log(x, true)),
        _ => None,
    }
}
