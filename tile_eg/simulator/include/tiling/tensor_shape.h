// The shape of a tensor, as the host's side of the high-level API takes it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

namespace AscendC
{

class TensorShape
{
public:
    TensorShape() = default;
    TensorShape(std::initializer_list<int64_t> dims) : dims_(dims) {}
    explicit TensorShape(const std::vector<int64_t>& dims) : dims_(dims) {}
    size_t GetDimNum() const { return dims_.size(); }
    int64_t GetDim(size_t i) const { return dims_.at(i); }
    const std::vector<int64_t>& GetDims() const { return dims_; }
    int64_t GetShapeSize() const
    {
        int64_t size = 1;
        for (const int64_t dim : dims_) size *= dim;
        return dims_.empty() ? 0 : size;
    }

private:
    std::vector<int64_t> dims_;
};

}  // namespace AscendC
