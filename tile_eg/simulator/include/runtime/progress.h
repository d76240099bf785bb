// How far a run is, for whoever waits for it: numbers in a file that the parent process reads (simulator/progress.py).
#pragma once
#include <cstdint>

namespace tile_sim
{

void tell_progress_to(int file);
void launch_begins(int64_t blocks);
void worker_begins(int64_t number);  // counts from 0; each process has a place of its own
void block_ended();

}  // namespace tile_sim
