// Transforms of any length N as cyclic convolutions of length N1 N2, one at a time for each group of
// warps: a transform, a product with the spectrum of the other sequence, and a transform back.
//
// Rader, for a prime N: all but x_0 is taken in the order of powers of a generator, and x_0 is added
// to all but X_0, which is the sum. Bluestein: x and X are multiplied by a chirp, and zeros follow;
// where N1 N2 is less than 2 N - 1, two convolutions with chirps and spectra of their own are added.
#pragma once
#include "dft_fused.cuh"

struct ConvolutionPlan {
    Products products;
    int length;
    bool rader;
    int first;
    int second;
    int warps;
    int rows;       // of the first stage of the transform
    int rows_back;  // and of that of the way back
    int groups;

    // Then indices modulo N1 and modulo N2 make two dimensions of the convolution: no twiddles.
    constexpr bool coprime() const {
        int a = first, b = second;
        while (b) {
            const int rest = a % b;
            a = b;
            b = rest;
        }
        return a == 1;
    }
    constexpr int place(int n) const {
        const int line = coprime() ? n % first : n / second;
        return line * spread(second) + n % second;
    }
    constexpr Fused forward() const {
        return {products, first, second, warps, rows, true, !coprime()};
    }
    constexpr Fused back() const { return forward().swapped(rows_back); }
    constexpr int threads() const { return groups * warps * kWarp; }
    constexpr int table_bytes() const {
        return forward().first_fold().bytes() +
               (first == second ? 0 : forward().second_fold().bytes());
    }
    constexpr int tile_bytes() const {
        const int taken = forward().taken().bytes(), given = forward().given().bytes();
        return taken > given ? taken : given;
    }
    constexpr int halves() const { return !rader && first * second < 2 * length - 1 ? 2 : 1; }
    constexpr int shared_bytes() const {
        return table_bytes() + groups * (halves() * tile_bytes() + 8 + warps * 4);
    }
};

template <ConvolutionPlan plan>
__device__ __forceinline__ float take(const DftArguments& args, const float2* x,
                                      const float2* chirp, float2* tile) {
    const auto group = Group<plan.warps>::here();
    constexpr int kTogether = 8;  // elements that a thread has on their way
    constexpr int kRest = plan.rader, kTaken = plan.length - kRest;
    float largest = 0.0f;
    for (int start = group.thread; start < kTaken; start += kTogether * group.kThreads) {
        float2 value[kTogether];
        int place[kTogether];
#pragma unroll
        for (int i = 0; i < kTogether; ++i) {
            const int n = start + i * group.kThreads;
            if (n >= kTaken) continue;
            value[i] = x[n + kRest];
            place[i] = __ldg(args.takes + n);
        }
#pragma unroll
        for (int i = 0; i < kTogether; ++i) {
            const int n = start + i * group.kThreads;
            if (n >= kTaken) continue;
            largest = fmaxf(largest, fmaxf(fabsf(value[i].x), fabsf(value[i].y)));
            if constexpr (!plan.rader) value[i] = complex_product(value[i], __ldg(chirp + n));
            tile[place[i]] = value[i];
        }
    }
    if constexpr (!plan.rader) {
        for (int n = plan.length + group.thread; n < plan.first * plan.second; n += group.kThreads)
            tile[plan.place(n)] = {0.0f, 0.0f};
    }
    return largest;
}

template <ConvolutionPlan plan>
__device__ __forceinline__ void dft_convolution(const DftArguments& args) {
    constexpr Fused forward = plan.forward(), back = plan.back();
    constexpr int kRest = plan.rader;
    // Each way divides by as much as its two stages can add up.
    constexpr int kShift = forward.shift(plan.first) + forward.shift(plan.second);
    constexpr float kUnit = inverse_power(forward.shift(plan.second));
    constexpr float kUnitBack = inverse_power(forward.shift(plan.first));
    constexpr float kTable = inverse_power(forward.table_exponent());
    extern __shared__ __align__(128) unsigned char shared[];
    uint4* const tables = reinterpret_cast<uint4*>(shared);
    for (int i = threadIdx.x; i < plan.table_bytes() / 16; i += plan.threads())
        tables[i] = __ldg(args.table + i);
    __syncthreads();
    unsigned char* const memory = shared + plan.table_bytes();
    constexpr int kOwn = plan.halves() * plan.tile_bytes();
    unsigned char* const boards = memory + plan.groups * kOwn;
    float2* const all_totals = reinterpret_cast<float2*>(boards);
    float* const all_boards = reinterpret_cast<float*>(boards + plan.groups * 8);
    const uint4* const second =
        tables + (plan.first == plan.second ? 0 : forward.first_fold().vectors());
    const FusedTables there{tables, second, args.twiddles, args.turns, 1.0f};
    const FusedTables return_tables{second, tables, args.back_twiddles, args.back_turns, 1.0f};
    const int rows = static_cast<int>(args.rows);
    const int own = Group<plan.warps>::here().index;
    for (int row = blockIdx.x * plan.groups + own; row < rows; row += gridDim.x * plan.groups) {
        const auto group = Group<plan.warps>::here();
        float2* const tiles = reinterpret_cast<float2*>(memory + group.index * kOwn);
        float2* const total = all_totals + group.index;
        const float2* const x = args.x + row * args.x_stride;
        // The next transform is on its way into the second-level cache.
        if (const int next = row + gridDim.x * plan.groups; next < rows)
            prefetch<plan.length>(args.x + next * args.x_stride, group.thread, group.kThreads);
        float2 rest = {0.0f, 0.0f};
        if constexpr (plan.rader) rest = x[0];
        float scale = 1.0f, undo = 1.0f;
#pragma unroll 1
        for (int half = 0; half < plan.halves(); ++half) {
            float2* const tile = tiles + half * (plan.tile_bytes() / 8);
            float largest = take<plan>(args, x, args.chirp + half * plan.length, tile);
            largest = fmaxf(largest, fmaxf(fabsf(rest.x), fabsf(rest.y)));
            float* const board = all_boards + group.index * plan.warps;
            largest = largest_of<plan.warps>(largest, board, group);
            group.sync();  // the board may be written again, and the tile be read
            if constexpr (plan.products.scaled) {
                const int exponent = transform_exponent(largest);
                scale = power_of_two(exponent);
                undo = power_of_two(-exponent);
            }
            first_stage<forward>(tile, there, scale);
            second_stage<forward>(
                tile, there, kUnit, kUnit * kTable, [&](int k, float2 value, bool valid) {
                    if (plan.rader && valid && k == 0) *total = value;
                    const int at = half * plan.first * plan.second + k;
                    const float2 z = complex_product(value, __ldg(args.spectrum + at));
                    // The way back is the conjugate of that of the conjugate.
                    return float2{z.x, -z.y};
                });
            group.sync();
            first_stage<back>(tile, return_tables, 1.0f);
            second_stage<back>(tile, return_tables, kUnitBack, kUnitBack * kTable,
                               [&](int, float2 value, bool) { return value; });
            group.sync();
        }
        asm volatile("" : "+r"(row));  // an address is not kept in registers all the way
        float2* const out = args.out + row * args.out_stride;
        rest = {rest.x * args.factor, rest.y * args.factor};
        if constexpr (plan.rader) {
            if (group.thread == 0) {
                const float unit = args.factor / inverse_power(kShift);
                out[0] = {fmaf(total->x * unit, undo, rest.x), fmaf(total->y * unit, undo, rest.y)};
            }
        }
        constexpr int kGiven = plan.length - kRest;
        const int thread = Group<plan.warps>::here().thread;
#pragma unroll 4
        for (int k = thread; k < kGiven; k += group.kThreads) {
            const int place = __ldg(args.gives + k);
            float2 value = {0.0f, 0.0f};
#pragma unroll
            for (int half = 0; half < plan.halves(); ++half) {
                float2 part = tiles[half * (plan.tile_bytes() / 8) + place];
                part = {part.x * args.unit, -part.y * args.unit};
                if constexpr (!plan.rader) {
                    const float2* const chirp = args.chirp + (plan.halves() + half) * plan.length;
                    part = complex_product(part, __ldg(chirp + k));
                }
                value = {value.x + part.x, value.y + part.y};
            }
            out[k + kRest] = {fmaf(value.x, undo, rest.x), fmaf(value.y, undo, rest.y)};
        }
        group.sync();
    }
}
