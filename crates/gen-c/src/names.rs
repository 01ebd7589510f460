//! Names in C text: the source's where they are free, else with a number; and the words that no name may be. Separate,
//! since types, functions and variables all take names.

use rustc_hash::{FxHashMap, FxHashSet};

/// Hands out names that differ from each other.
#[derive(Clone, Default)]
pub(crate) struct Names {
    used: FxHashSet<String>,
    next: FxHashMap<String, u32>,
}

impl Names {
    /// No name that is handed out is one of these.
    pub fn without(words: impl IntoIterator<Item = String>) -> Names {
        Names { used: words.into_iter().collect(), next: FxHashMap::default() }
    }

    /// Keeps a name from being handed out. False if it is taken.
    pub fn reserve(&mut self, name: &str) -> bool {
        self.used.insert(name.to_string())
    }

    /// A free name close to the wanted one, or to `otherwise` if that has no letters.
    pub fn pick(&mut self, wanted: &str, otherwise: &str) -> String {
        let mut name = clean(wanted);
        if name.is_empty() {
            name = otherwise.to_string();
        } else if is_ours(&name) {
            name.push('_');
        }
        self.pick_clean(name)
    }

    /// A free name close to one that is an identifier.
    pub fn pick_clean(&mut self, name: String) -> String {
        if self.used.insert(name.clone()) {
            return name;
        }
        let joint = if name.ends_with(|c: char| c.is_ascii_digit()) { "_" } else { "" };
        let next = self.next.entry(name.clone()).or_insert(1);
        loop {
            *next += 1;
            let numbered = format!("{name}{joint}{next}");
            if self.used.insert(numbered.clone()) {
                return numbered;
            }
        }
    }
}

/// The letters, digits and underscores of a name that can begin an identifier. Two underscores in a row, and one at the
/// start, are the C compiler's.
pub(crate) fn clean(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        let c = if c.is_ascii_alphanumeric() { c } else { '_' };
        if out.is_empty() && (c.is_ascii_digit() || c == '_') || c == '_' && out.ends_with('_') {
            continue;
        }
        out.push(c);
    }
    out.trim_end_matches('_').to_string()
}

/// Whether a name looks like one that types and helper functions have: no name of a program may.
fn is_ours(name: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let is_prim = |text: &str| nyala_ir::Prim::from_name(text).is_some();
    let is_type = |text: &str| {
        let text = text.strip_suffix("_ptr").unwrap_or(text);
        is_prim(text) || text.rsplit_once('x').is_some_and(|(prim, n)| is_prim(prim) && is_number(n))
    };
    let last = name.rsplit('_').next().unwrap_or(name);
    is_type(name)
        || is_type(last)
        || last == "ptr"
        || last.strip_prefix("array").is_some_and(is_number)
        || ["tuple", "closure", "aggregate"].iter().any(|p| name.starts_with(p))
}

/// Keywords of C and C++; types, macros and functions of the headers that a text includes, as glibc has them; functions that compilers know
/// by name.
pub(crate) const RESERVED: &str = "\
alignas alignof and asm auto bool break case catch char class const continue default delete do double else enum \
explicit export extern false float for friend goto if inline int long mutable namespace new not nullptr operator \
or private protected public register restrict return short signed sizeof static struct switch template this \
throw true try typedef typeid typename typeof union unsigned using virtual void volatile while xor linux unix \
main int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t intptr_t uintptr_t size_t ptrdiff_t \
wchar_t float_t double_t NAN INFINITY NULL HUGE_VAL M_PI M_E OVERFLOW UNDERFLOW DOMAIN SING PLOSS TLOSS EOF \
errno signgam code environ acos acosf acosh acoshf asin asinf asinh asinhf atan atan2 atan2f atanf atanh atanhf \
cbrt cbrtf ceil ceilf copysign copysignf cos cosf cosh coshf drem dremf erf erfc erfcf erff exp exp10 exp10f \
exp2 exp2f expf expm1 expm1f fabs fabsf fdim fdimf floor floorf fma fmaf fmax fmaxf fmin fminf fmod fmodf \
fpclassify frexp frexpf gamma gammaf hypot hypotf ilogb ilogbf isfinite isgreater isinf isless isnan isnormal \
isunordered j0 j0f j1 j1f jn jnf ldexp ldexpf lgamma lgammaf llrint llrintf llround llroundf log log10 log10f \
log1p log1pf log2 log2f logb logbf logf lrint lrintf lround lroundf modf modff nan nanf nearbyint nearbyintf \
nextafter nextafterf nexttoward pow pow10 powf remainder remainderf remquo remquof rint rintf round roundeven \
roundf scalb scalbln scalbn scalbnf signbit significand sin sincos sinf sinh sinhf sqrt sqrtf tan tanf tanh \
tanhf tgamma tgammaf trunc truncf y0 y0f y1 y1f yn ynf cabs carg cexp cimag clog conj cpow cproj creal csin \
csqrt abort abs aligned_alloc alloca atexit atof atoi bcmp bcopy bsearch bzero calloc div dprintf execl execle \
execlp execv execve execvp exit ffs fork fprintf fputc fputs free fscanf fwrite getchar getenv gets gettext \
imaxabs index isalnum isalpha isascii isblank iscntrl isdigit isgraph islower isprint ispunct isspace isupper \
isxdigit labs ldiv llabs malloc memccpy memchr memcmp memcpy memmem memmove mempcpy memrchr memset \
posix_memalign printf putc putchar puts qsort raise rand rawmemchr realloc rindex scanf setjmp signal snprintf \
sprintf srand sscanf stpcpy stpncpy strcasecmp strcat strchr strcmp strcoll strcpy strcspn strdup strerror \
strfmon strftime strlen strncasecmp strncat strncmp strncpy strndup strnlen strpbrk strrchr strsep strsignal \
strspn strstr strtod strtok strtol strxfrm swab system toascii tolower toupper vfprintf vprintf vscanf vsnprintf \
vsprintf basename strverscmp strlcpy strlcat explicit_bzero longjmp putenv \
BIG_ENDIAN BUS_ADRALN BUS_ADRERR BUS_MCEERR_AO BUS_MCEERR_AR BUS_OBJERR BYTE_ORDER CLD_CONTINUED CLD_DUMPED \
CLD_EXITED CLD_KILLED CLD_STOPPED CLD_TRAPPED EXIT_FAILURE EXIT_SUCCESS FD_CLR FD_ISSET FD_SET FD_SETSIZE \
FD_ZERO FPE_CONDTRAP FPE_FLTDIV FPE_FLTINV FPE_FLTOVF FPE_FLTRES FPE_FLTSUB FPE_FLTUND FPE_FLTUNK FPE_INTDIV \
FPE_INTOVF FP_ILOGB0 FP_ILOGBNAN FP_INFINITE FP_NAN FP_NORMAL FP_SUBNORMAL FP_XSTATE_MAGIC1 FP_XSTATE_MAGIC2 \
FP_XSTATE_MAGIC2_SIZE FP_ZERO HUGE_VALF HUGE_VALL ILL_BADIADDR ILL_BADSTK ILL_COPROC ILL_ILLADR ILL_ILLOPC \
ILL_ILLOPN ILL_ILLTRP ILL_PRVOPC ILL_PRVREG INT16_C INT16_MAX INT16_MIN INT32_C INT32_MAX INT32_MIN INT64_C \
INT64_MAX INT64_MIN INT8_C INT8_MAX INT8_MIN INTMAX_C INTMAX_MAX INTMAX_MIN INTPTR_MAX INTPTR_MIN \
INT_FAST16_MAX INT_FAST16_MIN INT_FAST32_MAX INT_FAST32_MIN INT_FAST64_MAX INT_FAST64_MIN INT_FAST8_MAX \
INT_FAST8_MIN INT_LEAST16_MAX INT_LEAST16_MIN INT_LEAST32_MAX INT_LEAST32_MIN INT_LEAST64_MAX \
INT_LEAST64_MIN INT_LEAST8_MAX INT_LEAST8_MIN LITTLE_ENDIAN MATH_ERREXCEPT MATH_ERRNO MB_CUR_MAX MINSIGSTKSZ \
M_1_PI M_2_PI M_2_SQRTPI M_LN10 M_LN2 M_LOG10E M_LOG2E M_PI_2 M_PI_4 M_SQRT1_2 M_SQRT2 NFDBITS NGREG NSIG \
PDP_ENDIAN POLL_ERR POLL_HUP POLL_IN POLL_MSG POLL_OUT POLL_PRI PTRDIFF_MAX PTRDIFF_MIN RAND_MAX \
SA_INTERRUPT SA_NOCLDSTOP SA_NOCLDWAIT SA_NODEFER SA_NOMASK SA_ONESHOT SA_ONSTACK SA_RESETHAND SA_RESTART \
SA_SIGINFO SA_STACK SEGV_ACCADI SEGV_ACCERR SEGV_ADIDERR SEGV_ADIPERR SEGV_BNDERR SEGV_MAPERR SEGV_MTEAERR \
SEGV_MTESERR SEGV_PKUERR SIGABRT SIGALRM SIGBUS SIGCHLD SIGCLD SIGCONT SIGEV_NONE SIGEV_SIGNAL SIGEV_THREAD \
SIGEV_THREAD_ID SIGFPE SIGHUP SIGILL SIGINT SIGIO SIGIOT SIGKILL SIGPIPE SIGPOLL SIGPROF SIGPWR SIGQUIT \
SIGRTMAX SIGRTMIN SIGSEGV SIGSTKFLT SIGSTKSZ SIGSTOP SIGSYS SIGTERM SIGTRAP SIGTSTP SIGTTIN SIGTTOU SIGURG \
SIGUSR1 SIGUSR2 SIGVTALRM SIGWINCH SIGXCPU SIGXFSZ SIG_ATOMIC_MAX SIG_ATOMIC_MIN SIG_BLOCK SIG_DFL SIG_ERR \
SIG_IGN SIG_SETMASK SIG_UNBLOCK SIZE_MAX SI_ASYNCIO SI_ASYNCNL SI_DETHREAD SI_KERNEL SI_MESGQ SI_QUEUE \
SI_SIGIO SI_TIMER SI_TKILL SI_USER SS_DISABLE SS_ONSTACK UINT16_C UINT16_MAX UINT32_C UINT32_MAX UINT64_C \
UINT64_MAX UINT8_C UINT8_MAX UINTMAX_C UINTMAX_MAX UINTPTR_MAX UINT_FAST16_MAX UINT_FAST32_MAX \
UINT_FAST64_MAX UINT_FAST8_MAX UINT_LEAST16_MAX UINT_LEAST32_MAX UINT_LEAST64_MAX UINT_LEAST8_MAX WCHAR_MAX \
WCHAR_MIN WCONTINUED WEXITED WEXITSTATUS WIFCONTINUED WIFEXITED WIFSIGNALED WIFSTOPPED WINT_MAX WINT_MIN \
WNOHANG WNOWAIT WSTOPPED WSTOPSIG WTERMSIG WUNTRACED a64l acoshl acosl arc4random arc4random_buf \
arc4random_uniform asinhl asinl at_quick_exit atan2l atanhl atanl atol atoll be16toh be32toh be64toh \
blkcnt64_t blkcnt_t blksize_t caddr_t cbrtl ceill clearenv clock_t clockid_t copysignl coshl cosl daddr_t \
dev_t drand48 drand48_r dreml ecvt ecvt_r erand48 erand48_r erfcl erfl exp2l expl expm1l fabsl fcvt fcvt_r \
fd_mask fdiml ffsl ffsll finite finitef finitel floorl fmal fmaxl fminl fmodl fpregset_t frexpl fsblkcnt64_t \
fsblkcnt_t fsfilcnt64_t fsfilcnt_t fsid_t fsword_t gammal gcvt getloadavg getsubopt gid_t greg_t gsignal \
htobe16 htobe32 htobe64 htole16 htole32 htole64 hypotl id_t ilogbl initstate initstate_r ino64_t ino_t \
int_fast16_t int_fast32_t int_fast64_t int_fast8_t int_least16_t int_least32_t int_least64_t int_least8_t \
intmax_t isgreaterequal isinff isinfl islessequal islessgreater isnanf isnanl j0l j1l jnl jrand48 jrand48_r \
key_t kill killpg l64a lcong48 lcong48_r ldexpl le16toh le32toh le64toh lgamma_r lgammaf_r lgammal lgammal_r \
lldiv llrintl llroundl locale_t loff_t log10l log1pl log2l logbl logl lrand48 lrand48_r lrintl lroundl \
math_errhandling mblen mbstowcs mbtowc mcontext_t mkdtemp mkstemp mkstemps mktemp mode_t modfl mrand48 \
mrand48_r nanl nearbyintl nextafterl nexttowardf nexttowardl nlink_t nrand48 nrand48_r off64_t off_t on_exit \
pid_t powl pselect psiginfo psignal pthread_attr_t pthread_barrier_t pthread_barrierattr_t pthread_cond_t \
pthread_condattr_t pthread_key_t pthread_kill pthread_mutex_t pthread_mutexattr_t pthread_once_t \
pthread_rwlock_t pthread_rwlockattr_t pthread_sigmask pthread_spinlock_t pthread_t qecvt qecvt_r qfcvt \
qfcvt_r qgcvt quad_t quick_exit rand_r random random_r reallocarray realpath remainderl remquol rintl \
rlim64_t rlim_t roundl rpmatch sa_handler sa_sigaction scalbf scalbl scalblnf scalblnl scalbnl seed48 \
seed48_r select setenv setstate setstate_r si_addr si_addr_lsb si_arch si_band si_call_addr si_fd si_int \
si_lower si_overrun si_pid si_pkey si_ptr si_status si_stime si_syscall si_timerid si_uid si_upper si_utime \
si_value sig_atomic_t sig_t sigaction sigaddset sigaltstack sigblock sigdelset sigemptyset \
sigev_notify_attributes sigev_notify_function sigfillset siggetmask siginterrupt sigismember sigmask \
significandf significandl sigpending sigprocmask sigqueue sigreturn sigset_t sigsetmask sigstack sigsuspend \
sigtimedwait sigval_t sigwait sigwaitinfo sinhl sinl socklen_t sqrtl srand48 srand48_r srandom srandom_r \
ssignal ssize_t strcasecmp_l strcoll_l strerror_l strerror_r strncasecmp_l strtof strtok_r strtold strtoll \
strtoq strtoul strtoull strtouq strxfrm_l suseconds64_t suseconds_t syscall_slong_t syscall_ulong_t tanhl \
tanl tgammal thrd_t time_t timer_t truncl tss_t u_char u_int u_int16_t u_int32_t u_int64_t u_int8_t u_long \
u_quad_t u_short uid_t uint uint_fast16_t uint_fast32_t uint_fast64_t uint_fast8_t uint_least16_t \
uint_least32_t uint_least64_t uint_least8_t uintmax_t ulong unsetenv useconds_t ushort valloc wcstombs \
wctomb y0l y1l ynl";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_identifiers_and_differ() {
        let mut names = Names::without(["for".to_string()]);
        let picked = ["x", "x", "x2", "for", "a.b-c", "__x", "9lives", "", "über"].map(|n| names.pick(n, "v"));
        assert_eq!(picked, ["x", "x2", "x2_2", "for2", "a_b_c", "x3", "lives", "v", "ber"]);
        assert_eq!(["add_i32", "f32x4", "max"].map(|n| names.pick(n, "v")), ["add_i32_", "f32x4_", "max"]);
    }
}
