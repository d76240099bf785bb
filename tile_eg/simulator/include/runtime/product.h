// The sums of a matrix product, many columns at a time: 16 elements of a row of the result are one vector of the compiler's, of as many
// registers as the machine needs for it. A sum goes in the order of k, whatever the tiles are.
#pragma once
#include <cstdint>

namespace tile_sim
{

constexpr int64_t lanes = 16;

template <class T>
struct Lanes16 {
    typedef T Type __attribute__((vector_size(lanes * sizeof(T)), aligned(sizeof(T)), may_alias));
};

// c[i][j] += a[i][p] * b[p][j] for all i < m, p < k and the 16 columns of each of `blocks` blocks. Row i of block n of c starts at
// c + n * c_block + i * 16, row i of a at a + i * k, and row p of b at b + p * b_row.
template <class T>
struct Product {
    T* c;
    const T *a, *b;
    int64_t m, k, blocks, c_block, b_row;
};

void add_products(const Product<float>& product);
void add_products(const Product<int32_t>& product);
void add_exact_products(const Product<float>& product);  // of numbers whose products are exact in float: multiply and add may be one

// Of the machine: how long a register is, and how many of them hold sums; the others are for the operands.
#if defined(__AVX512F__)
constexpr int register_bytes = 64, registers = 16;
#elif defined(__AVX__)
constexpr int register_bytes = 32, registers = 8;
#elif defined(__aarch64__)
constexpr int register_bytes = 16, registers = 16;
#else
constexpr int register_bytes = 16, registers = 8;
#endif

// `exact` keeps apart what is compiled with other rules for multiply and add.
template <class T, bool exact>
class Multiplier
{
public:
    explicit Multiplier(const Product<T>& product) : p_(product) {}
    void run() const
    {
        int64_t block = 0;
        if constexpr (register_bytes == lanes * sizeof(T))
            for (; block + 2 <= p_.blocks; block += 2) panel<2>(block);
        for (; block < p_.blocks; ++block) panel<1>(block);
    }

private:
    using Vector = typename Lanes16<T>::Type;

    template <int columns>
    void panel(int64_t block) const
    {
        constexpr int rows = registers / (columns * int(lanes * sizeof(T)) / register_bytes);
        int64_t i = 0;
        for (; i + rows <= p_.m; i += rows) tile<rows, columns>(block, i);
        for (; i < p_.m; ++i) tile<1, columns>(block, i);
    }
    template <int rows, int columns>
    void tile(int64_t block, int64_t row) const
    {
        Vector sums[rows][columns];
        const auto place = [&](int r, int c) { return reinterpret_cast<Vector*>(p_.c + (block + c) * p_.c_block + (row + r) * lanes); };
        for (int r = 0; r < rows; ++r)
            for (int c = 0; c < columns; ++c) sums[r][c] = *place(r, c);
        const T *a = p_.a + row * p_.k, *b = p_.b + block * lanes;
        for (int64_t p = 0; p < p_.k; ++p, ++a, b += p_.b_row)
            for (int c = 0; c < columns; ++c) {
                const Vector right = *reinterpret_cast<const Vector*>(b + c * lanes);
                for (int r = 0; r < rows; ++r) sums[r][c] += a[r * p_.k] * right;
            }
        for (int r = 0; r < rows; ++r)
            for (int c = 0; c < columns; ++c) *place(r, c) = sums[r][c];
    }
    Product<T> p_;
};

}  // namespace tile_sim
