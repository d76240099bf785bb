// What a run that is watched computes: a record behind each instruction, in a file that the parent process reads (simulator/watch.py).
//   A record: id, block of the launch, core, number of values, bytes, (8 bytes each), the values (8 bytes each), the bytes.
//   The first value is the tile of the grid. Told are one tile's records, or all (-1: without bytes; -2: with them).
#include "watch.h"

#include <unistd.h>

#include "machine.h"

namespace tile_sim
{
namespace
{

constexpr int64_t most_bytes = int64_t(1000) << 20;  // a file may have 1 GiB (main.cpp)
constexpr int64_t places = -1;  // as a tile: of all tiles, without what results hold
constexpr int64_t stopped = -1;  // the id of the last record, where there are more than the file may hold
int file = -1;
int64_t wanted = -1, end = 0;
bool full = false;

void put(const void* from, int64_t bytes)
{
    for (const uint8_t* at = static_cast<const uint8_t*>(from); bytes;) {
        const ssize_t done = pwrite(file, at, size_t(bytes), off_t(end));
        if (done <= 0) {
            full = true;
            return;
        }
        at += done, bytes -= done, end += done;
    }
}

void put_head(int64_t id, int64_t count, int64_t bytes)
{
    const int64_t head[] = {id, int64_t(machine.block), machine.core ? machine.core->index : 0, count, bytes};
    put(head, sizeof head);
}

}  // namespace

void watch_into(int to, int64_t tile) { file = to, wanted = tile; }
bool watching() { return file >= 0; }

void watched(int64_t id, const Operand* at, int64_t bytes, const int64_t* values, int64_t count)
{
    if (file < 0 || full || (wanted >= 0 && count && values[0] != wanted)) return;
    if (wanted == places) at = nullptr;
    if (at) bytes = std::max(int64_t(0), std::min(bytes, machine.memory(*at).bytes() - at->address));
    const int64_t held = at ? bytes : 0;
    if (end + held > most_bytes) {
        put_head(stopped, 0, 0), full = true;
        return;
    }
    put_head(id, count, held);
    put(values, count * int64_t(sizeof *values));
    if (at) put(machine.memory(*at).at(at->address), held);
}

}  // namespace tile_sim
