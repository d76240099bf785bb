// LoadData of an image (im2col): what a filter sees at each of its places becomes a row of the left operand. A filter of 1 x 1
// makes of it the transposing load of an ordinary matrix. The order of rows and columns is that of the vendor's page LoadData_3D.
#include <utility>
#include <vector>

#include "fractal.h"
#include "schedule.h"

namespace tile_sim
{
namespace
{

// The matrix that the filter makes of an image of C1 x height x width x C0 in L1.
class Image
{
public:
    Image(const Load3D& shape, const ImageRegister& image, int64_t address, int64_t c0)
        : s_(shape), r_(image), address_(address), c0_(c0)
    {
        across_ = places(r_.width + r_.left + r_.right, s_.filter_w, s_.dilation_w, s_.stride_w);
        down_ = places(r_.height + r_.top + r_.bottom, s_.filter_h, s_.dilation_h, s_.stride_h);
    }
    int64_t rows() const { return across_ * down_; }
    int64_t cols() const { return blocks(s_.channels, c0_) * s_.filter_w * s_.filter_h * c0_; }

    static constexpr int64_t padding = INT64_MIN;
    // Bytes from the start of the source to the block of c0 elements that holds a column, or `padding`.
    int64_t block_at(int64_t row, int64_t col) const
    {
        const int64_t block = col / c0_, each = s_.filter_w * s_.filter_h, inside = block % each;
        const int64_t y = row / across_ * s_.stride_h + inside / s_.filter_w * s_.dilation_h - r_.top;
        const int64_t x = row % across_ * s_.stride_w + inside % s_.filter_w * s_.dilation_w - r_.left;
        if (y < 0 || y >= r_.height || x < 0 || x >= r_.width) return padding;
        return wrapped(((block / each * r_.height + y) * r_.width + x) * 32);
    }

private:
    static int64_t places(int64_t length, int64_t filter, int64_t dilation, int64_t stride)
    {
        const int64_t left = length - ((filter - 1) * dilation + 1);
        return left < 0 ? 0 : left / stride + 1;
    }
    int64_t wrapped(int64_t offset) const
    {
        return r_.boundary && address_ + offset >= r_.boundary ? (address_ + offset) % r_.boundary - address_ : offset;
    }
    Load3D s_;
    ImageRegister r_;
    int64_t address_, c0_, across_, down_;
};

void check_3d(const Operand& dst, const Load3D& s, const ImageRegister& r, int64_t c0, int line)
{
    const bool bytes = c0 >= 32, one = s.filter_w * s.filter_h == 1;
    if (bytes && (s.transpose || dst.space == Space::L0B))
        misuse("field", line,
               "LoadData3DParamsV2 turns no elements of 4 or 8 bits and has no way to L0B for them on this architecture: "
               "LoadDataWithTranspose does");
    const int64_t last = s.channels % c0, least = c0 == 64 ? 8 : 4;  // beside whole blocks: 4, 8, .. up to half a block
    if (last && (last < least || last > c0 / 2 || (last & (last - 1))))
        misuse("field", line, "LoadData3DParamsV2.channelSize is %lld, and must be a multiple of %lld, or %lld to %lld more",
               (long long)s.channels, (long long)c0, (long long)least, (long long)c0 / 2);
    if (s.channels % c0 && !one)
        misuse("unsupported", line, "the simulator knows filters of more than one element for whole blocks of %lld channels",
               (long long)c0);
    if (s.k_start % c0) misuse("field", line, "LoadData3DParamsV2.kStartPt must be a multiple of %lld", (long long)c0);
    const int64_t cols = blocks(s.channels, c0) * c0 * s.filter_w * s.filter_h;
    const int64_t repeats = r.repeat_mode ? (r.repeat_times - 1) * r.repeat_stride * c0 : 0;
    if (s.k_start + repeats + s.k_extent > cols)
        misuse("field", line, "LoadData3DParamsV2 takes columns up to %lld of %lld",
               (long long)(s.k_start + repeats + s.k_extent), (long long)cols);
    if (!s.stride_w || !s.stride_h || !s.dilation_w || !s.dilation_h)
        misuse("field", line, "the strides and dilations of LoadData3DParamsV2 are 1 at least");
}

// The part of the image's matrix that is taken, once for each repetition, and where it goes: into L0A as it is, or transposed;
// into L0B as a right operand (rows are k). 32-bit transposes come in squares of 16: pairs of k blocks lie together.
class ImageLoad
{
public:
    ImageLoad(const Operand& dst, const Operand& src, const Load3D& shape, const ImageRegister& image)
        : dst_(dst),
          src_(src),
          s_(shape),
          r_(image),
          size_(size_of(dst.type)),
          c0_(block_of(dst.type)),
          image_(shape, image, src.address, c0_)
    {
        const int64_t m = s_.m_extent * (r_.repeat_mode ? 1 : r_.repeat_times);
        const int64_t k = s_.k_extent * (r_.repeat_mode ? r_.repeat_times : 1);
        right_ = dst.space == Space::L0B, turned_ = s_.transpose || right_;
        rows16_ = blocks(m, 16) * 16, rows_ = turned_ ? rows16_ : m, cols_ = blocks(k, c0_) * c0_;
        across_ = !turned_ ? cols_ / c0_ : right_ ? blocks(cols_, 16) : rows16_ / c0_;
    }
    int64_t bytes() const { return rows16_ * cols_ * size_; }

    void declare(Instruction& load)
    {
        for (int64_t col = 0; col < cols_; col += c0_)
            for (int64_t row = 0; row < rows_; ++row)
                if (const int64_t from = source(row, col); from != Image::padding)
                    load.reads(src_, from, 32, Instruction::Poison::carry);
        for (int64_t row = 0; row < rows16_; row += turned_ ? c0_ : 16)
            for (int64_t col = 0; col < cols_; col += turned_ ? 16 : c0_) written_.emplace_back(target(row, col), width(col));
        for (const auto& [at, bytes] : written_) load.writes(dst_, at, bytes);
    }
    void move()
    {
        for (const auto& [at, bytes] : written_) machine.memory(dst_).poison(dst_.address + at, dst_.address + at + bytes, true);
        Mover mover(dst_, src_);
        for (int64_t row = 0; row < rows_; ++row)
            for (int64_t col = 0; there(row) && col < cols_; col += c0_) move_block(mover, row, col);
    }

private:
    bool there(int64_t row) const { return source_row(row) < image_.rows(); }
    int64_t source_row(int64_t i) const
    {
        return r_.repeat_mode ? s_.m_start + i : s_.m_start + i / s_.m_extent * r_.repeat_stride * 16 + i % s_.m_extent;
    }
    int64_t source_col(int64_t j) const
    {
        return r_.repeat_mode ? s_.k_start + j / s_.k_extent * r_.repeat_stride * c0_ + j % s_.k_extent : s_.k_start + j;
    }
    int64_t source(int64_t row, int64_t col) const
    {
        return there(row) ? image_.block_at(source_row(row), source_col(col)) : Image::padding;
    }
    int64_t target(int64_t row, int64_t col) const
    {
        if (right_) return (row / c0_ * across_ + col / 16) * fractal + (col % 16 * c0_ + row % c0_) * size_;
        if (turned_) std::swap(row, col);
        return (row / 16 * across_ + col / c0_) * fractal + row % 16 * 32 + col % c0_ * size_;
    }
    // A transposed matrix leaves the lines beyond its columns as they were.
    int64_t width(int64_t col) const { return turned_ ? std::min<int64_t>(16, cols_ - col) * 32 : fractal; }

    void move_block(Mover& mover, int64_t row, int64_t col) const
    {
        const int64_t from = source(row, col), step = turned_ ? 1 : c0_, bytes = turned_ ? size_ : 32;
        uint8_t padding[32];
        for (int64_t e = 0; e < 32; e += size_) std::memcpy(padding + e, &r_.padding, size_t(size_));
        for (int64_t e = 0; e < c0_; e += step)
            if (from == Image::padding)
                mover.put(target(row, col + e), padding, bytes);
            else
                mover.move(target(row, col + e), from + e * size_, bytes);
    }

    Operand dst_, src_;
    Load3D s_;
    ImageRegister r_;
    int64_t size_, c0_;
    Image image_;
    int64_t rows16_, rows_, cols_, across_;
    bool right_, turned_;
    std::vector<std::pair<int64_t, int64_t>> written_;
};

}  // namespace

ImageRegister& image_register() { return machine.core->image; }

void load_3d(Operand dst, Operand src, Load3D s, int line)
{
    if (queued(line, [=] { load_3d(dst, src, s, line); }, dst, src)) return;
    if (machine.settings.direct_paths())
        misuse("unsupported", line,
               "the simulator knows no LoadData3DParamsV2 on architecture 3510: LoadData2DParamsV2 moves and turns matrices");
    Instruction load("LoadData", Pipe::MTE1, line);
    check_places(load, dst, src), load.needs(src, Space::L1, "source");
    const ImageRegister r = machine.core->image;
    if (!r.height || !r.width || !s.channels || !s.k_extent || !s.m_extent || !s.filter_w || !s.filter_h || !r.repeat_times)
        return;
    check_3d(dst, s, r, block_of(dst.type), line);
    ImageLoad way(dst, src, s, r);
    way.declare(load);
    load.check();
    load.counts(path(dst, src), way.bytes());
    way.move();
}

}  // namespace tile_sim
