//! Results that `./x test --quick` remembers: queries and test functions that an engine has passed do not run again while the
//! graph of the program, the crates from there on, the options and the tests are the same. So a change of the front end, of a
//! library or of tests runs only the programs whose graphs it changes, and one of a pass or a back end spares the interpreter. The front end
//! runs all the same, since it makes the graph.
//!
//! | text tests of `lib/std`, CPU s of a debug build | interp | `-O3` |
//! |---|---|---|
//! | objects are made | 5.4 | 18.3 |
//! | objects are kept ([`crate::work::objects`]) | 5.4 | 4.9 |
//! | results are remembered | 0.4 | 0.4 |
//!
//! A key by the object, after all passes, would gain nothing: running native code takes a hundredth of making it ready.
//!
//! Only passes are remembered, and only `--quick` asks. What a test reads while it runs, such as a picture, is not part of the
//! graph: the gate finds such a change. What a `main` prints is a process of its own, which is not remembered.

use crate::queue::cache_folder;
use crate::work::texts_below;
use nyala_driver::cache::Cache;
use nyala_driver::{Graph, Options, testing};
use nyala_runtime::CacheKey;
use std::sync::OnceLock;

/// What decides how the interpreter runs a graph.
const INTERPRETED: &[&str] = &[
    "Cargo.lock",
    "crates/base/src",
    "crates/driver/src/run.rs",
    "crates/driver/src/testing.rs",
    "crates/files/src",
    "crates/interp/src",
    "crates/ir/src",
    "crates/runtime/src",
];
/// What decides how it is compiled and runs.
const COMPILED: &[&str] = &[
    "Cargo.lock",
    "crates/base/src",
    "crates/checks/src",
    "crates/driver/src",
    "crates/files/src",
    "crates/flat/src",
    "crates/gen-c/src",
    "crates/gen-llvm/src",
    "crates/gen-spirv/src",
    "crates/interp/src",
    "crates/ir/src",
    "crates/kernels/src",
    "crates/runtime/src",
    "crates/schedule/src",
    "crates/specialize/src",
    "crates/vectorize/src",
];

/// A result that may be known.
pub struct Known {
    key: CacheKey,
    results: Cache,
}

impl Known {
    /// The result of a program's tests under an engine.
    pub fn of(graph: &Graph, suite: &testing::Suite, engine: testing::Engine) -> Known {
        static KEYS: [OnceLock<CacheKey>; 2] = [OnceLock::new(), OnceLock::new()];
        let (key, sources) = if engine.name == "interp" { (&KEYS[0], INTERPRETED) } else { (&KEYS[1], COMPILED) };
        let sources = key.get_or_init(|| CacheKey::of(&[texts_below(sources).as_bytes()]));
        // The cache is named by the sources, too.
        let options = Options { cache: None, ..graph.options.clone() };
        let others = format!("{} {options:?} {:?}", engine.name, suite.tests);
        let text = nyala_ir::print::print(&graph.world);
        let key = CacheKey::of(&[text.as_bytes(), others.as_bytes(), sources.name().as_bytes()]);
        Known { key, results: Cache::at(cache_folder().join("results")) }
    }

    pub fn has_passed(&self) -> bool {
        self.results.get(&self.key).is_some()
    }

    pub fn pass(&self) {
        self.results.put(&self.key, b"passed");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_crate_from_the_graph_on_decides() {
        // The first five make the graph; the sixth chooses the tests; no text test runs the others.
        const OTHERS: [&str; 14] = [
            "sema",
            "syntax",
            "c-syntax",
            "staging",
            "sierra",
            "xtask",
            "scene",
            "gzip",
            "nyala",
            "embed",
            "embed-derive",
            "build",
            "capi",
            "python",
        ];
        let entries = std::fs::read_dir(crate::root().join("crates")).expect("crates");
        for name in entries.map(|e| e.expect("a crate").file_name().to_string_lossy().into_owned()) {
            let source = format!("crates/{name}/src");
            assert_ne!(COMPILED.contains(&&*source), OTHERS.contains(&&*name), "{name}");
        }
        for path in INTERPRETED.iter().chain(COMPILED) {
            assert!(!texts_below(&[path]).is_empty(), "{path}");
        }
    }

    #[test]
    fn results_depend_on_graph_engine_and_tests() {
        let key = |text: &str, engine: usize, wrap: bool| {
            let suite = testing::find("a.impala", text);
            let mut files = nyala_driver::Files::of("a.impala", text);
            files.add("a.impala", suite.entries.clone());
            let engine = testing::ENGINES[engine];
            let options = Options { wrap, ..Options::default() };
            let graph = testing::graph(&options, &files, engine).unwrap_or_else(|e| panic!("{}", e.render(false)));
            Known::of(&graph, &suite, engine).key.name().to_string()
        };
        let text = "fn f(a: i32) -> i32 { a + 1 }\n//? f(2) == 3\n";
        let first = key(text, 0, false);
        assert_eq!(first, key(&text.replace("a + 1", "a  +  1"), 0, false));
        assert_ne!(first, key(text, 4, false));
        assert_ne!(first, key(text, 0, true));
        assert_ne!(first, key(&text.replace("a + 1", "a + 2"), 0, false));
        assert_ne!(first, key(&text.replace("f(2) == 3", "f(3) == 4"), 0, false));
    }
}
