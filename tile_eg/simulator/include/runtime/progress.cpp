#include "progress.h"

#include <unistd.h>

namespace tile_sim
{
namespace
{

constexpr int64_t places = 11;  // launches, blocks of this one, blocks ended: by the first process, by each worker
int file = -1;
int64_t numbers[places] = {}, mine = 2;

void tell(int64_t place, int64_t value)
{
    numbers[place] = value;
    if (pwrite(file, &value, sizeof value, off_t(place * int64_t(sizeof value))) < 0) file = -1;
}

}  // namespace

void tell_progress_to(int to) { file = to; }

void launch_begins(int64_t blocks)
{
    if (file < 0) return;
    for (int64_t place = 2; place < places; ++place) tell(place, 0);
    tell(1, blocks), tell(0, numbers[0] + 1);
}

void worker_begins(int64_t number)
{
    if (file < 0) return;
    mine = number + 3 < places ? number + 3 : places - 1;
    tell(mine, 0);
}

void block_ended()
{
    if (file >= 0) tell(mine, numbers[mine] + 1);
}

}  // namespace tile_sim
