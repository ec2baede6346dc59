"""Random programs of threads on one or several GPUs, each result bit for bit that of a call alone.

    python -m benchmarks.crowd --seconds 60 --threads 8 --seed 1
    python -m benchmarks.crowd --seed 1 --only 17 --threads 1     # one call of the seed

Calls are drawn by the seed and made once alone: by themselves, again at the same addresses, and
captured. Then threads make them at random on streams of their own: into new results and given ones,
on streams that are idle and that are behind the host, captured into graphs that are replayed later
and on another stream, from other current devices. Operands are copied in before each call and
overwritten after it, in the stream's order, so that what a kernel reads too early or too late
shows. A program is at fault where one byte of a result differs, a call or a capture fails, or a
graph does. No call is drawn that needs a number of the GPU's to go on, which no graph has. The exit
status is 1 where there was a fault.

CUDA's rules still hold: with ``--blocking`` some threads capture streams that wait for the legacy
one, and cuFFT's refusal to plan meanwhile is no fault.
"""
