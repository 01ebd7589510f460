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
    Parallel,
    Spawn,
    Sync,
    Assert,
    Panic,
    StaticAssert,
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
        "parallel" => Intrinsic::Parallel,
        "spawn" => Intrinsic::Spawn,
        "sync" => Intrinsic::Sync,
        "assert" => Intrinsic::Assert,
        "panic" => Intrinsic::Panic,
        "static_assert" => Intrinsic::StaticAssert,
        _ => match math(name) {
            Some(op) => Intrinsic::Math(op),
            None => Intrinsic::Unsupported(name.into()),
        },
    }
}

/// How an intrinsic that makes functions of its own must be declared; others take what their declaration says.
pub fn expected_type(intrinsic: &Intrinsic) -> Option<&'static str> {
    match intrinsic {
        Intrinsic::Parallel => Some("fn(i32, i32, i32, fn(i32) -> ()) -> ()"),
        Intrinsic::Spawn => Some("fn(fn() -> ()) -> i32"),
        Intrinsic::Sync => Some("fn(i32) -> ()"),
        Intrinsic::Assert => Some("fn(bool) -> ()"),
        Intrinsic::Panic => Some("fn(&[u8]) -> !"),
        Intrinsic::StaticAssert => Some("fn(bool, &[u8]) -> ()"),
        _ => None,
    }
}

/// Math functions by their C names, LLVM's included.
fn math(name: &str) -> Option<Op> {
    let base = match name.strip_prefix("llvm.") {
        Some(rest) => {
            let (base, ty) = rest.rsplit_once('.')?;
            let is_int = matches!(base, "ctpop" | "ctlz" | "cttz");
            let wanted = if is_int { &["i8", "i16", "i32", "i64"][..] } else { &["f32", "f64"] };
            wanted.contains(&ty).then_some(base)?
        }
        None => name,
    };
    Some(match base {
        "popcount" | "ctpop" => Op::Popcount,
        "clz" | "ctlz" => Op::Clz,
        "ctz" | "cttz" => Op::Ctz,
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
