// Blocks that are independent of one another run in several processes at once.
#pragma once
#include <cstdint>
#include <functional>

namespace tile_sim
{

using BlockRun = std::function<bool(uint32_t block)>;  // runs one block; false: it waits for another, or an error ended it

void begin_sharing();  // a launch begins
bool is_worker();      // whether this process runs a part of the blocks for another one
// Runs all blocks from `begun` on, if that saves time; false: they have to be run one after the other.
bool share_blocks(int64_t begun, const BlockRun& run);

}  // namespace tile_sim
