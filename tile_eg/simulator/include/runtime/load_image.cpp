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

// zZ of L0A, and zN of L0B (its transpose, block by block): `across` blocks of c0 elements lie side by side.
struct FractalTarget {
    int64_t across, c0, size;
    int64_t zz(int64_t row, int64_t col) const
    {
        return (row / 16 * across + col / c0) * fractal + row % 16 * 32 + col % c0 * size;
    }
    int64_t zn(int64_t row, int64_t col) const
    {
        return (row / c0 * across + col / 16) * fractal + (col % 16 * c0 + row % c0) * size;
    }
};

void check_3d(const Operand& dst, const Load3D& s, const ImageRegister& r, int64_t c0, int line)
{
    const bool bytes = c0 >= 32, one = s.filter_w * s.filter_h == 1;
    if (bytes && (s.transpose || dst.space == Space::L0B))
        misuse("field", line, "LoadData3DParamsV2 turns no elements of 4 or 8 bits and has no way to L0B for them on this architecture: "
                              "LoadDataWithTranspose does");
    const int64_t last = s.channels % c0, least = c0 == 64 ? 8 : 4;  // beside whole blocks: 4, 8, .. up to half a block
    if (last && (last < least || last > c0 / 2 || (last & (last - 1))))
        misuse("field", line, "LoadData3DParamsV2.channelSize is %lld, and must be a multiple of %lld, or %lld to %lld more",
               (long long)s.channels, (long long)c0, (long long)least, (long long)c0 / 2);
    if (s.channels % c0 && !one)
        misuse("unsupported", line, "the simulator knows filters of more than one element for whole blocks of %lld channels", (long long)c0);
    if (s.k_start % c0) misuse("field", line, "LoadData3DParamsV2.kStartPt must be a multiple of %lld", (long long)c0);
    const int64_t cols = blocks(s.channels, c0) * c0 * s.filter_w * s.filter_h;
    const int64_t repeats = r.repeat_mode ? (r.repeat_times - 1) * r.repeat_stride * c0 : 0;
    if (s.k_start + repeats + s.k_extent > cols)
        misuse("field", line, "LoadData3DParamsV2 takes columns up to %lld of %lld", (long long)(s.k_start + repeats + s.k_extent),
               (long long)cols);
    if (!s.stride_w || !s.stride_h || !s.dilation_w || !s.dilation_h)
        misuse("field", line, "the strides and dilations of LoadData3DParamsV2 are 1 at least");
}

// Which rows and columns of the image's matrix are taken: its part, once for each repetition.
struct Part {
    const Load3D& s;
    const ImageRegister& r;
    int64_t c0;
    int64_t row(int64_t i) const
    {
        return r.repeat_mode ? s.m_start + i : s.m_start + i / s.m_extent * r.repeat_stride * 16 + i % s.m_extent;
    }
    int64_t col(int64_t j) const
    {
        return r.repeat_mode ? s.k_start + j / s.k_extent * r.repeat_stride * c0 + j % s.k_extent : s.k_start + j;
    }
};

}  // namespace

ImageRegister& image_register() { return machine.core->image; }

// Into L0A the matrix goes as it is, or transposed; into L0B it goes as a right operand (rows are k). 32-bit transposes come in
// squares of 16: pairs of k blocks lie together.
void load_3d(Operand dst, Operand src, Load3D s, int line)
{
    if (queued(line, [=] { load_3d(dst, src, s, line); }, dst, src)) return;
    if (machine.settings.direct_paths())
        misuse("unsupported", line, "the simulator knows no LoadData3DParamsV2 on architecture 3510: LoadData2DParamsV2 moves and turns matrices");
    Instruction load("LoadData", Pipe::MTE1, line);
    check_places(load, dst, src), load.needs(src, Space::L1, "source");
    const ImageRegister r = machine.core->image;
    const int64_t size = size_of(dst.type), c0 = block_of(dst.type);
    if (!r.height || !r.width || !s.channels || !s.k_extent || !s.m_extent || !s.filter_w || !s.filter_h || !r.repeat_times) return;
    check_3d(dst, s, r, c0, line);
    const Image image(s, r, src.address, c0);
    const Part part{s, r, c0};
    const int64_t m = s.m_extent * (r.repeat_mode ? 1 : r.repeat_times), k = s.k_extent * (r.repeat_mode ? r.repeat_times : 1);
    const bool right = dst.space == Space::L0B, turned = s.transpose || right;
    const int64_t rows16 = blocks(m, 16) * 16, rows = turned ? rows16 : m, cols = blocks(k, c0) * c0;
    const FractalTarget target{!turned ? cols / c0 : right ? blocks(cols, 16) : rows16 / c0, c0, size};
    const auto there = [&](int64_t row) { return part.row(row) < image.rows(); };
    for (int64_t col = 0; col < cols; col += c0)
        for (int64_t row = 0; row < rows; ++row)
            if (const int64_t from = there(row) ? image.block_at(part.row(row), part.col(col)) : Image::padding; from != Image::padding)
                load.reads(src, from, 32, Instruction::Poison::carry);
    std::vector<std::pair<int64_t, int64_t>> written;  // a transposed matrix leaves the lines beyond its columns as they were
    for (int64_t row = 0; row < rows16; row += turned ? c0 : 16)
        for (int64_t col = 0; col < cols; col += turned ? 16 : c0)
            written.emplace_back(right    ? target.zn(row, col)
                                 : turned ? target.zz(col, row)
                                          : target.zz(row, col),
                                 turned ? std::min<int64_t>(16, cols - col) * 32 : fractal);
    for (const auto& [at, bytes] : written) load.writes(dst, at, bytes);
    load.check();
    load.counts(path(dst, src), rows16 * cols * size);
    for (const auto& [at, bytes] : written) machine.memory(dst).poison(dst.address + at, dst.address + at + bytes, true);
    Mover mover(dst, src);
    uint8_t padding[32];
    for (int64_t e = 0; e < 32; e += size) std::memcpy(padding + e, &r.padding, size_t(size));
    for (int64_t row = 0; row < rows; ++row)
        for (int64_t col = 0; there(row) && col < cols; col += c0) {
            const int64_t from = image.block_at(part.row(row), part.col(col));
            const bool inside = from != Image::padding;
            for (int64_t e = 0; turned && e < c0; ++e) {
                const int64_t to = right ? target.zn(row, col + e) : target.zz(col + e, row);
                inside ? mover.move(to, from + e * size, size) : mover.put(to, padding, size);
            }
            if (!turned) inside ? mover.move(target.zz(row, col), from, 32) : mover.put(target.zz(row, col), padding, 32);
        }
}

}  // namespace tile_sim
