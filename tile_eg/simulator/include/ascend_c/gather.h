// Collecting elements: by offsets, by blocks, by the bits of a pattern.
#pragma once
#include "mask.h"

namespace AscendC
{

template <class T>
void Gather(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint32_t>& srcOffset, uint32_t srcBaseAddr,
            uint32_t count, Line line = Line(__builtin_LINE()))
{
    static_assert(detail::is_word<T>, "Gather takes 16-bit and 32-bit elements on 2201");
    tile_sim::vector_gather({dst.operand(), {}}, src.operand(), srcOffset.operand(), srcBaseAddr, detail::first<T>(count, line),
                            line);
}

template <class T>
void Gather(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint32_t>& srcOffset, uint32_t srcBaseAddr,
            detail::Mask mask, int64_t repeat, int64_t dstRepStride, Line line = Line(__builtin_LINE()))
{
    static_assert(detail::is_word<T>, "Gather takes 16-bit and 32-bit elements on 2201");
    const tile_sim::Stride stride{1, tile_sim::checked(dstRepStride, 0, 65535, "dstRepStride", line)};
    tile_sim::vector_gather({dst.operand(), stride}, src.operand(), srcOffset.operand(), srcBaseAddr,
                            mask.lanes<true>(repeat, sizeof(T), line), line);
}

struct GatherRepeatParams {
    Field dstBlkStride = 1, dstRepStride = 8;
    GatherRepeatParams() = default;
    GatherRepeatParams(Field dstBlk, Field dstRep) : dstBlkStride(dstBlk), dstRepStride(dstRep) {}
};

template <class T>
void Gatherb(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint32_t>& offset, int64_t repeat,
             const GatherRepeatParams& p, Line line = Line(__builtin_LINE()))
{
    using tile_sim::checked;
    static_assert(detail::one_of<T, uint16_t, uint32_t>, "Gatherb takes uint16_t and uint32_t on 2201");
    const int64_t block = checked(p.dstBlkStride, 0, 255, "GatherRepeatParams.dstBlkStride", line);
    tile_sim::vector_gather_blocks(
        dst.operand(), src.operand(), offset.operand(), checked(repeat, 0, 255, "repeatTime", line),
        {block ? block : 1, checked(p.dstRepStride, 0, 65535, "GatherRepeatParams.dstRepStride", line)}, line);
}

struct GatherMaskParams {
    Field src0BlockStride = 1, repeatTimes, src0RepeatStride = 8, src1RepeatStride = 8;
    GatherMaskParams() = default;
    GatherMaskParams(Field block, Field times, Field src0Repeat, Field src1Repeat)
        : src0BlockStride(block), repeatTimes(times), src0RepeatStride(src0Repeat), src1RepeatStride(src1Repeat)
    {
    }
};
enum class GatherMaskMode : uint8_t { VERSION_V1, VERSION_V2 };
constexpr GatherMaskMode defaultGatherMaskMode = GatherMaskMode::VERSION_V2;

namespace detail
{

inline tile_sim::GatherMaskShape gather_mask_shape(const GatherMaskParams& p, int64_t fixed, bool counts, uint32_t mask, int line)
{
    using tile_sim::checked;
    return {checked(p.src0BlockStride, 0, 255, "GatherMaskParams.src0BlockStride", line),
            checked(p.repeatTimes, 0, 65535, "GatherMaskParams.repeatTimes", line),
            checked(p.src0RepeatStride, 0, 65535, "GatherMaskParams.src0RepeatStride", line),
            checked(p.src1RepeatStride, 0, 255, "GatherMaskParams.src1RepeatStride", line),
            fixed,
            counts ? int64_t(mask) : -1};
}

}  // namespace detail

// By a pattern in UB. The instruction leaves the mask register in normal mode.
template <class T, class U, GatherMaskMode mode = defaultGatherMaskMode>
void GatherMask(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<U>& pattern, bool reduceMode,
                uint32_t mask, const GatherMaskParams& p, uint64_t& rsvdCnt, Line line = Line(__builtin_LINE()))
{
    static_assert(detail::is_word<T> && std::is_unsigned_v<U> && sizeof(T) == sizeof(U),
                  "GatherMask takes 16-bit elements with uint16_t, and 32-bit ones with uint32_t, on 2201");
    rsvdCnt = tile_sim::vector_gather_mask(dst.operand(), src.operand(), &pattern.operand(),
                                           detail::gather_mask_shape(p, 0, reduceMode, mask, line), line);
}

// By one of the seven patterns of the hardware.
template <class T, GatherMaskMode mode = defaultGatherMaskMode>
void GatherMask(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint8_t pattern, bool reduceMode, uint32_t mask,
                const GatherMaskParams& p, uint64_t& rsvdCnt, Line line = Line(__builtin_LINE()))
{
    static_assert(detail::is_word<T>, "GatherMask takes 16-bit and 32-bit elements on 2201");
    tile_sim::checked(pattern, 1, 7, "the pattern of GatherMask", line);
    rsvdCnt = tile_sim::vector_gather_mask(dst.operand(), src.operand(), nullptr,
                                           detail::gather_mask_shape(p, pattern, reduceMode, mask, line), line);
}

}  // namespace AscendC
