// L1 (or GM) to L0A and L0B, fractal by fractal.
#include <cstdlib>

#include "fractal.h"
#include "schedule.h"

namespace tile_sim
{

void load_2d(Operand dst, Operand src, Load2D s, int line)
{
    if (queued(line, [=] { load_2d(dst, src, s, line); }, dst, src)) return;
    const bool gm = src.space == Space::GM;
    Instruction load("LoadData", gm ? Pipe::MTE2 : Pipe::MTE1, line);
    if (gm && dst.space == Space::L1)
        load.align(dst, 32, "destination");
    else
        check_places(load, dst, src);
    if (s.transpose && gm) misuse("field", line, "LoadData2DParams.ifTranspose has no effect on the way from GM");
    if (s.transpose && size_of(dst.type) != 2) misuse("field", line, "LoadData2DParams.ifTranspose takes 16-bit elements only");
    const auto from = [&](int64_t i) { return (s.start + (s.descending ? -i : i) * s.src_stride) * fractal; };
    const auto to = [&](int64_t i) { return i * (s.dst_gap + 1) * fractal; };
    for (int64_t i = 0; i < s.repeat; ++i) {
        load.reads(src, from(i), fractal, Instruction::Poison::carry);
        load.writes(dst, to(i), fractal);
    }
    load.check();
    load.counts(path(dst, src), s.repeat * fractal);
    Mover mover(dst, src);
    for (int64_t i = 0; i < s.repeat; ++i) {
        if (s.transpose)
            mover.turn(to(i), from(i));
        else
            mover.move(to(i), from(i), fractal);
    }
}

Operand scales_of(const Operand& operand)
{
    const Space space = operand.space == Space::L0A ? Space::MXA : Space::MXB;
    return {space, DType::e8m0, operand.address / 16, machine.memory(space).bytes()};
}

namespace
{

constexpr int64_t scale_fractal = 32;

// Visits the fractals of scales: where each comes from and goes to, in bytes.
template <class Visit>
void each_of_scales(const ScaleParts& s, Visit visit)
{
    for (int64_t x = 0; x < s.x_step; ++x)
        for (int64_t y = 0; y < s.y_step; ++y)
            visit(((s.x_start + x) * s.src_stride + s.y_start + y) * scale_fractal, (x * s.dst_stride + y) * scale_fractal);
}

}  // namespace

// Blocks of 16 rows and 32 bytes of a matrix in NZ, to NZ in L0A and to the same order of fractals (its transpose) in L0B.
void load_parts(Operand dst, Operand src, LoadParts s, int line)
{
    if (s.scaled ? queued(line, [=] { load_parts(dst, src, s, line); }, dst, src, s.scales.from)
                 : queued(line, [=] { load_parts(dst, src, s, line); }, dst, src))
        return;
    if (!machine.settings.direct_paths())
        misuse("unsupported", line, "LoadData2DParamsV2 is for architecture 3510: LoadData2DParams moves fractals here");
    Instruction load("LoadData", Pipe::MTE1, line);
    check_places(load, dst, src), load.needs(src, Space::L1, "source");
    const int64_t size = size_of(dst.type), c0 = 32 / size, unit = size == 1 ? 2 : 1;
    if (s.transpose && (s.m_step % unit || (size == 4 && s.k_step % 2)))
        misuse("field", line, "a turning LoadData2DParamsV2 takes mStep in pairs for 8 bits, and kStep in pairs for 32");
    if (s.scaled) load.needs(s.scales.from, Space::L1, "scales"), load.align(s.scales.from, 32, "scales");
    if (s.scaled && s.transpose && is_half_byte(dst.type))
        misuse("unsupported", line, "a turning LoadData of floats of 4 bits is not simulated: let their rows lie along the depth");
    const Operand beside = s.scaled ? scales_of(dst) : Operand{};
    const auto from = [&](int64_t m, int64_t k) { return ((s.k_start + k) * std::abs(s.src_stride) + s.m_start + m) * fractal; };
    const int64_t rows = s.transpose ? s.k_step * c0 / 16 : s.m_step, cols = s.transpose ? s.m_step * 16 / c0 : s.k_step;
    for (int64_t k = 0; k < s.k_step; ++k)
        for (int64_t m = 0; m < s.m_step; ++m) load.reads(src, from(m, k), fractal, Instruction::Poison::carry);
    for (int64_t col = 0; col < cols; ++col)
        for (int64_t row = 0; row < rows; ++row) load.writes(dst, (col * s.dst_stride + row) * fractal, fractal);
    if (s.scaled)
        each_of_scales(s.scales, [&](int64_t out_of, int64_t into) {
            load.reads(s.scales.from, out_of, scale_fractal, Instruction::Poison::carry), load.writes(beside, into, scale_fractal);
        });
    load.check();
    load.counts(path(dst, src), s.m_step * s.k_step * fractal + (s.scaled ? s.scales.x_step * s.scales.y_step * scale_fractal : 0));
    if (s.scaled)
        each_of_scales(s.scales, [&](int64_t out_of, int64_t into) { carry(beside, into, s.scales.from, out_of, scale_fractal); });
    Mover mover(dst, src);
    for (int64_t col = 0; col < cols; ++col)
        for (int64_t row = 0; row < rows; ++row) mover.empty((col * s.dst_stride + row) * fractal, fractal);
    for (int64_t k = 0; k < s.k_step; ++k)
        for (int64_t m = 0; m < s.m_step; ++m) {
            if (!s.transpose) {
                mover.move((k * s.dst_stride + m) * fractal, from(m, k), fractal);
                continue;
            }
            for (int64_t i = 0; i < 16; ++i)
                for (int64_t j = 0; j < c0; ++j) {
                    const int64_t row = k * c0 + j, col = m * 16 + i;  // of the turned matrix
                    mover.move((col / c0 * s.dst_stride + row / 16) * fractal + (row % 16 * c0 + col % c0) * size,
                               from(m, k) + (i * c0 + j) * size, size);
                }
        }
}

// Squares: one fractal of 16-bit elements, two of 8-bit and 32-bit ones, four of 4-bit ones; each is transposed as a whole.
void load_square(Operand dst, Operand src, LoadSquare s, int line)
{
    if (queued(line, [=] { load_square(dst, src, s, line); }, dst, src)) return;
    Instruction load("LoadDataWithTranspose", Pipe::MTE1, line);
    check_places(load, dst, src);
    const bool nibbles = dst.type == DType::i4;
    const int64_t size = size_of(dst.type), c0 = block_of(dst.type), side = std::max<int64_t>(16, c0);
    const int64_t halves = side * side / c0 / 16;
    if (size == 8) misuse("field", line, "LoadDataWithTranspose takes elements of 4 to 32 bits");
    if (nibbles && dst.space != Space::L0B) misuse("field", line, "LoadDataWithTranspose takes int4b_t to L0B only");
    const auto from = [&](int64_t i) { return (s.start + (s.descending ? -i : i) * s.src_stride) * fractal * halves; };
    const auto to = [&](int64_t i, int64_t half) { return (i * (s.dst_gap + 1) + half * (s.dst_fractal_gap + 1)) * fractal; };
    for (int64_t i = 0; i < s.repeat; ++i) {
        load.reads(src, from(i), fractal * halves, Instruction::Poison::carry);
        for (int64_t h = 0; h < halves; ++h) load.writes(dst, to(i, h), fractal);
    }
    load.check();
    load.counts(path(dst, src), s.repeat * fractal * halves);
    Mover mover(dst, src);
    for (int64_t i = 0; i < s.repeat; ++i)
        for (int64_t h = 0; h < halves; ++h) mover.empty(to(i, h), fractal);
    const auto turn = [&](int64_t i, int64_t row, int64_t col) {
        const int64_t out = to(i, row / 16 + col / c0), in = from(i) + (row / c0 + col / 16) * fractal;
        const int64_t to_element = row % 16 * c0 + col % c0, from_element = col % 16 * c0 + row % c0;
        if (nibbles)
            mover.move_nibble(out * 2 + to_element, in * 2 + from_element);
        else
            mover.move(out + to_element * size, in + from_element * size, size);
    };
    for (int64_t i = 0; i < s.repeat; ++i)
        for (int64_t row = 0; row < side; ++row)
            for (int64_t col = 0; col < side; ++col) turn(i, row, col);
}

}  // namespace tile_sim
