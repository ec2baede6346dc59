// Gates of complex64 on 4 to 6 qubits by mma.sync without tiles of the state in shared memory. A
// warp's 16 columns are the A operand, the transposed matrix is B. A lane then holds, of operand
// and result, the same rows of the same two columns: it loads them into registers, multiplies and
// stores them where they lay. The matrix's terms lie in shared memory as fragments, in the order in
// which the operand has them (argand/gates/operands.py, matrix_kernel.cuh).
//
// Rows are numbered in octets, as results are: lane % 4 and one bit more are a row's number within
// its octet. Lanes that differ in lane / 4 hold neighbouring columns.
#pragma once
#include "operands.cuh"

// Template parameters are those of `MmaGate` (sm80_kernel.cuh); a block has `Threads` threads.
template <Operand operand, int Terms, Rounding first, Rounding second, int Width,
          bool TargetsQubit0, int Threads, bool SeparateSmallProducts>
struct DirectMmaGate {
    static constexpr int kOrder = 1 << Width;
    static constexpr int kOctets = kOrder / 8;
    static constexpr int kNumKTiles = kOrder / kMmaK<operand>;
    static constexpr int kNumbers = kNumbersPerRegister<operand>;
    static constexpr int kChunks = 2 * kOctets;
    static constexpr bool kScaled = is_scaled(operand);
    static constexpr bool kLoadsAhead = Width < 6;  // else there are no registers for it
    // As in sm80_kernel.cuh.
    static constexpr bool kSeparateSmallProducts =
        SeparateSmallProducts && Terms == 2 && kNumKTiles > 1;

    // A lane's column in terms: [k_tile][real, imaginary][term][register].
    using State = uint32[kNumKTiles][2][Terms][2];

    // The row of the matrix that a lane has as one of its two numbers of an octet.
    static __device__ __forceinline__ uint32 row(uint32 octet, uint32 lane, uint32 number) {
        constexpr int kWithQubit0[3] = {0, 1, 2}, kWithoutQubit0[3] = {2, 0, 1};
        return octet << 3 |
               deposit_bits(number | (lane & 3) << 1, TargetsQubit0 ? kWithQubit0 : kWithoutQubit0);
    }

    // The octet and the number of it that stand in a register of a k-tile, as one of its numbers.
    static __device__ __forceinline__ constexpr uint32 octet_of(uint32 k_tile, uint32 slot) {
        return kNumbers == 2 ? 2 * k_tile + slot : k_tile;
    }
    static __device__ __forceinline__ constexpr uint32 number_of(uint32 slot, uint32 i) {
        return kNumbers == 2 ? i : slot;
    }

    // B fragments of the transposed matrix, for each octet of its rows:
    // [octet][k_tile][part][lane].
    static constexpr int kPartBytes = Terms * 8;
    static constexpr int kMatrixBytes = kOctets * kNumKTiles * 2 * kWarp * kPartBytes;

    // A fragment by its slots: [octet][k_tile][slot][lane].
    static constexpr uint32 kSlots = kOctets * kNumKTiles * 2 * kWarp;

    // The numbers of a matrix in one slot.
    static __device__ __forceinline__ void load_slot(const float2* matrix, uint32 i,
                                                     float2 (&numbers)[kNumbers]) {
        const uint32 lane = i % kWarp, slot = i / kWarp % 2, tile = i / (2 * kWarp);
        const uint32 octet = tile / kNumKTiles, k_tile = tile % kNumKTiles;
        // Lane / 4 is the position of a row in its octet: twice the lane that has it in the
        // result, and its number there.
        const float2* line = matrix + (row(octet, lane >> 3, lane >> 2 & 1) << Width);
#pragma unroll
        for (int n = 0; n < kNumbers; ++n)
            numbers[n] = line[row(octet_of(k_tile, slot), lane, number_of(slot, n))];
    }

    static __device__ __forceinline__ void store_slot(uint32* fragments, uint32 i, float scale,
                                                      const float2 (&numbers)[kNumbers]) {
        const uint32 lane = i % kWarp, slot = i / kWarp % 2, tile = i / (2 * kWarp);
        uint32 parts[2][Terms];  // [real, imaginary][term]
        split_operand<operand, Terms, first, second>(numbers, scale, parts[0], parts[1]);
#pragma unroll
        for (int part = 0; part < 2; ++part) {
            uint32* to = fragments + ((tile * 2 + part) * kWarp + lane) * (kPartBytes / 4);
#pragma unroll
            for (int term = 0; term < Terms; ++term) to[2 * term + slot] = parts[part][term];
        }
    }

    // Issued before the loads of the state, behind which it would wait.
    static __device__ __forceinline__ void copy_fragments(const GateArguments& args, uint32 to) {
        const auto* from = static_cast<const char*>(args.matrix);
#pragma unroll 1
        for (uint32 at = 0; at < kMatrixBytes; at += Threads * 16) {
            const uint32 mine = at + threadIdx.x * 16;
            if (mine < kMatrixBytes) cp_async_16(to + mine, from + mine);
        }
        cp_async_commit();
    }

    static __device__ __forceinline__ void load_fragment(uint32 from, uint32 (&b)[Terms][2]) {
        if constexpr (Terms == 2) {
            const uint4 x = load_shared_words(from);
            b[0][0] = x.x, b[0][1] = x.y, b[1][0] = x.z, b[1][1] = x.w;
        } else {
            const float2 x = load_shared_8(from);
            b[0][0] = __float_as_uint(x.x), b[0][1] = __float_as_uint(x.y);
        }
    }

    static __device__ __forceinline__ int64 chunk_offset(const GateArguments& args, int chunk) {
        return args.chunk_offset[chunk % kMaxChunks] |
               (chunk / kMaxChunks ? args.register_offset[0] : 0);
    }

    // One of the numbers of a lane's column.
    static __device__ __forceinline__ float2 number_at(const float4 (&x)[kChunks], int octet,
                                                       int number, int column) {
        const float4 chunk = x[2 * octet + (TargetsQubit0 ? column : number)];
        return (TargetsQubit0 ? number : column) ? float2{chunk.z, chunk.w}
                                                 : float2{chunk.x, chunk.y};
    }

    // Rounds, scales and splits one of the two columns of a lane into operands.
    static __device__ __forceinline__ void split_column(const float4 (&x)[kChunks], int column,
                                                        float scale, State& state) {
#pragma unroll
        for (int k_tile = 0; k_tile < kNumKTiles; ++k_tile) {
#pragma unroll
            for (int slot = 0; slot < 2; ++slot) {
                float2 numbers[kNumbers];
#pragma unroll
                for (int n = 0; n < kNumbers; ++n)
                    numbers[n] = number_at(x, octet_of(k_tile, slot), number_of(slot, n), column);
                uint32 parts[2][Terms];
                split_operand<operand, Terms, first, second>(numbers, scale, parts[0], parts[1]);
#pragma unroll
                for (int term = 0; term < Terms; ++term) {
                    state[k_tile][0][term][slot] = parts[0][term];
                    state[k_tile][1][term][slot] = parts[1][term];
                }
            }
        }
    }

    // An octet of the rows of both columns: re and im of column 0's two rows, then of column 1's.
    static __device__ __forceinline__ void multiply(uint32 fragments, const State (&state)[2],
                                                    float (&re)[4], float (&im)[4]) {
        float accumulators[kSeparateSmallProducts ? 2 : 1][3][4] = {};
        // The first columns of the matrix come last, as in sm90_kernel.cuh.
#pragma unroll
        for (int k_tile = kNumKTiles - 1; k_tile >= 0; --k_tile) {
            uint32 matrix[2][Terms][2];
#pragma unroll
            for (int part = 0; part < 2; ++part)
                load_fragment(fragments + (k_tile * 2 + part) * kWarp * kPartBytes, matrix[part]);
            for_each_real_product<Terms>([&](const RealProduct& x) {
                mma<operand>(accumulators[kSeparateSmallProducts && x.is_low_order][x.accumulator],
                             state[0][k_tile][x.state_part][x.state_term],
                             state[1][k_tile][x.state_part][x.state_term],
                             matrix[x.matrix_part][x.matrix_term]);
            });
        }
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            re[i] = accumulators[0][0][i] - accumulators[0][1][i];
            im[i] = accumulators[0][2][i];
            if constexpr (kSeparateSmallProducts) {
                re[i] += accumulators[1][0][i] - accumulators[1][1][i];
                im[i] += accumulators[1][2][i];
            }
        }
    }

    // The kernel: warps load columns of the state to registers, multiply them and store them back,
    // tile after tile.
    static __device__ __forceinline__ void run(const GateArguments& args) {
        __shared__ __align__(16) uint32 matrix[kMatrixBytes / 4];
        copy_fragments(args, shared_address(matrix));
        const uint32 lane = threadIdx.x % kWarp;
        char* const columns = args.state + or_offsets<5>(args.thread_offset, lane);
        const uint32 fragments = shared_address(matrix) + lane * kPartBytes;
        const uint32 warps = gridDim.x * (Threads / kWarp);
        uint32 tile = blockIdx.x * (Threads / kWarp) + threadIdx.x / kWarp;
        float4 x[kChunks];
        const auto load = [&](char* from) {
#pragma unroll
            for (int i = 0; i < kChunks; ++i)
                x[i] = *reinterpret_cast<const float4*>(from + chunk_offset(args, i));
        };
        char* at = columns + tile_offset(args, min(tile, args.tiles - 1));
        load(at);
        __syncthreads();  // else ptxas waits for the copies before it issues these loads
        cp_async_wait<0>();
        __syncthreads();
        while (tile < args.tiles) {
            const int exponent = kScaled ? scale_exponent<operand>(warp_absmax(x)) : 0;
            State state[2];
#pragma unroll
            for (int column = 0; column < 2; ++column)
                split_column(x, column, power_of_two(exponent), state[column]);
            const float2 descale =
                split_power_of_two(kScaled ? -exponent - matrix_exponent_of(args) : 0);
            tile += warps;
            char* const next = columns + tile_offset(args, tile);
            if (kLoadsAhead && tile < args.tiles) load(next);
#pragma unroll
            for (int octet = 0; octet < kOctets; ++octet) {
                float re[4], im[4];
                multiply(fragments + octet * kNumKTiles * 2 * kWarp * kPartBytes, state, re, im);
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    re[i] = re[i] * descale.x * descale.y;
                    im[i] = im[i] * descale.x * descale.y;
                }
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    const int low = TargetsQubit0 ? 2 * half : half;
                    const int high = low + (TargetsQubit0 ? 1 : 2);
                    store_chunk(args, at + chunk_offset(args, 2 * octet + half),
                                {re[low], im[low], re[high], im[high]});
                }
            }
            at = next;
            if (!kLoadsAhead && tile < args.tiles) load(at);
        }
    }
};
