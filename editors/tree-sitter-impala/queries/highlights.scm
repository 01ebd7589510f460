; Later patterns win.

(identifier) @variable

; Types.
(param type: (path (identifier) @type))
(static type: (path (identifier) @type))
(field type: (path (identifier) @type))
(option (path (identifier) @type))
(alias type: (path (identifier) @type))
(impl (path (identifier) @type))
(trait (path (identifier) @type))
(type_param (path (identifier) @type))
(type_args (path (identifier) @type))
(tuple_type (path (identifier) @type))
(array_type . (path (identifier) @type))
(simd_type . (path (identifier) @type))
(pointer_type (path (identifier) @type))
(owned_type (path (identifier) @type))
(fn_type (path (identifier) @type))
(cast type: (path (identifier) @type))
(typed_pattern type: (path (identifier) @type))
(lambda_param (path (identifier) @type))
(array (path (identifier) @type) . "]")
(struct_value (path (identifier) @type))
(struct_pattern (path (identifier) @type))
(_ result: (path (identifier) @type))
(struct name: (identifier) @type)
(enum name: (identifier) @type)
(alias name: (identifier) @type)
(trait name: (identifier) @type)
(type_param name: (identifier) @type)
((identifier) @type.builtin
  (#match? @type.builtin "^(bool|i8|i16|i32|i64|u8|u16|u32|u64|f16|f32|f64|int|uint|half|float|double|Self)$"))

; An array without its type in braces is an expression: `[a, b]`.
(array (path (identifier) @variable) . "]" @punctuation.bracket)
(array ":" (path (identifier) @type))

; Names.
(module name: (identifier) @module)
(use (identifier) @module)
(option name: (identifier) @constructor)
(option_pattern (path (identifier) @constructor))
(field name: (identifier) @property)
(field_value name: (identifier) @property)
(field_pattern name: (identifier) @property)
(field_access name: (identifier) @property)
(static name: (identifier) @constant)
(param pattern: (identifier) @variable.parameter)
(lambda_param (identifier) @variable.parameter)
(function name: (identifier) @function)
(prototype name: (identifier) @function)
(call function: (path (identifier) @function.call .))
(call function: (field_access name: (identifier) @function.method.call))
((path (identifier) @function.builtin)
  (#match? @function.builtin "^(alignof|assert|assume_aligned|bitcast|checks_bounds|ensure_no_branch|ensure_residual|insert|is_float|panic|parallel|pe_info|pe_known|pipeline|prefetch|prefetch_once|prefetch_write|reserve_shared|select|shuffle|sizeof|spawn|static_assert|stream_store|sync|undef|vectorize)$"))
((identifier) @variable.builtin
  (#match? @variable.builtin "^(self|super)$"))
((path (identifier) @keyword.control)
  (#match? @keyword.control "^(break|continue|return)$"))

; Words.
[
  "as" "asm" "enum" "extern" "fn" "impl" "in" "let" "match" "mod" "mut" "simd" "static" "struct" "trait" "type"
  "typeof" "use" "defer"
] @keyword
[ "else" "for" "if" "while" "with" ] @keyword.control
(visibility) @keyword
(param "restrict" @keyword)
(lambda_param "restrict" @keyword)
(type_param "const" @keyword)
(space_name) @keyword
(never) @type.builtin

; What steers partial evaluation stands out.
(filter "@" @attribute)
(filter (unary operator: "?") @attribute)
(known_filter) @attribute
(run [ "@" "@@" ] @attribute)
(halt "$" @attribute)
(marked [ "@" "fast" "racy" ] @attribute)
(function [ "@" "fast" ] @attribute)
(prototype [ "@" "fast" ] @attribute)

; Literals.
(int_literal) @number
(float_literal) @number.float
(boolean) @boolean
(char_literal) @character
(string) @string
(escape) @string.escape
(line_comment) @comment
(block_comment) @comment
((line_comment) @comment.documentation
  (#match? @comment.documentation "^//[?!>~]"))

; Signs.
(operator) @operator
[ "=" "||" "&&" "|" "^" "&" "+" "-" "*" "!" "~" "?" "->" "=>" ".." ] @operator
[ "(" ")" "[" "]" "{" "}" ] @punctuation.bracket
[ "," ";" ":" "::" "." ] @punctuation.delimiter
