//! Names that libraries have, whether or not the program uses them, and those of the program's own modules. Only hints need them,
//! so they are collected from syntax trees, and only when there is an error.

use nyala_syntax::ast::{Fn, Item, ItemKind, Module, TypeKind};

/// The public names of a library, or of a module in one.
#[derive(Clone, Debug)]
pub struct Exports {
    /// `std::random`
    pub path: String,
    /// Its file, unless it comes with the compiler.
    pub file: Option<String>,
    items: Vec<Box<str>>,
    /// Functions of its `impl` blocks for types with a name, and that name.
    methods: Vec<(Box<str>, Box<str>)>,
}

impl Exports {
    /// The exports of a file with the module `path`, one for the file and one for each public `mod` in it.
    pub fn of(path: &str, file: &Module) -> Vec<Exports> {
        let mut all = Vec::new();
        let mut work: Vec<(String, &[Item])> = vec![(path.into(), &file.items)];
        while let Some((path, items)) = work.pop() {
            let mut exports = Exports { path, file: None, items: Vec::new(), methods: Vec::new() };
            for item in items.iter().filter(|i| !i.private) {
                let named = match &item.kind {
                    ItemKind::Fn(f) => &f.name,
                    ItemKind::Static(s) => &s.name,
                    ItemKind::Struct(s) => &s.name,
                    ItemKind::Enum(e) => &e.name,
                    ItemKind::Alias(a) => &a.name,
                    ItemKind::Trait(t) => &t.name,
                    ItemKind::Extern(block) => {
                        exports.items.extend(names(&block.fns));
                        continue;
                    }
                    ItemKind::Impl(i) => {
                        if let TypeKind::Path(path) = &file[i.ty].kind
                            && let Some(of) = path.names.last()
                        {
                            exports.methods.extend(names(&i.fns).map(|name| (name, of.text.clone())));
                        }
                        continue;
                    }
                    ItemKind::Mod(m) => {
                        let prefix = if exports.path.is_empty() { "" } else { "::" };
                        let path = format!("{}{prefix}{}", exports.path, m.name.text);
                        work.extend(m.items.iter().map(|items| (path.clone(), &items[..])));
                        &m.name
                    }
                    ItemKind::Use(_) => continue,
                };
                exports.items.push(named.text.clone());
            }
            all.push(exports);
        }
        all
    }

    pub(crate) fn has_item(&self, name: &str) -> bool {
        self.items.iter().any(|n| **n == *name)
    }

    /// Whether types of this name have a method in it. The name may be that of a literal whose type is still open.
    pub(crate) fn has_method(&self, name: &str, of: &str) -> bool {
        let fits = |ty: &str| match of {
            "integer" => ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"].contains(&ty),
            "float" => ["f16", "f32", "f64"].contains(&ty),
            _ => ty == of,
        };
        self.methods.iter().any(|(n, ty)| **n == *name && fits(ty))
    }

    /// Whether the last name of its path is `name`.
    pub fn is_called(&self, name: &str) -> bool {
        self.path.rsplit("::").next() == Some(name)
    }
}

fn names(fns: &[Fn]) -> impl Iterator<Item = Box<str>> {
    fns.iter().filter(|f| !f.private).map(|f| f.name.text.clone())
}
