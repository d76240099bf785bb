// Transposition in UB: squares of 16 x 16, sixteen blocks at free addresses, and whole NCHW tensors.
#include <cstring>

#include "lanes.h"
#include "schedule.h"

namespace tile_sim
{
namespace
{

// Copies elements from place to place, what holds nothing included, as if all were read before any is written.
class Shuffle
{
public:
    Shuffle(const Instruction& instruction, int64_t size) : instruction_(instruction), size_(size) {}
    void take(const Operand& src, int64_t from)
    {
        const uint8_t* p = instruction_.data(src, from);
        bytes_.insert(bytes_.end(), p, p + size_);
        empty_.push_back(machine.memory(Space::UB).poisoned(src.address + from, src.address + from + size_));
    }
    void put(const Operand& dst, int64_t to)
    {
        std::memcpy(instruction_.data(dst, to), bytes_.data() + next_ * size_t(size_), size_t(size_));
        if (empty_[next_]) machine.memory(Space::UB).poison(dst.address + to, dst.address + to + size_, true);
        ++next_;
    }

private:
    const Instruction& instruction_;
    int64_t size_;
    size_t next_ = 0;
    std::vector<uint8_t> bytes_;
    std::vector<char> empty_;
};

// `each(visit)` calls visit(to, from) for all elements.
template <class Each>
void permute(Instruction& turn, const Operand& dst, const Operand& src, int64_t bytes, Each each)
{
    const int64_t size = size_of(dst.type);
    turn.needs(dst, Space::UB, "destination"), turn.needs(src, Space::UB, "source");
    turn.align(dst, 32, "destination"), turn.align(src, 32, "source");
    turn.reads(src, 0, bytes, Instruction::Poison::carry);
    turn.writes(dst, 0, bytes);
    turn.check();
    turn.counts("vector", bytes);
    Shuffle shuffle(turn, size);
    each([&](int64_t, int64_t from) { shuffle.take(src, from * size); });
    each([&](int64_t to, int64_t) { shuffle.put(dst, to * size); });
}

}  // namespace

void vector_transpose(Operand dst, Operand src, int line)
{
    if (queued(line, [=] { vector_transpose(dst, src, line); }, dst, src)) return;
    Instruction turn("Transpose", Pipe::V, line);
    permute(turn, dst, src, 512, [](auto&& visit) {
        for (int64_t i = 0; i < 16; ++i)
            for (int64_t j = 0; j < 16; ++j) visit(i * 16 + j, j * 16 + i);
    });
}

void vector_transpose_nd(Operand dst, Operand src, Operand scratch, const int64_t* nchw, bool to_nhwc, int line)
{
    Instruction turn("Transpose", Pipe::V, line);
    const int64_t n = nchw[0], c = nchw[1], hw = nchw[2] * nchw[3], size = size_of(dst.type);
    if (hw * size % 32 || hw > 4095)
        misuse("field", line, "Transpose takes planes of h * w <= 4095 elements and whole 32-byte blocks");
    if (!n || !c || !hw) return;
    const int64_t tile = (size == 1 ? 32 : 16) * 32;  // what the vendor's page asks for as scratch
    turn.writes(scratch, 0, (to_nhwc ? c + 2 : 2 * c + 1) * tile);
    permute(turn, dst, src, n * c * hw * size, [&](auto&& visit) {
        for (int64_t i = 0; i < n; ++i)
            for (int64_t j = 0; j < c; ++j)
                for (int64_t p = 0; p < hw; ++p) {
                    const int64_t planes = (i * c + j) * hw + p, pixels = (i * hw + p) * c + j;
                    visit(to_nhwc ? pixels : planes, to_nhwc ? planes : pixels);
                }
    });
    machine.memory(Space::UB).poison(scratch.address, scratch.address + (to_nhwc ? c + 2 : 2 * c + 1) * tile, true);
}

namespace
{

// Of 16 blocks: how many elements of each take part, where the first lies, and where element `e` of row `k` goes.
struct Blocks {
    int64_t size, rows;
    bool dst_high, src_high;
    int64_t source(int64_t e) const { return (size == 1 && src_high ? 16 : 0) + e * size; }
    int64_t target_block(int64_t e, int64_t k) const { return size == 4 ? 2 * e + k / 8 : e; }
    int64_t target(int64_t k) const { return (size == 1 && dst_high ? 16 : 0) + (size == 4 ? k % 8 : k) * size; }
};

}  // namespace

// Element e of the 16 source blocks becomes the 16 elements of row e. With one repeat the addresses move by the repeat strides
// first, as the vendor's page says.
void vector_to_5hd(const Operand* dst, const Operand* src, To5hdShape s, int line)
{
    Instruction turn("TransDataTo5HD", Pipe::V, line);
    const int64_t size = size_of(dst[0].type);
    const Blocks blocks{size, size == 4 ? 8 : 16, s.dst_high, s.src_high};
    const int64_t start = s.repeat == 1 ? 1 : 0;
    for (int i = 0; i < 16; ++i) {
        turn.needs(dst[i], Space::UB, "destination"), turn.needs(src[i], Space::UB, "source");
        turn.align(dst[i], 32, "destination"), turn.align(src[i], 32, "source");
    }
    const auto each = [&](auto&& visit) {
        for (int64_t r = 0; r < s.repeat; ++r)
            for (int64_t e = 0; e < blocks.rows; ++e)
                for (int64_t k = 0; k < 16; ++k)
                    visit(dst[blocks.target_block(e, k)], (r + start) * s.dst_stride * 32 + blocks.target(k), src[k],
                          (r + start) * s.src_stride * 32 + blocks.source(e));
    };
    each([&](const Operand& d, int64_t to, const Operand& from_list, int64_t from) {
        turn.reads(from_list, from, size, Instruction::Poison::carry);
        turn.writes(d, to, size);
    });
    if (!s.repeat) return;
    turn.check();
    turn.counts("vector", s.repeat * 512);
    Shuffle shuffle(turn, size);
    each([&](const Operand&, int64_t, const Operand& from_list, int64_t from) { shuffle.take(from_list, from); });
    each([&](const Operand& d, int64_t to, const Operand&, int64_t) { shuffle.put(d, to); });
}

}  // namespace tile_sim
