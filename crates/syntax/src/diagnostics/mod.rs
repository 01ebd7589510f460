//! The diagnostics of lexer and parser, one file per code.

pub(crate) mod bad_char;
pub(crate) mod bad_escape;
pub(crate) mod bad_number;
pub(crate) mod missing_semicolon;
pub(crate) mod nesting_too_deep;
pub(crate) mod too_many_errors;
pub(crate) mod unclosed_delimiter;
pub(crate) mod unexpected_token;
pub(crate) mod unknown_character;
pub(crate) mod unterminated_char;
pub(crate) mod unterminated_comment;
pub(crate) mod unterminated_string;

nyala_base::codes![
    bad_char,
    bad_escape,
    bad_number,
    missing_semicolon,
    nesting_too_deep,
    too_many_errors,
    unclosed_delimiter,
    unexpected_token,
    unknown_character,
    unterminated_char,
    unterminated_comment,
    unterminated_string,
];
