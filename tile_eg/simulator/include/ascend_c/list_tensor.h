// Lists of tensors in GM (ListTensorDesc.md), in words of 8 bytes: where the pointers start (in bytes), for each tensor its number of
// dimensions and its index (4 bytes each) and its dimensions, then the pointers.
#pragma once
#include "tensor.h"

namespace AscendC
{

template <class T>
class TensorDesc
{
public:
    void SetShapeAddr(uint64_t* shapePtr) { shape_ = shapePtr; }
    uint64_t GetDim() const { return dims_; }
    uint64_t GetIndex() const { return index_; }
    uint64_t GetShape(uint32_t offset) const { return shape_[offset]; }
    T* GetDataPtr() const { return data_; }
    GlobalTensor<T> GetDataObj() const
    {
        GlobalTensor<T> tensor;
        tensor.SetGlobalBuffer(data_);
        return tensor;
    }

private:
    friend class ListTensorDesc;
    uint64_t* shape_ = nullptr;
    uint64_t dims_ = 0, index_ = 0;
    T* data_ = nullptr;
};

class ListTensorDesc
{
public:
    ListTensorDesc() = default;
    explicit ListTensorDesc(void* data, uint32_t length = 0xffffffff, uint32_t shapeSize = 0xffffffff,
                            Line line = Line(__builtin_LINE()))
    {
        Init(data, length, shapeSize, line);
    }
    void Init(void* data, uint32_t length = 0xffffffff, uint32_t shapeSize = 0xffffffff, Line line = Line(__builtin_LINE()))
    {
        words_.SetGlobalBuffer(static_cast<uint64_t*>(data), -1, line);
        pointers_ = words_.GetValue(0, line) / 8;
        if (length != 0xffffffff && pointers_ * 8 > length)
            tile_sim::misuse("field", line, "the list of tensors has %u bytes, and its pointers start at byte %llu", length,
                             (unsigned long long)pointers_ * 8);
        if (shapeSize != 0xffffffff && shapeSize != GetSize(line))
            tile_sim::misuse("field", line, "the list holds %u tensors, not %u", GetSize(line), shapeSize);
    }

    // How many tensors it describes.
    uint32_t GetSize(Line line = Line(__builtin_LINE())) const
    {
        uint32_t count = 0;
        for (uint64_t at = 1; at < pointers_; at += 1 + dims(at, line)) ++count;
        return count;
    }

    template <class T>
    T* GetDataPtr(uint32_t index, Line line = Line(__builtin_LINE())) const
    {
        return reinterpret_cast<T*>(words_.GetValue(pointers_ + index, line));
    }

    template <class T>
    void GetDesc(TensorDesc<T>& desc, uint32_t index, Line line = Line(__builtin_LINE())) const
    {
        for (uint64_t at = 1; at < pointers_; at += 1 + dims(at, line)) {
            if (words_.GetValue(at, line) >> 32 != index) continue;
            desc.dims_ = dims(at, line), desc.index_ = index, desc.data_ = GetDataPtr<T>(index, line);
            for (uint64_t d = 0; desc.shape_ && d < desc.dims_; ++d) desc.shape_[d] = words_.GetValue(at + 1 + d, line);
            return;
        }
        tile_sim::misuse("field", line, "the list describes no tensor with the index %u", index);
    }

private:
    uint64_t dims(uint64_t at, int line) const { return words_.GetValue(at, Line(line)) & 0xffffffff; }

    GlobalTensor<uint64_t> words_;
    uint64_t pointers_ = 0;
};

}  // namespace AscendC
