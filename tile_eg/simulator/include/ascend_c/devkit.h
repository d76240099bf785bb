// What the vendor's public headers of the high-level API need beside the instructions (simulator/devkit.py).
#pragma once
#include "queue.h"
#include "steps.h"

#define __ASC_USE_RESERVED_UBUF__(...)
#define __in_pipe__(x)
#define __out_pipe__(x)
#define ASCENDC_ASSERT_WARNING(...)
#define ASCENDC_REPORT_NOT_SUPPORT(...)
#define ASCENDC_REPORT_CHECK_ERROR(...)
#define ASCENDC_REPORT_OVERFLOW_MEM(...)
#define ASCENDC_CHECK_VALUE_RANGE(...)
#define ASCENDC_CHECK_TENSOR_PTR_ALIGN(...)
#define ASCENDC_CHECK_TPOSITION(...)
#define TRACE_START(...)
#define TRACE_STOP(...)

#include "impl/basic_api/utils/kernel_utils_constants.h"
#include "impl/basic_api/utils/kernel_utils_struct_norm_sort.h"
#include "impl/basic_api/utils/kernel_utils_struct_confusion_pad.h"

namespace AscendC
{

template <class T, class... Others>
constexpr bool SupportType()
{
    return (std::is_same_v<T, Others> || ...);
}

// Instructions as they are passed to a function, which calls them with these operands.
namespace by_pointer
{
#define TILE_SIM_POINTER(NAME)                                                                                             \
    template <class T>                                                                                                     \
    void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& a, const LocalTensor<T>& b, uint64_t* mask, uint8_t repeat, \
              const BinaryRepeatParams& p)                                                                                 \
    {                                                                                                                      \
        AscendC::NAME(dst, a, b, mask, repeat, p);                                                                         \
    }
TILE_SIM_POINTER(Add)
TILE_SIM_POINTER(Sub)
TILE_SIM_POINTER(Mul)
TILE_SIM_POINTER(Div)
TILE_SIM_POINTER(Max)
TILE_SIM_POINTER(Min)
#undef TILE_SIM_POINTER
template <class T>
void Exp(const LocalTensor<T>& dst, const LocalTensor<T>& src, uint64_t* mask, uint8_t repeat, const UnaryRepeatParams& p)
{
    AscendC::Exp(dst, src, mask, repeat, p);
}
}  // namespace by_pointer

// What the kernel's TPipe has not handed out.
template <class T, TPosition position>
bool PopStackBuffer(LocalTensor<T>& unused, Line line = Line(__builtin_LINE()))
{
    static_assert(space_of(position) == tile_sim::Space::UB, "PopStackBuffer takes what is left of UB");
    unused = detail::unused_buffer("a function of the high-level API", line).template ReinterpretCast<T>();
    return true;
}

}  // namespace AscendC
