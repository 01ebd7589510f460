// Tokens that no regular expression finds: comments that nest, the text of strings, and numbers with a point, which
// belongs to the number in `1.` and `1.f`, but not in `1..` and `1.max(2)`. It does what `crates/syntax/src/lexer.rs` does.

#include "tree_sitter/parser.h"

enum Token { FLOAT, BLOCK_COMMENT, STRING_CONTENT, ERROR_SENTINEL };

void *tree_sitter_impala_external_scanner_create(void) { return 0; }
void tree_sitter_impala_external_scanner_destroy(void *scanner) { (void)scanner; }
unsigned tree_sitter_impala_external_scanner_serialize(void *scanner, char *buffer) {
    (void)scanner;
    (void)buffer;
    return 0;
}
void tree_sitter_impala_external_scanner_deserialize(void *scanner, const char *buffer, unsigned length) {
    (void)scanner;
    (void)buffer;
    (void)length;
}

static void advance(TSLexer *lexer) { lexer->advance(lexer, false); }

static bool is_blank(int32_t c) { return c == ' ' || (c >= '\t' && c <= '\r') || c == 0xfeff; }
static bool is_digit(int32_t c) { return c >= '0' && c <= '9'; }
static bool is_letter(int32_t c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

static bool string_content(TSLexer *lexer) {
    bool any = false;
    while (!lexer->eof(lexer) && lexer->lookahead != '"' && lexer->lookahead != '\\') {
        advance(lexer);
        any = true;
    }
    lexer->result_symbol = STRING_CONTENT;
    return any;
}

// After the `/`.
static bool block_comment(TSLexer *lexer) {
    if (lexer->lookahead != '*') return false;
    advance(lexer);
    unsigned depth = 1;
    while (depth > 0) {
        if (lexer->eof(lexer)) break;
        int32_t c = lexer->lookahead;
        advance(lexer);
        if (c == '/' && lexer->lookahead == '*') {
            advance(lexer);
            depth++;
        } else if (c == '*' && lexer->lookahead == '/') {
            advance(lexer);
            depth--;
        }
    }
    lexer->mark_end(lexer);
    lexer->result_symbol = BLOCK_COMMENT;
    return true;
}

static void digits(TSLexer *lexer) {
    while (is_digit(lexer->lookahead) || lexer->lookahead == '_') advance(lexer);
}

static void word(TSLexer *lexer) {
    while (is_letter(lexer->lookahead) || is_digit(lexer->lookahead) || lexer->lookahead == '_') advance(lexer);
}

// At an `e`. Whether it begins an exponent, which is skipped then.
static bool exponent(TSLexer *lexer) {
    if (lexer->lookahead != 'e' && lexer->lookahead != 'E') return false;
    advance(lexer);
    if (lexer->lookahead == '+' || lexer->lookahead == '-') advance(lexer);
    while (lexer->lookahead == '_') advance(lexer);
    if (!is_digit(lexer->lookahead)) return false;
    digits(lexer);
    return true;
}

// At the character after a point behind digits. Whether the point belongs to the number, which is skipped then.
static bool fraction(TSLexer *lexer) {
    if (lexer->lookahead == '.') return false;
    if (is_digit(lexer->lookahead) || lexer->lookahead == '_') {
        digits(lexer);
        exponent(lexer);
        word(lexer);
        return true;
    }
    if (lexer->lookahead == 'e' || lexer->lookahead == 'E') {
        bool found = exponent(lexer);
        word(lexer);
        return found;
    }
    if (!is_letter(lexer->lookahead)) return true;
    // `1.f`, `1.h`, `1.f32`; other words are fields and methods.
    char suffix[4] = {0};
    unsigned n = 0;
    while (is_letter(lexer->lookahead) || is_digit(lexer->lookahead) || lexer->lookahead == '_') {
        if (n < 3) suffix[n] = (char)lexer->lookahead;
        n++;
        advance(lexer);
    }
    if (n == 1) return suffix[0] == 'f' || suffix[0] == 'h';
    if (n != 3 || suffix[0] != 'f') return false;
    return (suffix[1] == '1' && suffix[2] == '6') || (suffix[1] == '3' && suffix[2] == '2') ||
           (suffix[1] == '6' && suffix[2] == '4');
}

static bool number(TSLexer *lexer) {
    lexer->result_symbol = FLOAT;
    if (lexer->lookahead == '.') {
        advance(lexer);
        if (!is_digit(lexer->lookahead)) return false;
        digits(lexer);
        exponent(lexer);
        word(lexer);
        lexer->mark_end(lexer);
        return true;
    }
    bool zero = lexer->lookahead == '0';
    advance(lexer);
    if (zero && (lexer->lookahead == 'b' || lexer->lookahead == 'o' || lexer->lookahead == 'x')) return false;
    digits(lexer);
    if (lexer->lookahead == '.') {
        advance(lexer);
        if (!fraction(lexer)) return false;
        lexer->mark_end(lexer);
        return true;
    }
    if (exponent(lexer)) {
        word(lexer);
        lexer->mark_end(lexer);
        return true;
    }
    // `1f` is an integer token to the compiler; its suffix makes it a float.
    return false;
}

bool tree_sitter_impala_external_scanner_scan(void *scanner, TSLexer *lexer, const bool *valid) {
    (void)scanner;
    if (valid[STRING_CONTENT] && !valid[ERROR_SENTINEL]) return string_content(lexer);
    while (is_blank(lexer->lookahead)) lexer->advance(lexer, true);
    if (valid[BLOCK_COMMENT] && lexer->lookahead == '/') {
        advance(lexer);
        return block_comment(lexer);
    }
    if (valid[FLOAT] && (is_digit(lexer->lookahead) || lexer->lookahead == '.')) return number(lexer);
    return false;
}
