// Constants for L1, L0A and L0B, and the ways from L1 to the tables of biases and scales.
#include <cstring>

#include "numbers.h"
#include "schedule.h"

namespace tile_sim
{

// Blocks of 32 bytes in L1 (pipe MTE2), of 512 bytes in L0A and L0B (pipe MTE1).
void fill(Operand dst, FillShape s, int line)
{
    if (queued(line, [=] { fill(dst, s, line); }, dst)) return;
    const bool l1 = dst.space == Space::L1;
    if (!l1 && dst.space != Space::L0A && dst.space != Space::L0B)
        misuse("wrong_memory", line, "Fill writes L1, L0A or L0B, not %s", name_of(dst.space));
    Instruction constant("Fill", l1 ? Pipe::MTE2 : Pipe::MTE1, line);
    const int64_t block = l1 ? 32 : 512, bytes = s.blocks * block, step = bytes + s.gap * block, size = size_of(dst.type);
    if (!s.repeat || !s.blocks) return;
    constant.align(dst, block, "destination");
    for (int64_t i = 0; i < s.repeat; ++i) constant.writes(dst, i * step, bytes);
    constant.check();
    constant.counts("fill", s.repeat * bytes);
    for (int64_t i = 0; i < s.repeat; ++i)
        for (int64_t e = 0; e < bytes; e += size) std::memcpy(constant.data(dst, i * step + e), &s.bits, size_t(size));
}

namespace
{

// Halves as floats; what nothing has written stays so.
void widen(const Instruction& copy, const Operand& dst, int64_t to, const Operand& src, int64_t from, int64_t bytes)
{
    for (int64_t i = 0; i < bytes; i += 2) {
        uint16_t half;
        std::memcpy(&half, copy.data(src, from + i), 2);
        const float single = half_to_float(half);
        std::memcpy(copy.data(dst, to + 2 * i), &single, 4);
        const int64_t read = src.address + from + i, written = dst.address + to + 2 * i;
        machine.memory(dst).poison(written, written + 4, machine.memory(src).poisoned(read, read + 2));
    }
}

}  // namespace

// Biases go by MTE1, scales by the pipe that uses them.
void copy_table(Operand dst, Operand src, Rows rows, int line)
{
    if (queued(line, [=] { copy_table(dst, src, rows, line); }, dst, src)) return;
    const bool bias = dst.space == Space::BT, widened = dst.type != src.type;
    Instruction copy("DataCopy", bias ? Pipe::MTE1 : Pipe::FIX, line);
    copy.needs(src, Space::L1, "source");
    if (!rows.count || !rows.bytes) return;
    copy.align(src, 32, "source"), copy.align(dst, bias ? 64 : 128, "destination");
    for (int64_t i = 0; i < rows.count; ++i) {
        copy.reads(src, i * rows.src_stride, rows.bytes, Instruction::Poison::carry);
        copy.writes(dst, i * rows.dst_stride, widened ? 2 * rows.bytes : rows.bytes);
    }
    copy.check();
    copy.counts(bias ? "L1->BT" : "L1->FB", rows.count * rows.bytes);
    for (int64_t i = 0; i < rows.count; ++i)
        if (widened)
            widen(copy, dst, i * rows.dst_stride, src, i * rows.src_stride, rows.bytes);
        else
            carry(dst, i * rows.dst_stride, src, i * rows.src_stride, rows.bytes);
}

}  // namespace tile_sim
