// Expectation values of Pauli strings: sums over i of conj(a[i ^ flips]) a[i] with signs.
//
// A warp's tile is closed under several flips at once. Its amplitudes have coordinates: bits of a
// register's number, of a lane and of the place in a chunk, each with a mask, and an amplitude's
// number is the base of the tile with the masks of its coordinates by exclusive or. A flip that is
// the mask of one bit of a register's number pairs registers of a thread; one that is the mask of a
// bit of a lane pairs lanes. So one read of the state serves as many flips as there are such bits,
// wherever their qubits are. The sign of a string is linear in the coordinates: a pattern over the
// registers, which is the same for all tiles and threads, and a parity of tile and lane.
#pragma once
#include "amplitudes.cuh"

constexpr int kPauliThreads = 128;
constexpr int kRegisterBits = 4;
constexpr int kRegisters = 1 << kRegisterBits;
constexpr int kLaneBits = 5;
constexpr int kLaneFlips = 2;  // the highest bits of a lane's number
constexpr int kMaxStrings = 16;
constexpr int kMaxRuns = 17;

// Kinds of a string's flips: none, the place in a chunk, a bit of a register's number, of a lane.
constexpr int kPairs = 2 + kRegisterBits + kLaneFlips;

struct PauliArguments {
    const void* state;
    double* partials;  // (strings, blocks)
    int64 tiles;
    int64 register_mask[kRegisterBits];
    int64 lane_mask[kLaneBits];
    int64 signs[kMaxStrings];
    int64 run_mask[kMaxRuns];  // of a tile's number, to the bits of no coordinate
    int run_shift[kMaxRuns];
    int runs;
    uint32 pattern[kMaxStrings];  // bit (register, place in the chunk): the sign there
    uint32 odd;                    // strings with an odd number of Y
    int first[kPairs + 1];         // the strings of each kind of pair
};

template <typename T>
__device__ __forceinline__ auto string_term(T partner, T own, bool odd) {
    // Re(conj(partner) own), or the imaginary part.
    const auto x = odd ? own.y : own.x, y = odd ? -own.x : own.y;
    return partner.x * x + partner.y * y;
}

__device__ __forceinline__ float with_sign(float x, uint32 sign_bit) {
    return __uint_as_float(__float_as_uint(x) ^ sign_bit);
}

__device__ __forceinline__ double with_sign(double x, uint32 sign_bit) {
    return __hiloint2double(__double2hiint(x) ^ int(sign_bit), __double2loint(x));
}

template <typename Real, bool aligned>
struct PauliKernel {
    static constexpr int kPlaces = kChunkAmplitudes<Real>;
    using Amplitude = Complex<Real>;

    const PauliArguments& args;
    Amplitude a[kRegisters][kPlaces];
    int64 number;  // of the thread's first amplitude

    __device__ __forceinline__ static uint32 sign_bit(uint32 pattern, int place) {
        return pattern << (31 - place) & 0x80000000u;
    }

    __device__ __forceinline__ void load(int64 base, int64 lane_part) {
        number = base ^ lane_part;
#pragma unroll
        for (int r = 0; r < kRegisters; ++r) {
            int64 at = number;
#pragma unroll
            for (int bit = 0; bit < kRegisterBits; ++bit)
                if (r >> bit & 1) at ^= args.register_mask[bit];
            const Chunk<Real> x = load_chunk<Real, aligned>(args.state, at / kPlaces);
            // Coordinates of places begin at `at`: where it is odd, the chunk's second is the
            // first.
            const bool swapped = kPlaces == 2 && (at & 1);
#pragma unroll
            for (int place = 0; place < kPlaces; ++place)
                a[r][place] = swapped ? x.amplitude[kPlaces - 1 - place] : x.amplitude[place];
        }
    }

    template <int Pair>
    __device__ __forceinline__ Real sum_of(uint32 pattern, bool odd) const {
        Real sums[2] = {};
        if constexpr (Pair == 0) {
#pragma unroll
            for (int r = 0; r < kRegisters; ++r)
#pragma unroll
                for (int place = 0; place < kPlaces; ++place)
                    sums[r % 2] += with_sign(string_term(a[r][place], a[r][place], false),
                                             sign_bit(pattern, r * kPlaces + place));
        } else if constexpr (Pair == 1 && kPlaces == 2) {
#pragma unroll
            for (int r = 0; r < kRegisters; ++r)
                sums[r % 2] += with_sign(string_term(a[r][kPlaces - 1], a[r][0], odd),
                                         sign_bit(pattern, r * kPlaces));
        } else if constexpr (Pair >= 2 && Pair < 2 + kRegisterBits) {
            constexpr int kFlip = 1 << (Pair - 2);
#pragma unroll
            for (int r = 0; r < kRegisters; ++r) {
                if (r & kFlip) continue;
#pragma unroll
                for (int place = 0; place < kPlaces; ++place)
                    sums[place] += with_sign(string_term(a[r ^ kFlip][place], a[r][place], odd),
                                             sign_bit(pattern, r * kPlaces + place));
            }
        }
        return sums[0] + sums[1];
    }

    // Lanes exchange half of their registers, and each takes the pairs of the half that it kept.
    template <int Pair>
    __device__ __forceinline__ void lane_pairs(double* sums) const {
        constexpr int kFlip = 1 << (kLaneBits - kLaneFlips + Pair - 2 - kRegisterBits);
        constexpr int kHalf = kRegisters / 2;
        if (args.first[Pair] == args.first[Pair + 1]) return;
        const bool upper = threadIdx.x & kFlip;
        Amplitude partner[kHalf][kPlaces];
#pragma unroll
        for (int r = 0; r < kHalf; ++r)
#pragma unroll
            for (int place = 0; place < kPlaces; ++place) {
                const Amplitude low = a[r][place], high = a[r + kHalf][place];
                partner[r][place].x = __shfl_xor_sync(kFullWarp, upper ? low.x : high.x, kFlip);
                partner[r][place].y = __shfl_xor_sync(kFullWarp, upper ? low.y : high.y, kFlip);
            }
        for (int string = args.first[Pair]; string < args.first[Pair + 1]; ++string) {
            const uint32 pattern = args.pattern[string] >> (upper ? kHalf * kPlaces : 0);
            const bool odd = args.odd >> string & 1;
            Real sum = 0;
#pragma unroll
            for (int r = 0; r < kHalf; ++r)
#pragma unroll
                for (int place = 0; place < kPlaces; ++place) {
                    const Amplitude own = upper ? a[r + kHalf][place] : a[r][place];
                    sum += with_sign(string_term(partner[r][place], own, odd),
                                     sign_bit(pattern, r * kPlaces + place));
                }
            add(sums, string, sum);
        }
    }

    template <int Pair>
    __device__ __forceinline__ void pairs(double* sums) const {
        for (int string = args.first[Pair]; string < args.first[Pair + 1]; ++string)
            add(sums, string, sum_of<Pair>(args.pattern[string], args.odd >> string & 1));
    }

    __device__ __forceinline__ void add(double* sums, int string, Real sum) const {
        const double found = sum;
        sums[string * kPauliThreads] += __popcll(number & args.signs[string]) & 1 ? -found : found;
    }

    __device__ __forceinline__ void add_all(double* sums) const {
        pairs<0>(sums);
        if constexpr (kPlaces == 2) pairs<1>(sums);
        pairs<2>(sums);
        pairs<3>(sums);
        pairs<4>(sums);
        pairs<5>(sums);
        lane_pairs<6>(sums);
        lane_pairs<7>(sums);
    }
};
static_assert(kRegisterBits == 4 && kLaneFlips == 2, "add_all names every pair");

template <typename Real, bool aligned>
__device__ __forceinline__ void sum_strings(const PauliArguments& args) {
    __shared__ double sums[kMaxStrings][kPauliThreads];
    const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
    const int strings = args.first[kPairs];
    for (int string = 0; string < strings; ++string) sums[string][threadIdx.x] = 0;
    int64 lane_part = 0;
#pragma unroll
    for (int bit = 0; bit < kLaneBits; ++bit)
        if (lane >> bit & 1) lane_part ^= args.lane_mask[bit];
    const int64 warps = int64(gridDim.x) * (kPauliThreads / kWarp);
    PauliKernel<Real, aligned> kernel{args};
    for (int64 tile = int64(blockIdx.x) * (kPauliThreads / kWarp) + warp; tile < args.tiles;
         tile += warps) {
        kernel.load(deposited(tile, args.run_mask, args.run_shift, args.runs), lane_part);
        kernel.add_all(&sums[0][threadIdx.x]);
    }
    __syncthreads();
    for (int string = warp; string < strings; string += kPauliThreads / kWarp) {
        double sum = 0;
        for (int i = lane; i < kPauliThreads; i += kWarp) sum += sums[string][i];
        sum = warp_sum(sum);
        if (lane == 0) args.partials[int64(string) * gridDim.x + blockIdx.x] = sum;
    }
}

struct StringsArguments {
    const double* partials;  // (strings, blocks)
    const int64* places;     // (strings,): where in the result a string stands
    const double* factors;   // (strings,)
    double* out;
    const void* state;
    const int64* flips;  // (strings,), as the two after it where the state is small
    const int64* signs;
    const int64* odd;
    int64 amplitudes;
    int blocks;
};

// A block adds what the blocks of a pass left of a string.
__device__ __forceinline__ void finish_strings(const StringsArguments& args) {
    __shared__ double warp_sums[kPauliThreads / kWarp];
    double sum = 0;
    for (int i = threadIdx.x; i < args.blocks; i += kPauliThreads)
        sum += args.partials[int64(blockIdx.x) * args.blocks + i];
    const double all = block_running_sum<kPauliThreads>(sum, warp_sums);
    if (threadIdx.x == kPauliThreads - 1)
        args.out[args.places[blockIdx.x]] = args.factors[blockIdx.x] * all;
}

// A block computes a string of a small state, which the caches hold.
template <typename Real>
__device__ __forceinline__ void small_strings(const StringsArguments& args) {
    __shared__ double warp_sums[kPauliThreads / kWarp];
    const Complex<Real>* const state = static_cast<const Complex<Real>*>(args.state);
    const int64 flips = args.flips[blockIdx.x], signs = args.signs[blockIdx.x];
    const bool odd = args.odd[blockIdx.x];
    double sum = 0;
    for (int64 i = threadIdx.x; i < args.amplitudes; i += kPauliThreads) {
        const Complex<Real> a = __ldg(state + i), b = __ldg(state + (i ^ flips));
        const double term = string_term(double2{b.x, b.y}, double2{a.x, a.y}, odd);
        sum += __popcll(i & signs) & 1 ? -term : term;
    }
    const double all = block_running_sum<kPauliThreads>(sum, warp_sums);
    if (threadIdx.x == kPauliThreads - 1)
        args.out[args.places[blockIdx.x]] = args.factors[blockIdx.x] * all;
}
