//! Time, arguments of the program, and abnormal ends.

use crate::guard::{Ending, end};
use std::ffi::{CStr, CString, c_char};
use std::sync::Mutex;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Instant;

/// Nanoseconds of a monotonic clock since some fixed moment of this process.
#[unsafe(no_mangle)]
pub extern "C" fn nyala_time_ns() -> i64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as i64
}

/// Nanoseconds since 1970-01-01 00:00 UTC, leap seconds not counted; negative before.
#[unsafe(no_mangle)]
pub extern "C" fn nyala_unix_time_ns() -> i64 {
    match std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH) {
        Ok(since) => since.as_nanos() as i64,
        Err(before) => -(before.duration().as_nanos() as i64),
    }
}

/// Suspends this thread for at least `ns` nanoseconds; not at all if the number is negative.
#[unsafe(no_mangle)]
pub extern "C" fn nyala_sleep_ns(ns: i64) {
    std::thread::sleep(std::time::Duration::from_nanos(u64::try_from(ns).unwrap_or(0)));
}

/// Takes one of the values that [`nyala_compile`] makes a function of, after those before it.
#[unsafe(no_mangle)]
pub extern "C" fn nyala_compile_value(_bits: u64) {}

/// The address of a function that is made while the program runs; 0 where there is no compiler: the program then goes on with the
/// function that it would have been made of. Code that runs in memory of a process with a compiler calls functions of that.
#[unsafe(no_mangle)]
pub extern "C" fn nyala_compile(_site: i32) -> u64 {
    0
}

/// The value of an environment variable; null if it is not set.
///
/// # Safety
/// `name` is null or points to bytes that end with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_env(name: *const u8) -> *const u8 {
    if name.is_null() {
        return std::ptr::null();
    }
    // SAFETY: the caller's promise. Nothing here changes the environment.
    unsafe { libc::getenv(name.cast()) as *const u8 }
}

/// Lets a closed pipe end this process, as it ends C programs; Rust's runtime turned it into an error of each write.
#[cfg(unix)]
pub fn end_by_closed_pipes() {
    // SAFETY: sets the system's own handling.
    unsafe {
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
    }
}

static ASKED_TO_STOP: AtomicI32 = AtomicI32::new(0);

/// From now on the first request to stop (interrupt, termination, hangup) is only noted; a second one ends the process.
#[cfg(unix)]
pub fn note_requests_to_stop() {
    extern "C" fn note(signal: libc::c_int) {
        ASKED_TO_STOP.store(signal, Ordering::Relaxed);
    }
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: the action is wholly initialized; the handler stores a number, no more. Requests that are ignored stay so.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            if libc::sigaction(signal, std::ptr::null(), &mut action) != 0 || action.sa_sigaction == libc::SIG_IGN {
                continue;
            }
            action = std::mem::zeroed();
            action.sa_sigaction = note as *const () as usize;
            action.sa_flags = libc::SA_RESTART | libc::SA_RESETHAND;
            libc::sigaction(signal, &action, std::ptr::null_mut());
        }
    }
}

/// The signal by which this process was asked to stop, since [`note_requests_to_stop`]; else 0.
pub fn asked_to_stop() -> i32 {
    ASKED_TO_STOP.load(Ordering::Relaxed)
}

/// Prints `message` to standard error and ends the process by `abort`.
///
/// # Safety
/// `message` is null or points to bytes that end with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_panic(message: *const u8) -> ! {
    // SAFETY: the caller's promise.
    let text = if message.is_null() { c"" } else { unsafe { CStr::from_ptr(message.cast()) } };
    end(panic(None, &text.to_string_lossy(), ""))
}

/// A panic at a place, with the calls that led there, a line each.
pub(crate) fn panic(place: Option<&str>, message: &str, calls: &str) -> Ending {
    let at = place.map_or(String::new(), |place| format!(" at {place}"));
    let mut text = format!("panic{at}: {}\n", printable(message));
    if !calls.is_empty() {
        text.push_str(calls);
        text.push('\n');
    }
    Ending { code: "panic", message: message.into(), place: place.map(String::from), text, exit: None }
}

/// A message as a terminal may show it, with control characters replaced as in the interpreter's diagnostics: by the pictures of
/// Unicode that stand for them. Other lines than the first are indented, so that none seems to be another message.
pub(crate) fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\n    "),
            '\t' => out.push_str("    "),
            '\0'..='\x1f' => out.extend(char::from_u32(0x2400 + u32::from(c))),
            '\x7f' => out.push('\u{2421}'),
            '\u{200d}' => {}
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => out.push(char::REPLACEMENT_CHARACTER),
            c => out.push(c),
        }
    }
    out
}

/// Like [`nyala_panic`], with the place in the program, `file:line:column`, and the calls that led there, a line each.
///
/// # Safety
/// Both are null or point to bytes that end with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_panic_at(place: *const u8, message: *const u8) -> ! {
    // SAFETY: the caller's promise.
    let text = |p: *const u8| if p.is_null() { c"" } else { unsafe { CStr::from_ptr(p.cast()) } };
    let place = text(place).to_string_lossy();
    let (place, calls) = place.split_once('\n').unwrap_or((&place, ""));
    end(panic(Some(place), &text(message).to_string_lossy(), calls))
}

/// Called by compiled code where a continuation would leave a function whose caller does not expect that.
#[unsafe(no_mangle)]
pub extern "C" fn nyala_dead_continuation() -> ! {
    fail("a continuation is called whose function has returned, or which another thread runs")
}

/// Ends the process like [`nyala_panic`], for the runtime's own functions.
pub(crate) fn fail(message: &str) -> ! {
    end(panic(None, message, ""))
}

/// Ends the process with this exit code, after flushing the output.
#[unsafe(no_mangle)]
pub extern "C" fn nyala_exit(code: i32) -> ! {
    end(Ending::exit(code))
}

/// The effective user id of this process, which its file accesses are checked against.
#[cfg(unix)]
pub fn user() -> u32 {
    // SAFETY: asks the system.
    unsafe { libc::geteuid() }
}

/// Pointers to the arguments' texts, followed by a null.
struct Args {
    pointers: Vec<*const c_char>,
}

// SAFETY: the texts are leaked and never written.
unsafe impl Send for Args {}

static ARGS: Mutex<Args> = Mutex::new(Args { pointers: Vec::new() });

/// Sets the program's arguments; the first is its name. A zero byte ends an argument.
pub fn set_args(args: &[String]) {
    let mut pointers: Vec<*const c_char> = args
        .iter()
        .map(|a| {
            let bytes: Vec<u8> = a.bytes().take_while(|&b| b != 0).collect();
            // The program may keep the pointer for as long as the process lives.
            CString::new(bytes).unwrap_or_default().into_raw() as *const c_char
        })
        .collect();
    pointers.push(std::ptr::null());
    // Leaked for the same reason.
    ARGS.lock().unwrap_or_else(|e| e.into_inner()).pointers = pointers.leak().to_vec();
}

/// Sets the arguments from `argc` and `argv` of `main`.
///
/// # Safety
/// `argv` points to `argc` texts that live as long as the process.
pub(crate) unsafe fn set_argv(argc: i32, argv: *const *const c_char) {
    let n = if argv.is_null() { 0 } else { usize::try_from(argc).unwrap_or(0) };
    // SAFETY: the caller's promise; nothing is read of no arguments.
    let mut pointers = (0..n).map(|i| unsafe { *argv.add(i) }).collect::<Vec<_>>();
    pointers.push(std::ptr::null());
    ARGS.lock().unwrap_or_else(|e| e.into_inner()).pointers = pointers;
}

/// Number of the program's arguments, including its name.
#[unsafe(no_mangle)]
pub extern "C" fn nyala_argc() -> i32 {
    (ARGS.lock().unwrap_or_else(|e| e.into_inner()).pointers.len() as i32 - 1).max(0)
}

/// The text of the argument `i`, 0 being the program's name; an empty text if there is none.
#[unsafe(no_mangle)]
pub extern "C" fn nyala_arg(i: i32) -> *const c_char {
    let args = ARGS.lock().unwrap_or_else(|e| e.into_inner());
    let found = usize::try_from(i).ok().and_then(|i| args.pointers.get(i).copied());
    found.filter(|p| !p.is_null()).unwrap_or(c"".as_ptr())
}

/// The arguments' texts, followed by a null.
#[unsafe(no_mangle)]
pub extern "C" fn nyala_argv() -> *const *const c_char {
    static EMPTY: usize = 0;
    let args = ARGS.lock().unwrap_or_else(|e| e.into_inner());
    if args.pointers.is_empty() {
        return (&raw const EMPTY).cast();
    }
    args.pointers.clone().leak().as_ptr()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_of_messages_are_replaced() {
        let printed = printable("a\tb\x1b[31m\nc\r\x7f\u{202e}\u{e4}\\");
        assert_eq!(printed, "a    b\u{241b}[31m\n    c\u{240d}\u{2421}\u{fffd}\u{e4}\\");
    }

    #[test]
    fn arguments_arrive() {
        set_args(&["prog".into(), "a b".into()]);
        assert_eq!(nyala_argc(), 2);
        // SAFETY: two texts were set.
        unsafe {
            let argv = nyala_argv();
            assert_eq!(CStr::from_ptr(*argv.add(1)), c"a b");
            assert!((*argv.add(2)).is_null());
            assert_eq!(CStr::from_ptr(nyala_arg(1)), c"a b");
            for i in [-1, 2, 3] {
                assert_eq!(CStr::from_ptr(nyala_arg(i)), c"");
            }
        }
    }

    #[test]
    fn time_goes_on() {
        let start = nyala_time_ns();
        std::thread::sleep(std::time::Duration::from_millis(2));
        assert!(nyala_time_ns() - start >= 2_000_000);
        nyala_sleep_ns(-5);
        nyala_sleep_ns(1_000_000);
        assert!(nyala_time_ns() - start >= 3_000_000);
        assert!(nyala_unix_time_ns() > 1_700_000_000_000_000_000);
    }

    #[test]
    fn variables_are_found() {
        // SAFETY: the names end with a zero byte.
        unsafe {
            assert!(!nyala_env(c"PATH".as_ptr().cast()).is_null());
            assert!(nyala_env(c"NYALA NO SUCH VARIABLE".as_ptr().cast()).is_null());
            assert!(nyala_env(std::ptr::null()).is_null());
        }
    }
}
