//! The diagnostics of partial evaluation, one file per code.

pub(crate) mod dangling_address;
pub(crate) mod long_unroll;
pub(crate) mod pe_info;
pub(crate) mod recursive_run;
pub(crate) mod specialization_diverges;
pub(crate) mod static_assert_failed;
pub(crate) mod static_assert_unknown;

nyala_base::codes![
    dangling_address,
    long_unroll,
    pe_info,
    recursive_run,
    specialization_diverges,
    static_assert_failed,
    static_assert_unknown
];
