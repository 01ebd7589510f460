//! From syntax trees to pages: which items there are, their signatures as the source has them, the comments above them.

use super::comments::{Block, blocks, gap, queries, take_heading};
use super::{Entry, Group, Kind, Page, Part, Piece, Place, Reference, Section, Source, Taken, unique};
use nyala_base::{Sink, Sources, Span};
use nyala_syntax::ast::{Enum, ExprKind, Fn, Impl, Item, ItemKind, Module, PatternKind, Struct, TypeKind, TypeParam};
use std::collections::HashMap;

/// A file, with the paths in it by their places.
struct File<'a> {
    tree: &'a Module,
    text: &'a str,
    paths: Vec<(u32, u32, Vec<String>)>,
}

/// A thing in a list, and its place; without an entry if it is not documented.
struct Thing {
    lo: u32,
    hi: u32,
    entry: Option<Entry>,
    is_use: bool,
}

/// The items of a module in a file.
struct Body<'a> {
    module: String,
    items: &'a [Item],
    lo: u32,
    hi: u32,
    /// The comment above a `mod m { … }`.
    above: Vec<Block>,
    /// Whether these are the items of the file.
    whole: bool,
}

struct Collector {
    reference: Reference,
    private: bool,
    /// Names of files, in lower case, because some systems do not tell them apart.
    files: Taken,
}

/// Limit on the bytes of a page's name; systems have limits for names of files.
const MAX_NAME: usize = 200;

pub fn collect(files: Vec<Source>, private: bool, sources: &mut Sources, sink: &mut Sink) -> Reference {
    let reference = Reference { pages: Vec::new(), definitions: HashMap::new(), uses: HashMap::new() };
    let files_of_index = HashMap::from([("index".to_string(), 1)]);
    let mut c = Collector { reference, private, files: files_of_index };
    let mut shared: HashMap<String, usize> = HashMap::new();
    for source in files {
        let id = sources.add(source.file, source.text);
        let text = sources.text(id);
        let tree = nyala_syntax::parse(id, text, sink);
        let file = File { tree: &tree, text, paths: paths(&tree) };
        let known = source.shared.then(|| shared.get(&source.module).copied()).flatten();
        let page = known.unwrap_or_else(|| c.page(&source.module));
        shared.insert(source.module.clone(), page);
        let name = sources.name(id);
        let title = source.shared.then(|| name.rsplit('/').next().unwrap_or(name).to_string());
        let whole = Body {
            module: source.module,
            items: &tree.items,
            lo: 0,
            hi: text.len() as u32,
            above: Vec::new(),
            whole: true,
        };
        let mut work = vec![(whole, Some(page), title)];
        while let Some((body, page, title)) = work.pop() {
            let page = page.unwrap_or_else(|| c.page(&body.module));
            let mut inner = Vec::new();
            let part = c.part(&file, page, body, title, &mut inner);
            c.reference.pages[page].parts.push(part);
            work.extend(inner.into_iter().rev().map(|body| (body, None, None)));
        }
    }
    c.reference
}

/// The paths in types and expressions, by their places.
fn paths(tree: &Module) -> Vec<(u32, u32, Vec<String>)> {
    let types = tree.types.iter().filter_map(|t| if let TypeKind::Path(p) = &t.kind { Some(p) } else { None });
    let exprs = tree.exprs.iter().filter_map(|e| match &e.kind {
        ExprKind::Path(p) | ExprKind::Struct { path: p, .. } => Some(p),
        _ => None,
    });
    let mut all: Vec<(u32, u32, Vec<String>)> = types
        .chain(exprs)
        .filter_map(|p| {
            // The names behind type arguments are not linked.
            let n = p.inner_args.first().map_or(p.names.len(), |(at, _)| *at as usize + 1);
            let names = p.names.get(..n)?;
            let span = names.first()?.span.to(names.last()?.span);
            Some((span.lo, span.hi, names.iter().map(|n| n.text.to_string()).collect()))
        })
        .collect();
    all.sort();
    all.dedup_by_key(|p| p.0);
    all
}

/// The names that a function binds, which mean nothing else in its signature.
fn bound(f: &Fn) -> Vec<&str> {
    let params = f.params.iter().filter_map(|p| match &p.pattern.kind {
        PatternKind::Name { name, .. } => Some(&*name.text),
        _ => None,
    });
    params.chain(type_names(&f.type_params)).collect()
}

fn type_names(params: &[TypeParam]) -> impl Iterator<Item = &str> {
    params.iter().map(|p| &*p.name.text)
}

impl File<'_> {
    fn slice(&self, lo: u32, hi: u32) -> &str {
        self.text.get(lo as usize..hi as usize).unwrap_or("")
    }

    /// The place of the next `{`, or the end.
    fn brace(&self, from: u32, end: u32) -> u32 {
        self.slice(from, end).find('{').map_or(end, |i| from + i as u32)
    }

    /// Source text, with the paths in it. Lines after the first lose the indentation of the first.
    fn pieces(&self, lo: u32, hi: u32, bound: &[&str]) -> Vec<Piece> {
        let hi = lo + self.slice(lo, hi).trim_end_matches(|c: char| c.is_whitespace() || c == ';').len() as u32;
        let line = self.text.get(..lo as usize).and_then(|t| t.rsplit('\n').next()).unwrap_or("");
        let indent = line.len() - line.trim_start().len();
        let plain = |lo: u32, hi: u32| {
            let mut lines = self.slice(lo, hi).split('\n').map(|l| l.strip_suffix('\r').unwrap_or(l));
            let mut text = lines.next().unwrap_or("").to_string();
            for line in lines {
                let blank = line.len() - line.trim_start().len();
                text.push('\n');
                text.push_str(line.get(blank.min(indent)..).unwrap_or(line));
            }
            Piece { text, path: None }
        };
        let mut out = Vec::new();
        let mut at = lo;
        let first = self.paths.partition_point(|p| p.0 < lo);
        for (from, to, names) in self.paths[first..].iter().take_while(|p| p.1 <= hi) {
            if *from < at || bound.contains(&&*names[0]) {
                continue;
            }
            out.push(plain(at, *from));
            out.push(Piece { text: self.slice(*from, *to).into(), path: Some(names.clone()) });
            at = *to;
        }
        out.push(plain(at, hi));
        out
    }

    fn end_of(&self, f: &Fn) -> u32 {
        f.body.map_or(f.span.hi, |body| self.tree[body].span.hi)
    }
}

/// Whether `nyala test` or `nyala bench` runs the item; no caller of a library is meant to.
fn is_measured(item: &Item) -> bool {
    let ItemKind::Fn(f) = &item.kind else { return false };
    let name = &*f.name.text;
    f.body.is_some() && f.params.is_empty() && (name.starts_with("test_") || name.starts_with("bench_"))
}

fn plain(text: impl Into<String>) -> Piece {
    Piece { text: text.into(), path: None }
}

impl Collector {
    /// A new page about a module.
    fn page(&mut self, module: &str) -> usize {
        let page = self.reference.pages.len();
        let mut name: String = module
            .replace("::", ".")
            .chars()
            .map(|c| if c.is_control() || "/\\".contains(c) { '_' } else { c })
            .collect();
        while name.len() > MAX_NAME {
            name.pop();
        }
        let lower = name.to_lowercase();
        let taken = unique(&lower, &mut self.files);
        let file = name + &taken[lower.len()..];
        self.define(module.to_string(), page, String::new());
        self.reference.pages.push(Page { module: module.into(), file, parts: Vec::new(), anchors: Taken::new() });
        page
    }

    /// The first definition of a path counts.
    fn define(&mut self, path: String, page: usize, anchor: String) {
        self.reference.definitions.entry(path).or_insert(Place { page, anchor });
    }

    fn part<'a>(
        &mut self,
        file: &File<'a>,
        page: usize,
        body: Body<'a>,
        title: Option<String>,
        inner: &mut Vec<Body<'a>>,
    ) -> Part {
        let mut things = Vec::new();
        let first_inner = inner.len();
        for item in body.items {
            things.push(self.thing(file, page, &body.module, item, inner));
        }
        let (mut about, sections) = sections(file, things, body.lo, body.hi, body.whole);
        let groups = sections.iter().flat_map(|s| &s.groups);
        let modules =
            groups.flat_map(|g| g.entries.iter().filter(|e| e.kind == Kind::Module).map(|e| (&*e.name, &g.about)));
        let modules: HashMap<&str, &Vec<Block>> = modules.collect();
        for inner in &mut inner[first_inner..] {
            inner.above = modules.get(&*inner.module).map(|about| about.to_vec()).unwrap_or_default();
        }
        if !body.whole {
            about = body.above;
        }
        Part { title, broken: file.tree.broken, about, sections }
    }

    fn thing<'a>(
        &mut self,
        file: &File<'a>,
        page: usize,
        module: &str,
        item: &'a Item,
        inner: &mut Vec<Body<'a>>,
    ) -> Thing {
        let Span { lo, hi, .. } = item.span;
        if let ItemKind::Use(u) = &item.kind {
            self.reference.uses.entry(module.into()).or_default().push(u.clone());
            return Thing { lo, hi, entry: None, is_use: true };
        }
        let shown = self.private || !(item.private || is_measured(item));
        let entry = shown.then(|| self.entry(file, page, module, item, inner)).flatten();
        Thing { lo, hi, entry, is_use: false }
    }

    fn entry<'a>(
        &mut self,
        file: &File<'a>,
        page: usize,
        module: &str,
        item: &'a Item,
        inner: &mut Vec<Body<'a>>,
    ) -> Option<Entry> {
        let Span { lo, hi, .. } = item.span;
        Some(match &item.kind {
            ItemKind::Use(_) => return None,
            ItemKind::Fn(f) => self.named(page, module, Kind::Fn, &f.name.text, file.pieces(lo, f.span.hi, &bound(f))),
            ItemKind::Alias(a) => {
                let bound: Vec<&str> = type_names(&a.type_params).collect();
                self.named(page, module, Kind::Alias, &a.name.text, file.pieces(lo, hi, &bound))
            }
            ItemKind::Static(s) => {
                let text = file.slice(lo, hi);
                let init = s.init.map(|e| file.tree[e].span.lo).filter(|_| text.len() > 100 || text.contains('\n'));
                let mut pieces = file.pieces(lo, init.unwrap_or(hi), &[]);
                pieces.extend(init.map(|_| plain(" …")));
                self.named(page, module, Kind::Static, &s.name.text, pieces)
            }
            ItemKind::Struct(s) => self.structure(file, page, module, s, item.span),
            ItemKind::Enum(e) => self.enumeration(file, page, module, e, item.span),
            ItemKind::Trait(t) => {
                let supers = t.supers.last().map_or(t.name.span.hi, |ty| file.tree[*ty].span.hi);
                let head = file.brace(supers, hi);
                let bound: Vec<&str> = type_names(&t.type_params).collect();
                let mut entry = self.named(page, module, Kind::Trait, &t.name.text, file.pieces(lo, head, &bound));
                entry.members =
                    self.methods(file, page, module, &t.name.text, &entry.anchor, &t.fns, (head, hi), &bound);
                entry
            }
            ItemKind::Impl(i) => self.implementation(file, page, module, i, item.span)?,
            ItemKind::Extern(e) => {
                let head = e.convention.as_ref().map_or(file.brace(lo, hi), |(_, span)| span.hi);
                let name = file.slice(lo, head).trim().to_string();
                let anchor = self.reference.pages[page].anchor(&name);
                let mut things = Vec::new();
                for f in &e.fns {
                    let entry = (self.private || !f.private).then(|| {
                        let pieces = file.pieces(f.span.lo, f.span.hi, &bound(f));
                        self.named(page, module, Kind::Fn, &f.name.text, pieces)
                    });
                    things.push(Thing { lo: f.span.lo, hi: file.end_of(f), entry, is_use: false });
                }
                let members = sections(file, things, head, hi, false).1;
                if members.is_empty() {
                    return None;
                }
                Entry { kind: Kind::Extern, signature: vec![plain(&name)], name, anchor, members }
            }
            ItemKind::Mod(m) => {
                let path = format!("{module}::{}", m.name.text);
                if let Some(items) = &m.items {
                    let lo = file.brace(m.name.span.hi, hi);
                    let (module, above) = (path.clone(), Vec::new());
                    inner.push(Body { module, items, lo, hi, above, whole: false });
                }
                let anchor = self.reference.pages[page].anchor(&m.name.text);
                let name = Piece { text: m.name.text.to_string(), path: Some(vec![m.name.text.to_string()]) };
                Entry {
                    kind: Kind::Module,
                    name: path,
                    anchor,
                    signature: vec![plain("mod "), name],
                    members: Vec::new(),
                }
            }
        })
    }

    /// An entry that paths can name.
    fn named(&mut self, page: usize, module: &str, kind: Kind, name: &str, signature: Vec<Piece>) -> Entry {
        let anchor = self.reference.pages[page].anchor(name);
        self.define(format!("{module}::{name}"), page, anchor.clone());
        Entry { kind, name: name.into(), anchor, signature, members: Vec::new() }
    }

    fn structure(&mut self, file: &File, page: usize, module: &str, s: &Struct, span: Span) -> Entry {
        let bound: Vec<&str> = type_names(&s.type_params).collect();
        let head = file.brace(s.name.span.hi, span.hi);
        let mut signature = file.pieces(span.lo, head, &bound);
        let visible = |private: bool| self.private || !private;
        if !s.fields.is_empty() {
            signature.push(plain(" {\n"));
            for field in s.fields.iter().filter(|f| visible(f.private)) {
                signature.push(plain(if field.private { "    priv " } else { "    " }));
                signature.extend(file.pieces(field.name.span.lo, file.tree[field.ty].span.hi, &bound));
                signature.push(plain(",\n"));
            }
            let hides = s.fields.iter().any(|f| !visible(f.private));
            signature.push(plain(if hides { "    // and private fields\n}" } else { "}" }));
        }
        let mut entry = self.named(page, module, Kind::Struct, &s.name.text, signature);
        let mut things = Vec::new();
        for field in &s.fields {
            let (lo, hi) = (field.name.span.lo, file.tree[field.ty].span.hi);
            let member = (self.private || !field.private).then(|| Entry {
                kind: Kind::Field,
                name: field.name.text.to_string(),
                anchor: String::new(),
                signature: file.pieces(lo, hi, &bound),
                members: Vec::new(),
            });
            things.push(Thing { lo, hi, entry: member, is_use: false });
        }
        entry.members = sections(file, things, head, span.hi, false).1;
        for section in &mut entry.members {
            section.groups.retain(|g| !g.about.is_empty());
        }
        entry.members.retain(|s| !s.groups.is_empty());
        entry
    }

    fn enumeration(&mut self, file: &File, page: usize, module: &str, e: &Enum, span: Span) -> Entry {
        let bound: Vec<&str> = type_names(&e.type_params).collect();
        let head = file.brace(e.name.span.hi, span.hi);
        let mut signature = file.pieces(span.lo, head, &bound);
        signature.push(plain(if e.options.is_empty() { " {}" } else { " {\n" }));
        let mut options = Vec::new();
        for option in &e.options {
            let end = option.parts.last().map_or(option.name.span.hi, |ty| {
                let end = file.tree[*ty].span.hi;
                end + file.slice(end, span.hi).find(')').map_or(0, |i| i as u32 + 1)
            });
            signature.push(plain("    "));
            signature.extend(file.pieces(option.name.span.lo, end, &bound));
            signature.push(plain(",\n"));
            options.push((option, end));
        }
        signature.extend((!e.options.is_empty()).then(|| plain("}")));
        let mut entry = self.named(page, module, Kind::Enum, &e.name.text, signature);
        let mut things = Vec::new();
        for (option, hi) in options {
            let lo = option.name.span.lo;
            let name = format!("{}::{}", e.name.text, option.name.text);
            let member = self.member(page, module, Kind::Option, name, &entry.anchor, file.pieces(lo, hi, &bound));
            things.push(Thing { lo, hi, entry: Some(member), is_use: false });
        }
        entry.members = sections(file, things, head, span.hi, false).1;
        entry
    }

    /// An option or a method: its name has that of its type before it, its anchor that of the thing around it.
    fn member(
        &mut self,
        page: usize,
        module: &str,
        kind: Kind,
        name: String,
        around: &str,
        signature: Vec<Piece>,
    ) -> Entry {
        let own = name.rsplit("::").next().unwrap_or(&name);
        let anchor = self.reference.pages[page].anchor(&format!("{around}.{own}"));
        self.define(format!("{module}::{name}"), page, anchor.clone());
        Entry { kind, name, anchor, signature, members: Vec::new() }
    }

    #[allow(clippy::too_many_arguments, reason = "two callers, which have all this at hand")]
    fn methods(
        &mut self,
        file: &File,
        page: usize,
        module: &str,
        ty: &str,
        around: &str,
        fns: &[Fn],
        (lo, hi): (u32, u32),
        outer: &[&str],
    ) -> Vec<Section> {
        let mut things = Vec::new();
        for f in fns {
            let entry = (self.private || !f.private).then(|| {
                let bound = [&bound(f)[..], outer].concat();
                let mut signature = file.pieces(f.span.lo, f.span.hi, &bound);
                if f.private {
                    signature.insert(0, plain("priv "));
                }
                self.member(page, module, Kind::Method, format!("{ty}::{}", f.name.text), around, signature)
            });
            things.push(Thing { lo: f.span.lo, hi: file.end_of(f), entry, is_use: false });
        }
        sections(file, things, lo, hi, false).1
    }

    fn implementation(&mut self, file: &File, page: usize, module: &str, i: &Impl, span: Span) -> Option<Entry> {
        let bound: Vec<&str> = type_names(&i.type_params).collect();
        let head = file.slice(span.lo, i.span.hi).split_whitespace().collect::<Vec<_>>().join(" ");
        let anchor = self.reference.pages[page].anchor(&head);
        let ty = match &file.tree[i.ty].kind {
            TypeKind::Path(path) => path.names.last().map_or(String::new(), |n| n.text.to_string()),
            _ => file.slice(file.tree[i.ty].span.lo, file.tree[i.ty].span.hi).to_string(),
        };
        let signature = file.pieces(span.lo, i.span.hi, &bound);
        let members = self.methods(file, page, module, &ty, &anchor, &i.fns, (i.span.hi, span.hi), &bound);
        // Nobody else can use private members.
        if members.is_empty() && !i.fns.is_empty() {
            return None;
        }
        Some(Entry { kind: Kind::Impl, name: head, anchor, signature, members })
    }
}

/// The things from `lo` to `hi` in sections and groups, by the comments between them; before them, the first comment of a file.
fn sections(file: &File, things: Vec<Thing>, lo: u32, hi: u32, whole: bool) -> (Vec<Block>, Vec<Section>) {
    let mut about = Vec::new();
    let mut sections = vec![Section::default()];
    let mut end = lo;
    let n = things.len();
    let mut last: Option<(Kind, bool)> = None;
    for (i, thing) in things.into_iter().map(Some).chain([None]).enumerate() {
        let start = thing.as_ref().map_or(hi, |t| t.lo);
        let gap = gap(file.slice(end, start), i > 0 || !whole, i < n);
        let mut attached = gap.attached;
        if let Some(group) = sections.last_mut().and_then(|s| s.groups.last_mut()) {
            group.examples.extend(gap.examples_below);
            if group.about.is_empty() && !gap.trailing.is_empty() {
                group.about = blocks(std::slice::from_ref(&gap.trailing));
            }
        }
        if !gap.detached.is_empty() {
            let mut text = blocks(&gap.detached);
            if i == 0 && whole {
                about = text;
            } else {
                let title = take_heading(&mut text);
                sections.push(Section { title, about: text, groups: Vec::new() });
            }
        } else if i == 0 && whole && thing.as_ref().is_some_and(|t| t.is_use) {
            about = blocks(&attached);
            attached.clear();
        }
        let Some(thing) = thing else { break };
        end = thing.hi;
        let kind = thing.entry.as_ref().map(|e| e.kind);
        let is_block = |kind: Kind| matches!(kind, Kind::Impl | Kind::Extern | Kind::Module);
        // Fields and options have comments of their own only.
        let alone = matches!(kind, Some(Kind::Field | Kind::Option));
        let parts = last.is_none_or(|(before, was_use)| {
            was_use != thing.is_use || kind.is_some_and(|k| is_block(k) != is_block(before))
        });
        let Some(section) = sections.last_mut() else { break };
        if section.groups.is_empty() || gap.apart || alone || parts || !gap.trailing.is_empty() || !attached.is_empty()
        {
            let examples = queries(&attached);
            section.groups.push(Group { entries: Vec::new(), about: blocks(&attached), examples });
        }
        last = Some((kind.or(last.map(|l| l.0)).unwrap_or(Kind::Fn), thing.is_use));
        if let Some(group) = section.groups.last_mut() {
            group.entries.extend(thing.entry);
        }
    }
    for section in &mut sections {
        section.groups.retain(|g| !g.entries.is_empty());
    }
    sections.retain(|s| !s.groups.is_empty());
    (about, sections)
}
