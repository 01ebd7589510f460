//! The diagnostics of checked execution, one file per code. These faults happen while the program runs, so their places
//! in the source are added later, on the way to the driver.

pub(crate) mod broken_promise;
pub(crate) mod budget_spent;
pub(crate) mod data_race;
pub(crate) mod dead_continuation;
pub(crate) mod diverged_lanes;
pub(crate) mod division_by_zero;
pub(crate) mod invalid_access;
pub(crate) mod invalid_handle;
pub(crate) mod panic;
pub(crate) mod signed_overflow;
pub(crate) mod undefined_call;
pub(crate) mod uninitialized_read;

pub(crate) use nyala_base::diagnostics::{bug, limitation, undefined_symbol};

nyala_base::codes![
    broken_promise,
    budget_spent,
    data_race,
    dead_continuation,
    diverged_lanes,
    division_by_zero,
    invalid_access,
    invalid_handle,
    panic,
    signed_overflow,
    undefined_call,
    uninitialized_read,
];
