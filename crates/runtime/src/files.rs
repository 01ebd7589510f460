//! Files and standard input for programs: whole files at once, statuses instead of aborts, messages that name the file
//! and the system's reason.

use crate::memory::{nyala_alloc, nyala_free};
use crate::print::nyala_flush;
use std::cell::RefCell;
use std::ffi::{CStr, CString, OsStr, c_char};
use std::fs::File;
use std::io::{BufRead, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

thread_local! {
    static ERROR: RefCell<CString> = RefCell::default();
    static LINE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The message of this thread's last failed file function; empty if none failed.
#[unsafe(no_mangle)]
pub extern "C" fn nyala_file_error() -> *const u8 {
    ERROR.with_borrow(|e| e.as_ptr().cast())
}

pub(crate) fn set_error(text: String) {
    let bytes: Vec<u8> = text.into_bytes().into_iter().filter(|&b| b != 0).collect();
    ERROR.set(CString::new(bytes).unwrap_or_default());
}

/// # Safety
/// `path` is null or points to bytes that end with a zero byte.
pub(crate) unsafe fn path_of(path: *const u8) -> Result<PathBuf, String> {
    if path.is_null() {
        return Err("null as the name of a file".into());
    }
    // SAFETY: the caller's promise.
    let bytes = unsafe { CStr::from_ptr(path.cast::<c_char>()) }.to_bytes();
    Ok(PathBuf::from(OsStr::from_bytes(bytes)))
}

/// # Safety
/// `data` is null or readable for so many bytes.
unsafe fn bytes_of<'a>(data: *const u8, size: i64) -> Result<&'a [u8], String> {
    let size = usize::try_from(size).map_err(|_| format!("{size} bytes to write"))?;
    if size == 0 {
        return Ok(&[]);
    }
    if data.is_null() {
        return Err("null as what to write".into());
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts(data, size) })
}

/// Returns 0, or 1 after noting the error's message.
fn status(result: Result<(), String>) -> i32 {
    result.map_or_else(
        |text| {
            set_error(text);
            1
        },
        |()| 0,
    )
}

/// Reads the rest of a stream into memory of [`nyala_alloc`], followed by a zero byte; returns memory and size.
/// `read(at, room)` stores up to `room` further bytes at `at` and returns their number; 0 at the end. `expected` is the
/// likely size, which saves copies. More bytes than `limit` are an error.
fn read_all(
    mut read: impl FnMut(*mut u8, usize) -> std::io::Result<usize>,
    expected: u64,
    limit: u64,
) -> std::io::Result<(*mut u8, usize)> {
    // The zero byte, and one byte to notice the end of the stream.
    let mut capacity = usize::try_from(expected).unwrap_or(0).max(1 << 12) + 2;
    let mut memory = nyala_alloc(capacity as i64);
    let mut size = 0;
    loop {
        if memory.is_null() {
            return Err(std::io::ErrorKind::OutOfMemory.into());
        }
        let room = capacity - 1 - size;
        if room == 0 {
            let larger = nyala_alloc(2 * capacity as i64);
            // SAFETY: both are as large as what is copied; nobody else has the old memory.
            unsafe {
                if !larger.is_null() {
                    larger.copy_from_nonoverlapping(memory, size);
                }
                nyala_free(memory);
            }
            memory = larger;
            capacity *= 2;
            continue;
        }
        // SAFETY: less than the capacity was read.
        let end = unsafe { memory.add(size) };
        match read(end, room) {
            Ok(0) => {
                // SAFETY: there is room.
                unsafe { end.write(0) };
                return Ok((memory, size));
            }
            Ok(n) if (size + n) as u64 <= limit => size += n,
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            failed => {
                let e = failed.err().unwrap_or_else(|| nyala_files::too_long(limit));
                // SAFETY: the memory was allocated above.
                unsafe { nyala_free(memory) };
                return Err(e);
            }
        }
    }
}

/// Reads into uninitialized memory, which `Read` cannot.
///
/// # Safety
/// `room` bytes can be written there.
unsafe fn read_some(file: BorrowedFd, to: *mut u8, room: usize) -> std::io::Result<usize> {
    // SAFETY: the caller's promise. Not all systems read more at once.
    let n = unsafe { libc::read(file.as_raw_fd(), to.cast(), room.min(1 << 30)) };
    usize::try_from(n).map_err(|_| std::io::Error::last_os_error())
}

/// Reads a file into memory of [`nyala_alloc`], followed by a zero byte, and stores its size in `out_size`. Null on an
/// error, with a message in [`nyala_file_error`]; then nothing is written.
///
/// # Safety
/// `path` ends with a zero byte; `out_size` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_file_read(path: *const u8, out_size: *mut i64) -> *mut u8 {
    // SAFETY: the caller's promise.
    let read = unsafe { path_of(path) }.and_then(|p| {
        let read = File::open(&p).and_then(|file| {
            let (size, limit) = (file.metadata()?.len(), nyala_files::limit(&file)?);
            // SAFETY: there is so much room.
            read_all(|to, room| unsafe { read_some(file.as_fd(), to, room) }, size, limit)
        });
        read.map_err(|e| format!("cannot read `{}`: {e}", p.display()))
    });
    // SAFETY: the caller's promise.
    unsafe { deliver(read, out_size) }
}

/// Reads the rest of standard input, like [`nyala_file_read`] a file.
///
/// # Safety
/// `out_size` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_stdin_read(out_size: *mut i64) -> *mut u8 {
    let mut stdin = std::io::stdin().lock();
    // If standard input is a file, its size is known.
    let file = stdin.as_fd().try_clone_to_owned().map(File::from);
    let sizes = file.and_then(|f| Ok((f.metadata()?.len(), nyala_files::limit(&f)?)));
    let (size, limit) = sizes.unwrap_or((0, nyala_files::STREAM));
    let mut is_buffered = true;
    let more = |to: *mut u8, room| {
        if !is_buffered {
            // SAFETY: there is so much room.
            return unsafe { read_some(stdin.as_fd(), to, room) };
        }
        // First the rest of the buffer, from reading lines or filled now.
        let bytes = stdin.fill_buf()?;
        let n = bytes.len().min(room);
        is_buffered = n < bytes.len();
        // SAFETY: there is so much room, of the program's.
        unsafe { to.copy_from_nonoverlapping(bytes.as_ptr(), n) };
        stdin.consume(n);
        Ok(n)
    };
    let read = read_all(more, size, limit);
    // SAFETY: the caller's promise.
    unsafe { deliver(read.map_err(|e| format!("cannot read standard input: {e}")), out_size) }
}

/// # Safety
/// `out_size` can be written.
unsafe fn deliver(read: Result<(*mut u8, usize), String>, out_size: *mut i64) -> *mut u8 {
    match read {
        Ok((memory, size)) => {
            // SAFETY: the caller's promise.
            unsafe { *out_size = size as i64 };
            memory
        }
        Err(text) => {
            set_error(text);
            std::ptr::null_mut()
        }
    }
}

/// The next line of standard input without its line break, followed by a zero byte; null at the end of input or on an
/// error. The memory is overwritten by this thread's next call.
#[unsafe(no_mangle)]
pub extern "C" fn nyala_stdin_line() -> *const u8 {
    LINE.with_borrow_mut(|line| {
        line.clear();
        let mut stdin = std::io::stdin().lock();
        let limit = nyala_files::limit(&stdin).unwrap_or(nyala_files::STREAM);
        match stdin.by_ref().take(limit + 1).read_until(b'\n', line) {
            Ok(0) => std::ptr::null(),
            Ok(n) if n as u64 > limit => {
                set_error(format!("cannot read standard input: {}", nyala_files::too_long(limit)));
                std::ptr::null()
            }
            Ok(_) => {
                if line.last() == Some(&b'\n') {
                    line.pop();
                    if line.last() == Some(&b'\r') {
                        line.pop();
                    }
                }
                line.push(0);
                line.as_ptr()
            }
            Err(e) => {
                set_error(format!("cannot read standard input: {e}"));
                std::ptr::null()
            }
        }
    })
}

/// Writes these bytes to a file, as [`nyala_files::write`] does. Returns 0, or 1 on an error, with a message in
/// [`nyala_file_error`].
///
/// # Safety
/// `path` ends with a zero byte; `data` is readable for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_file_write(path: *const u8, data: *const u8, size: i64) -> i32 {
    // SAFETY: the caller's promise.
    let write = || unsafe {
        let path = path_of(path)?;
        let fail = |e: String| format!("cannot write `{}`: {e}", path.display());
        let bytes = bytes_of(data, size).map_err(fail)?;
        write_file(&path, bytes).map_err(fail)
    };
    status(write())
}

/// Writes a file after what was printed before.
pub(crate) fn write_file(path: &Path, bytes: &[u8]) -> Result<(), String> {
    if nyala_files::is_stream(path) {
        nyala_flush();
    }
    nyala_files::write(path, bytes).map_err(|e| e.to_string())
}

/// Appends these bytes to a file, which is made if it does not exist. Returns 0, or 1 on an error, with a message in
/// [`nyala_file_error`].
///
/// # Safety
/// `path` ends with a zero byte; `data` is readable for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_file_append(path: *const u8, data: *const u8, size: i64) -> i32 {
    // SAFETY: the caller's promise.
    let append = || unsafe {
        let path = path_of(path)?;
        let fail = |e: String| format!("cannot append to `{}`: {e}", path.display());
        let bytes = bytes_of(data, size).map_err(fail)?;
        if nyala_files::is_stream(&path) {
            nyala_flush();
        }
        nyala_files::append(&path, bytes).map_err(|e| fail(e.to_string()))
    };
    status(append())
}

/// Gives a finished file the place of another, as [`nyala_files::replace`] does. Returns 0, or 1 on an error, with a message in
/// [`nyala_file_error`].
///
/// # Safety
/// Both are null or end with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_file_replace(path: *const u8, finished: *const u8) -> i32 {
    // SAFETY: the caller's promise.
    let (path, finished) = unsafe { (path_of(path), path_of(finished)) };
    status(path.and_then(|path| {
        let finished = finished?;
        if nyala_files::is_stream(&path) {
            nyala_flush();
        }
        nyala_files::replace(&path, &finished).map_err(|e| format!("cannot write `{}`: {e}", path.display()))
    }))
}

/// Returns 1 if there is a file or folder of this name, else 0.
///
/// # Safety
/// `path` is null or ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_file_exists(path: *const u8) -> i32 {
    // SAFETY: the caller's promise.
    i32::from(unsafe { path_of(path) }.is_ok_and(|p| p.exists()))
}

/// Removes a file. Returns 0, or 1 on an error, with a message in [`nyala_file_error`].
///
/// # Safety
/// `path` is null or ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_file_remove(path: *const u8) -> i32 {
    // SAFETY: the caller's promise.
    let path = unsafe { path_of(path) };
    status(path.and_then(|p| std::fs::remove_file(&p).map_err(|e| format!("cannot remove `{}`: {e}", p.display()))))
}

/// Size of a file in bytes; -1 on an error, with a message in [`nyala_file_error`].
///
/// # Safety
/// `path` is null or ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_file_size(path: *const u8) -> i64 {
    // SAFETY: the caller's promise.
    let size = unsafe { path_of(path) }.and_then(|p| {
        let found = std::fs::metadata(&p).map_err(|e| format!("cannot look at `{}`: {e}", p.display()))?;
        if found.is_file() { Ok(found.len() as i64) } else { Err(format!("`{}` is no file", p.display())) }
    });
    size.unwrap_or_else(|text| {
        set_error(text);
        -1
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn c(path: &Path) -> CString {
        CString::new(path.as_os_str().as_bytes()).expect("no zero")
    }

    fn error() -> String {
        // SAFETY: the text ends with a zero byte.
        unsafe { CStr::from_ptr(nyala_file_error().cast()) }.to_string_lossy().into_owned()
    }

    #[test]
    fn streams_are_read_whole_whatever_is_expected() {
        for size in [0, 1, 4095, 4096, 4097, 3_000_005] {
            let bytes: Vec<u8> = (0..size).map(|i| (i % 251) as u8).collect();
            for expected in [0, size as u64 / 2, size as u64, 2 * size as u64] {
                let mut rest = &bytes[..];
                let more = |to: *mut u8, room: usize| {
                    let (piece, others) = rest.split_at(rest.len().min(room).min(1 << 20));
                    rest = others;
                    // SAFETY: there is room for the piece.
                    unsafe { to.copy_from_nonoverlapping(piece.as_ptr(), piece.len()) };
                    Ok(piece.len())
                };
                let (memory, read) = read_all(more, expected, size as u64).expect("no error");
                // SAFETY: so many bytes were read, and a zero byte put behind them.
                unsafe {
                    assert_eq!(std::slice::from_raw_parts(memory, read), &bytes);
                    assert_eq!(*memory.add(read), 0);
                    nyala_free(memory);
                }
            }
        }
    }

    #[test]
    fn files_are_written_appended_read_and_removed() {
        let folder = std::env::temp_dir().join(format!("nyala files {}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("folder");
        let path = c(&folder.join("a b.txt"));
        let p = path.as_ptr().cast();
        let mut size = 7;
        // SAFETY: the arguments are what the functions ask for.
        unsafe {
            assert_eq!(nyala_file_exists(p), 0);
            assert_eq!(nyala_file_write(p, b"one\0two".as_ptr(), 7), 0, "{}", error());
            assert_eq!(nyala_file_append(p, b"!".as_ptr(), 1), 0, "{}", error());
            assert_eq!((nyala_file_exists(p), nyala_file_size(p)), (1, 8));
            let data = nyala_file_read(p, &mut size);
            assert!(!data.is_null(), "{}", error());
            assert_eq!(std::slice::from_raw_parts(data, 9), b"one\0two!\0");
            assert_eq!(size, 8);
            nyala_free(data);
            assert_eq!(nyala_file_write(p, std::ptr::null(), 0), 0, "{}", error());
            assert_eq!(nyala_file_size(p), 0);
            assert_eq!(nyala_file_remove(p), 0, "{}", error());
        }
        assert_eq!(std::fs::read_dir(&folder).expect("folder").count(), 0, "no temporary file stays");
        std::fs::remove_dir_all(&folder).expect("removed");
    }

    #[test]
    fn reading_ends_where_the_file_does_not() {
        let mut size = 7;
        // SAFETY: the arguments are what the function asks for.
        unsafe {
            assert!(nyala_file_read(c"/dev/zero".as_ptr().cast(), &mut size).is_null());
        }
        let why = "cannot read `/dev/zero`: it goes on after 67108864 bytes, and is no plain file of known size";
        assert_eq!((error().as_str(), size), (why, 7));
    }

    #[test]
    fn faults_name_the_file_and_the_reason() {
        let path = c(Path::new("no/such/folder/x.txt"));
        let p = path.as_ptr().cast();
        let mut size = 7;
        // SAFETY: the arguments are what the functions ask for.
        unsafe {
            assert!(nyala_file_read(p, &mut size).is_null());
            assert!(error().contains("no/such/folder/x.txt") && error().contains("No such file"), "{}", error());
            assert_eq!(size, 7);
            assert_eq!(nyala_file_write(p, b"x".as_ptr(), 1), 1);
            assert!(error().starts_with("cannot write `no/such"), "{}", error());
            assert_eq!(nyala_file_append(p, b"x".as_ptr(), 1), 1);
            assert_eq!(nyala_file_remove(p), 1);
            assert_eq!(nyala_file_size(p), -1);
            assert_eq!(nyala_file_size(c"/".as_ptr().cast()), -1);
            assert_eq!(nyala_file_write(p, b"x".as_ptr(), -1), 1);
            assert_eq!(nyala_file_read(std::ptr::null(), &mut size), std::ptr::null_mut());
            assert_eq!(error(), "null as the name of a file");
        }
    }
}
