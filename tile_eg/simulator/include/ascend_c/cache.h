// The data cache between the scalar unit and GM, and scalar accesses that go past it.
#pragma once
#include "tensor.h"

namespace AscendC
{

enum class CacheLine { SINGLE_CACHE_LINE, ENTIRE_DATA_CACHE };
enum class DcciDst { CACHELINE_ALL, CACHELINE_UB, CACHELINE_OUT, CACHELINE_ATOMIC };
enum class MemDsbT { ALL, DDR, UB, SEQ };

template <class T, CacheLine entireType, DcciDst dcciDst = DcciDst::CACHELINE_OUT>
void DataCacheCleanAndInvalid(const GlobalTensor<T>& dst, Line line = Line(__builtin_LINE()))
{
    static_assert(dcciDst == DcciDst::CACHELINE_OUT || dcciDst == DcciDst::CACHELINE_ALL,
                  "the simulator knows DataCacheCleanAndInvalid to GM: DcciDst::CACHELINE_OUT");
    tile_sim::clean_cache(dst.operand(), entireType == CacheLine::ENTIRE_DATA_CACHE, line);
}
template <class T, CacheLine entireType, DcciDst dcciDst>
void DataCacheCleanAndInvalid(const LocalTensor<T>& dst, Line line = Line(__builtin_LINE()))
{
    tile_sim::clean_cache(dst.operand(), entireType == CacheLine::ENTIRE_DATA_CACHE, line);
}

// Fetching early changes no result.
template <class T>
void DataCachePreload(const GlobalTensor<uint64_t>&, const T)
{
}

template <MemDsbT arg0>
void DataSyncBarrier(Line line = Line(__builtin_LINE()))
{
    tile_sim::data_sync_barrier(line);
}

namespace detail
{

template <class T>
tile_sim::Operand past_cache(const T* addr, int line)
{
    static_assert(std::is_integral_v<T>, "the scalar unit goes past its data cache for whole numbers only");
    const int64_t start = tile_sim::gm_address(addr, line);
    return {tile_sim::Space::GM, tile_sim::TypeOf<T>::value, start, tile_sim::gm_end(start)};
}

}  // namespace detail

template <class T>
T ReadGmByPassDCache(T* addr, Line line = Line(__builtin_LINE()))
{
    return T(tile_sim::read_past_cache(detail::past_cache(addr, line), line));
}
template <class T>
void WriteGmByPassDCache(T* addr, T value, Line line = Line(__builtin_LINE()))
{
    tile_sim::write_past_cache(detail::past_cache(addr, line), tile_sim::to_bits(value), line);
}

}  // namespace AscendC
