//! What the ending of a file's name says about its content: which command and which option make it. `nyala build` and `nyala
//! emit` do what an ending says, or refuse; separate from both, because each names the other.

use crate::build::Kind;
use std::path::Path;

/// What makes files with an ending.
enum Maker {
    /// `nyala build`
    Build(Kind),
    /// `nyala emit`, with one of these stages; the first is meant where none is given.
    Emit(&'static [&'static str]),
    /// Nothing makes them; the text is a remedy.
    Nothing(&'static str),
}

const WINDOWS: &str = "libraries are `.a` and `.so`, objects `.o`, and executables have no ending";

/// Endings in lower case.
const ENDINGS: &[(&str, Maker)] = &[
    ("o", Maker::Build(Kind::Obj)),
    ("a", Maker::Build(Kind::StaticLib)),
    ("so", Maker::Build(Kind::SharedLib)),
    ("h", Maker::Build(Kind::Header)),
    ("ll", Maker::Emit(&["llvm"])),
    ("s", Maker::Emit(&["asm", "ptx", "amdgpu", "spirv"])),
    ("asm", Maker::Emit(&["asm", "ptx", "amdgpu", "spirv"])),
    ("c", Maker::Emit(&["c", "opencl"])),
    ("cl", Maker::Emit(&["opencl"])),
    ("cu", Maker::Emit(&["cuda"])),
    ("cpp", Maker::Emit(&["hls", "cuda"])),
    ("cc", Maker::Emit(&["hls", "cuda"])),
    ("ptx", Maker::Emit(&["ptx"])),
    ("spv", Maker::Emit(&["spirv"])),
    ("spvasm", Maker::Emit(&["spirv"])),
    ("hsaco", Maker::Emit(&["amdgpu"])),
    ("exe", Maker::Nothing(WINDOWS)),
    ("dll", Maker::Nothing(WINDOWS)),
    ("lib", Maker::Nothing(WINDOWS)),
    ("obj", Maker::Nothing(WINDOWS)),
    ("dylib", Maker::Nothing("shared libraries are `.so`")),
    ("bc", Maker::Nothing("`nyala emit --stage llvm` prints LLVM's text form, which `llvm-as` turns into bitcode")),
];

/// The ending of a file's name in lower case, without its dot; `so` for a library with a version, `x.so.1.2`.
fn ending(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let mut parts: Vec<&str> = name.split('.').skip(1).collect();
    let whole = parts.last().copied().unwrap_or_default();
    while parts.last().is_some_and(|p| is_number(p)) {
        parts.pop();
    }
    let without_version = parts.last().copied().unwrap_or_default();
    if without_version == "so" { "so".into() } else { whole.into() }
}

fn maker(path: &Path) -> Option<&'static (&'static str, Maker)> {
    let ending = ending(path);
    ENDINGS.iter().find(|e| e.0 == ending)
}

/// What `nyala build` makes for a file of this name: what its ending says, else an executable.
///
/// # Errors
/// The reason why it makes no such file.
pub fn kind_of(out: &Path) -> Result<Kind, String> {
    let no = |ending| format!("`nyala build` makes no `.{ending}` files");
    match maker(out) {
        None => Ok(Kind::Exe),
        Some((_, Maker::Build(kind))) => Ok(*kind),
        Some((ending, Maker::Emit(stages))) => {
            Err(format!("{}: `nyala emit --stage {} -o {}` does", no(ending), stages[0], out.display()))
        }
        Some((ending, Maker::Nothing(remedy))) => {
            Err(format!("{}: {remedy}; `--kind` makes the file anyway", no(ending)))
        }
    }
}

/// The stage that `nyala emit` writes to a file of this name: the one that is `given`, or the one that its ending says.
///
/// # Errors
/// The reason why the file would not be what its ending says.
pub fn stage_of(out: &Path, given: Option<&str>) -> Result<Option<&'static str>, String> {
    match maker(out) {
        None => Ok(None),
        Some((ending, Maker::Emit(stages))) => match given {
            None => Ok(Some(stages[0])),
            Some(stage) => stages.iter().find(|s| **s == stage).map(|s| Some(*s)).ok_or_else(|| {
                format!(
                    "`--stage {stage}` makes no `.{ending}` files: `--stage {}` does",
                    stages.join("` or `--stage ")
                )
            }),
        },
        Some((ending, Maker::Build(_))) => {
            Err(format!("`nyala emit` makes no `.{ending}` files: `nyala build -o {}` does", out.display()))
        }
        Some((ending, Maker::Nothing(remedy))) => Err(format!("`nyala emit` makes no `.{ending}` files: {remedy}")),
    }
}

/// Whether a file of the command line is passed to the linker, not compiled.
pub fn is_linked(path: &Path) -> bool {
    matches!(maker(path), Some((_, Maker::Build(Kind::Obj | Kind::StaticLib | Kind::SharedLib))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_say_what_is_made() {
        let kind = |name: &str| kind_of(Path::new(name));
        for (name, expected) in [
            ("a.o", Kind::Obj),
            ("A.O", Kind::Obj),
            ("liba.a", Kind::StaticLib),
            ("a.so", Kind::SharedLib),
            ("a.So", Kind::SharedLib),
            ("a.so.1", Kind::SharedLib),
            ("x/a.so.1.20.3", Kind::SharedLib),
            ("a.h", Kind::Header),
            ("program", Kind::Exe),
            ("program.1", Kind::Exe),
            ("program.sox", Kind::Exe),
            ("v1.so.d/program", Kind::Exe),
            ("a.out", Kind::Exe),
            ("", Kind::Exe),
        ] {
            assert_eq!(kind(name), Ok(expected), "{name}");
        }
        for name in ["a.dll", "a.exe", "a.EXE", "a.obj", "a.ll", "a.s", "a.S", "a.c", "a.bc", "a.ptx"] {
            assert!(kind(name).is_err(), "{name}");
        }
        assert_eq!(
            kind("x/a.ll").unwrap_err(),
            "`nyala build` makes no `.ll` files: `nyala emit --stage llvm -o x/a.ll` does"
        );
    }

    #[test]
    fn endings_say_which_stage_is_meant() {
        let stage = |name: &str, given| stage_of(Path::new(name), given);
        assert_eq!(stage("a.ll", None), Ok(Some("llvm")));
        assert_eq!(stage("a.s", Some("ptx")), Ok(Some("ptx")));
        assert_eq!(stage("a.txt", None), Ok(None));
        assert_eq!(stage("a", Some("flat")), Ok(None));
        assert!(stage("a.ll", Some("flat")).unwrap_err().contains("`--stage llvm`"));
        assert!(stage("a.o", None).unwrap_err().contains("`nyala build -o a.o`"));
        assert!(stage("a.so.1", Some("asm")).is_err());
    }
}
