//! Comparisons of numbers and of lanes as LLVM text, also under a mask.

use crate::diagnostics::bug;
use crate::function::FunctionEmitter;
use crate::ops::{Class, class, number, number_text, prim};
use nyala_base::Diagnostic;
use nyala_flat::Value;
use nyala_ir::Op;

type Result<T> = std::result::Result<T, Box<Diagnostic>>;

pub(crate) fn compare(f: &mut FunctionEmitter, op: Op, name: &str, args: &[Value], result: Value) -> Result<()> {
    let class = class(prim(f, f.ty(args[0])));
    let text = match (op, &class) {
        (Op::Eq, Class::Float) => "fcmp oeq",
        (Op::Ne, Class::Float) => "fcmp une",
        (Op::Lt, Class::Float) => "fcmp olt",
        (Op::Le, Class::Float) => "fcmp ole",
        (Op::Gt, Class::Float) => "fcmp ogt",
        (Op::Ge, Class::Float) => "fcmp oge",
        (Op::Eq, _) => "icmp eq",
        (Op::Ne, _) => "icmp ne",
        (Op::Lt, Class::Signed) => "icmp slt",
        (Op::Le, Class::Signed) => "icmp sle",
        (Op::Gt, Class::Signed) => "icmp sgt",
        (Op::Ge, Class::Signed) => "icmp sge",
        (Op::Lt, _) => "icmp ult",
        (Op::Le, _) => "icmp ule",
        (Op::Gt, _) => "icmp ugt",
        _ => "icmp uge",
    };
    if let Some((prim, Some(n))) = number(f, f.ty(args[0])) {
        let comparison = Comparison { text, ty: number_text(prim, Some(n)), a: f.op(args[0]), b: f.op(args[1]) };
        f.comparisons.insert(result, comparison);
    }
    let text = if f.fast { text.replace("fcmp", "fcmp fast") } else { text.into() };
    let (a, b) = (f.typed(args[0])?, f.op(args[1]));
    f.line(format_args!("{name} = {text} {a}, {b}"));
    Ok(())
}

/// A comparison of the lanes of vectors, in LLVM's notation.
pub(crate) struct Comparison {
    text: &'static str,
    ty: String,
    a: String,
    b: String,
}

impl Comparison {
    /// Whether it is this comparison of vectors of this type, and of these operands.
    pub fn is(&self, text: &str, ty: &str, a: &str, b: &str) -> bool {
        self.text == text && self.ty == ty && self.a == a && self.b == b
    }

    /// The negated comparison, if there is one.
    pub fn inverse(&self) -> Option<Comparison> {
        const INVERSES: &[(&str, &str)] = &[
            ("fcmp oeq", "fcmp une"),
            ("fcmp olt", "fcmp uge"),
            ("fcmp ole", "fcmp ugt"),
            ("fcmp ogt", "fcmp ule"),
            ("fcmp oge", "fcmp ult"),
            ("icmp eq", "icmp ne"),
            ("icmp slt", "icmp sge"),
            ("icmp sgt", "icmp sle"),
            ("icmp ult", "icmp uge"),
            ("icmp ugt", "icmp ule"),
        ];
        let mut both = INVERSES.iter().flat_map(|&(a, b)| [(a, b), (b, a)]);
        let (_, text) = both.find(|p| p.0 == self.text)?;
        Some(Comparison { text, ty: self.ty.clone(), a: self.a.clone(), b: self.b.clone() })
    }
}

/// Whether a vector has this literal in all lanes.
pub(crate) fn is_splat(f: &FunctionEmitter, v: Value, bits: u64) -> bool {
    f.const_lanes.get(&v).is_some_and(|lanes| lanes.iter().all(|&l| l == Some(bits)))
}

/// The lanes of a mask where a comparison is true; in other lanes the comparison may be undefined. The operands are
/// frozen, not the result, so that LLVM makes it one AVX-512 instruction, which compares under a mask.
pub(crate) fn masked_comparison(f: &mut FunctionEmitter, name: &str, args: &[Value]) -> Result<()> {
    let mask = f.typed(args[0])?;
    let Some(Comparison { text, ty, a, b }) = f.comparisons.get(&args[1]) else { return Err(bug("no comparison")) };
    let (text, ty, a, b) = (*text, ty.clone(), a.clone(), b.clone());
    let [x, y, is] = [(); 3].map(|()| f.temp());
    f.line(format_args!("{x} = freeze {ty} {a}"));
    f.line(format_args!("{y} = freeze {ty} {b}"));
    f.line(format_args!("{is} = {text} {ty} {x}, {y}"));
    f.line(format_args!("{name} = and {mask}, {is}"));
    Ok(())
}
