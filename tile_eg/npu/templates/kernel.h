// What lib@NAME@ offers to C and C++. Written by tile_eg.
#pragma once
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

// Bytes of GM that a launch needs beside its tensors.
size_t @NAME@_workspace(@SIZES@);

// Puts the kernel on a stream (aclrtStream) and returns ACL's code; 0 is good. Pointers are the device's; tensors are row-major,
// without gaps:
@TENSORS@
int @NAME@_launch(void* stream, @POINTERS@, void* workspace@MORE_SIZES@);

#ifdef __cplusplus
}
#endif
