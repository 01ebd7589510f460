//! Writes globals with their initializers.

use crate::emit::Emitter;
use crate::expr::Expr;
use crate::{Result, bug};
use nyala_base::Id;
use nyala_flat::{GlobalId, Init};
use nyala_ir::{Prim, Ty, TyKind};
use std::fmt::Write;

/// Writes a global. A global whose initializer names functions or other globals has a declaration, which stands before all functions,
/// and a definition; others have a definition only.
pub(crate) fn emit(e: &mut Emitter, id: GlobalId) -> Result<(String, String)> {
    let module = e.module;
    let global = &module.globals[id.idx()];
    if e.types.is_void(global.ty) {
        return Ok((String::new(), String::new()));
    }
    let name = e.globals[id.idx()].clone();
    let space = e.dialect.space(global.space);
    let head = match module.types.kind(global.ty) {
        TyKind::Array(elem, n) => {
            format!("{}{space}{}{name}[{n}]", e.dialect.internal, e.types.declared(*elem, &mut e.names)?)
        }
        _ => format!("{}{space}{}{name}", e.dialect.internal, e.types.declared(global.ty, &mut e.names)?),
    };
    if matches!(global.init, Init::Zero | Init::Undef) {
        return Ok((format!("{head};\n"), String::new()));
    }
    let text = initial(e, &global.init, global.ty, true)?;
    let definition = format!("{head} = {text};\n");
    if refers(&global.init) { Ok((format!("{head};\n"), definition)) } else { Ok((definition, String::new())) }
}

/// Whether an initializer names a global or a function.
fn refers(init: &Init) -> bool {
    match init {
        Init::Global(..) | Init::Func(_) => true,
        Init::Parts(parts) => parts.iter().any(refers),
        Init::Zero | Init::Undef | Init::Bits(_) | Init::Bytes(_) => false,
    }
}

/// An initializer. An array inside of something is a member of a struct; an array that is the whole global is not.
fn initial(e: &mut Emitter, init: &Init, ty: Ty, is_outermost: bool) -> Result<String> {
    let types = &e.module.types;
    let wrong = || bug(format!("an initializer that does not fit the type `{}`", types.display(ty)));
    let braces = |list: String| if is_outermost { format!("{{{list}}}") } else { format!("{{{{{list}}}}}") };
    Ok(match init {
        Init::Zero | Init::Undef => match types.kind(ty) {
            TyKind::Prim(_) | TyKind::Ptr { .. } | TyKind::Code => "0".into(),
            _ => "{}".into(),
        },
        Init::Bits(bits) if types.as_prim(ty).is_some_and(|p| is_nan(p, *bits)) => {
            nan(e, types.as_prim(ty).unwrap_or(Prim::F64), *bits)?
        }
        Init::Bits(bits) => {
            let literal = e.constant(nyala_flat::Const::Bits(*bits), ty)?;
            e.rendered(literal, true)?.text
        }
        Init::Bytes(bytes) => {
            let elem = types.part(ty, 0).and_then(|t| types.as_prim(t));
            // Printable bytes with a zero at the end are written as a string, other bytes as numbers.
            let is_text = elem == Some(Prim::U8)
                && bytes.last() == Some(&0)
                && bytes[..bytes.len() - 1].iter().all(|b| matches!(b, 9 | 10 | 32..=126));
            if is_text {
                let text = quoted(&bytes[..bytes.len() - 1]);
                return Ok(if is_outermost { text } else { format!("{{{text}}}") });
            }
            let elem = elem.ok_or_else(wrong)?;
            let list: Vec<String> =
                bytes.iter().map(|&b| if elem == Prim::I8 { (b as i8).to_string() } else { b.to_string() }).collect();
            braces(list.join(", "))
        }
        Init::Parts(parts) => {
            let mut list = Vec::new();
            for (i, part) in parts.iter().enumerate() {
                let part_ty = types.part(ty, i as u64).ok_or_else(wrong)?;
                if !e.types.is_void(part_ty) {
                    list.push(initial(e, part, part_ty, false)?);
                }
            }
            let is_wrapped = matches!(types.kind(ty), TyKind::Array(..) | TyKind::Vector(..));
            let is_plain = is_outermost && matches!(types.kind(ty), TyKind::Array(..));
            if is_wrapped && !is_plain {
                format!("{{{{{}}}}}", list.join(", "))
            } else {
                format!("{{{}}}", list.join(", "))
            }
        }
        Init::Global(global, offset) => {
            let address = e.constant(nyala_flat::Const::Global(*global), ty)?;
            let address = e.rendered(address, true)?;
            let name = e.types.name(ty, &mut e.names)?;
            match offset {
                0 => format!("({name}){}", address.text),
                _ => format!("({name})((char *){} + {offset})", address.at(crate::expr::Prec::Unary)),
            }
        }
        Init::Func(func) => {
            let name = e.func_name(*func)?;
            let code = Expr::atom(format!("(code){name}"));
            match types.kind(ty) {
                TyKind::Cn(_) => format!("{{{}, 0}}", code.text),
                TyKind::Code => code.text,
                _ => return Err(bug("a static with a function of a type without code")),
            }
        }
    })
}

fn is_nan(prim: Prim, bits: u64) -> bool {
    prim.is_float() && nyala_ir::scalar::float_value(prim, bits).is_nan()
}

/// A NaN with these bits, as a constant expression: initializers of statics cannot call functions.
fn nan(e: &mut Emitter, prim: Prim, bits: u64) -> Result<String> {
    if prim == Prim::F16 && crate::ops::halves::are_bits(e) {
        return Ok(e.literal(prim, bits)?.text);
    }
    let (mantissa, suffix) = match prim {
        Prim::F16 => ((bits & 0x3ff) << 13, "f"),
        Prim::F32 => (bits & 0x7f_ffff, "f"),
        _ => (bits & 0xf_ffff_ffff_ffff, ""),
    };
    let quiet = if suffix.is_empty() { 1 << 51 } else { 1 << 22 };
    let kind = if mantissa & quiet != 0 { "nan" } else { "nans" };
    let sign = if bits >> (prim.bits() - 1) & 1 == 1 { "-" } else { "" };
    let name = e.types.prim(prim)?;
    Ok(format!("({name}){sign}__builtin_{kind}{suffix}(\"{:#x}\")", mantissa & (quiet - 1)))
}

/// A string literal.
pub(crate) fn quoted(bytes: &[u8]) -> String {
    let mut out = String::from("\"");
    for &b in bytes {
        match b {
            b'\n' => out.push_str("\\n"),
            b'\t' => out.push_str("\\t"),
            b'"' | b'\\' => {
                out.push('\\');
                out.push(b as char);
            }
            // Two question marks may begin a trigraph.
            b'?' if out.ends_with('?') => out.push_str("\\?"),
            32..=126 => out.push(b as char),
            _ => {
                let _ = write!(out, "\\{b:03o}");
            }
        }
    }
    out.push('"');
    out
}
