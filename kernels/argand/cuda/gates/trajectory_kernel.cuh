// Trajectories of a noisy circuit, whole circuits in one launch: each state lies in shared memory,
// and a group of threads applies every gate and every channel to it. Random numbers are those of
// the CPU (argand/gates/trajectories.py), by seed, channel and trajectory.
#pragma once
#include "device/complex.cuh"
#include "device/philox.cuh"

constexpr int kTrajectoryThreads = 256;
constexpr int kMaxOperationWidth = 3;

// A gate on up to three targets, or the channels after it on one qubit (`width` 0: `place` is the
// number of the first channel, `target` the qubit). `taken` has the bits of targets and controls.
struct TrajectoryOperation {
    int width;
    int place;  // of the gate's first matrix entry
    uint32 taken;
    uint32 controls;
    uint32 target[kMaxOperationWidth];
    int padding;
};

struct TrajectoryArguments {
    void* states;  // (trajectories, 2^qubits)
    const TrajectoryOperation* operations;
    const void* matrices;  // row by row
    int64 first;  // the number of the first one
    int64 trajectories;
    int64 seed;
    double pauli_scale;  // 4 over the probability of the depolarising channel; 0 without one
    double damping;
    double kept;  // of an excited amplitude where nothing jumps
    int operation_count;
    int qubits;
    int group_bits;  // 2^group_bits threads share a state
};

// The number with a zero inserted at each bit of `taken`, the lowest first.
__device__ __forceinline__ uint32 spread(uint32 number, uint32 taken) {
    for (; taken; taken &= taken - 1) {
        const uint32 below = (taken & (0u - taken)) - 1;
        number = (number & ~below) << 1 | (number & below);
    }
    return number;
}

// Multiplies the columns of a state in shared memory by a matrix; `first` of the `threads` of its
// group is this thread.
template <typename Real, int Width>
__device__ __forceinline__ void apply_gate(Complex<Real>* state,
                                           const TrajectoryOperation& operation,
                                           const Complex<Real>* matrix, uint32 columns,
                                           uint32 first, uint32 threads) {
    constexpr int kOrder = 1 << Width;
#pragma unroll 1
    for (uint32 column = first; column < columns; column += threads) {
        const uint32 base = spread(column, operation.taken) | operation.controls;
        Complex<Real> x[kOrder];
        uint32 at[kOrder];
#pragma unroll
        for (int row = 0; row < kOrder; ++row) {
            at[row] = base;
#pragma unroll
            for (int bit = 0; bit < Width; ++bit)
                if (row >> bit & 1) at[row] |= operation.target[bit];
            x[row] = state[at[row]];
        }
#pragma unroll
        for (int row = 0; row < kOrder; ++row) {
            Complex<Real> sum = {};
#pragma unroll
            for (int s = 0; s < kOrder; ++s) multiply_add(sum, matrix[row * kOrder + s], x[s]);
            state[at[row]] = sum;
        }
    }
}

// Sums of two numbers over the group of a thread. All threads of the block call it.
__device__ __forceinline__ double2 group_sum(double2 x, int group_bits, double2* warp_sums) {
    const int within = min(1 << group_bits, kWarp);
    for (int mask = within / 2; mask > 0; mask /= 2) {
        x.x += __shfl_xor_sync(0xffffffffu, x.x, mask);
        x.y += __shfl_xor_sync(0xffffffffu, x.y, mask);
    }
    if (1 << group_bits <= kWarp) return x;
    const int warp = threadIdx.x / kWarp, warps = (1 << group_bits) / kWarp;
    if (threadIdx.x % kWarp == 0) warp_sums[warp] = x;
    __syncthreads();
    const int first = warp / warps * warps;
    double2 sum = {};
    for (int i = 0; i < warps; ++i) {
        sum.x += warp_sums[first + i].x;
        sum.y += warp_sums[first + i].y;
    }
    __syncthreads();
    return sum;
}

__device__ __forceinline__ double uniform_below_1(int64 seed, uint64 channel, uint64 trajectory) {
    return static_cast<double>(philox_number(seed, channel, trajectory) >> 11) * 0x1p-53;
}

// X, Y or Z where the number falls into its quarter of the probability.
template <typename Real>
__device__ __forceinline__ void depolarise(Complex<Real>& low, Complex<Real>& high, double which) {
    const Complex<Real> l = low, h = high;
    if (which == 0) {
        low = h;
        high = l;
    } else if (which == 1) {
        low = {h.y, -h.x};
        high = {-l.y, l.x};
    } else if (which == 2) {
        high = {-h.x, -h.y};
    }
}

// Draws a Pauli matrix and whether the qubit decays, applies both, and normalises the state.
template <typename Real>
__device__ __forceinline__ void apply_noise(const TrajectoryArguments& args, Complex<Real>* state,
                                            const TrajectoryOperation& operation, int64 trajectory,
                                            uint32 first, uint32 threads, double2* warp_sums) {
    const uint32 pairs = 1u << (args.qubits - 1), target = operation.target[0];
    const double which =
        args.pauli_scale > 0
            ? floor(uniform_below_1(args.seed, operation.place, trajectory) * args.pauli_scale)
            : 3.0;
    double2 square = {};  // of all amplitudes, and of those where the qubit is 1
#pragma unroll 1
    for (uint32 pair = first; pair < pairs; pair += threads) {
        const uint32 at = spread(pair, target);
        Complex<Real> low = state[at], high = state[at | target];
        depolarise<Real>(low, high, which);
        state[at] = low;
        state[at | target] = high;
        const double x = low.x, y = low.y, z = high.x, w = high.y;
        square.x += x * x + y * y + z * z + w * w;
        square.y += z * z + w * w;
    }
    if (args.damping == 0) return;
    square = group_sum(square, args.group_bits, warp_sums);
    const double number = uniform_below_1(args.seed, operation.place + 1, trajectory);
    const bool jumps = number * square.x < args.damping * square.y;
    const double left = jumps ? square.y : square.x - args.damping * square.y;
    const double scale = rsqrt(left);
    const Real of_ground = static_cast<Real>(scale);
    const Real of_excited = static_cast<Real>(jumps ? 0.0 : args.kept * scale);
#pragma unroll 1
    for (uint32 pair = first; pair < pairs; pair += threads) {
        const uint32 at = spread(pair, target);
        const Complex<Real> low = state[at], high = state[at | target];
        const Complex<Real> ground = jumps ? high : low;
        state[at] = {ground.x * of_ground, ground.y * of_ground};
        state[at | target] = {high.x * of_excited, high.y * of_excited};
    }
}

// The kernel: groups of threads run a trajectory each, with its state in shared memory, operation
// after operation.
template <typename Real>
__device__ __forceinline__ void run_trajectories(const TrajectoryArguments& args) {
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ double2 warp_sums[kTrajectoryThreads / kWarp];
    const uint32 threads = 1u << args.group_bits, first = threadIdx.x & (threads - 1);
    const uint32 group = threadIdx.x >> args.group_bits, amplitudes = 1u << args.qubits;
    const int64 trajectory =
        static_cast<int64>(blockIdx.x) * (kTrajectoryThreads >> args.group_bits) + group;
    auto* state = reinterpret_cast<Complex<Real>*>(memory) + (group << args.qubits);
    for (uint32 i = first; i < amplitudes; i += threads) state[i] = {Real(i == 0), Real(0)};
    __syncthreads();
    for (int number = 0; number < args.operation_count; ++number) {
        const TrajectoryOperation operation = args.operations[number];
        const auto* matrix = static_cast<const Complex<Real>*>(args.matrices) + operation.place;
        const uint32 columns = amplitudes >> __popc(operation.taken);
        if (operation.width == 0)
            apply_noise<Real>(args, state, operation, args.first + trajectory, first, threads,
                              warp_sums);
        else if (operation.width == 1)
            apply_gate<Real, 1>(state, operation, matrix, columns, first, threads);
        else if (operation.width == 2)
            apply_gate<Real, 2>(state, operation, matrix, columns, first, threads);
        else
            apply_gate<Real, 3>(state, operation, matrix, columns, first, threads);
        __syncthreads();
    }
    if (trajectory >= args.trajectories) return;
    auto* out = static_cast<Complex<Real>*>(args.states) + (trajectory << args.qubits);
    for (uint32 i = first; i < amplitudes; i += threads) out[i] = state[i];
}
