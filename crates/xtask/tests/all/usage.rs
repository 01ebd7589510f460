//! What users meet of the command beside compiling: version, completions, manual pages, standard input, colors, carets.

use crate::common::{Folder, command, end, nyala, own_cache, stderr};
use std::io::Write;
use std::process::{Command, Output, Stdio};

fn run(args: &[&str]) -> Output {
    let args: Vec<&std::ffi::OsStr> = args.iter().map(|a| a.as_ref()).collect();
    nyala(&args, 60)
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The output with `text` as standard input.
fn with_input(args: &[&str], text: &str, folder: &Folder) -> Output {
    let mut command = Command::new(command());
    own_cache(&mut command).args(args).current_dir(&folder.0);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    end(child)
}

#[test]
fn the_version_names_commit_and_llvm() {
    for option in ["--version", "-V"] {
        let said = stdout(&run(&[option]));
        assert!(said.starts_with(concat!("nyala ", env!("CARGO_PKG_VERSION"), " (")), "{said}");
        assert!(said.contains("commit ") || said.contains("debug build"), "{said}");
        assert!(said.contains(", LLVM 22."), "{said}");
        assert!(said.ends_with(")\n") && said.lines().count() == 1, "{said}");
    }
    assert_eq!(run(&[]).status.code(), Some(2));
    assert_eq!(run(&["--no-such-option"]).status.code(), Some(2));
}

#[test]
fn shells_complete_all_verbs() {
    let help = stdout(&run(&["--help"]));
    let verbs: Vec<&str> =
        help.lines().skip_while(|l| *l != "Commands:").skip(1).take_while(|l| !l.is_empty()).collect();
    let verbs: Vec<&str> =
        verbs.iter().filter_map(|l| l.strip_prefix("  ")?.split(' ').next().filter(|w| !w.is_empty())).collect();
    assert!(verbs.len() > 15, "{help}");
    for shell in ["bash", "zsh", "fish"] {
        let script = stdout(&run(&["completions", shell]));
        for verb in &verbs {
            assert!(script.contains(verb), "{shell} lacks {verb}");
        }
        assert!(script.contains("prefer-vector-width"), "{shell}");
    }
    let script = format!("source /dev/stdin <<'END'\n{}\nEND\n", stdout(&run(&["completions", "bash"])));
    let ask = "COMP_WORDS=(nyala expl); COMP_CWORD=1; _nyala nyala expl nyala; echo \"${COMPREPLY[@]}\"";
    let Ok(bash) = Command::new("bash").args(["-c", &format!("{script}{ask}")]).output() else { return };
    assert_eq!(stdout(&bash), "explain explain-error\n", "{}", stderr(&bash));
    assert_eq!(run(&["completions", "cmd"]).status.code(), Some(2));
}

#[test]
fn each_verb_has_a_manual_page() {
    let folder = Folder::new("man");
    let pages = folder.path("man1");
    assert!(run(&["man", pages.to_str().unwrap()]).status.success());
    let page = |name: &str| std::fs::read_to_string(pages.join(name)).unwrap();
    assert!(page("nyala.1").contains("nyala\\-explain"), "{}", page("nyala.1"));
    let run_page = page("nyala-run.1");
    assert!(run_page.contains("\\fBnyala run\\fR") && run_page.contains("prefer\\-vector\\-width"), "{run_page}");
    assert!(pages.join("nyala-explain-error.1").exists());
    // A file is in the way.
    let file = folder.write("file", "");
    let output = run(&["man", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("error[cannot-write]"));
}

#[test]
fn a_dash_is_standard_input() {
    let folder = Folder::new("stdin");
    folder.write("helper.impala", "fn @seven() -> i32 { 7 }");
    let program = "use helper::*; fn main() -> i32 { print_i32(seven()); println(); 0 }";
    let output = with_input(&["run", "-"], program, &folder);
    assert_eq!((stdout(&output).as_str(), output.status.code()), ("7\n", Some(0)), "{}", stderr(&output));
    let output = with_input(&["check", "-"], "fn f() -> i32 { 1f }", &folder);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("--> -:1:17"), "{}", stderr(&output));
    let output = with_input(&["emit", "--stage", "flat", "-"], "extern fn f() -> i32 { 1 + 2 }", &folder);
    assert!(stdout(&output).contains("return(3i32)"), "{}", stderr(&output));
    assert_eq!(with_input(&["run", "-"], "\u{0}", &folder).status.code(), Some(1));
    assert_eq!(with_input(&["tune", "-"], program, &folder).status.code(), Some(2));
}

#[test]
fn all_warnings_can_be_allowed() {
    let folder = Folder::new("allow");
    let program = folder.write("p.impala", "fn main() -> i32 { let x = 1; let y = 2; 0 }");
    let program = program.to_str().unwrap();
    let said = |options: &[&str]| {
        let output = run(&[&["check", program], options].concat());
        (stderr(&output).matches("[unused-name]").count(), output.status.code())
    };
    assert_eq!(said(&[]), (2, Some(0)));
    assert_eq!(said(&["--allow", "warnings"]), (0, Some(0)));
    assert_eq!(said(&["--allow", "unused-name"]), (0, Some(0)));
    assert_eq!(said(&["--deny", "warnings"]), (2, Some(1)));
    // What is denied by its name is no warning.
    assert_eq!(said(&["--allow", "warnings", "--deny", "unused-name"]), (2, Some(1)));
    assert_eq!(said(&["--allow", "unused-name", "--deny", "warnings"]), (0, Some(0)));
}

#[test]
fn colors_can_be_asked_for() {
    let folder = Folder::new("colors");
    let program = folder.write("p.impala", "fn main() -> i32 { 1f }");
    let has_colors = |variables: &[(&str, &str)]| {
        let mut command = Command::new(command());
        own_cache(&mut command).arg("check").arg(&program).env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE");
        let output = command.envs(variables.iter().copied()).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        stderr(&output).contains("\x1b[")
    };
    assert!(!has_colors(&[]));
    assert!(has_colors(&[("CLICOLOR_FORCE", "1")]));
    assert!(!has_colors(&[("CLICOLOR_FORCE", "0")]));
    assert!(!has_colors(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]));
    assert!(has_colors(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "")]));
}

/// Chinese characters have two columns, combining ones none.
#[test]
fn carets_are_as_wide_as_what_they_mark() {
    let folder = Folder::new("carets");
    for (text, place, carets) in [
        ("fn f() -> i32 { \"漢字\" }", 16, 6),
        ("fn f() -> i32 { \"e\u{301}e\u{301}\" }", 16, 4),
        ("fn f() -> i32 { /* 漢字 */ 1f }", 27, 2),
        ("fn f() -> i32 { /* e\u{301}e\u{301} */ 1f }", 25, 2),
        ("fn f() -> i32 { 漢 }", 16, 2),
    ] {
        let file = folder.write("p.impala", text);
        let err = stderr(&run(&["check", file.to_str().unwrap()]));
        let marked = err.lines().find(|l| l.contains('^')).unwrap();
        let found = (marked.find('^').unwrap() - "1 | ".len(), marked.matches('^').count());
        assert_eq!(found, (place, carets), "{err}");
    }
}

/// The command alone, in a folder that has nothing else, with a home that is empty.
fn installed(folder: &Folder, args: &[&str]) -> Command {
    for name in ["bin", "home", "empty"] {
        std::fs::create_dir_all(folder.path(name)).unwrap();
    }
    let copy = folder.path("bin/nyala");
    if !copy.exists() {
        std::fs::copy(command(), &copy).unwrap();
    }
    let mut nyala = Command::new(copy);
    nyala.args(args).current_dir(folder.path("empty")).env_clear();
    nyala.env("HOME", folder.path("home")).env("XDG_CACHE_HOME", folder.path("home/.cache"));
    nyala
}

const PROGRAM: &str = "use std::buffer::*; use image::*; fn main() -> i32 { print_i32(7); println(); 0 }";

#[test]
fn an_installed_command_needs_nothing_beside_it() {
    let folder = Folder::new("installed");
    folder.write("p.impala", PROGRAM);
    let output = installed(&folder, &["run", "../p.impala"]).output().unwrap();
    assert_eq!((stdout(&output).as_str(), output.status.code()), ("7\n", Some(0)), "{}", stderr(&output));
    // The runtime library is not installed, and without Cargo it cannot be made.
    let output = installed(&folder, &["build", "../p.impala", "-o", "p"]).env("PATH", "/nowhere").output().unwrap();
    let err = stderr(&output);
    assert!(err.contains("error[runtime-not-found]") && err.contains("`cargo` does not start"), "{err}");
}

#[test]
#[ignore = "compiles the runtime library, which takes minutes: ./x test --all crates"]
fn an_installed_command_makes_the_runtime_library() {
    let folder = Folder::new("makes");
    folder.write("p.impala", PROGRAM);
    let build = || {
        let mut build = installed(&folder, &["build", "../p.impala", "-o", "p"]);
        for name in ["PATH", "CARGO_HOME", "RUSTUP_HOME"] {
            build.envs(std::env::var_os(name).map(|value| (name, value)));
        }
        // The folders that Cargo has in a home which is not empty.
        let home = std::env::home_dir().unwrap();
        for (name, usual) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")] {
            if std::env::var_os(name).is_none() {
                build.env(name, home.join(usual));
            }
        }
        let output = build.output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        stderr(&output)
    };
    assert!(build().contains("note: making the runtime library, once"));
    let output = Command::new(folder.path("empty/p")).output().unwrap();
    assert_eq!(stdout(&output), "7\n");
    assert_eq!(build(), "");
}
