//! The cache of native code: what an object is made from. [`nyala_runtime::Cache`] keeps the entries.

use nyala_gen_llvm::{Emitted, Options, llvm_library, machine_name, own_file};
use nyala_ir::Target;
pub use nyala_runtime::Cache;
use nyala_runtime::CacheKey;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// What machine code depends on besides the text that LLVM gets: the options, the CPU, the build of LLVM.
pub(crate) struct Setting([String; 3]);

impl Setting {
    pub fn new(options: &Options, target: &Target) -> Setting {
        // The library's file identifies a build of LLVM.
        Setting([format!("{options:?}"), machine_name(target), file_id(llvm_library())])
    }
}

/// Objects that are kept between runs.
#[derive(Clone, Debug)]
pub struct Objects {
    cache: Cache,
    /// A text that differs between compilers which make different objects of equal texts.
    compiler: String,
}

impl Objects {
    /// The user's cache, for this build of the compiler; `None` if the environment names no folder for it.
    pub fn of_user() -> Option<Objects> {
        let compiler = own_file().map(file_id).unwrap_or_default();
        Some(Objects { cache: Cache::of_user("native")?, compiler })
    }

    /// A cache in a folder. The texts for LLVM and for the C compiler, and the options, stand for all of this compiler but what
    /// `compiler` names.
    pub fn at(folder: PathBuf, compiler: String) -> Objects {
        Objects { cache: Cache::at(folder), compiler }
    }

    /// The key of everything that the machine code of a module depends on: the text that LLVM gets, and what it depends on besides.
    pub(crate) fn key(&self, emitted: &Emitted, setting: &Setting) -> CacheKey {
        let [options, machine, llvm] = &setting.0;
        CacheKey::of(&[
            emitted.text.as_bytes(),
            options.as_bytes(),
            machine.as_bytes(),
            llvm.as_bytes(),
            self.compiler.as_bytes(),
        ])
    }

    /// The key of the object of a C text, which a command compiles.
    pub(crate) fn key_of_c(&self, text: &str, command: &std::process::Command) -> CacheKey {
        let program = command.get_program();
        // A name without folders is searched.
        let folders = std::env::var_os("PATH").unwrap_or_default();
        let found = std::env::split_paths(&folders).map(|f| f.join(program)).find(|f| f.exists());
        let file = found.unwrap_or_else(|| program.into());
        let real = file.canonicalize().unwrap_or(file);
        let args: Vec<_> = command.get_args().collect();
        CacheKey::of(&[b"C", text.as_bytes(), format!("{args:?}").as_bytes(), file_id(&real).as_bytes()])
    }

    pub(crate) fn get(&self, key: &CacheKey) -> Option<Vec<u8>> {
        self.cache.get(key)
    }

    pub(crate) fn put(&self, key: &CacheKey, object: &[u8]) {
        self.cache.put(key, object);
    }
}

/// A name for what is kept for this build of a file.
pub(crate) fn key_of_file(path: &Path) -> String {
    crate::packages::key(&file_id(path))
}

/// A text that differs between builds of a file.
fn file_id(path: &Path) -> String {
    let Ok(m) = std::fs::metadata(path) else { return path.display().to_string() };
    let modified = m.modified().ok().and_then(|t| t.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
    format!("{} {} {}", path.display(), m.len(), modified.as_nanos())
}
