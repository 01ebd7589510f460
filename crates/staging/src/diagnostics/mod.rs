//! The diagnostics of DeepCPS, one file per code.

pub(crate) mod staging_limit;
pub(crate) mod staging_name;
pub(crate) mod staging_syntax;
pub(crate) mod staging_type;
pub(crate) mod stuck_body;

nyala_base::codes![staging_limit, staging_name, staging_syntax, staging_type, stuck_body];
