//! MPI, for programs that run as several processes: what the library `mpi` calls. It is apart since nothing else knows MPI.
//!
//! The machine's library is looked for when a program first asks for it, so executables need none. Open MPI and MPICH have the same
//! functions, but other handles and constants: addresses of variables of the library in one, numbers in the other. [`HANDLES`] and
//! [`Flavor`] are all that differs; a handle of either fits a word, and C's convention passes both kinds alike. Libraries that share
//! MPICH's binary interface (Intel's, MVAPICH) are of its flavor.
//!
//! A launcher sets variables for the processes that it starts. Its library is taken then, and no other: with another one each process
//! would be alone. Without a launcher, the first one that is there makes a world of one process. `NYALA_MPI` names a file instead.
//!
//! Elements are passed as bytes, reductions excepted, which need their types. What fails ends the program with MPI's message; the
//! launcher ends the other processes then.

use crate::system::fail;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::OnceLock;

/// What differs between libraries beside [`HANDLES`].
struct Flavor {
    name: &'static str,
    /// Files of the library.
    files: &'static [&'static str],
    /// Variables that its launcher sets.
    variables: &'static [&'static str],
    /// Debian's packages.
    packages: &'static str,
    handle: fn(&Handle) -> Where,
    any_rank: c_int,
    any_tag: c_int,
    no_rank: c_int,
    in_place: isize,
    /// Which of a status's integers are the source and the tag.
    source: usize,
    tag: usize,
}

/// Where a handle is found.
enum Where {
    AddressOf(&'static CStr),
    Number(usize),
}

/// A handle: the variable of Open MPI's whose address it is, and MPICH's number.
struct Handle(&'static CStr, usize);

const OPEN_MPI: Flavor = Flavor {
    name: "Open MPI",
    files: &["libmpi.so.40"],
    variables: &["OMPI_COMM_WORLD_SIZE"],
    packages: "openmpi-bin",
    handle: |handle| Where::AddressOf(handle.0),
    any_rank: -1,
    any_tag: -1,
    no_rank: -2,
    in_place: 1,
    source: 0,
    tag: 1,
};
const MPICH: Flavor = Flavor {
    name: "MPICH",
    files: &["libmpich.so.12", "libmpi.so.12"],
    variables: &["PMI_SIZE", "MPI_LOCALNRANKS"],
    packages: "mpich",
    handle: |handle| Where::Number(handle.1),
    any_rank: -2,
    any_tag: -1,
    no_rank: -1,
    in_place: -1,
    source: 2,
    tag: 3,
};
const FLAVORS: [&Flavor; 2] = [&OPEN_MPI, &MPICH];

/// All handles, in the order of the constants below.
#[rustfmt::skip]
const HANDLES: [Handle; N_HANDLES] = [
    Handle(c"ompi_mpi_comm_world", 0x4400_0000), Handle(c"ompi_mpi_errors_return", 0x5400_0001), Handle(c"ompi_mpi_byte", 0x4c00_010d),
    // The types that the library `mpi` numbers from 0 on.
    Handle(c"ompi_mpi_int8_t", 0x4c00_0137), Handle(c"ompi_mpi_int16_t", 0x4c00_0238), Handle(c"ompi_mpi_int32_t", 0x4c00_0439),
    Handle(c"ompi_mpi_int64_t", 0x4c00_083a), Handle(c"ompi_mpi_uint8_t", 0x4c00_013b), Handle(c"ompi_mpi_uint16_t", 0x4c00_023c),
    Handle(c"ompi_mpi_uint32_t", 0x4c00_043d), Handle(c"ompi_mpi_uint64_t", 0x4c00_083e), Handle(c"ompi_mpi_float", 0x4c00_040a),
    Handle(c"ompi_mpi_double", 0x4c00_080b),
    // The operations that it numbers from 0 on.
    Handle(c"ompi_mpi_op_sum", 0x5800_0003), Handle(c"ompi_mpi_op_prod", 0x5800_0004), Handle(c"ompi_mpi_op_min", 0x5800_0002),
    Handle(c"ompi_mpi_op_max", 0x5800_0001),
];
const WORLD: usize = 0;
const ERRORS_RETURN: usize = 1;
const BYTE: usize = 2;
const FIRST_TYPE: usize = 3;
const N_TYPES: usize = 10;
const FIRST_OPERATION: usize = FIRST_TYPE + N_TYPES;
const N_OPERATIONS: usize = 4;
const N_HANDLES: usize = FIRST_OPERATION + N_OPERATIONS;

/// `MPI_THREAD_SERIALIZED`, one thread at a time calls MPI, and `MPI_UNDEFINED`, no group of `split`: both libraries have these numbers.
const SERIALIZED: c_int = 2;
const UNDEFINED: c_int = -32766;
/// At most so many bytes are written as a text, by all libraries.
const MAX_TEXT: usize = 8192;

/// What programs write for any rank or tag, and for no rank.
const ANY: i32 = -1;
const NOBODY: i32 = -2;

/// A status of any flavor fits.
type Status = [c_int; 8];

/// Declares the functions, by MPI's names without `MPI_`.
macro_rules! functions {
    ($($name:ident($($arg:ty),*);)*) => {
        #[allow(non_snake_case, reason = "MPI's names")]
        struct Functions { $($name: unsafe extern "C" fn($($arg),*) -> c_int,)* }
        impl Functions {
            /// # Safety
            /// It is a library of MPI.
            unsafe fn of(library: *mut c_void) -> Result<Functions, String> {
                Ok(Functions { $($name: {
                    let name = concat!("MPI_", stringify!($name), "\0");
                    // SAFETY: the name ends with a zero byte; the standard says what types the functions have.
                    unsafe {
                        let found = libc::dlsym(library, name.as_ptr().cast());
                        if found.is_null() {
                            return Err(concat!("has no `MPI_", stringify!($name), "`").into());
                        }
                        std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($arg),*) -> c_int>(found)
                    }
                },)* })
            }
        }
    };
}

// Counts, ranks and tags are `int`s; communicators, types, operations and requests are words.
functions! {
    Initialized(*mut c_int);
    Finalized(*mut c_int);
    Init_thread(*mut c_int, *mut c_void, c_int, *mut c_int);
    Finalize();
    Abort(usize, c_int);
    Get_library_version(*mut c_char, *mut c_int);
    Error_string(c_int, *mut c_char, *mut c_int);
    Comm_set_errhandler(usize, usize);
    Comm_rank(usize, *mut c_int);
    Comm_size(usize, *mut c_int);
    Comm_split(usize, c_int, c_int, *mut usize);
    Comm_free(*mut usize);
    Barrier(usize);
    Send(*const u8, c_int, usize, c_int, c_int, usize);
    Recv(*mut u8, c_int, usize, c_int, c_int, usize, *mut Status);
    Sendrecv(*const u8, c_int, usize, c_int, c_int, *mut u8, c_int, usize, c_int, c_int, usize, *mut Status);
    Isend(*const u8, c_int, usize, c_int, c_int, usize, *mut usize);
    Irecv(*mut u8, c_int, usize, c_int, c_int, usize, *mut usize);
    Wait(*mut usize, *mut Status);
    Probe(c_int, c_int, usize, *mut Status);
    Get_count(*const Status, usize, *mut c_int);
    Bcast(*mut u8, c_int, usize, c_int, usize);
    Reduce(*const u8, *mut u8, c_int, usize, usize, c_int, usize);
    Allreduce(*const u8, *mut u8, c_int, usize, usize, usize);
    Gather(*const u8, c_int, usize, *mut u8, c_int, usize, c_int, usize);
    Allgather(*const u8, c_int, usize, *mut u8, c_int, usize, usize);
    Scatter(*const u8, c_int, usize, *mut u8, c_int, usize, c_int, usize);
    Alltoall(*const u8, c_int, usize, *mut u8, c_int, usize, usize);
}

/// A library that is loaded, for the rest of the process.
struct Mpi {
    flavor: &'static Flavor,
    f: Functions,
    handles: [usize; N_HANDLES],
    version: CString,
}

/// The library; or why there is none.
fn library() -> &'static Result<Mpi, CString> {
    static LIBRARY: OnceLock<Result<Mpi, CString>> = OnceLock::new();
    LIBRARY.get_or_init(|| find().map_err(|why| CString::new(why).unwrap_or_default()))
}

fn find() -> Result<Mpi, String> {
    if let Some(file) = std::env::var_os("NYALA_MPI") {
        let file = file.into_string().map_err(|_| "NYALA_MPI is not UTF-8")?;
        let opened =
            open(&file).ok_or_else(|| format!("the library `{file}` that NYALA_MPI names cannot be loaded"))?;
        return load(flavor_of(opened), &file, opened);
    }
    let is_launched = |flavor: &Flavor| flavor.variables.iter().any(|v| std::env::var_os(v).is_some());
    let launcher = FLAVORS.into_iter().find(|flavor| is_launched(flavor));
    for flavor in FLAVORS.into_iter().filter(|flavor| launcher.is_none_or(|l| l.name == flavor.name)) {
        for file in flavor.files {
            crate::platforms::check_library(file)?;
            // Old versions of Open MPI have the name of one of MPICH's flavor.
            if let Some(opened) = open(file)
                && flavor_of(opened).name == flavor.name
            {
                return load(flavor, file, opened);
            }
        }
    }
    Err(match launcher {
        Some(l) => format!(
            "a launcher of {} has started this program, but its library, {}, is not installed",
            l.name, l.files[0]
        ),
        None => {
            let ways = FLAVORS.map(|f| format!("{} (Debian's package `{}`)", f.name, f.packages));
            format!("no library of MPI is installed: install {}, or name its file in NYALA_MPI", ways.join(" or "))
        }
    })
}

fn open(file: &str) -> Option<*mut c_void> {
    let file = CString::new(file).ok()?;
    // SAFETY: the library's initializers run. Its plug-ins find its symbols since these are global.
    let library = unsafe { libc::dlopen(file.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
    (!library.is_null()).then_some(library)
}

fn flavor_of(library: *mut c_void) -> &'static Flavor {
    // SAFETY: a library is open; it has the symbol or not.
    let is_open_mpi = unsafe { !libc::dlsym(library, HANDLES[WORLD].0.as_ptr()).is_null() };
    if is_open_mpi { &OPEN_MPI } else { &MPICH }
}

fn load(flavor: &'static Flavor, file: &str, library: *mut c_void) -> Result<Mpi, String> {
    // SAFETY: the file is a library of MPI: nothing else has all its functions.
    let f = unsafe { Functions::of(library) }.map_err(|why| format!("the library {file} {why}"))?;
    let mut handles = [0; N_HANDLES];
    for (to, handle) in handles.iter_mut().zip(&HANDLES) {
        *to = match (flavor.handle)(handle) {
            Where::Number(n) => n,
            // SAFETY: a library is open; it has the symbol or not.
            Where::AddressOf(name) => match unsafe { libc::dlsym(library, name.as_ptr()) } as usize {
                0 => return Err(format!("the library {file} has no `{}`", name.to_string_lossy())),
                address => address,
            },
        };
    }
    // SAFETY: there is room for the longest text; the function may be called before the others.
    let version = text(|to, n| unsafe { (f.Get_library_version)(to, n) });
    let version = CString::new(version.lines().next().unwrap_or_default()).unwrap_or_default();
    Ok(Mpi { flavor, f, handles, version })
}

/// A text that a function of MPI writes.
fn text(write: impl FnOnce(*mut c_char, *mut c_int) -> c_int) -> String {
    let (mut room, mut length) = ([0u8; MAX_TEXT], 0);
    write(room.as_mut_ptr().cast(), &mut length);
    CStr::from_bytes_until_nul(&room).unwrap_or_default().to_string_lossy().trim().into()
}

/// The library; the program ends if there is none.
fn mpi() -> &'static Mpi {
    match library() {
        Ok(mpi) => mpi,
        Err(why) => fail(&format!("MPI: {}", why.to_string_lossy())),
    }
}

impl Mpi {
    /// Ends the program if a function of MPI says that it has failed.
    fn check(&self, code: c_int) {
        if code != 0 {
            // SAFETY: there is room for the longest text.
            fail(&format!("MPI: {}", text(|to, n| unsafe { (self.f.Error_string)(code, to, n) })))
        }
    }

    fn rank(&self, rank: i32) -> c_int {
        match rank {
            ANY => self.flavor.any_rank,
            NOBODY => self.flavor.no_rank,
            rank => rank,
        }
    }

    fn tag(&self, tag: i32) -> c_int {
        if tag == ANY { self.flavor.any_tag } else { tag }
    }

    /// A handle of the table that a program numbers.
    fn numbered(&self, first: usize, n: usize, number: i32) -> usize {
        match usize::try_from(number) {
            Ok(number) if number < n => self.handles[first + number],
            _ => fail(&format!("MPI: there is no type or operation {number}")),
        }
    }

    /// Source, tag and bytes of a message.
    fn received(&self, status: &Status) -> Received {
        let mut bytes = 0;
        // SAFETY: the status was written by the library.
        self.check(unsafe { (self.f.Get_count)(status, self.handles[BYTE], &mut bytes) });
        let source = status[self.flavor.source];
        let source = if source == self.flavor.no_rank { NOBODY } else { source };
        Received { bytes: i64::from(bytes), source, tag: status[self.flavor.tag] }
    }
}

/// A number of bytes or elements as MPI takes it.
fn count(n: i64) -> c_int {
    c_int::try_from(n).unwrap_or_else(|_| {
        fail(&format!("MPI: limitation: {n} bytes or elements in one call, expected less than 2³¹"))
    })
}

/// Source, tag and size of a message, as the library `mpi` declares them.
#[repr(C)]
pub struct Received {
    bytes: i64,
    source: i32,
    tag: i32,
}

/// Why there is no library of MPI; null if there is one.
#[unsafe(no_mangle)]
pub extern "C" fn nyala_mpi_missing() -> *const c_char {
    library().as_ref().err().map_or(std::ptr::null(), |why| why.as_ptr())
}

/// What the library calls itself.
#[unsafe(no_mangle)]
pub extern "C" fn nyala_mpi_version() -> *const c_char {
    mpi().version.as_ptr()
}

/// Joins the other processes, if this one has not yet. Returns the communicator of all.
#[unsafe(no_mangle)]
pub extern "C" fn nyala_mpi_init() -> usize {
    let mpi = mpi();
    let (mut is_over, mut has_begun, mut provided) = (0, 0, 0);
    // SAFETY: the functions may be called at any time; arguments of the program are not needed.
    unsafe {
        (mpi.f.Finalized)(&mut is_over);
        if is_over != 0 {
            fail("MPI: it has been finalized, and cannot begin again")
        }
        (mpi.f.Initialized)(&mut has_begun);
        if has_begun == 0 {
            mpi.check((mpi.f.Init_thread)(std::ptr::null_mut(), std::ptr::null_mut(), SERIALIZED, &mut provided));
            // Others that have begun it know what they want.
            mpi.check((mpi.f.Comm_set_errhandler)(mpi.handles[WORLD], mpi.handles[ERRORS_RETURN]));
        }
    }
    mpi.handles[WORLD]
}

/// Leaves the other processes.
#[unsafe(no_mangle)]
pub extern "C" fn nyala_mpi_finalize() {
    let mpi = mpi();
    // SAFETY: MPI has begun, or says that it has not.
    mpi.check(unsafe { (mpi.f.Finalize)() });
}

/// Ends all processes of a communicator.
///
/// # Safety
/// It is a communicator.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_mpi_abort(comm: usize, code: i32) {
    let mpi = mpi();
    crate::nyala_flush();
    // SAFETY: the caller's promise.
    mpi.check(unsafe { (mpi.f.Abort)(comm, code) });
}

/// This process's number among those of a communicator.
///
/// # Safety
/// It is a communicator.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_mpi_rank(comm: usize) -> i32 {
    let (mpi, mut rank) = (mpi(), 0);
    // SAFETY: the caller's promise.
    mpi.check(unsafe { (mpi.f.Comm_rank)(comm, &mut rank) });
    rank
}

/// The number of processes of a communicator.
///
/// # Safety
/// It is a communicator.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_mpi_size(comm: usize) -> i32 {
    let (mpi, mut size) = (mpi(), 0);
    // SAFETY: the caller's promise.
    mpi.check(unsafe { (mpi.f.Comm_size)(comm, &mut size) });
    size
}

/// A communicator of those processes that name the same group, ordered by `key`; 0 for processes that name a negative one.
///
/// # Safety
/// It is a communicator.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_mpi_split(comm: usize, group: i32, key: i32) -> usize {
    let (mpi, mut made) = (mpi(), 0);
    let color = if group < 0 { UNDEFINED } else { group };
    // SAFETY: the caller's promise. A handle that is an `int` fills a part of the word, which was 0.
    mpi.check(unsafe { (mpi.f.Comm_split)(comm, color, key, &mut made) });
    if group < 0 { 0 } else { made }
}

/// Frees a communicator of [`nyala_mpi_split`].
///
/// # Safety
/// It is one, or 0, and is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_mpi_free(mut comm: usize) {
    let mpi = mpi();
    if comm != 0 {
        // SAFETY: the caller's promise.
        mpi.check(unsafe { (mpi.f.Comm_free)(&mut comm) });
    }
}

/// Waits until all processes are here.
///
/// # Safety
/// It is a communicator.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_mpi_barrier(comm: usize) {
    let mpi = mpi();
    // SAFETY: the caller's promise.
    mpi.check(unsafe { (mpi.f.Barrier)(comm) });
}

/// Sends bytes; they may be changed afterwards.
///
/// # Safety
/// `n` bytes lie there; it is a communicator.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_mpi_send(data: *const u8, n: i64, to: i32, tag: i32, comm: usize) {
    let mpi = mpi();
    // SAFETY: the caller's promise.
    mpi.check(unsafe { (mpi.f.Send)(data, count(n), mpi.handles[BYTE], mpi.rank(to), tag, comm) });
}

/// Receives at most `n` bytes, and says what was received.
///
/// # Safety
/// There is room for them and the answer; it is a communicator.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_mpi_receive(
    data: *mut u8,
    n: i64,
    from: i32,
    tag: i32,
    comm: usize,
    received: *mut Received,
) {
    let (mpi, mut status) = (mpi(), Status::default());
    let (from, tag) = (mpi.rank(from), mpi.tag(tag));
    // SAFETY: the caller's promise.
    unsafe {
        mpi.check((mpi.f.Recv)(data, count(n), mpi.handles[BYTE], from, tag, comm, &mut status));
        *received = mpi.received(&status);
    }
}

/// Says what a message is like that can be received, once there is one.
///
/// # Safety
/// There is room for the answer; it is a communicator.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_mpi_probe(from: i32, tag: i32, comm: usize, received: *mut Received) {
    let (mpi, mut status) = (mpi(), Status::default());
    // SAFETY: the caller's promise.
    unsafe {
        mpi.check((mpi.f.Probe)(mpi.rank(from), mpi.tag(tag), comm, &mut status));
        *received = mpi.received(&status);
    }
}

/// Sends bytes and receives others at once.
///
/// # Safety
/// The bytes and the room for those to be received are there, and do not overlap; it is a communicator.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_mpi_exchange(
    data: *const u8,
    n: i64,
    to: i32,
    into: *mut u8,
    n_into: i64,
    from: i32,
    tag: i32,
    comm: usize,
    received: *mut Received,
) {
    let (mpi, mut status) = (mpi(), Status::default());
    let (to, from, byte, in_tag) = (mpi.rank(to), mpi.rank(from), mpi.handles[BYTE], mpi.tag(tag));
    let (n, n_into) = (count(n), count(n_into));
    // SAFETY: the caller's promise.
    unsafe {
        mpi.check((mpi.f.Sendrecv)(data, n, byte, to, tag, into, n_into, byte, from, in_tag, comm, &mut status));
        *received = mpi.received(&status);
    }
}

/// Begins to send bytes, which must stay as they are until [`nyala_mpi_wait`].
///
/// # Safety
/// `n` bytes lie there; it is a communicator.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_mpi_start_send(data: *const u8, n: i64, to: i32, tag: i32, comm: usize) -> usize {
    let (mpi, mut request) = (mpi(), 0);
    let to = mpi.rank(to);
    // SAFETY: the caller's promise. A handle that is an `int` fills a part of the word.
    mpi.check(unsafe { (mpi.f.Isend)(data, count(n), mpi.handles[BYTE], to, tag, comm, &mut request) });
    request
}

/// Begins to receive at most `n` bytes, which must not be used until [`nyala_mpi_wait`].
///
/// # Safety
/// There is room for them; it is a communicator.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_mpi_start_receive(data: *mut u8, n: i64, from: i32, tag: i32, comm: usize) -> usize {
    let (mpi, mut request) = (mpi(), 0);
    let (from, tag) = (mpi.rank(from), mpi.tag(tag));
    // SAFETY: as above.
    mpi.check(unsafe { (mpi.f.Irecv)(data, count(n), mpi.handles[BYTE], from, tag, comm, &mut request) });
    request
}

/// Waits for the end of what has begun, and says what was received.
///
/// # Safety
/// It has begun, and was not waited for; there is room for the answer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_mpi_wait(mut request: usize, received: *mut Received) {
    let (mpi, mut status) = (mpi(), Status::default());
    // SAFETY: the caller's promise.
    unsafe {
        mpi.check((mpi.f.Wait)(&mut request, &mut status));
        *received = mpi.received(&status);
    }
}

/// Gives all processes the bytes of one.
///
/// # Safety
/// `n` bytes lie there; it is a communicator.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_mpi_broadcast(data: *mut u8, n: i64, root: i32, comm: usize) {
    let mpi = mpi();
    // SAFETY: the caller's promise.
    mpi.check(unsafe { (mpi.f.Bcast)(data, count(n), mpi.handles[BYTE], root, comm) });
}

/// Combines `n` elements of all processes, one by one, in place: for the process `root`, or for all if it is negative.
///
/// # Safety
/// `n` elements of the type lie there; it is a communicator.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_mpi_reduce(data: *mut u8, n: i64, ty: i32, operation: i32, root: i32, comm: usize) {
    let mpi = mpi();
    let ty = mpi.numbered(FIRST_TYPE, N_TYPES, ty);
    let op = mpi.numbered(FIRST_OPERATION, N_OPERATIONS, operation);
    let (n, in_place) = (count(n), mpi.flavor.in_place as *const u8);
    // SAFETY: the caller's promise. The root alone says that its elements are where the result goes.
    mpi.check(unsafe {
        if root < 0 {
            (mpi.f.Allreduce)(in_place, data, n, ty, op, comm)
        } else if nyala_mpi_rank(comm) == root {
            (mpi.f.Reduce)(in_place, data, n, ty, op, root, comm)
        } else {
            (mpi.f.Reduce)(data, std::ptr::null_mut(), n, ty, op, root, comm)
        }
    });
}

/// Puts `n` bytes of each process side by side: for the process `root`, or for all if it is negative.
///
/// # Safety
/// The bytes and, where they go, room for all are there; it is a communicator.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_mpi_gather(data: *const u8, n: i64, into: *mut u8, root: i32, comm: usize) {
    let (mpi, n) = (mpi(), count(n));
    let byte = mpi.handles[BYTE];
    // SAFETY: the caller's promise.
    mpi.check(unsafe {
        if root < 0 {
            (mpi.f.Allgather)(data, n, byte, into, n, byte, comm)
        } else {
            (mpi.f.Gather)(data, n, byte, into, n, byte, root, comm)
        }
    });
}

/// Gives each process `n` bytes of those that lie side by side in the process `root`.
///
/// # Safety
/// The bytes, in the process `root`, and the room for `n` are there; it is a communicator.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_mpi_scatter(data: *const u8, into: *mut u8, n: i64, root: i32, comm: usize) {
    let (mpi, n) = (mpi(), count(n));
    let byte = mpi.handles[BYTE];
    // SAFETY: the caller's promise.
    mpi.check(unsafe { (mpi.f.Scatter)(data, n, byte, into, n, byte, root, comm) });
}

/// Gives each process `n` bytes of each.
///
/// # Safety
/// The bytes for all and the room for those of all are there, and do not overlap; it is a communicator.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_mpi_all_to_all(data: *const u8, into: *mut u8, n: i64, comm: usize) {
    let (mpi, n) = (mpi(), count(n));
    let byte = mpi.handles[BYTE];
    // SAFETY: the caller's promise.
    mpi.check(unsafe { (mpi.f.Alltoall)(data, n, byte, into, n, byte, comm) });
}
