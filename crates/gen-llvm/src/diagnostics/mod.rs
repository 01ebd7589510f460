//! What making machine code reports, one file per code.

pub(crate) mod invalid_asm;
pub(crate) mod unknown_target;

pub(crate) use nyala_base::diagnostics::{bug, limitation};

nyala_base::codes![invalid_asm, unknown_target];
