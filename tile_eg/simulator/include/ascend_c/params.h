// The parameter structures of the instructions, with the vendor's field names, orders and defaults.
#pragma once
#include "types.h"

namespace AscendC
{

using tile_sim::Field;

struct DataCopyParams {
    Field blockCount = 1, blockLen;
    union {
        Field srcGap, srcStride;
    };
    union {
        Field dstGap, dstStride;
    };
    DataCopyParams() : srcGap(0), dstGap(0) {}
    DataCopyParams(Field count, Field length, Field src, Field dst)
        : blockCount(count), blockLen(length), srcGap(src), dstGap(dst)
    {
    }
};

struct DataCopyExtParams {
    Field blockCount = 1, blockLen, srcStride, dstStride, rsv;
    DataCopyExtParams() = default;
    DataCopyExtParams(Field count, Field length, Field src, Field dst, Field reserved)
        : blockCount(count), blockLen(length), srcStride(src), dstStride(dst), rsv(reserved)
    {
    }
};

template <class T>
struct DataCopyPadExtParams {
    bool isPad = false;
    Field leftPadding, rightPadding;
    T paddingValue = 0;
    DataCopyPadExtParams() = default;
    DataCopyPadExtParams(bool pad, Field left, Field right, T value)
        : isPad(pad), leftPadding(left), rightPadding(right), paddingValue(value)
    {
    }
};

struct Nd2NzParams {
    Field ndNum, nValue, dValue, srcNdMatrixStride, srcDValue, dstNzC0Stride, dstNzNStride, dstNzMatrixStride;
    Nd2NzParams() = default;
    Nd2NzParams(Field matrices, Field n, Field d, Field srcMatrix, Field srcRow, Field dstC0, Field dstRow, Field dstMatrix)
        : ndNum(matrices),
          nValue(n),
          dValue(d),
          srcNdMatrixStride(srcMatrix),
          srcDValue(srcRow),
          dstNzC0Stride(dstC0),
          dstNzNStride(dstRow),
          dstNzMatrixStride(dstMatrix)
    {
    }
};

#if __NPU_ARCH__ == 3510
struct Dn2NzParams {
    Field dnNum, nValue, dValue, srcDnMatrixStride, srcDValue, dstNzC0Stride, dstNzNStride, dstNzMatrixStride;
    Dn2NzParams() = default;
    Dn2NzParams(Field matrices, Field n, Field d, Field srcMatrix, Field srcRow, Field dstC0, Field dstRow, Field dstMatrix)
        : dnNum(matrices),
          nValue(n),
          dValue(d),
          srcDnMatrixStride(srcMatrix),
          srcDValue(srcRow),
          dstNzC0Stride(dstC0),
          dstNzNStride(dstRow),
          dstNzMatrixStride(dstMatrix)
    {
    }
};
#endif

struct Nz2NdParamsFull {
    Field ndNum = 1, nValue, dValue, srcNdMatrixStride = 1, srcNStride, dstDStride, dstNdMatrixStride = 1;
    Nz2NdParamsFull() = default;
    Nz2NdParamsFull(Field matrices, Field n, Field d, Field srcMatrix, Field srcBlock, Field dstRow, Field dstMatrix)
        : ndNum(matrices),
          nValue(n),
          dValue(d),
          srcNdMatrixStride(srcMatrix),
          srcNStride(srcBlock),
          dstDStride(dstRow),
          dstNdMatrixStride(dstMatrix)
    {
    }
};

struct CopyRepeatParams {
    Field dstStride, srcStride, dstRepeatSize = 8, srcRepeatSize = 8;
    CopyRepeatParams() = default;
    CopyRepeatParams(Field dst, Field src, Field dstRepeat, Field srcRepeat)
        : dstStride(dst), srcStride(src), dstRepeatSize(dstRepeat), srcRepeatSize(srcRepeat)
    {
    }
};

struct UnaryRepeatParams {
    Field dstBlkStride = 1, srcBlkStride = 1, dstRepStride = 8, srcRepStride = 8;
    UnaryRepeatParams() = default;
    UnaryRepeatParams(Field dstBlk, Field srcBlk, Field dstRep, Field srcRep)
        : dstBlkStride(dstBlk), srcBlkStride(srcBlk), dstRepStride(dstRep), srcRepStride(srcRep)
    {
    }
};

struct BinaryRepeatParams {
    Field dstBlkStride = 1, src0BlkStride = 1, src1BlkStride = 1, dstRepStride = 8, src0RepStride = 8, src1RepStride = 8;
    BinaryRepeatParams() = default;
    BinaryRepeatParams(Field dstBlk, Field src0Blk, Field src1Blk, Field dstRep, Field src0Rep, Field src1Rep)
        : dstBlkStride(dstBlk),
          src0BlkStride(src0Blk),
          src1BlkStride(src1Blk),
          dstRepStride(dstRep),
          src0RepStride(src0Rep),
          src1RepStride(src1Rep)
    {
    }
};

struct BrcbRepeatParams {
    Field dstBlkStride = 1, dstRepStride = 8;
    BrcbRepeatParams() = default;
    BrcbRepeatParams(Field dstBlk, Field dstRep) : dstBlkStride(dstBlk), dstRepStride(dstRep) {}
};

}  // namespace AscendC
