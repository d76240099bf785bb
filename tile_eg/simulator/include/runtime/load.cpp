// L1 (or GM) to L0A and L0B, fractal by fractal.
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
        if (!s.transpose)
            mover.move(to(i), from(i), fractal);
        else
            for (int64_t e = 0; e < 256; ++e) mover.move(to(i) + e * 2, from(i) + (e % 16 * 16 + e / 16) * 2, 2);
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
