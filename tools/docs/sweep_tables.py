"""The table of sizes drawn at random, from what `benchmarks.sweep` wrote under docs/data/."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks.harness.recorded import plain_rows
from benchmarks.sweep.classes import Timed, compared
from benchmarks.sweep.quantiles import Quantiles, quantiles_of
from benchmarks.sweep.recorded import BOUND_BY_PRODUCTS, sweep_files
from workflow.tables.readable import Column, markdown_table

_COLUMNS = (
    Column("card", "card"),
    Column("sweep", "sweep"),
    Column("what", "what"),
    Column("cases", "cases", numeric=True),
    Column("slower", "slower", numeric=True),
    Column("worst", "worst", numeric=True),
    Column("p10", "p10", numeric=True),
    Column("median", "median", numeric=True),
    Column("mean", "geometric mean", numeric=True),
    Column("copy", "of copy: p10 / median", numeric=True),
)
_NOTHING = "–"


def sweep_table(data: Path) -> str:
    """Return a line for each operation and precision that a sweep has a ratio or a copy of."""
    lines = [line for found in sweep_files(data) for line in _lines(*found)]
    return markdown_table(_COLUMNS, lines)


def _verified(path: Path) -> list[Mapping[str, str]]:
    """Return the rows of ours whose results were verified."""
    return [
        row for row in plain_rows(path)
        if row["implementation"] == "argand" and row["verified"] == "True"
    ]  # fmt: skip


def _quantiles(rows: Iterable[Mapping[str, str]], column: str) -> Quantiles | None:
    return quantiles_of(float(row[column]) if row[column] else None for row in rows)


def _lines(card: str, sweep: str, path: Path) -> Iterator[dict[str, str]]:
    ours = _verified(path)
    yield from _class_lines(card, sweep, ours)
    for what in dict.fromkeys((row["operation"], row["precision"]) for row in ours):
        rows = [row for row in ours if (row["operation"], row["precision"]) == what]
        ratios, copies = (_quantiles(rows, name) for name in ("ratio", "of_copy"))
        moved = copies if what[0] not in BOUND_BY_PRODUCTS else None
        if ratios or moved:
            line = {"card": card, "sweep": sweep, "what": " ".join(what), "cases": str(len(rows))}
            yield line | _ratios(ratios) | {"copy": _copy(moved)}


def _class_lines(
    card: str, sweep: str, ours: Sequence[Mapping[str, str]]
) -> Iterator[dict[str, str]]:
    """Yield lines of products by class, where their sweep has some (`sweep.classes`)."""
    for name, some in _classes(ours).items():
        line = {"card": card, "sweep": sweep, "what": f"gemm {name}", "cases": str(some.count)}
        yield line | _ratios(some) | {"copy": _NOTHING}


def _classes(ours: Iterable[Mapping[str, str]]) -> Mapping[str, Quantiles]:
    """Return the quantiles of products by class."""
    return compared(
        Timed(
            (row["shape"], row["kind"]), row["precision"],
            float(row["time_us"]), float(row["ratio"]) if row["ratio"] else None,
        )
        for row in ours if row["operation"] == "gemm"
    )  # fmt: skip


def _copy(found: Quantiles | None) -> str:
    return f"{found.p10:.2f} / {found.median:.2f}" if found else _NOTHING


def _ratios(found: Quantiles | None) -> dict[str, str]:
    """Return the columns of ratios."""
    if found is None:
        return dict.fromkeys(("slower", "worst", "p10", "median", "mean"), _NOTHING)
    return {
        "slower": str(found.slower), "worst": f"{found.least:.2f}", "p10": f"{found.p10:.2f}",
        "median": f"{found.median:.2f}", "mean": f"{found.geometric_mean:.2f}",
    }  # fmt: skip


_PRODUCTS = ("tf32", "fp32 class", "fp16 beside tf32", "bf16 beside tf32")
"""Classes of products that a summary has a line for; other sweeps have one of all precisions."""


def summary_table(data: Path) -> str:
    """Return a line for each sweep, of products for each class, with the cards side by side."""
    lines: dict[str, dict[str, str]] = {}
    files = list(sweep_files(data))
    cards = dict.fromkeys(card for card, _, _ in files)
    for card, sweep, path in files:
        for what, ratios, copies in _pooled(sweep, _verified(path)):
            line = lines.setdefault(what, {"sweep": what})
            if ratios:
                line[f"{card}: slower"] = f"{ratios.slower} of {ratios.count}"
                line[f"{card}: worst"] = f"{ratios.least:.2f}"
                line[f"{card}: mean"] = f"{ratios.geometric_mean:.2f}"
            line[f"{card}: copy"] = _copy(copies)
    names = [(card, name) for card in cards for name in ("slower", "worst", "mean", "copy")]
    columns = (
        Column("sweep", "sweep"),
        *(
            Column(f"{card}: {name}", f"{card}: {_HEADINGS.get(name, name)}", numeric=True)
            for card, name in names
        ),
    )
    empty = {column.field: _NOTHING for column in columns}
    return markdown_table(columns, [empty | line for line in lines.values()])


_HEADINGS = {"mean": "geometric mean", "copy": "of copy: p10 / median"}


def _pooled(
    sweep: str, ours: Sequence[Mapping[str, str]]
) -> Iterator[tuple[str, Quantiles | None, Quantiles | None]]:
    """Yield the ratios and parts of a copy of a sweep, of products for each class."""
    if sweep != "gemm":
        moved = (row for row in ours if row["operation"] not in BOUND_BY_PRODUCTS)
        yield sweep, _quantiles(ours, "ratio"), _quantiles(moved, "of_copy")
        return
    tf32 = _quantiles((row for row in ours if row["precision"] == "tf32"), "ratio")
    found = {"tf32": tf32, **_classes(ours)}
    yield from ((f"{sweep} {name}", found[name], None) for name in _PRODUCTS if name in found)


_REGRET_COLUMNS = (
    Column("card", "card"),
    Column("what", "what"),
    Column("cases", "cases", numeric=True),
    Column("median", "median", numeric=True),
    Column("p90", "p90", numeric=True),
    Column("worst", "worst", numeric=True),
)


def regret_table(data: Path) -> str:
    """Return regrets, a line for each precision whose candidate plans were timed, and all."""
    lines = []
    for path in sorted(data.glob("*-sweep-*-plans.csv"), reverse=True):
        card = path.name.split("-", 1)[0].upper()
        rows = [row for row in plain_rows(path) if row["verified"] == "True" and row["regret"]]
        for what in (None, *dict.fromkeys(row["precision"] for row in rows)):
            found = quantiles_of(
                float(row["regret"]) for row in rows if what in (None, row["precision"])
            )
            if found:
                lines.append({
                    "card": card, "what": f"{rows[0]['operation']} {what or 'at any precision'}",
                    "cases": str(found.count), "median": f"{found.median:.2f}",
                    "p90": f"{found.p90:.2f}", "worst": f"{found.most:.2f}",
                })  # fmt: skip
    return markdown_table(_REGRET_COLUMNS, lines)


SWEEP_TABLES: dict[str, Callable[[Path], str]] = {
    "sweeps": sweep_table,
    "sweeps-summary": summary_table,
    "regrets": regret_table,
}
"""Tables by the names that pages call them."""
