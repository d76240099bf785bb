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

// Runs over up to three operands. Block and repeat strides are in 32-byte blocks of each operand.
std::vector<Run> runs_of(const Lanes& lanes, const VectorSide* sides, int operands);

// The common frame of a vector instruction: places, alignment, accesses, checks. sides[0] is written.
class VectorInstruction
{
public:
    VectorInstruction(const char* name, int line, const Lanes& lanes, const VectorSide* sides, int operands, bool reads_dst,
                      Instruction::Poison poison = Instruction::Poison::error);
    const std::vector<Run>& runs() const { return runs_; }
    template <class T>
    T* at(int operand, int64_t element) const
    {
        return reinterpret_cast<T*>(instruction_.data(sides_[operand].at)) + element;
    }
    bool nothing() const { return runs_.empty(); }

private:
    void check_overlap(int operand) const;

    Instruction instruction_;
    const VectorSide* sides_;
    std::vector<Run> runs_;
};

void vector_move(const VectorInstruction& v, const Operand& dst, const Operand& src);  // bytes and poison, as they are

}  // namespace tile_sim
