// Lines of the files that a kernel includes: a line goes through the runtime as one number, which says the file too.
#include <cstring>

#include "machine.h"

namespace tile_sim
{
namespace
{

constexpr int most_lines = 1000000;
const char* const own_names[] = {"kernel.asc", "program.asc", "launch.cpp"};  // build.py, asc_file.py
std::vector<std::string> files{""};  // by number; the kernel's own file is 0

bool is_own(const std::string& file)
{
    for (const char* name : own_names)
        if (file == name) return true;
    return file.find("/ascend_c/") != std::string::npos;  // of our own headers the user knows nothing
}

int number_of(const std::string& file)
{
    if (is_own(file)) return 0;
    for (size_t i = 1; i < files.size(); ++i)
        if (files[i] == file) return int(i);
    files.push_back(file);
    return int(files.size()) - 1;
}

size_t digits_from(const std::string& message, size_t begin)
{
    return std::min(message.find_first_not_of("0123456789", begin), message.size()) - begin;
}

}  // namespace

int placed(int line, const char* file)
{
    static const char* last = nullptr;
    static int number = 0;
    if (file != last) last = file, number = number_of(file);
    return line >= most_lines ? line : number * most_lines + line;
}

FileLine of_line(int line) { return {line % most_lines, files[size_t(line / most_lines)]}; }

std::string with_files(const std::string& message)
{
    std::string out;
    for (size_t at = 0; at < message.size();) {
        const size_t digits = message.compare(at, 5, "line ") ? 0 : digits_from(message, at + 5);
        if (digits < 7) {
            out += message[at++];
            continue;
        }
        const FileLine where = of_line(std::stoi(message.substr(at + 5, digits)));
        out += text("line %d of %s", where.line, where.file.c_str());
        at += 5 + digits;
    }
    return out;
}

}  // namespace tile_sim
