// L1 to L0A and L0B: fractals of 512 bytes, 16 rows of 32 bytes. Poison goes along, granule by granule.
#include <cstring>
#include <utility>

#include "schedule.h"

namespace tile_sim
{
namespace
{

constexpr int64_t fractal = 512;

// Where the bytes of one element go, from operand to operand.
class Mover
{
public:
    Mover(const Operand& dst, const Operand& src)
        : dst_(machine.memory(dst.space)), src_(machine.memory(src.space)), to_(dst.address), from_(src.address)
    {
    }
    void move(int64_t to, int64_t from, int64_t bytes)
    {
        std::memcpy(dst_.at(to_ + to), src_.at(from_ + from), size_t(bytes));
        dst_.poison(to_ + to, to_ + to + bytes, false);
        if (src_.poisoned(from_ + from, from_ + from + bytes)) spread(to_ + to, from_ + from, bytes);
    }

private:
    void spread(int64_t to, int64_t from, int64_t bytes)
    {
        for (int64_t i = 0; i < bytes; i += granule)
            if (src_.poisoned(from + i, from + i + 1)) dst_.poison(to + i, to + std::min(i + granule, bytes), true);
    }
    Memory &dst_, &src_;
    int64_t to_, from_;
};

void check_places(const Instruction& load, const Operand& dst, const Operand& src)
{
    if (dst.space != Space::L0A && dst.space != Space::L0B) load.needs(dst, Space::L0A, "destination");
    load.needs(src, Space::L1, "source");
    load.align(dst, fractal, "destination");
    load.align(src, 32, "source");
}

const char* path(const Operand& dst) { return dst.space == Space::L0A ? "L1->L0A" : "L1->L0B"; }

}  // namespace

void load_2d(Operand dst, Operand src, Load2D s, int line)
{
    if (queued(line, [=] { load_2d(dst, src, s, line); }, dst, src)) return;
    Instruction load("LoadData", Pipe::MTE1, line);
    check_places(load, dst, src);
    if (s.transpose && size_of(dst.type) != 2) misuse("field", line, "LoadData2DParams.ifTranspose takes 16-bit elements only");
    const auto from = [&](int64_t i) { return (s.start + (s.descending ? -i : i) * s.src_stride) * fractal; };
    const auto to = [&](int64_t i) { return i * (s.dst_gap + 1) * fractal; };
    for (int64_t i = 0; i < s.repeat; ++i) {
        load.reads(src, from(i), fractal, Instruction::Poison::carry);
        load.writes(dst, to(i), fractal);
    }
    load.check();
    load.counts(path(dst), s.repeat * fractal);
    Mover mover(dst, src);
    for (int64_t i = 0; i < s.repeat; ++i) {
        if (!s.transpose)
            mover.move(to(i), from(i), fractal);
        else
            for (int64_t e = 0; e < 256; ++e) mover.move(to(i) + e * 2, from(i) + (e % 16 * 16 + e / 16) * 2, 2);
    }
}

// Squares: one fractal of 16-bit elements, two of 8-bit and 32-bit ones; each is transposed as a whole.
void load_square(Operand dst, Operand src, LoadSquare s, int line)
{
    if (queued(line, [=] { load_square(dst, src, s, line); }, dst, src)) return;
    Instruction load("LoadDataWithTranspose", Pipe::MTE1, line);
    check_places(load, dst, src);
    const int64_t size = size_of(dst.type), halves = size == 2 ? 1 : 2, c0 = 32 / size;
    const int64_t side = size == 1 ? 32 : 16;
    if (dst.type == DType::i4 || size == 8)
        misuse("unsupported", line, "the simulator knows LoadDataWithTranspose for 8-bit, 16-bit and 32-bit elements");
    const auto from = [&](int64_t i) { return (s.start + (s.descending ? -i : i) * s.src_stride) * fractal * halves; };
    const auto to = [&](int64_t i, int64_t half) { return (i * (s.dst_gap + 1) + half * (s.dst_fractal_gap + 1)) * fractal; };
    for (int64_t i = 0; i < s.repeat; ++i) {
        load.reads(src, from(i), fractal * halves, Instruction::Poison::carry);
        for (int64_t h = 0; h < halves; ++h) load.writes(dst, to(i, h), fractal);
    }
    load.check();
    load.counts(path(dst), s.repeat * fractal * halves);
    Mover mover(dst, src);
    for (int64_t i = 0; i < s.repeat; ++i)
        for (int64_t row = 0; row < side; ++row)
            for (int64_t col = 0; col < side; ++col)
                mover.move(to(i, row / 16 + col / c0) + (row % 16 * c0 + col % c0) * size,
                           from(i) + (row / c0 + col / 16) * fractal + (col % 16 * c0 + row % c0) * size, size);
}

namespace
{

// A row-major matrix of `height` rows in L1's NZ layout: column blocks of 32 bytes, each `height` rows long.
struct NzSource {
    int64_t height, c0, size;
    int64_t at(int64_t row, int64_t col) const { return (col / c0 * height + row) * 32 + col % c0 * size; }
};

// zZ of L0A, and zN of L0B (its transpose, block by block): `across` blocks of c0 elements lie side by side.
struct FractalTarget {
    int64_t across, c0, size;
    int64_t zz(int64_t row, int64_t col) const
    {
        return (row / 16 * across + col / c0) * fractal + (row % 16 * c0 + col % c0) * size;
    }
    int64_t zn(int64_t row, int64_t col) const
    {
        return (row / c0 * across + col / 16) * fractal + (col % 16 * c0 + row % c0) * size;
    }
};

int64_t blocks(int64_t n, int64_t block) { return (n + block - 1) / block; }

void check_3d(const Operand& dst, const Load3D& s, int64_t c0, int line)
{
    if (dst.type == DType::i4 || (c0 == 32 && (s.transpose || dst.space == Space::L0B)))
        misuse("unsupported", line,
               "the simulator knows LoadData3DParamsV2 of 8-bit elements into L0A without transposition only; LoadDataWithTranspose "
               "turns them");
    if (s.channels % c0 && s.channels % c0 != 4 && (c0 < 16 || s.channels % c0 != 8) && (c0 != 32 || s.channels % c0 != 16))
        misuse("field", line,
               "LoadData3DParamsV2.channelSize is %lld, and must be a multiple of %lld (or 4, or for 16 bits 8, more)",
               (long long)s.channels, (long long)c0);
    if (s.k_start % c0) misuse("field", line, "LoadData3DParamsV2.kStartPt must be a multiple of %lld", (long long)c0);
    if (s.k_start + s.k_extent > blocks(s.channels, c0) * c0)
        misuse("field", line, "LoadData3DParamsV2 takes columns up to %lld of %lld channels", (long long)(s.k_start + s.k_extent),
               (long long)s.channels);
}

}  // namespace

// The 1 x 1 filter makes a matrix of (height * width) rows and `channels` columns. Into L0A it goes as it is, or transposed;
// into L0B it goes as a right operand (rows are k). 32-bit transposes come in squares of 16: pairs of k blocks lie together.
void load_3d(Operand dst, Operand src, Load3D s, int line)
{
    if (queued(line, [=] { load_3d(dst, src, s, line); }, dst, src)) return;
    Instruction load("LoadData", Pipe::MTE1, line);
    check_places(load, dst, src);
    const int64_t size = size_of(dst.type), c0 = 32 / size, height = s.height * s.width;
    if (!height || !s.channels || !s.k_extent || !s.m_extent) return;
    check_3d(dst, s, c0, line);
    const bool right = dst.space == Space::L0B, turned = s.transpose || right;
    const int64_t rows = turned ? blocks(s.m_extent, 16) * 16 : s.m_extent, cols = blocks(s.k_extent, c0) * c0;
    const NzSource source{height, c0, size};
    const int64_t rows16 = blocks(s.m_extent, 16) * 16;
    const FractalTarget target{!turned ? cols / c0 : right ? blocks(cols, 16) : rows16 / c0, c0, size};
    for (int64_t c = 0; c < cols; c += c0)
        load.reads(src, source.at(s.m_start, s.k_start + c), std::min(rows, height - s.m_start) * 32, Instruction::Poison::carry);
    std::vector<std::pair<int64_t, int64_t>> written;  // a transposed matrix leaves the lines beyond its columns as they were
    for (int64_t row = 0; row < rows16; row += turned ? c0 : 16)
        for (int64_t col = 0; col < cols; col += turned ? 16 : c0)
            written.emplace_back(right    ? target.zn(row, col)
                                 : turned ? target.zz(col, row)
                                          : target.zz(row, col),
                                 turned ? std::min<int64_t>(16, cols - col) * 32 : fractal);
    for (const auto& [at, bytes] : written) load.writes(dst, at, bytes);
    load.check();
    load.counts(path(dst), rows16 * cols * size);
    for (const auto& [at, bytes] : written) machine.memory(dst.space).poison(dst.address + at, dst.address + at + bytes, true);
    Mover mover(dst, src);
    for (int64_t row = 0; row < std::min(rows, height - s.m_start); ++row)
        for (int64_t col = 0; col < cols; ++col) {
            const int64_t to = right ? target.zn(row, col) : s.transpose ? target.zz(col, row) : target.zz(row, col);
            mover.move(to, source.at(s.m_start + row, s.k_start + col), size);
        }
}

}  // namespace tile_sim
