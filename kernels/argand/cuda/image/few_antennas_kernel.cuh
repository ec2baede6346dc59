// Power over directions of few antennas by fp32: a thread makes the weights of its directions in
// registers, once for all matrices of a channel, and multiplies them with the lower triangle of
// each, which its block has in shared memory. Panels of tensor cores have 64 antennas, and weights
// for each matrix. Nothing is rounded to their formats.
//
// A block has 128 threads of `Directions` directions each, `Images` matrices of each channel, and a
// split of the channels. Blocks of the same matrices are neighbours in the grid.
#pragma once
#include "refused_operands.cuh"
#include "weights.cuh"

struct FewAntennasArguments {
    const float2* covariances;  // (images, channels, antennas, antennas)
    const double* positions;    // (antennas, 3) in m
    const double* scales;       // (channels,) sign f / c, in units of 2^-30 turns
    const double* directions;   // (directions, 3)
    const uint32* largest;      // (images, channels), as CheckArguments has it
    float* power;               // (splits, images, directions)
    double longest_square;      // largest |direction|^2
    int images;
    int channels;
    int direction_count;
    int splits;
};

template <int Antennas, int Images, int Directions>
struct FewAntennasKernel {
    static constexpr int kThreads = 128;
    static constexpr int kPairs = Antennas * (Antennas - 1) / 2;
    static constexpr int kBlockDirections = kThreads * Directions;

    // The lower triangle of a channel's matrices, doubled, and the sums of their diagonals.
    struct Channel {
        float2 pairs[Images][kPairs > 0 ? kPairs : 1];
        float diagonals[Images];
        double places[Antennas][3];
    };

    // Matrices beyond the last one are zero.
    __device__ __forceinline__ static void load(const FewAntennasArguments& args, int first_image,
                                                int channel, Channel& to) {
        for (int i = threadIdx.x; i < 3 * Antennas; i += kThreads)
            to.places[i / 3][i % 3] = args.positions[i] * args.scales[channel];
        for (int i = threadIdx.x; i < Images * Antennas * Antennas; i += kThreads) {
            const int image = i / (Antennas * Antennas), a = i / Antennas % Antennas,
                      b = i % Antennas;
            if (b >= a) continue;
            float2 sum = {0.0f, 0.0f};
            if (first_image + image < args.images) {
                const float2* r = matrix(args, first_image + image, channel);
                const float2 x = r[a * Antennas + b], y = r[b * Antennas + a];
                sum = {x.x + y.x, x.y - y.y};
            }
            to.pairs[image][a * (a - 1) / 2 + b] = sum;
        }
        if (threadIdx.x < Images) {
            float sum = 0.0f;
            if (first_image + static_cast<int>(threadIdx.x) < args.images) {
                const float2* r = matrix(args, first_image + threadIdx.x, channel);
                for (int a = 0; a < Antennas; ++a) sum += r[a * (Antennas + 1)].x;
                const int64 index = int64(first_image + threadIdx.x) * args.channels + channel;
                if (args.largest[index] == kNotHermitian) sum = not_a_number();
            }
            to.diagonals[threadIdx.x] = sum;
        }
    }

    __device__ __forceinline__ static const float2* matrix(const FewAntennasArguments& args,
                                                           int image, int channel) {
        const int64 index = int64(image) * args.channels + channel;
        return args.covariances + index * (Antennas * Antennas);
    }

    // The weights towards the directions of a thread: exp(i phase) of each antenna.
    __device__ __forceinline__ static void make_weights(const Channel& channel,
                                                        const double (&directions)[Directions][3],
                                                        float2 (&z)[Antennas][Directions]) {
#pragma unroll
        for (int a = 0; a < Antennas; ++a) {
#pragma unroll
            for (int d = 0; d < Directions; ++d)
                cos_sin(fixed_phase(channel.places[a], directions[d]), z[a][d].x, z[a][d].y);
        }
    }

    // Adds z^H R z of one matrix of the channel to the power of each direction.
    __device__ __forceinline__ static void add_power(const Channel& channel, int image,
                                                     const float2 (&z)[Antennas][Directions],
                                                     float (&power)[Directions]) {
        float own[Directions];
#pragma unroll
        for (int d = 0; d < Directions; ++d) own[d] = channel.diagonals[image];
#pragma unroll
        for (int a = 1; a < Antennas; ++a) {
            float2 y[Directions] = {};
#pragma unroll
            for (int b = 0; b < a; ++b) {
                const float2 r = channel.pairs[image][a * (a - 1) / 2 + b];
#pragma unroll
                for (int d = 0; d < Directions; ++d) {
                    y[d].x = fmaf(r.x, z[b][d].x, y[d].x);
                    y[d].y = fmaf(r.x, z[b][d].y, y[d].y);
                    y[d].x = fmaf(-r.y, z[b][d].y, y[d].x);
                    y[d].y = fmaf(r.y, z[b][d].x, y[d].y);
                }
            }
#pragma unroll
            for (int d = 0; d < Directions; ++d) {
                own[d] = fmaf(z[a][d].x, y[d].x, own[d]);
                own[d] = fmaf(z[a][d].y, y[d].y, own[d]);
            }
        }
#pragma unroll
        for (int d = 0; d < Directions; ++d) power[d] += own[d];
    }

    // The kernel: each thread has the weights of its directions for channel after channel, and adds
    // their power for some images.
    __device__ __forceinline__ static void run(const FewAntennasArguments& args) {
        __shared__ Channel held;
        const int blocks = (args.direction_count + kBlockDirections - 1) / kBlockDirections;
        const int groups = (args.images + Images - 1) / Images;
        const int first = static_cast<int>(blockIdx.x % blocks) * kBlockDirections + threadIdx.x;
        const int first_image = static_cast<int>(blockIdx.x / blocks % groups) * Images;
        const int split = static_cast<int>(blockIdx.x / blocks / groups);
        double directions[Directions][3];
#pragma unroll
        for (int d = 0; d < Directions; ++d) {
            const int64 own = min(first + d * kThreads, args.direction_count - 1);
#pragma unroll
            for (int i = 0; i < 3; ++i) directions[d][i] = args.directions[3 * own + i];
        }
        float power[Images][Directions] = {};
        const int begin = static_cast<int>(int64(args.channels) * split / args.splits),
                  end = static_cast<int>(int64(args.channels) * (split + 1) / args.splits);
#pragma unroll 1
        for (int channel = begin; channel < end; ++channel) {
            __syncthreads();
            load(args, first_image, channel, held);
            __syncthreads();
            float2 z[Antennas][Directions];
            make_weights(held, directions, z);
#pragma unroll
            for (int image = 0; image < Images; ++image) {
                if (first_image + image >= args.images) break;
                add_power(held, image, z, power[image]);
            }
        }
#pragma unroll
        for (int image = 0; image < Images; ++image) {
            if (first_image + image >= args.images) break;
            const int64 line = int64(split) * args.images + first_image + image;
#pragma unroll
            for (int d = 0; d < Directions; ++d) {
                const int own = first + d * kThreads;
                if (own < args.direction_count) {
                    args.power[line * args.direction_count + own] =
                        power_or_nan(power[image][d], directions[d], args.longest_square);
                }
            }
        }
    }
};
