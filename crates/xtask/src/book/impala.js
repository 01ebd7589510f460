// Colors programs in Impala. highlight.js does not know the language.
hljs.registerLanguage("impala", function (hljs) {
    return {
        keywords: {
            keyword:
                "as asm do else enum extern fn for if impl in let match mod mut priv pub simd static struct trait type typeof " +
                "use while with break continue return defer const restrict",
            literal: "true false",
            built_in: "i8 i16 i32 i64 u8 u16 u32 u64 f16 f32 f64 bool Self self super",
        },
        contains: [
            hljs.C_LINE_COMMENT_MODE,
            hljs.COMMENT("/\\*", "\\*/", { contains: ["self"] }),
            hljs.QUOTE_STRING_MODE,
            { className: "string", begin: /'(\\x[0-9a-fA-F]{2}|\\.|[^'\\])'/ },
            { className: "number", begin: /\b(0[box][0-9a-fA-F_]+|[0-9][0-9_]*(\.[0-9_]*)?([eE][+-]?[0-9_]+)?)[a-z]*[0-9]*/ },
            { className: "meta", begin: /@@?(fast|racy)?|\$|\?/ },
        ],
    };
});
document.querySelectorAll("code.language-impala").forEach(function (block) {
    block.removeAttribute("data-highlighted");
    (hljs.highlightElement || hljs.highlightBlock)(block);
});
