; In the terms of nvim-treesitter.
[
  (block)
  (prototypes)
  (fields)
  (options)
  (items)
  (match)
  (struct_value)
  (struct_pattern)
  (array)
  (arguments)
  (params)
  (tuple)
  (tuple_type)
  (type_params)
] @indent.begin

[ "}" ")" "]" ] @indent.branch @indent.end

[
  (line_comment)
  (block_comment)
  (string)
] @indent.auto
