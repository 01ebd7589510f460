//! Texts of comments: paragraphs, lists, code; and which comment belongs to which item, by the lines between items. Separate from
//! the tree, which has no comments.

/// A part of a comment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Block {
    /// Text with code in backticks.
    Paragraph(String),
    List {
        ordered: bool,
        items: Vec<String>,
    },
    /// Indented lines, or lines between fences.
    Code {
        text: String,
        /// Whether it has a `main`, or its fence says `program`.
        program: bool,
    },
}

/// The comments between two items.
#[derive(Default, Debug)]
pub struct Gap {
    /// A comment behind the first item, in its last line.
    pub trailing: String,
    /// `//?` lines directly below the first item, and not above another.
    pub examples_below: Vec<String>,
    /// Comments with an empty line behind them.
    pub detached: Vec<String>,
    /// The comment above the second item.
    pub attached: Vec<String>,
    /// Whether an empty line or a comment separates the two.
    pub apart: bool,
}

/// A comment's line without its mark; `None` for lines that only tests read.
fn content(line: &str) -> Option<&str> {
    let text = line.trim_start().trim_start_matches('/');
    match text.bytes().next() {
        Some(b'!' | b'>' | b'~') => None,
        _ => Some(text.strip_prefix(' ').unwrap_or(text)),
    }
}

/// Reads the text from the end of one item to the begin of the next. At the begin of a file, `before` is `false`; at the
/// end, `behind` is.
pub fn gap(text: &str, before: bool, behind: bool) -> Gap {
    let mut gap = Gap::default();
    let mut lines: Vec<&str> = text.split('\n').map(|l| l.strip_suffix('\r').unwrap_or(l)).collect();
    if behind {
        // The text before an item in its line, perhaps `priv`.
        lines.pop();
    }
    if before && !lines.is_empty() {
        let rest = lines.remove(0).trim_start_matches([' ', '\t', ';', ',', '}']);
        gap.trailing = rest.strip_prefix("//").map_or("", |t| content(t).unwrap_or("")).trim().into();
    }
    let mut blocks: Vec<(Vec<String>, bool)> = Vec::new();
    let (mut open, mut first) = (false, before);
    let mut depth = 0usize;
    for line in lines {
        let trimmed = line.trim();
        if depth > 0 || trimmed.starts_with("/*") {
            let inner = if depth == 0 { trimmed.trim_start_matches(['/', '*', '!']) } else { trimmed };
            depth = (depth + line.matches("/*").count()).saturating_sub(line.matches("*/").count());
            let inner = inner.strip_suffix("*/").unwrap_or(inner);
            let inner = inner.strip_prefix("* ").unwrap_or(if inner == "*" { "" } else { inner });
            push(&mut blocks, &mut open, first, inner.strip_prefix(' ').unwrap_or(inner).into());
        } else if trimmed.starts_with("//") {
            push(&mut blocks, &mut open, first, content(trimmed).unwrap_or("\u{0}").into());
        } else {
            // Other text belongs to an item with syntax errors.
            open = false;
            gap.apart |= behind;
        }
        first = false;
    }
    for (lines, _) in &mut blocks {
        lines.retain(|l| l != "\u{0}");
    }
    let is_query = |lines: &[String]| !lines.is_empty() && lines.iter().all(|l| l.starts_with('?'));
    gap.apart |= !blocks.is_empty();
    if behind && open {
        gap.attached = blocks.pop().map(|b| b.0).unwrap_or_default();
    }
    if blocks.first().is_some_and(|(lines, directly)| *directly && is_query(lines)) {
        gap.examples_below = queries(&blocks.remove(0).0);
    }
    for (lines, _) in blocks {
        if !gap.detached.is_empty() {
            gap.detached.push(String::new());
        }
        gap.detached.extend(lines);
    }
    gap
}

fn push(blocks: &mut Vec<(Vec<String>, bool)>, open: &mut bool, directly: bool, line: String) {
    if !*open {
        blocks.push((Vec::new(), directly));
        *open = true;
    }
    if let Some(block) = blocks.last_mut() {
        block.0.push(line);
    }
}

/// The conditions of `//?` lines.
pub fn queries(lines: &[String]) -> Vec<String> {
    lines.iter().filter_map(|l| l.strip_prefix('?')).map(|l| l.trim().to_string()).collect()
}

/// The number of blanks at the begin of a line.
fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// The mark of a list's item: whether it has a number, and its length.
fn list_mark(line: &str) -> Option<(bool, usize)> {
    let text = line.trim_start();
    if text.starts_with("- ") || text.starts_with("* ") {
        return Some((false, 2));
    }
    let digits = text.bytes().take_while(|b| b.is_ascii_digit()).count();
    ((1..=3).contains(&digits) && text[digits..].starts_with(". ")).then_some((true, digits + 2))
}

/// The parts of a comment, whose lines have no marks any more.
pub fn blocks(lines: &[String]) -> Vec<Block> {
    let mut out: Vec<Block> = Vec::new();
    // Whether the next line may continue the last block; the indentation of a list's items.
    let (mut open, mut list) = (false, 0);
    let mut lines = lines.iter().filter(|l| !l.starts_with('?')).peekable();
    while let Some(line) = lines.next() {
        let text = line.trim();
        if text.is_empty() {
            open = false;
            continue;
        }
        if let Some(language) = text.strip_prefix("```") {
            let mut code = Vec::new();
            for inner in lines.by_ref() {
                if inner.trim() == "```" {
                    break;
                }
                code.push(inner.as_str());
            }
            out.push(self::code(&code, language.contains("program")));
            open = false;
            continue;
        }
        if let Some((ordered, mark)) = list_mark(line)
            && (indent(line) <= 2 || open && matches!(out.last(), Some(Block::List { .. })))
        {
            let item = line.trim_start()[mark..].trim().to_string();
            match out.last_mut() {
                Some(Block::List { ordered: was, items }) if *was == ordered && (open || list == indent(line)) => {
                    items.push(item)
                }
                _ => out.push(Block::List { ordered, items: vec![item] }),
            }
            (open, list) = (true, indent(line));
            continue;
        }
        match out.last_mut() {
            // A line that is not indented is behind the list.
            Some(Block::List { items, .. }) if open && indent(line) > list => {
                if let Some(last) = items.last_mut() {
                    *last = format!("{last}\n{text}");
                }
            }
            _ if indent(line) >= 2 => {
                let mut code = vec![line.as_str()];
                while let Some(next) = lines.next_if(|l| l.trim().is_empty() || indent(l) >= 2) {
                    code.push(next.as_str());
                }
                out.push(self::code(&code, false));
                open = false;
            }
            Some(Block::Paragraph(all)) if open => *all = format!("{all}\n{text}"),
            _ => {
                out.push(Block::Paragraph(text.into()));
                open = true;
            }
        }
    }
    out
}

/// Lines of code, without the indentation that all share.
fn code(lines: &[&str], program: bool) -> Block {
    let end = lines.iter().rposition(|l| !l.trim().is_empty()).map_or(0, |i| i + 1);
    let lines = &lines[..end];
    let shared = lines.iter().filter(|l| !l.trim().is_empty()).map(|l| indent(l)).min().unwrap_or(0);
    let text = lines.iter().map(|l| l.get(shared..).unwrap_or("").trim_end()).collect::<Vec<_>>().join("\n");
    Block::Code { program: program || text.contains("fn main("), text }
}

/// The end of the first sentence: behind its full stop. Code in backticks has none.
fn sentence(text: &str) -> usize {
    let mut in_code = false;
    let bytes = text.as_bytes();
    for (i, b) in bytes.iter().enumerate() {
        in_code ^= *b == b'`';
        let ends = bytes.get(i + 1).is_none_or(|b| b.is_ascii_whitespace());
        if !in_code && *b == b'.' && ends && !text[..i].ends_with("e.g") && !text[..i].ends_with("i.e") {
            return i + 1;
        }
    }
    text.len()
}

/// The first sentence of a comment, in one line.
pub fn summary(blocks: &[Block]) -> String {
    match blocks.first() {
        Some(Block::Paragraph(text)) => text[..sentence(text)].replace('\n', " "),
        _ => String::new(),
    }
}

/// The longest heading that is taken from a comment.
const MAX_HEADING: usize = 60;

/// Takes the heading of a section from its comment: a short first sentence, or what is before a colon.
pub fn take_heading(blocks: &mut Vec<Block>) -> Option<String> {
    let Some(Block::Paragraph(text)) = blocks.first_mut() else { return None };
    let end = sentence(text);
    let colon = text[..end].find(": ");
    let colon = colon.filter(|c| text[..*c].matches('`').count() % 2 == 0);
    let (heading, rest) = match (end <= MAX_HEADING, colon) {
        (true, None) => (text[..end].trim_end_matches('.'), end),
        (_, Some(colon)) if colon <= MAX_HEADING => (&text[..colon], colon + 1),
        (true, Some(_)) => (text[..end].trim_end_matches('.'), end),
        _ => return None,
    };
    let heading = heading.replace('\n', " ");
    let rest = text[rest..].trim_start();
    let mut chars = rest.chars();
    let rest: String = chars.next().map(|c| c.to_ascii_uppercase()).into_iter().chain(chars).collect();
    if rest.is_empty() {
        blocks.remove(0);
    } else {
        *text = rest;
    }
    Some(heading)
}

/// The text with code in backticks apart: whether each part is code. A backtick without another stands for itself.
pub fn inline(text: &str) -> Vec<(bool, &str)> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find('`') {
        let Some(len) = rest[start + 1..].find('`') else { break };
        if start > 0 {
            out.push((false, &rest[..start]));
        }
        out.push((true, &rest[start + 1..start + 1 + len]));
        rest = &rest[start + len + 2..];
    }
    if !rest.is_empty() {
        out.push((false, rest));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(String::from).collect()
    }

    #[test]
    fn blocks_of_a_comment() {
        let text = "One `a.\nb` two.\nMore.\n\n- x\n  y\n- z\n\n1. n\n\n  code\n    deeper\n\nEnd\n```program\n x\n";
        let found = blocks(&lines(text));
        let list =
            |ordered, items: &[&str]| Block::List { ordered, items: items.iter().map(|s| s.to_string()).collect() };
        let code = |text: &str, program| Block::Code { text: text.into(), program };
        assert_eq!(
            found,
            [
                Block::Paragraph("One `a.\nb` two.\nMore.".into()),
                list(false, &["x\ny", "z"]),
                list(true, &["n"]),
                code("code\n  deeper", false),
                Block::Paragraph("End".into()),
                code("x", true),
            ]
        );
        assert_eq!(summary(&found), "One `a. b` two.");
    }

    #[test]
    fn comments_between_items() {
        let g = gap(" // behind\n//? below\n\n// Section.\n\n// Above.\n//? f()\n//> 3\n  priv ", true, true);
        assert_eq!((g.trailing.as_str(), g.apart), ("behind", true));
        assert_eq!(g.examples_below, ["below"]);
        assert_eq!(g.detached, ["Section."]);
        assert_eq!(g.attached, ["Above.", "? f()"]);
        let g = gap("\n", true, true);
        assert!(!g.apart && g.attached.is_empty());
        let g = gap("/* One\n * two */\n", false, true);
        assert_eq!(g.attached, ["One", "two "]);
        assert!(gap("", false, false).detached.is_empty());
        assert_eq!(gap("\n/* never", true, false).detached, ["never"]);
    }

    #[test]
    fn headings() {
        let heading = |text: &str| {
            let mut found = blocks(&lines(text));
            (take_heading(&mut found), found)
        };
        assert_eq!(heading("Sources."), (Some("Sources".into()), vec![]));
        let rest = |text: &str| vec![Block::Paragraph(text.into())];
        assert_eq!(heading("Loops. They count."), (Some("Loops".into()), rest("They count.")));
        assert_eq!(
            heading("Atomics: on places, or\nelements."),
            (Some("Atomics".into()), rest("On places, or\nelements."))
        );
    }

    #[test]
    fn code_in_text() {
        assert_eq!(inline("a `b` c`"), [(false, "a "), (true, "b"), (false, " c`")]);
        assert_eq!(inline("``"), [(true, "")]);
    }
}
