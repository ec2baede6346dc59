"""The stage step: a workload's operands into a staged file."""

from __future__ import annotations

from dataclasses import replace
from logging import Logger
from pathlib import Path

from workflow.data import Array, Coordinate, Staged
from workflow.drawn import Drawn, Stretched
from workflow.inputs.axes import sizes_in_words
from workflow.inputs.dates import date_in
from workflow.inputs.lacking import lacking_in_words
from workflow.storage.certificates import CAVEATS
from workflow.storage.memory import in_words, limited_memory, machine_memory, scratch_in
from workflow.storage.staged import write_staged
from workflow.workloads.base import Workload


def stage(workload: Workload, files: list[Path], staged_path: Path, log: Logger) -> None:
    """Draw or read the operands; products of other workloads are the last of ``files``.

    Drawn operands and another workload's product are never in memory whole, and a user's file that
    does not fit there goes through a scratch file beside the staged one. Raises MemoryError where
    they need more than the machine has all the same, before it begins to swap.
    """
    names = workload.depends_on()
    upstream = dict(zip(names, files[len(files) - len(names) :], strict=True))
    there = machine_memory()
    try:
        with limited_memory(there), scratch_in(staged_path.parent):
            staged = workload.staging(upstream)
    except MemoryError as error:
        raise MemoryError(
            f"{workload.name}: its operands do not fit into the {in_words(there)} of this machine "
            f"({error})"
        ) from error
    remark = workload.remark(staged)
    if found := caveats(staged, remark):
        staged = replace(staged, attributes={**staged.attributes, CAVEATS: found})
    write_staged(staged_path, staged, workload=workload.name, kind=workload.kind)
    log.info("%s", "; ".join(filter(None, (remark, understood(staged)))))


def understood(staged: Staged) -> str:
    """Return one line: operands' axes, how they came from a file's, and what stands along them."""
    shown: dict[str, Array | Drawn | Stretched] = {**staged.drawn, **staged.operands}
    mapped = staged.attributes.get("axes", {})
    parts = [
        f"{name} {mapped.get(name) or sizes_in_words(staged.axes[name], data.shape)}"
        for name, data in shown.items()
    ]
    parts += [along_in_words(name, one) for name, one in staged.coordinates.items()]
    return "; ".join(filter(None, (*parts, caveats(staged))))


def along_in_words(name: str, one: Coordinate) -> str:
    """Return the ends of what stands along one axis, with unit and date; "" for anything else."""
    if one.values.ndim != 1:
        return ""
    first, last = _ends(one.values.flat[0], one.values.flat[-1])
    span = f"{first} to {last}"
    if one.values.size == 1:
        span = f"{one.values.flat[0]:.10g}" if one.values.dtype.kind == "f" else first
    since = date_in(one.long_name).partition(", ")[0]
    return f"{name} {span} {one.units}{f' since {since}' if since else ''}".rstrip()


def caveats(staged: Staged, remark: str = "") -> str:
    """Return a remark on the data before a result is trusted, "" if none.

    A ``remark`` of the workload stands first; then what was made 0, is lost or was never written,
    and what a file has along an axis that is no coordinate; last, what is not finite.
    """
    said = [remark, lacking_in_words(staged.attributes)]
    let_through = [
        f"{counts['nan']} NaN and {counts['inf']} Inf let through in {name}"
        for name, counts in staged.attributes.get("nonfinite", {}).items()
        if any(counts.values())
    ]
    said += [*let_through, "errors are of finite results alone"] if let_through else []
    return "; ".join(filter(None, said))


def _ends(first: object, last: object) -> tuple[str, str]:
    """Return both in words; numbers with as many digits as tell them apart, six at least."""
    if not isinstance(first, float) or not isinstance(last, float):
        return str(first), str(last)
    digits = next((n for n in range(6, 17) if f"{first:.{n}g}" != f"{last:.{n}g}"), 6)
    return f"{first:.{digits}g}", f"{last:.{digits}g}"
