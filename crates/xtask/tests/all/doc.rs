//! `nyala doc`: what pages say, that all links in them lead somewhere, and what becomes of files that are faulty.

use crate::common::{Folder, nyala, root, stderr};
use std::collections::{BTreeMap, HashSet};
use std::ffi::OsStr;
use std::path::Path;

fn doc(args: &[&OsStr]) -> (Option<i32>, String) {
    let all: Vec<&OsStr> = [OsStr::new("doc")].iter().chain(args).copied().collect();
    let output = nyala(&all, 120);
    (output.status.code(), stderr(&output))
}

/// The pages in a folder, by name.
fn pages(folder: &Path) -> BTreeMap<String, String> {
    let files = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path());
    files.map(|p| (p.file_name().unwrap().to_str().unwrap().into(), std::fs::read_to_string(p).unwrap())).collect()
}

/// The texts between `start` and the next `end`, each time.
fn between<'a>(text: &'a str, start: &str, end: char) -> Vec<&'a str> {
    text.split(start).skip(1).map(|rest| rest.split(end).next().unwrap()).collect()
}

fn decode(name: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = name.as_bytes();
    while let [b, tail @ ..] = rest {
        let escaped = (*b == b'%').then(|| u8::from_str_radix(&name[name.len() - tail.len()..][..2], 16).unwrap());
        bytes.push(escaped.unwrap_or(*b));
        rest = if escaped.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8(bytes).unwrap()
}

/// Asserts that every link leads to a page, and every anchor to one thing of it. Returns the number of links.
fn check_links(folder: &Path) -> usize {
    let pages = pages(folder);
    let mut anchors: BTreeMap<&str, HashSet<&str>> = BTreeMap::new();
    for (name, text) in &pages {
        let all = between(text, " id=\"", '"');
        let set: HashSet<&str> = all.iter().copied().collect();
        assert_eq!(set.len(), all.len(), "{name}: an anchor twice");
        anchors.insert(name, set);
    }
    let mut n = 0;
    for (name, text) in &pages {
        let mut links: Vec<String> = Vec::new();
        if name == "search.js" {
            for line in text.lines().filter(|l| l.starts_with("[\"")) {
                let entry: Vec<String> = serde_json::from_str(line.trim_end_matches(',')).unwrap();
                links.push(entry[3].clone());
            }
        } else if !name.ends_with(".css") {
            for attribute in ["href=\"", "src=\""] {
                links.extend(between(text, attribute, '"').into_iter().map(String::from));
            }
            if name.ends_with(".md") {
                // Code has such brackets, too.
                let links_only = |l: &&str| {
                    !l.contains(['<', ' ']) && (l.starts_with('#') || l.split('#').next().unwrap().ends_with(".md"))
                };
                links.extend(between(text, "](", ')').into_iter().filter(links_only).map(String::from));
            }
        }
        for link in links {
            n += 1;
            let (file, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let file = if file.is_empty() { name.clone() } else { decode(file) };
            let known = anchors.get(&*file);
            assert!(known.is_some_and(|a| anchor.is_empty() || a.contains(anchor)), "{name}: no `{link}`");
        }
    }
    n
}

#[test]
fn a_small_library() {
    let folder = Folder::new("doc small");
    let source = root().join("crates/xtask/tests/all/doc");
    let markdown = folder.path("markdown");
    let args = [source.as_os_str(), "--format".as_ref(), "markdown".as_ref(), "-o".as_ref(), markdown.as_os_str()];
    assert_eq!(doc(&args), (Some(0), String::new()));
    let found = std::fs::read_to_string(markdown.join("shapes.md")).unwrap();
    let golden = source.join("shapes.expected");
    if std::env::var_os("NYALA_BLESS").is_some() {
        std::fs::write(&golden, &found).unwrap();
    }
    assert_eq!(
        found,
        std::fs::read_to_string(golden).unwrap(),
        "`NYALA_BLESS=1 cargo test -p xtask --test all doc::` writes it"
    );
    assert!(check_links(&markdown) > 30);

    let (html, again) = (folder.path("a b/html"), folder.path("again"));
    for out in [&html, &again] {
        assert_eq!(doc(&[source.as_os_str(), "-o".as_ref(), out.as_os_str()]), (Some(0), String::new()));
    }
    assert!(check_links(&html) > 50);
    let (all, twice) = (pages(&html), pages(&again));
    assert!(all == twice, "the pages differ from one time to the next");
    let page = &all["shapes.html"];
    let has = |text: &str| assert!(page.contains(text), "{text}\nin\n{page}");
    has("in *this* module &lt;and others&gt;.");
    has("<li><a href=\"#Point\"><code>Point</code></a> and what\nmoves it</li>");
    has("<a href=\"shapes_units.html#Length\">Length</a>");
    has("<p class=\"title\">A program</p>\n<pre class=\"example\"><code>fn main()");
    has("<p class=\"title\">Holds</p>\n<pre class=\"example\"><code>point(1.0, 2.0).x == 1.0</code>");
    has("<h2>Measures</h2>\n<p>What shapes have in common.</p>");
    assert!(!page.contains("helper\"") && !page.contains("secret") && !page.contains("id: i32"));
    let names = &all["search.js"];
    for name in
        ["Point", "Shape::Dot", "Area::area", "Point::moved", "low", "high", "ORIGIN", "TABLE", "Points", "draw", "f"]
    {
        assert_eq!(names.matches(&format!("[\"{name}\",")).count(), 1, "{name}");
    }
    assert!(!names.contains("[\"helper\"") && !names.contains("[\"Point::secret\""));

    let private = folder.path("private");
    doc(&[source.as_os_str(), "--private".as_ref(), "-o".as_ref(), private.as_os_str()]);
    assert!(check_links(&private) > 50);
    let page = &pages(&private)["shapes.html"];
    assert!(page.contains("id=\"helper\"") && page.contains("priv id: i32") && page.contains("priv fn secret"));
    assert!(page.contains("<a href=\"#helper\">helper</a>(b)"), "{page}");
}

#[test]
fn the_embedded_libraries() {
    let folder = Folder::new("doc embedded");
    let (html, markdown) = (folder.path("html"), folder.path("markdown"));
    assert_eq!(doc(&["-o".as_ref(), html.as_os_str()]), (Some(0), String::new()));
    let args = ["-o".as_ref(), markdown.as_os_str(), "--format".as_ref(), OsStr::new("markdown")];
    assert_eq!(doc(&args), (Some(0), String::new()));
    assert!(check_links(&html) > 3000 && check_links(&markdown) > 2000);
    let names = std::fs::read_to_string(html.join("search.js")).unwrap();
    let index = std::fs::read_to_string(markdown.join("index.md")).unwrap();
    let mut n = 0;
    let mut folders = vec![root().join("lib/std/src"), root().join("lib/image/src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            for line in std::fs::read_to_string(&path).unwrap().lines() {
                // An item at the begin of a line; functions have a filter, perhaps, and then a name.
                let Some((word, rest)) = line.split_once(' ') else { continue };
                if !["fn", "struct", "enum", "trait", "type", "static"].contains(&word) {
                    continue;
                }
                let rest = rest.strip_prefix("mut ").unwrap_or(rest);
                let rest = if rest.starts_with("@(") { rest.split_once(") ").unwrap().1 } else { rest };
                let rest = rest.trim_start_matches('@');
                let name = &rest[..rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap()];
                assert!(names.contains(&format!("[\"{name}\",")), "{}: {name}", path.display());
                assert!(index.contains(&format!("- [`{name}`](")), "{}: {name}", path.display());
                n += 1;
            }
        }
    }
    assert!(n > 400, "{n}");
    let out = folder.path("some");
    let args = ["std::view".as_ref(), "image".as_ref(), "-o".as_ref(), out.as_os_str()];
    assert_eq!(doc(&args), (Some(0), String::new()));
    let found: Vec<String> = pages(&out).into_keys().collect();
    assert_eq!(found, ["image.device.html", "image.html", "index.html", "search.js", "std.view.html", "style.css"]);
}

#[test]
fn faulty_files_do_not_hide_others() {
    let folder = Folder::new("doc faulty");
    let (bad, out) = (folder.path("bad"), folder.path("out"));
    std::fs::create_dir(&bad).unwrap();
    let write = |name: &str, text: &[u8]| std::fs::write(bad.join(name), text).unwrap();
    write(
        "broken.impala",
        b"// Before.\nfn first() -> () { }\n\nfn second( -> {\n\n// Behind.\nfn third() -> i32 { 1 }\n",
    );
    write("empty.impala", b"");
    write("only a comment & <b>.impala", b"// Nothing but `text`.\r\n");
    write("index.impala", b"/* One\n * two */\nfn search() -> () { }\nfn\tinput() { }");
    write("not text.impala", b"fn f() { } // \xff");
    write("open.impala", b"fn f() { /* ");
    write(
        "signs.impala",
        "// A \u{7} `co*de` # [x](y) | z\n// 1. one\nfn f() -> () { }\nstruct f[T] { a: &[T] } // ö\n".as_bytes(),
    );
    let nested = "mod m { ".repeat(200) + "fn deep() { }" + &" }".repeat(200);
    write("nested.impala", nested.as_bytes());
    let (code, err) = doc(&[bad.as_os_str(), "-o".as_ref(), out.as_os_str()]);
    assert_eq!(code, Some(1), "{err}");
    assert!(err.contains("broken.impala:4:") && err.contains("error[cannot-read]"), "{err}");
    check_links(&out);
    let all = pages(&out);
    assert!(all["broken.html"].contains("id=\"first\"") && all["broken.html"].contains("id=\"third\""));
    assert!(all["broken.html"].contains("has syntax errors") && !all["empty.html"].contains("has syntax errors"));
    assert!(all["only a comment & <b>.html"].contains("<h1>only a comment &amp; &lt;b&gt;</h1>\n<p>Nothing but"));
    assert!(all["index-2.html"].contains("One\ntwo"), "{}", all["index-2.html"]);
    assert!(all["signs.html"].contains("id=\"f-2\"") && all["signs.html"].contains("A \u{fffd} <code>co*de</code>"));
    assert!(all.values().any(|page| page.contains("id=\"deep\"")));
    let markdown = folder.path("markdown");
    doc(&[bad.as_os_str(), "-o".as_ref(), markdown.as_os_str(), "--format".as_ref(), "markdown".as_ref()]);
    assert!(pages(&markdown)["signs.md"].contains("`co*de` \\# \\[x\\](y) \\| z"));
}

#[test]
fn places_that_cannot_be_read_or_written() {
    let folder = Folder::new("doc places");
    let file = folder.write("a.impala", "fn f() -> () { }\n");
    let (code, err) = doc(&[file.as_os_str(), "-o".as_ref(), file.as_os_str()]);
    assert!(code == Some(1) && err.contains("error[cannot-write]"), "{err}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "fn f() -> () { }\n");
    let below = file.join("below");
    let (code, err) = doc(&[file.as_os_str(), "-o".as_ref(), below.as_os_str()]);
    assert!(code == Some(1) && err.contains("error[cannot-write]"), "{err}");
    let out = folder.path("out");
    let (code, err) = doc(&["no::library".as_ref(), "-o".as_ref(), out.as_os_str()]);
    assert!(code == Some(1) && err.contains("error[cannot-read]") && !out.exists(), "{err}");
    let empty = folder.path("empty");
    std::fs::create_dir(&empty).unwrap();
    let (code, err) = doc(&[empty.as_os_str(), "-o".as_ref(), out.as_os_str()]);
    assert!(code == Some(1) && err.contains("it has no file"), "{err}");
    // A page that would replace a source.
    let source = folder.write("index.html", "fn g() -> () { }\n");
    let (code, err) = doc(&[source.as_os_str(), "-o".as_ref(), folder.0.as_os_str()]);
    assert!(code == Some(1) && err.contains("error[cannot-write]"), "{err}");
    assert_eq!(std::fs::read_to_string(&source).unwrap(), "fn g() -> () { }\n");
    let (code, err) = doc(&[file.as_os_str(), file.as_os_str(), "--json".as_ref(), "-o".as_ref(), out.as_os_str()]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert_eq!(pages(&out).len(), 4);
}

#[test]
fn all_programs_of_the_tests() {
    let folder = Folder::new("doc tests");
    let tests = root().join("tests");
    for format in ["html", "markdown"] {
        let out = folder.path(format);
        let args = [
            tests.as_os_str(),
            "--private".as_ref(),
            "--format".as_ref(),
            format.as_ref(),
            "-o".as_ref(),
            out.as_os_str(),
        ];
        // Some have syntax errors, on purpose.
        let (code, err) = doc(&args);
        assert!(code == Some(1) && err.contains("error[unexpected-token]"), "{err}");
        assert!(check_links(&out) > 5000);
    }
}

#[test]
fn many_items() {
    let folder = Folder::new("doc many");
    let mut text = String::new();
    for i in 0..20_000 {
        text += &format!(
            "// Item {i}, beside `f{}`.\nfn f{i}(x: S{i}) -> S{i} {{ x }}\nstruct S{i} {{ a: i32 }}\n\n",
            i / 2
        );
    }
    let (file, out) = (folder.write("many.impala", text), folder.path("out"));
    assert_eq!(doc(&[file.as_os_str(), "-o".as_ref(), out.as_os_str()]), (Some(0), String::new()));
    assert!(pages(&out)["many.html"].contains("<a href=\"#S19999\">S19999</a>"));
}
