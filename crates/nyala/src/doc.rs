//! `nyala doc`: reference pages of libraries, from their comments and signatures. Works on syntax trees, without names or types, so
//! that libraries can be documented that no program uses, or that do not compile. This file is what pages contain and how
//! names lead from one to the other; what is read from a tree is in `collect`, texts of comments in `comments`, forms of
//! pages in `html` and `markdown`.

mod collect;
mod comments;
mod html;
mod markdown;

use comments::Block;
use nyala_base::{Sink, Sources};
use nyala_syntax::ast::Use;
use std::collections::{BTreeMap, HashMap};

/// A file that is to be documented.
pub struct Source {
    /// The path of its module, such as `std::view`. Files of a library with one path share a page.
    pub module: String,
    /// The name of the file in diagnostics.
    pub file: String,
    /// Its content.
    pub text: String,
    /// Whether other files may share its page.
    pub shared: bool,
}

/// The form of pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Format {
    /// Pages for a browser, with a search.
    Html,
    /// Pages for GitHub and GitLab, for instance.
    Markdown,
}

/// The content of all pages.
pub struct Reference {
    pages: Vec<Page>,
    /// Where things are, by their paths.
    definitions: HashMap<String, Place>,
    /// The `use` items of modules, by their paths.
    uses: HashMap<String, Vec<Use>>,
}

/// A page, and the anchor in it.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Place {
    page: usize,
    anchor: String,
}

struct Page {
    /// The module's path.
    module: String,
    /// The name of its file, without the extension.
    file: String,
    parts: Vec<Part>,
    anchors: Taken,
}

/// A page's section on one file.
struct Part {
    /// The name of the file, if the page has several.
    title: Option<String>,
    /// Whether items may be missing, because of syntax errors.
    broken: bool,
    about: Vec<Block>,
    sections: Vec<Section>,
}

/// Things under a comment that stands by itself.
#[derive(Default)]
struct Section {
    title: Option<String>,
    about: Vec<Block>,
    groups: Vec<Group>,
}

/// Things that share a comment.
#[derive(Default)]
struct Group {
    entries: Vec<Entry>,
    about: Vec<Block>,
    /// Conditions of `//?` lines.
    examples: Vec<String>,
}

struct Entry {
    kind: Kind,
    name: String,
    anchor: String,
    signature: Vec<Piece>,
    /// Fields, options, methods, functions of an `extern` block.
    members: Vec<Section>,
}

/// A part of a signature, and the path that it names.
struct Piece {
    text: String,
    path: Option<Vec<String>>,
}

/// In the order of a page's contents.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Kind {
    Module,
    Struct,
    Enum,
    Trait,
    Impl,
    Alias,
    Static,
    Fn,
    Extern,
    Field,
    Option,
    Method,
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Kind::Module => "module",
            Kind::Struct => "struct",
            Kind::Enum => "enum",
            Kind::Trait => "trait",
            Kind::Impl => "impl",
            Kind::Alias => "type",
            Kind::Static => "static",
            Kind::Fn => "function",
            Kind::Extern => "extern",
            Kind::Field => "field",
            Kind::Option => "option",
            Kind::Method => "method",
        }
    }

    fn plural(self) -> &'static str {
        match self {
            Kind::Module => "Modules",
            Kind::Struct => "Structs",
            Kind::Enum => "Enums",
            Kind::Trait => "Traits",
            Kind::Impl => "Implementations",
            Kind::Alias => "Type aliases",
            Kind::Static => "Statics",
            Kind::Fn => "Functions",
            Kind::Extern => "Extern declarations",
            Kind::Field => "Fields",
            Kind::Option => "Options",
            Kind::Method => "Methods",
        }
    }
}

/// A name of the index and of the search.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Indexed<'a> {
    name: &'a str,
    module: &'a str,
    kind: Kind,
    page: usize,
    anchor: &'a str,
    summary: String,
}

/// Reads files. Syntax errors go to `sink`; what else is in the file is documented.
pub fn read(files: Vec<Source>, private: bool, sources: &mut Sources, sink: &mut Sink) -> Reference {
    collect::collect(files, private, sources, sink)
}

impl Reference {
    /// The pages, with the names of their files: the index comes first.
    pub fn write(&self, format: Format) -> Vec<(String, String)> {
        match format {
            Format::Html => html::write(self),
            Format::Markdown => markdown::write(self),
        }
    }

    /// The number of pages about modules.
    pub fn n_pages(&self) -> usize {
        self.pages.len()
    }

    /// The documented item that `names` means in the module. Names of outer modules and of the prelude can be seen.
    fn resolve(&self, module: &str, names: &[String]) -> Option<&Place> {
        let path: Vec<&str> = module.split("::").collect();
        let mut names: Vec<&str> = names.iter().map(|n| &**n).collect();
        let mut inner = path.len();
        while let Some(first @ (&"self" | &"super")) = names.first() {
            inner = if *first == "super" { inner.checked_sub(1)? } else { inner };
            names.remove(0);
        }
        let first = *names.first()?;
        let find = |base: &[&str], names: &[&str]| self.definitions.get(&[base, names].concat().join("::"));
        for n in (0..=inner).rev() {
            let base = &path[..n];
            if let Some(place) = find(base, &names) {
                return Some(place);
            }
            for u in self.uses.get(&base.join("::")).into_iter().flatten() {
                let mut target: Vec<&str> = u.names.iter().map(|n| &*n.text).collect();
                match u.name() {
                    _ if u.all => target.extend(&names),
                    Some(name) if *name.text == *first => target.extend(&names[1..]),
                    _ => continue,
                }
                if let Some(place) = (0..=n).rev().find_map(|k| find(&base[..k], &target)) {
                    return Some(place);
                }
            }
        }
        find(&["prelude"], &names)
    }

    /// The item that a text in backticks means, if that is a name or a call: `view1(n, data)`.
    fn resolve_code(&self, module: &str, code: &str) -> Option<&Place> {
        let end = code.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':')).unwrap_or(code.len());
        if !matches!(code[end..].bytes().next(), None | Some(b'(' | b'[')) {
            return None;
        }
        let names: Vec<String> = code[..end].split("::").map(String::from).collect();
        self.resolve(module, &names)
    }

    /// The names of all pages, by name.
    fn names(&self) -> Vec<Indexed<'_>> {
        let mut names = Vec::new();
        for (i, page) in self.pages.iter().enumerate() {
            names.push(Indexed {
                name: &page.module,
                module: "",
                kind: Kind::Module,
                page: i,
                anchor: "",
                summary: page.summary(),
            });
            for group in page.groups() {
                for entry in &group.entries {
                    names.extend(indexed(page, i, group, entry));
                    // The trait's own entry explains its methods.
                    let own = entry.kind != Kind::Impl || !entry.name.contains(" for ");
                    for inner in entry.members.iter().filter(|_| own).flat_map(|s| &s.groups) {
                        names.extend(inner.entries.iter().filter_map(|m| indexed(page, i, inner, m)));
                    }
                }
            }
        }
        names.sort_by_cached_key(|n| (n.name.to_ascii_lowercase(), n.name, n.module, n.kind, n.anchor.to_string()));
        names
    }
}

fn indexed<'a>(page: &'a Page, i: usize, group: &Group, entry: &'a Entry) -> Option<Indexed<'a>> {
    // Blocks have no names of their own.
    let named = !matches!(entry.kind, Kind::Impl | Kind::Extern | Kind::Module) && entry.kind != Kind::Field;
    named.then(|| Indexed {
        name: &entry.name,
        module: &page.module,
        kind: entry.kind,
        page: i,
        anchor: &entry.anchor,
        summary: comments::summary(&group.about),
    })
}

impl Group {
    /// Whether its comment comes first, because the things that share it have members.
    fn is_list(&self) -> bool {
        self.entries.len() > 1 && self.entries.iter().any(|e| !e.members.is_empty())
    }
}

impl Page {
    /// The first sentence about the module.
    fn summary(&self) -> String {
        self.parts.iter().map(|p| comments::summary(&p.about)).find(|s| !s.is_empty()).unwrap_or_default()
    }

    fn groups(&self) -> impl Iterator<Item = &Group> {
        self.parts.iter().flat_map(|p| &p.sections).flat_map(|s| &s.groups)
    }

    /// The entries by kind, with those of `extern` blocks, in the order of the page.
    fn contents(&self) -> BTreeMap<Kind, Vec<&Entry>> {
        let mut kinds: BTreeMap<Kind, Vec<&Entry>> = BTreeMap::new();
        for entry in self.groups().flat_map(|g| &g.entries) {
            if entry.kind == Kind::Extern {
                let inner = entry.members.iter().flat_map(|s| &s.groups).flat_map(|g| &g.entries);
                kinds.entry(Kind::Extern).or_default().extend(inner);
            } else {
                kinds.entry(entry.kind).or_default().push(entry);
            }
        }
        kinds
    }

    /// An anchor that no other thing of the page has.
    fn anchor(&mut self, name: &str) -> String {
        let mut clean: String =
            name.chars().map(|c| if c.is_ascii_alphanumeric() || "_.".contains(c) { c } else { '-' }).collect();
        while clean.contains("--") {
            clean = clean.replace("--", "-");
        }
        unique(clean.trim_matches('-'), &mut self.anchors)
    }
}

/// Texts that are taken, each with the last number that was put behind it.
type Taken = HashMap<String, usize>;

/// The text, with a number behind it if it is taken.
fn unique(text: &str, taken: &mut Taken) -> String {
    let mut n = taken.get(text).copied().unwrap_or(0);
    loop {
        n += 1;
        let all = if n == 1 { text.to_string() } else { format!("{text}-{n}") };
        if n > 1 && taken.contains_key(&all) {
            continue;
        }
        taken.insert(text.to_string(), n);
        taken.entry(all.clone()).or_insert(1);
        return all;
    }
}

/// A name in a URL.
fn encode(name: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    name.bytes().map(|b| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
}

/// The address of a place, from the page `from`. The extension is that of pages.
fn href(reference: &Reference, from: Option<usize>, page: usize, anchor: &str, extension: &str) -> String {
    let file = match from {
        Some(from) if from == page && !anchor.is_empty() => String::new(),
        _ => format!("{}.{extension}", encode(&reference.pages[page].file)),
    };
    let mark = if anchor.is_empty() { "" } else { "#" };
    format!("{file}{mark}{anchor}")
}

/// Text in HTML. Control characters, which documents cannot have, become a sign for them.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' => out.push(c),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// A signature as HTML, in which names are links; Markdown has it, too.
fn signature(reference: &Reference, page: usize, entry: &Entry, extension: &str) -> String {
    let module = &reference.pages[page].module;
    let mut out = String::new();
    for piece in &entry.signature {
        let place = piece.path.as_ref().and_then(|path| reference.resolve(module, path));
        match place {
            Some(place) if place.page != page || place.anchor != entry.anchor => {
                let href = href(reference, Some(page), place.page, &place.anchor, extension);
                out += &format!("<a href=\"{href}\">{}</a>", escape(&piece.text));
            }
            _ => out += &escape(&piece.text),
        }
    }
    out
}
