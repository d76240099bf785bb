// Mutants without compilation: what a run changes in a kernel, as a table of entries "line -> change".
//   drop:LINE                      the flag, wait or barrier of this line is not there
//   early:LINE                     the set of this line stands before the last instruction of its pipe
//   swap:LINE:A:B                  the flag of this line takes id B for A, and A for B
//   unit:LINE:A:B                  the instruction of this line has unit flag B where it says A
//   shift:LINE:OPERAND:SPACE:BEGIN:END:BYTES
//                                  operand OPERAND (-1: each) of the instruction of line LINE (0: each) lies BYTES further on,
//                                  where it starts in bytes [BEGIN, END) of SPACE: UB, L1, .., the name of a tensor in GM, or *
#pragma once
#include <string>

#include "interface.h"

namespace tile_sim
{

bool add_mutation(const char* argument);  // takes "mutate=..."; false for any other argument
int64_t mutations_applied();
bool dropped(int line);
bool set_early(int line);
int64_t mutated_id(int line, int64_t id);
int64_t mutated_unit_flag(int line, int64_t value);
bool mutates_operands();
void shift_operand(int line, int index, Operand& operand);
inline void shift_operand(int line, int index, VectorSide& side) { shift_operand(line, index, side.at); }

}  // namespace tile_sim
