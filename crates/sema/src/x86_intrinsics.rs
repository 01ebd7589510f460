//! Instructions of x86-64 that programs call by their LLVM names, `llvm.x86.…`: the table of families.
//!
//! A family is a computation, whatever its width. Its members are intrinsic names with their types. Most families are
//! lowered to operations that the graph has ([`lower`](mod@crate::lower), `x86_intrinsics.rs`): comparisons, selections,
//! shuffles. So partial evaluation understands them, every engine executes them with the same result, and they run on
//! any processor. LLVM recognizes the instruction again where there is one; it replaces many of these intrinsics by
//! such operations itself, and has dropped some of their names. Approximations, which only the processor can compute,
//! are operations of their own.
//!
//! An operand with `#` is an immediate: part of the instruction. It may be a parameter of a function that calls the
//! intrinsic, as long as partial evaluation determines its value. If it does not, compilation fails with an error.
//!
//! Other names under `llvm.x86.` are rejected with an error that names them.

use nyala_ir::Op;

/// The computation that the members of a family perform.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    /// Collects the sign bits of all lanes in an integer.
    Signs,
    /// Compares lanes with a predicate, given by its number: all bits of a lane are ones where it holds. There are 8
    /// predicates, or 32.
    Compare(u64),
    /// Compares only the lowest lanes; the other lanes are copied from the first operand.
    CompareLowest,
    /// Compares lanes to a mask; lanes that another mask excludes are zero.
    CompareToMask,
    /// Selects the second operand in lanes where the third one's sign bit is set, else the first.
    Blend,
    /// Selects the second operand in lanes where a mask has ones.
    BlendByMask,
    /// The lesser or the greater of two lanes; the second operand if they are equal or one is NaN.
    Min,
    Max,
    MinLowest,
    MaxLowest,
    /// Applies an operation to each lane.
    Each(Op),
    /// Applies an operation to the lowest lane; the others stay.
    Lowest(Op),
    /// Applies an operation to the lanes in a mask; the other lanes are copied from the second operand.
    Masked(Op),
    /// Rounds to an integer, in the mode that an immediate names.
    Round,
    /// Rounds the second operand's lowest lane; the other lanes are copied from the first operand.
    RoundLowest,
    /// Adds or subtracts neighboring lanes within 128 bits. Results from the first operand precede those from the
    /// second.
    Neighbors(Op),
    /// Subtracts and adds lanes alternately.
    AddSub,
    /// Tests whether `a & b` is zero, whether `!a & b` is zero, or whether neither is. Tests all bits, or the sign bits
    /// of floats.
    TestZero,
    TestCarry,
    TestNeither,
    /// Selects the lanes that the second operand names.
    Permute,
    /// Selects lanes within 128 bits.
    PermuteWithin,
    /// Selects bytes within 128 bits; the result is 0 where the second operand's byte is negative.
    ShuffleBytes,
    /// Converts to the nearest integer, ties to even; the result is the least integer if it does not fit.
    ToInt,
    /// Converts to an integer, toward zero.
    ToIntTrunc,
    Pext,
    Pdep,
    /// Extracts bits. The second operand's first byte is the start, its second byte the number of bits.
    ExtractBits,
    /// Keeps the lowest bits, as many as the second operand's first byte says.
    ZeroHigh,
}

/// The members of each family: `name(operands) -> result`. `v8f32` is `simd[f32 * 8]`; `m8` is a mask of 8 lanes,
/// `simd[bool * 8]` or an integer of at least 8 bits.
const FAMILIES: &[(Family, &str)] = &[
    (
        Family::Signs,
        "sse.movmsk.ps(v4f32) -> i32; sse2.movmsk.pd(v2f64) -> i32; sse2.pmovmskb.128(v16i8) -> i32;
         avx.movmsk.ps.256(v8f32) -> i32; avx.movmsk.pd.256(v4f64) -> i32; avx2.pmovmskb(v32i8) -> i32;
         avx512.cvtb2mask.128(v16i8) -> m16; avx512.cvtb2mask.256(v32i8) -> m32; avx512.cvtb2mask.512(v64i8) -> m64;
         avx512.cvtw2mask.128(v8i16) -> m8; avx512.cvtw2mask.256(v16i16) -> m16; avx512.cvtw2mask.512(v32i16) -> m32;
         avx512.cvtd2mask.128(v4i32) -> m4; avx512.cvtd2mask.256(v8i32) -> m8; avx512.cvtd2mask.512(v16i32) -> m16;
         avx512.cvtq2mask.128(v2i64) -> m2; avx512.cvtq2mask.256(v4i64) -> m4; avx512.cvtq2mask.512(v8i64) -> m8",
    ),
    (
        Family::Compare(8),
        "sse.cmp.ps(v4f32, v4f32, #i8) -> v4f32; sse2.cmp.pd(v2f64, v2f64, #i8) -> v2f64",
    ),
    (
        Family::Compare(32),
        "avx.cmp.ps.256(v8f32, v8f32, #i8) -> v8f32; avx.cmp.pd.256(v4f64, v4f64, #i8) -> v4f64",
    ),
    (
        Family::CompareLowest,
        "sse.cmp.ss(v4f32, v4f32, #i8) -> v4f32; sse2.cmp.sd(v2f64, v2f64, #i8) -> v2f64",
    ),
    (
        Family::CompareToMask,
        "avx512.mask.cmp.ps.128(v4f32, v4f32, #i32, m4) -> m4; avx512.mask.cmp.ps.256(v8f32, v8f32, #i32, m8) -> m8;
         avx512.mask.cmp.ps.512(v16f32, v16f32, #i32, m16, #i32) -> m16;
         avx512.mask.cmp.pd.128(v2f64, v2f64, #i32, m2) -> m2; avx512.mask.cmp.pd.256(v4f64, v4f64, #i32, m4) -> m4;
         avx512.mask.cmp.pd.512(v8f64, v8f64, #i32, m8, #i32) -> m8",
    ),
    (
        Family::Blend,
        "sse41.blendvps(v4f32, v4f32, v4f32) -> v4f32; sse41.blendvpd(v2f64, v2f64, v2f64) -> v2f64;
         sse41.pblendvb(v16i8, v16i8, v16i8) -> v16i8; avx.blendv.ps.256(v8f32, v8f32, v8f32) -> v8f32;
         avx.blendv.pd.256(v4f64, v4f64, v4f64) -> v4f64; avx2.pblendvb(v32i8, v32i8, v32i8) -> v32i8",
    ),
    (
        Family::BlendByMask,
        "avx512.mask.blend.ps.128(v4f32, v4f32, m4) -> v4f32; avx512.mask.blend.ps.256(v8f32, v8f32, m8) -> v8f32;
         avx512.mask.blend.ps.512(v16f32, v16f32, m16) -> v16f32;
         avx512.mask.blend.pd.128(v2f64, v2f64, m2) -> v2f64; avx512.mask.blend.pd.256(v4f64, v4f64, m4) -> v4f64;
         avx512.mask.blend.pd.512(v8f64, v8f64, m8) -> v8f64;
         avx512.mask.blend.d.128(v4i32, v4i32, m4) -> v4i32; avx512.mask.blend.d.256(v8i32, v8i32, m8) -> v8i32;
         avx512.mask.blend.d.512(v16i32, v16i32, m16) -> v16i32;
         avx512.mask.blend.q.128(v2i64, v2i64, m2) -> v2i64; avx512.mask.blend.q.256(v4i64, v4i64, m4) -> v4i64;
         avx512.mask.blend.q.512(v8i64, v8i64, m8) -> v8i64",
    ),
    (
        Family::Min,
        "sse.min.ps(v4f32, v4f32) -> v4f32; sse2.min.pd(v2f64, v2f64) -> v2f64;
         avx.min.ps.256(v8f32, v8f32) -> v8f32; avx.min.pd.256(v4f64, v4f64) -> v4f64;
         avx512.min.ps.512(v16f32, v16f32, #i32) -> v16f32; avx512.min.pd.512(v8f64, v8f64, #i32) -> v8f64",
    ),
    (
        Family::Max,
        "sse.max.ps(v4f32, v4f32) -> v4f32; sse2.max.pd(v2f64, v2f64) -> v2f64;
         avx.max.ps.256(v8f32, v8f32) -> v8f32; avx.max.pd.256(v4f64, v4f64) -> v4f64;
         avx512.max.ps.512(v16f32, v16f32, #i32) -> v16f32; avx512.max.pd.512(v8f64, v8f64, #i32) -> v8f64",
    ),
    (Family::MinLowest, "sse.min.ss(v4f32, v4f32) -> v4f32; sse2.min.sd(v2f64, v2f64) -> v2f64"),
    (Family::MaxLowest, "sse.max.ss(v4f32, v4f32) -> v4f32; sse2.max.sd(v2f64, v2f64) -> v2f64"),
    (
        Family::Each(Op::Sqrt),
        "sse.sqrt.ps(v4f32) -> v4f32; sse2.sqrt.pd(v2f64) -> v2f64; avx.sqrt.ps.256(v8f32) -> v8f32;
         avx.sqrt.pd.256(v4f64) -> v4f64",
    ),
    (Family::Lowest(Op::Sqrt), "sse.sqrt.ss(v4f32) -> v4f32; sse2.sqrt.sd(v2f64) -> v2f64"),
    (Family::Each(Op::Rcp), "sse.rcp.ps(v4f32) -> v4f32; avx.rcp.ps.256(v8f32) -> v8f32"),
    (Family::Lowest(Op::Rcp), "sse.rcp.ss(v4f32) -> v4f32"),
    (Family::Each(Op::Rsqrt), "sse.rsqrt.ps(v4f32) -> v4f32; avx.rsqrt.ps.256(v8f32) -> v8f32"),
    (Family::Lowest(Op::Rsqrt), "sse.rsqrt.ss(v4f32) -> v4f32"),
    (
        Family::Masked(Op::Rcp14),
        "avx512.rcp14.ps.128(v4f32, v4f32, m4) -> v4f32; avx512.rcp14.ps.256(v8f32, v8f32, m8) -> v8f32;
         avx512.rcp14.ps.512(v16f32, v16f32, m16) -> v16f32; avx512.rcp14.pd.128(v2f64, v2f64, m2) -> v2f64;
         avx512.rcp14.pd.256(v4f64, v4f64, m4) -> v4f64; avx512.rcp14.pd.512(v8f64, v8f64, m8) -> v8f64",
    ),
    (
        Family::Masked(Op::Rsqrt14),
        "avx512.rsqrt14.ps.128(v4f32, v4f32, m4) -> v4f32; avx512.rsqrt14.ps.256(v8f32, v8f32, m8) -> v8f32;
         avx512.rsqrt14.ps.512(v16f32, v16f32, m16) -> v16f32; avx512.rsqrt14.pd.128(v2f64, v2f64, m2) -> v2f64;
         avx512.rsqrt14.pd.256(v4f64, v4f64, m4) -> v4f64; avx512.rsqrt14.pd.512(v8f64, v8f64, m8) -> v8f64",
    ),
    (
        Family::Round,
        "sse41.round.ps(v4f32, #i32) -> v4f32; sse41.round.pd(v2f64, #i32) -> v2f64;
         avx.round.ps.256(v8f32, #i32) -> v8f32; avx.round.pd.256(v4f64, #i32) -> v4f64",
    ),
    (
        Family::RoundLowest,
        "sse41.round.ss(v4f32, v4f32, #i32) -> v4f32; sse41.round.sd(v2f64, v2f64, #i32) -> v2f64",
    ),
    (
        Family::Neighbors(Op::Add),
        "sse3.hadd.ps(v4f32, v4f32) -> v4f32; sse3.hadd.pd(v2f64, v2f64) -> v2f64;
         avx.hadd.ps.256(v8f32, v8f32) -> v8f32; avx.hadd.pd.256(v4f64, v4f64) -> v4f64",
    ),
    (
        Family::Neighbors(Op::Sub),
        "sse3.hsub.ps(v4f32, v4f32) -> v4f32; sse3.hsub.pd(v2f64, v2f64) -> v2f64;
         avx.hsub.ps.256(v8f32, v8f32) -> v8f32; avx.hsub.pd.256(v4f64, v4f64) -> v4f64",
    ),
    (
        Family::AddSub,
        "sse3.addsub.ps(v4f32, v4f32) -> v4f32; sse3.addsub.pd(v2f64, v2f64) -> v2f64;
         avx.addsub.ps.256(v8f32, v8f32) -> v8f32; avx.addsub.pd.256(v4f64, v4f64) -> v4f64",
    ),
    (
        Family::TestZero,
        "sse41.ptestz(v2i64, v2i64) -> i32; avx.ptestz.256(v4i64, v4i64) -> i32; avx.vtestz.ps(v4f32, v4f32) -> i32;
         avx.vtestz.ps.256(v8f32, v8f32) -> i32; avx.vtestz.pd(v2f64, v2f64) -> i32; avx.vtestz.pd.256(v4f64, v4f64) -> i32",
    ),
    (
        Family::TestCarry,
        "sse41.ptestc(v2i64, v2i64) -> i32; avx.ptestc.256(v4i64, v4i64) -> i32; avx.vtestc.ps(v4f32, v4f32) -> i32;
         avx.vtestc.ps.256(v8f32, v8f32) -> i32; avx.vtestc.pd(v2f64, v2f64) -> i32; avx.vtestc.pd.256(v4f64, v4f64) -> i32",
    ),
    (
        Family::TestNeither,
        "sse41.ptestnzc(v2i64, v2i64) -> i32; avx.ptestnzc.256(v4i64, v4i64) -> i32;
         avx.vtestnzc.ps(v4f32, v4f32) -> i32; avx.vtestnzc.ps.256(v8f32, v8f32) -> i32;
         avx.vtestnzc.pd(v2f64, v2f64) -> i32; avx.vtestnzc.pd.256(v4f64, v4f64) -> i32",
    ),
    (
        Family::Permute,
        "avx2.permps(v8f32, v8i32) -> v8f32; avx2.permd(v8i32, v8i32) -> v8i32;
         avx512.permvar.sf.512(v16f32, v16i32) -> v16f32; avx512.permvar.si.512(v16i32, v16i32) -> v16i32;
         avx512.permvar.df.256(v4f64, v4i64) -> v4f64; avx512.permvar.df.512(v8f64, v8i64) -> v8f64;
         avx512.permvar.di.256(v4i64, v4i64) -> v4i64; avx512.permvar.di.512(v8i64, v8i64) -> v8i64",
    ),
    (
        Family::PermuteWithin,
        "avx.vpermilvar.ps(v4f32, v4i32) -> v4f32; avx.vpermilvar.ps.256(v8f32, v8i32) -> v8f32;
         avx.vpermilvar.pd(v2f64, v2i64) -> v2f64; avx.vpermilvar.pd.256(v4f64, v4i64) -> v4f64;
         avx512.vpermilvar.ps.512(v16f32, v16i32) -> v16f32; avx512.vpermilvar.pd.512(v8f64, v8i64) -> v8f64",
    ),
    (
        Family::ShuffleBytes,
        "ssse3.pshuf.b.128(v16i8, v16i8) -> v16i8; avx2.pshuf.b(v32i8, v32i8) -> v32i8;
         avx512.pshuf.b.512(v64i8, v64i8) -> v64i8",
    ),
    (
        Family::ToInt,
        "sse2.cvtps2dq(v4f32) -> v4i32; avx.cvt.ps2dq.256(v8f32) -> v8i32; sse.cvtss2si(v4f32) -> i32;
         sse.cvtss2si64(v4f32) -> i64; sse2.cvtsd2si(v2f64) -> i32; sse2.cvtsd2si64(v2f64) -> i64",
    ),
    (
        Family::ToIntTrunc,
        "sse2.cvttps2dq(v4f32) -> v4i32; avx.cvtt.ps2dq.256(v8f32) -> v8i32; sse.cvttss2si(v4f32) -> i32;
         sse.cvttss2si64(v4f32) -> i64; sse2.cvttsd2si(v2f64) -> i32; sse2.cvttsd2si64(v2f64) -> i64",
    ),
    (Family::Pext, "bmi.pext.32(i32, i32) -> i32; bmi.pext.64(i64, i64) -> i64"),
    (Family::Pdep, "bmi.pdep.32(i32, i32) -> i32; bmi.pdep.64(i64, i64) -> i64"),
    (Family::ExtractBits, "bmi.bextr.32(i32, i32) -> i32; bmi.bextr.64(i64, i64) -> i64"),
    (Family::ZeroHigh, "bmi.bzhi.32(i32, i32) -> i32; bmi.bzhi.64(i64, i64) -> i64"),
];

/// A member of a family.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Instruction {
    pub name: &'static str,
    pub family: Family,
    operands: &'static str,
    result: &'static str,
}

/// The instruction with this LLVM name.
pub fn find(name: &str) -> Option<Instruction> {
    let name = name.strip_prefix("llvm.x86.")?;
    members().find(|i| i.name == name)
}

fn members() -> impl Iterator<Item = Instruction> {
    let of_family = |&(family, members): &(Family, &'static str)| {
        members.split(';').filter_map(move |member| {
            let (name, types) = member.trim().split_once('(')?;
            let (operands, result) = types.split_once(") -> ")?;
            Some(Instruction { name, family, operands, result })
        })
    };
    FAMILIES.iter().flat_map(of_family)
}

impl Instruction {
    fn operands(&self) -> impl Iterator<Item = &'static str> {
        self.operands.split(", ")
    }

    /// The positions of immediate operands.
    pub fn immediates(&self) -> impl Iterator<Item = usize> {
        self.operands().enumerate().filter(|(_, ty)| ty.starts_with('#')).map(|(i, _)| i)
    }

    /// Whether the instruction may be declared with these types, written as users do. LLVM's integers have no
    /// signedness.
    pub fn fits(&self, params: &[String], result: &str) -> bool {
        let n = self.operands().count();
        params.len() == n && self.operands().zip(params).all(|(ty, given)| fits(ty, given)) && fits(self.result, result)
    }

    /// The type with which the instruction should be declared.
    pub fn expected(&self) -> String {
        let operands: Vec<String> = self.operands().map(written).collect();
        format!("fn({}) -> {}", operands.join(", "), written(self.result))
    }
}

/// A type of the table, written as users do.
fn written(ty: &str) -> String {
    let ty = ty.trim_start_matches('#');
    if let Some(n) = ty.strip_prefix('m') {
        return format!("simd[bool * {n}]");
    }
    match ty.strip_prefix('v').and_then(|v| v.find(|c: char| !c.is_ascii_digit()).map(|at| v.split_at(at))) {
        Some((n, lane)) => format!("simd[{lane} * {n}]"),
        None => ty.to_string(),
    }
}

fn fits(ty: &str, given: &str) -> bool {
    // Signedness does not matter: `u8` counts as `i8`.
    let signed = given.replace("u8", "i8").replace("u16", "i16").replace("u32", "i32").replace("u64", "i64");
    if signed == written(ty) {
        return true;
    }
    let lanes = ty.strip_prefix('m').and_then(|n| n.parse::<u32>().ok());
    let bits = signed.strip_prefix('i').and_then(|n| n.parse::<u32>().ok());
    lanes.zip(bits).is_some_and(|(lanes, bits)| bits >= lanes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinct_and_types_can_be_written() {
        let all: Vec<Instruction> = members().collect();
        for (i, one) in all.iter().enumerate() {
            assert!(all[..i].iter().all(|other| other.name != one.name), "{}", one.name);
            let params: Vec<String> = one.operands().map(written).collect();
            assert!(one.fits(&params, &written(one.result)), "{}", one.expected());
        }
        assert_eq!(all.len(), FAMILIES.iter().map(|f| f.1.split(';').count()).sum::<usize>());
        let cmp = find("llvm.x86.avx.cmp.ps.256").unwrap();
        assert_eq!(cmp.expected(), "fn(simd[f32 * 8], simd[f32 * 8], i8) -> simd[f32 * 8]");
        assert_eq!(cmp.immediates().collect::<Vec<_>>(), [2]);
        let mask = find("llvm.x86.avx512.cvtd2mask.512").unwrap();
        let vector = "simd[u32 * 16]".to_string();
        assert!(
            mask.fits(std::slice::from_ref(&vector), "u16")
                && mask.fits(std::slice::from_ref(&vector), "simd[bool * 16]")
        );
        assert!(!mask.fits(&[vector], "i8") && find("llvm.x86.avx.nothing").is_none());
    }
}
