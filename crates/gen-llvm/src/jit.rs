//! Runs objects in this process: ORC's LLJIT with the symbols of the runtime, the process, and loaded libraries.

use crate::debuggers;
use crate::diagnostics::bug;
use crate::locate::{self, Place};
use crate::module::LlvmModule;
use crate::targets;
use llvm_sys::core::LLVMCreateMemoryBufferWithMemoryRangeCopy;
use llvm_sys::error::{LLVMDisposeErrorMessage, LLVMErrorRef, LLVMGetErrorMessage};
use llvm_sys::orc2::lljit::*;
use llvm_sys::orc2::*;
use nyala_base::diagnostics::{library_not_loaded, undefined_symbol};
use nyala_base::{Diagnostic, Span};
use std::cell::OnceCell;
use std::ffi::{CStr, CString, c_char, c_void};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// A linker and loader for this process. Its code lives as long as this value.
pub struct Jit {
    jit: LLVMOrcLLJITRef,
    /// Errors reported by the session; boxed because the session holds the address.
    reports: Box<Mutex<Vec<String>>>,
    objects: Mutex<Vec<Linked>>,
    /// Those that debuggers know.
    known: Mutex<Vec<debuggers::Known>>,
}

/// An object that was linked.
struct Linked {
    bytes: Vec<u8>,
    /// Where its code is, and the size, once that was asked for; `None` if it has no code.
    code: OnceCell<Option<(u64, u64)>>,
}

impl Linked {
    fn code(&self, jit: &Jit) -> Option<(u64, u64)> {
        *self.code.get_or_init(|| {
            let (size, anchor, anchor_offset) = locate::code(&self.bytes)?;
            Some(((jit.lookup(&anchor).ok()? as u64).wrapping_sub(anchor_offset), size))
        })
    }
}

extern "C" fn report(context: *mut c_void, error: LLVMErrorRef) {
    // SAFETY: `new` registered this function with the address of its reports, which live as long as the session.
    let reports = unsafe { &*context.cast::<Mutex<Vec<String>>>() };
    if let Err(text) = check(error) {
        reports.lock().unwrap_or_else(|e| e.into_inner()).push(text);
    }
}

// SAFETY: LLJIT locks its own state; we only hand over whole objects and look symbols up.
unsafe impl Send for Jit {}
// SAFETY: as above.
unsafe impl Sync for Jit {}

/// The text of an LLVM error, which is consumed; `Ok` for success.
fn check(error: LLVMErrorRef) -> Result<(), String> {
    if error.is_null() {
        return Ok(());
    }
    // SAFETY: the error is not null and consumed exactly once; the message is freed after it was copied.
    unsafe {
        let message = LLVMGetErrorMessage(error);
        let text = CStr::from_ptr(message).to_string_lossy().into_owned();
        LLVMDisposeErrorMessage(message);
        Err(text)
    }
}

fn c_string(text: &str) -> Result<CString, Box<Diagnostic>> {
    CString::new(text).map_err(|_| bug(format!("zero byte in the name {text:?}")))
}

impl Jit {
    /// A linker that knows the runtime's functions, what `libraries` export, and the symbols of this process.
    pub fn new(libraries: &[PathBuf]) -> Result<Jit, Box<Diagnostic>> {
        Jit::with(libraries, &[])
    }

    /// A linker like that of [`Jit::new`], in which these symbols have these addresses, in place of the runtime's.
    pub fn with(libraries: &[PathBuf], symbols: &[(&str, usize)]) -> Result<Jit, Box<Diagnostic>> {
        targets::initialize();
        let mut jit = std::ptr::null_mut();
        // SAFETY: a null builder asks for the defaults.
        check(unsafe { LLVMOrcCreateLLJIT(&mut jit, std::ptr::null_mut()) }).map_err(bug)?;
        let jit = Jit { jit, reports: Box::default(), objects: Mutex::default(), known: Mutex::default() };
        // SAFETY: the reports are boxed and dropped after the session.
        unsafe {
            let session = LLVMOrcLLJITGetExecutionSession(jit.jit);
            LLVMOrcExecutionSessionSetErrorReporter(session, report, (&raw const *jit.reports).cast_mut().cast());
        }
        let own = nyala_runtime::symbols().iter().filter(|s| !symbols.iter().any(|t| t.0 == s.0));
        let all: Vec<(&str, usize)> = own.chain(symbols).copied().collect();
        jit.define(&all)?;
        for library in libraries {
            jit.load(library)?;
        }
        // SAFETY: the JIT lives; the generator becomes the dylib's own.
        unsafe {
            let mut process = std::ptr::null_mut();
            check(LLVMOrcCreateDynamicLibrarySearchGeneratorForProcess(
                &mut process,
                LLVMOrcLLJITGetGlobalPrefix(jit.jit),
                None,
                std::ptr::null_mut(),
            ))
            .map_err(bug)?;
            LLVMOrcJITDylibAddGenerator(LLVMOrcLLJITGetMainJITDylib(jit.jit), process);
        }
        Ok(jit)
    }

    /// Defines symbols by their addresses.
    pub fn define(&self, symbols: &[(&str, usize)]) -> Result<(), Box<Diagnostic>> {
        let mut pairs = Vec::with_capacity(symbols.len());
        for &(name, address) in symbols {
            let name = c_string(name)?;
            pairs.push(LLVMOrcCSymbolMapPair {
                // SAFETY: the JIT lives and the name is a C string; the entry is handed over below.
                Name: unsafe { LLVMOrcLLJITMangleAndIntern(self.jit, name.as_ptr()) },
                Sym: LLVMJITEvaluatedSymbol {
                    Address: address as u64,
                    Flags: LLVMJITSymbolFlags {
                        GenericFlags: LLVMJITSymbolGenericFlags::LLVMJITSymbolGenericFlagsExported as u8
                            | LLVMJITSymbolGenericFlags::LLVMJITSymbolGenericFlagsCallable as u8,
                        TargetFlags: 0,
                    },
                },
            });
        }
        // SAFETY: the pairs live during the call; the unit becomes the dylib's own.
        check(unsafe {
            let unit = LLVMOrcAbsoluteSymbols(pairs.as_mut_ptr(), pairs.len());
            LLVMOrcJITDylibDefine(LLVMOrcLLJITGetMainJITDylib(self.jit), unit)
        })
        .map_err(bug)
    }

    fn load(&self, library: &Path) -> Result<(), Box<Diagnostic>> {
        let fail = |e: String| Box::new(library_not_loaded::error(library, e));
        // The loader would search the system's folders for a relative name without a slash.
        let path = library.canonicalize().map_err(|e| fail(e.to_string()))?;
        let name = CString::new(path.as_os_str().as_encoded_bytes()).map_err(|e| fail(e.to_string()))?;
        let mut generator = std::ptr::null_mut();
        // SAFETY: the JIT lives, the name is a C string; the generator becomes the dylib's own.
        unsafe {
            check(LLVMOrcCreateDynamicLibrarySearchGeneratorForPath(
                &mut generator,
                name.as_ptr(),
                LLVMOrcLLJITGetGlobalPrefix(self.jit),
                None,
                std::ptr::null_mut(),
            ))
            .map_err(fail)?;
            LLVMOrcJITDylibAddGenerator(LLVMOrcLLJITGetMainJITDylib(self.jit), generator);
        }
        Ok(())
    }

    /// Compiles a module, without optimizing it further, and links it.
    pub fn add(&self, module: &LlvmModule) -> Result<(), Box<Diagnostic>> {
        self.add_object(&module.object()?)
    }

    /// Links an object file.
    pub fn add_object(&self, object: &[u8]) -> Result<(), Box<Diagnostic>> {
        self.objects
            .lock()
            .unwrap_or_else(|e| e.into_inner())
            .push(Linked { bytes: object.to_vec(), code: OnceCell::new() });
        // SAFETY: the buffer copies the bytes and becomes the JIT's own.
        check(unsafe {
            let buffer = LLVMCreateMemoryBufferWithMemoryRangeCopy(
                object.as_ptr() as *const c_char,
                object.len(),
                c"nyala".as_ptr(),
            );
            LLVMOrcLLJITAddObjectFile(self.jit, LLVMOrcLLJITGetMainJITDylib(self.jit), buffer)
        })
        .map_err(bug)
    }

    /// The source location of the instruction at `address`, if it belongs to a linked object with debug information.
    pub fn locate(&self, address: usize) -> Option<Place> {
        let objects = self.objects.lock().unwrap_or_else(|e| e.into_inner());
        objects.iter().find_map(|object| {
            let (start, size) = object.code(self)?;
            let offset = (address as u64).wrapping_sub(start);
            if offset < size { locate::find(&object.bytes, offset) } else { None }
        })
    }

    /// Tells debuggers of the objects, as long as this value lives.
    pub fn tell_debuggers(&self) {
        let objects = self.objects.lock().unwrap_or_else(|e| e.into_inner());
        let known = objects.iter().filter_map(|object| debuggers::tell(&object.bytes, object.code(self)?.0));
        self.known.lock().unwrap_or_else(|e| e.into_inner()).extend(known);
    }

    /// Writes the code to a file for `perf inject --jit`, and returns its path. `in_file` turns places in sections of files into
    /// places in files.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn dump(&self, folder: &Path, in_file: &dyn Fn(Place) -> Place) -> std::io::Result<PathBuf> {
        let objects = self.objects.lock().unwrap_or_else(|e| e.into_inner());
        let placed: Vec<(&[u8], u64)> = objects.iter().filter_map(|o| Some((&o.bytes[..], o.code(self)?.0))).collect();
        debuggers::dump(&placed, folder, in_file)
    }

    /// The address of a symbol; links the objects it needs. The error names undefined symbols.
    pub fn lookup(&self, name: &str) -> Result<usize, Box<Diagnostic>> {
        let symbol = c_string(name)?;
        let mut address = 0;
        // SAFETY: the JIT lives and the name is a C string.
        check(unsafe { LLVMOrcLLJITLookup(self.jit, &mut address, symbol.as_ptr()) }).map_err(|e| {
            let reports = std::mem::take(&mut *self.reports.lock().unwrap_or_else(|e| e.into_inner()));
            let e = if reports.is_empty() { e } else { reports.join("; ") };
            Box::new(undefined_symbol::error(Span::NONE, format!("cannot link `{name}`: {e}")))
        })?;
        Ok(address as usize)
    }
}

impl Drop for Jit {
    fn drop(&mut self) {
        self.known.get_mut().unwrap_or_else(|e| e.into_inner()).clear();
        // SAFETY: made by `new`, disposed of once; an error here has nobody to tell.
        let _ = check(unsafe { LLVMOrcDisposeLLJIT(self.jit) });
    }
}

/// Runs the C function at `address` on the program's stack. Its type is `int()`, or `int(int, char**)` with the
/// arguments that the runtime was given, or either without result. Returns the result, or 0.
///
/// # Errors
/// No memory for the stack.
pub fn call_entry(address: usize, takes_args: bool, has_result: bool) -> Result<i32, String> {
    nyala_runtime::call_on_large_stack(Box::new(move || {
        // SAFETY: the caller says which of these types the function has; it lives as long as its JIT.
        let result = unsafe {
            if takes_args {
                let f: extern "C" fn(i32, *const *const c_char) -> i32 = std::mem::transmute(address);
                f(nyala_runtime::nyala_argc(), nyala_runtime::nyala_argv())
            } else {
                let f: extern "C" fn() -> i32 = std::mem::transmute(address);
                f()
            }
        };
        nyala_runtime::nyala_flush();
        if has_result { result } else { 0 }
    }))
}

/// Calls the C function at `address` `n` times in a row on the program's stack, and returns the nanoseconds that this took. It
/// has no parameters, and no result or a number, which is ignored.
///
/// # Errors
/// No memory for the stack.
pub fn time_calls(address: usize, n: u64) -> Result<u64, String> {
    let taken = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
    let result = taken.clone();
    nyala_runtime::call_on_large_stack(Box::new(move || {
        // SAFETY: the caller says that the function has this type; it lives as long as its JIT.
        let f: extern "C" fn() = unsafe { std::mem::transmute(address) };
        let start = std::time::Instant::now();
        (0..n).for_each(|_| f());
        let ns = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        result.store(ns, std::sync::atomic::Ordering::Relaxed);
        nyala_runtime::nyala_flush();
        0
    }))?;
    Ok(taken.load(std::sync::atomic::Ordering::Relaxed))
}
