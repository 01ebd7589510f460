//! The header for C: what other code needs to know of the functions that are exported.
//!
//! Structs come before what has them as parts, each guarded by a macro of its own: several headers may have one. What has lanes is an array of them. For C++,
//! functions of ISPC's dialect are in the namespace `ispc`, as its programs expect.

use super::*;
use std::fmt::Write;

impl<'s> Lowerer<'s, '_> {
    /// The text of a header, without what guards it.
    pub(super) fn header(&self) -> String {
        let functions: Vec<&Function<'s>> = self
            .functions
            .iter()
            .filter(|f| f.is_defined && !f.is_static && f.name != "main" && self.is_shown(f))
            .collect();
        let mut structs = Vec::new();
        let mut seen = FxHashSet::default();
        let types = functions.iter().flat_map(|f| f.params.iter().chain([&f.result]));
        let mut open: Vec<(Ty, bool)> = types.map(|&ty| (ty, false)).collect();
        open.reverse();
        while let Some((ty, is_done)) = open.pop() {
            if is_done {
                structs.push(ty);
                continue;
            }
            match *self.types.kind(ty) {
                Kind::Pointer { to, .. } | Kind::Reference { to, .. } | Kind::VaryingPointer { to, .. } => {
                    // What only pointers lead to may come later.
                    open.insert(0, (to, false));
                }
                Kind::Array(of, _) | Kind::Soa { block: of, .. } => open.push((of, false)),
                Kind::Short(..) if seen.insert(ty) => structs.push(ty),
                Kind::Struct(_) if seen.insert(ty) => {
                    open.push((ty, true));
                    let fields = self.types.as_struct(ty).and_then(|s| s.fields.as_ref());
                    open.extend(fields.into_iter().flatten().map(|f| (f.ty, false)));
                }
                _ => {}
            }
        }
        let mut text = String::from("#include <stdbool.h>\n#include <stdint.h>\n");
        text += "\n#ifdef __cplusplus\nnamespace ispc {\n#endif\n";
        for ty in structs {
            self.write_struct(ty, &mut text);
        }
        text += "\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n";
        for f in functions {
            let params: Vec<String> = f.params.iter().map(|&ty| self.c_declaration(ty, "")).collect();
            let params = if params.is_empty() { "void".into() } else { params.join(", ") };
            let _ = writeln!(text, "{}({params});", self.c_declaration(f.result, &f.name));
        }
        text + "#ifdef __cplusplus\n}\n}\n#endif\n"
    }

    fn is_shown(&self, f: &Function<'s>) -> bool {
        let is_known = f.is_c || self.symbols.get(&*f.name).is_none_or(|ids| ids.len() < 2);
        is_known && self.is_exportable(f)
    }

    fn c_name(&self, ty: Ty) -> String {
        match *self.types.kind(ty) {
            Kind::Short(of, n) => {
                let prim = self.number_type(of).map_or(Prim::F32, |n| n.0);
                let word = match prim {
                    Prim::F16 => "half",
                    Prim::F32 => "float",
                    Prim::F64 => "double",
                    Prim::I32 => "int",
                    Prim::U32 => "uint",
                    other => other.name(),
                };
                format!("{word}{n}")
            }
            _ => {
                let name = self.types.as_struct(ty).map_or("", |s| &s.name);
                name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
            }
        }
    }

    fn write_struct(&self, ty: Ty, text: &mut String) {
        let name = self.c_name(ty);
        let _ = write!(text, "\n#ifndef NYALA_STRUCT_{name}\n#define NYALA_STRUCT_{name}\n");
        match *self.types.kind(ty) {
            Kind::Short(of, n) => {
                let _ = writeln!(text, "struct {name} {{ {}; }};", self.c_declaration(of, &format!("v[{n}]")));
            }
            _ => {
                let Some(data) = self.types.as_struct(ty) else { return };
                let word = if data.is_union { "union" } else { "struct" };
                match &data.fields {
                    None => _ = writeln!(text, "{word} {name};"),
                    Some(fields) => {
                        let _ = writeln!(text, "{word} {name} {{");
                        for field in fields {
                            let _ = writeln!(text, "    {};", self.c_declaration(field.ty, &field.name));
                        }
                        *text += "};\n";
                    }
                }
            }
        }
        *text += "#endif\n";
    }

    /// A declaration of a name in C; types are nested only as deep as [`Types::is_too_deep`] allows.
    fn c_declaration(&self, ty: Ty, name: &str) -> String {
        let with = |word: &str| if name.is_empty() { word.to_string() } else { format!("{word} {name}") };
        match *self.types.kind(ty) {
            Kind::Prim(prim) => with(match prim {
                Prim::Bool => "bool",
                Prim::I8 => "int8_t",
                Prim::I16 => "int16_t",
                Prim::I32 => "int32_t",
                Prim::I64 => "int64_t",
                Prim::U8 => "uint8_t",
                Prim::U16 => "uint16_t",
                Prim::U32 => "uint32_t",
                Prim::U64 => "uint64_t",
                Prim::F16 => "_Float16",
                Prim::F32 => "float",
                Prim::F64 => "double",
            }),
            Kind::Pointer { to, is_const } | Kind::Reference { to, is_const } => {
                let inner = format!("{}*{name}", if is_const { "const " } else { "" });
                match *self.types.kind(to) {
                    Kind::Array(..) => self.c_declaration(to, &format!("(*{name})")),
                    // Its lanes lie side by side.
                    Kind::Varying(prim, _) => {
                        let lane = self.types.known_prim(prim);
                        self.c_declaration(lane, &inner)
                    }
                    Kind::Void => format!("void {inner}"),
                    _ => self.c_declaration(to, &inner),
                }
            }
            Kind::Array(of, n) => self.c_declaration(of, &format!("{name}[{n}]")),
            Kind::Soa { block, .. } => self.c_declaration(block, name),
            Kind::Struct(_) => {
                let is_union = self.types.as_struct(ty).is_some_and(|s| s.is_union);
                with(&format!("{} {}", if is_union { "union" } else { "struct" }, self.c_name(ty)))
            }
            Kind::Short(..) => with(&format!("struct {}", self.c_name(ty))),
            Kind::Varying(prim, n) => {
                let lane = self.types.known_prim(prim);
                self.c_declaration(lane, &format!("{name}[{n}]"))
            }
            Kind::VaryingPointer { n, .. } => format!("void *{name}[{n}]"),
            Kind::Function(_) => with("uint64_t"),
            Kind::VaryingFunction(_, n) => format!("uint64_t {name}[{n}]"),
            Kind::Error | Kind::Void => with("void"),
        }
    }
}
