"""Ours beside the libraries on one page: products, transforms, gates and softmax.

    python -m benchmarks.overview docs/data docs/pictures/h200-overview.svg

Reads the CSVs that `benchmarks.gemm`, `dft`, `gates` and `softmax` wrote: only verified rows, and
of several peers the fastest. Where time is bound by memory the dotted line is the copy rate.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from argand import PRECISIONS
from argand.runtime.measuring.ceilings import Ceilings
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from benchmarks.harness.figures import data_and_svg
from benchmarks.harness.recorded import (
    Row,
    beside,
    fastest,
    plain_rows,
    read_rows,
    slowest_placement,
    timed_rows,
)
from workflow.figures.style import colour_of, save

FILES: Mapping[str, tuple[str, ...]] = {
    "products": ("h200-gemm-large.csv",),
    "exact products": ("h200-exact.csv",),
    "transforms": ("h200-dft.csv", "h200-dft-primes.csv", "h200-dft-awkward.csv"),
    "gates": ("h200-gates.csv",),
    "softmax": ("h200-softmax.csv",),
}
"""Files of each kind of row; exact products share the panel of products."""
_PANELS = ("products", "transforms", "gates", "softmax")
CEILINGS = "h200-ceilings.json"
SIDE = 4096
"""m = n = k of the product that is shown."""

_OURS, _PEERS = "#0072B2", "#D55E00"
_MIN_ROWS = 512
"""Rows from which a softmax fills the device."""


def main(argv: Sequence[str] | None = None) -> int:
    """Draw the figure."""
    arguments = data_and_svg(__doc__, argv)
    rows: dict[str, list[Row]] = {name: [] for name in FILES}
    for name, files in FILES.items():
        read = exact_rows if name == "exact products" else read_rows
        rows[name] = [row for file in files for row in read(arguments.data / file)]
    ceilings = Ceilings.from_json((arguments.data / CEILINGS).read_text(encoding="utf-8"))
    save(arguments.svg, lambda: overview(rows, ceilings))
    return 0


def overview(rows: Mapping[str, Sequence[Row]], ceilings: Ceilings) -> Figure:
    """Return the figure that `main` writes. Raises ValueError where a panel has nothing to show."""
    figure = Figure(figsize=(11.0, 7.6), layout="constrained")
    figure.suptitle(f"Complex data on {ceilings.device}: Argand and the fastest library beside it")
    panels = figure.subplots(2, 2, width_ratios=(1.5, 1)).flat
    shown = {name: timed_rows(own) for name, own in rows.items()}
    for name, own in shown.items():
        if not own:
            raise ValueError(f"no verified row with a time for {name}")
    for name, axes in zip(_PANELS, panels, strict=True):
        if name == "products":
            pairs = product_pairs(shown[name]) + exact_pairs(shown["exact products"])
            _products(axes, pairs)
        else:
            _DRAW[name](axes, shown[name])
        if name in ("transforms", "softmax"):
            copy = ceilings.copy_gbytes_per_s
            axes.axhline(copy, color="#555555", linestyle=":", linewidth=1.2)
            axes.annotate(
                "copy", (1, copy), (-2, 3), xycoords=("axes fraction", "data"),
                textcoords="offset points", ha="right", fontsize=8.5, color="#555555",
            )  # fmt: skip
            axes.set_ylim(0, 1.12 * copy)
            axes.set_ylabel("GB/s, read and written")
    return figure


def product_pairs(rows: Sequence[Row]) -> list[tuple[str, Row, Row]]:
    """Return each precision with our row and the fastest peer's of its class of precisions.

    Results are whole complex numbers. Ours from packed operands are left out; peers may have planar
    operands, which somebody split beforehand, and where these are halves ours may have halves too.
    """
    ours, peers = beside(
        [
            row for row in rows
            if (row["m"], row["n"], row["k"], row["batch"]) == (SIDE, SIDE, SIDE, 1)
            and row["output"] != "complex-half" and row["input"] != "packed"
        ]
    )  # fmt: skip
    own = fastest(ours, "precision")
    classes = fastest(
        ({**row, "class": PRECISIONS[row["precision"]].peer_class} for row in peers), "class"
    )
    return [
        (name, own[(name,)], peer)
        for name, row in PRECISIONS.items()
        if (name,) in own and (peer := classes.get((row.peer_class,)))
    ]


def exact_rows(path: Path) -> list[Row]:
    """Return the rows of `benchmarks.exact`, in a row of calls, with the columns of records."""
    return [
        {
            "implementation": row["implementation"], "precision": row["precision"],
            "verified": row["within_bound"], "tflops": float(row["row_tflops"]),
            "time_us_p50": 1e3 * float(row["row_ms"]), "rel_frobenius": float(row["error_normal"]),
            "output": row["operands"],
        }
        for row in plain_rows(path)
        if (row["batch"], row["m"], row["n"], row["k"]) == ("1", *3 * (str(SIDE),))
    ]  # fmt: skip


def exact_pairs(rows: Sequence[Row]) -> list[tuple[str, Row, Row]]:
    """Return our rows by number of moduli, and the fastest library of the operands' type.

    That is cuBLAS at the type's own precision, or the same number of moduli elsewhere.
    """
    ours, peers = beside(rows)
    found = []
    for row in ours:
        others = [
            peer for peer in peers
            if peer["output"] == row["output"]
            and peer["precision"] in (row["precision"], "fp32", "fp64")
        ]  # fmt: skip
        if others:
            best = min(others, key=lambda peer: float(peer["time_us_p50"]))
            found.append((str(row["precision"]), row, best))
    return found


def _products(axes: Axes, pairs: Sequence[tuple[str, Row, Row]]) -> None:
    for place, (name, ours, peer) in enumerate(pairs):
        colour = colour_of(name)
        axes.bar(place - 0.2, ours["tflops"], 0.38, color=colour)
        axes.bar(place + 0.2, peer["tflops"], 0.38, color="white", edgecolor=colour, hatch="////")
        gain = ours["tflops"] / peer["tflops"]
        for at, row, text in (
            (-0.2, ours, f"{ours['tflops']:.0f}\n{gain:.1f} x"),
            (0.22, peer, f"{peer['tflops']:.0f}"),
        ):
            axes.annotate(
                text, (place + at, row["tflops"]), (0, 2), textcoords="offset points",
                ha="center", fontsize=7,
            )  # fmt: skip
    labels = [
        f"{name}\n{ours['rel_frobenius']:.0e}\n{peer['implementation'].removesuffix('-planar')}"
        for name, ours, peer in pairs
    ]
    axes.set_xticks(range(len(pairs)), labels, fontsize=6.5)
    axes.set_ylim(0, 1.15 * max(ours["tflops"] for _, ours, _ in pairs))
    axes.set_ylabel("TFLOP/s")
    axes.set_title(f"Product of {SIDE} x {SIDE} x {SIDE}: error, and the best peer (hatched)")


def _scatter(axes: Axes, label: str, rows: Iterable[Row], x: str, colour: str, marker: str) -> None:
    ordered = sorted(rows, key=lambda row: row[x])
    axes.plot(
        [row[x] for row in ordered], [row["gbytes_per_s"] for row in ordered], marker, label=label,
        color=colour, markersize=4.5, fillstyle="full" if marker == "o" else "none",
    )  # fmt: skip


def _transforms(axes: Axes, rows: Sequence[Row]) -> None:
    ours, peers = (fastest(own, "n").values() for own in beside(rows))
    _scatter(axes, "Argand, 3xfp16", ours, "n", _OURS, "o")
    _scatter(axes, "cuFFT, fp32", peers, "n", _PEERS, "s")
    axes.set(xscale="log", xlabel="length, awkward ones among them")
    axes.set_title("Fourier transforms of $2^{27}$ complex64")
    axes.legend(frameon=False, fontsize=8.5, loc="upper right", bbox_to_anchor=(1, 0.9))


def _gates(axes: Axes, rows: Sequence[Row]) -> None:
    for label, own, colour, marker in zip(
        ("Argand, 3xfp16", "cuStateVec, fp32"), beside(rows), (_OURS, _PEERS), "os", strict=True
    ):
        worst = slowest_placement(own)
        axes.plot(
            sorted(worst), [1e-3 * worst[q]["time_us_p50"] for q in sorted(worst)], marker,
            color=colour, linestyle="-", linewidth=1, label=label,
        )  # fmt: skip
    axes.set(yscale="log", xlabel="qubits of the gate, the slowest placement", ylabel="ms")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_title("One gate on 28 qubits")
    axes.legend(frameon=False, fontsize=8.5, loc="upper left")


def _softmax(axes: Axes, rows: Sequence[Row]) -> None:
    for kind, *markers in (("fp32", "o", "s"), ("fp16", "^", "v")):
        own = [row for row in rows if row["rows"] >= _MIN_ROWS and row["input"] == kind]
        for who, side, colour, marker in zip(
            ("Argand", "torch or Triton"), beside(own), (_OURS, _PEERS), markers, strict=True
        ):
            best = fastest(side, "columns").values()
            _scatter(axes, f"{who}, {kind}", best, "columns", colour, marker)
    axes.set(xscale="log", xlabel="columns")
    axes.set_title("Softmax over rows of $2^{29}$ numbers")
    axes.legend(frameon=False, fontsize=8.5, loc="lower center", ncols=2)


_DRAW = {"transforms": _transforms, "gates": _gates, "softmax": _softmax}


if __name__ == "__main__":
    sys.exit(main())
