//! Links and headings in Markdown. It is apart from the book because this is about text only.

use std::collections::BTreeSet;
use std::ops::Range;

/// The places of the targets of all links in a text, `[name](target)` and `href="target"`, but for those in code.
pub fn links(text: &str) -> Vec<Range<usize>> {
    let mut out = Vec::new();
    let mut start = 0;
    let mut fenced = false;
    // Whether this is HTML that Markdown leaves alone.
    let mut html = false;
    // The length of the run of backticks that has begun code, which may go over lines.
    let mut code = 0;
    for line in text.split_inclusive('\n') {
        let from = start;
        start += line.len();
        if line.trim_start().starts_with("```") {
            (fenced, code) = (!fenced, 0);
            continue;
        }
        if fenced {
            continue;
        }
        if line.trim().is_empty() {
            code = 0;
        }
        let mut at = 0;
        while let Some(rest) = line.get(at..).filter(|rest| !rest.is_empty()) {
            let run = rest.len() - rest.trim_start_matches('`').len();
            html = rest.starts_with("<pre>") || html && !rest.starts_with("</pre>");
            let opening = if rest.starts_with("](") && !html {
                Some((2, ')'))
            } else {
                rest.starts_with("href=\"").then_some((6, '"'))
            };
            if run > 0 {
                code = if code == 0 { run } else { code * usize::from(code != run) };
                at += run;
            } else if code == 0 && rest.starts_with('\\') {
                at += 1 + rest[1..].chars().next().map_or(0, char::len_utf8);
            } else if let Some((len, closing)) = opening.filter(|_| code == 0)
                && let Some(end) = rest[len..].find(closing)
            {
                out.push(from + at + len..from + at + len + end);
                at += len + end;
            } else {
                at += rest.chars().next().map_or(1, char::len_utf8);
            }
        }
    }
    out
}

/// The anchors of a text: those of its headings, as mdBook and web forges make them, and those of `id="…"`.
pub fn anchors(text: &str) -> BTreeSet<String> {
    let mut out = BTreeSet::new();
    let mut fenced = false;
    for line in text.lines() {
        fenced ^= line.starts_with("```");
        if fenced {
            continue;
        }
        out.extend(line.split("id=\"").skip(1).filter_map(|rest| Some(rest.split_once('"')?.0.to_string())));
        let heading = line.trim_start_matches('#');
        if heading.len() < line.len() && heading.starts_with(' ') {
            let anchor = anchor(heading.trim());
            let taken = (1..).map(|n| format!("{anchor}-{n}")).find(|name| !out.contains(name));
            out.insert(if out.contains(&anchor) { taken.unwrap_or_default() } else { anchor });
        }
    }
    out
}

fn anchor(heading: &str) -> String {
    let mut text = String::new();
    let mut rest = heading;
    // A link becomes its name.
    while let Some((before, target)) = rest.split_once("](") {
        text += before;
        rest = target.split_once(')').map_or("", |t| t.1);
    }
    text += rest;
    let kept = text.to_lowercase().chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c)).collect::<String>();
    kept.replace(' ', "-")
}

/// The path that a link of a page leads to, from the root of all pages, and its anchor; `None` for links to elsewhere.
pub fn resolve<'a>(page: &str, target: &'a str) -> Option<(String, &'a str)> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    if path.is_empty() {
        return Some((page.into(), anchor));
    }
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in path.split('/').filter(|p| !matches!(*p, "" | ".")) {
        match part {
            ".." if parts.pop().is_none() => return Some((target.into(), anchor)),
            ".." => {}
            _ => parts.push(part),
        }
    }
    Some((parts.join("/"), anchor))
}

/// The link from the page `from` to the file `to`.
pub fn relative(from: &str, to: &str) -> String {
    let (from, to): (Vec<&str>, Vec<&str>) = (from.split('/').collect(), to.split('/').collect());
    let folders = from.len() - 1;
    let shared = from.iter().zip(&to).take(folders.min(to.len() - 1)).take_while(|(a, b)| a == b).count();
    "../".repeat(folders - shared) + &to[shared..].join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_links_outside_of_code() {
        let text = "[a](x.md#y) `f[T](n)` and ``g[T](`)``\n```\n[b](c)\n```\n\\`[d](e) `code\n[f](g)` <a href=\"h\">[i\nj](k)\n<pre>f[T](x)</pre> [l](m)";
        let found: Vec<&str> = links(text).into_iter().map(|r| &text[r]).collect();
        assert_eq!(found, ["x.md#y", "e", "h", "k", "m"]);
    }

    #[test]
    fn finds_anchors() {
        let text = "# A `b` of [c](d.md): e_f\n## Twice\n## Twice\n```\n# no\n```\n<a id=\"own\"></a>\n#no\n";
        let found: Vec<String> = anchors(text).into_iter().collect();
        assert_eq!(found, ["a-b-of-c-e_f", "own", "twice", "twice-1"]);
    }

    #[test]
    fn resolves_links() {
        let of = |target| resolve("docs/tour/a.md", target);
        assert_eq!(of("b.md#c"), Some(("docs/tour/b.md".into(), "c")));
        assert_eq!(of("../../lib/./std/"), Some(("lib/std".into(), "")));
        assert_eq!(of("#c"), Some(("docs/tour/a.md".into(), "c")));
        assert_eq!(of("../../../x").map(|r| r.0), Some("../../../x".into()));
        assert_eq!(of("https://example.org"), None);
        assert_eq!(relative("docs/tour/a.md", "docs/b.md"), "../b.md");
        assert_eq!(relative("index.md", "docs/b.md"), "docs/b.md");
        assert_eq!(relative("docs/tour/a.md", "index.md"), "../../index.md");
    }
}
