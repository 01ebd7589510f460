//! Faults of a program's own machine code: stack overflow, wild accesses, division by zero. They are reported before
//! they end the process.
//!
//! The signal handler interrupts the program anywhere, perhaps within the C library's allocator or its output. So it
//! only notes the fault and wakes a thread, started before, that makes the report; should that thread hang on a lock
//! that the program holds, the handler ends the process after a while. See Note [What the handler may do].

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicUsize, Ordering};

/// The kind of a [`Fault`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// The stack has no room for a frame.
    StackOverflow,
    /// Access to memory that is not mapped, or not for this kind of access.
    Access,
    /// Division by zero, or of the least integer by -1.
    Arithmetic,
    /// An instruction that is invalid on the processor.
    Instruction,
    /// An instruction that compilers put where control can only come after something undefined.
    Trap,
}

/// A fault of the program's machine code.
#[derive(Clone, Debug)]
pub struct Fault {
    /// The kind of the fault.
    pub kind: FaultKind,
    /// The address accessed, if it is known.
    pub address: Option<usize>,
    /// The address of the instruction.
    pub instruction: usize,
    /// Words of the stack from its top on, return addresses included.
    pub stack: Vec<usize>,
    /// If the thread is not the program's but, say, that of a driver which runs kernels on the CPU: the kernel that was launched last,
    /// and the place of its launch as `file:line`.
    pub kernel: Option<(String, String)>,
}

/// Makes the text of a report.
pub type Describe = Box<dyn Fn(&Fault) -> String + Send + Sync>;

struct Handling {
    describe: Describe,
    /// Whether the process ends with the exit code 128 + signal, instead of by the signal.
    exits: bool,
}

static HANDLING: OnceLock<Handling> = OnceLock::new();

const SIGNALS: [c_int; 5] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP];

// The fault as noted by the handler. At most one thread writes it, see `TAKEN`.
static TAKEN: AtomicBool = AtomicBool::new(false);
static SIGNAL: AtomicI32 = AtomicI32::new(0);
static OVERFLOW: AtomicBool = AtomicBool::new(false);
static ADDRESS: AtomicUsize = AtomicUsize::new(0);
static HAS_ADDRESS: AtomicBool = AtomicBool::new(false);
static INSTRUCTION: AtomicUsize = AtomicUsize::new(0);
static IS_FOREIGN: AtomicBool = AtomicBool::new(false);
static STACK_POINTER: AtomicUsize = AtomicUsize::new(0);
static REPORTED: AtomicBool = AtomicBool::new(false);
static EXITS: AtomicBool = AtomicBool::new(false);
static WAKE: AtomicI32 = AtomicI32::new(-1);
static REPORTER: AtomicU32 = AtomicU32::new(0);

/// Maximal time for a report.
const PATIENCE_MS: u32 = 5000;
/// Maximal number of words of the stack that are read.
const STACK_WORDS: usize = 8192;

thread_local! {
    /// The addresses that mean an overflow of this thread's stack.
    static GUARD: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
}

/// From now on, faults are reported with the text made by `describe`; then the process ends, with the exit code 128 +
/// signal if `exits`, else by the signal.
///
/// # Errors
/// The system lacks a resource for it. Faults then end the process as before.
pub fn report_faults(describe: Describe, exits: bool) -> std::io::Result<()> {
    let Some(reporter) = handle_faults(describe, exits)? else { return Ok(()) };
    std::thread::Builder::new().name("faults".into()).spawn(move || reporter.wait())?;
    Ok(())
}

/// The part of fault handling that makes the report, on any thread.
pub(crate) struct Reporter {
    wake: c_int,
}

/// [`report_faults`] on a thread of the caller, by [`Reporter::wait`]. `None` if faults are reported already.
pub(crate) fn handle_faults(describe: Describe, exits: bool) -> std::io::Result<Option<Reporter>> {
    if HANDLING.set(Handling { describe, exits }).is_err() {
        return Ok(None);
    }
    let mut pipe = [0; 2];
    // SAFETY: the array has room for two descriptors.
    if unsafe { libc::pipe2(pipe.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(std::io::Error::last_os_error());
    }
    for end in &mut pipe {
        // If the program was started without standard streams, the pipe must not get their numbers.
        // SAFETY: the descriptor is this function's own, and not used after it is closed.
        let moved = unsafe {
            let moved = libc::fcntl(*end, libc::F_DUPFD_CLOEXEC, libc::STDERR_FILENO + 1);
            libc::close(*end);
            moved
        };
        if moved < 0 {
            return Err(std::io::Error::last_os_error());
        }
        *end = moved;
    }
    WAKE.store(pipe[1], Ordering::SeqCst);
    EXITS.store(exits, Ordering::SeqCst);
    for signal in SIGNALS {
        // SAFETY: the action is wholly initialized; the handler's needs are met, see the note.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = handle as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            libc::sigfillset(&mut action.sa_mask);
            // Another fault while this one is handled ends the process at once.
            SIGNALS.iter().for_each(|&s| {
                libc::sigdelset(&mut action.sa_mask, s);
            });
            if libc::sigaction(signal, &action, std::ptr::null_mut()) != 0 {
                return Err(std::io::Error::last_os_error());
            }
        }
    }
    Ok(Some(Reporter { wake: pipe[0] }))
}

/// Calls a driver that may take over the signals of faults, as the LLVM in a driver does, and gives those back that were
/// this module's. LLVM's handler is for one fault: a second thread's ends the process in silence.
pub(crate) fn keeping_handlers<T>(call: impl FnOnce() -> T) -> T {
    let before = SIGNALS.map(|signal| {
        // SAFETY: asks only; zeroes are an action.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            let is_known = libc::sigaction(signal, std::ptr::null(), &mut action) == 0;
            (is_known && action.sa_sigaction == handle as *const () as usize).then_some(action)
        }
    });
    let result = call();
    for (signal, action) in SIGNALS.into_iter().zip(before) {
        if let Some(action) = action {
            // SAFETY: the action was given by the system.
            unsafe { libc::sigaction(signal, &action, std::ptr::null_mut()) };
        }
    }
    result
}

/// A stack for the handler, while this thread may fault.
pub(crate) struct HandlerStack {
    memory: *mut c_void,
}

const HANDLER_STACK: usize = 64 << 10;

/// Prepares this thread for faults, if they are reported.
pub(crate) fn prepare_thread() -> HandlerStack {
    let mut stack = HandlerStack { memory: std::ptr::null_mut() };
    if HANDLING.get().is_none() {
        return stack;
    }
    // SAFETY: the attributes are destroyed once and only if they were initialized; the mapping becomes the handler's
    // stack until this value is dropped.
    unsafe {
        let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
        if libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) == 0 {
            let (mut low, mut size, mut guard) = (std::ptr::null_mut(), 0, 0);
            libc::pthread_attr_getstack(attributes.as_ptr(), &mut low, &mut size);
            libc::pthread_attr_getguardsize(attributes.as_ptr(), &mut guard);
            libc::pthread_attr_destroy(attributes.as_mut_ptr());
            GUARD.set(((low as usize).saturating_sub(guard), low as usize));
        }
        let mut old = MaybeUninit::<libc::stack_t>::uninit();
        if libc::sigaltstack(std::ptr::null(), old.as_mut_ptr()) != 0
            || old.assume_init().ss_flags & libc::SS_DISABLE == 0
        {
            return stack;
        }
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        let memory = libc::mmap(std::ptr::null_mut(), HANDLER_STACK, access, kind, -1, 0);
        if memory != libc::MAP_FAILED {
            let new = libc::stack_t { ss_sp: memory, ss_flags: 0, ss_size: HANDLER_STACK };
            libc::sigaltstack(&new, std::ptr::null_mut());
            stack.memory = memory;
        }
    }
    stack
}

impl Drop for HandlerStack {
    fn drop(&mut self) {
        if !self.memory.is_null() {
            // SAFETY: this thread's handler stack is given up before its memory.
            unsafe {
                let off = libc::stack_t { ss_sp: std::ptr::null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 0 };
                libc::sigaltstack(&off, std::ptr::null_mut());
                libc::munmap(self.memory, HANDLER_STACK);
            }
        }
    }
}

/// Instruction and stack pointer of the interrupted thread.
fn registers(context: *const c_void) -> (usize, usize) {
    // SAFETY: the kernel passes the context of this machine.
    let context = unsafe { &*context.cast::<libc::ucontext_t>() };
    #[cfg(target_arch = "x86_64")]
    return (
        context.uc_mcontext.gregs[libc::REG_RIP as usize] as usize,
        context.uc_mcontext.gregs[libc::REG_RSP as usize] as usize,
    );
    #[cfg(target_arch = "aarch64")]
    return (context.uc_mcontext.pc as usize, context.uc_mcontext.sp as usize);
    // The instruction's address comes first, then the registers; the stack pointer is the third word.
    #[cfg(target_arch = "riscv64")]
    return (context.uc_mcontext.__gregs[0] as usize, context.uc_mcontext.__gregs[2] as usize);
    // Elsewhere no function is named.
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]
    {
        let _ = context;
        (0, 0)
    }
}

extern "C" fn handle(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel passes both. All functions called are async-signal-safe.
    unsafe {
        let tid = libc::syscall(libc::SYS_gettid) as u32;
        let code = (*info).si_code;
        // Sent by a process, or a fault of the reporter itself.
        if code <= 0 || tid == REPORTER.load(Ordering::SeqCst) {
            return die(signal);
        }
        if TAKEN.swap(true, Ordering::SeqCst) {
            // Another thread's fault is being reported, which ends the process.
            loop {
                libc::pause();
            }
        }
        let (instruction, stack_pointer) = registers(context);
        let is_access = signal == libc::SIGSEGV || signal == libc::SIGBUS;
        // The kernel does not know the address of an access outside of the address space.
        let has_address = is_access && code != libc::SI_KERNEL;
        let address = (*info).si_addr() as usize;
        let (low, high) = GUARD.get();
        SIGNAL.store(signal, Ordering::SeqCst);
        OVERFLOW.store(has_address && (low..high).contains(&address), Ordering::SeqCst);
        ADDRESS.store(address, Ordering::SeqCst);
        HAS_ADDRESS.store(has_address, Ordering::SeqCst);
        INSTRUCTION.store(instruction, Ordering::SeqCst);
        IS_FOREIGN.store(high == 0, Ordering::SeqCst);
        STACK_POINTER.store(stack_pointer, Ordering::SeqCst);
        libc::write(WAKE.load(Ordering::SeqCst), b"!".as_ptr().cast(), 1);
        for _ in 0..PATIENCE_MS {
            if REPORTED.load(Ordering::SeqCst) {
                break;
            }
            let pause = libc::timespec { tv_sec: 0, tv_nsec: 1_000_000 };
            libc::nanosleep(&pause, std::ptr::null_mut());
        }
        if !REPORTED.load(Ordering::SeqCst) {
            let text = kind(signal).about();
            for part in ["error: ", text, "\n"] {
                libc::write(2, part.as_ptr().cast(), part.len());
            }
        }
        if EXITS.load(Ordering::SeqCst) {
            libc::_exit(128 + signal);
        }
        die(signal)
    }
}

/// Lets the signal end the process when the handler returns.
fn die(signal: c_int) {
    // SAFETY: both are async-signal-safe.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}

fn kind(signal: c_int) -> FaultKind {
    match signal {
        _ if OVERFLOW.load(Ordering::SeqCst) => FaultKind::StackOverflow,
        libc::SIGFPE => FaultKind::Arithmetic,
        libc::SIGILL => FaultKind::Instruction,
        libc::SIGTRAP => FaultKind::Trap,
        _ => FaultKind::Access,
    }
}

impl FaultKind {
    /// The kind in a few words.
    pub fn about(self) -> &'static str {
        match self {
            FaultKind::StackOverflow => "stack overflow",
            FaultKind::Access => "wild memory access",
            FaultKind::Arithmetic => "division by zero, or division that overflows",
            FaultKind::Instruction => "illegal instruction",
            FaultKind::Trap => "undefined code was reached",
        }
    }
}

impl Reporter {
    /// Waits for a fault, and reports it. The process ends soon after.
    pub(crate) fn wait(self) {
        // SAFETY: asks only.
        REPORTER.store(unsafe { libc::syscall(libc::SYS_gettid) } as u32, Ordering::SeqCst);
        let mut byte = 0u8;
        // SAFETY: there is room for one byte.
        while unsafe { libc::read(self.wake, (&raw mut byte).cast(), 1) } != 1 {}
        let (kind, instruction) = (kind(SIGNAL.load(Ordering::SeqCst)), INSTRUCTION.load(Ordering::SeqCst));
        let fault = Fault {
            kind: if kind == FaultKind::Instruction && is_trap(instruction) { FaultKind::Trap } else { kind },
            address: HAS_ADDRESS.load(Ordering::SeqCst).then(|| ADDRESS.load(Ordering::SeqCst)),
            instruction,
            stack: read_stack(STACK_POINTER.load(Ordering::SeqCst)),
            kernel: if IS_FOREIGN.load(Ordering::SeqCst) { crate::interrupts::last_launch() } else { None },
        };
        crate::print::flush_if_free();
        if let Some(handling) = HANDLING.get() {
            let text = (handling.describe)(&fault);
            // SAFETY: the text's bytes are readable. Where they do not arrive, nobody can be told.
            unsafe { libc::write(2, text.as_ptr().cast(), text.len()) };
            if handling.exits {
                // SAFETY: ends the process.
                unsafe { libc::_exit(128 + SIGNAL.load(Ordering::SeqCst)) }
            }
        }
        REPORTED.store(true, Ordering::SeqCst);
    }
}

/// Whether the instruction at an address is the one that compilers put where control never comes. Where it has a signal of its
/// own, there is nothing to look at.
fn is_trap(at: usize) -> bool {
    let trap: &[u8] = match std::env::consts::ARCH {
        "x86_64" => &[0x0f, 0x0b],
        "riscv64" => &[0x73, 0x10, 0x00, 0xc0],
        _ => return false,
    };
    let mut bytes = [0u8; 4];
    let local = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: trap.len() };
    let remote = libc::iovec { iov_base: at as *mut c_void, iov_len: trap.len() };
    // SAFETY: the local bytes are ours; what cannot be read of the others is left out.
    unsafe { libc::process_vm_readv(libc::getpid(), &local, 1, &remote, 1, 0) };
    bytes.starts_with(trap)
}

/// Words of the stack from `top` on, or from the next readable page: after an overflow, `top` is in the guard area.
fn read_stack(top: usize) -> Vec<usize> {
    let mut words = vec![0usize; STACK_WORDS];
    let mut from = top & !7;
    for _ in 0..=crate::stack::GUARD / 4096 {
        let local = libc::iovec { iov_base: words.as_mut_ptr().cast(), iov_len: STACK_WORDS * 8 };
        let remote = libc::iovec { iov_base: from as *mut c_void, iov_len: STACK_WORDS * 8 };
        // SAFETY: the local vector is ours; what cannot be read of the other is left out.
        let n = unsafe { libc::process_vm_readv(libc::getpid(), &local, 1, &remote, 1, 0) };
        if n > 0 {
            words.truncate(n as usize / 8);
            return words;
        }
        from = (from | 4095) + 1;
    }
    Vec::new()
}

// Note [What the handler may do]
//
// It calls only functions of the C library that POSIX lists as async-signal-safe (write, nanosleep, pause, signal,
// raise, _exit) and plain system calls; it allocates nothing and takes no lock. Its statics are lock-free atomics. The
// thread's guard area is a thread-local without destructor or lazy initialization, written before the thread runs the
// program: reading it is a load. It has a stack of its own, so it also runs when the program's is full.
//
// The reporter is an ordinary thread that runs while the faulting one waits in the handler. It may allocate and print;
// if the faulting thread holds a lock needed for that, the report hangs, and after some seconds the handler gives up
// with a fixed text. The program's standard output is flushed only if no thread is just writing to it.
