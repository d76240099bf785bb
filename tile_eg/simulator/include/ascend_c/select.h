// Comparisons give one bit an element; selections pick by such bits.
#pragma once
#include "mask.h"

namespace AscendC
{
namespace detail
{

template <class T, class U>
void check_compare(CMPMODE mode, int line)
{
    static_assert(one_of<T, half, float, int32_t> && sizeof(U) == 1,
                  "comparisons take half, float and int32_t into bytes on 2201");
    if (std::is_same_v<T, int32_t> && mode != CMPMODE::EQ)
        tile_sim::misuse("unsupported", line, "int32_t is compared with CMPMODE::EQ only on 2201");
}

template <class T, class U>
void check_select(SELMODE mode, bool scalar, int line)
{
    static_assert(is_number<T>, "Select takes half and float on 2201");
    static_assert(std::is_unsigned_v<U>, "the mask of Select is a tensor of unsigned integers");
    if (scalar != (mode == SELMODE::VSEL_TENSOR_SCALAR_MODE))
        tile_sim::misuse("field", line, scalar ? "Select of a tensor and a scalar is VSEL_TENSOR_SCALAR_MODE"
                                               : "Select of two tensors is VSEL_CMPMASK_SPR or VSEL_TENSOR_TENSOR_MODE");
}

}  // namespace detail

template <class T, class U>
void Compare(const LocalTensor<U>& dst, const LocalTensor<T>& a, const LocalTensor<T>& b, CMPMODE mode, uint32_t count,
             Line line = Line(__builtin_LINE()))
{
    detail::check_compare<T, U>(mode, line);
    tile_sim::vector_compare({dst.operand(), {}}, {a.operand(), {}}, {b.operand(), {}}, tile_sim::Comparison(mode),
                             detail::first<T>(count, line), line);
}

// The mask has no effect on this architecture: every round gives all its bits.
template <class T, class U, bool isSetMask = true>
void Compare(const LocalTensor<U>& dst, const LocalTensor<T>& a, const LocalTensor<T>& b, CMPMODE mode, detail::Mask mask,
             int64_t repeat, const BinaryRepeatParams& p, Line line = Line(__builtin_LINE()))
{
    detail::check_compare<T, U>(mode, line);
    mask.lanes<isSetMask>(repeat, sizeof(T), line);
    tile_sim::Lanes lanes;
    lanes.repeat = repeat;
    tile_sim::vector_compare({dst.operand(), {}},
                             {a.operand(), detail::stride(p.src0BlkStride, p.src0RepStride, 255, "src0*Stride", line)},
                             {b.operand(), detail::stride(p.src1BlkStride, p.src1RepStride, 255, "src1*Stride", line)},
                             tile_sim::Comparison(mode), lanes, line);
}

// One round into the compare register.
template <class T, bool isSetMask = true>
void Compare(const LocalTensor<T>& a, const LocalTensor<T>& b, CMPMODE mode, detail::Mask mask, const BinaryRepeatParams& p,
             Line line = Line(__builtin_LINE()))
{
    static_assert(detail::is_number<T>, "Compare into the register takes half and float");
    tile_sim::vector_compare_register(
        {a.operand(), detail::stride(p.src0BlkStride, p.src0RepStride, 255, "src0*Stride", line)},
        {b.operand(), detail::stride(p.src1BlkStride, p.src1RepStride, 255, "src1*Stride", line)}, tile_sim::Comparison(mode),
        mask.lanes<isSetMask>(1, sizeof(T), line), line);
}

template <class T>
void GetCmpMask(const LocalTensor<T>& dst, Line line = Line(__builtin_LINE()))
{
    tile_sim::get_compare_mask(dst.operand(), line);
}
template <class T>
void SetCmpMask(const LocalTensor<T>& src, Line line = Line(__builtin_LINE()))
{
    tile_sim::set_compare_mask(src.operand(), line);
}

#define TILE_SIM_COMPARES(NAME)                                                                                             \
    template <class T, class U>                                                                                             \
    void NAME(const LocalTensor<U>& dst, const LocalTensor<T>& a, const T scalar, CMPMODE mode, uint32_t count,             \
              Line line = Line(__builtin_LINE()))                                                                                  \
    {                                                                                                                       \
        detail::check_compare<T, U>(mode, line);                                                                            \
        tile_sim::vector_compare_scalar({dst.operand(), {}}, {a.operand(), {}}, double(scalar), tile_sim::Comparison(mode), \
                                        detail::first<T>(count, line), line);                                               \
    }                                                                                                                       \
    template <class T, class U, bool isSetMask = true>                                                                      \
    void NAME(const LocalTensor<U>& dst, const LocalTensor<T>& a, const T scalar, CMPMODE mode, detail::Mask mask,          \
              int64_t repeat, const UnaryRepeatParams& p, Line line = Line(__builtin_LINE()))                                      \
    {                                                                                                                       \
        detail::check_compare<T, U>(mode, line);                                                                            \
        mask.lanes<isSetMask>(repeat, sizeof(T), line);                                                                     \
        tile_sim::Lanes lanes;                                                                                              \
        lanes.repeat = repeat;                                                                                              \
        tile_sim::vector_compare_scalar({dst.operand(), {}}, detail::sides(dst, a, p, line).src, double(scalar),            \
                                        tile_sim::Comparison(mode), lanes, line);                                           \
    }
TILE_SIM_COMPARES(Compares)
TILE_SIM_COMPARES(CompareScalar)
#undef TILE_SIM_COMPARES

template <class T, class U>
void Select(const LocalTensor<T>& dst, const LocalTensor<U>& mask, const LocalTensor<T>& a, const LocalTensor<T>& b, SELMODE mode,
            uint32_t count, Line line = Line(__builtin_LINE()))
{
    detail::check_select<T, U>(mode, false, line);
    tile_sim::vector_select({dst.operand(), {}}, mask.operand(), {a.operand(), {}}, {b.operand(), {}},
                            tile_sim::SelectMode(mode), detail::first<T>(count, line), line);
}

template <class T, class U>
void Select(const LocalTensor<T>& dst, const LocalTensor<U>& mask, const LocalTensor<T>& a, T scalar, SELMODE mode,
            uint32_t count, Line line = Line(__builtin_LINE()))
{
    detail::check_select<T, U>(mode, true, line);
    tile_sim::vector_select_scalar({dst.operand(), {}}, mask.operand(), {a.operand(), {}}, double(scalar),
                                   detail::first<T>(count, line), line);
}

template <class T, class U, bool isSetMask = true>
void Select(const LocalTensor<T>& dst, const LocalTensor<U>& bits, const LocalTensor<T>& a, const LocalTensor<T>& b, SELMODE mode,
            detail::Mask mask, int64_t repeat, const BinaryRepeatParams& p, Line line = Line(__builtin_LINE()))
{
    detail::check_select<T, U>(mode, false, line);
    const auto s = detail::sides(dst, a, b, p, line);
    tile_sim::vector_select(s.dst, bits.operand(), s.a, s.b, tile_sim::SelectMode(mode),
                            mask.lanes<isSetMask>(repeat, sizeof(T), line), line);
}

template <class T, class U, bool isSetMask = true>
void Select(const LocalTensor<T>& dst, const LocalTensor<U>& bits, const LocalTensor<T>& a, T scalar, SELMODE mode,
            detail::Mask mask, int64_t repeat, const BinaryRepeatParams& p, Line line = Line(__builtin_LINE()))
{
    detail::check_select<T, U>(mode, true, line);
    const auto s = detail::sides(dst, a, a, p, line);
    tile_sim::vector_select_scalar(s.dst, bits.operand(), s.a, double(scalar), mask.lanes<isSetMask>(repeat, sizeof(T), line),
                                   line);
}

// By the bits of the compare register, one and the same for each round.
template <class T, SELMODE selMode>
void Select(const LocalTensor<T>& dst, const LocalTensor<T>& a, const LocalTensor<T>& b, int64_t repeat,
            const BinaryRepeatParams& p, Line line = Line(__builtin_LINE()))
{
    static_assert(detail::is_number<T>, "Select takes half and float on 2201");
    static_assert(selMode == SELMODE::VSEL_CMPMASK_SPR,
                  "the simulator knows Select without a mask tensor in VSEL_CMPMASK_SPR only; the forms with one do the rest");
    const auto s = detail::sides(dst, a, b, p, line);
    tile_sim::vector_select(s.dst, {}, s.a, s.b, tile_sim::SelectMode::from_register,
                            detail::Mask(0).lanes<false>(repeat, sizeof(T), line), line);
}

// By the bits of a tensor, one after the other; where a bit is 0, the first element of the compare register. The mask of the
// instruction before holds.
template <class T, class U>
void Select(const LocalTensor<T>& dst, const LocalTensor<U>& bits, const LocalTensor<T>& a, int64_t repeat,
            const BinaryRepeatParams& p, Line line = Line(__builtin_LINE()))
{
    detail::check_select<T, U>(SELMODE::VSEL_TENSOR_SCALAR_MODE, true, line);
    const auto s = detail::sides(dst, a, a, p, line);
    tile_sim::vector_select_register_scalar(s.dst, bits.operand(), s.a, detail::Mask(0).lanes<false>(repeat, sizeof(T), line), line);
}

}  // namespace AscendC
