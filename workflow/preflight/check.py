"""The check of a study against the world outside its config, before any job starts.

``argand check STUDY`` says it, without running anything.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

from argand import PRECISIONS
from argand.device import DeviceError, resolve
from argand.precision import any_precision

from benchmarks.peers import study_names
from workflow.config.case import Case
from workflow.config.file_input import products_in
from workflow.config.mistakes import StudyError, attach, nearest
from workflow.counted import counted
from workflow.data import Product, Staged
from workflow.files.input_error import InputError
from workflow.preflight import budget
from workflow.preflight.file_names import (
    clashing_names,
    folder_of,
    named_folder,
    repetitive_names,
    unusable_inputs,
)
from workflow.preflight.loading import load_study
from workflow.preflight.needs_table import needs_table
from workflow.preflight.products_list import products_list
from workflow.shards import choose_axis
from workflow.storage.product_arrays import check_product
from workflow.storage.run_folder import RESULTS
from workflow.study import Study
from workflow.workloads import KINDS


def check_study(study: Study, *, device_here: bool = True) -> None:
    """Look for what is wrong outside the config: device, files, workloads that need each other.

    Disk, memory and time that the workloads in which nothing is wrong ask for must be there too
    (`workflow.preflight.budget`). Reads the headers of the user's files and no data. Raises
    StudyError with every mistake.

    Args:
        study: what `load_study` returned.
        device_here: whether this machine computes, so that its devices, disk and memory must do.
    """
    mistakes = []
    device = None
    if device_here:
        try:
            device = resolve(study.device)
        except DeviceError as error:
            mistakes.append(str(error))
    dependencies = _wrong_dependencies(study)
    mistakes += [*dependencies, *clashing_names(study), *repetitive_names(study)]
    products: dict[str, Product] = {}
    right: dict[str, Case] = {}
    for name in study.names if dependencies else _in_order(study):
        keys = type(study.workloads[name]).model_fields
        before = len(mistakes)
        mistakes += _unknown_baselines(name, study.workloads[name].baselines)
        mistakes += _of_no_use(name, study.workload(name).case)
        if device is not None and device.backend == "cpu":
            mistakes += _only_models(name, study.workloads[name])
        if not set(study.upstream(name)) <= set(products):
            continue  # what it reads has a mistake, which is said
        upstream = {other: products[other] for other in study.upstream(name)}
        try:
            study.workload(name).check(upstream)
            mistakes += unusable_inputs(study, name)
            outline = study.workload(name).outline(upstream)
            mistakes += _wrong_shards(study, name, outline, keys)
            budget.require_coordinates(study.workload(name), outline)
            budget.require_chunks(study.workload(name), outline)
            product = study.workload(name).product_outline(outline)
            check_product(product)
            products[name] = product
        except ValueError as error:
            texts = error.mistakes if isinstance(error, InputError) else [str(error)]
            mistakes += [attach(("workloads", name), text, keys) for text in texts]
        if len(mistakes) == before and set(upstream) <= set(right):
            right[name] = study.workloads[name]
    if right and (device is not None or not device_here):
        mistakes += budget.beyond(study.model_copy(update={"workloads": right}), device)
    if mistakes:
        raise StudyError(mistakes)


def checked_study(
    config: Mapping[str, Any] | Path,
    overrides: Mapping[str, Any] | None = None,
    *,
    device_here: bool = True,
    folder: Path = RESULTS,
) -> Study:
    """Return a study that `load_study` reads and `check_study` finds nothing wrong with.

    Raises StudyError with the mistakes of both: where some workloads are wrong in the config, the
    files of the others are checked all the same.
    """
    try:
        study = load_study(config, overrides, folder=folder)
    except StudyError as error:
        beside = _beside(error.rest, error.wrong, device_here)
        raise StudyError([*error.mistakes, *beside]) from None
    check_study(study, device_here=device_here)
    return study


def _beside(rest: Study | None, wrong: Sequence[str], device_here: bool) -> list[str]:
    """Return the mistakes outside the config of the workloads that read nothing of a wrong one."""
    if rest is None:
        return []
    right = {
        name: case for name, case in rest.workloads.items() if not _reads(rest, name, wrong, ())
    }
    try:
        check_study(rest.model_copy(update={"workloads": right}), device_here=device_here)
    except StudyError as error:
        return error.mistakes
    return []


def _reads(rest: Study, name: str, wrong: Sequence[str], through: tuple[str, ...]) -> bool:
    """Return whether a workload reads a wrong one's product, or one that was made of it."""
    return any(
        other not in through and _reads(rest, other, wrong, (*through, name))
        if other in rest.workloads
        # A wrong workload may have been swept: its cases have its name and a value.
        else any(other == one or other.startswith(f"{one}-") for one in wrong)
        for other in rest.upstream(name)
    )


def _unknown_baselines(name: str, baselines: str | tuple[str, ...] | None) -> list[str]:
    """Return the peers that no kind has; whether one is installed, the job says where it runs."""
    known = sorted(study_names())
    named = baselines if isinstance(baselines, tuple) else ()
    return [
        f"workloads.{name}.baselines: must be auto, none, or of {known}, got {peer!r}"
        f"{nearest(peer, known)}"
        for peer in named
        if peer not in known
    ]


def _only_models(name: str, case: Case) -> list[str]:
    """Return mistakes of auto on the CPU, which has nothing to take (`result_choice.choose`)."""
    measured = case.precisions or ()
    if case.precision != "auto" or any(any_precision(one).exact_operands for one in measured):
        return []
    own = [one for one, row in PRECISIONS.items() if row.exact_operands]
    return [
        f"workloads.{name}.precisions: must have one of {own} for precision: auto on the CPU, "
        f"where the others are models of a GPU's, got {list(measured)}"
    ]


def _wrong_shards(study: Study, name: str, outline: Staged, known: Iterable[str]) -> list[str]:
    """Return mistakes of shards: more than an axis has entries, or a kind without such an axis."""
    case, workload = study.workloads[name], study.workload(name)
    if case.shards == 1:
        return []
    try:
        choose_axis(workload.split_axes(outline.axes), outline.axis_lengths(), case.shards)
    except ValueError as error:
        return [attach(("workloads", name), f"shards: {error}", known)]
    return []


def _in_order(study: Study) -> list[str]:
    """Return the workloads, each after those whose products it reads."""
    order = TopologicalSorter({name: study.upstream(name) for name in study.names})
    return list(order.static_order())


def _wrong_dependencies(study: Study) -> list[str]:
    """Return products that are read but not made, do not fit the kind, or wait for each other."""
    mistakes = []
    for name in study.names:
        read = products_in(study.workloads[name].data_source)
        mistakes += [_wrong_upstream(study, name, key, other) for key, other in read.items()]
    if any(mistakes):
        return [text for text in mistakes if text]
    try:
        _in_order(study)
    except CycleError as error:
        around = error.args[1]
        name, other = around[1], around[0]
        read = products_in(study.workloads[name].data_source)
        key = next(key for key, found in read.items() if found == other)
        return [
            f"workloads.{name}.{key}: these read each other's products: "
            f"{' <- '.join(reversed(around))}"
        ]
    return []


def _of_no_use(name: str, case: Case) -> list[str]:
    """Return a mistake for each choice of a precision that is not measured."""
    measured = case.precisions or ()
    return [
        f"workloads.{name}.{key}.{precision}: must be of the precisions that are measured, "
        f"{list(measured)}, got {precision!r}"
        for key in ("kernels", "rounding")
        for precision in getattr(case, key, {})
        if precision not in measured
    ]


def _wrong_upstream(study: Study, name: str, key: str, upstream: str) -> str:
    """Return a mistake where there is no such workload, or none of a kind that an input takes."""
    reads = KINDS[study.workloads[name].kind].reads if key == "input.workload" else None
    choices = [
        other
        for other, case in study.workloads.items()
        if other != name and (reads is None or case.kind in reads)
    ]
    if upstream in choices:
        return ""
    kinds = f" (kind {' or '.join(reads)})" if reads is not None else ""
    allowed = f"must be one of {choices}{kinds}"
    if not choices:
        allowed = f"must be another workload{kinds}, of which this study has none"
    return f"workloads.{name}.{key}: {allowed}, got {upstream!r}{nearest(upstream, choices)}"


_HELP = "Check the study files named on the command line and say what is wrong with them."


def main(words: Sequence[str] | None = None, overrides: Mapping[str, Any] | None = None) -> int:
    """Check the study files named on the command line and say what is wrong with them.

    ``overrides`` are keys that take the place of the studies' own.
    """
    parser = argparse.ArgumentParser(prog="argand check", description=_HELP)
    parser.add_argument("studies", metavar="STUDY", type=Path, nargs="+")
    parser.add_argument(
        "--out", metavar="PATH", help="where results go in place of results/<name of the file>"
    )
    parser.add_argument(
        "--elsewhere", action="store_true", help="other machines compute: this one needs no GPU"
    )
    parser.add_argument(
        "--brief", action="store_true", help="a line a study, without what each step needs"
    )
    given = parser.parse_args(words)
    wrong = []
    for path in given.studies:
        try:
            folder = named_folder(given.out) if given.out else folder_of(path)
            here = not given.elsewhere
            study = checked_study(path, overrides, device_here=here, folder=folder)
        except StudyError as error:
            wrong.append(f"{path}:\n{error}")
            continue
        device = None if given.elsewhere else resolve(study.device)
        where = f"on {device}, " if device else ""
        count = counted(len(study.names), "workload")
        print(f"{path}: {count} ({', '.join(study.names)}), {where}{budget.summary(study)}\n")
        if not given.brief:
            on_gpu = device.backend == "cuda" if device else study.device != "cpu"
            print(needs_table(study, gpu=on_gpu))
            print(f"What they make:\n\n{products_list(study)}\n")
    if wrong:
        print("\n".join(wrong), file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
