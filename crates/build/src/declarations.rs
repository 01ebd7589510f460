//! The declarations of a library's functions, as Rust. Separate from building, since this is text of signatures.

use nyala_sema::{ExportedType, Signatures};
use std::fmt::Write;

/// Words that are no names in Rust unless they are marked. `crate`, `self`, `super` and `Self` cannot be marked.
const KEYWORDS: &str = " abstract as async await become box break const continue do dyn else enum extern false final fn for gen if \
    impl in let loop macro match mod move mut override priv pub ref return static struct trait true try type typeof unsafe unsized \
    use virtual where while yield ";

/// A text as a name in Rust: `Slice[f32]` is `Slice_f32`.
fn name_of(text: &str) -> String {
    let text = text.trim_end_matches(']');
    let mut name: String = text.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' }).collect();
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) || name == "_" {
        name.insert(0, '_');
    }
    match name.as_str() {
        "crate" | "self" | "super" | "Self" => name + "_",
        _ if KEYWORDS.contains(&format!(" {name} ")) => format!("r#{name}"),
        _ => name,
    }
}

/// Names, each different from those before.
fn different(texts: impl Iterator<Item = String>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for text in texts {
        let plain = name_of(&text);
        let mut name = plain.clone();
        let mut n = 1;
        while names.contains(&name) {
            n += 1;
            name = format!("{plain}_{n}");
        }
        names.push(name);
    }
    names
}

struct Writer {
    structs: Vec<String>,
    /// The function or struct whose types are being written, for errors.
    of: String,
}

impl Writer {
    fn ty(&self, ty: &ExportedType) -> Result<String, String> {
        Ok(match ty {
            ExportedType::Prim(prim) if prim.name() == "f16" => return Err(self.lacks("`f16`")),
            ExportedType::Prim(prim) => prim.name().into(),
            ExportedType::Pointer { mutable, to, .. } => {
                format!("*{} {}", if *mutable { "mut" } else { "const" }, self.ty(to)?)
            }
            ExportedType::Array(of, n) => format!("[{}; {n}]", self.ty(of)?),
            ExportedType::Struct(index) => self.structs[*index].clone(),
            ExportedType::Unit => "()".into(),
            ExportedType::Function(..) | ExportedType::Other => {
                return Err(self.lacks("a tuple, a vector, a function or memory of a device"));
            }
        })
    }

    /// The type of a parameter or result.
    fn by_value(&self, ty: &ExportedType) -> Result<String, String> {
        match ty {
            ExportedType::Array(..) => Err(self.lacks("an array by value")),
            _ => self.ty(ty),
        }
    }

    /// The type of a pointer to a function, which gets the environment that is passed behind it.
    fn callback(&self, params: &[ExportedType], result: &ExportedType) -> Result<String, String> {
        let mut all = vec!["*mut ()".to_string()];
        for ty in params {
            all.push(self.by_value(ty)?);
        }
        let result = match result {
            ExportedType::Unit => String::new(),
            ty => format!(" -> {}", self.by_value(ty)?),
        };
        Ok(format!("unsafe extern \"C\" fn({}){result}", all.join(", ")))
    }

    fn lacks(&self, what: &str) -> String {
        format!(
            "error[limitation]: {} has {what}, which cannot be declared in Rust: pass it in a struct or by pointer\n",
            self.of
        )
    }
}

/// The module's text.
///
/// # Errors
/// A type that Rust lacks.
pub fn text(all: &Signatures, needs_runtime: bool) -> Result<String, String> {
    let mut w = Writer { structs: different(all.structs.iter().map(|s| s.name.clone())), of: String::new() };
    let mut out = String::from("// Made by nyala-build.\n");
    if needs_runtime {
        out.push_str(
            "\n// The library needs the crate nyala-runtime.\n#[allow(unused_imports)]\nuse nyala_runtime as _;\n",
        );
    }
    for (index, s) in all.structs.iter().enumerate() {
        w.of = format!("struct `{}`", s.name);
        let name = &w.structs[index];
        let _ = write!(out, "\n/// `{}` of the library.\n#[allow(non_camel_case_types)]\n", s.name);
        let _ = writeln!(out, "#[derive(Clone, Copy, Debug)]\n#[repr(C)]\npub struct {name} {{");
        let fields = different(s.fields.iter().map(|f| f.0.clone()));
        for (field, (_, ty)) in fields.iter().zip(&s.fields) {
            let _ = writeln!(out, "    #[allow(missing_docs)]\n    pub {field}: {},", w.ty(ty)?);
        }
        out.push_str("}\n");
        if let Some((element, is_mut)) = slice_of(&s.name, &s.fields) {
            let (element, access, pointer) =
                (w.ty(element)?, if is_mut { "&mut " } else { "&" }, if is_mut { "as_mut_ptr" } else { "as_ptr" });
            let _ = write!(
                out,
                "\nimpl {name} {{\n    /// These elements. The value must not be used when they are gone.\n    \
                 pub fn of(elements: {access}[{element}]) -> Self {{\n        \
                 Self {{ length: elements.len() as i64, data: elements.{pointer}() }}\n    }}\n}}\n"
            );
        }
    }
    out.push_str("\nunsafe extern \"C\" {\n");
    let names = different(all.functions.iter().map(|f| f.symbol.clone()));
    for (name, f) in names.iter().zip(&all.functions) {
        w.of = format!("`{}`", f.text);
        let (mut texts, mut tys) = (Vec::new(), Vec::new());
        for (name, ty) in &f.params {
            texts.push(name.clone());
            match ty {
                ExportedType::Function(params, result) => {
                    tys.push(w.callback(params, result)?);
                    texts.push(format!("{name}_env"));
                    tys.push("*mut ()".into());
                }
                ty => tys.push(w.by_value(ty)?),
            }
        }
        let params = different(texts.into_iter()).into_iter().zip(tys).map(|(name, ty)| format!("{name}: {ty}"));
        let params = params.collect::<Vec<_>>().join(", ");
        let result = match &f.result {
            ExportedType::Unit => String::new(),
            ty => format!(" -> {}", w.by_value(ty)?),
        };
        let _ = writeln!(out, "    /// `{}`", f.text);
        if *name != f.symbol {
            let _ = writeln!(out, "    #[link_name = {:?}]", f.symbol);
        }
        let _ = writeln!(out, "    pub fn {name}({params}){result};");
    }
    out.push_str("}\n");
    Ok(out)
}

/// The type of the elements if a struct is a slice of `std::slice`, and whether they are written.
fn slice_of<'a>(name: &str, fields: &'a [(String, ExportedType)]) -> Option<(&'a ExportedType, bool)> {
    let is_slice = name.starts_with("Slice[") || name.starts_with("MutSlice[");
    match fields {
        [(data, ExportedType::Pointer { mutable, many: true, to }), (length, ExportedType::Prim(prim))]
            if is_slice && data == "data" && length == "length" && prim.name() == "i64" =>
        {
            Some((to, *mutable))
        }
        _ => None,
    }
}
