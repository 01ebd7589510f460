//! The outline of a file: its items, from its tree alone.

use super::analysis::View;
use lsp_types::{DocumentSymbol, SymbolKind, Uri};
use nyala_base::Span;
use nyala_syntax::ast::{Fn, Item, ItemKind, Name};

pub fn of_document(view: &View, uri: &Uri) -> Option<Vec<DocumentSymbol>> {
    let tree = view.checked.tree(view.file(uri)?)?;
    Some(of_items(view, tree, &tree.items))
}

/// Modules nest no deeper than the parser allows.
fn of_items(view: &View, tree: &nyala_syntax::Module, items: &[Item]) -> Vec<DocumentSymbol> {
    let text = |span: Span| {
        let text = view.sources.text(span.file).get(span.lo as usize..span.hi as usize).unwrap_or_default();
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let function = |f: &Fn, kind| {
        let end = f.body.map_or(f.span, |body| f.span.to(tree[body].span));
        symbol(view, &f.name, kind, end, Some(text(f.span)), Vec::new())
    };
    let mut all = Vec::new();
    for item in items {
        let mut add = |name: &Name, kind, children| all.push(symbol(view, name, kind, item.span, None, children));
        match &item.kind {
            ItemKind::Fn(f) => all.push(function(f, SymbolKind::FUNCTION)),
            ItemKind::Extern(block) => all.extend(block.fns.iter().map(|f| function(f, SymbolKind::FUNCTION))),
            ItemKind::Static(s) => add(&s.name, SymbolKind::CONSTANT, Vec::new()),
            ItemKind::Struct(s) => {
                let fields = s.fields.iter().map(|f| {
                    let ty = tree[f.ty].span;
                    symbol(view, &f.name, SymbolKind::FIELD, f.name.span.to(ty), Some(text(ty)), Vec::new())
                });
                add(&s.name, SymbolKind::STRUCT, fields.collect());
            }
            ItemKind::Enum(e) => {
                let options = e
                    .options
                    .iter()
                    .map(|o| symbol(view, &o.name, SymbolKind::ENUM_MEMBER, o.name.span, None, Vec::new()));
                add(&e.name, SymbolKind::ENUM, options.collect());
            }
            ItemKind::Alias(a) => add(&a.name, SymbolKind::CLASS, Vec::new()),
            ItemKind::Trait(t) => {
                add(&t.name, SymbolKind::INTERFACE, t.fns.iter().map(|f| function(f, SymbolKind::METHOD)).collect());
            }
            ItemKind::Impl(i) => {
                let methods = i.fns.iter().map(|f| function(f, SymbolKind::METHOD)).collect();
                let name = Name { text: text(i.span).into(), span: i.span };
                add(&name, SymbolKind::OBJECT, methods);
            }
            ItemKind::Mod(m) => {
                let inner = m.items.as_ref().map(|items| of_items(view, tree, items));
                add(&m.name, SymbolKind::MODULE, inner.unwrap_or_default());
            }
            ItemKind::Use(_) => {}
        }
    }
    all
}

#[expect(deprecated, reason = "the field must be given")]
fn symbol(
    view: &View,
    name: &Name,
    kind: SymbolKind,
    whole: Span,
    detail: Option<String>,
    children: Vec<DocumentSymbol>,
) -> DocumentSymbol {
    // Clients refuse names that are empty.
    let shown = if name.text.trim().is_empty() { "?".into() } else { name.text.to_string() };
    DocumentSymbol {
        name: shown,
        detail,
        kind,
        tags: None,
        deprecated: None,
        range: view.range(whole.to(name.span)),
        selection_range: view.range(name.span),
        children: (!children.is_empty()).then_some(children),
    }
}
