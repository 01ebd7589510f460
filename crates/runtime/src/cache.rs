//! Caches on disk for what takes long to make: the native code of programs (`nyala`, `cache.rs`), and what drivers of devices
//! make of kernels (`platforms/`).
//!
//! The name of an entry is a hash over everything that it is made from. Entries are written to another name and renamed, so
//! that readers only see complete ones. Each has a checksum, which covers the hash too; an entry that does not match it
//! is removed. Since the code is run, a folder that is not the user's own, or that others may write to, is not used. A
//! folder that cannot be used counts as empty.

use sha2::{Digest, Sha256};
use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Limits on the bytes of all entries together, and on their number; the least recently used ones are removed first.
const MAX_BYTES: u64 = 1 << 30;
const MAX_ENTRIES: usize = 1 << 14;
/// The size of the checksum in bytes, after which the object follows.
const CHECKSUM: usize = 32;
/// The bits of a file mode that let others write.
const WRITABLE: u32 = 0o022;
/// Flags for `open`: a symbolic link is an error, and opening a pipe does not block.
const FLAGS: i32 = libc::O_NOFOLLOW | libc::O_NONBLOCK;

/// The folder with the entries.
#[derive(Clone, Debug)]
pub struct Cache {
    folder: PathBuf,
    max_bytes: u64,
    max_entries: usize,
}

/// The name of an entry of the cache, a hash.
pub struct Key(String);

impl Key {
    /// The key of all that an entry is made from.
    pub fn of(parts: &[&[u8]]) -> Key {
        let mut hash = Sha256::new();
        for part in parts {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        Key(hex(&hash.finalize()))
    }

    /// The hash in hexadecimal.
    pub fn name(&self) -> &str {
        &self.0
    }
}

impl Cache {
    /// `$XDG_CACHE_HOME/nyala/KIND`, or in `~/.cache`; `None` if the environment names no such folder.
    pub fn of_user(kind: &str) -> Option<Cache> {
        let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
        let base = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
        Some(Cache::at(base.join("nyala").join(kind)))
    }

    /// A cache in this folder.
    pub fn at(folder: PathBuf) -> Cache {
        Cache { folder, max_bytes: MAX_BYTES, max_entries: MAX_ENTRIES }
    }

    /// The folder of the cache.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The reason why the folder is not used, if it exists.
    pub fn refused(&self) -> Option<&'static str> {
        let Ok(folder) = std::fs::metadata(&self.folder) else { return None };
        match () {
            () if !folder.is_dir() => Some("it is no folder"),
            () if folder.uid() != crate::user() => Some("it is another user's"),
            () if folder.mode() & WRITABLE != 0 => Some("others may write to it"),
            () => None,
        }
    }

    /// The bytes of an entry, which becomes the most recently used one. Another file of its name is removed.
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
            // If it cannot be removed, it is ignored.
            let _ = std::fs::remove_file(&path);
        }
        object
    }

    /// The object in an entry's file, if the file is a valid entry.
    fn read(&self, key: &Key, file: &File) -> Option<Vec<u8>> {
        let data = file.metadata().ok()?;
        let is_own = data.is_file() && data.uid() == crate::user() && data.mode() & WRITABLE == 0;
        if !is_own || data.len() > self.max_bytes {
            return None;
        }
        let mut bytes = Vec::new();
        file.take(self.max_bytes).read_to_end(&mut bytes).ok()?;
        let object = bytes.get(CHECKSUM..)?;
        if checksum(key, object)[..] != bytes[..CHECKSUM] {
            return None;
        }
        // If this fails, the entry is only removed earlier.
        let _ = file.set_modified(SystemTime::now());
        bytes.drain(..CHECKSUM);
        Some(bytes)
    }

    /// Stores an entry. Does nothing if that is not possible.
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
        // A program has hundreds of small entries; to look at all of the folder for each would take longest.
        let is_small = (object.len() as u64) < self.max_bytes / 1024;
        if !is_small || key.0.starts_with('0') {
            self.shrink();
        }
        Ok(())
    }

    /// The path, size and time of last use of all files in the folder, including those that interrupted writes left.
    fn entries(&self) -> Vec<(PathBuf, u64, SystemTime)> {
        let entries = std::fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let known = |path: PathBuf, m: Metadata| Some((path, m.len(), m.modified().ok()?)).filter(|_| !m.is_dir());
        entries.filter_map(|e| known(e.path(), e.metadata().ok()?)).collect()
    }

    fn shrink(&self) {
        let mut entries = self.entries();
        let mut total: u64 = entries.iter().map(|e| e.1).sum();
        let mut n = entries.len();
        if total <= self.max_bytes && n <= self.max_entries {
            return;
        }
        entries.sort_by_key(|e| e.2);
        for (path, size, _) in entries {
            // Removes more than needed, so that this does not happen for every new entry.
            if total <= self.max_bytes / 10 * 9 && n <= self.max_entries / 10 * 9 {
                return;
            }
            if std::fs::remove_file(path).is_ok() {
                total -= size;
                n -= 1;
            }
        }
    }

    /// The number of entries, and their bytes.
    pub fn size(&self) -> (usize, u64) {
        let entries = self.entries();
        (entries.len(), entries.iter().map(|e| e.1).sum())
    }

    /// Removes all entries. Returns their number.
    ///
    /// # Errors
    /// An entry cannot be removed.
    pub fn clear(&self) -> std::io::Result<usize> {
        let entries = self.entries();
        entries.iter().try_for_each(|e| std::fs::remove_file(&e.0))?;
        Ok(entries.len())
    }
}

/// The checksum of an entry. It covers the key, so that an object under another name is not valid.
fn checksum(key: &Key, object: &[u8]) -> impl std::ops::Deref<Target = [u8]> {
    Sha256::new().chain_update((key.0.len() as u64).to_le_bytes()).chain_update(&key.0).chain_update(object).finalize()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
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
        let cache = Cache { folder: folder.path().into(), max_bytes: 2 * 100 + 4 * CHECKSUM as u64, max_entries: 100 };
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
    fn many_small_entries_are_bounded_by_their_number() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache { folder: folder.path().into(), max_bytes: 1 << 20, max_entries: 20 };
        let keys: Vec<Key> = (0u32..300).map(|i| Key::of(&[&i.to_le_bytes()])).collect();
        keys.iter().for_each(|key| cache.put(key, b"object"));
        // The folder is looked at for one of sixteen.
        let n = cache.size().0;
        assert!((10..100).contains(&n) && cache.get(&keys[299]).is_some(), "{n}");
    }

    #[test]
    fn what_is_no_entry_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache { folder: folder.path().into(), max_bytes: 1000, max_entries: 100 };
        let [a, b, c] = keys();
        cache.put(&a, b"object");
        let (at, entry) = (|k: &Key| folder.path().join(&k.0), std::fs::read(folder.path().join("a")).unwrap());
        let is_gone = || cache.get(&b).is_none() && std::fs::symlink_metadata(at(&b)).is_err();
        // The entry of another key.
        std::fs::write(at(&b), &entry).unwrap();
        assert!(is_gone());
        std::os::unix::fs::symlink(at(&a), at(&b)).unwrap();
        assert!(is_gone());
        std::fs::write(at(&b), vec![0; 2000]).unwrap();
        assert!(is_gone());
        std::fs::write(at(&b), b"").unwrap();
        assert!(is_gone());
        // Others may write to the folder.
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
