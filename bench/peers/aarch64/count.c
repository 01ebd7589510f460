// A plugin for QEMU's user mode, which counts the instructions that a program executes and prints their number to standard error. The
// functions of QEMU's interface for plugins are declared here, so that its header is not needed.
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef uint64_t Id;
struct qemu_plugin_tb;
void qemu_plugin_register_vcpu_tb_trans_cb(Id id, void (*translated)(Id, struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *block, int operation, void *to, uint64_t number);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);
void qemu_plugin_register_atexit_cb(Id id, void (*ended)(Id, void *), void *data);

#define SHOWN __attribute__((visibility("default")))
enum { VERSION = 1, ADD = 0 };

SHOWN int qemu_plugin_version = VERSION;
static uint64_t executed;

static void translated(Id id, struct qemu_plugin_tb *block) {
    qemu_plugin_register_vcpu_tb_exec_inline(block, ADD, &executed, qemu_plugin_tb_n_insns(block));
}

static void ended(Id id, void *data) { fprintf(stderr, "instructions %llu\n", (unsigned long long)executed); }

SHOWN int qemu_plugin_install(Id id, const void *machine, int count, char **arguments) {
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, ended, NULL);
    return 0;
}
