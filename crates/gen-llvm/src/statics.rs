//! Statics in LLVM's text: their definitions and initial values. Separate from `emit.rs`, which decides what a module or a unit defines,
//! and by which names.

use crate::diagnostics::{bug, too_large};
use crate::emit::{Emitter, address_text, prim_text};
use nyala_base::{Diagnostic, Id};
use nyala_flat::{GlobalId, Init};
use nyala_ir::{Prim, Ty, TyKind, layout};
use std::fmt::Write;

impl Emitter<'_> {
    pub fn emit_global(&mut self, id: GlobalId, linkage: &str) -> Result<(), Box<Diagnostic>> {
        let module = self.module;
        let global = &module.globals[id.idx()];
        let Some((size, align)) = layout::size_align(&module.types, global.ty) else {
            return Err(too_large(&format!("the static `{}`", global.name)));
        };
        let align = align.max(if size >= 4096 {
            64
        } else if size >= 16 {
            16
        } else {
            1
        });
        let kind = if global.mutable { "global" } else { "constant" };
        let ty = self.layouts.memory(global.ty)?;
        let mut init = String::new();
        self.write_init(&global.init, global.ty, &mut init)?;
        let name = self.global_name(id);
        let place = self.origins.as_mut().map_or(String::new(), |o| o.global(&global.name, global.ty));
        let _ = writeln!(self.out, "{name} = {linkage}{kind} {ty} {init}, align {align}{place}");
        Ok(())
    }

    fn write_init(&mut self, init: &Init, ty: Ty, out: &mut String) -> Result<(), Box<Diagnostic>> {
        let types = &self.module.types;
        let wrong = || bug(format!("initializer does not fit the type `{}`", types.display(ty)));
        match init {
            Init::Zero => out.push_str("zeroinitializer"),
            Init::Undef => out.push_str("undef"),
            Init::Bits(bits) => out.push_str(&match types.as_prim(ty) {
                // In memory a bool is a byte.
                Some(Prim::Bool) => bits.to_string(),
                Some(prim) => prim_text(prim, *bits),
                None => address_text(*bits),
            }),
            Init::Bytes(bytes) => {
                if types.n_parts(ty) != Some(bytes.len() as u64) {
                    return Err(wrong());
                }
                out.push_str("c\"");
                for &b in bytes {
                    match b {
                        b'"' | b'\\' | 0..=31 | 127.. => {
                            let _ = write!(out, "\\{b:02X}");
                        }
                        _ => out.push(b as char),
                    }
                }
                out.push('"');
            }
            Init::Parts(parts) => {
                if types.n_parts(ty) != Some(parts.len() as u64) {
                    return Err(wrong());
                }
                let (open, close) = match types.kind(ty) {
                    TyKind::Array(..) => ('[', ']'),
                    TyKind::Vector(..) => ('<', '>'),
                    _ => ('{', '}'),
                };
                out.push(open);
                for (i, part) in parts.iter().enumerate() {
                    let part_ty = types.part(ty, i as u64).ok_or_else(wrong)?;
                    let text = self.layouts.memory(part_ty)?;
                    let _ = write!(out, "{}{text} ", if i > 0 { ", " } else { " " });
                    self.write_init(part, part_ty, out)?;
                }
                out.push(' ');
                out.push(close);
            }
            Init::Global(global, offset) => {
                let name = self.global_name(*global);
                let _ = write!(out, "getelementptr (i8, ptr {name}, i64 {offset})");
            }
            Init::Func(func) => {
                let name = self.static_name(*func);
                let _ = match types.kind(ty) {
                    TyKind::Cn(_) => write!(out, "{{ ptr {name}, ptr null }}"),
                    _ => write!(out, "{name}"),
                };
            }
        }
        Ok(())
    }
}
