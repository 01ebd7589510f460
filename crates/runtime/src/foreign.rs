//! Calls of C functions whose types are known only at run time, and lookup of such functions.
//!
//! Arguments are scalars and pointers. The C conventions of x86-64 (System V) and AArch64 (AAPCS64) pass them in
//! registers by class (six or eight for integers, eight for floats) and the rest on the stack, in order, eight bytes
//! each. So one function type with all registers and enough stack serves every signature: registers and stack that the
//! callee does not read may hold anything. (libffi would do the same, but its build needs `make` and fails in folders
//! with a space in their name.)

use std::ffi::{CString, c_void};
use std::path::Path;

/// A scalar type of C.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FfiType {
    /// No value; a result only.
    Void,
    /// `bool`: one byte, 0 or 1.
    Bool,
    /// `int8_t`.
    I8,
    /// `int16_t`.
    I16,
    /// `int32_t`.
    I32,
    /// `int64_t`.
    I64,
    /// `uint8_t`.
    U8,
    /// `uint16_t`.
    U16,
    /// `uint32_t`.
    U32,
    /// `uint64_t`.
    U64,
    /// `_Float16`: IEEE-754 half precision.
    F16,
    /// `float`.
    F32,
    /// `double`.
    F64,
    /// A pointer, to data or to a function.
    Ptr,
}

impl FfiType {
    fn is_float(self) -> bool {
        matches!(self, FfiType::F16 | FfiType::F32 | FfiType::F64)
    }

    /// The value in 64 bits as the conventions require: sign-extended or zero-extended.
    fn extend(self, bits: u64) -> u64 {
        match self {
            FfiType::Void => 0,
            FfiType::Bool => bits & 1,
            FfiType::I8 => bits as i8 as u64,
            FfiType::I16 => bits as i16 as u64,
            FfiType::I32 => bits as i32 as u64,
            FfiType::U8 => bits as u8 as u64,
            FfiType::U16 | FfiType::F16 => bits as u16 as u64,
            FfiType::U32 | FfiType::F32 => bits as u32 as u64,
            FfiType::I64 | FfiType::U64 | FfiType::F64 | FfiType::Ptr => bits,
        }
    }
}

/// Maximal number of arguments on the stack of a foreign call.
const STACK: usize = 32;
#[cfg(target_arch = "x86_64")]
const INT_REGS: usize = 6;
#[cfg(not(target_arch = "x86_64"))]
const INT_REGS: usize = 8;
const FLOAT_REGS: usize = 8;

/// Calls the C function at `addr`. Arguments and result are bits, floats in the low bits. `None` if there are too many
/// arguments.
///
/// # Safety
/// `addr` is a C function of that signature, and it may be called with these arguments.
pub unsafe fn call_foreign(addr: usize, args: &[(FfiType, u64)], ret: FfiType) -> Option<u64> {
    let mut ints = [0u64; 8];
    let mut floats = [0f64; FLOAT_REGS];
    let mut stack = [0u64; STACK];
    let (mut n_ints, mut n_floats, mut n_stack) = (0, 0, 0);
    for &(ty, bits) in args {
        let bits = ty.extend(bits);
        if ty.is_float() && n_floats < FLOAT_REGS {
            floats[n_floats] = f64::from_bits(bits);
            n_floats += 1;
        } else if !ty.is_float() && n_ints < INT_REGS {
            ints[n_ints] = bits;
            n_ints += 1;
        } else {
            *stack.get_mut(n_stack)? = bits;
            n_stack += 1;
        }
    }
    // SAFETY: the caller's promise; see the file's header for why surplus registers and stack do no harm.
    unsafe {
        if ret.is_float() {
            let result: f64 = call(addr, &ints, &floats, &stack, n_stack);
            Some(ret.extend(result.to_bits()))
        } else {
            let result: u64 = call(addr, &ints, &floats, &stack, n_stack);
            Some(ret.extend(result))
        }
    }
}

/// Calls the C function at `addr` for a program under checked execution: memory that is passed to it counts as
/// initialized. The program's declaration of the signature is trusted, as in compiled code; there is no other safety.
pub fn call_checked(
    memory: &mut crate::CheckedMemory,
    addr: usize,
    args: &[(FfiType, u64)],
    ret: FfiType,
) -> Result<u64, String> {
    for &(ty, bits) in args {
        if ty == FfiType::Ptr {
            memory.hand_out(bits as usize);
        }
    }
    // SAFETY: running a program means trusting its declarations of foreign functions.
    unsafe { call_foreign(addr, args, ret) }.ok_or_else(|| "it has too many arguments".into())
}

macro_rules! call_with {
    ($addr:ident, $R:ty, $ints:ident, $floats:ident, $($stack:expr),*) => {{
        #[cfg(target_arch = "x86_64")]
        type F<R> = unsafe extern "C" fn(
            u64, u64, u64, u64, u64, u64, f64, f64, f64, f64, f64, f64, f64, f64 $(, call_with!(@ty $stack))*
        ) -> R;
        #[cfg(not(target_arch = "x86_64"))]
        type F<R> = unsafe extern "C" fn(
            u64, u64, u64, u64, u64, u64, u64, u64, f64, f64, f64, f64, f64, f64, f64, f64 $(, call_with!(@ty $stack))*
        ) -> R;
        // SAFETY: the caller's promise: it is a C function; the header says why this type fits any.
        unsafe {
            let f = std::mem::transmute::<*const c_void, F<$R>>($addr as *const c_void);
            let [f0, f1, f2, f3, f4, f5, f6, f7] = *$floats;
            #[cfg(target_arch = "x86_64")]
            {
                let [a, b, c, d, e, g, ..] = *$ints;
                f(a, b, c, d, e, g, f0, f1, f2, f3, f4, f5, f6, f7 $(, $stack)*)
            }
            #[cfg(not(target_arch = "x86_64"))]
            {
                let [a, b, c, d, e, g, h, i] = *$ints;
                f(a, b, c, d, e, g, h, i, f0, f1, f2, f3, f4, f5, f6, f7 $(, $stack)*)
            }
        }
    }};
    (@ty $e:expr) => { u64 };
}

/// # Safety
/// As for [`call_foreign`].
unsafe fn call<R>(addr: usize, ints: &[u64; 8], floats: &[f64; FLOAT_REGS], s: &[u64; STACK], n_stack: usize) -> R {
    if n_stack == 0 {
        call_with!(addr, R, ints, floats,)
    } else if n_stack <= 8 {
        call_with!(addr, R, ints, floats, s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7])
    } else {
        call_with!(
            addr, R, ints, floats, s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7], s[8], s[9], s[10], s[11], s[12],
            s[13], s[14], s[15], s[16], s[17], s[18], s[19], s[20], s[21], s[22], s[23], s[24], s[25], s[26], s[27],
            s[28], s[29], s[30], s[31]
        )
    }
}

/// A shared library, loaded for the rest of the process.
pub struct Library {
    handle: *mut c_void,
}

// SAFETY: the handle is only given to `dlsym`, which may be called from any thread.
unsafe impl Send for Library {}
// SAFETY: as above.
unsafe impl Sync for Library {}

impl Library {
    /// Loads a shared library; the error is the loader's message.
    pub fn open(path: &Path) -> Result<Library, String> {
        // A name without a slash would be searched for in the system's folders.
        let path = path.canonicalize().map_err(|e| format!("cannot load `{}`: {e}", path.display()))?;
        let name = CString::new(path.as_os_str().as_encoded_bytes()).map_err(|e| e.to_string())?;
        // SAFETY: the name is a C string; the library's initializers run, as the user asked.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
        if handle.is_null() {
            // SAFETY: after a failure the message is there, until the next call of the loader.
            let message = unsafe { std::ffi::CStr::from_ptr(libc::dlerror()) };
            return Err(format!("cannot load `{}`: {}", path.display(), message.to_string_lossy()));
        }
        Ok(Library { handle })
    }

    /// The address of a symbol of the library.
    pub fn symbol(&self, name: &str) -> Option<usize> {
        let name = CString::new(name).ok()?;
        // SAFETY: the handle is a loaded library's, the name a C string.
        let address = unsafe { libc::dlsym(self.handle, name.as_ptr()) } as usize;
        (address != 0).then_some(address)
    }
}

/// The address of a function by its name: the runtime's, one of `libraries`, or any in this process.
pub fn find_symbol(name: &str, libraries: &[Library]) -> Option<usize> {
    let own = crate::symbols();
    if let Ok(i) = own.binary_search_by_key(&name, |s| s.0) {
        return Some(own[i].1);
    }
    if let Some(address) = libraries.iter().find_map(|l| l.symbol(name)) {
        return Some(address);
    }
    Library { handle: libc::RTLD_DEFAULT }.symbol(name)
}

/// Names and addresses of the C library's math functions.
pub(crate) fn math_symbols() -> Vec<(&'static str, usize)> {
    macro_rules! table {
        ($($f:ident: $($arg:ty),* => $ret:ty;)*) => {{
            unsafe extern "C" { $(fn $f($(_: $arg),*) -> $ret;)* }
            vec![$((stringify!($f), $f as *const () as usize)),*]
        }};
    }
    table! {
        sin: f64 => f64; cos: f64 => f64; tan: f64 => f64; asin: f64 => f64; acos: f64 => f64; atan: f64 => f64;
        sinh: f64 => f64; cosh: f64 => f64; tanh: f64 => f64; exp: f64 => f64; exp2: f64 => f64; log: f64 => f64;
        log2: f64 => f64; log10: f64 => f64; log1p: f64 => f64; expm1: f64 => f64; cbrt: f64 => f64; erf: f64 => f64;
        asinh: f64 => f64; acosh: f64 => f64; atanh: f64 => f64; tgamma: f64 => f64; lgamma: f64 => f64;
        sinf: f32 => f32; cosf: f32 => f32; tanf: f32 => f32; asinf: f32 => f32; acosf: f32 => f32; atanf: f32 => f32;
        sinhf: f32 => f32; coshf: f32 => f32; tanhf: f32 => f32; expf: f32 => f32; exp2f: f32 => f32; logf: f32 => f32;
        log2f: f32 => f32; log10f: f32 => f32; log1pf: f32 => f32; expm1f: f32 => f32; cbrtf: f32 => f32;
        erff: f32 => f32; asinhf: f32 => f32; acoshf: f32 => f32; atanhf: f32 => f32; tgammaf: f32 => f32;
        lgammaf: f32 => f32;
        pow: f64, f64 => f64; atan2: f64, f64 => f64; hypot: f64, f64 => f64; fmod: f64, f64 => f64;
        remainder: f64, f64 => f64; nextafter: f64, f64 => f64; ldexp: f64, i32 => f64;
        powf: f32, f32 => f32; atan2f: f32, f32 => f32; hypotf: f32, f32 => f32; fmodf: f32, f32 => f32;
        remainderf: f32, f32 => f32; nextafterf: f32, f32 => f32; ldexpf: f32, i32 => f32;
        sqrt: f64 => f64; sqrtf: f32 => f32; fma: f64, f64, f64 => f64; fmaf: f32, f32, f32 => f32;
        floor: f64 => f64; ceil: f64 => f64; trunc: f64 => f64; round: f64 => f64; rint: f64 => f64; nearbyint: f64 => f64;
        floorf: f32 => f32; ceilf: f32 => f32; truncf: f32 => f32; roundf: f32 => f32; rintf: f32 => f32;
        nearbyintf: f32 => f32;
    }
}

/// The error function, which Rust's floats do not have.
pub trait ErrorFunction {
    /// The C library's `erf` or `erff`.
    fn error_function(self) -> Self;
}

macro_rules! error_functions {
    ($($ty:ident: $f:ident;)*) => {
        $(impl ErrorFunction for $ty {
            fn error_function(self) -> $ty {
                unsafe extern "C" {
                    fn $f(_: $ty) -> $ty;
                }
                // SAFETY: it takes any number.
                unsafe { $f(self) }
            }
        })*
    };
}
error_functions!(f32: erff; f64: erf;);

#[cfg(test)]
mod tests {
    use super::*;

    extern "C" fn mixed(a: i8, b: f32, c: u16, d: f64, e: i64, f: i32, g: i32, h: u8, i: i16, j: f32) -> f64 {
        a as f64 + b as f64 * 10.0 + c as f64 + d + e as f64 + (f * g) as f64 + h as f64 * 1000.0 + i as f64 + j as f64
    }

    extern "C" fn many_floats(a: f64, b: f64, c: f64, d: f64, e: f64, f: f64, g: f64, h: f64, i: f64, j: f32) -> f32 {
        (a + b + c + d + e + f + g + h + i) as f32 * j
    }

    extern "C" fn narrow(a: i8) -> i8 {
        a.wrapping_mul(3)
    }

    fn f(x: f64) -> (FfiType, u64) {
        (FfiType::F64, x.to_bits())
    }

    fn f32(x: f32) -> (FfiType, u64) {
        (FfiType::F32, x.to_bits() as u64)
    }

    #[test]
    fn arguments_reach_registers_and_stack() {
        let args = [
            (FfiType::I8, -3i8 as u8 as u64),
            f32(0.5),
            (FfiType::U16, 7),
            f(0.25),
            (FfiType::I64, -1i64 as u64),
            (FfiType::I32, 6),
            (FfiType::I32, 7),
            (FfiType::U8, 9),
            (FfiType::I16, -2i16 as u16 as u64),
            f32(1.5),
        ];
        // SAFETY: the signatures are those of the functions.
        unsafe {
            let result = call_foreign(mixed as *const () as usize, &args, FfiType::F64);
            let expected = mixed(-3, 0.5, 7, 0.25, -1, 6, 7, 9, -2, 1.5);
            assert_eq!(result.map(f64::from_bits), Some(expected));
            let mut args: Vec<_> = (1..10).map(|i| f(i as f64)).collect();
            args.push(f32(2.0));
            let result = call_foreign(many_floats as *const () as usize, &args, FfiType::F32);
            assert_eq!(result, Some(90f32.to_bits() as u64));
            assert_eq!(
                call_foreign(narrow as *const () as usize, &[(FfiType::I8, 0x55)], FfiType::I8),
                Some(-1i64 as u64)
            );
            let too_many = vec![(FfiType::I32, 0); 100];
            assert_eq!(call_foreign(narrow as *const () as usize, &too_many, FfiType::Void), None);
        }
    }

    #[test]
    fn symbols_are_found() {
        let sin = find_symbol("sin", &[]).expect("sin");
        // SAFETY: `sin` takes and returns a double.
        let result = unsafe { call_foreign(sin, &[f(1.0)], FfiType::F64) };
        assert_eq!(result.map(f64::from_bits), Some(1f64.sin()));
        assert!(find_symbol("malloc", &[]).is_some());
        assert!(find_symbol("nobody_has_this", &[]).is_none());
        assert!(Library::open(Path::new("/no/such/lib.so")).is_err());
    }
}
