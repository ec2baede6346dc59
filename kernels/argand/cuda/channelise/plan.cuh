// The plan and the arguments of the kernels of filter banks.
//
// A unit is two components that lie side by side: a complex sample, or an even and an odd real one.
// A frame is as many units as a transform has points: M of complex samples, M / 2 of real ones.
#pragma once
#include "device/complex.cuh"

struct ChannelisePlan {
    int points;      // of a transform, R0 R1 R2
    int taps;        // T
    int phases;      // p of an oversampling p / q
    int frames;      // q: frames from a spectrum to the next of its phase
    bool real;       // real samples: results are split into the spectra of even and odd ones
    int radices[3];  // R0 of the filter's threads, R1 (perhaps 1) and R2 in shared memory
    int batch;       // spectra in shared memory at a time
    int threads;     // of a group
    int groups;      // of a block, each with spectra of its own

    constexpr int columns() const { return points / radices[0]; }  // P
    constexpr int block_threads() const { return threads * groups; }
    // In shared memory a spectrum is R0 lines of P numbers, with padding behind each R2 numbers if
    // R2 is even. Lines lie so that those of a half-warp, k0 first, are in banks of their own, but
    // short ones, whose padding would be as long as they are.
    constexpr int group_pitch() const { return radices[2] + (radices[2] % 2 == 0); }
    constexpr int line_pitch() const {
        const int least = radices[1] * group_pitch();
        if (columns() < 16) return least;
        const int bank = 16 / radices[0] > 0 ? 16 / radices[0] : 1;
        return least + ((bank - least % 16) % 16 + 16) % 16;
    }
    constexpr int spectrum_pitch() const { return radices[0] * line_pitch(); }
    constexpr int group_bytes() const { return batch * spectrum_pitch() * 8; }
    constexpr int shared_bytes() const { return groups * group_bytes(); }
    // Tables: W_M'^(j k0), then W_P^(n2 k1), then of real samples W_M^k to M / 4.
    constexpr int second_table() const { return (radices[0] - 1) * columns(); }
    constexpr int third_table() const { return second_table() + (radices[1] - 1) * radices[2]; }
};

// Filled in by argand/channelise/gpu.py; KERNEL_ARGUMENTS of argand/channelise/plan.py lists the
// same members. Counts are of units.
struct ChanneliseArguments {
    const void* x;
    float2* out;
    const float* coefficients;
    const float2* twiddles;
    int64 row_stride;  // from row to row of x
    int64 spectra;     // of a row
    int64 items;       // rows, chunks and phases
    int64 chunks;      // of a phase's spectra
    int64 batches;     // of a chunk
    int64 hop;         // from a spectrum to the next
};

// The plan of the kernel whose threads have a spectrum each (single_thread.cuh). Counts are of
// samples.
struct SingleThreadPlan {
    int channels;  // M
    int taps;      // T
    int hop;       // from a spectrum to the next
    bool real;
    int spectra;  // of a block, one a thread

    constexpr int bins() const { return real ? channels / 2 + 1 : channels; }
    constexpr int number_bytes() const { return real ? 4 : 8; }
    constexpr int line() const { return channels | 1; }  // numbers of a frame in shared memory
    constexpr int out_pitch() const { return bins() | 1; }
    constexpr int h_pitch() const { return (channels + 3) / 4 * 4; }
    constexpr int h_bytes() const { return taps * h_pitch() * 4; }
    // Frames of a block whose first spectrum begins at the last possible residue of its frame.
    constexpr int frames() const {
        const int last = hop == channels ? 0 : channels - 1;
        return (last + (spectra - 1) * hop + channels * taps - 1) / channels + 1;
    }
    constexpr int shared_bytes() const {
        const int samples = frames() * line() * number_bytes(), out = spectra * out_pitch() * 8;
        return h_bytes() + (samples > out ? samples : out);
    }
};

struct SingleThreadArguments {
    const void* x;
    float2* out;
    const float* coefficients;
    int64 samples;  // of a row
    int64 spectra;  // of a row
    int64 chunks;   // blocks of a row
};

// Filled in by argand/channelise/gpu_unfused.py.
struct FilterArguments {
    const void* x;
    void* out;  // (rows, count, channels)
    const void* coefficients;
    int64 samples;  // from row to row of x
    int64 first;    // spectrum of each row, and
    int64 count;    // how many
    int64 items;    // rows, phases and chunks
    int64 chunks;   // of a phase's spectra
    int64 chunk;    // spectra of one
    int channels;
    int taps;
    int hop;
    int phases;
    int columns;        // residues of a block
    int column_blocks;  // blocks of a spectrum
};
