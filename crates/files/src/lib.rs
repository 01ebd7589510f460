//! Files, read within bounds, written to what their names lead to.
//!
//! Separate from the runtime, since the readers and writers of scenes, which do not have the runtime, keep the same rules.
//!
//! **Writing.** Links are followed, and FIFOs and devices are written as they are. A file keeps its permissions, its owner
//! and its other names. A plain file with one name is replaced as a whole, so that it is never seen in part: by a new file
//! in its folder, where one can be made that is like it in all but contents. Any other is written in place.
//!
//! **Reading.** What is no plain file may have no end: [`limit`] is how much is read of it.

#![forbid(unsafe_code)]

use rustix::fs::{Access, OFlags};
use std::ffi::OsStr;
use std::fs::{File, Metadata, OpenOptions, Permissions};
use std::io::{self, Error, ErrorKind, IsTerminal, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tempfile::{Builder, NamedTempFile};

/// As many links as are followed from a name, which is the system's limit.
const MAX_LINKS: usize = 40;

/// What a name leads to.
enum Place {
    /// Nothing: a file can be made here.
    Missing(PathBuf),
    /// A plain file, by a path without links.
    Plain(PathBuf, Metadata),
    /// A folder, a FIFO, a device, an open file by its number.
    Other,
    /// This process's standard output or standard error.
    Own(OwnedFd),
}

/// Whether the name ends as those of folders do.
fn is_folder_name(path: &Path) -> bool {
    let bytes = path.as_os_str().as_encoded_bytes();
    path.file_name().is_none() || bytes.ends_with(b"/") || bytes.ends_with(b"/.")
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The process whose open files this folder lists, as `/proc/1/fd` does.
fn lists_open_files(folder: &Path) -> Option<String> {
    let folder = folder.canonicalize().ok()?;
    let mut names = folder.strip_prefix("/proc").ok()?.iter();
    let process = names.next()?.to_str()?.to_string();
    (names.next_back() == Some(OsStr::new("fd"))).then_some(process)
}

fn find(path: &Path) -> io::Result<Place> {
    let mut path = path.to_path_buf();
    for _ in 0..MAX_LINKS {
        if is_folder_name(&path) {
            return Ok(Place::Other);
        }
        if let Some(process) = lists_open_files(folder_of(&path)) {
            let is_own = process == std::process::id().to_string();
            // A file that is opened again has a place of its own, and would be written over what was printed.
            return Ok(match path.file_name().and_then(OsStr::to_str) {
                Some("1") if is_own => Place::Own(std::io::stdout().as_fd().try_clone_to_owned()?),
                Some("2") if is_own => Place::Own(std::io::stderr().as_fd().try_clone_to_owned()?),
                _ => Place::Other,
            });
        }
        let found = match path.symlink_metadata() {
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Place::Missing(path)),
            found => found?,
        };
        if !found.is_symlink() {
            return Ok(if found.is_file() { Place::Plain(path, found) } else { Place::Other });
        }
        path = folder_of(&path).join(path.read_link()?);
    }
    Err(Error::from(rustix::io::Errno::LOOP))
}

/// A new file in the folder of `path`, which goes away unless it is moved. The umask takes from its permissions.
fn beside(path: &Path, mode: u32) -> io::Result<NamedTempFile> {
    let make = |path: &Path| OpenOptions::new().write(true).create_new(true).mode(mode).open(path);
    Builder::new().prefix(".nyala-").make_in(folder_of(path), make)
}

/// Writes a file. See the head of this page for what is kept of an old one. Unless there is one that is written in place, the
/// file is unchanged after an error.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    put(path, bytes, 0o666)
}

/// Writes a file that can be executed by those who may read it.
pub fn write_program(path: &Path, bytes: &[u8]) -> io::Result<()> {
    put(path, bytes, 0o777)
}

fn put(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    match find(path)? {
        Place::Missing(path) => {
            let mut file = beside(&path, mode)?;
            file.as_file_mut().write_all(bytes)?;
            file.persist(path).map_err(|e| e.error)?;
            Ok(())
        }
        Place::Plain(path, old) => {
            // A file that this user may not write is not replaced either.
            let in_place = match OpenOptions::new().write(true).open(&path) {
                Err(e) if e.kind() == ErrorKind::ExecutableFileBusy => None,
                opened => Some(opened?),
            };
            let mode = old.mode() & 0o7777 | (old.mode() & 0o444 & mode << 2) >> 2;
            if let Some(mut file) = replacement(&path, &old, mode) {
                file.as_file_mut().write_all(bytes)?;
                file.as_file().sync_all()?;
                match file.persist(&path) {
                    Ok(_) => return Ok(()),
                    // A mount point, or a folder in which files of others stay.
                    Err(e) if in_place.is_none() => return Err(e.error),
                    Err(_) => {}
                }
            }
            let mut file = in_place.ok_or(ErrorKind::ExecutableFileBusy)?;
            file.set_len(0)?;
            file.write_all(bytes)?;
            if old.mode() & 0o7777 != mode {
                file.set_permissions(Permissions::from_mode(mode))?;
            }
            Ok(())
        }
        Place::Other => OpenOptions::new().write(true).truncate(true).open(path)?.write_all(bytes),
        Place::Own(file) => {
            std::io::stdout().flush()?;
            File::from(file).write_all(bytes)
        }
    }
}

/// Adds to the end of a file, which is made if there is none.
pub fn append(path: &Path, bytes: &[u8]) -> io::Result<()> {
    match find(path)? {
        Place::Own(_) => put(path, bytes, 0o666),
        _ => OpenOptions::new().append(true).create(true).open(path)?.write_all(bytes),
    }
}

/// Gives a finished file the place of another, or of none yet, as [`write()`] gives it contents. The finished one is gone then.
pub fn replace(path: &Path, finished: &Path) -> io::Result<()> {
    let mut from = File::open(finished)?;
    let place = find(path)?;
    let moved_to = match &place {
        Place::Missing(path) => Some(path),
        Place::Plain(path, old) => {
            OpenOptions::new().write(true).open(path)?;
            Some(path).filter(|_| can_be_replaced(path, old) && becomes(&from, old, old.mode() & 0o7777).is_some())
        }
        Place::Other | Place::Own(_) => None,
    };
    if moved_to.is_some_and(|to| std::fs::rename(finished, to).is_ok()) {
        return Ok(());
    }
    let mut to = match place {
        Place::Own(file) => File::from(file),
        _ => OpenOptions::new().write(true).create(true).truncate(true).open(path)?,
    };
    io::copy(&mut from, &mut to)?;
    std::fs::remove_file(finished)
}

/// A new file that can take the place of an old one without anything but the contents being different.
fn replacement(path: &Path, old: &Metadata, mode: u32) -> Option<NamedTempFile> {
    if !can_be_replaced(path, old) {
        return None;
    }
    let file = beside(path, 0o600).ok()?;
    becomes(file.as_file(), old, mode)?;
    Some(file)
}

/// Whether a file has one name, and nothing that a new one cannot be given. Writing takes away the permission to act as the
/// owner.
fn can_be_replaced(path: &Path, old: &Metadata) -> bool {
    old.nlink() == 1 && old.mode() & 0o6000 == 0 && !has_attributes(path)
}

/// Gives a file the owner and the permissions of an old one.
fn becomes(file: &File, old: &Metadata, mode: u32) -> Option<()> {
    let new = file.metadata().ok()?;
    if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
        std::os::unix::fs::fchown(file, Some(old.uid()), Some(old.gid())).ok()?;
    }
    file.set_permissions(Permissions::from_mode(mode)).ok()
}

/// Whether a file has lists of permissions, or attributes of users. A label of SELinux is given to new files, too.
fn has_attributes(path: &Path) -> bool {
    let mut names = [0u8; 4096];
    let n = match rustix::fs::listxattr(path, &mut names[..]) {
        Ok(n) => n,
        Err(e) => return e == rustix::io::Errno::RANGE,
    };
    names[..n].split(|&b| b == 0).any(|name| !name.is_empty() && name != b"security.selinux")
}

/// Whether a file can be written, as far as can be told without writing it.
pub fn check(path: &Path) -> io::Result<()> {
    match find(path)? {
        Place::Missing(path) => beside(&path, 0o600).map(|_| ()),
        Place::Plain(path, _) => match OpenOptions::new().write(true).open(path) {
            Err(e) if e.kind() != ErrorKind::ExecutableFileBusy => Err(e),
            _ => Ok(()),
        },
        Place::Other if path.metadata()?.is_dir() => Err(rustix::io::Errno::ISDIR.into()),
        // To open a FIFO is to wait for its reader.
        Place::Other => Ok(rustix::fs::access(path, Access::WRITE_OK)?),
        Place::Own(_) => Ok(()),
    }
}

/// Whether what is written goes to something that others write, too, such as standard output.
pub fn is_stream(path: &Path) -> bool {
    matches!(find(path), Ok(Place::Other | Place::Own(_)))
}

/// As many bytes as are read of a FIFO, of a terminal, or of a file that does not know its size.
pub const STREAM: u64 = 4 << 30;
/// As many bytes as are read of a device that is no terminal.
pub const DEVICE: u64 = 64 << 20;

/// As many bytes as are read of an open file: all of a plain one.
pub fn limit(file: impl AsFd) -> io::Result<u64> {
    let file = File::from(file.as_fd().try_clone_to_owned()?);
    let found = file.metadata()?;
    let is_endless = found.file_type().is_char_device() && !file.is_terminal();
    Ok(if is_endless { DEVICE } else { STREAM.max(found.len()) })
}

/// The error of a file that goes on behind its [`limit`].
pub fn too_long(limit: u64) -> Error {
    Error::new(ErrorKind::FileTooLarge, format!("it goes on after {limit} bytes, and is no plain file of known size"))
}

/// Reads a file up to its [`limit`].
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    let limit = limit(&file)?;
    let bytes = up_to(file, limit)?;
    if bytes.len() as u64 > limit { Err(too_long(limit)) } else { Ok(bytes) }
}

/// Reads a plain file, such as one that another file names: nothing that waits or goes on forever.
pub fn read_plain(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let bytes = up_to(open_plain(path)?, limit)?;
    if bytes.len() as u64 > limit {
        return Err(Error::new(ErrorKind::FileTooLarge, format!("it has more than {limit} bytes")));
    }
    Ok(bytes)
}

/// Reads the first bytes of a plain file, or all if there are fewer.
pub fn read_beginning(path: &Path, size: u64) -> io::Result<Vec<u8>> {
    let mut bytes = up_to(open_plain(path)?, size)?;
    bytes.truncate(usize::try_from(size).unwrap_or(usize::MAX));
    Ok(bytes)
}

fn open_plain(path: &Path) -> io::Result<File> {
    let check = |found: Metadata| match found.file_type() {
        t if t.is_file() => Ok(()),
        t if t.is_dir() => Err(Error::from(rustix::io::Errno::ISDIR)),
        t => Err(Error::other(format!("it is {}, no plain file", if t.is_fifo() { "a FIFO" } else { "a device" }))),
    };
    check(path.metadata()?)?;
    // It may be another one by now.
    let file = OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(path)?;
    check(file.metadata()?)?;
    Ok(file)
}

/// One byte more than the limit, if there is one.
fn up_to(file: File, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let n = file.metadata().map_or(0, |m| m.len().min(limit));
    bytes.try_reserve(usize::try_from(n).unwrap_or(usize::MAX)).map_err(|_| ErrorKind::OutOfMemory)?;
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests;
