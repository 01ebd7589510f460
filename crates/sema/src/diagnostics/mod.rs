//! The diagnostics of names, types and lowering, one file per code.

pub(crate) mod ambiguous_method;
pub(crate) mod ambiguous_type;
pub(crate) mod argument_kind;
pub(crate) mod bad_address_space;
pub(crate) mod bad_array_length;
pub(crate) mod bad_asm;
pub(crate) mod bad_bitcast;
pub(crate) mod bad_cast;
pub(crate) mod bad_constant;
pub(crate) mod bad_ensure;
pub(crate) mod bad_index;
pub(crate) mod bad_operand;
pub(crate) mod bad_pattern;
pub(crate) mod bad_restrict;
pub(crate) mod bad_simd_type;
pub(crate) mod bad_symbol;
pub(crate) mod constant_filter;
pub(crate) mod duplicate_field;
pub(crate) mod duplicate_impl;
pub(crate) mod duplicate_name;
pub(crate) mod filter_not_bool;
pub(crate) mod immutable;
pub(crate) mod indefinite_array;
pub(crate) mod leaves_defer;
pub(crate) mod literal_out_of_range;
pub(crate) mod method_type;
pub(crate) mod missing_else;
pub(crate) mod missing_field;
pub(crate) mod missing_method;
pub(crate) mod never_known;
pub(crate) mod no_such_field;
pub(crate) mod no_such_member;
pub(crate) mod no_such_method;
pub(crate) mod not_a_function;
pub(crate) mod not_a_generator;
pub(crate) mod not_a_place;
pub(crate) mod not_a_pointer;
pub(crate) mod not_a_struct;
pub(crate) mod not_a_trait;
pub(crate) mod not_a_type;
pub(crate) mod not_a_value;
pub(crate) mod not_called;
pub mod not_constant;
pub(crate) mod not_exhaustive;
pub(crate) mod not_generic;
pub(crate) mod polymorphic_recursion;
pub(crate) mod private_name;
pub mod recursive_static;
pub(crate) mod recursive_type;
pub(crate) mod shadowed_name;
pub(crate) mod spawn_captures_mut;
pub(crate) mod too_many_instances;
pub(crate) mod tuple_index;
pub(crate) mod type_mismatch;
pub(crate) mod type_too_deep;
pub(crate) mod undetermined_parameter;
pub(crate) mod unknown_name;
pub(crate) mod unmet_bound;
pub(crate) mod unreachable_code;
pub(crate) mod unused_mut;
pub(crate) mod unused_name;
pub(crate) mod used_before_declared;
pub(crate) mod useless_arm;
pub(crate) mod useless_base;
pub(crate) mod wildcard_value;
pub(crate) mod wrong_number_of_arguments;

pub(crate) use nyala_base::diagnostics::{
    duplicate_symbol, intrinsic_type, jump_out_of_parallel, limitation, not_in_c,
};

nyala_base::codes![
    ambiguous_method,
    ambiguous_type,
    argument_kind,
    bad_address_space,
    bad_array_length,
    bad_asm,
    bad_bitcast,
    bad_cast,
    bad_constant,
    bad_ensure,
    bad_index,
    bad_operand,
    bad_pattern,
    bad_restrict,
    bad_simd_type,
    bad_symbol,
    constant_filter,
    duplicate_field,
    duplicate_impl,
    duplicate_name,
    filter_not_bool,
    immutable,
    indefinite_array,
    leaves_defer,
    literal_out_of_range,
    method_type,
    missing_else,
    missing_field,
    missing_method,
    never_known,
    no_such_field,
    no_such_member,
    no_such_method,
    not_a_function,
    not_a_generator,
    not_a_place,
    not_a_pointer,
    not_a_struct,
    not_a_trait,
    not_a_type,
    not_a_value,
    not_called,
    not_constant,
    not_exhaustive,
    not_generic,
    polymorphic_recursion,
    private_name,
    recursive_static,
    recursive_type,
    shadowed_name,
    spawn_captures_mut,
    too_many_instances,
    tuple_index,
    type_mismatch,
    type_too_deep,
    undetermined_parameter,
    unknown_name,
    unmet_bound,
    unreachable_code,
    unused_mut,
    unused_name,
    used_before_declared,
    useless_arm,
    useless_base,
    wildcard_value,
    wrong_number_of_arguments,
];

/// A name as messages show it: cut off after 60 bytes. Names are ASCII.
pub(crate) fn short(text: &str) -> String {
    if text.len() <= 60 { text.into() } else { format!("{}…", &text[..60]) }
}
