//! The address of a local variable or a parameter leaves its function.
//!
//! Variables live as long as their function runs. An address of one that is a result, or that a static still holds at the
//! end, leads to memory that other calls use for other things. An address may also be made without `&`: a value that is given
//! where an address is expected is copied to a variable first. This is a warning, where it is certain. The interpreter reports
//! uses of such an address.
//!
//! ```impala
//! fn counter(start: i32) -> &mut i32 {
//!     let mut count = start;
//!     &mut count
//! }
//! fn main() -> i32 { let c = counter(1); *c = 0; 0 }
//! ```
//!
//! ## Instead
//!
//! Return the value, let the caller say where to put it, or allocate memory that lives until it is freed:
//!
//! ```impala
//! fn counter(start: i32) -> &mut i32 {
//!     let count = alloc[i32](1);
//!     count(0) = start;
//!     &mut count(0)
//! }
//! fn main() -> i32 { let c = counter(1); *c = 0; *c }
//! ```

use nyala_base::{Diagnostic, Span};

/// The address of the variable made at `variable` leaves the function `name` at `span`: it `does` so.
pub fn warning(span: Span, name: &str, variable: Span, does: &str) -> Diagnostic {
    let message = format!("the address of a variable of `{name}` {does}");
    let diagnostic = Diagnostic::warning("dangling-address", span, message)
        .label(format!("the variable ends with the call of `{name}`"))
        .hint("return the value itself, or allocate memory that lives until it is freed");
    if variable.is_none() || variable == span { diagnostic } else { diagnostic.other(variable, "this variable") }
}
