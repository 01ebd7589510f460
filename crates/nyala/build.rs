//! Finds the commit that the command is made of, for `nyala --version`. It is only known to what is released: each commit
//! would compile this crate again.

use std::process::Command;

fn git(args: &[&str]) -> Option<String> {
    let output = Command::new("git").args(args).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_string())
}

/// The commit of the checkout, or of the package that Cargo has made of one.
fn commit() -> Option<String> {
    if let Ok(about) = std::fs::read_to_string(".cargo_vcs_info.json") {
        let (_, rest) = about.split_once("\"sha1\": \"")?;
        return rest.get(..12).map(String::from);
    }
    // The checkout may be in the repository of something else.
    let manifest = git(&["ls-files", "--error-unmatch", "Cargo.toml"])?;
    let commit = git(&["rev-parse", "--short=12", "HEAD"]).filter(|_| !manifest.is_empty())?;
    let is_changed = git(&["status", "--porcelain", "--untracked-files=no"]).is_none_or(|text| !text.is_empty());
    for file in ["HEAD", "logs/HEAD"] {
        if let Some(path) = git(&["rev-parse", "--git-path", file]) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    Some(if is_changed { commit + "+" } else { commit })
}

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is_release = std::env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let about = match is_release {
        true => commit().map_or("unknown commit".into(), |commit| format!("commit {commit}")),
        false => "debug build".into(),
    };
    println!("cargo::rustc-env=NYALA_BUILD={about}");
}
