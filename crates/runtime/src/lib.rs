//! Threads, images, devices, memory, kernels, behind a C ABI; knows no compiler.
//!
//! Every function that programs may call is named `nyala_…` and listed by [`symbols`], so that a JIT or an interpreter
//! finds it by name; except for functions that AnyDSL's programs or compilers expect under other names. Nothing here
//! aborts because of a program's arguments: errors are statuses.
#![warn(missing_docs)]

mod allocator;
mod anydsl;
mod approximate;
mod cache;
mod channels;
mod checked;
mod checks;
mod environments;
mod events;
mod faults;
mod files;
mod foreign;
mod guard;
mod halves;
mod image;
mod interrupts;
mod launch;
mod memory;
mod mpi;
mod places;
mod platforms;
mod print;
mod stack;
mod system;
mod text;
mod threads;

pub use allocator::Remapping;
pub use anydsl::device_memory_in_use;
pub use approximate::Approximation;
pub use cache::{Cache, Key as CacheKey};
pub use channels::{
    EMPTY_CHANNEL, channel_is_empty, nyala_channel_read, nyala_channel_write, nyala_pragma, unread_bytes,
};
pub use checked::{CheckedMemory, MemoryFault};
pub use checks::{
    ON_DEVICE, can_check, nyala_check_alloc, nyala_check_alloc_array, nyala_check_end, nyala_check_fail,
    nyala_check_free, nyala_check_given, nyala_check_initialized, nyala_check_is_initialized, nyala_check_lanes,
    nyala_check_lend, nyala_check_object, nyala_check_panic, nyala_check_product, nyala_check_variable,
    nyala_check_wrote,
};
pub use environments::{
    nyala_check_environment, nyala_environment, nyala_release, nyala_release_shared, nyala_retain, nyala_retain_shared,
    nyala_variable,
};
pub use events::{
    nyala_event_elapsed, nyala_event_follow, nyala_event_free, nyala_event_is_over, nyala_event_record,
    nyala_event_wait, nyala_make_queue, nyala_n_devices,
};
pub use faults::{Describe, Fault, FaultKind, report_faults};
pub use files::{
    nyala_file_append, nyala_file_error, nyala_file_exists, nyala_file_read, nyala_file_remove, nyala_file_replace,
    nyala_file_size, nyala_file_write, nyala_stdin_line, nyala_stdin_read,
};
pub use foreign::{ErrorFunction, FfiType, Library, call_checked, call_foreign, find_symbol};
pub use guard::{Ending, guarded};
pub use halves::HalfArg;
pub use image::{Image, nyala_image_error, nyala_image_load, nyala_image_save};
pub use launch::{Kernel, nyala_diverged, nyala_launch, nyala_launch_device, nyala_launch_missing};
pub use memory::{nyala_alloc, nyala_alloc_aligned_array, nyala_alloc_array, nyala_free};
pub use mpi::{
    nyala_mpi_abort, nyala_mpi_all_to_all, nyala_mpi_barrier, nyala_mpi_broadcast, nyala_mpi_exchange,
    nyala_mpi_finalize, nyala_mpi_free, nyala_mpi_gather, nyala_mpi_init, nyala_mpi_missing, nyala_mpi_probe,
    nyala_mpi_rank, nyala_mpi_receive, nyala_mpi_reduce, nyala_mpi_scatter, nyala_mpi_send, nyala_mpi_size,
    nyala_mpi_split, nyala_mpi_start_receive, nyala_mpi_start_send, nyala_mpi_version, nyala_mpi_wait,
};
pub use platforms::{N_PLATFORMS, device_name, keep_kernels, kernel_cache, overview as device_overview};
pub use print::*;
pub use stack::{STACK, call_on_large_stack, nyala_start, nyala_start_with_places};
pub use system::{
    asked_to_stop, end_by_closed_pipes, note_requests_to_stop, nyala_arg, nyala_argc, nyala_argv, nyala_compile,
    nyala_compile_value, nyala_dead_continuation, nyala_env, nyala_exit, nyala_panic, nyala_panic_at, nyala_sleep_ns,
    nyala_time_ns, nyala_unix_time_ns, set_args, user,
};
pub use text::{nyala_format_f64, nyala_parse_f32, nyala_parse_f64};
pub use threads::{
    THREAD_STACK, is_thread, n_spawned, nyala_num_threads, nyala_parallel, nyala_spawn, nyala_spawn_handle, nyala_sync,
};

/// Name and address of every function that programs may call, sorted by name: the runtime's own, and the C library's
/// math functions, so that every engine computes with the same code.
pub fn symbols() -> &'static [(&'static str, usize)] {
    static TABLE: std::sync::OnceLock<Vec<(&'static str, usize)>> = std::sync::OnceLock::new();
    TABLE.get_or_init(|| {
        macro_rules! table {
            ($($f:ident)*) => { vec![$((stringify!($f), $f as *const () as usize)),*] };
        }
        let mut table = table!(
            nyala_alloc nyala_alloc_aligned_array nyala_alloc_array nyala_arg nyala_argc nyala_argv nyala_channel_read nyala_channel_write
            nyala_check_alloc nyala_check_alloc_array nyala_check_end nyala_check_environment nyala_check_fail nyala_check_free nyala_check_given nyala_check_panic nyala_check_initialized
            nyala_check_is_initialized nyala_check_lanes nyala_check_lend nyala_check_object nyala_check_product nyala_check_variable nyala_check_wrote
            nyala_compile nyala_compile_value nyala_dead_continuation
            nyala_env nyala_environment nyala_event_elapsed nyala_event_follow nyala_event_free nyala_event_is_over
            nyala_event_record nyala_event_wait nyala_exit
            nyala_file_append nyala_file_error nyala_file_exists nyala_file_read nyala_file_remove nyala_file_replace
            nyala_file_size nyala_file_write nyala_flush nyala_format_f64 nyala_free nyala_image_error
            nyala_diverged nyala_image_load nyala_image_save nyala_launch nyala_launch_device nyala_launch_missing nyala_make_queue nyala_n_devices nyala_num_threads nyala_panic nyala_panic_at nyala_parallel
            nyala_mpi_abort nyala_mpi_all_to_all nyala_mpi_barrier nyala_mpi_broadcast nyala_mpi_exchange nyala_mpi_finalize
            nyala_mpi_free nyala_mpi_gather nyala_mpi_init nyala_mpi_missing nyala_mpi_probe nyala_mpi_rank nyala_mpi_receive
            nyala_mpi_reduce nyala_mpi_scatter nyala_mpi_send nyala_mpi_size nyala_mpi_split nyala_mpi_start_receive
            nyala_mpi_start_send nyala_mpi_version nyala_mpi_wait
            nyala_parse_f32 nyala_parse_f64 nyala_pragma nyala_print_bool nyala_print_bytes nyala_print_char
            nyala_print_error nyala_print_f16 nyala_print_f32 nyala_print_f64 nyala_print_i16 nyala_print_i32 nyala_print_i64 nyala_print_i8
            nyala_print_string nyala_print_u16 nyala_print_u32 nyala_print_u64 nyala_print_u8
            nyala_release nyala_release_shared nyala_retain nyala_retain_shared nyala_sleep_ns
            nyala_spawn nyala_spawn_handle nyala_stdin_line nyala_stdin_read nyala_sync nyala_time_ns
            nyala_unix_time_ns nyala_variable
        );
        use anydsl::*;
        table.extend(table!(
            anydsl_aligned_free anydsl_aligned_malloc anydsl_alloc anydsl_alloc_host anydsl_alloc_unified anydsl_copy
            anydsl_device_check_feature_support anydsl_device_name anydsl_get_device_ptr anydsl_get_kernel_time
            anydsl_get_micro_time anydsl_get_nano_time anydsl_info anydsl_isfinite anydsl_isfinitef anydsl_isinf
            anydsl_isinff anydsl_isnan anydsl_isnanf anydsl_parallel_for anydsl_print_char anydsl_print_f32
            anydsl_print_f64 anydsl_print_flush anydsl_print_i16 anydsl_print_i32 anydsl_print_i64
            anydsl_print_string anydsl_random_seed anydsl_random_val_f32 anydsl_random_val_u64 anydsl_release
            anydsl_release_host anydsl_spawn_thread anydsl_sync_thread anydsl_synchronize
        ));
        table.extend(foreign::math_symbols());
        table.extend(halves::symbols());
        table.sort_unstable();
        table
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn symbols_are_sorted_and_distinct() {
        let names: Vec<_> = super::symbols().iter().map(|s| s.0).collect();
        assert!(names.windows(2).all(|w| w[0] < w[1]));
        assert!(names.contains(&"nyala_print_i32") && names.contains(&"sinf"));
    }
}
