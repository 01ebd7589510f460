//! The diagnostics of Sierra, one file per code.

pub(crate) mod sierra_constant;
pub(crate) mod sierra_lanes;
pub(crate) mod sierra_name;
pub(crate) mod sierra_preprocessor;
pub(crate) mod sierra_type;

nyala_base::codes![sierra_constant, sierra_lanes, sierra_name, sierra_preprocessor, sierra_type];
