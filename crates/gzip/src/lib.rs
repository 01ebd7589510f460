//! Files that may be compressed by gzip, read in blocks behind a C ABI.
//!
//! Separate from the runtime, which is in every executable: only programs that are linked with this library have its crate.
//! `nyala build program.impala libnyala_gzip.so` links it, and `nyala run --load libnyala_gzip.so` loads it.

use flate2::bufread::MultiGzDecoder;
use std::ffi::{CString, c_char};
use std::fs::File;
use std::io::{BufRead, BufReader, Chain, Cursor, ErrorKind, Read};
use std::os::fd::FromRawFd;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The bytes that compressed files begin with.
const MAGIC: [u8; 2] = [0x1f, 0x8b];

/// The bytes that are read from a file at once.
const BLOCK: usize = 256 << 10;

/// A file from its first byte on: those that told its kind come first.
type Source<R> = BufReader<Chain<Cursor<Vec<u8>>, R>>;

/// A file, decompressed if it begins as compressed ones do. Parts that were compressed one after the other, as by bgzip, are one text.
pub enum Reader<R> {
    Plain(Source<R>),
    Compressed(Box<MultiGzDecoder<Source<R>>>),
}

impl<R: Read> Reader<R> {
    /// # Errors
    /// The file cannot be read.
    pub fn new(mut file: R) -> Result<Self, String> {
        let mut first = Vec::new();
        file.by_ref().take(MAGIC.len() as u64).read_to_end(&mut first).map_err(|e| message(&e))?;
        let is_compressed = first == MAGIC;
        let source = BufReader::with_capacity(BLOCK, Cursor::new(first).chain(file));
        Ok(match is_compressed {
            true => Reader::Compressed(Box::new(MultiGzDecoder::new(source))),
            false => Reader::Plain(source),
        })
    }

    /// Reads the next bytes, at most as many as there is room for; 0 is the end.
    ///
    /// # Errors
    /// The file cannot be read, or what is compressed is damaged or ends early.
    pub fn read(&mut self, to: &mut [u8]) -> Result<usize, String> {
        loop {
            let read = match self {
                Reader::Plain(source) => source.read(to),
                Reader::Compressed(decoder) => decoder.read(to),
            };
            match read {
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Ok(0) if !to.is_empty() => return self.end().map(|()| 0),
                read => return read.map_err(|e| message(&e)),
            }
        }
    }

    /// The end of a file: nothing may be left of it.
    fn end(&mut self) -> Result<(), String> {
        let Reader::Compressed(decoder) = self else { return Ok(()) };
        match decoder.get_mut().fill_buf() {
            Ok([]) => Ok(()),
            Ok(_) => Err(DAMAGED.into()),
            Err(e) => Err(message(&e)),
        }
    }
}

const DAMAGED: &str = "what is compressed is damaged";

/// What an error means for the file.
fn message(e: &std::io::Error) -> String {
    match e.kind() {
        ErrorKind::UnexpectedEof => "what is compressed ends early".into(),
        ErrorKind::InvalidInput | ErrorKind::InvalidData => DAMAGED.into(),
        // Without the number, which says nothing to users.
        _ => e.to_string().split(" (os error").next().unwrap_or_default().into(),
    }
}

/// A file behind the C ABI, and what was wrong last.
pub struct Handle {
    reader: Option<Reader<File>>,
    error: CString,
}

impl Handle {
    /// Keeps an error, and gives another value in its place.
    fn fail<T>(&mut self, why: &str, value: T) -> T {
        self.error = CString::new(why).unwrap_or_default();
        value
    }
}

/// A reader of an open file, which is closed with it.
///
/// # Safety
/// Nobody else closes the file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_gzip_open(file: i32) -> *mut Handle {
    let mut handle = Handle { reader: None, error: CString::default() };
    // SAFETY: as the caller says.
    match Reader::new(unsafe { File::from_raw_fd(file) }) {
        Ok(reader) => handle.reader = Some(reader),
        Err(why) => handle.fail(&why, ()),
    }
    Box::into_raw(Box::new(handle))
}

/// Reads at most `room` bytes: how many these are, 0 at the end, or -1 with an error.
///
/// # Safety
/// The handle is one of `nyala_gzip_open`, and there is so much room.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_gzip_read(handle: *mut Handle, to: *mut u8, room: i64) -> i64 {
    // SAFETY: as the caller says.
    let (handle, to) = unsafe { (&mut *handle, std::slice::from_raw_parts_mut(to, room.max(0) as usize)) };
    let Some(reader) = &mut handle.reader else { return -1 };
    match catch_unwind(AssertUnwindSafe(|| reader.read(to))).unwrap_or_else(|_| Err(DAMAGED.into())) {
        Ok(n) => n as i64,
        Err(why) => handle.fail(&why, -1),
    }
}

/// The message of the last error, as a string that stays until the next call.
///
/// # Safety
/// The handle is one of `nyala_gzip_open`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_gzip_error(handle: *const Handle) -> *const c_char {
    // SAFETY: as the caller says.
    unsafe { &*handle }.error.as_ptr()
}

/// Closes the file.
///
/// # Safety
/// The handle is one of `nyala_gzip_open`, and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_gzip_close(handle: *mut Handle) {
    // SAFETY: as the caller says.
    drop(unsafe { Box::from_raw(handle) });
}
