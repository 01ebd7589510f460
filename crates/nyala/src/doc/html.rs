//! Pages as HTML: one style sheet, one script with the names for the search, no other resources.

use super::comments::{self, Block};
use super::{Entry, Group, Kind, Page, Reference, Section, escape, href, signature};
use std::fmt::Write as _;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("search.js");

struct Writer<'a> {
    reference: &'a Reference,
    page: Option<usize>,
    out: String,
}

pub fn write(reference: &Reference) -> Vec<(String, String)> {
    let mut writer = Writer { reference, page: None, out: String::new() };
    writer.index();
    let mut files = vec![("index.html".to_string(), writer.out)];
    for (i, page) in reference.pages.iter().enumerate() {
        let mut writer = Writer { reference, page: Some(i), out: String::new() };
        writer.page(page);
        files.push((format!("{}.html", page.file), writer.out));
    }
    files.push(("style.css".into(), STYLE.into()));
    files.push(("search.js".into(), search(reference)));
    files
}

/// The script, with the names: name, module, kind, address, summary.
fn search(reference: &Reference) -> String {
    let mut out = "const NAMES = [\n".to_string();
    for name in reference.names() {
        let href = href(reference, None, name.page, name.anchor, "html");
        // Strings can always be written as JSON.
        let line = serde_json::to_string(&[name.name, name.module, name.kind.word(), &href, &name.summary]);
        let _ = writeln!(out, "{},", line.unwrap_or_default());
    }
    out + "];\n" + SCRIPT
}

fn code(text: &str) -> String {
    format!("<code>{}</code>", escape(text))
}

impl Writer<'_> {
    fn head(&mut self, title: &str) {
        let title = escape(title);
        let _ = write!(
            self.out,
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n\
             <link rel=\"stylesheet\" href=\"style.css\">\n<script src=\"search.js\" defer></script>\n</head>\n<body>\n\
             <header><a href=\"index.html\">Reference</a> <input type=\"search\" placeholder=\"Search\" \
             aria-label=\"Search\"><ul class=\"found\"></ul></header>\n<main>\n<h1>{title}</h1>\n"
        );
    }

    fn end(&mut self) {
        self.out += "</main>\n</body>\n</html>\n";
    }

    fn href(&self, page: usize, anchor: &str) -> String {
        href(self.reference, self.page, page, anchor, "html")
    }

    fn inline(&self, text: &str) -> String {
        let module = self.page.map_or("", |p| &*self.reference.pages[p].module);
        let parts = comments::inline(text).into_iter().map(|(is_code, text)| match is_code {
            false => escape(text),
            true => match self.reference.resolve_code(module, text) {
                Some(place) => format!("<a href=\"{}\">{}</a>", self.href(place.page, &place.anchor), code(text)),
                None => code(text),
            },
        });
        parts.collect()
    }

    fn index(&mut self) {
        self.head("Reference");
        let names = self.reference.names();
        self.out += "<h2>Modules</h2>\n<dl>\n";
        for (i, page) in self.reference.pages.iter().enumerate() {
            let (href, summary) = (self.href(i, ""), self.inline(&page.summary()));
            let _ = writeln!(self.out, "<dt><a href=\"{href}\">{}</a></dt><dd>{summary}</dd>", escape(&page.module));
        }
        self.out += "</dl>\n<h2>Names</h2>\n<ul class=\"names\">\n";
        for name in names.iter().filter(|n| n.kind != Kind::Module) {
            let href = self.href(name.page, name.anchor);
            let (kind, module) = (name.kind.word(), escape(name.module));
            let _ = writeln!(
                self.out,
                "<li><a href=\"{href}\">{}</a> <small>{kind} of {module}</small></li>",
                code(name.name)
            );
        }
        self.out += "</ul>\n";
        self.end();
    }

    fn blocks(&mut self, blocks: &[Block]) {
        for block in blocks {
            let text = match block {
                Block::Paragraph(text) => format!("<p>{}</p>\n", self.inline(text)),
                Block::List { ordered, items } => {
                    let tag = if *ordered { "ol" } else { "ul" };
                    let items: String = items.iter().map(|i| format!("<li>{}</li>\n", self.inline(i))).collect();
                    format!("<{tag}>\n{items}</{tag}>\n")
                }
                Block::Code { text, program } => {
                    let title = if *program { "<p class=\"title\">A program</p>\n" } else { "" };
                    format!("{title}<pre class=\"example\">{}</pre>\n", code(text))
                }
            };
            self.out += &text;
        }
    }

    fn page(&mut self, page: &Page) {
        self.head(&page.module);
        if page.parts.iter().any(|p| p.broken) {
            self.out += "<p class=\"broken\">This page may lack items: the source has syntax errors.</p>\n";
        }
        let several = page.parts.len() > 1;
        if let Some(part) = page.parts.first() {
            self.blocks(&part.about);
        }
        self.out += "<nav>\n";
        for (kind, entries) in page.contents() {
            let links = entries.iter().map(|e| format!("<a href=\"#{}\">{}</a>", e.anchor, code(&e.name)));
            let links = links.collect::<Vec<_>>().join("\n");
            let _ = writeln!(self.out, "<p><b>{}</b>\n{links}</p>", kind.plural());
        }
        self.out += "</nav>\n";
        for (i, part) in page.parts.iter().enumerate() {
            if let Some(title) = part.title.as_ref().filter(|_| several) {
                let _ = writeln!(self.out, "<h2 class=\"file\">{}</h2>", escape(title));
            }
            if i > 0 {
                self.blocks(&part.about);
            }
            part.sections.iter().for_each(|s| self.section(s, 2 + usize::from(several)));
        }
        self.end();
    }

    fn section(&mut self, section: &Section, level: usize) {
        if let Some(title) = &section.title {
            let level = level.min(6);
            let _ = writeln!(self.out, "<h{level}>{}</h{level}>", self.inline(title));
        }
        self.blocks(&section.about);
        section.groups.iter().for_each(|g| self.group(g, level + 1));
    }

    fn group(&mut self, group: &Group, level: usize) {
        self.out += "<section>\n";
        let is_list = group.is_list();
        if is_list {
            self.blocks(&group.about);
        }
        for entry in &group.entries {
            self.entry(entry);
            if is_list {
                self.members(entry, level);
            }
        }
        self.out += "<div>\n";
        if !is_list {
            self.blocks(&group.about);
        }
        if !group.examples.is_empty() {
            let _ = writeln!(
                self.out,
                "<p class=\"title\">Holds</p>\n<pre class=\"example\">{}</pre>",
                code(&group.examples.join("\n"))
            );
        }
        self.out += "</div>\n";
        if !is_list {
            group.entries.iter().for_each(|entry| self.members(entry, level));
        }
        self.out += "</section>\n";
    }

    fn entry(&mut self, entry: &Entry) {
        let Some(page) = self.page else { return };
        let signature = signature(self.reference, page, entry, "html");
        let (kind, anchor) = (entry.kind.word(), &entry.anchor);
        // Fields have no anchors.
        if anchor.is_empty() {
            let _ = writeln!(self.out, "<pre class=\"{kind}\"><code>{signature}</code></pre>");
            return;
        }
        let _ = writeln!(
            self.out,
            "<pre class=\"signature {kind}\" id=\"{anchor}\"><a class=\"here\" href=\"#{anchor}\" \
             title=\"Link to {kind} {name}\">#</a><code>{signature}</code></pre>",
            name = escape(&entry.name)
        );
    }

    fn members(&mut self, entry: &Entry, level: usize) {
        if !entry.members.is_empty() {
            self.out += "<div>\n";
            entry.members.iter().for_each(|s| self.section(s, level + 1));
            self.out += "</div>\n";
        }
    }
}
