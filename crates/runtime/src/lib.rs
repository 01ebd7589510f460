//! Threads, images, devices, memory, kernels, behind a C ABI; knows no compiler.
