//! Programs of several files: `mod m;`, and libraries that `use` names.

use crate::common::{Folder, nyala, stderr};
use std::ffi::OsStr;

/// Writes the files; what `nyala ARGS` in that folder says.
fn run(name: &str, files: &[(&str, &str)], args: &[&str]) -> (i32, String, String) {
    let folder = Folder::new(name);
    for (file, text) in files {
        if let Some(parent) = folder.path(file).parent() {
            std::fs::create_dir_all(parent).unwrap();
        }
        folder.write(file, text);
    }
    let place = |arg: &&str| if arg.ends_with(".impala") { folder.path(arg).into_os_string() } else { arg.into() };
    let args: Vec<_> = args.iter().map(place).collect();
    let args: Vec<&OsStr> = args.iter().map(|a| &**a).collect();
    let output = nyala(&args, 60);
    let root = folder.path("").display().to_string();
    let err = stderr(&output).replace(&root, "").lines().collect::<Vec<_>>().join("\n");
    (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&output.stdout).into_owned(), err)
}

/// The trees of the files that a program consists of.
fn trees(name: &str, files: &[(&str, &str)]) -> String {
    let (code, out, err) = run(name, files, &["emit", "--stage", "ast", "main.impala"]);
    assert_eq!((code, &*err), (0, ""));
    out
}

#[test]
fn modules_are_files_beside() {
    let files = [
        ("main.impala", "mod m; mod a { mod b; mod c { mod d; } } static main = 0;"),
        ("m.impala", "mod n; static m = 0;"),
        ("n.impala", "static n = 0;"),
        ("a/b.impala", "mod e; static b = 0;"),
        ("a/e.impala", "static e = 0;"),
        ("a/c/d.impala", "static d = 0;"),
        ("a/c.impala", "static unused = 0;"),
    ];
    let out = trees("beside", &files);
    for name in ["main", "m", "n", "b", "e", "d"] {
        assert_eq!(out.matches(&format!("(static {name} 0)")).count(), 1, "{out}");
    }
    assert!(!out.contains("unused"), "{out}");
}

#[test]
fn a_use_names_the_longest_library_there_is() {
    let files = [
        ("main.impala", "use x::y::z::f; use x::g; use std::text::find; static main = 0;"),
        ("x/y.impala", "static y = 0;"),
        ("x.impala", "static x = 0;"),
    ];
    let out = trees("longest", &files);
    for what in ["(static y 0)", "(static x 0)", "(fn format_fill "] {
        assert_eq!(out.matches(what).count(), 1, "{what} in {out}");
    }
}

#[test]
fn a_use_of_the_programs_names_asks_for_no_library() {
    // The text of these files would not even parse.
    let traps = ["m", "n", "e", "o", "p", "q", "r", "self"].map(|name| (format!("{name}.impala"), "}".to_string()));
    let mut files: Vec<(&str, &str)> = traps.iter().map(|(n, t)| (&**n, &**t)).collect();
    files.push((
        "main.impala",
        "mod m { mod n { use m::f; use n::g; use ::m::h; use self::f; use super::f; } use n::*; fn f() { } }
         enum e { a } use e::a; use m::n as o; use o::b;
         fn f() { mod p { } use p::x; enum q { } { use q::*; } }
         mod sub;",
    ));
    files.push(("sub.impala", "use m::f; use r::f; mod r { } static sub = 0;"));
    assert!(trees("own", &files).contains("(static sub 0)"));
}

#[test]
fn libraries_do_not_see_the_programs_names() {
    let files = [
        ("main.impala", "mod tools { } use lib::*; static main = 0;"),
        ("lib.impala", "use tools::*; static lib = 0;"),
        ("tools.impala", "static tools = 0;"),
    ];
    assert!(trees("apart", &files).contains("(static tools 0)"));
}

#[test]
fn names_from_other_uses_are_no_missing_libraries() {
    let files = [("main.impala", "mod m { mod n { } } use m::*; use n::f;")];
    let (_, _, err) = run("other", &files, &["check", "main.impala"]);
    assert!(!err.contains("no-such-library"), "{err}");
    let (_, _, err) = run("gone", &[("main.impala", "use x::n::f;")], &["check", "main.impala"]);
    for what in ["cannot find library `x::n::f`", "x/n/f.impala, ", "x/n.impala, ", "x.impala; "] {
        assert!(err.contains(what), "{what} in {err}");
    }
}

#[test]
fn a_file_is_one_module() {
    let check = |name: &str, files: &[(&str, &str)], args: &[&str]| {
        let (code, _, err) = run(name, files, &[&["check"], args].concat());
        assert_eq!(code, 1);
        assert_eq!(err.matches("error[").count(), 1, "{err}");
        assert!(err.contains("error[module-twice]"), "{err}");
    };
    check("itself", &[("main.impala", "mod main;")], &["main.impala"]);
    check("circle", &[("main.impala", "mod a;"), ("a.impala", "mod b;"), ("b.impala", "mod a;")], &["main.impala"]);
    check("given", &[("main.impala", "mod a;"), ("a.impala", "")], &["main.impala", "a.impala"]);
    check("twice", &[("main.impala", "mod a; mod b;"), ("a.impala", "mod b;"), ("b.impala", "")], &["main.impala"]);
}

#[test]
fn files_that_cannot_be_read_are_errors() {
    let (code, _, err) = run("missing", &[("main.impala", "mod a { mod b; }")], &["check", "main.impala"]);
    assert_eq!(code, 1);
    assert!(err.contains("main.impala:1:13") && err.contains("a/b.impala: there is no such file"), "{err}");
    let folder = Folder::new("bytes");
    folder.write("m.impala", b"\xff");
    let output = nyala(&["check".as_ref(), folder.write("main.impala", "mod m;").as_os_str()], 60);
    assert!(stderr(&output).contains("m.impala: not UTF-8"), "{}", stderr(&output));
}

#[test]
fn modules_are_not_overwritten() {
    let files = [("main.impala", "mod m; fn main() -> i32 { 0 }"), ("m.impala", "static part = 0;")];
    for args in [&["build", "main.impala", "-o", "m.impala"][..], &["emit", "main.impala", "-o", "m.impala"]] {
        let (code, _, err) = run("overwritten", &files, args);
        assert_eq!(code, 1);
        assert!(err.contains("it is a file of the program itself"), "{err}");
    }
}

#[test]
fn several_files_are_one_program() {
    let files = [
        (
            "a.impala",
            "struct S { x: i32 } trait Get { fn get(self: &Self) -> i32; } fn even(n: i32) -> bool { n == 0 || odd(n - 1) } static A = B + 1;",
        ),
        (
            "b.impala",
            "impl Get for S { fn get(self: &S) -> i32 { self.x } } fn odd(n: i32) -> bool { n != 0 && even(n - 1) } static B = 10;",
        ),
        ("c.impala", "fn main() -> i32 { let s = S { x: 20 }; s.get() + A + even(4) as i32 }"),
    ];
    for order in [["a.impala", "b.impala", "c.impala"], ["c.impala", "b.impala", "a.impala"]] {
        let (code, _, err) = run("several", &files, &[&["run"][..], &order].concat());
        assert_eq!((code, &*err), (32, ""));
    }
}

#[test]
fn names_in_two_files_are_the_same_name() {
    let files = [("a.impala", "fn f() -> i32 { 1 }"), ("b.impala", "fn f() -> i32 { 2 }\nfn main() -> i32 { f() }")];
    let (code, _, err) = run("twice", &files, &["check", "a.impala", "b.impala"]);
    assert_eq!(code, 1);
    assert_eq!(err.matches("error[").count(), 1, "{err}");
    assert!(err.contains("error[duplicate-name]") && err.contains("b.impala:1:4") && err.contains("a.impala"), "{err}");
}

#[test]
fn programs_without_prelude_have_names_of_their_own() {
    let own = "
        extern \"C\" { fn \"putchar\" print_i32(i32) -> i32; }
        fn range(a: i32, b: i32, body: fn(i32) -> ()) -> () { if a < b { body(a); range(a + 1, b, body) } }
        trait Num { fn twice(self: Self) -> Self; }
        impl Num for i32 { fn twice(self: i32) -> i32 { self * 2 } }
        fn main() -> i32 { let mut s = 0; for i in range(0, 4) { s += i.twice() } s }";
    let (code, _, err) = run("bare", &[("main.impala", own)], &["run", "--no-prelude", "main.impala"]);
    assert_eq!((code, &*err), (12, ""));
    let theirs = "fn main() -> i32 { for i in range(0, 4) { } 0 }\nfn f[T: Num](x: T) -> T { x + x }";
    let (code, _, err) = run("bare2", &[("main.impala", theirs)], &["check", "--no-prelude", "main.impala"]);
    assert_eq!(code, 1);
    assert!(err.contains("found no `range`") && err.contains("found no `Num`"), "{err}");
}

#[test]
fn warnings_are_allowed_and_denied() {
    let files = [("main.impala", "fn main() -> i32 { let x = 1; match 2 { _ => 0, 3 => 1 } }")];
    let (code, _, err) = run("warned", &files, &["check", "main.impala"]);
    assert_eq!(code, 0);
    assert!(err.contains("warning[unused-name]") && err.contains("warning[useless-arm]"), "{err}");
    let (code, _, err) = run("allowed", &files, &["check", "--allow", "unused-name", "main.impala"]);
    assert_eq!(code, 0);
    assert!(!err.contains("unused-name") && err.contains("warning[useless-arm]"), "{err}");
    let (code, _, err) = run("denied", &files, &["check", "--deny", "unused-name", "main.impala"]);
    assert_eq!(code, 1);
    assert!(err.contains("error[unused-name]") && err.contains("warning[useless-arm]"), "{err}");
    let (code, _, err) = run("unknown", &files, &["check", "--deny", "no-such-code", "main.impala"]);
    assert_ne!(code, 0, "{err}");
}

#[test]
fn closures_are_denied_by_name_only() {
    let files = [("main.impala", "extern fn set(p: &mut fn(i32) -> i32, n: i32) -> () { *p = |x| x + n; }")];
    for args in [&["check", "main.impala"][..], &["check", "--deny", "warnings", "main.impala"]] {
        let (code, _, err) = run("silent", &files, args);
        assert_eq!((code, &*err), (0, ""));
    }
    let (code, _, err) = run("asked", &files, &["check", "--deny", "heap-closure", "main.impala"]);
    assert_eq!(code, 1);
    assert!(err.contains("error[heap-closure]") && err.contains("captures `n`"), "{err}");
}

#[test]
fn nothing_unused_is_reported_of_files_that_a_program_merely_uses() {
    let library = "fn helper() -> i32 { let mut x = 1; let y = 2; fn inner() -> i32 { 3 } x }
        priv fn hidden() -> i32 { 4 }
        use std::text::*; use std::sort::sort_by;";
    let unused = |name: &str, main: &str, other: &str| {
        let files = [("main.impala", main), ("other.impala", other)];
        let (code, _, err) = run(name, &files, &["check", "other.impala", "main.impala"]);
        assert_eq!(code, 0, "{err}");
        let lines = err.lines().filter(|l| l.starts_with("warning[unused-"));
        lines.map(|l| l.split_once(": ").map_or(l, |(_, text)| text).to_string()).collect::<Vec<_>>()
    };
    // A function of the file with `main` may be another file's.
    let main = "fn main() -> i32 { let z = 5; 0 } fn shared() -> i32 { 6 } priv fn own() -> i32 { 7 }";
    assert_eq!(unused("uses", main, library), ["variable `z` is never used", "function `own` is never used"]);
    let exports = "extern fn entry() -> i32 { let z = 5; 0 } fn shared() -> i32 { 6 }";
    assert_eq!(unused("exports", exports, library), ["variable `z` is never used"]);
    // A library alone is looked at as a whole.
    let neither = "fn f() -> i32 { let z = 5; 0 }";
    assert_eq!(unused("neither", neither, "fn g() -> i32 { let z = 6; 0 }").len(), 2);
    let (_, _, err) = run(
        "module",
        &[("main.impala", "mod other; fn main() -> i32 { 0 }"), ("other.impala", library)],
        &["check", "main.impala"],
    );
    assert!(
        err.contains("variable `y`") && err.contains("function `hidden`") && !err.contains("function `helper`"),
        "{err}"
    );
}

#[test]
fn hints_name_the_libraries_that_have_a_name() {
    let files = [
        ("main.impala", "fn f(x: Thing) -> i32 { make(); hidden(); x.go(); 3.go(); deep::make(1); 1 }"),
        ("l/one.impala", "struct Thing {} fn make() -> i32 { 1 } priv fn hidden() -> i32 { 1 }"),
        (
            "l/two/deep.impala",
            "fn make() -> i32 { 1 } trait Goes { fn go(self: &Self) -> (); } impl Goes for i32 { fn go(self: &i32) -> () {} }",
        ),
        ("l/broken.impala", "fn make( { \u{0} struct"),
    ];
    let args = ["check", "main.impala", "-L", "l"];
    let folder = Folder::new("hints");
    let l = folder.path("l").display().to_string();
    for (file, text) in files {
        std::fs::create_dir_all(folder.path(file).parent().unwrap()).unwrap();
        folder.write(file, text);
    }
    let main = folder.path("main.impala").display().to_string();
    let args = args.map(|a| {
        if a == "l" {
            &*l
        } else if a == "main.impala" {
            &*main
        } else {
            a
        }
    });
    let err = stderr(&nyala(&args.map(OsStr::new), 60));
    for hint in [
        "one.impala` has it: `use one::*;`",
        "libraries have it: `use one::*;` or `use two::deep::*;`",
        "deep.impala` has it: `use two::deep::*;`",
        "`use two::deep;` brings the names `deep::…`",
    ] {
        assert!(err.contains(hint), "{hint} in {err}");
    }
    assert!(!err.contains("hidden` has it"), "{err}");
    let fixed = "use one::*; use two::deep; fn f(x: Thing) -> i32 { make(); 3.go(); deep::make() }";
    std::fs::write(folder.path("main.impala"), fixed).unwrap();
    assert_eq!(stderr(&nyala(&args.map(OsStr::new), 60)), "");
}

#[test]
fn a_function_does_not_hide_the_library_of_its_name() {
    let files = [
        (
            "main.impala",
            "use own::namesake::*;
             use own::user::*;
             //? twice(1) == 3 && own(1) == 2 && own::namesake::own(1) == 2
             //? local(4) == 9
             fn local(own: i32) -> i32 { use own::user::*; twice(own) + own::namesake::own(2) }",
        ),
        ("own/namesake.impala", "fn own(x: i32) -> i32 { x + 1 }"),
        ("own/user.impala", "use own::namesake::*; fn twice(x: i32) -> i32 { own(own(x)) }"),
    ];
    let (code, out, err) = run("namesakes", &files, &["test", "main.impala"]);
    assert_eq!(code, 0, "{out}{err}");
}

/// A name that a file elsewhere has: the hint names the file, and what to write.
#[test]
fn hints_name_the_file_that_has_a_name() {
    let folder = Folder::new("names elsewhere");
    for inner in [".hidden", "sub/deeper", "package/src/shapes", "package/tests", "other/src"] {
        std::fs::create_dir_all(folder.path(inner)).unwrap();
    }
    folder.write("geometry.impala", "fn area(a: i32, b: i32) -> i32 { a * b }\npriv fn secret() -> i32 { 3 }\n");
    folder.write("sub/solids.impala", "fn volume(a: i32) -> i32 { a * a * a }\n");
    folder.write("sub/deeper/far.impala", "fn far_away() -> i32 { 1 }\n");
    folder.write(".hidden/dark.impala", "fn darkness() -> i32 { 1 }\n");
    folder.write("program.impala", "fn of_a_program() -> i32 { 1 }\nfn main() -> i32 { 0 }\n");
    let other = "[dependencies]\nother = { path = \"../other\" }\n";
    folder.write("package/nyala.toml", format!("[package]\nname = \"shapes\"\n{other}"));
    folder.write("package/src/shapes/round.impala", "fn circle() -> i32 { 1 }\n");
    folder.write("other/nyala.toml", "[package]\nname = \"other\"\n");
    folder.write("other/src/other.impala", "fn from_other() -> i32 { 1 }\n");
    let hints = |at: &str, text: &str| {
        let file = folder.write(at, text);
        let err = stderr(&nyala(&["check".as_ref(), file.as_os_str()], 60));
        err.lines().filter_map(|l| l.trim().strip_prefix("= hint: ")).collect::<Vec<_>>().join("\n")
    };
    let at = |path: &str| folder.path(path).display().to_string();
    let (geometry, solids) = (at("geometry.impala"), at("sub/solids.impala"));
    let nothing = "declare it, or `use` the library that has it";
    for (text, hint) in [
        ("fn main() -> i32 { area(2, 3) }", format!("`{geometry}` has it: `use geometry::*;`")),
        (
            "fn main() -> i32 { geometry::area(2, 3) }",
            format!("`use geometry;` brings the names `geometry::…` of `{geometry}`"),
        ),
        (
            "mod geometry;\\nfn main() -> i32 { area(2, 3) }",
            "a module of the program has it: write `geometry::area`".into(),
        ),
        ("mod a { mod b { fn g() -> i32 { 3 } } }\\nfn main() -> i32 { b::g() }", "write `a::b::…`".into()),
        ("fn main() -> i32 { volume(3) }", format!("`{solids}` has it: `use sub::solids::*;`")),
        ("mod solids;\\nfn main() -> i32 { 0 }", format!("`{solids}` has this name: write `use sub::solids;`")),
        ("mod text;\\nfn main() -> i32 { 0 }", "a library has this name: write `use std::text;`".into()),
        ("use solids::*;\\nfn main() -> i32 { 0 }", format!("did you mean `sub::solids`, which is `{solids}`?")),
        ("fn main() -> i32 { secret() }", nothing.into()),
        ("fn main() -> i32 { far_away() }", nothing.into()),
        ("fn main() -> i32 { darkness() }", nothing.into()),
        ("fn main() -> i32 { of_a_program() }", nothing.into()),
    ] {
        let found = hints("t.impala", &text.replace("\\n", "\n"));
        assert!(found.contains(&hint), "{text}: {found}");
    }
    let round = folder.path("package").join("src/shapes/round.impala");
    let found = hints("package/tests/t.impala", "fn main() -> i32 { circle() }\n");
    assert_eq!(found, format!("`{}` has it: `use shapes::round::*;`", round.display()));
    let found = hints("package/tests/t.impala", "fn main() -> i32 { from_other() }\n");
    assert!(found.ends_with("other.impala` has it: `use other::*;`"), "{found}");
}
