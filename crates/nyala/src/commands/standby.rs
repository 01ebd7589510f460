//! The process that `nyala watch` has ready for the next run of a program. It is `nyala run`, started before the files are saved: when they
//! are, it is loaded, has parsed and checked the program as it was, and parses only what has changed. It runs the program once, and is
//! the program's own process. So nothing is kept that could grow, and the program may do what it likes.
//!
//! ```text
//! nyala watch                          nyala run --standby SOCKET
//!   listens at SOCKET, starts it  ──►    connects, waits
//!   READ: files are as they were,        parses and checks them
//!         or some have been saved
//!   GO:   they stay as they are          checks what it has read, or reads again
//!   watches these files           ◄──    the names of all files, whether there are errors
//!                                        compiles the program
//!   starts the next one           ◄──    START: runs the program
//! ```
//!
//! The connection is a socket in a folder of the user's own, since the process has the standard streams of the program. Its end is the
//! end of the other process: one that waits in vain ends as well.

use nyala_driver::FrontEnd;
use std::ffi::{OsStr, OsString};
use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};

/// What `nyala watch` says: read the files; they stay as they are, run the program.
const READ: u8 = b'r';
const GO: u8 = b'g';
/// What the other process says, each with a zero byte at its end: a name of a file follows; all names are said, of a program with or
/// without errors; the program starts.
const NAME: u8 = b'n';
const WITH_ERRORS: u8 = b'e';
const WITHOUT_ERRORS: u8 = b'f';
const START: u8 = b's';

/// The connection to `nyala watch`.
pub struct Standby(UnixStream);

impl Standby {
    pub fn connect(socket: &Path) -> std::io::Result<Standby> {
        Ok(Standby(UnixStream::connect(socket)?))
    }

    /// Waits until the program is to run, and calls `read` whenever its files are to be read. Whether it is to run: otherwise
    /// nobody watches any more.
    pub fn wait(&self, mut read: impl FnMut()) -> bool {
        let mut said = [0; 64];
        loop {
            let n = match (&self.0).read(&mut said) {
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Ok(n @ 1..) => n,
                Ok(0) | Err(_) => return false,
            };
            // Several saves during one reading need one more reading.
            if said[..n].contains(&GO) {
                return true;
            }
            read();
        }
    }

    /// Says which files the program is made of.
    pub fn tell_files(&self, front: &FrontEnd) {
        // Others are those of libraries that the command has in itself.
        let names = front.report.sources.names().filter(|name| !name.starts_with('<'));
        let mut told: Vec<u8> = names.flat_map(|name| [NAME].into_iter().chain(name.bytes()).chain([0])).collect();
        told.extend([if front.report.sink.has_errors() { WITH_ERRORS } else { WITHOUT_ERRORS }, 0]);
        self.tell(&told);
    }

    /// Says that the program is compiled, and starts.
    pub fn tell_start(&self) {
        self.tell(&[START, 0]);
        // Nothing more is said, and the program cannot.
        let _ = self.0.shutdown(Shutdown::Both);
    }

    /// A watcher that does not listen has ended.
    fn tell(&self, what: &[u8]) {
        let _ = (&self.0).write_all(what);
    }
}

/// A process that waits, or runs the program.
pub struct Process {
    child: Child,
    listener: UnixListener,
    stream: Option<UnixStream>,
    /// Messages for the process, until it is connected.
    unsaid: Vec<u8>,
    /// What it has said, up to where that was understood.
    said: Vec<u8>,
    names: Vec<PathBuf>,
}

/// What a process has said.
pub enum Told {
    /// The files of the program, and whether it has errors.
    Files(Vec<PathBuf>, bool),
    /// The program starts.
    Start,
}

impl Process {
    /// Starts `nyala run` with these arguments, and a socket in this folder.
    ///
    /// # Errors
    /// There can be no socket in this folder, or no process.
    pub fn start(folder: &Path, args: impl Iterator<Item = OsString>) -> std::io::Result<Process> {
        let socket = folder.join("socket");
        // That of a process that ended before it was connected.
        let _ = std::fs::remove_file(&socket);
        let listener = UnixListener::bind(&socket)?;
        listener.set_nonblocking(true)?;
        let command = std::env::current_exe().unwrap_or_else(|_| "nyala".into());
        let child = Command::new(command).args(["run", "--standby"]).arg(&socket).args(args).spawn()?;
        Ok(Process { child, listener, stream: None, unsaid: Vec::new(), said: Vec::new(), names: Vec::new() })
    }

    /// Lets it read the files.
    pub fn read(&mut self) {
        self.say(READ);
    }

    /// Lets it run the program.
    pub fn go(&mut self) {
        self.say(GO);
    }

    fn say(&mut self, what: u8) {
        self.unsaid.push(what);
        self.connect();
    }

    /// Connects, if the process is there by now, and says what is to be said.
    fn connect(&mut self) {
        if self.stream.is_none() {
            self.stream = self.listener.accept().ok().map(|(stream, _)| stream);
            if let Some(stream) = &self.stream {
                let _ = stream.set_nonblocking(true);
            }
        }
        // A few bytes always fit; one that does not listen has ended.
        if let Some(mut stream) = self.stream.as_ref() {
            let _ = stream.write_all(&self.unsaid);
            self.unsaid.clear();
        }
    }

    /// What it has said since.
    pub fn told(&mut self) -> Option<Told> {
        self.connect();
        let mut bytes = [0; 4096];
        while let Some(Ok(n @ 1..)) = self.stream.as_ref().map(|mut stream| stream.read(&mut bytes)) {
            self.said.extend(&bytes[..n]);
        }
        while let Some(end) = self.said.iter().position(|b| *b == 0) {
            let one: Vec<u8> = self.said.drain(..=end).take(end).collect();
            match one.split_first() {
                Some((&NAME, name)) => self.names.push(OsStr::from_bytes(name).into()),
                Some((&START, _)) => return Some(Told::Start),
                Some((&kind, _)) => return Some(Told::Files(std::mem::take(&mut self.names), kind == WITH_ERRORS)),
                None => {}
            }
        }
        None
    }

    /// This process, unless it has ended.
    pub fn alive(mut self) -> Option<Process> {
        self.ended().is_none().then_some(self)
    }

    /// How it has ended, if it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
