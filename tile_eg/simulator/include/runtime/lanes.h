// Which elements a vector instruction touches: runs of neighbouring elements, the same number at each operand.
#pragma once
#include <array>
#include <vector>

#include "machine.h"

namespace tile_sim
{

struct Run {
    std::array<int64_t, 3> at;  // first element at each operand
    int64_t count;
    int64_t repeat;
};

// Lanes in a round of the widest operand, and how many rounds there are.
int64_t rounds_of(const Lanes& lanes, int64_t width);
inline bool lane_active(const Lanes& lanes, int64_t round, int64_t lane, int64_t width)
{
    if (lanes.count >= 0) return round * width + lane < lanes.count;
    if (lanes.total >= 0) return round * width + lane < lanes.total;
    if (lanes.each >= 0) return lane < lanes.each;
    return lanes.mask[lane / 64] >> (lane % 64) & 1;
}

bool whole_round(const Lanes& lanes, int64_t round, int64_t width);  // that all its lanes take part, in a round that is one

// Runs over up to three operands. Block and repeat strides are in 32-byte blocks of each operand.
std::vector<Run> runs_of(const Lanes& lanes, const VectorSide* sides, int operands);

// The common frame of a vector instruction: places, alignment, accesses, checks. sides[0] is written. What is computed from
// an element that nothing has written is as if nothing had written it.
class VectorInstruction
{
public:
    VectorInstruction(const char* name, int line, const Lanes& lanes, const VectorSide* sides, int operands, bool reads_dst,
                      Instruction::Poison poison = Instruction::Poison::carry);
    VectorInstruction(const VectorInstruction&) = delete;
    ~VectorInstruction();
    const std::vector<Run>& runs() const { return runs_; }
    template <class T>
    T* at(int operand, int64_t element) const
    {
        return reinterpret_cast<T*>(instruction_.data(sides_[operand].at)) + element;
    }
    uint8_t* data(int operand) const { return instruction_.data(sides_[operand].at); }
    bool nothing() const { return runs_.empty(); }

private:
    int64_t stretch(int operand, size_t first, size_t& last) const;
    void check_overlap(int operand) const;
    std::vector<Place> unwritten_results(int operands, bool reads_dst) const;

    Instruction instruction_;
    const VectorSide* sides_;
    std::vector<Run> runs_;
    std::vector<Place> unwritten_;  // bytes of the destination, from the operand's first one
};

// Marks bytes that an instruction has computed from what nothing has written.
void keep_unwritten(const Instruction& instruction, const Operand& dst, const std::vector<Place>& bytes);

// The instruction that computed a byte from what nothing has written, where there is one: its name and its line.
struct Carrier {
    const char* name = "";
    int line = 0;
};
Carrier carrier_of(const Memory& memory, int64_t address);
void forget_carriers(const Memory& memory);

// Bits of comparisons share bytes: those of a granule that are unwritten, where the others are not. A mark on all of it otherwise.
bool unwritten_bit(Memory& memory, int64_t address, int64_t bit);
void keep_unwritten_bits(const Instruction& instruction, const Operand& dst, const std::vector<bool>& bits);
void forget_bits(const Memory& memory, int64_t begin, int64_t end);  // something else is written there

double deq_scale(const char* name, int line);  // of SetDeqScale(half)
void vector_move(const VectorInstruction& v, const Operand& dst, const Operand& src);  // bytes and poison, as they are

}  // namespace tile_sim
