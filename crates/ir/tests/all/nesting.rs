//! Facts that are found without what is free in each continuation are those that it tells.

use nyala_ir::facts::Nest;
use std::path::{Path, PathBuf};

#[test]
fn continuations_are_nested_in_the_innermost_owner_of_what_is_free() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/ir");
    let mut n_nested = 0;
    for path in ["run", "schedule", "specialize"].iter().flat_map(|folder| files(&tests.join(folder))) {
        let text = std::fs::read_to_string(&path).expect("a text");
        let Ok(w) = nyala_ir::read::read(&text) else { continue };
        let (nest, _) = Nest::of_program(&w, &w.roots());
        let depth = |mut k| std::iter::from_fn(|| nest.dominator(k).inspect(|&up| k = up)).count();
        for &k in &nest.conts {
            let owners = nest.free(k).iter().filter_map(|&v| nest.owner(v));
            assert_eq!(nest.parent(k), owners.max_by_key(|&o| depth(o)), "{} of {}", w.name(k), path.display());
            n_nested += usize::from(nest.parent(k).is_some());
        }
    }
    assert!(n_nested > 100, "{n_nested}");
}

pub fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    entries.map(|entry| entry.expect("an entry").path()).collect()
}
