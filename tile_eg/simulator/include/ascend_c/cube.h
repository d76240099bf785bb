// L1 to L0A and L0B, the matrix product, and the way out of L0C.
#pragma once
#include "../runtime/cube_interface.h"
#include "cube_params.h"
#include "tensor.h"

namespace AscendC
{

namespace detail
{

inline tile_sim::Load2D load_2d_shape(const LoadData2DParams& p, int line)
{
    using tile_sim::checked;
    return {checked(p.startIndex, 0, 65535, "LoadData2DParams.startIndex", line),
            checked(p.repeatTimes, 0, 255, "LoadData2DParams.repeatTimes", line),
            checked(p.srcStride, 0, 65535, "LoadData2DParams.srcStride", line),
            checked(p.dstGap, 0, 65535, "LoadData2DParams.dstGap", line),
            p.ifTranspose,
            checked(p.addrMode, 0, 1, "LoadData2DParams.addrMode", line) == 1};
}

}  // namespace detail

template <class T>
void LoadData(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LoadData2DParams& p, Line line = Line(__builtin_LINE()))
{
    tile_sim::load_2d(dst.operand(), src.operand(), detail::load_2d_shape(p, line), line);
}

// To L1, L0A or L0B, as the destination lies.
template <class T>
void LoadData(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const LoadData2DParams& p,
              Line line = Line(__builtin_LINE()))
{
    tile_sim::load_2d(dst.operand(), src.operand(), detail::load_2d_shape(p, line), line);
}

namespace detail
{

inline tile_sim::LoadParts parts_shape(const LoadData2DParamsV2& p, int line)
{
    using tile_sim::checked;
    return {checked(p.mStartPosition, 0, 4294967295, "LoadData2DParamsV2.mStartPosition", line),
            checked(p.kStartPosition, 0, 4294967295, "LoadData2DParamsV2.kStartPosition", line),
            checked(p.mStep, 0, 255, "LoadData2DParamsV2.mStep", line),
            checked(p.kStep, 0, 255, "LoadData2DParamsV2.kStep", line),
            checked(p.srcStride, -2147483648, 2147483647, "LoadData2DParamsV2.srcStride", line),
            checked(p.dstStride, 0, 65535, "LoadData2DParamsV2.dstStride", line),
            p.ifTranspose};
}

}  // namespace detail

template <class T>
void LoadData(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LoadData2DParamsV2& p,
              Line line = Line(__builtin_LINE()))
{
    tile_sim::load_parts(dst.operand(), src.operand(), detail::parts_shape(p, line), line);
}

#if __NPU_ARCH__ == 3510
// A part of an operand, and its scales into the memory beside L0A or L0B.
template <class T>
void LoadData(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<fp8_e8m0_t>& srcMx,
              const LoadData2DParamsV2& p, const LoadData2DMxParams& mx, Line line = Line(__builtin_LINE()))
{
    using tile_sim::checked;
    static_assert(std::is_same_v<T, fp8_e4m3fn_t> || std::is_same_v<T, fp8_e5m2_t> || std::is_same_v<T, fp4x2_e2m1_t> ||
                      std::is_same_v<T, fp4x2_e1m2_t>,
                  "LoadData with scales takes floats of 8 and of 4 bits");
    tile_sim::LoadParts shape = detail::parts_shape(p, line);
    shape.scaled = true;
    shape.scales = {srcMx.operand(),
                    checked(mx.xStartPosition, 0, 65535, "LoadData2DMxParams.xStartPosition", line),
                    checked(mx.yStartPosition, 0, 65535, "LoadData2DMxParams.yStartPosition", line),
                    checked(mx.xStep, 0, 255, "LoadData2DMxParams.xStep", line),
                    checked(mx.yStep, 0, 255, "LoadData2DMxParams.yStep", line),
                    checked(mx.srcStride, 0, 65535, "LoadData2DMxParams.srcStride", line),
                    checked(mx.dstStride, 0, 65535, "LoadData2DMxParams.dstStride", line)};
    tile_sim::load_parts(dst.operand(), src.operand(), shape, line);
}
#endif

#if __NPU_ARCH__ == 2201
template <class T, class U>
void LoadDataWithSparse(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<U>& idx,
                        const LoadData2DParams& p, Line line = Line(__builtin_LINE()))
{
    static_assert(std::is_same_v<T, int8_t> && std::is_same_v<U, uint8_t>,
                  "LoadDataWithSparse takes int8_t, and uint8_t for indices");
    const tile_sim::Load2D shape = detail::load_2d_shape(p, line);
    tile_sim::load_sparse(dst.operand(), src.operand(), idx.operand(), shape.start, shape.repeat, line);
}
#endif

template <class T>
void LoadDataWithTranspose(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LoadData2dTransposeParams& p,
                           Line line = Line(__builtin_LINE()))
{
    using tile_sim::checked;
    tile_sim::load_square(dst.operand(), src.operand(),
                          {checked(p.startIndex, 0, 65535, "LoadData2dTransposeParams.startIndex", line),
                           checked(p.repeatTimes, 0, 255, "LoadData2dTransposeParams.repeatTimes", line),
                           checked(p.srcStride, 0, 65535, "LoadData2dTransposeParams.srcStride", line),
                           checked(p.dstGap, 0, 65535, "LoadData2dTransposeParams.dstGap", line),
                           checked(p.dstFracGap, 0, 65535, "LoadData2dTransposeParams.dstFracGap", line),
                           checked(p.addrMode, 0, 1, "LoadData2dTransposeParams.addrMode", line) == 1},
                          line);
}

namespace detail
{

// What SetFmatrix says of images for L0B; the core's own register holds those for L0A. Loads with fMatrixCtrl take this one.
inline tile_sim::ImageRegister& right_image()
{
    static thread_local tile_sim::ImageRegister image;
    return image;
}

class ImageChoice
{
public:
    explicit ImageChoice(bool right) : right_(right) { change(); }
    ~ImageChoice() { change(); }

private:
    void change() const
    {
        tile_sim::ImageRegister &left = tile_sim::image_register(), &right = right_image();
        if (!right_) return;
        std::swap(left.height, right.height), std::swap(left.width, right.width), std::swap(left.left, right.left);
        std::swap(left.right, right.right), std::swap(left.top, right.top), std::swap(left.bottom, right.bottom);
    }
    bool right_;
};

}  // namespace detail

inline void SetFmatrix(Field l1H, Field l1W, const uint8_t padList[4], FmatrixMode mode, Line line = Line(__builtin_LINE()))
{
    using tile_sim::checked;
    tile_sim::ImageRegister& image = mode == FmatrixMode::FMATRIX_LEFT ? tile_sim::image_register() : detail::right_image();
    image.height = checked(l1H, 0, 32767, "l1H", line), image.width = checked(l1W, 0, 32767, "l1W", line);
    image.left = padList[0], image.right = padList[1], image.top = padList[2], image.bottom = padList[3];
}
inline void Load3DSetFMatrixCal(Field l1H, Field l1W, const uint8_t padList[4], Line line = Line(__builtin_LINE()))
{
    SetFmatrix(l1H, l1W, padList, FmatrixMode::FMATRIX_LEFT, line);
}
inline void Load3DSetFMatrixBCal(Field l1H, Field l1W, const uint8_t padList[4], Line line = Line(__builtin_LINE()))
{
    SetFmatrix(l1H, l1W, padList, FmatrixMode::FMATRIX_RIGHT, line);
}
template <class T>
void SetLoadDataPaddingValue(T value)
{
    tile_sim::image_register().padding = tile_sim::to_bits(value);
}
inline void SetLoadDataBoundary(uint32_t bytes, Line line = Line(__builtin_LINE()))
{
    if (bytes && bytes < 1024) tile_sim::misuse("field", line, "SetLoadDataBoundary takes 0, or 1024 bytes and more");
    tile_sim::image_register().boundary = bytes;
}
inline void SetLoadDataRepeat(const LoadDataRepeatParam& p, Line line = Line(__builtin_LINE()))
{
    using tile_sim::checked;
    tile_sim::ImageRegister& image = tile_sim::image_register();
    image.repeat_stride = checked(p.repeatStride, 0, 65535, "LoadDataRepeatParam.repeatStride", line);
    image.repeat_times = checked(p.repeatTime, 0, 255, "LoadDataRepeatParam.repeatTime", line);
    image.repeat_mode = checked(p.repeatMode, 0, 1, "LoadDataRepeatParam.repeatMode", line);
}

namespace detail
{

// The fields that are put together in filterConfig and extConfig.
struct ImageFields {
    Field strideW, strideH, filterW, filterH, dilationFilterW, dilationFilterH, kExtension, mExtension, kStartPt, mStartPt;
};

template <class P>
void load_image(const tile_sim::Operand& dst, const tile_sim::Operand& src, const P& p, const ImageFields& f, int line)
{
    using tile_sim::checked;
    if (p.enSmallK) tile_sim::misuse("field", line, "enSmallK of LoadData3DParamsV2 must be false on this architecture");
    const ImageChoice image(p.fMatrixCtrl);
    const int64_t wide = p.filterSizeW ? 256 : 0, high = p.filterSizeH ? 256 : 0;
    tile_sim::load_3d(dst, src,
                      {checked(p.channelSize, 0, 65535, "LoadData3DParamsV2.channelSize", line),
                       checked(f.kExtension, 0, 65535, "LoadData3DParamsV2.kExtension", line),
                       checked(f.mExtension, 0, 65535, "LoadData3DParamsV2.mExtension", line),
                       checked(f.kStartPt, 0, 65535, "LoadData3DParamsV2.kStartPt", line),
                       checked(f.mStartPt, 0, 32767, "LoadData3DParamsV2.mStartPt", line),
                       checked(f.strideW, 0, 63, "LoadData3DParamsV2.strideW", line),
                       checked(f.strideH, 0, 63, "LoadData3DParamsV2.strideH", line),
                       checked(f.filterW, 0, 255, "LoadData3DParamsV2.filterW", line) + wide,
                       checked(f.filterH, 0, 255, "LoadData3DParamsV2.filterH", line) + high,
                       checked(f.dilationFilterW, 0, 255, "LoadData3DParamsV2.dilationFilterW", line),
                       checked(f.dilationFilterH, 0, 255, "LoadData3DParamsV2.dilationFilterH", line), p.enTranspose},
                      line);
}

}  // namespace detail

template <class T, const IsResetLoad3dConfig& config = IS_RESER_LOAD3D_DEFAULT_CONFIG>
void LoadData(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LoadData3DParamsV2<T>& p,
              Line line = Line(__builtin_LINE()))
{
    using tile_sim::checked;
    if constexpr (config.isSetFMatrix)
        SetFmatrix(checked(p.l1H, 0, 32767, "LoadData3DParamsV2.l1H", line),
                   checked(p.l1W, 0, 32767, "LoadData3DParamsV2.l1W", line), p.padList,
                   p.fMatrixCtrl ? FmatrixMode::FMATRIX_RIGHT : FmatrixMode::FMATRIX_LEFT, line);
    if constexpr (config.isSetPadding) SetLoadDataPaddingValue(p.padValue);
    detail::load_image(dst.operand(), src.operand(), p,
                       {p.strideW, p.strideH, p.filterW, p.filterH, p.dilationFilterW, p.dilationFilterH, p.kExtension,
                        p.mExtension, p.kStartPt, p.mStartPt},
                       line);
}

// The image itself is as SetFmatrix says.
template <class T>
void LoadData(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LoadData3DParamsV2Pro& p,
              Line line = Line(__builtin_LINE()))
{
    const auto byte = [&](int at) { return p.filterConfig >> at & 255; };
    const auto word = [&](int at) { return p.extConfig >> at & 65535; };
    detail::load_image(dst.operand(), src.operand(), p,
                       {byte(0), byte(8), byte(16), byte(24), byte(32), byte(40), word(0), word(16), word(32), word(48)}, line);
}

namespace detail
{

inline tile_sim::MmadShape product_shape(const MmadParams& p, int line)
{
    using tile_sim::checked;
    return {checked(p.m, 0, 4095, "MmadParams.m", line), checked(p.n, 0, 4095, "MmadParams.n", line),
            checked(p.k, 0, 4095, "MmadParams.k", line), checked(p.unitFlag, 0, 3, "MmadParams.unitFlag", line),
            p.cmatrixSource, p.cmatrixInitVal && !p.isBias, p.kDirectionAlign};
}

// With a bias, the sums start at the bias of their column, from the bias table.
template <class V>
tile_sim::MmadShape product_shape(const MmadParams& p, const LocalTensor<V>& bias, int line)
{
    tile_sim::MmadShape shape = product_shape(p, line);
    shape.from_bias = true, shape.init = false;
    shape.has_bias = true, shape.bias = bias.operand();
    return shape;
}

}  // namespace detail

template <class T, class U, class S>
void Mmad(const LocalTensor<T>& dst, const LocalTensor<U>& a, const LocalTensor<S>& b, const MmadParams& p,
          Line line = Line(__builtin_LINE()))
{
    tile_sim::mmad(dst.operand(), a.operand(), b.operand(), detail::product_shape(p, line), line);
}

#if __NPU_ARCH__ == 3510
template <class T, class U, class S>
void MmadMx(const LocalTensor<T>& dst, const LocalTensor<U>& a, const LocalTensor<S>& b, const MmadParams& p,
            Line line = Line(__builtin_LINE()))
{
    tile_sim::MmadShape shape = detail::product_shape(p, line);
    shape.scaled = true;
    tile_sim::mmad(dst.operand(), a.operand(), b.operand(), shape, line);
}
template <class T, class U, class S, class V>
void MmadMx(const LocalTensor<T>& dst, const LocalTensor<U>& a, const LocalTensor<S>& b, const LocalTensor<V>& bias,
            const MmadParams& p, Line line = Line(__builtin_LINE()))
{
    tile_sim::MmadShape shape = detail::product_shape(p, bias, line);
    shape.scaled = true;
    tile_sim::mmad(dst.operand(), a.operand(), b.operand(), shape, line);
}
#endif

#if __NPU_ARCH__ == 2201
template <class T, class U>
void MmadWithSparse(const LocalTensor<T>& dst, const LocalTensor<U>& fm, const LocalTensor<U>& filter, const MmadParams& p,
                    Line line = Line(__builtin_LINE()))
{
    using tile_sim::checked;
    static_assert(std::is_same_v<T, int32_t> && std::is_same_v<U, int8_t>, "MmadWithSparse takes int8_t into int32_t");
    tile_sim::mmad_sparse(dst.operand(), fm.operand(), filter.operand(),
                          {checked(p.m, 0, 4095, "MmadParams.m", line), checked(p.n, 0, 4095, "MmadParams.n", line),
                           checked(p.k, 0, 4095, "MmadParams.k", line), checked(p.unitFlag, 0, 3, "MmadParams.unitFlag", line),
                           p.cmatrixSource, p.cmatrixInitVal && !p.isBias, false},
                          line);
}
#endif

template <class T, class U, class S, class V>
void Mmad(const LocalTensor<T>& dst, const LocalTensor<U>& a, const LocalTensor<S>& b, const LocalTensor<V>& bias,
          const MmadParams& p, Line line = Line(__builtin_LINE()))
{
    tile_sim::mmad(dst.operand(), a.operand(), b.operand(), detail::product_shape(p, bias, line), line);
}

template <class T>
struct InitConstValueParams {
    Field repeatTimes, blockNum, dstGap;
    T initValue = 0;
    InitConstValueParams() = default;
    InitConstValueParams(Field times, Field blocks, Field gap, T value)
        : repeatTimes(times), blockNum(blocks), dstGap(gap), initValue(value)
    {
    }
    InitConstValueParams(Field times, T value) : repeatTimes(times), initValue(value) {}
};

template <class T>
void Fill(const LocalTensor<T>& dst, const InitConstValueParams<T>& p, Line line = Line(__builtin_LINE()))
{
    using tile_sim::checked;
    static_assert(sizeof(T) == 2 || sizeof(T) == 4, "Fill takes 16-bit and 32-bit elements");
    tile_sim::fill(dst.operand(),
                   {checked(p.repeatTimes, 0, 32767, "InitConstValueParams.repeatTimes", line),
                    checked(p.blockNum, 0, 32767, "InitConstValueParams.blockNum", line),
                    checked(p.dstGap, 0, 32767, "InitConstValueParams.dstGap", line), tile_sim::to_bits(p.initValue)},
                   line);
}
template <class T>
void InitConstValue(const LocalTensor<T>& dst, const InitConstValueParams<T>& p, Line line = Line(__builtin_LINE()))
{
    Fill(dst, p, line);
}

enum class HF32Mode { ENABLE, DISABLE };
enum class HF32TransMode { NEAREST_ZERO, NEAREST_EVEN };
inline void SetHF32Mode(HF32Mode mode) { tile_sim::set_hf32(mode == HF32Mode::ENABLE); }
inline void SetHF32Mode(bool on) { tile_sim::set_hf32(on); }
inline void SetHF32TransMode(HF32TransMode mode) { tile_sim::set_hf32_rounding(mode == HF32TransMode::NEAREST_ZERO); }
inline void SetHF32TransMode(bool toZero) { tile_sim::set_hf32_rounding(toZero); }

// The order in which a product's blocks appear: here all of them appear at once.
inline void SetMMColumnMajor() {}
inline void SetMMRowMajor() {}
inline void SetMMLayoutTransform(bool) {}

}  // namespace AscendC
