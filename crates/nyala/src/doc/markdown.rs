//! Pages as Markdown, with links between them. Signatures are HTML, as Markdown allows, because its code has no links.

use super::comments::{self, Block};
use super::{Entry, Group, Kind, Page, Reference, Section, escape, href, signature};
use std::fmt::Write as _;

/// Limit on the names in a heading of things that share a comment.
const MAX_NAMES: usize = 4;

struct Writer<'a> {
    reference: &'a Reference,
    page: usize,
    out: String,
}

pub fn write(reference: &Reference) -> Vec<(String, String)> {
    let mut files = vec![("index.md".to_string(), index(reference))];
    for (i, page) in reference.pages.iter().enumerate() {
        let mut writer = Writer { reference, page: i, out: String::new() };
        writer.page(page);
        files.push((format!("{}.md", page.file), writer.out));
    }
    files
}

/// Text in which no sign means anything to Markdown.
fn plain(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if "\\`*_[]#|~".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    let out = escape(&out).replace("&quot;", "\"");
    // Signs that begin a list or a heading, if they begin a line.
    let lines = out.split('\n').map(|line| {
        let digits = line.bytes().take_while(|b| b.is_ascii_digit()).count();
        match line.as_bytes().get(digits) {
            Some(b'.' | b')') if digits > 0 => format!("{}\\{}", &line[..digits], &line[digits..]),
            Some(b'+' | b'-' | b'=') if digits == 0 => format!("\\{line}"),
            _ => line.to_string(),
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Code within text.
fn code(text: &str) -> String {
    if text.trim().is_empty() {
        return format!("<code>{}</code>", escape(text));
    }
    let text = text.replace('\n', " ");
    if text.contains('`') { format!("`` {text} ``") } else { format!("`{text}`") }
}

/// Code in lines of its own.
fn fenced(text: &str, language: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}{language}\n{text}\n{fence}\n\n")
}

fn index(reference: &Reference) -> String {
    let mut out = "# Reference\n\n## Modules\n\n".to_string();
    let names = reference.names();
    let first = Writer { reference, page: usize::MAX, out: String::new() };
    for (i, page) in reference.pages.iter().enumerate() {
        let (href, summary) = (href(reference, None, i, "", "md"), page.summary());
        let between = if summary.is_empty() { "" } else { ": " };
        let _ = writeln!(out, "- [{}]({href}){between}{}", plain(&page.module), first.inline(&summary));
    }
    out += "\n## Names\n\n";
    for name in names.iter().filter(|n| n.kind != Kind::Module) {
        let href = href(reference, None, name.page, name.anchor, "md");
        let module = plain(name.module);
        let _ = writeln!(out, "- [{}]({href}): {} of {module}", code(name.name), name.kind.word());
    }
    out
}

impl Writer<'_> {
    fn inline(&self, text: &str) -> String {
        let module = self.reference.pages.get(self.page).map_or("", |p| &*p.module);
        let parts = comments::inline(text).into_iter().map(|(is_code, text)| match is_code {
            false => plain(text),
            true => match self.reference.resolve_code(module, text) {
                Some(place) => {
                    let from = self.reference.pages.get(self.page).map(|_| self.page);
                    format!("[{}]({})", code(text), href(self.reference, from, place.page, &place.anchor, "md"))
                }
                None => code(text),
            },
        });
        parts.collect()
    }

    fn blocks(&mut self, blocks: &[Block]) {
        for block in blocks {
            let text = match block {
                Block::Paragraph(text) => self.inline(text) + "\n\n",
                Block::List { ordered, items } => {
                    let mut all = String::new();
                    for (i, item) in items.iter().enumerate() {
                        let mark = if *ordered { format!("{}. ", i + 1) } else { "- ".into() };
                        let blank = format!("\n{}", " ".repeat(mark.len()));
                        let _ = writeln!(all, "{mark}{}", self.inline(item).replace('\n', &blank));
                    }
                    all + "\n"
                }
                Block::Code { text, program } => {
                    let title = if *program { "A program:\n\n" } else { "" };
                    title.to_string() + &fenced(text, if *program { "impala" } else { "" })
                }
            };
            self.out += &text;
        }
    }

    fn page(&mut self, page: &Page) {
        let _ = write!(self.out, "# {}\n\n[All modules and names](index.md)\n\n", plain(&page.module));
        if page.parts.iter().any(|p| p.broken) {
            self.out += "This page may lack items: the source has syntax errors.\n\n";
        }
        let several = page.parts.len() > 1;
        if let Some(part) = page.parts.first() {
            self.blocks(&part.about);
        }
        let mut contents = String::new();
        for (kind, entries) in page.contents() {
            let links = entries.iter().map(|e| format!("[{}](#{})", code(&e.name), e.anchor));
            let _ = writeln!(contents, "- {}: {}", kind.plural(), links.collect::<Vec<_>>().join(", "));
        }
        let _ = writeln!(self.out, "{contents}");
        for (i, part) in page.parts.iter().enumerate() {
            if let Some(title) = part.title.as_ref().filter(|_| several) {
                let _ = write!(self.out, "## {}\n\n", plain(title));
            }
            if i > 0 {
                self.blocks(&part.about);
            }
            part.sections.iter().for_each(|s| self.section(s, 2 + usize::from(several)));
        }
        self.out.truncate(self.out.trim_end().len());
        self.out.push('\n');
    }

    fn section(&mut self, section: &Section, level: usize) {
        if let Some(title) = &section.title {
            let _ = write!(self.out, "{} {}\n\n", "#".repeat(level), self.inline(title));
        }
        self.blocks(&section.about);
        section.groups.iter().for_each(|g| self.group(g, level + 1));
    }

    fn group(&mut self, group: &Group, level: usize) {
        if group.is_list() {
            self.blocks(&group.about);
            for entry in &group.entries {
                self.entries(std::slice::from_ref(entry), level);
                self.members(entry, level);
            }
        } else {
            self.entries(&group.entries, level);
            self.blocks(&group.about);
        }
        if !group.examples.is_empty() {
            let _ = write!(self.out, "Holds:\n\n{}", fenced(&group.examples.join("\n"), "impala"));
        }
        if !group.is_list() {
            group.entries.iter().for_each(|entry| self.members(entry, level));
        }
    }

    fn entries(&mut self, entries: &[Entry], level: usize) {
        let mut names: Vec<String> = entries.iter().map(|e| code(&e.name)).collect();
        if entries.iter().all(|e| e.kind == Kind::Field) {
            let _ = write!(self.out, "{}: ", names.join(", "));
            return;
        }
        let marks: String = entries.iter().map(|e| format!("<a id=\"{}\"></a>", e.anchor)).collect();
        if names.len() > MAX_NAMES {
            names.splice(MAX_NAMES.., ["…".to_string()]);
        }
        let _ = write!(self.out, "{} {marks}{}\n\n", "#".repeat(level.min(6)), names.join(", "));
        let signatures = entries.iter().map(|e| signature(self.reference, self.page, e, "md"));
        let _ = write!(self.out, "<pre><code>{}</code></pre>\n\n", signatures.collect::<Vec<_>>().join("\n"));
    }

    fn members(&mut self, entry: &Entry, level: usize) {
        entry.members.iter().for_each(|s| self.section(s, level + 1));
    }
}
