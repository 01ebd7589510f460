//! What partial evaluation reports, one file per code.

pub(crate) mod pe_info;
pub(crate) mod specialization_diverges;

nyala_base::codes![pe_info, specialization_diverges];
