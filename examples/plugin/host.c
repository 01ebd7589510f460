/* A host with plug-ins that are written in Impala: compiles each file of a folder when it starts, and applies what it exports, a
 * function `run(x: i32) -> i32`, to numbers. A plug-in that is wrong is reported with its place, and left
 * out; one that panics is reported, and left there.
 *
 *     host FOLDER NUMBER... */
#include <dirent.h>
#include <errno.h>
#include <nyala.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int is_plugin(const struct dirent *entry) {
    const char *ending = strrchr(entry->d_name, '.');
    return ending != NULL && strcmp(ending, ".impala") == 0;
}

/* The plug-in's function; NULL if it is wrong, which standard error says. */
static nyala_function *load(const nyala_compiler *compiler, const char *path) {
    nyala_program *program = NULL;
    nyala_function *function = NULL;
    nyala_error *error = NULL;
    size_t i;
    if (nyala_compile_file(compiler, path, &program, &error) == NYALA_OK) {
        for (i = 0; i < nyala_program_warning_count(program); i++) {
            const nyala_diagnostic *warning = nyala_program_warning(program, i);
            fprintf(stderr, "%s:%zu: warning: %s\n", path, warning->line, warning->message);
        }
        nyala_program_function(program, "run", NYALA_TYPE(int32_t, (int32_t)), &function, &error);
    }
    for (i = 0; i < nyala_error_diagnostic_count(error); i++) {
        const nyala_diagnostic *d = nyala_error_diagnostic(error, i);
        const char *kind = d->severity == NYALA_SEVERITY_ERROR ? "error" : "note";
        fprintf(stderr, "%s:%zu:%zu: %s: %s\n", d->file != NULL ? d->file : path, d->line, d->column, kind, d->message);
        if (d->hint != NULL) fprintf(stderr, "    %s\n", d->hint);
    }
    /* Other errors are at no place. */
    if (error != NULL && nyala_error_diagnostic_count(error) == 0) fprintf(stderr, "%s: error: %s", path, nyala_error_message(error));
    nyala_error_release(error);
    /* A function keeps its code. */
    nyala_program_release(program);
    return function;
}

/* What is applied to a number. */
typedef struct Call {
    nyala_function *run;
    int32_t x;
    int32_t result;
} Call;

static void call(void *context) {
    Call *of = (Call *)context;
    of->result = NYALA_CAST(int32_t, (int32_t), of->run)(of->x);
}

int main(int argc, char **argv) {
    struct dirent **entries = NULL;
    nyala_compiler *compiler;
    int found, i, number, failed = 0;
    if (argc < 2) {
        fprintf(stderr, "usage: %s FOLDER NUMBER...\n", argv[0]);
        return 2;
    }
    found = scandir(argv[1], &entries, is_plugin, alphasort);
    if (found < 0) {
        fprintf(stderr, "%s: %s\n", argv[1], strerror(errno));
        return 1;
    }
    compiler = nyala_compiler_new();
    for (i = 0; i < found; i++) {
        char path[4096];
        nyala_function *run;
        snprintf(path, sizeof path, "%s/%s", argv[1], entries[i]->d_name);
        run = load(compiler, path);
        if (run != NULL) {
            printf("%s:", entries[i]->d_name);
            for (number = 2; number < argc; number++) {
                nyala_error *fault = NULL;
                Call of;
                of.run = run;
                of.x = (int32_t)strtol(argv[number], NULL, 10);
                if (nyala_guarded(call, &of, &fault) != NYALA_OK) {
                    fprintf(stderr, "%s: %s", path, nyala_error_message(fault));
                    nyala_error_release(fault);
                    failed++;
                    break;
                }
                printf(" %d", of.result);
            }
            printf("\n");
        } else {
            failed++;
        }
        nyala_function_release(run);
        free(entries[i]);
    }
    free(entries);
    nyala_compiler_release(compiler);
    return failed > 0;
}
