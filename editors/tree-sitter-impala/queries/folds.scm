[
  (block)
  (prototypes)
  (fields)
  (options)
  (items)
  (match)
  (struct_value)
  (array)
  (arguments)
  (params)
  (block_comment)
] @fold
