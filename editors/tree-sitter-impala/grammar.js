// The grammar of Impala for tree-sitter. docs/reference/grammar.md has the rules of the language; the names of nodes here
// are those of its rules where editors have a use for them. Where one token of lookahead does not tell two rules apart,
// as for `name {` in the head of an `if`, both are tried: `conflicts` lists those places.
//
// `src/scanner.c` has the tokens that no regular expression finds.

/// How strongly binary operators bind. Operators with one meaning are one token.
const BINARY = [
  [2, "||"],
  [3, "&&"],
  [4, ($) => alias($._compare, $.operator)],
  [5, "|"],
  [6, "^"],
  [7, "&"],
  [8, ($) => alias($._shift, $.operator)],
  [9, ($) => choice("+", "-")],
  [10, ($) => choice("*", alias($._divide, $.operator))],
];
const STRENGTH = { lambda: -3, body: -2, assign: -1, halt: 1, cast: 11, unary: 12, postfix: 13 };

/// Words that are names, but mean something in one place. The names of address spaces are some, too.
const WORDS = ["const", "defer", "restrict", "use"];
const MARKS = ["fast", "racy"];

const list = (rule) => seq(rule, repeat(seq(",", rule)), optional(","));

module.exports = grammar({
  name: "impala",

  word: ($) => $.identifier,

  extras: ($) => [/[\s\ufeff]/, $.line_comment, $.block_comment],

  externals: ($) => [$.float_literal, $.block_comment, $._string_content, $._error_sentinel],

  supertypes: ($) => [$._expression, $._type, $._pattern, $._item],

  conflicts: ($) => [
    // `if name {`: a struct value, or the body.
    [$._expression, $.struct_value],
    // `for name …`, `(name, …): T`: a pattern, or an expression or a type.
    [$._pattern, $.path],
    [$.path, $.option_pattern],
    [$.struct_pattern, $.struct_value],
    [$.struct_pattern, $._expression, $.struct_value],
    [$.option_pattern, $._expression],
    [$.tuple_pattern, $.tuple_type],
    [$.tuple_pattern, $.tuple],
    [$.literal_pattern, $._expression],
    // `} (`: a call, or the pattern of the next arm.
    [$._expression, $.arm],
    // `@(e) |x| …`: a filter, or a run of the brackets. Before a loop's body, the loop's filter, too.
    [$.filter],
    [$.filter, $.tuple],
    [$._loop_filter, $.run],
    [$._loop_filter, $.filter, $.run],
    [$._loop_filter, $.marked, $.run],
    // `@fast {`, `fn @fast f`: marks, or names.
    [$._name, $.marked],
    [$.filter, $._head],
    [$._name, $.defer],
    // `impl [T] …`: type parameters, or an array.
    [$.type_param, $.path],
  ],

  rules: {
    file: ($) => repeat(choice($._item, ";")),

    // Items.

    _item: ($) =>
      choice(
        $.function, $.extern, $.static, $.struct, $.enum, $.alias, $.trait, $.impl, $.module, $.use,
      ),

    visibility: (_) => token(choice("pub", "priv")),

    function: ($) => seq(optional($.visibility), $._head, field("body", $.block)),
    prototype: ($) => seq(optional($.visibility), $._head, choice(field("body", $.block), ";")),
    _head: ($) =>
      seq(
        "fn",
        optional(field("symbol", $.string)),
        optional(seq("@", "fast")),
        optional($.filter),
        optional(field("symbol", $.string)),
        field("name", $._name),
        optional($.type_params),
        field("parameters", $.params),
        optional($._result),
      ),
    params: ($) => seq("(", optional(list($.param)), ")"),
    param: ($) =>
      choice(
        seq(optional($.filter), field("type", $._type)),
        seq(optional($.filter), field("pattern", $.tuple_pattern), ":", field("type", $._type)),
        seq(
          optional(choice($.filter, $.known_filter)), optional("restrict"), optional("mut"),
          field("pattern", $._name), ":", field("type", $._type),
        ),
      ),
    filter: ($) => prec.dynamic(1, seq("@", optional(seq("(", $._expression, ")")))),
    known_filter: (_) => seq("@", "?"),
    _result: ($) => seq("->", field("result", choice($.never, $._type))),
    never: (_) => "!",

    extern: ($) =>
      seq(
        optional($.visibility),
        "extern",
        optional(field("convention", $.string)),
        choice($.function, $.prototypes),
      ),
    prototypes: ($) => seq("{", repeat(choice($.prototype, ";")), "}"),

    static: ($) =>
      seq(
        optional($.visibility),
        "static",
        optional("mut"),
        field("name", $._name),
        optional(seq(":", field("type", $._type))),
        optional(seq("=", field("value", $._expression))),
        ";",
      ),

    struct: ($) =>
      seq(
        optional($.visibility), "struct", field("name", $._name), optional($.type_params),
        choice(";", field("body", $.fields)),
      ),
    fields: ($) => seq("{", optional(list($.field)), "}"),
    field: ($) => seq(optional($.visibility), field("name", $._name), ":", field("type", $._type)),

    enum: ($) =>
      seq(
        optional($.visibility), "enum", field("name", $._name), optional($.type_params),
        field("body", $.options),
      ),
    options: ($) => seq("{", optional(list($.option)), "}"),
    option: ($) => seq(field("name", $._name), optional(seq("(", optional(list($._type)), ")"))),

    alias: ($) =>
      seq(
        optional($.visibility), "type", field("name", $._name), optional($.type_params), "=",
        field("type", $._type), ";",
      ),

    trait: ($) =>
      seq(
        optional($.visibility), "trait", field("name", $._name), optional($.type_params),
        optional(seq(":", $._type, repeat(seq(choice(",", "+"), $._type)))),
        field("body", $.prototypes),
      ),
    impl: ($) =>
      seq(
        optional($.visibility), "impl", optional($.type_params), $._type,
        optional(seq("for", field("type", $._type))), field("body", $.prototypes),
      ),

    module: ($) => seq(optional($.visibility), "mod", field("name", $._name), choice(";", field("body", $.items))),
    items: ($) => seq("{", repeat(choice($._item, ";")), "}"),

    use: ($) =>
      prec(
        1,
        seq(
          optional($.visibility),
          "use",
          optional("::"),
          $._name,
          repeat(seq("::", $._name)),
          optional(choice(seq("::", "*"), seq("as", field("alias", $._name)))),
          ";",
        ),
      ),

    type_params: ($) => seq("[", optional(list($.type_param)), "]"),
    type_param: ($) =>
      choice(
        seq(field("name", $._name), optional(seq(":", $._type, repeat(seq("+", $._type))))),
        seq("const", field("name", $._name), ":", field("type", $._type)),
      ),

    // Types.

    _type: ($) =>
      choice(
        $.path, $.tuple_type, $.array_type, $.simd_type, $.pointer_type, $.owned_type, $.fn_type, $.typeof,
      ),
    tuple_type: ($) => seq("(", optional(list($._type)), ")"),
    array_type: ($) => seq("[", $._type, optional(seq("*", field("length", $._expression))), "]"),
    simd_type: ($) => seq("simd", "[", $._type, "*", field("length", $._expression), "]"),
    pointer_type: ($) =>
      prec.right(1, seq(choice("&", "&&"), optional("mut"), optional($.space), field("to", $._type))),
    space: ($) =>
      prec.right(1, choice(seq("[", $.int_literal, "]"), alias($._space_word, $.space_name))),
    owned_type: ($) => seq("~", $._type),
    fn_type: ($) =>
      prec.right(seq("fn", optional($.type_params), "(", optional(list($._fn_param)), ")", optional($._result))),
    _fn_param: ($) => seq(optional(seq($._name, ":")), $._type),
    typeof: ($) => seq("typeof", "(", $._expression, ")"),

    path: ($) => prec.right(choice($._name, $._long_path)),
    // A path that cannot be a new name.
    _long_path: ($) =>
      prec.right(
        choice(
          seq("::", $._name, optional($.type_args), repeat($._step)),
          seq($._name, $.type_args, repeat($._step)),
          seq($._name, repeat1($._step)),
        ),
      ),
    _step: ($) => prec.right(seq("::", $._name, optional($.type_args))),
    type_args: ($) => seq("[", optional(list($._type_arg)), "]"),
    _type_arg: ($) =>
      choice(
        $._type, $.int_literal, $.char_literal, $.boolean, alias($._negative, $.unary), $.block,
      ),
    _negative: ($) => seq("-", choice($.int_literal, $.path, $.tuple)),

    // Patterns.

    _pattern: ($) =>
      choice(
        $._name, $.mut_pattern, $.tuple_pattern, $.literal_pattern, $.option_pattern, $.struct_pattern,
        $.typed_pattern,
      ),
    mut_pattern: ($) => seq("mut", $._name),
    tuple_pattern: ($) => seq("(", optional(list($._pattern)), ")"),
    literal_pattern: ($) =>
      choice(seq(optional("-"), choice($.int_literal, $.float_literal)), $.char_literal, $.boolean),
    option_pattern: ($) => choice(alias($._long_path, $.path), seq($.path, $.tuple_pattern)),
    struct_pattern: ($) => seq($.path, "{", optional(list($.field_pattern)), "}"),
    field_pattern: ($) =>
      choice(seq(field("name", $._name), ":", $._pattern), seq(optional("mut"), $._name), ".."),
    typed_pattern: ($) => seq($._pattern, ":", field("type", $._type)),

    // Statements.

    block: ($) =>
      seq(
        "{",
        repeat($._statement),
        optional(seq($._expression, optional(seq($._item, repeat(choice($._item, ";")))))),
        "}",
      ),
    _statement: ($) =>
      choice(";", $._item, $.let, $.defer, $.expression_statement),
    expression_statement: ($) => choice(seq($._expression, ";"), prec(1, $._block_like)),
    let: ($) => seq("let", field("pattern", $._pattern), optional(seq("=", field("value", $._expression))), ";"),
    defer: ($) => prec.dynamic(1, seq("defer", $.block)),

    _block_like: ($) => choice($.block, $.marked, $.if, $.while, $.for, $.match),
    marked: ($) => prec.dynamic(1, prec(STRENGTH.unary, seq("@", choice(...MARKS), $.block))),

    // Expressions.

    _expression: ($) =>
      choice(
        $.assignment, $.binary, $.cast, $.unary, $.address, $.halt, $.step, $.run, $.call, $.field_access,
        $.instance, $.int_literal, $.float_literal, $.char_literal, $.strings, $.boolean, $.path, $.struct_value,
        $.tuple, $.array, $.simd, $.lambda, $._block_like, $.asm,
      ),

    assignment: ($) =>
      prec.left(
        STRENGTH.assign,
        seq(
          field("place", $._expression),
          field("operator", choice("=", alias($._assign, $.operator))),
          field("value", $._expression),
        ),
      ),
    binary: ($) =>
      choice(
        ...BINARY.map(([strength, operator]) =>
          prec.left(
            strength,
            seq(
              field("left", $._expression),
              field("operator", typeof operator === "string" ? operator : operator($)),
              field("right", $._expression),
            ),
          ),
        ),
      ),
    cast: ($) => prec.left(STRENGTH.cast, seq($._expression, "as", field("type", $._type))),
    unary: ($) =>
      prec(STRENGTH.unary, seq(field("operator", choice("+", "-", "!", "*", "~", "?")), $._expression)),
    address: ($) => prec(STRENGTH.unary, seq(choice("&", "&&"), optional("mut"), $._expression)),
    halt: ($) => prec(STRENGTH.halt, seq("$", $._expression)),
    step: ($) =>
      choice(
        prec(STRENGTH.unary, seq(alias($._step_operator, $.operator), $._expression)),
        prec(STRENGTH.postfix, seq($._expression, alias($._step_operator, $.operator))),
      ),
    run: ($) => prec(STRENGTH.unary, seq(choice("@", "@@"), $._expression)),

    call: ($) => prec(STRENGTH.postfix, seq(field("function", $._expression), field("arguments", $.arguments))),
    arguments: ($) => seq("(", optional(list($._expression)), ")"),
    field_access: ($) =>
      prec.right(
        STRENGTH.postfix, seq($._expression, ".", field("name", $._name), optional($.type_args)),
      ),
    instance: ($) => prec(STRENGTH.postfix, seq($._expression, $.type_args)),

    struct_value: ($) => prec.dynamic(-1, seq($.path, "{", optional(list(choice($.field_value, $.base_value))), "}")),
    field_value: ($) => seq(field("name", $._name), ":", field("value", $._expression)),
    base_value: ($) => seq("..", $._expression),
    tuple: ($) => seq("(", optional(list($._expression)), ")"),
    array: ($) =>
      seq(
        "[",
        choice(
          optional(list($._expression)),
          seq($._expression, ",", "..", $._expression),
          seq($._expression, ":", $._type),
        ),
        "]",
      ),
    simd: ($) => seq("simd", "[", optional(list($._expression)), "]"),

    lambda: ($) =>
      prec.right(
        STRENGTH.lambda,
        seq(
          optional($.filter),
          choice("||", seq("|", optional($._lambda_params), "|")),
          optional($._result),
          optional(field("body", $._expression)),
        ),
      ),
    _lambda_params: ($) => list($.lambda_param),
    lambda_param: ($) =>
      choice(
        seq(optional($.filter), $._pattern),
        seq($.known_filter, optional("restrict"), optional("mut"), $._name, optional(seq(":", $._type))),
        prec(1, seq(optional($.filter), "restrict", optional("mut"), $._name, optional(seq(":", $._type)))),
      ),

    _body: ($) => prec.right(STRENGTH.body, choice(prec(1, choice($.block, $.marked)), $._expression)),
    // What stands before a body goes on as far as it can.
    _subject: ($) => prec(STRENGTH.body, $._expression),
    if: ($) =>
      prec.right(
        seq(
          "if", field("condition", $._subject), field("then", $.block),
          optional(seq("else", field("else", choice(prec(1, $.if), $._body)))),
        ),
      ),
    // Of as much strength as a run of the body, so that both are tried.
    _loop_filter: ($) => prec.dynamic(2, prec(STRENGTH.unary, seq("@", optional(seq("(", $._expression, ")"))))),
    while: ($) => prec.right(seq("while", field("condition", $._subject), field("body", $._body))),
    for: ($) =>
      prec.right(
        seq(
          choice("for", "with"),
          optional(seq($._lambda_params, "in")),
          field("loop", $._subject),
          optional(alias($._loop_filter, $.filter)),
          field("body", $._body),
        ),
      ),
    match: ($) =>
      seq(
        "match", field("value", $._subject), "{",
        repeat(choice($.arm, seq(alias($._long_arm, $.arm), ","))),
        optional(alias($._long_arm, $.arm)),
        "}",
      ),
    // An arm whose value ends with its `}` needs no comma.
    arm: ($) => prec.dynamic(1, seq($._arm_head, field("value", $._block_like))),
    _long_arm: ($) => seq($._arm_head, field("value", $._expression)),
    _arm_head: ($) => seq($._pattern, optional(seq("if", field("guard", $._expression))), "=>"),

    asm: ($) => seq("asm", "(", $.strings, repeat(seq(choice(":", "::"), optional(list($.asm_part)))), ")"),
    asm_part: ($) => seq($.strings, optional(seq("(", $._expression, ")"))),

    // Tokens.

    _name: ($) =>
      choice(
        $.identifier,
        alias($._space_word, $.identifier),
        ...WORDS.map((word) => alias(word, $.identifier)),
        // As strong as `marked`, so that `if @fast { … }` is tried as a name, too.
        ...MARKS.map((word) => prec(STRENGTH.unary, alias(word, $.identifier))),
      ),
    _space_word: (_) => token(choice("global", "texture", "shared", "constant", "private")),
    identifier: (_) => /[A-Za-z_][A-Za-z0-9_]*/,

    _compare: (_) => token(choice("==", "!=", "<", "<=", ">", ">=")),
    _shift: (_) => token(choice("<<", ">>")),
    _divide: (_) => token(choice("/", "%")),
    _step_operator: (_) => token(choice("++", "--")),
    _assign: (_) => token(choice("+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=")),

    boolean: (_) => token(choice("true", "false")),
    int_literal: (_) => /[0-9][A-Za-z0-9_]*/,
    char_literal: (_) => /'(\\[^\n][^'\n]*|[^\\\n])'/,
    strings: ($) => prec.right(repeat1($.string)),
    string: ($) => seq('"', repeat(choice($._string_content, $.escape)), '"'),
    escape: (_) => token.immediate(/\\(x[0-9A-Fa-f]{2}|[^x])/),

    line_comment: (_) => token(seq("//", /[^\n]*/)),
  },
});
