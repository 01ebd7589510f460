/* nyala.h: Nyala in C and C++ programs. Compiles Impala while the program runs, and gives addresses of its functions.
 *
 *     nyala_compiler *compiler = nyala_compiler_new();
 *     nyala_program *program = NULL;
 *     nyala_function *half = NULL;
 *     nyala_error *error = NULL;
 *     if (nyala_compile_source(compiler, "half.impala", "extern fn half(x: f64) -> f64 { x / 2.0 }", &program, &error) == NYALA_OK
 *         && nyala_program_function(program, "half", NYALA_TYPE(double, (double)), &half, &error) == NYALA_OK)
 *         printf("%g\n", NYALA_CAST(double, (double), half)(3.0));
 *     else
 *         fputs(nyala_error_message(error), stderr);
 *     nyala_error_release(error);
 *     nyala_function_release(half);
 *     nyala_program_release(program);
 *     nyala_compiler_release(compiler);
 *
 * Handles. Compilers, programs, functions and errors are opaque, and counted: `..._retain` adds an owner, `..._release` takes one
 * away, and the last owner's release frees. Release takes NULL, and does nothing then. A handle that is used after its last release,
 * or released twice, is undefined behavior, as after `free`. A function keeps its program's code alive, so the program may be
 * released before it.
 *
 * Texts. All texts are UTF-8 and end with a zero. A `const char *` that a function returns belongs to the handle that it was asked
 * of, and lives as long. A `char *` that a function writes to its caller's variable is the caller's, and freed by `nyala_text_free`.
 *
 * Errors. A function that can fail returns a `nyala_status`. If that is not NYALA_OK, and `error` is not NULL, a handle with the
 * reason is written to `*error`, which the caller releases; otherwise `*error` becomes NULL. Results are written only if all
 * went well, and are NULL otherwise. A NULL where none is allowed is NYALA_NULL_ARGUMENT, not a crash. `error` may always be NULL.
 *
 * Threads. Every function may be called by several threads at once, also with the same handle. Nothing here is shared by the
 * process; any number of programs live at once.
 *
 * What compiled code does is not checked here: it is native code, as a plug-in in C would be. A panic of a program, a failed check and
 * `exit` end the process, unless the call is within `nyala_guarded`. Loops of `par` use one team of threads for the process, whose size
 * NYALA_NUM_THREADS says; so the library is never unloaded, not even by `dlclose`.
 *
 * Nothing here ends the process or writes to standard streams, but for a bug of the compiler's, of which it says on standard
 * error where it happened before NYALA_INTERNAL is returned. */
#ifndef NYALA_H
#define NYALA_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this header; `nyala_version` has the library's. */
#define NYALA_VERSION "0.1.0"

/* What became of a call. Numbers are never given anew; more may come. */
typedef enum nyala_status {
    /* All went well. */
    NYALA_OK = 0,
    /* An argument is NULL that must not be. */
    NYALA_NULL_ARGUMENT = 1,
    /* An argument has no meaning: no UTF-8, no such stage, no type of C. */
    NYALA_BAD_ARGUMENT = 2,
    /* The program is wrong, cannot be read, or needs what the compiler does not do yet: the error has diagnostics. */
    NYALA_BAD_PROGRAM = 3,
    /* The program exports no such function. */
    NYALA_NO_FUNCTION = 4,
    /* The function has another type. */
    NYALA_WRONG_TYPE = 5,
    /* The system or the installation lacks something: a thread, memory, the library of LLVM. */
    NYALA_SYSTEM = 6,
    /* A bug of the compiler's. */
    NYALA_INTERNAL = 7,
    /* A parameter cannot be fixed to a value. */
    NYALA_CANNOT_FIX = 8,
    /* Code of a program went wrong while it ran: a panic, a failed check, a call of `exit`, a device that is missing. */
    NYALA_FAULT = 9
} nyala_status;

/* What native code can check while it runs. A fault ends the process. docs/checks.md says what is seen. */
typedef enum nyala_check {
    /* Accesses stay within the block, variable or static that they began in. The host's memory has no bounds. */
    NYALA_CHECK_BOUNDS = 0,
    /* Signed arithmetic fits its type, and no integer is divided by zero. */
    NYALA_CHECK_OVERFLOW = 1,
    /* Numbers that are read were given a value. */
    NYALA_CHECK_UNINITIALIZED = 2
} nyala_check;

/* A form that a program has on its way. */
typedef enum nyala_stage {
    /* The graph before partial evaluation. */
    NYALA_STAGE_GRAPH = 0,
    /* The graph after it. */
    NYALA_STAGE_RESIDUAL = 1,
    /* Flat SSA. */
    NYALA_STAGE_FLAT = 2,
    /* LLVM's text, optimized. */
    NYALA_STAGE_LLVM = 3,
    /* Assembly. */
    NYALA_STAGE_ASSEMBLY = 4,
    /* C text, of whole programs only. */
    NYALA_STAGE_C = 5
} nyala_stage;

/* How grave a diagnostic is. */
typedef enum nyala_severity {
    NYALA_SEVERITY_ERROR = 0,
    NYALA_SEVERITY_WARNING = 1,
    NYALA_SEVERITY_INFO = 2
} nyala_severity;

typedef struct nyala_compiler nyala_compiler;
typedef struct nyala_program nyala_program;
typedef struct nyala_function nyala_function;
typedef struct nyala_partial nyala_partial;
typedef struct nyala_error nyala_error;

/* Something that the compiler says about a program. It belongs to the error or program that it was asked of. Fields may be added
 * at the end. */
typedef struct nyala_diagnostic {
    nyala_severity severity;
    /* The name of the fault, as in "type-mismatch"; docs/errors explains each. */
    const char *code;
    /* The fault in a sentence. */
    const char *message;
    /* The file as it was named; NULL if the fault is at no place of a source. */
    const char *file;
    /* Line and column, in characters, of the first character; from 1 on, 0 without a place. */
    size_t line;
    size_t column;
    /* Line and column of the character behind the last one. */
    size_t end_line;
    size_t end_column;
    /* What helps, one hint a line; NULL if there is none. */
    const char *hint;
    /* All of this as the command shows it, with lines of the source; it ends with the end of a line. */
    const char *rendered;
} nyala_diagnostic;

/* The address of a function. To be called it is cast to a pointer to a function of the type that was asked for. */
typedef void (*nyala_code)(void);

/* The type of a function as text and as a cast, so that both are the same: NYALA_TYPE(float, (const float *, int32_t)) and
 * NYALA_CAST(float, (const float *, int32_t), function). */
#define NYALA_TYPE(result, parameters) #result #parameters
#define NYALA_CAST(result, parameters, function) ((result(*) parameters)nyala_function_address(function))

/* The library's version. The text lives as long as the library. */
const char *nyala_version(void);

/* Options of compilation, those of the command by default. */
nyala_compiler *nyala_compiler_new(void);
/* Returns the compiler, with one more owner; NULL for NULL. */
nyala_compiler *nyala_compiler_retain(nyala_compiler *compiler);
void nyala_compiler_release(nyala_compiler *compiler);

/* Options. Each holds for what is compiled after it. These functions have no `error`: the status says what is wrong. */

/* The level of optimization, 0 to 3; 3 by default. Others are NYALA_BAD_ARGUMENT. */
nyala_status nyala_compiler_set_level(nyala_compiler *compiler, int level);
/* The CPU to make code for, as LLVM names it; this machine's by default. Code for another one may end the process. */
nyala_status nyala_compiler_set_cpu(nyala_compiler *compiler, const char *name);
/* Checks this, too, while programs run. */
nyala_status nyala_compiler_add_check(nyala_compiler *compiler, nyala_check check);
/* Whether annotations of partial evaluation are heeded (1, by default) or not (0). */
nyala_status nyala_compiler_set_partial_evaluation(nyala_compiler *compiler, int heeded);
/* The budget of partial evaluation, as a multiple of the usual one: a positive number. */
nyala_status nyala_compiler_set_budget(nyala_compiler *compiler, double multiple);
/* Whether signed arithmetic wraps around (1) or must not overflow (0, by default). */
nyala_status nyala_compiler_set_wrap(nyala_compiler *compiler, int wraps);
/* A folder in which libraries are looked for, after those before. */
nyala_status nyala_compiler_add_library_folder(nyala_compiler *compiler, const char *folder);
/* Replaces the initializer of a top-level static by an expression. */
nyala_status nyala_compiler_define(nyala_compiler *compiler, const char *name, const char *value);
/* Does not report warnings of this code; "warnings" stands for all of them. */
nyala_status nyala_compiler_allow(nyala_compiler *compiler, const char *code);
/* Makes warnings of this code errors; "warnings" stands for all of them. */
nyala_status nyala_compiler_deny(nyala_compiler *compiler, const char *code);
/* Whether native code is kept in the user's cache between runs (1) or not (0, by default). Only LLVM's work is saved. */
nyala_status nyala_compiler_set_keep_code(nyala_compiler *compiler, int keep);

/* Compiles a file, with the libraries and packages that it uses. */
nyala_status nyala_compile_file(const nyala_compiler *compiler, const char *path, nyala_program **program, nyala_error **error);
/* Compiles a text. Its name is for diagnostics; files that it uses are looked for beside that name. */
nyala_status nyala_compile_source(const nyala_compiler *compiler, const char *name, const char *text, nyala_program **program,
                                  nyala_error **error);
/* Compiles a program of `count` texts, each with a name. */
nyala_status nyala_compile_sources(const nyala_compiler *compiler, size_t count, const char *const *names,
                                   const char *const *texts, nyala_program **program, nyala_error **error);

/* Returns the program, with one more owner; NULL for NULL. */
nyala_program *nyala_program_retain(nyala_program *program);
void nyala_program_release(nyala_program *program);

/* A function that the program exports (`extern fn`), by its symbol, and its type as C declares it: "float(const float *, int32_t)"
 * or "float blur(const float *a, int32_t n)", by hand or by NYALA_TYPE. The type is compared with the program's:
 *
 * - numbers, `bool` and pointers must be the same, `const` of what a pointer leads to as well. `int`, `long`, `size_t` and so on
 *   stand for what they are on this machine; `char` for any integer of one byte. Names of parameters do not matter;
 * - a struct, written `struct Range` or `Range`, must have the name that it has in the program's header. Its fields are compared
 *   if the type defines it before: "struct Range { double low; double high; }; struct Range(const double *, int64_t)". Without
 *   that, the caller vouches that it is the struct of `nyala_program_header`.
 *
 * Errors: NYALA_NO_FUNCTION, NYALA_WRONG_TYPE with both types in the message, NYALA_BAD_ARGUMENT if the text is no type of a
 * function, NYALA_BAD_PROGRAM if the function has a type that C does not have. */
nyala_status nyala_program_function(const nyala_program *program, const char *symbol, const char *type, nyala_function **function,
                                    nyala_error **error);
/* The number of exported functions; 0 for NULL. */
size_t nyala_program_function_count(const nyala_program *program);
/* The symbol of an exported function, and how C declares it. Both are NULL for an index that is too great; the declaration also if
 * the function has a type that C does not have. */
const char *nyala_program_function_symbol(const nyala_program *program, size_t index);
const char *nyala_program_function_declaration(const nyala_program *program, size_t index);
/* What the compiler said about the program, which is no error. The diagnostic is NULL for an index that is too great. */
size_t nyala_program_warning_count(const nyala_program *program);
const nyala_diagnostic *nyala_program_warning(const nyala_program *program, size_t index);

/* The header for C of the exported functions and their structs, guarded by the macro `guard`. The text is the caller's. */
nyala_status nyala_program_header(const nyala_program *program, const char *guard, char **text, nyala_error **error);
/* The program at a stage, or one function of it if `function` is not NULL. The program is compiled anew. The text is the
 * caller's. */
nyala_status nyala_program_emit(const nyala_program *program, nyala_stage stage, const char *function, char **text,
                                nyala_error **error);
/* What partial evaluation did in a function, and why. The program is compiled anew. The text is the caller's. */
nyala_status nyala_program_explain(const nyala_program *program, const char *function, char **text, nyala_error **error);

/* Frees a text that is the caller's; NULL is nothing. */
void nyala_text_free(char *text);

/* Returns the function, with one more owner; NULL for NULL. */
nyala_function *nyala_function_retain(nyala_function *function);
void nyala_function_release(nyala_function *function);
/* Where the function is, as long as the handle lives; NULL for NULL. */
nyala_code nyala_function_address(const nyala_function *function);
/* How C declares the function; NULL for NULL. */
const char *nyala_function_declaration(const nyala_function *function);

/* Calls `body(context)`. If code of a program that it calls goes wrong, in this thread, in a loop of `par`, or in a thread that it waits
 * for, the call ends with NYALA_FAULT instead of the process. The error has one diagnostic, with the fault's code ("panic", "exit",
 * that of a check), and its place if that is known. The program can be called again; what its code had allocated stays so.
 *
 * A fault goes back past all frames in between, as `longjmp` does: `body` should do little but call. A C++ exception must not leave
 * it. What the processor finds ends the process still: a wild access, a division by zero that is not checked, a stack that is full. */
nyala_status nyala_guarded(void (*body)(void *context), void *context, nyala_error **error);

/* Functions with some parameters fixed to values that the running program knows. nyala_partial_build makes code in which these are
 * constants: it is specialized as if the source had them, and found again for equal values. */

/* An exported function of which nothing is fixed yet. It may have functions as parameters, if these are fixed. */
nyala_status nyala_program_partial(const nyala_program *program, const char *symbol, nyala_partial **partial, nyala_error **error);
/* Returns the partial, with one more owner; NULL for NULL. */
nyala_partial *nyala_partial_retain(nyala_partial *partial);
void nyala_partial_release(nyala_partial *partial);

/* Fixes a parameter, by its name, to `count` values at an address, which are copied. `type` is the C type of one of them and `size`
 * its bytes: NYALA_VALUES(float, weights, 9) gives type, size, address and count.
 *
 * - a number, `bool` or struct, by value or as `&T`: one value;
 * - `&[T]` and `Slice[T]`: any number of elements.
 *
 * A struct is compared by its size; the caller vouches that it is the struct of `nyala_program_header`. Structs with pointers in them and
 * `&mut T` cannot be fixed, nor can more than 8 MiB. `partial` stays as it is; the result is another one.
 *
 * Errors: NYALA_CANNOT_FIX, NYALA_WRONG_TYPE. */
nyala_status nyala_partial_fix(const nyala_partial *partial, const char *parameter, const char *type, size_t size, const void *values,
                               size_t count, nyala_partial **fixed, nyala_error **error);
#define NYALA_VALUES(type, address, count) #type, sizeof(type), (address), (count)
/* Fixes a parameter that is a function to a function of the same program, of which parameters may be fixed as well. */
nyala_status nyala_partial_fix_function(const nyala_partial *partial, const char *parameter, const nyala_partial *function,
                                        nyala_partial **fixed, nyala_error **error);
/* The code with these values as constants: code that was kept, or made now. `type` is that of the parameters that are left, as for
 * nyala_program_function.
 *
 * Errors: as there, and NYALA_BAD_PROGRAM if it does not compile with these values. */
nyala_status nyala_partial_build(const nyala_partial *partial, const char *type, nyala_function **function, nyala_error **error);
/* What partial evaluation does with these values, and why. The text is the caller's. */
nyala_status nyala_partial_explain(const nyala_partial *partial, char **text, nyala_error **error);

/* Returns the error, with one more owner; NULL for NULL. */
nyala_error *nyala_error_retain(nyala_error *error);
void nyala_error_release(nyala_error *error);
/* The status that came with the error; NYALA_OK for NULL. */
nyala_status nyala_error_status(const nyala_error *error);
/* The whole error for people: one or more lines, of which the last ends. Empty for NULL. */
const char *nyala_error_message(const nyala_error *error);
/* Diagnostics of a program that is wrong, warnings among them, or that of a fault. NULL for an index that is too great. */
size_t nyala_error_diagnostic_count(const nyala_error *error);
const nyala_diagnostic *nyala_error_diagnostic(const nyala_error *error, size_t index);

/* Writes out what programs have printed, which the C library's standard output has until then. */
void nyala_flush_output(void);

#ifdef __cplusplus
}
#endif

#endif /* NYALA_H */
