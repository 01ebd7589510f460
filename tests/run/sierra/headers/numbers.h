#pragma once
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif
const int32_t SEVEN = 7;
