// Uniform integers of a key by counters: Philox in words of 64 and of 32 bits (Salmon and others,
// "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
#pragma once
#include "types.cuh"

// Number `index` of a stream of Philox 4x64-10 with the key (seed, 0), as NumPy draws it: the first
// block's counter is 1, and the stream is the counter's second word.
__device__ __forceinline__ uint64 philox_number(uint64 seed, uint64 stream, uint64 index) {
    constexpr uint64 kFirst = 0xD2E7470EE14C6C93ull, kSecond = 0xCA5A826395121157ull;
    uint64 c[4] = {index / 4 + 1, stream, 0, 0};
    uint64 key[2] = {seed, 0};
#pragma unroll
    for (int round = 0; round < 10; ++round) {
        const uint64 high[2] = {__umul64hi(kFirst, c[0]), __umul64hi(kSecond, c[2])};
        const uint64 low[2] = {kFirst * c[0], kSecond * c[2]};
        c[0] = high[1] ^ c[1] ^ key[0];
        c[1] = low[1];
        c[2] = high[0] ^ c[3] ^ key[1];
        c[3] = low[0];
        key[0] += 0x9E3779B97F4A7C15ull;
        key[1] += 0xBB67AE8584CAA73Bull;
    }
    const int place = static_cast<int>(index % 4);
    return place < 2 ? (place == 0 ? c[0] : c[1]) : (place == 2 ? c[2] : c[3]);
}

// The first two words of block `index` of Philox 4x32-10 with this key.
__device__ __forceinline__ uint2 philox_words(uint32 index, uint64 key) {
    uint32 counter[4] = {index, 0, 0, 0}, low = uint32(key), high = uint32(key >> 32);
#pragma unroll
    for (int round = 0; round < 10; ++round) {
        const uint64 first = uint64(counter[0]) * 0xd2511f53u;
        const uint64 second = uint64(counter[2]) * 0xcd9e8d57u;
        counter[0] = uint32(second >> 32) ^ counter[1] ^ low;
        counter[2] = uint32(first >> 32) ^ counter[3] ^ high;
        counter[1] = uint32(second);
        counter[3] = uint32(first);
        low += 0x9e3779b9u;
        high += 0xbb67ae85u;
    }
    return {counter[0], counter[1]};
}
