// Structures of numbers that the host gives a kernel: each field with set_ and get_, and the bytes as the kernel's own structure has them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

#define BEGIN_TILING_DATA_DEF(NAME)                                                                     \
    class NAME                                                                                          \
    {                                                                                                   \
    public:                                                                                             \
        size_t GetDataSize() const { return sizeof *this; }                                             \
        void SaveToBuffer(void* to, size_t size) const                                                  \
        {                                                                                               \
            std::memcpy(to, static_cast<const void*>(this), size < sizeof *this ? size : sizeof *this); \
        }
#define TILING_DATA_FIELD_DEF(TYPE, NAME)             \
    void set_##NAME(TYPE value) { NAME##_ = value; }  \
    TYPE get_##NAME() const { return NAME##_; }       \
                                                      \
private:                                              \
    TYPE NAME##_ = 0;                                 \
                                                      \
public:
#define TILING_DATA_FIELD_DEF_ARR(TYPE, COUNT, NAME)                                         \
    void set_##NAME(const TYPE* values) { std::memcpy(NAME##_, values, sizeof NAME##_); }    \
    TYPE* get_##NAME() { return NAME##_; }                                                   \
                                                                                             \
private:                                                                                     \
    TYPE NAME##_[COUNT] = {};                                                                \
                                                                                             \
public:
#define TILING_DATA_FIELD_DEF_STRUCT(TYPE, NAME) TYPE NAME
#define END_TILING_DATA_DEF }
#define REGISTER_TILING_DATA_CLASS(OPERATOR, NAME)
