//! What making machine code reports, one file per code.

pub(crate) mod unknown_target;

pub(crate) use nyala_base::diagnostics::{bug, limitation};

nyala_base::codes![unknown_target];
