#include "mutation.h"

#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "machine.h"

namespace tile_sim
{
namespace
{

struct Entry {
    std::string kind;
    int line = 0;
    int64_t a = 0, b = 0;  // ids or unit flags
    int operand = -1;
    std::string space;
    int64_t begin = 0, end = 0, bytes = 0;
};

std::vector<Entry> entries;
int64_t applied = 0;

std::vector<std::string> fields(const std::string& text)
{
    std::vector<std::string> found;
    size_t start = 0;
    for (size_t at; (at = text.find(':', start)) != std::string::npos; start = at + 1) found.push_back(text.substr(start, at - start));
    found.push_back(text.substr(start));
    return found;
}

const Entry* find(const char* kind, int line)
{
    for (const Entry& entry : entries)
        if (entry.line == line && entry.kind == kind) return ++applied, &entry;
    return nullptr;
}

bool lies_in(const Entry& entry, const Operand& operand)
{
    const auto within = [&](int64_t start) {
        return operand.address >= start + entry.begin && operand.address < start + entry.end;
    };
    if (operand.space != Space::GM) return entry.space == name_of(operand.space) && within(0);
    for (const Region& region : machine.regions)
        if (region.name == entry.space) return operand.address < region.end && within(region.begin);
    return false;
}

bool shifts(const Entry& entry, int line, int index, const Operand& operand)
{
    return entry.kind == "shift" && (entry.line == 0 || entry.line == line) && (entry.operand < 0 || entry.operand == index) &&
           (entry.space == "*" || lies_in(entry, operand));
}

}  // namespace

bool add_mutation(const char* argument)
{
    constexpr const char prefix[] = "mutate=";
    if (std::strncmp(argument, prefix, sizeof prefix - 1)) return false;
    const auto part = fields(argument + sizeof prefix - 1);
    Entry entry;
    entry.kind = part[0];
    const bool pair = entry.kind == "swap" || entry.kind == "unit";
    const size_t wanted = entry.kind == "shift" ? 7 : pair ? 4 : 2;
    if (part.size() != wanted) throw std::invalid_argument("no mutation: " + std::string(argument));
    entry.line = std::stoi(part[1]);
    if (pair) entry.a = std::stoll(part[2]), entry.b = std::stoll(part[3]);
    if (entry.kind == "shift")
        entry.operand = std::stoi(part[2]), entry.space = part[3], entry.begin = std::stoll(part[4]),
        entry.end = std::stoll(part[5]), entry.bytes = std::stoll(part[6]);
    entries.push_back(entry);
    return true;
}

int64_t mutations_applied() { return applied; }
bool dropped(int line) { return !entries.empty() && find("drop", line); }
bool set_early(int line) { return !entries.empty() && find("early", line); }

int64_t mutated_id(int line, int64_t id)
{
    const Entry* entry = entries.empty() ? nullptr : find("swap", line);
    return !entry ? id : id == entry->a ? entry->b : id == entry->b ? entry->a : id;
}

int64_t mutated_unit_flag(int line, int64_t value)
{
    for (const Entry& entry : entries)
        if (entry.kind == "unit" && entry.line == line && entry.a == value) return ++applied, entry.b;
    return value;
}

bool mutates_operands() { return !entries.empty(); }

void shift_operand(int line, int index, Operand& operand)
{
    for (const Entry& entry : entries)
        if (shifts(entry, line, index, operand)) {
            ++applied;
            operand.address += entry.bytes, operand.end += entry.bytes;
            if (operand.begin >= 0) operand.begin += entry.bytes;
            return;
        }
}

}  // namespace tile_sim
