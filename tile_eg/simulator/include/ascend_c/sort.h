// Sorting by score, and transposition of small matrices.
#pragma once
#include "mask.h"

namespace AscendC
{

struct MrgSort4Info {
    MrgSort4Info() = default;
    MrgSort4Info(const uint16_t* lengths, bool suspend, uint16_t valid, uint16_t times)
        : ifExhaustedSuspension(suspend), validBit(valid), repeatTimes(times)
    {
        for (int i = 0; i < 4; ++i) elementLengths[i] = lengths[i];
    }
    uint16_t elementLengths[4] = {0};
    bool ifExhaustedSuspension = false;
    uint16_t validBit = 0;
    Field repeatTimes = 1;
};

template <class T>
struct MrgSortSrcList {
    MrgSortSrcList() = default;
    MrgSortSrcList(const LocalTensor<T>& a, const LocalTensor<T>& b, const LocalTensor<T>& c, const LocalTensor<T>& d)
        : src1(a), src2(b), src3(c), src4(d)
    {
    }
    LocalTensor<T> src1, src2, src3, src4;
};

template <class T>
void Sort32(const LocalTensor<T>& dst, const LocalTensor<T>& score, const LocalTensor<uint32_t>& index, int64_t repeat,
            Line line = Line(__builtin_LINE()))
{
    static_assert(detail::is_number<T>, "Sort32 takes half and float");
    tile_sim::vector_sort32(dst.operand(), score.operand(), index.operand(), tile_sim::checked(repeat, 0, 255, "repeatTime", line),
                            line);
}

template <class T>
void MrgSort(const LocalTensor<T>& dst, const MrgSortSrcList<T>& src, const MrgSort4Info& p, Line line = Line(__builtin_LINE()))
{
    static_assert(detail::is_number<T>, "MrgSort takes half and float");
    if (p.validBit != 3 && p.validBit != 7 && p.validBit != 15)
        tile_sim::misuse("field", line, "MrgSort4Info.validBit is %d, and must be 3, 7 or 15", int(p.validBit));
    tile_sim::MergeShape shape;
    for (int i = 0; i < 4; ++i)
        shape.lengths[i] = tile_sim::checked(p.elementLengths[i], 0, 4095, "MrgSort4Info.elementLengths", line);
    shape.lists = p.validBit == 15 ? 4 : p.validBit == 7 ? 3 : 2;
    shape.repeat = tile_sim::checked(p.repeatTimes, 0, 255, "MrgSort4Info.repeatTimes", line);
    shape.stop_when_exhausted = p.ifExhaustedSuspension;
    const tile_sim::Operand lists[] = {src.src1.operand(), src.src2.operand(), src.src3.operand(), src.src4.operand()};
    tile_sim::vector_merge(dst.operand(), lists, shape, line);
}

inline void GetMrgSortResult(uint16_t& a, uint16_t& b, uint16_t& c, uint16_t& d)
{
    uint16_t counts[4];
    tile_sim::merge_result(counts);
    a = counts[0], b = counts[1], c = counts[2], d = counts[3];
}

template <class T, bool isExhaustedSuspension = false>
void MrgSort(const LocalTensor<T>& dst, const MrgSortSrcList<T>& src, const uint16_t elementCountList[4], uint32_t sortedNum[4],
             uint16_t validBit, int32_t repeatTime, Line line = Line(__builtin_LINE()))
{
    MrgSort(dst, src, MrgSort4Info(elementCountList, isExhaustedSuspension, validBit, uint16_t(repeatTime)), line);
    uint16_t counts[4];
    tile_sim::merge_result(counts);
    for (int i = 0; i < 4; ++i) sortedNum[i] = counts[i];
}

template <class T>
void Transpose(const LocalTensor<T>& dst, const LocalTensor<T>& src, Line line = Line(__builtin_LINE()))
{
    static_assert(sizeof(T) == 2, "Transpose of a 16 x 16 matrix takes 16-bit elements");
    tile_sim::vector_transpose(dst.operand(), src.operand(), line);
}

enum class TransposeType : uint8_t {
    TRANSPOSE_TYPE_NONE, TRANSPOSE_NZ2ND_0213, TRANSPOSE_NZ2NZ_0213, TRANSPOSE_NZ2NZ_012_WITH_N, TRANSPOSE_NZ2ND_012_WITH_N,
    TRANSPOSE_NZ2ND_012_WITHOUT_N, TRANSPOSE_NZ2NZ_012_WITHOUT_N, TRANSPOSE_ND2ND_ONLY, TRANSPOSE_ND_UB_GM,
    TRANSPOSE_GRAD_ND_UB_GM, TRANSPOSE_ND2ND_B16, TRANSPOSE_NCHW2NHWC, TRANSPOSE_NHWC2NCHW
};

struct TransposeParamsExt {
    Field nSize, cSize, hSize, wSize;
    TransposeType transposeType = TransposeType::TRANSPOSE_ND2ND_B16;
    TransposeParamsExt() = default;
    TransposeParamsExt(Field n, Field c, Field h, Field w, TransposeType type)
        : nSize(n), cSize(c), hSize(h), wSize(w), transposeType(type)
    {
    }
};

template <class T>
void Transpose(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint8_t>& scratch,
               const TransposeParamsExt& p, Line line = Line(__builtin_LINE()))
{
    using tile_sim::checked;
    if (p.transposeType == TransposeType::TRANSPOSE_TYPE_NONE) return;
    if (p.transposeType == TransposeType::TRANSPOSE_ND2ND_B16) {
        if (sizeof(T) != 2) tile_sim::misuse("unsupported", line, "TRANSPOSE_ND2ND_B16 takes 16-bit elements");
        return tile_sim::vector_transpose(dst.operand(), src.operand(), line);
    }
    const bool to_nhwc = p.transposeType == TransposeType::TRANSPOSE_NCHW2NHWC;
    if (!to_nhwc && p.transposeType != TransposeType::TRANSPOSE_NHWC2NCHW)
        tile_sim::misuse("unsupported", line,
                         "Transpose does TRANSPOSE_ND2ND_B16, TRANSPOSE_NCHW2NHWC and TRANSPOSE_NHWC2NCHW on 2201");
    const int64_t sizes[] = {checked(p.nSize, 0, 65535, "TransposeParamsExt.nSize", line),
                             checked(p.cSize, 0, 4095, "TransposeParamsExt.cSize", line),
                             checked(p.hSize, 0, 4095, "TransposeParamsExt.hSize", line),
                             checked(p.wSize, 0, 4095, "TransposeParamsExt.wSize", line)};
    tile_sim::vector_transpose_nd(dst.operand(), src.operand(), scratch.operand(), sizes, to_nhwc, line);
}

constexpr int NCHW_CONV_ADDR_LIST_SIZE = 16;

struct TransDataTo5HDParams {
    bool dstHighHalf = false, srcHighHalf = false;
    Field repeatTimes = 1, dstRepStride, srcRepStride;
    TransDataTo5HDParams() = default;
    TransDataTo5HDParams(bool dstHigh, bool srcHigh, Field times, Field dstRep, Field srcRep)
        : dstHighHalf(dstHigh), srcHighHalf(srcHigh), repeatTimes(times), dstRepStride(dstRep), srcRepStride(srcRep)
    {
    }
};

namespace detail
{

inline tile_sim::To5hdShape to_5hd_shape(const TransDataTo5HDParams& p, int line)
{
    using tile_sim::checked;
    return {checked(p.repeatTimes, 0, 255, "TransDataTo5HDParams.repeatTimes", line),
            checked(p.dstRepStride, 0, 65535, "TransDataTo5HDParams.dstRepStride", line),
            checked(p.srcRepStride, 0, 65535, "TransDataTo5HDParams.srcRepStride", line), p.dstHighHalf, p.srcHighHalf};
}

// An address alone: the tensor behind it is not known, so it may reach to the end of UB.
template <class T>
tile_sim::Operand anywhere(uint64_t address)
{
    return {tile_sim::Space::UB, tile_sim::TypeOf<T>::value, int64_t(address), tile_sim::capacity(tile_sim::Space::UB)};
}

}  // namespace detail

template <class T>
void TransDataTo5HD(const LocalTensor<T> (&dstList)[16], const LocalTensor<T> (&srcList)[16], const TransDataTo5HDParams& p,
                    Line line = Line(__builtin_LINE()))
{
    tile_sim::Operand dst[16], src[16];
    for (int i = 0; i < 16; ++i) dst[i] = dstList[i].operand(), src[i] = srcList[i].operand();
    tile_sim::vector_to_5hd(dst, src, detail::to_5hd_shape(p, line), line);
}

template <class T>
void TransDataTo5HD(uint64_t dstList[16], uint64_t srcList[16], const TransDataTo5HDParams& p, Line line = Line(__builtin_LINE()))
{
    tile_sim::Operand dst[16], src[16];
    for (int i = 0; i < 16; ++i) dst[i] = detail::anywhere<T>(dstList[i]), src[i] = detail::anywhere<T>(srcList[i]);
    tile_sim::vector_to_5hd(dst, src, detail::to_5hd_shape(p, line), line);
}

template <class T>
void TransDataTo5HD(const LocalTensor<uint64_t>& dstList, const LocalTensor<uint64_t>& srcList, const TransDataTo5HDParams& p,
                    Line line = Line(__builtin_LINE()))
{
    tile_sim::Operand dst[16], src[16];
    for (uint32_t i = 0; i < 16; ++i) {
        dst[i] = detail::anywhere<T>(dstList.GetValue(i, line));
        src[i] = detail::anywhere<T>(srcList.GetValue(i, line));
    }
    tile_sim::vector_to_5hd(dst, src, detail::to_5hd_shape(p, line), line);
}

}  // namespace AscendC
