// Tensors, and the static allocator (queue.h has TPipe and its queues and buffers).
#pragma once
#include "types.h"

namespace AscendC
{

using TBufHandle = uint8_t*;

inline TBufHandle handle_of(int64_t address) { return reinterpret_cast<TBufHandle>(address + 1); }  // that at 0 is not null
inline int64_t address_of(TBufHandle handle) { return reinterpret_cast<int64_t>(handle) - 1; }

// Where a tensor lies: what LocalTensor::SetAddr takes from another tensor's address_.
class AnyPosition
{
public:
    AnyPosition(TPosition position = TPosition::VECCALC) : position_(position) {}
    AnyPosition(uint8_t position) : position_(TPosition(position)) {}
    operator TPosition() const { return position_; }

private:
    TPosition position_;
};
struct AddressOfItsOwn {
    template <class N>
    void operator=(N)
    {
        tile_sim::misuse("unsupported", 0, "the simulator knows TBuffAddr of a tensor or queue; not one of a number (bufferAddr)");
    }
};
struct TBuffAddr {
    tile_sim::Operand at;
    AnyPosition logicPos;
    AddressOfItsOwn bufferAddr;
};

enum class DataFormat : uint8_t { ND, NZ, NCHW, NC1HWC0, NHWC, NCDHW, NDC1HWC0, FRACTAL_Z_3D };

// The shape of a tensor, beside it: no instruction looks at it.
struct ShapeInfo {
    ShapeInfo() = default;
    ShapeInfo(uint8_t dims, const uint32_t* sizes, uint8_t original_dims, const uint32_t* original_sizes, DataFormat format,
              Line line = Line(__builtin_LINE()))
        : shapeDim(dims), originalShapeDim(original_dims), dataFormat(format)
    {
        tile_sim::checked(dims, 0, K_MAX_SHAPE_DIM, "shapeDim", line);
        tile_sim::checked(original_dims, 0, K_MAX_SHAPE_DIM, "originalShapeDim", line);
        for (int i = 0; i < dims; ++i) shape[i] = sizes[i];
        for (int i = 0; i < original_dims; ++i) originalShape[i] = original_sizes[i];
    }
    ShapeInfo(uint8_t dims, const uint32_t* sizes, DataFormat format = DataFormat::ND, Line line = Line(__builtin_LINE()))
        : ShapeInfo(dims, sizes, dims, sizes, format, line)
    {
    }
    uint8_t shapeDim = 0, originalShapeDim = 0;
    uint32_t shape[K_MAX_SHAPE_DIM] = {}, originalShape[K_MAX_SHAPE_DIM] = {};
    DataFormat dataFormat = DataFormat::ND;
};

class Shaped
{
public:
    void SetShapeInfo(const ShapeInfo& info) { shape_ = info; }
    ShapeInfo GetShapeInfo() const { return shape_; }

private:
    ShapeInfo shape_;
};

#ifdef TILE_SIM_DEVKIT
using ShapedAsToldTo = Shaped;
#else
struct ShapedAsToldTo {  // tensors are passed by value all the time
};
#endif

template <class T>
class LocalTensor : public ShapedAsToldTo
{
public:
    using PrimType = T;
    TBuffAddr address_;

    LocalTensor() = default;
    LocalTensor(TPosition position, uint32_t address, uint32_t size)
        : address_{{space_of(position), tile_sim::TypeOf<T>::value, address, address + tile_sim::bytes_of<T>(size), address},
                   position}
    {
    }
    LocalTensor(TPosition position, tile_sim::Operand at) : address_{at, position}
    {
        if (at.begin < 0) address_.at.begin = at.address;
    }
    void SetAddr(const TBuffAddr& address)
    {
        address_ = address;
        address_.at.type = tile_sim::TypeOf<T>::value;
    }

    LocalTensor operator[](int64_t offset) const
    {
        tile_sim::Operand moved = address_.at;
        moved.address += tile_sim::bytes_of<T>(offset);
        return LocalTensor(address_.logicPos, moved);
    }
    template <class U>
    LocalTensor<U> ReinterpretCast() const
    {
        tile_sim::Operand same = address_.at;
        same.type = tile_sim::TypeOf<U>::value;
        return LocalTensor<U>(address_.logicPos, same);
    }
    T GetValue(uint32_t index, Line line = Line(__builtin_LINE())) const
    {
        const uint64_t bits = tile_sim::scalar_read(address_.at, index, line);
        T value;
        std::memcpy(&value, &bits, sizeof(T));
        return value;
    }
    template <class S>
    void SetValue(uint32_t index, S value, Line line = Line(__builtin_LINE())) const
    {
        tile_sim::scalar_write(address_.at, index, tile_sim::to_bits(static_cast<T>(value)), line);
    }
    uint32_t GetSize() const { return uint32_t((address_.at.end - address_.at.address) / int64_t(sizeof(T))); }
    void SetSize(uint32_t size) { address_.at.end = address_.at.address + tile_sim::bytes_of<T>(size); }
    TBufHandle GetBufferHandle() const { return handle_of(address_.at.address); }
    void SetBufferLen(uint32_t bytes) { address_.at.end = address_.at.address + bytes; }
    uint64_t GetPhyAddr(uint32_t offset = 0) const { return uint64_t(address_.at.address + tile_sim::bytes_of<T>(offset)); }
    uint32_t GetLength() const { return uint32_t(address_.at.end - address_.at.address); }
    void SetUserTag(int32_t) {}
    TPosition GetPosition() const { return address_.logicPos; }
    const tile_sim::Operand& operand() const { return address_.at; }
};

template <class T>
class GlobalTensor : public ShapedAsToldTo
{
public:
    using PrimType = T;

    void SetGlobalBuffer(T* buffer, int64_t size = -1, Line line = Line(__builtin_LINE())) { place(buffer, size, line); }

    GlobalTensor operator[](int64_t offset) const
    {
        GlobalTensor moved = *this;
        moved.at_.address += tile_sim::bytes_of<T>(offset);
        return moved;
    }
    void SetAddr(uint64_t offset) { at_.address += tile_sim::bytes_of<T>(int64_t(offset)); }
    T GetValue(uint64_t index, Line line = Line(__builtin_LINE())) const
    {
        const uint64_t bits = tile_sim::scalar_read(at_, int64_t(index), line);
        T value;
        std::memcpy(&value, &bits, sizeof(T));
        return value;
    }
    template <class S>
    void SetValue(uint64_t index, S value, Line line = Line(__builtin_LINE())) const
    {
        tile_sim::scalar_write(at_, int64_t(index), tile_sim::to_bits(static_cast<T>(value)), line);
    }
    T operator()(uint64_t index) const { return GetValue(index); }
    T* GetPhyAddr(uint64_t offset = 0) const { return reinterpret_cast<T*>(tile_sim::gm_pointer(at_.address)) + offset; }
    template <CacheRwMode rw = CacheRwMode::RW>
    void SetL2CacheHint(CacheMode mode)
    {
        const bool past = mode == CacheMode::CACHE_MODE_DISABLE;
        if (rw != CacheRwMode::WRITE) at_.read_past_l2 = past;
        if (rw != CacheRwMode::READ) at_.written_past_l2 = past;
    }
    uint64_t GetSize() const { return uint64_t(at_.end - at_.address) / sizeof(T); }
    const tile_sim::Operand& operand() const { return at_; }

private:
    void place(T* buffer, int64_t size, int line)
    {
        at_.space = tile_sim::Space::GM;
        at_.type = tile_sim::TypeOf<T>::value;
        at_.address = tile_sim::gm_address(buffer, line);
        at_.end = size < 0 ? tile_sim::gm_end(at_.address) : at_.address + tile_sim::bytes_of<T>(size);
    }

    tile_sim::Operand at_;
};

enum class Hardware : uint8_t { UB, L1, L0A, L0B, L0C };

template <Hardware hardware = Hardware::UB>
class LocalMemAllocator
{
    static constexpr TPosition positions[] = {TPosition::VECCALC, TPosition::A1, TPosition::A2, TPosition::B2, TPosition::CO1};
    static constexpr TPosition home = positions[int(hardware)];

public:
    template <class T, uint32_t size>
    LocalTensor<T> Alloc(Line line = Line(__builtin_LINE()))
    {
        return Alloc<home, T>(size, line);
    }
    template <class T>
    LocalTensor<T> Alloc(uint32_t size, Line line = Line(__builtin_LINE()))
    {
        return Alloc<home, T>(size, line);
    }
    template <TPosition position, class T, uint32_t size>
    LocalTensor<T> Alloc(Line line = Line(__builtin_LINE()))
    {
        return Alloc<position, T>(size, line);
    }
    template <TPosition position, class T>
    LocalTensor<T> Alloc(uint32_t size, Line line = Line(__builtin_LINE()))
    {
        const int64_t bytes = tile_sim::bytes_of<T>(size);
        const int64_t start = tile_sim::allocate(space_of(position), bytes, line);
        return LocalTensor<T>(position, {space_of(position), tile_sim::TypeOf<T>::value, start, start + bytes});
    }
};

}  // namespace AscendC
