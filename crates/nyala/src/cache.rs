//! Native code of programs that were compiled before, on disk.
//!
//! An entry is an object, found by a hash over everything it was made from: the text that LLVM gets, options, CPU, and
//! which builds of this compiler and of LLVM. Entries are written beside and renamed, so a reader sees whole ones only;
//! one that does not match its checksum, which covers the hash, too, is removed. Code of the cache runs: a folder that is not
//! the user's own, or that others may write to, is not used. One that cannot be used is as good as an empty one.

use nyala_gen_llvm::{Emitted, LLVM_LIBRARY, Options, machine_name};
use sha2::{Digest, Sha256};
use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// All entries together may take so many bytes; the ones used longest ago go first.
const MAX_BYTES: u64 = 1 << 30;
/// After the checksum follows the object.
const CHECKSUM: usize = 32;
/// Bits of a mode: others may write.
const WRITABLE: u32 = 0o022;
/// Of `open`: a link is an error, and a pipe is not waited for.
const FLAGS: i32 = libc::O_NOFOLLOW | libc::O_NONBLOCK;

/// The folder with the entries.
#[derive(Clone, Debug)]
pub struct Cache {
    folder: PathBuf,
    max_bytes: u64,
}

/// The name of an entry.
pub struct Key(String);

impl Cache {
    /// `$XDG_CACHE_HOME/nyala/native`, or in `~/.cache`; `None` if the environment names no such folder.
    pub fn of_user() -> Option<Cache> {
        let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
        let base = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
        Some(Cache::at(base.join("nyala/native")))
    }

    /// The cache in this folder.
    pub fn at(folder: PathBuf) -> Cache {
        Cache { folder, max_bytes: MAX_BYTES }
    }

    /// Where it lies.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What the code of `emitted` depends on.
    pub fn key(emitted: &Emitted, options: &Options) -> Key {
        let mut hash = Sha256::new();
        let mut add = |bytes: &[u8]| {
            hash.update((bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        };
        add(emitted.text.as_bytes());
        add(format!("{options:?} {}", emitted.codegen_level(options)).as_bytes());
        add(machine_name(&emitted.target).as_bytes());
        // A build is told by its file.
        add(file_id(Path::new(LLVM_LIBRARY)).as_bytes());
        add(std::env::current_exe().map(|e| file_id(&e)).unwrap_or_default().as_bytes());
        Key(hex(&hash.finalize()))
    }

    /// Why the folder is not used, if it is there.
    pub fn refused(&self) -> Option<&'static str> {
        let Ok(folder) = std::fs::metadata(&self.folder) else { return None };
        match () {
            () if !folder.is_dir() => Some("it is no folder"),
            () if folder.uid() != nyala_runtime::user() => Some("it is another user's"),
            () if folder.mode() & WRITABLE != 0 => Some("others may write to it"),
            () => None,
        }
    }

    /// The object of an entry, which is then the last to be given up. What else has its name is removed.
    pub fn get(&self, key: &Key) -> Option<Vec<u8>> {
        if self.refused().is_some() {
            return None;
        }
        let path = self.folder.join(&key.0);
        let file = match OpenOptions::new().read(true).custom_flags(FLAGS).open(&path) {
            Err(e) if e.kind() == ErrorKind::NotFound => return None,
            file => file.ok(),
        };
        let object = file.and_then(|file| self.read(key, &file));
        if object.is_none() {
            // Where that is not possible, it is ignored.
            let _ = std::fs::remove_file(&path);
        }
        object
    }

    /// The object in an entry's file, if it is one.
    fn read(&self, key: &Key, file: &File) -> Option<Vec<u8>> {
        let data = file.metadata().ok()?;
        let is_own = data.is_file() && data.uid() == nyala_runtime::user() && data.mode() & WRITABLE == 0;
        if !is_own || data.len() > self.max_bytes {
            return None;
        }
        let mut bytes = Vec::new();
        file.take(self.max_bytes).read_to_end(&mut bytes).ok()?;
        let object = bytes.get(CHECKSUM..)?;
        if checksum(key, object)[..] != bytes[..CHECKSUM] {
            return None;
        }
        // Without it the entry goes earlier, no more.
        let _ = file.set_modified(SystemTime::now());
        bytes.drain(..CHECKSUM);
        Some(bytes)
    }

    /// Keeps an object. Where that is not possible, nothing happens.
    pub fn put(&self, key: &Key, object: &[u8]) {
        let _ = self.try_put(key, object);
    }

    fn try_put(&self, key: &Key, object: &[u8]) -> std::io::Result<()> {
        if (object.len() + CHECKSUM) as u64 > self.max_bytes {
            return Ok(());
        }
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        if self.refused().is_some() {
            return Ok(());
        }
        let mut file = tempfile::NamedTempFile::new_in(&self.folder)?;
        file.write_all(&checksum(key, object))?;
        file.write_all(object)?;
        file.persist(self.folder.join(&key.0))?;
        self.shrink();
        Ok(())
    }

    /// Path, size and time of last use of everything in the folder; what an interrupted write left too.
    fn entries(&self) -> Vec<(PathBuf, u64, SystemTime)> {
        let entries = std::fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let known = |path: PathBuf, m: Metadata| Some((path, m.len(), m.modified().ok()?)).filter(|_| !m.is_dir());
        entries.filter_map(|e| known(e.path(), e.metadata().ok()?)).collect()
    }

    fn shrink(&self) {
        let mut entries = self.entries();
        let mut total: u64 = entries.iter().map(|e| e.1).sum();
        if total <= self.max_bytes {
            return;
        }
        entries.sort_by_key(|e| e.2);
        for (path, size, _) in entries {
            // Some more than needed, so that this is not done for every new entry.
            if total <= self.max_bytes / 10 * 9 {
                return;
            }
            if std::fs::remove_file(path).is_ok() {
                total -= size;
            }
        }
    }

    /// Number of entries, and bytes they take.
    pub fn size(&self) -> (usize, u64) {
        let entries = self.entries();
        (entries.len(), entries.iter().map(|e| e.1).sum())
    }

    /// Removes all entries; how many.
    ///
    /// # Errors
    /// One cannot be removed.
    pub fn clear(&self) -> std::io::Result<usize> {
        let entries = self.entries();
        entries.iter().try_for_each(|e| std::fs::remove_file(&e.0))?;
        Ok(entries.len())
    }
}

/// Of an entry: an object under another name is none.
fn checksum(key: &Key, object: &[u8]) -> impl std::ops::Deref<Target = [u8]> {
    Sha256::new().chain_update((key.0.len() as u64).to_le_bytes()).chain_update(&key.0).chain_update(object).finalize()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// Tells one build of a file from the next.
fn file_id(path: &Path) -> String {
    let Ok(m) = std::fs::metadata(path) else { return path.display().to_string() };
    let modified = m.modified().ok().and_then(|t| t.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
    format!("{} {} {}", path.display(), m.len(), modified.as_nanos())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;
    use std::time::Duration;

    fn keys() -> [Key; 3] {
        ["a", "b", "c"].map(|k| Key(k.into()))
    }

    #[test]
    fn entries_come_back_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path().join("new/folder"));
        let [a, b, c] = keys();
        assert_eq!(cache.get(&a), None);
        cache.put(&a, b"object");
        cache.put(&b, b"");
        assert_eq!((cache.get(&a), cache.get(&b)), (Some(b"object".to_vec()), Some(Vec::new())));
        let path = cache.folder.join("a");
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[CHECKSUM + 2] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(cache.get(&a), None);
        std::fs::write(&path, b"short").unwrap();
        assert_eq!(cache.get(&a), None);
        cache.put(&a, b"again");
        assert_eq!(cache.get(&a), Some(b"again".to_vec()));
        assert_eq!(cache.size().0, 2);
        assert_eq!((cache.clear().unwrap(), cache.size()), (2, (0, 0)));
        assert_eq!(cache.get(&c), None);
    }

    #[test]
    fn what_was_used_longest_ago_goes_first() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache { folder: folder.path().into(), max_bytes: 2 * 100 + 4 * CHECKSUM as u64 };
        let [a, b, c] = keys();
        for (key, age) in [(&a, 30), (&b, 20)] {
            cache.put(key, &[0; 100]);
            let file = std::fs::File::options().append(true).open(folder.path().join(&key.0)).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_secs(age)).unwrap();
        }
        assert!(cache.get(&a).is_some());
        cache.put(&c, &[0; 100]);
        assert_eq!([&a, &b, &c].map(|k| cache.get(k).is_some()), [true, false, true]);
    }

    #[test]
    fn what_is_no_entry_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache { folder: folder.path().into(), max_bytes: 1000 };
        let [a, b, c] = keys();
        cache.put(&a, b"object");
        let (at, entry) = (|k: &Key| folder.path().join(&k.0), std::fs::read(folder.path().join("a")).unwrap());
        let is_gone = || cache.get(&b).is_none() && std::fs::symlink_metadata(at(&b)).is_err();
        // Another key's.
        std::fs::write(at(&b), &entry).unwrap();
        assert!(is_gone());
        std::os::unix::fs::symlink(at(&a), at(&b)).unwrap();
        assert!(is_gone());
        std::fs::write(at(&b), vec![0; 2000]).unwrap();
        assert!(is_gone());
        std::fs::write(at(&b), b"").unwrap();
        assert!(is_gone());
        // Others may have written it.
        cache.put(&b, b"object");
        std::fs::set_permissions(at(&b), Permissions::from_mode(0o666)).unwrap();
        assert!(is_gone());
        let made = std::process::Command::new("mkfifo").arg(at(&b)).status();
        assert!(!made.is_ok_and(|s| s.success()) || is_gone());
        cache.put(&c, &[0; 1000]);
        assert_eq!((cache.get(&a), cache.size().0), (Some(b"object".to_vec()), 1));
    }

    #[test]
    fn a_folder_that_others_may_write_to_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path().join("native"));
        let [a, b, _] = keys();
        cache.put(&a, b"object");
        assert_eq!((cache.refused(), cache.get(&a)), (None, Some(b"object".to_vec())));
        for mode in [0o770, 0o707] {
            std::fs::set_permissions(cache.folder(), Permissions::from_mode(mode)).unwrap();
            cache.put(&b, b"object");
            assert!(cache.refused().is_some());
            assert_eq!((cache.get(&a), cache.size().0), (None, 1));
        }
    }

    #[test]
    fn a_folder_that_cannot_be_used_is_empty() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let cache = Cache::at(file.path().join("below a file"));
        let [a, ..] = keys();
        cache.put(&a, b"object");
        assert_eq!((cache.get(&a), cache.size()), (None, (0, 0)));
    }
}
