// The iteration of all three programs, compiled apart, so that no compiler sees its body.
#ifndef WORK_H
#define WORK_H
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif
/// A cheap call.
void touch(int32_t *cells, int32_t i);
/// So many steps of work that depends on itself.
int32_t steps(int32_t n);
#ifdef __cplusplus
}
#endif
#endif
