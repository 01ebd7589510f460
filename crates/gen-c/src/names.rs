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

/// Keywords of C and C++, types and macros of the headers, and functions that compilers know by name.
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
vsprintf basename strverscmp strlcpy strlcat explicit_bzero longjmp putenv";

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
