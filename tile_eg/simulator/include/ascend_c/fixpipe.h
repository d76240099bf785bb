// The ways out of L0C.
#pragma once
#include "../runtime/cube_interface.h"
#include "copy.h"
#include "cube_params.h"
#include "tensor.h"

namespace AscendC
{

namespace detail
{

constexpr tile_sim::Layout layout_of(const FixpipeConfig& config)
{
    return config.format == CO2Layout::NZ          ? tile_sim::Layout::nz
           : config.format == CO2Layout::ROW_MAJOR ? tile_sim::Layout::row_major
                                                   : tile_sim::Layout::column_major;
}

inline tile_sim::FixpipeShape fixpipe_shape(const FixpipeParamsV220& p, tile_sim::Layout layout, int line)
{
    using tile_sim::checked;
    return {checked(p.nSize, 0, 4095, "FixpipeParamsV220.nSize", line),
            checked(p.mSize, 0, layout == tile_sim::Layout::row_major ? 8192 : 65535, "FixpipeParamsV220.mSize", line),
            checked(p.srcStride, 0, 65535, "FixpipeParamsV220.srcStride", line),
            checked(p.dstStride, 0, 4294967295, "FixpipeParamsV220.dstStride", line),
            checked(p.ndNum, 0, 65535, "FixpipeParamsV220.ndNum", line),
            1024 * checked(p.srcNdStride, 0, 512, "FixpipeParamsV220.srcNdStride", line),
            checked(p.dstNdStride, 0, 65535, "FixpipeParamsV220.dstNdStride", line),
            checked(p.unitFlag, 0, 3, "FixpipeParamsV220.unitFlag", line),
            int64_t(p.quantPre),
            p.reluEn,
            layout,
            p.isChannelSplit,
            p.deqScalar};
}

inline bool by_column(QuantMode_t how)
{
    return how == QuantMode_t::VDEQF16 || how == QuantMode_t::VQF322B8_PRE || how == QuantMode_t::VREQ8;
}

// With the table of SetFixPipeConfig, if a scale for each column is asked for.
inline tile_sim::FixpipeShape with_given_scales(tile_sim::FixpipeShape shape, QuantMode_t how)
{
    const tile_sim::FixpipeRegister& fix = tile_sim::fixpipe_register();
    if (by_column(how) && fix.scales_given) shape.per_column = true, shape.scales = fix.scales;
    return shape;
}

template <class S>
tile_sim::FixpipeShape with_scales(tile_sim::FixpipeShape shape, const LocalTensor<S>& scales)
{
    static_assert(std::is_same_v<S, uint64_t>, "the table of scales has elements of uint64_t");
    shape.per_column = true, shape.scales = scales.operand();
    return shape;
}

}  // namespace detail

template <class T, class U, const FixpipeConfig& config = CFG_ROW_MAJOR>
void Fixpipe(const GlobalTensor<T>& dst, const LocalTensor<U>& src, const FixpipeParamsV220& p,
             Line line = Line(__builtin_LINE()))
{
    static_assert(config.format != CO2Layout::COLUMN_MAJOR, "FixpipeParamsV220 writes no columns: FixpipeParamsArch3510 does");
    const auto shape = detail::with_given_scales(detail::fixpipe_shape(p, detail::layout_of(config), line), p.quantPre);
    tile_sim::fixpipe("Fixpipe", dst.operand(), src.operand(), shape, line);
}

// L1 takes NZ only on 2201, whatever the configuration says.
template <class T, class U, const FixpipeConfig& config = CFG_ROW_MAJOR>
void Fixpipe(const LocalTensor<T>& dst, const LocalTensor<U>& src, const FixpipeParamsV220& p, Line line = Line(__builtin_LINE()))
{
    const auto shape = detail::with_given_scales(detail::fixpipe_shape(p, tile_sim::Layout::nz, line), p.quantPre);
    tile_sim::fixpipe("Fixpipe", dst.operand(), src.operand(), shape, line);
}

// With a scale for each column, in L1.
template <class T, class U, const FixpipeConfig& config = CFG_ROW_MAJOR, class S = uint64_t>
void Fixpipe(const GlobalTensor<T>& dst, const LocalTensor<U>& src, const LocalTensor<S>& scales, const FixpipeParamsV220& p,
             Line line = Line(__builtin_LINE()))
{
    static_assert(config.format != CO2Layout::COLUMN_MAJOR, "FixpipeParamsV220 writes no columns: FixpipeParamsArch3510 does");
    const auto shape = detail::fixpipe_shape(p, detail::layout_of(config), line);
    tile_sim::fixpipe("Fixpipe", dst.operand(), src.operand(), detail::with_scales(shape, scales), line);
}
template <class T, class U, const FixpipeConfig& config = CFG_ROW_MAJOR, class S = uint64_t>
void Fixpipe(const LocalTensor<T>& dst, const LocalTensor<U>& src, const LocalTensor<S>& scales, const FixpipeParamsV220& p,
             Line line = Line(__builtin_LINE()))
{
    tile_sim::fixpipe("Fixpipe", dst.operand(), src.operand(),
                      detail::with_scales(detail::fixpipe_shape(p, tile_sim::Layout::nz, line), scales), line);
}

#if __NPU_ARCH__ == 3510
namespace detail
{

inline void set_matrices(tile_sim::FixpipeShape&, uint8_t, int) {}
inline void set_matrices(tile_sim::FixpipeShape& shape, const Nz2NdParams& p, int line)
{
    using tile_sim::checked;
    shape.matrices = checked(p.ndNum, 0, 65535, "Nz2NdParams.ndNum", line);
    shape.src_matrix_stride = 64 * checked(p.srcNdStride, 0, 65535, "Nz2NdParams.srcNdStride", line);
    shape.dst_matrix_stride = checked(p.dstNdStride, 0, 4294967295, "Nz2NdParams.dstNdStride", line);
}
inline void set_matrices(tile_sim::FixpipeShape& shape, const Nz2DnParams& p, int line)
{
    using tile_sim::checked;
    shape.matrices = checked(p.dnNum, 0, 65535, "Nz2DnParams.dnNum", line);
    shape.src_matrix_stride = 64 * checked(p.srcNzMatrixStride, 0, 65535, "Nz2DnParams.srcNzMatrixStride", line);
    shape.dst_matrix_stride = checked(p.dstDnMatrixStride, 0, 4294967295, "Nz2DnParams.dstDnMatrixStride", line);
    shape.src_row_stride = checked(p.srcNzC0Stride, 0, 65535, "Nz2DnParams.srcNzC0Stride", line);
}

// Strides of the destination count elements on this architecture, between the column blocks of NZ too.
template <class T, CO2Layout format>
tile_sim::FixpipeShape shape_3510(const FixpipeParamsArch3510<format>& p, int line)
{
    using tile_sim::checked;
    const bool nz = format == CO2Layout::NZ;
    int64_t dst_stride = checked(p.dstStride, 0, 4294967295, "FixpipeParamsArch3510.dstStride", line);
    if (nz && dst_stride * int64_t(sizeof(T)) % 32)
        tile_sim::misuse("field", line,
                         "FixpipeParamsArch3510.dstStride is %lld elements, and must be a multiple of 32 bytes for NZ",
                         (long long)dst_stride);
    if (nz) dst_stride = dst_stride * int64_t(sizeof(T)) / 32;
    tile_sim::FixpipeShape shape{checked(p.nSize, 0, 4095, "FixpipeParamsArch3510.nSize", line),
                                 checked(p.mSize, 0, 65535, "FixpipeParamsArch3510.mSize", line),
                                 checked(p.srcStride, 0, 65535, "FixpipeParamsArch3510.srcStride", line),
                                 dst_stride,
                                 1,
                                 0,
                                 0,
                                 checked(p.unitFlag, 0, 3, "FixpipeParamsArch3510.unitFlag", line),
                                 int64_t(p.quantPre),
                                 p.reluEn,
                                 layout_of({format}),
                                 p.isChannelSplit,
                                 p.deqScalar};
    shape.destinations = tile_sim::Destinations(checked(p.dualDstCtl, 0, 2, "FixpipeParamsArch3510.dualDstCtl", line));
    set_matrices(shape, p.params, line);
    return shape;
}

// The destination, in the UB of the vector core that is meant.
template <class T>
tile_sim::Operand destination(const LocalTensor<T>& dst, const FixpipeConfig& config, bool second, int line)
{
    tile_sim::Operand at = dst.operand();
    if ((at.space == tile_sim::Space::UB) != config.isToUB)
        tile_sim::misuse("field", line, "isToUB of FixpipeConfig is true where the destination lies in UB, and only there");
    return at.space == tile_sim::Space::UB ? tile_sim::beside_cube(at, second, line) : at;
}

}  // namespace detail

template <class T, class U, const FixpipeConfig& config = CFG_ROW_MAJOR>
void Fixpipe(const LocalTensor<T>& dst, const LocalTensor<U>& src, const FixpipeParamsArch3510<config.format>& p,
             Line line = Line(__builtin_LINE()))
{
    tile_sim::fixpipe("Fixpipe", detail::destination(dst, config, p.subBlockId, line), src.operand(),
                      detail::shape_3510<T>(p, line), line);
}
template <class T, class U, const FixpipeConfig& config = CFG_ROW_MAJOR>
void Fixpipe(const GlobalTensor<T>& dst, const LocalTensor<U>& src, const FixpipeParamsArch3510<config.format>& p,
             Line line = Line(__builtin_LINE()))
{
    tile_sim::fixpipe("Fixpipe", dst.operand(), src.operand(), detail::shape_3510<T>(p, line), line);
}
template <class T, class U, const FixpipeConfig& config = CFG_ROW_MAJOR>
void Fixpipe(const LocalTensor<T>& dst, const LocalTensor<U>& src, const LocalTensor<uint64_t>& scales,
             const FixpipeParamsArch3510<config.format>& p, Line line = Line(__builtin_LINE()))
{
    const auto shape = detail::with_scales(detail::shape_3510<T>(p, line), scales);
    tile_sim::fixpipe("Fixpipe", detail::destination(dst, config, p.subBlockId, line), src.operand(), shape, line);
}
template <class T, class U, const FixpipeConfig& config = CFG_ROW_MAJOR>
void Fixpipe(const GlobalTensor<T>& dst, const LocalTensor<U>& src, const LocalTensor<uint64_t>& scales,
             const FixpipeParamsArch3510<config.format>& p, Line line = Line(__builtin_LINE()))
{
    const auto shape = detail::with_scales(detail::shape_3510<T>(p, line), scales);
    tile_sim::fixpipe("Fixpipe", dst.operand(), src.operand(), shape, line);
}

template <class T, uint8_t subBlockId = 0>
void DataCopyL1ToUB(const LocalTensor<T>& dst, const LocalTensor<T>& src, uint32_t count, Line line = Line(__builtin_LINE()))
{
    static_assert(subBlockId < 2, "subBlockId of DataCopyL1ToUB is 0 or 1");
    const int64_t bytes = tile_sim::bytes_of<T>(count) / 32 * 32;
    tile_sim::copy_to_vector_core(dst.operand(), src.operand(), {1, bytes, bytes, bytes}, subBlockId, line);
}
template <class T, uint8_t subBlockId = 0>
void DataCopyL1ToUB(const LocalTensor<T>& dst, const LocalTensor<T>& src, const DataCopyParams& p,
                    Line line = Line(__builtin_LINE()))
{
    static_assert(subBlockId < 2, "subBlockId of DataCopyL1ToUB is 0 or 1");
    tile_sim::copy_to_vector_core(dst.operand(), src.operand(), detail::block_rows(p, line), subBlockId, line);
}
#endif

// What DataCopy takes from registers on its way out of L0C.
inline void SetFixpipePreQuantFlag(uint64_t config)
{
    tile_sim::fixpipe_register().scale = config, tile_sim::fixpipe_register().scale_given = true;
}
inline void SetFixpipeNz2ndFlag(Field ndNum, Field srcNdStride, Field dstNdStride, Line line = Line(__builtin_LINE()))
{
    using tile_sim::checked;
    tile_sim::FixpipeRegister& fix = tile_sim::fixpipe_register();
    fix.matrices = checked(ndNum, 1, 65535, "ndNum", line), fix.nd_given = true;
    fix.src_matrix_stride = 1024 * checked(srcNdStride, 0, 512, "srcNdStride", line);
    fix.dst_matrix_stride = checked(dstNdStride, 0, 65535, "dstNdStride", line);
}
// `isUnitFlag` takes every unit flag of L0C back; a tensor in L0C stands for nothing but that.
template <class T, bool setRelu = false>
void SetFixPipeConfig(const LocalTensor<T>& preData, bool isUnitFlag = false, Line line = Line(__builtin_LINE()))
{
    static_assert(!setRelu, "SetFixPipeConfig takes a table of scales, and none of a ReLU");
    if (isUnitFlag) tile_sim::reset_unit_flags();
    if (isUnitFlag && preData.operand().space == tile_sim::Space::L0C) return;
    if (preData.operand().space != tile_sim::Space::FB || !std::is_same_v<T, uint64_t>)
        tile_sim::misuse("wrong_memory", line, "SetFixPipeConfig takes a table of uint64_t in the Fixpipe buffer (C2PIPE2GM)");
    tile_sim::fixpipe_register().scales = preData.operand(), tile_sim::fixpipe_register().scales_given = true;
}
template <class T>
void SetFixPipeConfig(const LocalTensor<T>&, const LocalTensor<T>& quantPre, bool isUnitFlag = false,
                      Line line = Line(__builtin_LINE()))
{
    SetFixPipeConfig(quantPre, isUnitFlag, line);
}

namespace detail
{

inline bool by_scale(QuantMode_t how)
{
    return how == QuantMode_t::DEQF16 || how == QuantMode_t::QF322B8_PRE || how == QuantMode_t::REQ8;
}

inline tile_sim::FixpipeShape register_shape(const DataCopyCO12DstParams& p, int line)
{
    using tile_sim::checked;
    const tile_sim::FixpipeRegister& fix = tile_sim::fixpipe_register();
    if (p.clipReluPre || p.eltWiseOp)
        tile_sim::misuse("field", line, "clipReluPre and eltWiseOp of DataCopyCO12DstParams exist on other architectures only");
    if (by_scale(p.quantPre) && !fix.scale_given)
        tile_sim::misuse("uninitialised", line,
                         "DataCopy multiplies by the scale of SetFixpipePreQuantFlag, and nothing has set one");
    if (by_column(p.quantPre) && !fix.scales_given)
        tile_sim::misuse("uninitialised", line, "DataCopy multiplies by the scales of SetFixPipeConfig, and nothing has set any");
    if (p.nz2ndEn && !fix.nd_given)
        tile_sim::misuse("uninitialised", line, "nz2ndEn takes what SetFixpipeNz2ndFlag sets, and nothing has called it");
    tile_sim::FixpipeShape shape{checked(p.nSize, 0, 4095, "DataCopyCO12DstParams.nSize", line),
                                 checked(p.mSize, 0, p.nz2ndEn ? 8192 : 65535, "DataCopyCO12DstParams.mSize", line),
                                 checked(p.srcStride, 0, 65535, "DataCopyCO12DstParams.srcStride", line),
                                 checked(p.dstStride, 0, 4294967295, "DataCopyCO12DstParams.dstStride", line),
                                 fix.matrices,
                                 fix.src_matrix_stride,
                                 fix.dst_matrix_stride,
                                 checked(p.unitFlag, 0, 3, "DataCopyCO12DstParams.unitFlag", line),
                                 int64_t(p.quantPre),
                                 checked(p.reluPre, 0, 1, "DataCopyCO12DstParams.reluPre", line) == 1,
                                 p.nz2ndEn ? tile_sim::Layout::row_major : tile_sim::Layout::nz,
                                 p.channelSplit,
                                 fix.scale};
    shape.per_column = by_column(p.quantPre), shape.scales = fix.scales;
    return shape;
}

}  // namespace detail

template <class T, class U>
void DataCopy(const GlobalTensor<T>& dst, const LocalTensor<U>& src, const DataCopyCO12DstParams& p,
              Line line = Line(__builtin_LINE()))
{
    tile_sim::fixpipe("DataCopy", dst.operand(), src.operand(), detail::register_shape(p, line), line);
}
template <class T, class U>
void DataCopy(const LocalTensor<T>& dst, const LocalTensor<U>& src, const DataCopyCO12DstParams& p,
              Line line = Line(__builtin_LINE()))
{
    if (p.nz2ndEn) tile_sim::misuse("field", line, "nz2ndEn is for the way to GM on this architecture");
    tile_sim::fixpipe("DataCopy", dst.operand(), src.operand(), detail::register_shape(p, line), line);
}

}  // namespace AscendC
