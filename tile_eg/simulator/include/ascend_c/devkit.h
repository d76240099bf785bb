// What the vendor's public headers of the high-level API need beside the instructions (simulator/devkit.py).
#pragma once
#include "copy.h"
#include "queue.h"
#include "steps.h"

#define __ASC_USE_RESERVED_UBUF__(...)
#define __BLOCK_LOCAL__ thread_local
#define ASCENDC_HOST_AICORE
#define __in_pipe__(...)
#define __out_pipe__(...)
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

#if __NPU_ARCH__ == 2201
using fp8_e8m0_t = uint8_t;
#endif
enum class pad_t : uint8_t { PAD_NONE, PAD_MODE1, PAD_MODE2, PAD_MODE3, PAD_MODE4, PAD_MODE5, PAD_MODE6, PAD_MODE7, PAD_MODE8 };
enum addr_cal_mode_t { inc, dec };
inline uint64_t get_imm(uint64_t number) { return number; }

namespace AscendC
{

template <class T>
using TensorTrait = T;
template <class...>
struct Tuple {
};
class KfcCommClient;
constexpr int32_t MIX_NUM = 2;
enum class DeqScale : uint8_t { DEQ_NONE, DEQ, VDEQ, DEQ8, VDEQ8, DEQ16, VDEQ16 };
enum class DeQuantMode : uint8_t { DEQUANT_WITH_SINGLE_ROW, DEQUANT_WITH_MULTI_ROW };
enum class CLAMPMODE { CLAMP_MAX, CLAMP_MIN };
enum class BlockMode : uint8_t {
    BLOCK_MODE_NORMAL,
    BLOCK_MODE_MATRIX,
    BLOCK_MODE_VECTOR,
    BLOCK_MODE_SMALL_CHANNEL,
    BLOCK_MODE_DEPTHWISE
};
struct DataCopyEnhancedParams {
    BlockMode blockMode = BlockMode::BLOCK_MODE_NORMAL;
    DeqScale deqScale = DeqScale::DEQ_NONE;
    uint64_t deqValue = 0;
    uint8_t sidStoreMode = 0;
    bool isRelu = false;
    pad_t padMode = pad_t::PAD_NONE;
    uint64_t padValue = 0, deqTensorAddr = 0;
};

// Between GM and UB or L1 they change nothing on 2201.
template <class T>
void DataCopy(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const DataCopyParams& p, const DataCopyEnhancedParams&,
              Line line = Line(__builtin_LINE()))
{
    DataCopy(dst, src, p, line);
}
template <class T>
void DataCopy(const GlobalTensor<T>& dst, const LocalTensor<T>& src, const DataCopyParams& p, const DataCopyEnhancedParams&,
              Line line = Line(__builtin_LINE()))
{
    DataCopy(dst, src, p, line);
}

template <bool first, bool second, class A, class B, class C, class D>
struct ConditionalMulti {
    using type = std::conditional_t<first, std::conditional_t<second, A, B>, std::conditional_t<second, C, D>>;
};

// The system's workspace, which only Matmul objects of vector cores need. Without room for it nothing may be read or written there.
inline uint8_t* GetSysWorkSpacePtr()
{
    uint8_t* const there = tile_sim::system_workspace();
    return there ? there : reinterpret_cast<uint8_t*>(uintptr_t(1));
}

// Several Matmul objects, one after the other, take the same L0 and table of biases, and begin at the same place of L1 and L0C. As in
// the vendor's, the first one's share of these is what its tiling says.
namespace detail
{
struct Share {
    tile_sim::Space space;
    int64_t start = 0, end = 0;
};
struct Shares {
    const TPipe* of = nullptr;
    Share each[2] = {{tile_sim::Space::L1}, {tile_sim::Space::L0C}};
};
inline Shares& shares()
{
    static thread_local Shares those;
    return those;
}
}  // namespace detail

inline void InitShareBufStart(TPipe* pipe, uint32_t mode, const uint32_t* lengths, uint32_t, uint8_t sub_block)
{
    using tile_sim::Space;
    const bool first = detail::shares().of != pipe;
    for (detail::Share& share : detail::shares().each) {
        const int64_t now = tile_sim::allocate(share.space, 0, 0), length = *lengths++;
        if (first)
            share.start = now, share.end = now + length;
        else
            share.end = now;
        tile_sim::restart_allocation(share.space, share.start + (mode == 1 && sub_block == 1 ? length / 2 : 0));
    }
    detail::shares().of = pipe;
    for (const Space space : {Space::L0A, Space::L0B, Space::BT}) tile_sim::restart_allocation(space, 0);
}
inline void InitShareBufEnd(TPipe*)
{
    for (const detail::Share& share : detail::shares().each) tile_sim::restart_allocation(share.space, share.end);
}

class AscendCUtils
{
public:
    static int32_t GetC0Count(int32_t bytes) { return DEFAULT_C0_SIZE / bytes; }
    static void SetOverflow(uint64_t kept) { tile_sim::keep_infinities(kept != 0); }
};

inline uint32_t Ceil(uint32_t a, uint32_t b) { return (a + b - 1) / b; }
constexpr uint32_t ConstCeil(uint32_t a, uint32_t b) { return (a + b - 1) / b; }

inline void Barrier() {}  // for the compiler: the simulator keeps the order of a core's scalar unit
inline int64_t GetSubBlockIdxImpl() { return tile_sim::sub_block_index(); }
template <pipe_t pipe>
void NotifyEvent(uint16_t id, Line line = Line(__builtin_LINE()))
{
    CrossCoreSetFlag<2, pipe>(id, line);
}
inline void WaitEvent(uint16_t id, Line line = Line(__builtin_LINE())) { CrossCoreWaitFlag(id, line); }

template <class T, class... Others>
constexpr bool SupportType()
{
    return (std::is_same_v<T, Others> || ...);
}

// Instructions as they are passed to a function, which calls them with these operands.
namespace by_pointer
{
#define TILE_SIM_POINTER(NAME)                                                                                             \
    template <class T, bool isSetMask = true>                                                                              \
    void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& a, const LocalTensor<T>& b, uint64_t* mask, uint8_t repeat, \
              const BinaryRepeatParams& p)                                                                                 \
    {                                                                                                                      \
        AscendC::NAME<T, isSetMask>(dst, a, b, mask, repeat, p);                                                           \
    }                                                                                                                      \
    template <class T, bool isSetMask = true>                                                                              \
    void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& a, const LocalTensor<T>& b, uint64_t mask, uint8_t repeat,  \
              const BinaryRepeatParams& p)                                                                                 \
    {                                                                                                                      \
        AscendC::NAME<T, isSetMask>(dst, a, b, mask, repeat, p);                                                           \
    }
TILE_SIM_POINTER(Add)
TILE_SIM_POINTER(Sub)
TILE_SIM_POINTER(Mul)
TILE_SIM_POINTER(Div)
TILE_SIM_POINTER(Max)
TILE_SIM_POINTER(Min)
TILE_SIM_POINTER(And)
TILE_SIM_POINTER(Or)
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

using AscendC::GetSysWorkSpacePtr;
