//! Functions of `extern "thorin"` and `extern "device"` blocks, by the name of the intrinsic.

use nyala_ir::Op;

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Intrinsic {
    Math(Op),
    PeInfo,
    PeKnown,
    Sizeof,
    Alignof,
    Bitcast,
    Select,
    Undef,
    /// Known or not, nothing of ours implements it yet.
    Unsupported(String),
}

/// The intrinsic of this name.
pub fn find(name: &str) -> Intrinsic {
    match name {
        "pe_info" => Intrinsic::PeInfo,
        "pe_known" => Intrinsic::PeKnown,
        "sizeof" => Intrinsic::Sizeof,
        "alignof" => Intrinsic::Alignof,
        "bitcast" => Intrinsic::Bitcast,
        "select" => Intrinsic::Select,
        "undef" => Intrinsic::Undef,
        _ => match math(name) {
            Some(op) => Intrinsic::Math(op),
            None => Intrinsic::Unsupported(name.into()),
        },
    }
}

/// Math functions by their C names, LLVM's included.
fn math(name: &str) -> Option<Op> {
    let base = match name.strip_prefix("llvm.") {
        Some(rest) => rest.strip_suffix(".f32").or(rest.strip_suffix(".f64"))?,
        None => name,
    };
    Some(match base {
        "sqrt" => Op::Sqrt,
        "fabs" => Op::Abs,
        "floor" => Op::Floor,
        "ceil" => Op::Ceil,
        "trunc" => Op::Trunc,
        "round" => Op::Round,
        "fmin" | "minnum" => Op::Fmin,
        "fmax" | "maxnum" => Op::Fmax,
        "fma" => Op::Fma,
        "copysign" => Op::Copysign,
        "sin" => Op::Sin,
        "cos" => Op::Cos,
        "tan" => Op::Tan,
        "asin" => Op::Asin,
        "acos" => Op::Acos,
        "atan" => Op::Atan,
        "sinh" => Op::Sinh,
        "cosh" => Op::Cosh,
        "tanh" => Op::Tanh,
        "exp" => Op::Exp,
        "exp2" => Op::Exp2,
        "expm1" => Op::Expm1,
        "log" => Op::Log,
        "log2" => Op::Log2,
        "log10" => Op::Log10,
        "log1p" => Op::Log1p,
        "cbrt" => Op::Cbrt,
        "pow" => Op::Pow,
        "atan2" => Op::Atan2,
        _ => return None,
    })
}
