// What lib@NAME@ offers (@NAME@.h), by the host part of the kernel. Written by tile_eg.
#include "@NAME@_host.h"
#include "@NAME@.h"

extern "C" size_t @NAME@_workspace(@SIZES@)
{
    return @NAME@_host::workspaceBytes@CALLED@;
}

extern "C" int @NAME@_launch(void* stream, @POINTERS@, void* workspace@MORE_SIZES@)
{
    return int(@NAME@_host::launch(stream, @ARGUMENTS@, workspace@MORE_NAMES@));
}
