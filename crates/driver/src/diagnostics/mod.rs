//! The diagnostics of the driver, one file per code; and the table of all crates' codes.

use nyala_base::Code;

pub(crate) mod bad_candidates;
pub mod bad_manifest;
pub(crate) mod bad_tune_file;
pub(crate) mod cannot_emit;
pub mod cannot_read;
pub mod cannot_write;
pub(crate) mod constant_fault;
pub(crate) mod division_fault;
pub(crate) mod ensure_failed;
pub(crate) mod entry_type;
pub(crate) mod fact_in_signature;
pub(crate) mod heap_closure;
pub(crate) mod illegal_instruction;
pub(crate) mod link_failed;
pub(crate) mod module_twice;
pub(crate) mod no_candidates;
pub(crate) mod no_entry;
pub(crate) mod no_exports;
pub(crate) mod no_linker;
pub(crate) mod no_such_function;
pub(crate) mod no_such_library;
pub(crate) mod no_such_module;
pub mod no_such_package;
pub(crate) mod no_such_static;
pub mod not_a_benchmark;
pub(crate) mod not_a_test;
pub mod not_measurable;
pub(crate) mod package_twice;
pub(crate) mod runtime_not_found;
pub(crate) mod stack_overflow;
pub(crate) mod tail_call_not_guaranteed;
pub(crate) mod target_facts;
pub mod test_failed;
pub(crate) mod tuned_values;
pub(crate) mod undefined_code;
pub(crate) mod unknown_cpu;
pub(crate) mod wild_access;

nyala_base::codes![
    bad_candidates,
    bad_manifest,
    bad_tune_file,
    cannot_emit,
    cannot_read,
    cannot_write,
    constant_fault,
    division_fault,
    ensure_failed,
    entry_type,
    fact_in_signature,
    heap_closure,
    illegal_instruction,
    link_failed,
    module_twice,
    no_candidates,
    no_entry,
    no_exports,
    no_linker,
    no_such_function,
    no_such_library,
    no_such_module,
    no_such_package,
    no_such_static,
    not_a_benchmark,
    not_a_test,
    not_measurable,
    package_twice,
    runtime_not_found,
    stack_overflow,
    tail_call_not_guaranteed,
    test_failed,
    target_facts,
    tuned_values,
    undefined_code,
    unknown_cpu,
    wild_access,
];

/// The codes of every crate, by name.
pub fn all() -> Vec<Code> {
    let mut all = [
        CODES,
        nyala_base::diagnostics::CODES,
        nyala_syntax::diagnostics::CODES,
        nyala_sema::diagnostics::CODES,
        nyala_specialize::diagnostics::CODES,
        nyala_c_syntax::diagnostics::CODES,
        nyala_sierra::diagnostics::CODES,
        nyala_staging::diagnostics::CODES,
        nyala_kernels::diagnostics::CODES,
        nyala_gen_llvm::diagnostics::CODES,
        nyala_interp::diagnostics::CODES,
    ]
    .concat();
    all.sort_by_key(|c| c.module);
    all
}
