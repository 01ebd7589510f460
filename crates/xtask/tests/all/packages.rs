//! Packages: `nyala new`, `nyala add`, manifests, locks, and repositories on this machine.

use crate::common::{Folder, RunToEnd, command, own_cache, sh, stderr};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A folder with packages, and a cache of its own.
struct Place(Folder);

impl Place {
    fn new(name: &str) -> Place {
        Place(Folder::new(name))
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        std::fs::create_dir_all(self.0.path(name).parent().unwrap()).unwrap();
        self.0.write(name, text)
    }

    /// A package with a library, and what it depends on.
    fn package(&self, name: &str, library: &str, dependencies: &str) {
        let manifest = format!("[package]\nname = \"{name}\"\n[dependencies]\n{dependencies}\n");
        self.write(&format!("{name}/nyala.toml"), &manifest);
        self.write(&format!("{name}/src/{name}.impala"), library);
    }

    fn nyala(&self, folder: &str, args: &[&str]) -> Output {
        let mut nyala = Command::new(command());
        own_cache(&mut nyala);
        nyala.args(args).current_dir(self.0.path(folder)).env("XDG_CACHE_HOME", self.0.path("cache")).run_to_end()
    }

    fn succeeds(&self, folder: &str, args: &[&str]) -> String {
        let output = self.nyala(folder, args);
        assert!(output.status.success(), "{args:?}: {}", stderr(&output));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn fails(&self, folder: &str, args: &[&str]) -> String {
        let output = self.nyala(folder, args);
        assert_eq!(output.status.code(), Some(1), "{args:?}: {}", stderr(&output));
        stderr(&output)
    }

    fn git(&self, folder: &str, args: &[&str]) -> String {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=n", "-c", "user.email=e", "-c", "init.defaultBranch=main"]);
        sh(git.args(args).current_dir(self.0.path(folder))).trim().to_string()
    }

    /// Makes a folder a repository, or adds a commit to it. Returns the commit.
    fn commit(&self, folder: &str) -> String {
        self.git(folder, &["init", "--quiet"]);
        self.git(folder, &["add", "-A"]);
        self.git(folder, &["commit", "--quiet", "-m", "a state"]);
        self.git(folder, &["rev-parse", "HEAD"])
    }

    fn url(&self, folder: &str) -> String {
        format!("file://{}", self.0.path(folder).display())
    }

    fn lock(&self, folder: &str) -> String {
        self.text(&format!("{folder}/nyala.lock"))
    }

    fn manifest(&self, folder: &str) -> String {
        self.text(&format!("{folder}/nyala.toml"))
    }

    fn text(&self, path: &str) -> String {
        std::fs::read_to_string(self.0.path(path)).unwrap_or_default()
    }
}

const FIVE: &str = "fn @five() -> i32 { 5 }";
const SIX: &str = "fn @five() -> i32 { 6 }";

#[test]
fn a_new_package_runs_and_passes_its_tests() {
    let place = Place::new("new");
    place.succeeds(".", &["new", "shapes"]);
    assert_eq!(place.succeeds("shapes", &["run", "src/main.impala"]), "10\n");
    place.succeeds("shapes", &["test", "tests"]);
    place.succeeds("shapes", &["fmt", "--check", "."]);
    // Without a file, those of the package.
    place.succeeds("shapes/src", &["fmt", "--check"]);
    place.write("shapes/bench/odd.impala", "fn f()->i32 {1}\n");
    assert_eq!(place.nyala("shapes/src", &["fmt", "--check"]).status.code(), Some(1));
    place.succeeds("shapes", &["fmt"]);
    place.succeeds("shapes", &["fmt", "--check"]);
    std::fs::remove_file(place.0.path("shapes/bench/odd.impala")).expect("it is there");
    assert_eq!(place.nyala(".", &["fmt"]).status.code(), Some(2));
    for file in ["bench/dot_products.impala", "tests/dot_products.impala", "src/main.impala"] {
        place.succeeds("shapes", &["check", "--deny", "warnings", file]);
    }
    assert_eq!(place.lock("shapes"), "");
    assert_eq!(place.nyala(".", &["new", "shapes"]).status.code(), Some(2));
    for bad in ["std", "image", "match", "1st", "a-b", "self"] {
        let output = place.nyala(".", &["new", bad]);
        assert_eq!(output.status.code(), Some(2), "{bad}");
        assert!(stderr(&output).contains("cannot be the name of a package"), "{}", stderr(&output));
        assert!(!place.0.path(bad).exists());
    }
}

/// Without a file, commands take those of the package around the folder; else they say what is missing.
#[test]
fn commands_without_a_file_take_the_package() {
    let place = Place::new("whole");
    place.succeeds(".", &["new", "shapes"]);
    for folder in ["shapes", "shapes/src", "shapes/tests"] {
        assert_eq!(place.succeeds(folder, &["run"]), "10\n");
        assert_eq!(place.succeeds(folder, &["run", "--", "an argument"]), "10\n");
        assert!(place.succeeds(folder, &["test", "--engine", "interp"]).contains("3 passed, 0 failed"));
    }
    place.succeeds("shapes", &["check", "--deny", "warnings"]);
    assert!(place.succeeds("shapes", &["emit", "--stage", "flat", "--fn", "dot4"]).contains("dot4"));
    place.succeeds("shapes", &["explain"]);
    place.succeeds("shapes", &["build", "-o", "program.o"]);
    assert!(place.succeeds("shapes", &["bench", "--time", "0.001"]).contains("bench_dot"));
    assert!(place.succeeds("shapes/src", &["doc", "-o", "../pages", "--format", "markdown"]).starts_with("1 page"));
    let pages = place.text("shapes/pages/shapes.md");
    assert!(pages.contains("dot") && !place.0.path("shapes/pages/main.md").exists(), "{pages}");
    place.write("shapes/bench/more.impala", "fn bench_more() -> () { }");
    let refused = |folder: &str, args: &[&str], why: &[&str]| {
        let output = place.nyala(folder, args);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", stderr(&output));
        why.iter().for_each(|why| assert!(stderr(&output).contains(why), "{why} in {}", stderr(&output)));
    };
    refused("shapes", &["bench"], &["several benchmarks", "`bench/dot_products.impala`, `bench/more.impala`"]);
    place.package("library", "", "");
    refused("library", &["run"], &["the package has no `src/main.impala`", "name a file"]);
    refused("library/src", &["check"], &["the package has no `../src/main.impala`"]);
    refused("library", &["bench"], &["the package has no `bench/….impala`"]);
    for verb in ["run", "check", "test", "bench", "emit", "explain", "tune"] {
        refused(".", &[verb], &["no folder around this one has a `nyala.toml`", "`nyala new NAME`"]);
    }
    refused(".", &["build", "-o", "x"], &["no folder around this one has a `nyala.toml`"]);
}

#[test]
fn a_package_sees_its_own_dependencies_only() {
    let place = Place::new("own");
    place.package("inner", "fn @five() -> i32 { 5 }", "");
    place.package("outer", "use inner::*; fn @ten() -> i32 { 2 * five() }", "inner = { path = \"../inner\" }");
    place.package("demo", "", "");
    let program = "use outer::*; fn main() -> i32 { print_i32(ten()); println(); 0 }";
    place.write("demo/src/main.impala", program);
    // Not before it is a dependency.
    let err = place.fails("demo", &["check", "src/main.impala"]);
    assert!(err.contains("error[no-such-library]") && err.contains("nyala.toml"), "{err}");
    place.succeeds("demo/src", &["add", "outer", "--path", "../../outer"]);
    let manifest = std::fs::read_to_string(place.0.path("demo/nyala.toml")).unwrap();
    assert!(manifest.contains("[dependencies]\nouter = { path = \"src/../../outer\" }\n"), "{manifest}");
    assert_eq!(place.succeeds("demo", &["run", "src/main.impala"]), "10\n");
    assert_eq!(place.succeeds(".", &["run", "demo/src/main.impala"]), "10\n");
    // The dependency's dependency is none of this package.
    for (text, code) in [
        ("use outer::*; use inner::*; fn main() -> i32 { ten() + five() }", "no-such-library"),
        ("use outer::*; fn main() -> i32 { ten() + inner::five() }", "unknown-name"),
    ] {
        place.write("demo/src/main.impala", text);
        let err = place.fails("demo", &["check", "src/main.impala"]);
        assert!(err.contains(&format!("error[{code}]")), "{err}");
    }
    place.succeeds("demo", &["add", "inner", "--path", "../inner"]);
    assert_eq!(place.nyala("demo", &["run", "src/main.impala"]).status.code(), Some(15));
    // Dependencies do not see the folders of the program's options.
    place.write("more/extra.impala", FIVE);
    place.write("outer/src/outer.impala", "use extra::*; fn @ten() -> i32 { 2 * five() }");
    place.write("demo/src/main.impala", program);
    let err = place.fails("demo", &["check", "-L", "../more", "src/main.impala"]);
    assert!(err.contains("cannot find library `extra`"), "{err}");
}

#[test]
fn faults_of_manifests_are_reported_where_they_are() {
    let place = Place::new("faults");
    place.package("geo", FIVE, "");
    place.write("demo/src/main.impala", "use geo::*; fn main() -> i32 { five() }");
    for (manifest, code, text) in [
        ("[package]\nname = \"std\"\n", "bad-manifest", "the compiler comes with a library of that name"),
        ("[package]\nname = \"demo\"\n[dependencies]\nstd = { path = \"../geo\" }\n", "bad-manifest", "nyala.toml:4:1"),
        (
            "[package]\nname = \"demo\"\n[dependencies]\nshapes = { path = \"../geo\" }\n",
            "bad-manifest",
            "the package is called `geo`",
        ),
        (
            "[package]\nname = \"demo\"\n[dependencies]\ngeo = { path = \"../none\" }\n",
            "no-such-package",
            "there is no package in",
        ),
        (
            "[package]\nname = \"demo\"\n[dependencies]\ngeo = { path = \"../geo\", rev = \"1\" }\n",
            "bad-manifest",
            "or `git` and `rev`",
        ),
        (
            "[package]\nname = \"demo\"\n[dependencies]\ngeo = { git = \"ext::sh -c id\", rev = \"1\" }\n",
            "bad-manifest",
            "no address",
        ),
        (
            "[package]\nname = \"demo\"\n[dependencies]\ngeo = { git = \"ext::sh://x\", rev = \"1\" }\n",
            "bad-manifest",
            "no address",
        ),
        (
            "[package]\nname = \"demo\"\n[dependencies]\ngeo = { git = \"file:///nowhere/at/all\", rev = \"v1\" }\n",
            "no-such-package",
            "git says",
        ),
        (
            "[package]\nname = \"demo\"\n[dependencies]\ngeo = { git = \"file:///x\", rev = \"--all\" }\n",
            "bad-manifest",
            "no revision",
        ),
        ("[package]\nname = 3\n", "bad-manifest", "nyala.toml:2"),
        ("[package]\nname = \"demo\"\nauthor = \"me\"\n", "bad-manifest", "author"),
        ("[dependencies]\n", "bad-manifest", "package"),
        ("[package\n", "bad-manifest", "nyala.toml:1"),
    ] {
        place.write("demo/nyala.toml", manifest);
        let err = place.fails("demo", &["check", "src/main.impala"]);
        assert!(err.contains(&format!("error[{code}]")) && err.contains(text), "{manifest}\n{err}");
    }
    // A program outside of packages has none.
    place.write("alone/main.impala", "fn main() -> i32 { 0 }");
    place.succeeds("alone", &["run", "main.impala"]);
    let err = place.fails("alone", &["add", "geo", "--path", "../geo"]);
    assert!(err.contains("`nyala new NAME` makes a package"), "{err}");
}

#[test]
fn revisions_are_locked() {
    let place = Place::new("revisions");
    place.package("geo", FIVE, "");
    let first = place.commit("geo");
    place.package("demo", "", "");
    place.write("demo/src/main.impala", "use geo::*; fn main() -> i32 { five() }");
    let main = |options: &[&str]| place.nyala("demo", &[&["run", "src/main.impala"], options].concat());
    place.succeeds("demo", &["add", "geo", "--git", &place.url("geo"), "--rev", "main"]);
    let lock = place.lock("demo");
    let tree = place.git("geo", &["rev-parse", "HEAD^{tree}"]);
    assert!(lock.contains(&format!("commit = \"{first}\"\ntree = \"{tree}\"\n")), "{lock}");
    assert_eq!(main(&["--locked", "--offline"]).status.code(), Some(5));
    // The branch moves, the lock does not, with or without what was fetched.
    place.write("geo/src/geo.impala", SIX);
    let second = place.commit("geo");
    assert_eq!(main(&[]).status.code(), Some(5));
    let err = |output: Output| {
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        stderr(&output)
    };
    std::fs::remove_dir_all(place.0.path("cache")).unwrap();
    let said = err(main(&["--offline"]));
    assert!(said.contains("`--offline` forbids it"), "{said}");
    assert_eq!(main(&[]).status.code(), Some(5));
    assert_eq!(place.lock("demo"), lock);
    // What was fetched needs no git.
    let mut nyala = Command::new(command());
    nyala.args(["run", "src/main.impala"]).current_dir(place.0.path("demo"));
    let without = |nyala: &mut Command, cache: &str| {
        nyala.env("XDG_CACHE_HOME", place.0.path(cache)).env("PATH", "/nowhere").run_to_end()
    };
    assert_eq!(without(&mut nyala, "cache").status.code(), Some(5));
    let said = err(without(&mut nyala, "other cache"));
    assert!(said.contains("`git`, which is not installed"), "{said}");
    // A lock that does not fit.
    std::fs::remove_file(place.0.path("demo/nyala.lock")).unwrap();
    let said = err(main(&["--locked"]));
    assert!(said.contains("`nyala.lock` does not have `geo`"), "{said}");
    // A package that cannot be had is not reported as a missing library as well.
    assert!(!said.contains("no-such-library"), "{said}");
    // The branch is where it was fetched last.
    assert_eq!(main(&["--offline"]).status.code(), Some(6));
    assert!(place.lock("demo").contains(&second));
    place.write("demo/nyala.toml", &place.manifest("demo").replace("\"main\"", "\"other\""));
    let said = err(main(&["--locked"]));
    assert!(said.contains("`nyala.lock` has `geo` at `main`, and not at `other`"), "{said}");
    place.write("demo/nyala.toml", &place.manifest("demo").replace("\"other\"", "\"main\""));
    place.write("demo/nyala.lock", &place.lock("demo").replace(&second, &first));
    let said = err(main(&[]));
    assert!(said.contains("has the tree") && said.contains("nyala.lock"), "{said}");
    place.write("demo/nyala.lock", "version = 7\n");
    assert!(err(main(&[])).contains("error[bad-manifest]"));
    // A dependency that is gone leaves the lock.
    place.write("demo/nyala.lock", &lock);
    place.write("demo/nyala.toml", "[package]\nname = \"demo\"\n");
    place.write("demo/src/main.impala", "fn main() -> i32 { 0 }");
    assert!(err(main(&["--locked"])).contains("does not fit the manifests"));
    assert_eq!(main(&[]).status.code(), Some(0));
    assert!(!place.lock("demo").contains("geo"));
}

#[test]
fn two_revisions_of_one_package_are_an_error() {
    let place = Place::new("two");
    place.package("geo", FIVE, "");
    let first = place.commit("geo");
    place.write("geo/src/geo.impala", SIX);
    let second = place.commit("geo");
    let of = |commit: &str| format!("geo = {{ git = \"{}\", rev = \"{commit}\" }}", place.url("geo"));
    place.package("scenes", "use geo::*; fn @ten() -> i32 { 2 * five() }", &of(&first));
    place.package("demo", "", &format!("scenes = {{ path = \"../scenes\" }}\n{}", of(&second)));
    place.write("demo/src/main.impala", "use scenes::*; use geo::*; fn main() -> i32 { ten() + five() }");
    let err = place.fails("demo", &["check", "src/main.impala"]);
    assert!(err.contains("error[package-twice]") && err.contains(&first) && err.contains(&second), "{err}");
    // The same one under two names of its revision is one.
    place.git("geo", &["tag", "v1", &first]);
    place.package("demo", "", &format!("scenes = {{ path = \"../scenes\" }}\n{}", of("v1")));
    assert_eq!(place.nyala("demo", &["run", "src/main.impala"]).status.code(), Some(15));
    // Two packages with a library of one name, which is not theirs.
    for package in ["scenes", "demo"] {
        place.write(&format!("{package}/src/util.impala"), "fn @one() -> i32 { 1 }");
    }
    place.write("scenes/src/scenes.impala", "use util::*; fn @ten() -> i32 { 10 * one() }");
    place.write("demo/src/main.impala", "use scenes::*; use util::*; fn main() -> i32 { ten() + one() }");
    let err = place.fails("demo", &["check", "src/main.impala"]);
    assert!(err.contains("two packages have a library `util`"), "{err}");
}

/// Links, and files that are none of a package's, stay in the repository; nothing of it is executed.
#[test]
fn nothing_of_a_repository_is_executed() {
    let place = Place::new("executed");
    place.package("geo", FIVE, "inner = { path = \"inner\" }");
    place.write("geo/inner/nyala.toml", "[package]\nname = \"inner\"\n");
    place.write("geo/inner/src/inner.impala", "");
    place.write("geo/.gitattributes", "*.impala filter=evil\n");
    place.write("geo/run.sh", "touch executed\n");
    std::os::unix::fs::symlink("/etc/passwd", place.0.path("geo/src/leak.impala")).unwrap();
    place.commit("geo");
    let mark = place.0.path("executed");
    let config = format!("[filter \"evil\"]\n\tsmudge = touch '{}' && cat\n", mark.display());
    let config = place.write("config", &config);
    place.package("demo", "", &format!("geo = {{ git = \"{}\", rev = \"main\" }}", place.url("geo")));
    place.write("demo/src/main.impala", "use geo::*; fn main() -> i32 { five() }");
    let mut nyala = Command::new(command());
    nyala.args(["run", "src/main.impala"]).current_dir(place.0.path("demo"));
    nyala.env("XDG_CACHE_HOME", place.0.path("cache")).env("GIT_CONFIG_GLOBAL", config);
    let output = nyala.run_to_end();
    assert_eq!(output.status.code(), Some(5), "{}", stderr(&output));
    assert!(!mark.exists());
    let mut files = Vec::new();
    list(&place.0.path("cache/nyala/packages"), &mut files);
    let names = |end: &str| files.iter().filter(|f| f.ends_with(end)).count();
    assert_eq!((names("geo.impala"), names("inner.impala"), names("nyala.toml")), (1, 1, 2), "{files:?}");
    assert_eq!((names("leak.impala"), names("run.sh"), names(".gitattributes")), (0, 0, 0), "{files:?}");
    // Paths do not lead out of a commit.
    place.package("geo", FIVE, "inner = { path = \"../../../..\" }");
    place.write("cache/nyala/packages/nyala.toml", "[package]\nname = \"inner\"\n");
    place.write("nyala.toml", "[package]\nname = \"inner\"\n");
    place.commit("geo");
    std::fs::remove_file(place.0.path("demo/nyala.lock")).unwrap();
    let err = place.fails("demo", &["check", "src/main.impala"]);
    assert!(err.contains("leads out of the repository") || err.contains("there is no package"), "{err}");
}

fn list(folder: &Path, out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.ends_with("repository.git") {
            continue;
        }
        if path.is_dir() { list(&path, out) } else { out.push(path) }
    }
}
