"""Errors planted into right results, and which of them verification catches.

    python -m benchmarks.planted --csv docs/data/planted.csv

Small workloads of every kind are drawn with a seed, staged and computed at each precision by the
functions that the pipeline calls, and verified as the verify step does it. Then errors are
planted into the result, each into a copy of its own that is verified again: zeros, NaN, flipped
signs and bits, swaps, and values that are scaled by 1 + 10^-d with d in steps of a half. A row is
about results of a kind whose reference is full or, of products, sampled as that of large ones is.
An error that was caught in every trial is always caught; the d of a row is the largest up to which
every one was.

Anything but ``verified`` counts as caught. A result that does not verify as it is has no trials:
the row counts those whose bound proves nothing at the precision, and those that failed.
"""
