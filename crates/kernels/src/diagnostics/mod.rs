//! The diagnostics of kernels, one file per code. Separate from `limitation`, which is the compiler's fault, not the program's.

pub(crate) mod host_code_in_kernel;
pub(crate) mod host_memory_in_kernel;
pub(crate) mod not_on_platform;

nyala_base::codes![host_code_in_kernel, host_memory_in_kernel, not_on_platform];
