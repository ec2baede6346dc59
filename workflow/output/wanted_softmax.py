"""What was wanted of the GPU's softmax, held against what a benchmark measured.

A share of the device's copy rate in the same run, over all widths that a want names, and times
PyTorch's. Nothing here decides whether a result is right; the rows are verified.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from workflow.output.recorded import Row, timed_rows


@dataclass(frozen=True)
class Want:
    """Rows of one kind between two widths: at least this share of the copy rate.

    ``few`` rows, up to 64, or more; ``least_ratio`` is times torch instead of a share.
    """

    kind: str
    least_columns: int
    most_columns: int
    share: float = 0.0
    least_ratio: float = 0.0
    few: bool = False


_FEW_ROWS = 64
_LONGEST = 1 << 20
WANTS: tuple[Want, ...] = (
    Want("fp32", 256, 32768, 0.93),
    Want("fp32", 50257, _LONGEST, 0.82),
    *(Want(kind, 256, 65536, 0.90) for kind in ("fp16", "bf16")),
    *(Want(kind, 131072, _LONGEST, 0.80) for kind in ("fp16", "bf16")),
    Want("complex64", 64, 4096, 0.90),
    Want("fp32", _LONGEST, _LONGEST, least_ratio=3, few=True),
    *(Want(kind, 16, _LONGEST, least_ratio=1) for kind in ("fp32", "fp16", "bf16")),
)


def judged_softmax(rows: Sequence[Row]) -> list[dict[str, str]]:
    """A line for each want and width that the rows tell about."""
    found = []
    for want in WANTS:
        for ours in _rows(rows, want, "argand"):
            theirs = [row for row in _rows(rows, want, "torch") if _size(row) == _size(ours)]
            if want.share:
                share = ours["limit_fraction"]
                wanted, measured, met = f"{want.share:g} of copy", f"{share:.3f}", want.share
            elif theirs:
                share = theirs[0]["time_us_p50"] / ours["time_us_p50"]
                wanted, measured = f"{want.least_ratio:g} x torch", f"{share:.3g} x"
                met = want.least_ratio
            else:
                continue
            rows_, columns = _size(ours)
            found.append({
                "kind": want.kind, "rows": str(rows_), "columns": str(columns), "wanted": wanted,
                "measured": measured, "met": "yes" if share >= met else "no",
            })  # fmt: skip
    return found


def _rows(rows: Sequence[Row], want: Want, implementation: str) -> list[Row]:
    """Verified rows of a want, by width."""
    found = [
        row for row in timed_rows(rows, implementation=implementation, input=want.kind)
        if want.least_columns <= row["columns"] <= want.most_columns
        and (row["rows"] <= _FEW_ROWS) == want.few
    ]  # fmt: skip
    return sorted(found, key=lambda row: row["columns"])


def _size(row: Row) -> tuple[int, int]:
    return int(row["rows"]), int(row["columns"])
