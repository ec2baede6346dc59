"""What was wanted of the GPU's transforms, held against what a benchmark measured.

A share of the device's copy rate in the same run, or times cuFFT's fp32 beside it. No transform is
faster than a copy: where that is less than a want, the line says so. Nothing here decides whether a
result is right; the rows are verified.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from argand import PRECISIONS
from argand.device import arch_for
from argand.dft.heuristics import choose
from argand.dft.legality import ENGINE_SM
from argand.dft.method import is_prime, method_for, prime_factors
from argand.dft.three_kernel import PassesPlan

from workflow.output.recorded import Row, timed_rows


@dataclass(frozen=True)
class Want:
    """Lengths, and their least share of the copy rate or least times cuFFT.

    ``lengths`` are lengths, or the first and last of a range of primes.
    """

    lengths: tuple[int, ...]
    share: float = 0.0
    ratio: float = 0.0
    primes: bool = False

    def tells_of(self, length: int) -> bool:
        """Whether the want names a length."""
        if self.primes:
            return self.lengths[0] <= length <= self.lengths[1] and is_prime(length)
        return length in self.lengths


WANTS: tuple[Want, ...] = (
    Want((64, 97, 100, 127, 128), share=0.80),
    Want((251,), share=0.57),
    Want((67, 199), ratio=4, primes=True),
    Want((200, 509), ratio=1, primes=True),
    Want((1009, 2039, 4093, 8191, 10_007), ratio=1.5),
    Want((1024,), ratio=0.95),
    Want((4096,), ratio=0.9),
    Want((16_384, 32_768, 65_536, 131_072), ratio=1),
)


def judged_dft(rows: Sequence[Row]) -> list[dict[str, str]]:
    """A line for each want and length that the rows tell about."""
    found = []
    theirs = {row["n"]: row for row in timed_rows(rows, implementation="cufft", precision="fp32")}
    ours = {row["n"]: row for row in timed_rows(rows, implementation="argand", precision="3xfp16")}
    for want in WANTS:
        for length in sorted(length for length in ours if want.tells_of(int(length))):
            row = ours[length]
            share, most = row["limit_fraction"], ""
            if want.ratio:
                if length not in theirs:
                    continue
                ratio = theirs[length]["time_us_p50"] / row["time_us_p50"]
                limit = 1 / theirs[length]["limit_fraction"]
                met = "yes" if _reaches(ratio, want.ratio) else "no"
                if want.ratio > limit:
                    met = "no copy does"
                wanted, measured = f"{want.ratio:g} x cuFFT", f"{ratio:.3g} x"
                most, least = f"{limit:.3g} x", want.ratio / limit
            else:
                least = want.share
                met = "yes" if share >= want.share else "no"
                wanted, measured = f"{want.share:g} of copy", f"{share:.3f}"
            found.append({
                "length": f"{length:.0f}", "wanted": wanted, "measured": measured, "a copy": most,
                "of copy": f"{share:.3f}", "wanted of copy": f"{least:.3f}", "by": _who(row),
                "met": met,
            })  # fmt: skip
    return found


def judged_dft_errors(rows: Sequence[Row]) -> list[dict[str, str]]:
    """What was wanted of errors: of every composite length, of all lengths, and of their growth.

    Lengths that cuFFT computed have its errors: they are counted, not compared with themselves.
    Growth is the exponent p of errors that go as (log n)^p, fitted to the lengths of each way.
    """
    peers = timed_rows(rows, implementation="cufft", precision="fp32")
    theirs = {row["n"]: row["rel_frobenius"] for row in peers}
    ours = {row["n"]: row for row in timed_rows(rows, implementation="argand", precision="3xfp16")}
    composite = [n for n in sorted(theirs.keys() & ours.keys()) if not is_prime(int(n))]
    found = [
        _judged(f"{length:.0f}", _TWICE * theirs[length], "twice cuFFT's", ours[length])
        for length in composite if _who(ours[length]) != _LIBRARY
    ]  # fmt: skip
    if own := [ours[length] for length in composite if _who(ours[length]) == _LIBRARY]:
        worst = max(own, key=lambda row: float(row["rel_frobenius"]))
        found.append({
            "lengths": f"{len(own)} more, most at {worst['n']:.0f}", "wanted": "twice cuFFT's",
            "by": _LIBRARY, "measured": f"{worst['rel_frobenius']:.3g}", "limit": "its own",
            "met": "no comparison",
        })  # fmt: skip
    if ours:
        worst = max(ours.values(), key=lambda row: float(row["rel_frobenius"]))
        found.append(_judged(f"all, most at {worst['n']:.0f}", _LARGEST, "at most 1e-6", worst))
    ways: dict[str, list[Row]] = {}
    for row in ours.values():
        ways.setdefault(_way(row), []).append(row)
    for way, some in sorted(ways.items()):
        if len(some) < _FITTED:
            continue
        lengths = np.log(np.log2([row["n"] for row in some]))
        power = np.polyfit(lengths, np.log([row["rel_frobenius"] for row in some]), 1)[0]
        found.append({
            "lengths": f"{way}, {len(some)} lengths", "wanted": "no faster than log n",
            "by": _who(some[0]), "measured": f"(log n)^{power:.2f}", "limit": "(log n)^1",
            "met": "yes" if power <= 1 else "no",
        })  # fmt: skip
    return found


def beside_cufft(rows: Sequence[Row]) -> list[dict[str, str]]:
    """A line for each length: times, shares of the copy rate and errors, ours beside cuFFT's."""
    theirs = {row["n"]: row for row in timed_rows(rows, implementation="cufft", precision="fp32")}
    ours = {row["n"]: row for row in timed_rows(rows, implementation="argand", precision="3xfp16")}
    return [
        {
            "length": f"{length:.0f}", "by": _who(own),
            "time (µs)": f"{own['time_us_p50']:.0f}",
            "cuFFT (µs)": f"{other['time_us_p50']:.0f}",
            "x cuFFT": f"{other['time_us_p50'] / own['time_us_p50']:.2f}",
            "of copy": f"{own['limit_fraction']:.3f}",
            "error": f"{own['rel_frobenius']:.2e}",
            "cuFFT's": f"{other['rel_frobenius']:.2e}",
            "bound": "–" if own["bound"] is None else f"{own['bound']:.2e}",
            "what ran": str(own["algorithm"]),
        }
        for length in sorted(theirs.keys() & ours.keys())
        for own, other in [(ours[length], theirs[length])]
    ]  # fmt: skip


def passes_beside_cufft(rows: Sequence[Mapping[str, str]]) -> list[dict[str, str]]:
    """A line for each length of `benchmarks.dft_plans` that ours takes three passes for.

    "by" is whose the choice takes on Hopper.
    """
    found: dict[int, list[Mapping[str, str]]] = {}
    for row in rows:
        found.setdefault(int(row["length"]), []).append(row)
    lines = []
    for length, some in sorted(found.items()):
        theirs = [row for row in some if row["plan"] == _LIBRARY.lower()]
        ours = [row for row in some if row["plan"].startswith(PassesPlan.__name__)]
        if not (theirs and ours) or len(some) > len(theirs) + len(ours):
            continue
        other, own = theirs[0], min(ours, key=lambda row: float(row["time_us"]))
        taken = choose(method_for(length), _PRECISION, arch_for(ENGINE_SM), wide=False).plan
        lines.append({
            "length": f"{length}", "factors": _powers(length),
            "ours (µs)": f"{float(own['time_us']):.0f}",
            "cuFFT (µs)": f"{float(other['time_us']):.0f}",
            "ours x cuFFT": f"{float(other['time_us']) / float(own['time_us']):.2f}",
            "error": f"{float(own['error']):.2e}", "cuFFT's": f"{float(other['error']):.2e}",
            "by": _LIBRARY if taken is None else "ours",
        })  # fmt: skip
    return lines


def _powers(length: int) -> str:
    """Its prime factors."""
    primes = prime_factors(length)
    each = [(prime, primes.count(prime)) for prime in dict.fromkeys(primes)]
    return " x ".join(f"{prime}^{power}" if power > 1 else f"{prime}" for prime, power in each)


_PRECISION = PRECISIONS["3xfp16"]
_TWICE, _LARGEST = 2, 1e-6
_LIBRARY = "cuFFT"
_FITTED = 4
"""Lengths of a way that an exponent is fitted to, at least."""


def _judged(lengths: str, limit: float, wanted: str, row: Row) -> dict[str, str]:
    error = float(row["rel_frobenius"])
    return {
        "lengths": lengths, "wanted": wanted, "by": _who(row), "measured": f"{error:.3g}",
        "limit": f"{limit:.3g}", "met": "yes" if error <= limit else "no",
    }  # fmt: skip


def _way(row: Row) -> str:
    """By which kernels: of "4093, butterfly: rader(...)", or without the 4093, "butterfly"."""
    return str(row["algorithm"]).split(":")[0].split(", ")[-1]


_SAME = 0.01
"""Two runs of one program differ by so much."""


def _reaches(ratio: float, wanted: float) -> bool:
    """Whether it does; a want of 1 is met by cuFFT itself, whose two runs differ."""
    return ratio >= wanted * (1 - _SAME if wanted == 1 else 1)


def _who(row: Row) -> str:
    return _LIBRARY if _way(row) == "cufft" else "ours"
