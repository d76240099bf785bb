// What a kernel prints of a memory, by the address in it.
#pragma once
#include "../../kernel_operator.h"

namespace AscendC::detail
{

template <class T>
void dump_local(const char* where, tile_sim::Space space, T* input, uint32_t desc, uint32_t size, int line)
{
    const int64_t at = int64_t(reinterpret_cast<uintptr_t>(input));
    print_elements<T>(where, {space, tile_sim::TypeOf<T>::value, at, tile_sim::capacity(space)}, desc, size, line);
}

}  // namespace AscendC::detail

template <class T>
void asc_dump_gm(__gm__ T* input, uint32_t desc, uint32_t dump_size, AscendC::Line line = AscendC::Line(__builtin_LINE()))
{
    const int64_t at = tile_sim::gm_address(input, line);
    AscendC::detail::print_elements<T>("GM", {tile_sim::Space::GM, tile_sim::TypeOf<T>::value, at, tile_sim::gm_end(at)}, desc, dump_size, line);
}
#define TILE_SIM_DUMP(NAME, SPACE)                                                                                             \
    template <class T>                                                                                                         \
    void NAME(T* input, uint32_t desc, uint32_t dump_size, AscendC::Line line = AscendC::Line(__builtin_LINE()))               \
    {                                                                                                                          \
        AscendC::detail::dump_local(#SPACE, tile_sim::Space::SPACE, input, desc, dump_size, line);                             \
    }
TILE_SIM_DUMP(asc_dump_ubuf, UB)
TILE_SIM_DUMP(asc_dump_l1buf, L1)
TILE_SIM_DUMP(asc_dump_cbuf, L0C)
#undef TILE_SIM_DUMP
