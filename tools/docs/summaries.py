"""One short table an operation, from the same records as the long ones: docs/performance.md."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from argand import PRECISIONS
from argand.runtime.measuring.ceilings import Ceilings

from benchmarks.harness.recorded import (
    OURS,
    Row,
    beside,
    fastest,
    read_rows,
    shape_words,
    slowest_placement,
    timed_rows,
)
from tools.docs.gate_tables import circuit_rows, gate_rows
from tools.docs.product_tables import BATCHED, LARGE, SMALL
from tools.docs.shown import text_table
from tools.docs.study_tables import CPU, H200, H200_DEFAULT
from tools.docs.transform_tables import plan_kind, transform_rows
from workflow.tables.readable import number

_FULL, _HALF, _PLANAR = "complex64", "complex-half", "planar"
_PRODUCTS = {
    **{(name, _FULL, _FULL): (name, _FULL) for name in ("tf32", "3xtf32", "3xfp16")},
    **{(name, _FULL, _FULL): (name, _PLANAR) for name in ("fp16", "bf16")},
    **{(name, _HALF, _HALF): (f"{name}, halves", _PLANAR) for name in ("fp16", "bf16")},
}
"""Heading and type of the peers' operands by our precision and types of operands and result."""
SOFTMAX = "h200-softmax.csv"
"""The file that `benchmarks.softmax` wrote."""
_SIZES = "m x n x k"
_NO_PRODUCTS = {heading: "" for heading, _ in _PRODUCTS.values()}


def _cell(rate: float, times: float | None) -> str:
    """Return a rate, and how many times the fastest library's it is."""
    return number(rate) if times is None else f"{number(rate)} ({times:.2f} ×)"


def products_summary(*suites: str) -> Callable[[Path], str]:
    """Return a line for each shape of some suites: TFLOP/s of ours, times the fastest peer's.

    Peers are of the same class of precision and have the same type of result. Below stands where a
    peer is faster whose operands were split before the clock started, beside those that read ours.
    """

    def table(data: Path) -> str:
        rows = timed_rows([row for name in suites for row in read_rows(data / name)])
        ours, peers = beside(rows)
        lines: dict[str, dict[str, str]] = {}
        slower = []
        for row in ours:
            own = (row["precision"], row["input"], row["output"])
            if own not in _PRODUCTS:
                continue
            (heading, theirs), shape = _PRODUCTS[own], shape_words(row)
            line = lines.setdefault(shape, {_SIZES: shape} | _NO_PRODUCTS)
            line[heading] = _cell(row["tflops"], _times(row, peers, theirs))
            split = _times(row, peers, _PLANAR)
            if theirs != _PLANAR and split is not None and split < 1:
                slower.append(f"{shape} at {heading} ({split:.2f} ×)")
        found = text_table(list(lines.values()), _SIZES)
        said = f"Slower than on operands split beforehand: {', '.join(slower)}.\n"
        return f"{found}\n{said}" if slower else found

    return table


def _times(row: Row, peers: Sequence[Row], operands: str) -> float | None:
    """Return the time of the fastest peer of such operands over a row's; None without one."""
    same = [
        peer["time_us_p50"] for peer in peers
        if all(peer[name] == row[name] for name in ("workload", "output"))
        and peer["input"] == operands
        and _peer_class(peer) == _peer_class(row)
    ]  # fmt: skip
    return min(same) / row["time_us_p50"] if same else None


def _peer_class(row: Row) -> str:
    return PRECISIONS[row["precision"]].peer_class


_INPUTS = ("fp32", "fp16", "bf16", "complex64")


def softmax_summary(data: Path) -> str:
    """Return a line for each size: percent of the copy rate, times torch or Triton."""
    lines: dict[str, dict[str, str]] = {}
    ours = timed_rows(read_rows(data / SOFTMAX), implementation=OURS)
    for row in sorted(ours, key=lambda row: (row["columns"], -row["rows"])):
        size = f"{row['rows']:.0f} x {row['columns']:.0f}"
        line = lines.setdefault(size, {"rows x columns": size} | dict.fromkeys(_INPUTS, ""))
        line[row["input"]] = _cell(100 * row["limit_fraction"], row["speedup"])
    return text_table(list(lines.values()), "rows x columns")


def transforms_summary(data: Path) -> str:
    """Return a line for each kind of plan: lengths, percent of the copy rate, times cuFFT."""
    ours, theirs = (fastest(own, "n") for own in beside(timed_rows(transform_rows(data))))
    groups: dict[str, list[tuple[Row, Row]]] = {}
    for length in sorted(ours.keys() & theirs.keys()):
        groups.setdefault(plan_kind(ours[length]), []).append((ours[length], theirs[length]))
    rows = []
    for kind, pairs in groups.items():
        rates = [100 * own["limit_fraction"] for own, _ in pairs]
        gains = [other["time_us_p50"] / own["time_us_p50"] for own, other in pairs]
        rows.append({
            "plan": kind, "lengths": str(len(pairs)),
            "from": f"{pairs[0][0]['n']:.0f}", "to": f"{pairs[-1][0]['n']:.0f}",
            "of copy (%)": _range(rates), "times cuFFT": _range(gains),
            "largest error": _worst(own for own, _ in pairs),
            "cuFFT's": _worst(other for _, other in pairs),
        })  # fmt: skip
    return text_table(rows, "plan")


def _range(values: Sequence[float]) -> str:
    least, most = number(min(values)), number(max(values))
    return least if least == most else f"{least} to {most}"


def _worst(rows: Iterable[Row]) -> str:
    return number(max(row["rel_frobenius"] for row in rows), scientific=True)


def gates_summary(data: Path) -> str:
    """Return a line for each number of qubits, at our slowest placement and cuStateVec's."""
    ours, theirs = (slowest_placement(own) for own in beside(timed_rows(gate_rows(data))))
    return text_table([
        {
            "qubits": str(qubits), "ours (ms)": _ms(own), "cuStateVec (ms)": _ms(theirs[qubits]),
            "of limit (%)": number(100 * own["limit_fraction"]),
            "error": _worst([own]), "cuStateVec's": _worst([theirs[qubits]]),
        }
        for qubits, own in sorted(ours.items())
    ])  # fmt: skip


def _ms(row: Row) -> str:
    return number(1e-3 * row["time_us_p50"])


def circuits_summary(data: Path) -> str:
    """Return a line for each circuit: our passes beside the fastest width of cuStateVec."""
    ours, others = beside(timed_rows(circuit_rows(data)))
    theirs = fastest(timed_rows(others, implementation="custatevec"), "workload")
    found = []
    for (workload,), own in fastest(ours, "workload").items():
        other = theirs[(workload,)]
        found.append({
            "circuit": str(workload).removeprefix("circuit-"), "passes": str(own["algorithm"]),
            "ours (ms)": _ms(own), "predicted (ms)": number(1e-3 * own["predicted_us"]),
            "cuStateVec (ms)": _ms(other), "fused": str(other["algorithm"]),
            "times": f"{other['time_us_p50'] / own['time_us_p50']:.2f}",
            "error": _worst([own]), "cuStateVec's": _worst([other]),
        })  # fmt: skip
    return text_table(found, "circuit", "passes", "fused")


def study_summary(name: str) -> Callable[[Path], str]:
    """Return a line for each workload: our times in µs, times the fastest peer's, failures.

    A result of ours that is not verified has its verdict in place of its time.
    """

    def table(data: Path) -> str:
        rows = read_rows(data / name)
        lines: dict[str, dict[str, str]] = {}
        for row in rows:
            if row["implementation"] == OURS:
                line = lines.setdefault(
                    row["workload"], {"workload": row["workload"]} | dict.fromkeys(PRECISIONS, "")
                )
                verdict = row["verdict"]
                line[row["precision"]] = verdict or _cell(row["time_us_p50"], row["speedup"])
        failed = [
            f"- {row['workload']}, {row['implementation']} at {row['precision']}: "
            f"{row['verdict']}; {row['reason'] or 'no reason given'}"
            for row in rows if row["verdict"]
        ]  # fmt: skip
        said = "Not verified:\n\n" + "\n".join(failed) if failed else "Every result is verified."
        return f"{text_table(list(lines.values()), 'workload')}\n{said}\n"

    return table


def ceilings_table(data: Path) -> str:
    """Return the H200's measured limits: copy rate, and each format's real matrix rate."""
    ceilings = Ceilings.from_json((data / "h200-ceilings.json").read_text(encoding="utf-8"))
    rates = {f"{name} (TFLOP/s)": number(rate) for name, rate in ceilings.tflops.items()}
    return text_table([{"copy (GB/s)": number(ceilings.copy_gbytes_per_s)} | rates])


SUMMARIES: dict[str, Callable[[Path], str]] = {
    "h200-ceilings": ceilings_table,
    "h200-products": products_summary(LARGE, SMALL),
    "h200-batched-products": products_summary(BATCHED),
    "h200-softmax": softmax_summary,
    "h200-transforms": transforms_summary,
    "h200-gates": gates_summary,
    "h200-circuits": circuits_summary,
    "h200-study": study_summary(H200),
    "h200-default-study": study_summary(H200_DEFAULT),
    "cpu-study": study_summary(CPU),
}
