// Power over directions by mma.sync: blocks of directions, whose weights are made panel by panel in
// shared memory and multiplied with the packed matrices, channel after channel. L z is multiplied
// with z and added up in registers: neither leaves the multiprocessor.
//
// A block has `Directions` directions of one image and one split of its channels. Dynamic shared
// memory has two slots for panels of weights: one keeps the panel of the rows, the other takes the
// panels of k in turn, and each warp makes the weights of eight directions. Then all warps read
// fragments of the matrix from L2, one unit ahead, and multiply them with the panels.
#pragma once
#include "device/term_products.cuh"
#include "device/triangle.cuh"
#include "refused_operands.cuh"
#include "weights.cuh"

// `Directions` are those of a block.
template <Operand operand, int Terms, Rounding first, Rounding second, int Directions>
struct ImageKernel {
    using Panel = WeightPanel<operand, Terms, first, second, Directions>;
    static constexpr int kThreads = Panel::kThreads;
    static constexpr int kWarpRows = 4;     // warps side by side along the rows of L
    static constexpr int kWarpGroups = 4;   // groups of eight directions of a warp
    static constexpr int kSharedBytes = 2 * Panel::kBytes;
    static constexpr int kFragments = kUnitFragments<operand, Terms>;
    static_assert(kThreads / kWarp * 8 == Directions && Directions % 32 == 0,
                  "each warp makes the weights of eight directions");

    struct Unit {
        uint4 a[kUnitMmas<operand>][Terms];
    };

    // Loads a unit from the lane's first fragment on, and moves on to the next one.
    __device__ __forceinline__ static void load_unit(const uint4*& from, Unit& found) {
#pragma unroll
        for (int mma_index = 0; mma_index < kUnitMmas<operand>; ++mma_index) {
#pragma unroll
            for (int term = 0; term < Terms; ++term)
                found.a[mma_index][term] = __ldg(from + (mma_index * Terms + term) * kWarp);
        }
        from += kFragments;
    }

    __device__ __forceinline__ static void multiply(
        const Unit& unit, int mma_index, const uint32 (&b)[kWarpGroups][Terms][2],
        float (&accumulators)[kWarpGroups][4]) {
        using Products = TermProducts<Terms>;
#pragma unroll
        for (int product = 0; product < Products::kCount; ++product) {
            const int right = Products::right(product);
            const uint4 a = unit.a[mma_index][Products::left(product)];
            const uint32 upper[2] = {a.x, a.z}, lower[2] = {a.y, a.w};
#pragma unroll
            for (int group = 0; group < kWarpGroups; ++group)
                mma<operand>(accumulators[group], upper, lower, b[group][right]);
        }
    }

    // Adds z^T L z of one row tile's accumulators to the power of each direction.
    __device__ __forceinline__ static void reduce(uint32 rows, int tile, int first_group, int lane,
                                                  const float (&accumulators)[kWarpGroups][4],
                                                  float (&power)[kWarpGroups][2]) {
        const uint32 from = Panel::of_lane(rows, tile, first_group, lane);
        const uint32 half = Panel::half_of(lane);
#pragma unroll
        for (int group = 0; group < kWarpGroups; ++group) {
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                const float2 z = Panel::values(from, group, i, half);
                power[group][i] += accumulators[group][i] * z.x;
                power[group][i] += accumulators[group][i + 2] * z.y;
            }
        }
    }

    // One panel of rows times one of k. A warp has the row tiles i and 7 - i of a panel, so that
    // warps have equally many units on the diagonal, too.
    __device__ __forceinline__ static void multiply_panels(const ImageArguments& args,
                                                           const uint4* matrix, uint32 rows,
                                                           uint32 columns, int row_panel,
                                                           int k_panel,
                                                           float (&power)[kWarpGroups][2]) {
        const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
        const int first_group = warp / kWarpRows * kWarpGroups;
#pragma unroll 1
        for (int half = 0; half < 2; ++half) {
            const int i = warp % kWarpRows, tile = half ? i : kPanelTiles - 1 - i;
            const int row_tile = row_panel * kPanelTiles + tile;
            const int units = row_panel == k_panel ? tile + 1 : kPanelTiles;
            const uint4* from =
                matrix + unit_of(row_tile, k_panel * kPanelTiles) * kFragments + lane;
            uint32 weights = Panel::fragment(columns, 0, 0, first_group, lane);  // of the unit's k
            float accumulators[kWarpGroups][4] = {};
            const auto multiply_unit = [&](const Unit& unit) {
#pragma unroll
                for (int mma_index = 0; mma_index < kUnitMmas<operand>; ++mma_index) {
                    uint32 b[kWarpGroups][Terms][2];
#pragma unroll
                    for (int group = 0; group < kWarpGroups; ++group)
                        Panel::load(weights, mma_index, group, b[group]);
                    multiply(unit, mma_index, b, accumulators);
                }
                weights += kUnitMmas<operand> * Panel::kMmaBytes;
            };
            Unit even, odd;  // one is loaded while the other is multiplied
            load_unit(from, even);
#pragma unroll 1
            for (int k = 0; k < units; k += 2) {
                if (k + 1 < units) load_unit(from, odd);
                multiply_unit(even);
                if (k + 1 >= units) break;
                if (k + 2 < units) load_unit(from, even);
                multiply_unit(odd);
            }
            reduce(rows, tile, first_group, lane, accumulators, power);
        }
    }

    // Adds the power of a block's directions over lanes and warps, and stores it. An image has
    // `blocks` blocks of directions.
    __device__ __forceinline__ static void store_power(const ImageArguments& args, int blocks,
                                                       int first_direction,
                                                       const float (&total)[kWarpGroups][2]) {
        __shared__ float partial[kWarpRows][Directions];
        const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
#pragma unroll
        for (int group = 0; group < kWarpGroups; ++group) {
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                float sum = total[group][i];
                sum += __shfl_xor_sync(0xffffffffu, sum, 4);
                sum += __shfl_xor_sync(0xffffffffu, sum, 8);
                sum += __shfl_xor_sync(0xffffffffu, sum, 16);
                const int column = (warp / kWarpRows * kWarpGroups + group) * 8 + lane * 2 + i;
                if (lane < 4) partial[warp % kWarpRows][column] = sum;
            }
        }
        __syncthreads();
        const int mine = first_direction + static_cast<int>(threadIdx.x);
        if (threadIdx.x < Directions && mine < args.direction_count) {
            float sum = 0.0f;
#pragma unroll
            for (int row = 0; row < kWarpRows; ++row) sum += partial[row][threadIdx.x];
            args.power[int64(blockIdx.x / blocks) * args.direction_count + mine] =
                power_or_nan(sum, args.directions + 3 * int64(mine), args.longest_square);
        }
    }

    // The kernel: a block computes the power of its directions, summed over the pairs of antenna
    // panels of its channels.
    __device__ __forceinline__ static void run(const ImageArguments& args) {
        extern __shared__ __align__(16) unsigned char memory[];
        __shared__ double places[kPanelAntennas][3];
        const uint32 slots = shared_address(memory);
        const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
        const int blocks = (args.direction_count + Directions - 1) / Directions;
        const int first_direction = static_cast<int>(blockIdx.x % blocks) * Directions;
        const int image = static_cast<int>(blockIdx.x / blocks % args.images);
        const int split = static_cast<int>(blockIdx.x / blocks / args.images);
        const int own = min(first_direction + warp * 8 + lane / 4, args.direction_count - 1);
        const double direction[3] = {args.directions[3 * int64(own)],
                                     args.directions[3 * int64(own) + 1],
                                     args.directions[3 * int64(own) + 2]};
        const int64 units = unit_of(args.row_tiles, 0);

        // A split has so many of all channels' pairs of panels, row by row.
        const int pairs = args.panels * (args.panels + 1) / 2;
        const int64 all_pairs = int64(args.channels) * pairs;
        const int64 begin = all_pairs * split / args.splits,
                    end = all_pairs * (split + 1) / args.splits;
        float total[kWarpGroups][2] = {};
#pragma unroll 1
        for (int channel = static_cast<int>(begin / pairs); int64(channel) * pairs < end;
             ++channel) {
            const int first = static_cast<int>(max(begin - int64(channel) * pairs, int64(0))),
                      last = static_cast<int>(min(end - int64(channel) * pairs, int64(pairs)));
            int other = -1;  // the panel in the slot that does not hold the rows
            const auto make = [&](int slot, int panel) {
                __syncthreads();  // the slot and the places are free
                for (int i = threadIdx.x; i < 3 * kPanelAntennas; i += kThreads) {
                    places[i / 3][i % 3] =
                        args.positions[3 * kPanelAntennas * panel + i] * args.scales[channel];
                }
                __syncthreads();
                Panel::store(slots + slot * Panel::kBytes, places, direction);
                __syncthreads();
            };
            const int64 index = int64(image) * args.channels + channel;
            const uint4* matrix = args.fragments + index * units * kFragments;
            float power[kWarpGroups][2] = {};
#pragma unroll 1
            for (int row_panel = static_cast<int>(triangle_row(first));
                 row_panel * (row_panel + 1) / 2 < last; ++row_panel) {
                // The panel of the rows stays; the other slot begins with the rows before.
                const int at = row_panel % 2, row_pairs = row_panel * (row_panel + 1) / 2;
                make(at, row_panel);
#pragma unroll 1
                for (int k = max(first - row_pairs, 0); k < min(last - row_pairs, row_panel + 1);
                     ++k) {
                    const int k_panel = k == row_panel ? k : k == 0 ? row_panel - 1 : k - 1;
                    int slot = at;
                    if (k_panel != row_panel) {
                        slot = 1 - at;
                        if (k_panel != other) make(slot, k_panel);
                        other = k_panel;
                    }
                    multiply_panels(args, matrix, slots + at * Panel::kBytes,
                                    slots + slot * Panel::kBytes, row_panel, k_panel, power);
                }
                other = row_panel;
            }
            const float descale = args.descales[index];
#pragma unroll
            for (int group = 0; group < kWarpGroups; ++group) {
                total[group][0] += power[group][0] * descale;
                total[group][1] += power[group][1] * descale;
            }
        }
        store_power(args, blocks, first_direction, total);
    }
};
