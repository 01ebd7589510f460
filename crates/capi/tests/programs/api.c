/* Calls every function of nyala.h, and expects what the header says. Valid C99 and C++11. */
#include "nyala.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPECT(condition) expect((condition), #condition, __LINE__)

static void expect(int holds, const char *what, int line) {
    if (!holds) {
        fprintf(stderr, "line %d: %s does not hold\n", line, what);
        exit(1);
    }
}

static int contains(const char *text, const char *part) {
    return text != NULL && strstr(text, part) != NULL;
}

/* Compiles a text that is right. */
static nyala_program *compiled(nyala_compiler *compiler, const char *name, const char *text) {
    nyala_program *program = NULL;
    nyala_error *error = NULL;
    nyala_status status = nyala_compile_source(compiler, name, text, &program, &error);
    if (status != NYALA_OK) {
        fprintf(stderr, "%s", nyala_error_message(error));
        exit(1);
    }
    EXPECT(error == NULL && program != NULL);
    return program;
}

/* The status and the message of a look-up that fails. */
static nyala_status refused(nyala_program *program, const char *symbol, const char *type, char *message, size_t size) {
    nyala_function *function = NULL;
    nyala_error *error = NULL;
    nyala_status status = nyala_program_function(program, symbol, type, &function, &error);
    nyala_function_release(function);
    snprintf(message, size, "%s", nyala_error_message(error));
    EXPECT(nyala_error_status(error) == status);
    nyala_error_release(error);
    return status;
}

/* Whether a type is that of a function. */
static int fits(nyala_program *program, const char *symbol, const char *type) {
    char message[1000];
    nyala_status status = refused(program, symbol, type, message, sizeof message);
    EXPECT(status == NYALA_OK || status == NYALA_WRONG_TYPE || status == NYALA_BAD_ARGUMENT);
    return status == NYALA_OK;
}

static const char *const BLUR =
    "// The mean of neighbors.\n"
    "extern fn blur(a: &[f32], b: &mut [f32], n: i32) -> () {\n"
    "    for i in range(1, n - 1) { b(i) = (a(i - 1) + a(i) + a(i + 1)) / 3f; }\n"
    "}\n"
    "extern fn half(x: f64) -> f64 { x / 2.0 }\n";

static void calls(nyala_compiler *compiler) {
    const float in[5] = {0, 3, 6, 9, 12};
    float out[5] = {0, 0, 0, 0, 0};
    nyala_program *program = compiled(compiler, "blur.impala", BLUR);
    nyala_function *blur = NULL;
    nyala_function *half = NULL;
    nyala_error *error = NULL;
    EXPECT(nyala_program_function(program, "blur", "void(const float *, float *, int32_t)", &blur, &error) == NYALA_OK);
    EXPECT(nyala_program_function(program, "half", NYALA_TYPE(double, (double x)), &half, &error) == NYALA_OK);
    EXPECT(error == NULL);
    EXPECT(strcmp(nyala_function_declaration(blur), "void blur(const float *a, float *b, int32_t n)") == 0);
    EXPECT(nyala_program_function_count(program) == 2);
    EXPECT(strcmp(nyala_program_function_symbol(program, 1), "half") == 0);
    EXPECT(strcmp(nyala_program_function_declaration(program, 1), "double half(double x)") == 0);
    EXPECT(nyala_program_function_symbol(program, 2) == NULL && nyala_program_function_declaration(program, 2) == NULL);
    /* A function keeps its code, and each owner counts. */
    EXPECT(nyala_program_retain(program) == program);
    nyala_program_release(program);
    nyala_program_release(program);
    NYALA_CAST(void, (const float *, float *, int32_t), blur)(in, out, 5);
    EXPECT(out[0] == 0 && out[1] == 3 && out[2] == 6 && out[3] == 9 && out[4] == 0);
    EXPECT(nyala_function_retain(half) == half);
    nyala_function_release(half);
    EXPECT(NYALA_CAST(double, (double x), half)(3.0) == 1.5);
    nyala_function_release(half);
    nyala_function_release(blur);
}

static void wrong_types(nyala_compiler *compiler) {
    char message[1000];
    nyala_program *program = compiled(compiler, "blur.impala", BLUR);
    EXPECT(refused(program, "blur", "void(const double *, float *, int32_t)", message, sizeof message) == NYALA_WRONG_TYPE);
    EXPECT(strcmp(message, "`blur` has another type: parameter 1 is `const double *` here, `const float *a` in the program\n"
                           "    here:           void(const double *, float *, int32_t)\n"
                           "    in the program: void blur(const float *a, float *b, int32_t n)\n")
           == 0);
    EXPECT(refused(program, "half", "float(double)", message, sizeof message) == NYALA_WRONG_TYPE);
    EXPECT(contains(message, "the result is another one"));
    EXPECT(refused(program, "half", "double(double, double)", message, sizeof message) == NYALA_WRONG_TYPE);
    EXPECT(contains(message, "it has 2 parameters here, 1 in the program"));
    EXPECT(refused(program, "third", "double(double)", message, sizeof message) == NYALA_NO_FUNCTION);
    EXPECT(contains(message, "fn half(x: f64) -> f64"));
    EXPECT(refused(program, "half", "double", message, sizeof message) == NYALA_BAD_ARGUMENT);
    EXPECT(refused(program, "half", "", message, sizeof message) == NYALA_BAD_ARGUMENT);
    EXPECT(refused(program, "half", "double(double", message, sizeof message) == NYALA_BAD_ARGUMENT);
    EXPECT(refused(program, "half", "double(\xff)", message, sizeof message) == NYALA_BAD_ARGUMENT);
    /* The ways in which people write types. */
    EXPECT(fits(program, "half", " double half ( double ) ; "));
    EXPECT(fits(program, "half", "double (const double x)"));
    EXPECT(!fits(program, "half", "double (*)(double)") && !fits(program, "half", "double(long double)"));
    EXPECT(!fits(program, "half", "double(double, ...)") && !fits(program, "half", "double(double) double"));
    EXPECT(fits(program, "blur", "void(const float a[], float b[5], int n)"));
    EXPECT(fits(program, "blur", "void(float const *restrict, float *const, signed)"));
    EXPECT(!fits(program, "blur", "void(float *, float *, int)") && !fits(program, "blur", "void(const float *, const float *, int)"));
    EXPECT(!fits(program, "blur", "void(const float *, float *, unsigned)") && !fits(program, "blur", "void(const float *, float *, long)"));
    EXPECT(!fits(program, "blur", "void(const float **, float *, int)") && !fits(program, "blur", "void(const float, float *, int)"));
    nyala_program_release(program);

    program = compiled(compiler, "types.impala",
                       "extern fn bytes(a: &[u8], b: i8, c: u16, d: u64, e: bool) -> &mut i64 { undef() }\n"
                       "extern fn rows(a: &[[f32 * 4]], b: &&mut i32) -> () { }\n"
                       "extern fn nothing() -> () { }\n"
                       "static mut numbers = 0;\n");
    EXPECT(fits(program, "bytes", "int64_t *(const char *, signed char, unsigned short int, uint64_t, _Bool)"));
    EXPECT(fits(program, "bytes", "long *(const uint8_t *s, char, uint16_t, size_t, bool)"));
    EXPECT(!fits(program, "bytes", "long *(const uint8_t *s, char, char, size_t, bool)"));
    EXPECT(!fits(program, "bytes", "long(const uint8_t *s, char, uint16_t, size_t, bool)"));
    EXPECT(fits(program, "rows", "void(const float (*a)[4], int *const *b)"));
    EXPECT(fits(program, "rows", "void(const float a[][4], int *const *b)"));
    EXPECT(!fits(program, "rows", "void(const float a[][3], int *const *b)"));
    EXPECT(!fits(program, "rows", "void(const float a[][4], int **b)"));
    EXPECT(fits(program, "nothing", "void(void)") && fits(program, "nothing", "void()") && !fits(program, "nothing", "int(void)"));
    nyala_program_release(program);
}

typedef struct Range {
    double low;
    double high;
} Range;

static void structs(nyala_compiler *compiler) {
    char message[1000];
    char *text = NULL;
    const double values[3] = {3, -1, 2};
    nyala_function *range_of = NULL;
    nyala_error *error = NULL;
    Range range;
    nyala_program *program = compiled(compiler, "range.impala",
                                      "// Both ends.\n"
                                      "struct Range { low: f64, high: f64 }\n"
                                      "extern fn range_of(a: &[f64], n: i32) -> Range {\n"
                                      "    let mut r = Range { low: a(0), high: a(0) };\n"
                                      "    for i in range(1, n) { r = Range { low: min(r.low, a(i)), high: max(r.high, a(i)) }; }\n"
                                      "    r\n"
                                      "}\n");
    EXPECT(nyala_program_function(program, "range_of", "struct Range(const double *, int32_t)", &range_of, &error) == NYALA_OK);
    range = NYALA_CAST(Range, (const double *, int32_t), range_of)(values, 3);
    EXPECT(range.low == -1 && range.high == 3);
    nyala_function_release(range_of);
    EXPECT(fits(program, "range_of", "Range range_of(const double *a, int32_t n)"));
    EXPECT(fits(program, "range_of", "struct Range { double low, high; }; Range(const double *, int)"));
    EXPECT(fits(program, "range_of", "typedef struct Range { double low; double high; } Range; Range(const double *, int)"));
    EXPECT(!fits(program, "range_of", "struct Other(const double *, int)"));
    EXPECT(refused(program, "range_of", "struct Range { double high, low; }; Range(const double *, int)", message, sizeof message)
           == NYALA_WRONG_TYPE);
    EXPECT(contains(message, "a field of `struct Range` is `high` here, `low` in the program"));
    EXPECT(refused(program, "range_of", "struct Range { float low, high; }; Range(const double *, int)", message, sizeof message)
           == NYALA_WRONG_TYPE);
    EXPECT(contains(message, "field `low` of `struct Range` has another type"));
    EXPECT(!fits(program, "range_of", "struct Range { double low; }; Range(const double *, int)"));
    EXPECT(nyala_program_header(program, "RANGE_H", &text, &error) == NYALA_OK);
    EXPECT(contains(text, "#ifndef RANGE_H") && contains(text, "// Both ends.") && contains(text, "struct Range range_of("));
    nyala_text_free(text);
    EXPECT(nyala_program_header(program, "no macro", &text, &error) == NYALA_BAD_ARGUMENT && text == NULL);
    nyala_error_release(error);
    nyala_program_release(program);
}

static void errors(nyala_compiler *compiler) {
    nyala_program *program = NULL;
    nyala_error *error = NULL;
    const nyala_diagnostic *d;
    EXPECT(nyala_compile_source(compiler, "f.impala", "extern fn f() -> i32 {\n    1f }", &program, &error) == NYALA_BAD_PROGRAM);
    EXPECT(program == NULL && nyala_error_status(error) == NYALA_BAD_PROGRAM && nyala_error_diagnostic_count(error) == 1);
    d = nyala_error_diagnostic(error, 0);
    EXPECT(d->severity == NYALA_SEVERITY_ERROR && strcmp(d->code, "type-mismatch") == 0 && strcmp(d->file, "f.impala") == 0);
    EXPECT(d->line == 2 && d->column == 5 && d->end_line == 2 && d->end_column == 7);
    EXPECT(contains(d->message, "`f32`") && contains(d->rendered, "f.impala:2:5"));
    EXPECT(strcmp(nyala_error_message(error), d->rendered) == 0);
    EXPECT(nyala_error_diagnostic(error, 1) == NULL);
    EXPECT(nyala_error_retain(error) == error);
    nyala_error_release(error);
    nyala_error_release(error);
    /* A hint, and a fault at no place. */
    EXPECT(nyala_compile_source(compiler, "g.impala", "extern fn g() -> f32 { 1 }", &program, &error) == NYALA_BAD_PROGRAM);
    EXPECT(nyala_error_diagnostic(error, 0)->hint != NULL);
    nyala_error_release(error);
    EXPECT(nyala_compile_file(compiler, "/no/such/file.impala", &program, &error) == NYALA_BAD_PROGRAM);
    d = nyala_error_diagnostic(error, 0);
    EXPECT(d->file == NULL && d->line == 0 && contains(d->rendered, "/no/such/file.impala"));
    nyala_error_release(error);
    /* A program whose evaluation does not end. */
    EXPECT(nyala_compiler_set_budget(compiler, 0.01) == NYALA_OK);
    EXPECT(nyala_compile_source(compiler, "endless.impala",
                                "fn @f(n: i32) -> i32 { f(n + 1) }\nextern fn g() -> i32 { f(0) }", &program, &error)
           == NYALA_BAD_PROGRAM);
    EXPECT(strcmp(nyala_error_diagnostic(error, 0)->code, "specialization-diverges") == 0);
    nyala_error_release(error);
    EXPECT(nyala_compiler_set_budget(compiler, 1.0) == NYALA_OK);
    /* The reason need not be asked for. */
    EXPECT(nyala_compile_source(compiler, "f.impala", "fn", &program, NULL) == NYALA_BAD_PROGRAM && program == NULL);
    /* A function that C cannot call does no harm to the others. */
    program = compiled(compiler, "options.impala",
                       "enum Option { None, Some(i32) }\nextern fn take(x: Option) -> i32 { 1 }\nextern fn one() -> i32 { 1 }");
    EXPECT(fits(program, "one", "int32_t(void)"));
    EXPECT(nyala_program_function_count(program) == 2 && nyala_program_function_declaration(program, 0) == NULL);
    {
        char message[1000];
        char *text = NULL;
        EXPECT(refused(program, "take", "int(int)", message, sizeof message) == NYALA_BAD_PROGRAM);
        EXPECT(contains(message, "cannot be passed to C"));
        EXPECT(nyala_program_header(program, "TAKE_H", &text, NULL) == NYALA_BAD_PROGRAM && text == NULL);
    }
    nyala_program_release(program);
}

static void options(const char *folder) {
    nyala_compiler *compiler = nyala_compiler_new();
    nyala_program *program = NULL;
    nyala_function *function = NULL;
    nyala_error *error = NULL;
    const char *const names[2] = {"a.impala", "b.impala"};
    const char *const texts[2] = {"use twice::*;\nstatic N = 2;\nextern fn a() -> i32 { twice(b()) + N }", "fn b() -> i32 { 20 }"};
    char path[1000];
    FILE *file;
    snprintf(path, sizeof path, "%s/twice.impala", folder);
    file = fopen(path, "w");
    EXPECT(file != NULL && fputs("fn @twice(x: i32) -> i32 { 2 * x }\nextern fn two() -> i32 { twice(1) }", file) >= 0);
    EXPECT(fclose(file) == 0);

    EXPECT(nyala_compiler_retain(compiler) == compiler);
    nyala_compiler_release(compiler);
    EXPECT(nyala_compiler_set_level(compiler, 1) == NYALA_OK && nyala_compiler_set_level(compiler, 4) == NYALA_BAD_ARGUMENT);
    EXPECT(nyala_compiler_set_level(compiler, -1) == NYALA_BAD_ARGUMENT);
    EXPECT(nyala_compiler_add_library_folder(compiler, folder) == NYALA_OK);
    EXPECT(nyala_compiler_define(compiler, "N", "3") == NYALA_OK);
    EXPECT(nyala_compiler_set_keep_code(compiler, 0) == NYALA_OK && nyala_compiler_set_keep_code(compiler, 2) == NYALA_BAD_ARGUMENT);
    EXPECT(nyala_compiler_set_wrap(compiler, 1) == NYALA_OK && nyala_compiler_set_partial_evaluation(compiler, 1) == NYALA_OK);
    EXPECT(nyala_compiler_set_budget(compiler, 0.0) == NYALA_BAD_ARGUMENT);
    EXPECT(nyala_compiler_add_check(compiler, (nyala_check)7) == NYALA_BAD_ARGUMENT);
    EXPECT(nyala_compile_sources(compiler, 2, names, texts, &program, &error) == NYALA_OK);
    EXPECT(nyala_program_function(program, "a", "int32_t(void)", &function, &error) == NYALA_OK);
    EXPECT(NYALA_CAST(int32_t, (void), function)() == 43);
    nyala_function_release(function);
    nyala_program_release(program);
    EXPECT(nyala_compile_sources(compiler, 0, names, texts, &program, NULL) == NYALA_BAD_ARGUMENT);
    /* Definitions are for statics that the program has. */
    EXPECT(nyala_compile_file(compiler, path, &program, &error) == NYALA_BAD_PROGRAM);
    nyala_error_release(error);
    nyala_compiler_release(compiler);

    compiler = nyala_compiler_new();
    EXPECT(nyala_compile_file(compiler, path, &program, &error) == NYALA_OK);
    nyala_program_release(program);
    /* Warnings are told, allowed, or errors. */
    program = compiled(compiler, "w.impala", "extern fn f() -> i32 { let unused = 1; 2 }");
    EXPECT(nyala_program_warning_count(program) == 1 && nyala_program_warning(program, 1) == NULL);
    EXPECT(strcmp(nyala_program_warning(program, 0)->code, "unused-name") == 0);
    EXPECT(nyala_program_warning(program, 0)->severity == NYALA_SEVERITY_WARNING);
    nyala_program_release(program);
    EXPECT(nyala_compiler_allow(compiler, "unused-name") == NYALA_OK);
    program = compiled(compiler, "w.impala", "extern fn f() -> i32 { let unused = 1; 2 }");
    EXPECT(nyala_program_warning_count(program) == 0);
    nyala_program_release(program);
    nyala_compiler_release(compiler);
    compiler = nyala_compiler_new();
    EXPECT(nyala_compiler_deny(compiler, "warnings") == NYALA_OK);
    EXPECT(nyala_compile_source(compiler, "w.impala", "extern fn f() -> i32 { let unused = 1; 2 }", &program, NULL) == NYALA_BAD_PROGRAM);
    /* An unknown processor is an error. */
    EXPECT(nyala_compiler_set_cpu(compiler, "no such processor") == NYALA_OK);
    EXPECT(nyala_compile_source(compiler, "f.impala", "extern fn f() -> i32 { 2 }", &program, NULL) == NYALA_BAD_PROGRAM);
    nyala_compiler_release(compiler);
}

static void shown(nyala_compiler *compiler) {
    nyala_program *program = compiled(compiler, "power.impala",
                                      "fn @(?n) pow(x: i32, n: i32) -> i32 { if n == 0 { 1 } else { x * pow(x, n - 1) } }\n"
                                      "extern fn cube(x: i32) -> i32 { pow(x, 3) }\n");
    nyala_error *error = NULL;
    char *text = NULL;
    int stage;
    for (stage = NYALA_STAGE_GRAPH; stage <= NYALA_STAGE_C; stage++) {
        const char *function = stage == NYALA_STAGE_C ? NULL : "cube";
        EXPECT(nyala_program_emit(program, (nyala_stage)stage, function, &text, &error) == NYALA_OK);
        EXPECT(contains(text, "cube"));
        nyala_text_free(text);
    }
    EXPECT(nyala_program_emit(program, NYALA_STAGE_RESIDUAL, "cub", &text, &error) == NYALA_BAD_PROGRAM && text == NULL);
    nyala_error_release(error);
    EXPECT(nyala_program_emit(program, (nyala_stage)17, NULL, &text, NULL) == NYALA_BAD_ARGUMENT);
    EXPECT(nyala_program_explain(program, "pow", &text, &error) == NYALA_OK && contains(text, "filter `?n` holds"));
    nyala_text_free(text);
    nyala_program_release(program);
}

typedef struct Call {
    nyala_function *function;
    int32_t argument;
    int32_t result;
} Call;

static void call(void *context) {
    Call *of = (Call *)context;
    of->result = NYALA_CAST(int32_t, (int32_t), of->function)(of->argument);
}

/* What goes wrong while a program runs. */
static void faults(nyala_compiler *compiler) {
    nyala_program *program = compiled(compiler, "faults.impala",
                                      "extern fn run(x: i32) -> i32 {\n"
                                      "    if x == 1 { panic(\"one\") }\n"
                                      "    if x == 2 { exit(3) }\n"
                                      "    if x == 3 { for i in par(0, 100) { if i == 50 { panic(\"fifty\") } } }\n"
                                      "    x + 1\n"
                                      "}\n");
    nyala_error *error = NULL;
    Call of = {NULL, 0, 0};
    EXPECT(nyala_program_function(program, "run", "int(int)", &of.function, &error) == NYALA_OK);
    nyala_program_release(program);
    EXPECT(nyala_guarded(call, &of, &error) == NYALA_OK && error == NULL && of.result == 1);
    of.argument = 1;
    EXPECT(nyala_guarded(call, &of, &error) == NYALA_FAULT && nyala_error_status(error) == NYALA_FAULT);
    EXPECT(nyala_error_diagnostic_count(error) == 1 && contains(nyala_error_message(error), "one"));
    EXPECT(strcmp(nyala_error_diagnostic(error, 0)->code, "panic") == 0);
    nyala_error_release(error);
    of.argument = 2;
    EXPECT(nyala_guarded(call, &of, &error) == NYALA_FAULT);
    EXPECT(strcmp(nyala_error_diagnostic(error, 0)->code, "exit") == 0 && contains(nyala_error_message(error), "3"));
    nyala_error_release(error);
    of.argument = 3;
    EXPECT(nyala_guarded(call, &of, NULL) == NYALA_FAULT && of.result == 1);
    of.argument = 4;
    EXPECT(nyala_guarded(call, &of, &error) == NYALA_OK && of.result == 5);
    nyala_function_release(of.function);
    EXPECT(nyala_guarded(NULL, NULL, NULL) == NYALA_NULL_ARGUMENT);
}

/* NULL is an error, or nothing, everywhere. */
static void nulls(nyala_compiler *compiler) {
    nyala_program *program = NULL;
    nyala_function *function = NULL;
    nyala_error *error = NULL;
    char *text = NULL;
    const char *const none[1] = {NULL};
    EXPECT(nyala_compiler_retain(NULL) == NULL && nyala_program_retain(NULL) == NULL);
    EXPECT(nyala_function_retain(NULL) == NULL && nyala_error_retain(NULL) == NULL);
    nyala_compiler_release(NULL);
    nyala_program_release(NULL);
    nyala_function_release(NULL);
    nyala_error_release(NULL);
    nyala_text_free(NULL);
    EXPECT(nyala_compiler_set_level(NULL, 1) == NYALA_NULL_ARGUMENT && nyala_compiler_set_cpu(NULL, "x") == NYALA_NULL_ARGUMENT);
    EXPECT(nyala_compiler_set_cpu(compiler, NULL) == NYALA_NULL_ARGUMENT);
    EXPECT(nyala_compiler_add_check(NULL, NYALA_CHECK_BOUNDS) == NYALA_NULL_ARGUMENT);
    EXPECT(nyala_compiler_set_partial_evaluation(NULL, 1) == NYALA_NULL_ARGUMENT);
    EXPECT(nyala_compiler_set_budget(NULL, 1.0) == NYALA_NULL_ARGUMENT && nyala_compiler_set_wrap(NULL, 0) == NYALA_NULL_ARGUMENT);
    EXPECT(nyala_compiler_add_library_folder(compiler, NULL) == NYALA_NULL_ARGUMENT);
    EXPECT(nyala_compiler_define(compiler, "N", NULL) == NYALA_NULL_ARGUMENT && nyala_compiler_define(compiler, NULL, "1") == NYALA_NULL_ARGUMENT);
    EXPECT(nyala_compiler_allow(compiler, NULL) == NYALA_NULL_ARGUMENT && nyala_compiler_deny(compiler, NULL) == NYALA_NULL_ARGUMENT);
    EXPECT(nyala_compiler_set_keep_code(NULL, 1) == NYALA_NULL_ARGUMENT);
    EXPECT(nyala_compile_source(NULL, "a", "", &program, &error) == NYALA_NULL_ARGUMENT);
    EXPECT(strcmp(nyala_error_message(error), "`compiler` is NULL\n") == 0 && nyala_error_diagnostic_count(error) == 0);
    nyala_error_release(error);
    EXPECT(nyala_compile_source(compiler, NULL, "", &program, NULL) == NYALA_NULL_ARGUMENT);
    EXPECT(nyala_compile_source(compiler, "a", NULL, &program, NULL) == NYALA_NULL_ARGUMENT);
    EXPECT(nyala_compile_source(compiler, "a", "", NULL, NULL) == NYALA_NULL_ARGUMENT);
    EXPECT(nyala_compile_file(compiler, NULL, &program, NULL) == NYALA_NULL_ARGUMENT);
    EXPECT(nyala_compile_sources(compiler, 1, NULL, NULL, &program, NULL) == NYALA_NULL_ARGUMENT);
    EXPECT(nyala_compile_sources(compiler, 1, none, none, &program, NULL) == NYALA_NULL_ARGUMENT);
    EXPECT(nyala_program_function(NULL, "f", "void(void)", &function, NULL) == NYALA_NULL_ARGUMENT);
    EXPECT(nyala_program_function_count(NULL) == 0 && nyala_program_function_symbol(NULL, 0) == NULL);
    EXPECT(nyala_program_function_declaration(NULL, 0) == NULL);
    EXPECT(nyala_program_warning_count(NULL) == 0 && nyala_program_warning(NULL, 0) == NULL);
    EXPECT(nyala_program_header(NULL, "X", &text, NULL) == NYALA_NULL_ARGUMENT);
    EXPECT(nyala_program_emit(NULL, NYALA_STAGE_FLAT, NULL, &text, NULL) == NYALA_NULL_ARGUMENT);
    EXPECT(nyala_program_explain(NULL, "f", &text, NULL) == NYALA_NULL_ARGUMENT);
    EXPECT(nyala_function_address(NULL) == NULL && nyala_function_declaration(NULL) == NULL);
    EXPECT(nyala_error_status(NULL) == NYALA_OK && strcmp(nyala_error_message(NULL), "") == 0);
    EXPECT(nyala_error_diagnostic_count(NULL) == 0 && nyala_error_diagnostic(NULL, 0) == NULL);
    program = compiled(compiler, "f.impala", "extern fn f() -> () { }");
    EXPECT(nyala_program_function(program, NULL, "void(void)", &function, NULL) == NYALA_NULL_ARGUMENT);
    EXPECT(nyala_program_function(program, "f", NULL, &function, NULL) == NYALA_NULL_ARGUMENT);
    EXPECT(nyala_program_function(program, "f", "void(void)", NULL, NULL) == NYALA_NULL_ARGUMENT);
    EXPECT(nyala_program_header(program, NULL, &text, NULL) == NYALA_NULL_ARGUMENT);
    EXPECT(nyala_program_header(program, "X", NULL, NULL) == NYALA_NULL_ARGUMENT);
    EXPECT(nyala_program_explain(program, NULL, &text, NULL) == NYALA_NULL_ARGUMENT);
    nyala_program_release(program);
}

/* Programs share nothing: each has statics of its own. */
static void two_programs(nyala_compiler *compiler) {
    const char *const text = "static mut n = 0;\nextern fn next() -> i32 { n += 1; n }";
    nyala_program *programs[2];
    nyala_function *next[2] = {NULL, NULL};
    int i;
    for (i = 0; i < 2; i++) {
        programs[i] = compiled(compiler, "next.impala", text);
        EXPECT(nyala_program_function(programs[i], "next", "int32_t(void)", &next[i], NULL) == NYALA_OK);
    }
    EXPECT(NYALA_CAST(int32_t, (void), next[0])() == 1 && NYALA_CAST(int32_t, (void), next[0])() == 2);
    EXPECT(NYALA_CAST(int32_t, (void), next[1])() == 1);
    for (i = 0; i < 2; i++) {
        nyala_program_release(programs[i]);
        nyala_function_release(next[i]);
    }
}

typedef struct Shared {
    nyala_compiler *compiler;
    nyala_function *half;
} Shared;

static void *work(void *argument) {
    const Shared *shared = (const Shared *)argument;
    nyala_program *program = NULL;
    nyala_function *function = NULL;
    nyala_error *error = NULL;
    int i;
    for (i = 0; i < 1000; i++) {
        nyala_function *half = nyala_function_retain(shared->half);
        EXPECT(NYALA_CAST(double, (double), half)(2.0 * i) == i);
        nyala_function_release(half);
    }
    EXPECT(nyala_compile_source(shared->compiler, "bad.impala", "extern fn f() -> i32 { g() }", &program, &error) == NYALA_BAD_PROGRAM);
    nyala_error_release(error);
    program = compiled(shared->compiler, "sum.impala",
                       "extern fn sum(a: &[i32], n: i32) -> i32 { let mut s = 0; for i in range(0, n) { s += a(i); } s }");
    EXPECT(nyala_program_function(program, "sum", "int32_t(const int32_t *, int32_t)", &function, &error) == NYALA_OK);
    nyala_program_release(program);
    {
        const int32_t numbers[3] = {1, 2, 3};
        EXPECT(NYALA_CAST(int32_t, (const int32_t *, int32_t), function)(numbers, 3) == 6);
    }
    nyala_function_release(function);
    return argument;
}

static void threads(nyala_compiler *compiler) {
    pthread_t started[8];
    Shared shared;
    nyala_program *program = compiled(compiler, "half.impala", BLUR);
    int i;
    shared.compiler = compiler;
    shared.half = NULL;
    EXPECT(nyala_program_function(program, "half", "double(double)", &shared.half, NULL) == NYALA_OK);
    nyala_program_release(program);
    for (i = 0; i < 8; i++) EXPECT(pthread_create(&started[i], NULL, work, &shared) == 0);
    for (i = 0; i < 8; i++) EXPECT(pthread_join(started[i], NULL) == 0);
    nyala_function_release(shared.half);
}

typedef struct {
    double scale, shift;
} Curve;

/* Parameters that are fixed. */
static void partials(nyala_compiler *compiler) {
    static const char *source =
        "use std::slice::*;\n"
        "struct Curve { scale: f64, shift: f64 }\n"
        "extern fn @(?n) power(x: f64, n: i32) -> f64 { if n == 0 { 1.0 } else { x * power(x, n - 1) } }\n"
        "extern fn at(c: &Curve, x: f64) -> f64 { c.scale * x + c.shift }\n"
        "extern fn dot(a: Slice[f32], b: &[f32]) -> f32 { let mut s = 0f; for i in unroll(0i64, a.length) { s += a(i) * b(i); } s }\n"
        "extern fn twice(f: fn(f64) -> f64, x: f64) -> f64 { f(f(x)) }\n"
        "extern fn set(p: &mut i32) -> () { *p = 1; }\n";
    nyala_program *program = compiled(compiler, "partial.impala", source);
    nyala_partial *power = NULL, *square = NULL, *twice = NULL, *fourth = NULL, *dot = NULL, *at = NULL, *none = NULL;
    nyala_function *f = NULL;
    nyala_error *error = NULL;
    char *text = NULL;
    int32_t n = 2;
    EXPECT(nyala_program_partial(program, "power", &power, &error) == NYALA_OK);
    EXPECT(nyala_program_partial(program, "none", &none, &error) == NYALA_NO_FUNCTION && none == NULL);
    nyala_error_release(error);
    EXPECT(nyala_partial_fix(power, "n", NYALA_VALUES(int32_t, &n, 1), &square, &error) == NYALA_OK);
    EXPECT(nyala_partial_build(square, "double(double)", &f, &error) == NYALA_OK);
    EXPECT(NYALA_CAST(double, (double), f)(3.0) == 9.0);
    EXPECT(strcmp(nyala_function_declaration(f), "double power(double x)") == 0);
    nyala_function_release(f);
    EXPECT(nyala_partial_build(square, "double(float)", &f, &error) == NYALA_WRONG_TYPE && f == NULL);
    EXPECT(strstr(nyala_error_message(error), "parameter 1 is `float` here, `double x` in the program") != NULL);
    nyala_error_release(error);
    EXPECT(nyala_partial_explain(square, &text, &error) == NYALA_OK && strstr(text, "power") != NULL);
    nyala_text_free(text);

    EXPECT(nyala_partial_fix(power, "n", NYALA_VALUES(int64_t, &n, 1), &none, &error) == NYALA_WRONG_TYPE && none == NULL);
    EXPECT(strcmp(nyala_error_message(error), "`n` has another type: it is `int64_t` of 8 bytes here, `i32` of 4 in the program\n") == 0);
    nyala_error_release(error);
    EXPECT(nyala_partial_fix(power, "n", NYALA_VALUES(int32_t, &n, 2), &none, &error) == NYALA_CANNOT_FIX);
    EXPECT(strcmp(nyala_error_message(error), "cannot fix `n` of `power`: 2 values for one `i32`\n") == 0);
    nyala_error_release(error);
    EXPECT(nyala_partial_fix(square, "n", NYALA_VALUES(int32_t, &n, 1), &none, NULL) == NYALA_CANNOT_FIX);
    EXPECT(nyala_partial_fix(power, "m", NYALA_VALUES(int32_t, &n, 1), &none, NULL) == NYALA_CANNOT_FIX);
    EXPECT(nyala_partial_fix(power, "n", "int32_t *", sizeof(void *), &n, 1, &none, NULL) == NYALA_WRONG_TYPE);
    EXPECT(nyala_partial_fix(power, "n", "(", 4, &n, 1, &none, NULL) == NYALA_BAD_ARGUMENT);
    EXPECT(nyala_partial_fix(power, "n", NYALA_VALUES(int32_t, NULL, 1), &none, NULL) == NYALA_NULL_ARGUMENT);
    EXPECT(nyala_program_partial(program, "set", &none, NULL) == NYALA_OK);
    EXPECT(nyala_partial_fix(none, "p", NYALA_VALUES(int32_t, &n, 1), &at, NULL) == NYALA_CANNOT_FIX);
    nyala_partial_release(none);

    EXPECT(nyala_program_partial(program, "twice", &twice, &error) == NYALA_OK);
    EXPECT(nyala_partial_fix_function(twice, "f", square, &fourth, &error) == NYALA_OK);
    EXPECT(nyala_partial_build(fourth, "double(double)", &f, &error) == NYALA_OK);
    EXPECT(NYALA_CAST(double, (double), f)(3.0) == 81.0);
    nyala_function_release(f);
    EXPECT(nyala_partial_fix_function(twice, "f", power, &none, NULL) == NYALA_CANNOT_FIX);
    EXPECT(nyala_partial_retain(twice) == twice && nyala_partial_retain(NULL) == NULL);
    nyala_partial_release(twice);
    {
        const float weights[3] = {1, 2, 4}, numbers[3] = {10, 100, 1000};
        const Curve curve = {2, 1};
        EXPECT(nyala_program_partial(program, "dot", &none, &error) == NYALA_OK);
        EXPECT(nyala_partial_fix(none, "a", NYALA_VALUES(float, weights, 3), &dot, &error) == NYALA_OK);
        EXPECT(nyala_partial_build(dot, "float(const float *)", &f, &error) == NYALA_OK);
        EXPECT(NYALA_CAST(float, (const float *), f)(numbers) == 4210);
        nyala_function_release(f);
        nyala_partial_release(none);
        EXPECT(nyala_program_partial(program, "at", &none, &error) == NYALA_OK);
        EXPECT(nyala_partial_fix(none, "c", NYALA_VALUES(Curve, &curve, 1), &at, &error) == NYALA_OK);
        EXPECT(nyala_partial_build(at, "double(double)", &f, &error) == NYALA_OK);
        EXPECT(NYALA_CAST(double, (double), f)(3.0) == 7.0);
        nyala_function_release(f);
        nyala_partial_release(none);
    }
    nyala_partial_release(at);
    nyala_partial_release(dot);
    nyala_partial_release(fourth);
    nyala_partial_release(twice);
    nyala_partial_release(square);
    nyala_partial_release(power);
    nyala_partial_release(NULL);
    nyala_program_release(program);
}

/* What a program prints. */
static void output(nyala_compiler *compiler) {
    nyala_function *hello = NULL;
    nyala_program *program = compiled(compiler, "hello.impala", "extern fn hello() -> () { print_string(\"hello\"); println(); }");
    EXPECT(nyala_program_function(program, "hello", "void(void)", &hello, NULL) == NYALA_OK);
    NYALA_CAST(void, (void), hello)();
    nyala_flush_output();
    nyala_function_release(hello);
    nyala_program_release(program);
}

/* The argument is an empty folder. */
int main(int argc, char **argv) {
    nyala_compiler *compiler = nyala_compiler_new();
    EXPECT(argc == 2 && compiler != NULL);
    EXPECT(strcmp(nyala_version(), NYALA_VERSION) == 0);
    /* Sizes and places that callers compiled with other headers rely on. */
    EXPECT(sizeof(nyala_status) == sizeof(int) && sizeof(nyala_check) == sizeof(int));
    EXPECT(sizeof(nyala_stage) == sizeof(int) && sizeof(nyala_severity) == sizeof(int));
    EXPECT(sizeof(nyala_code) == sizeof(void *));
    EXPECT(offsetof(nyala_diagnostic, code) == sizeof(void *) && offsetof(nyala_diagnostic, rendered) == 9 * sizeof(void *));
    EXPECT(NYALA_INTERNAL == 7 && NYALA_CANNOT_FIX == 8 && NYALA_FAULT == 9 && NYALA_CHECK_UNINITIALIZED == 2 && NYALA_STAGE_C == 5 && NYALA_SEVERITY_INFO == 2);
    calls(compiler);
    wrong_types(compiler);
    structs(compiler);
    errors(compiler);
    options(argv[1]);
    shown(compiler);
    faults(compiler);
    nulls(compiler);
    two_programs(compiler);
    threads(compiler);
    partials(compiler);
    output(compiler);
    nyala_compiler_release(compiler);
    return 0;
}
