"""Sizes drawn at random or given: how often ours are slower than the best library, by how much.

    python -m benchmarks.sweep softmax --cases 200 --seed 20261123 --csv softmax.csv
    python -m benchmarks.sweep gemm --cases 40 --seed 20261123 --plans 0
    python -m benchmarks.sweep herk --sizes --csv herk.csv

A seed draws the sizes, so nobody chooses them: give the day's date. Distributions stand in the
modules of `benchmarks.sweep`: products of 32 to 16384 with batches, ops and 16-bit results;
softmaxes of 16 to 2^20 columns, all operations and kinds, and few_rows of 1 to 4096; transforms of
length 8 to 2^20; gates of 1 to 7 qubits with up to 3 controls on 20 to 30; small ones of 1 to 512
on every axis; filter banks of 8 to 4096 channels and 4 to 32 taps; 1 to 2048 detected beams of 16
to 512 antennas; Hermitian products of 16 to 4096 inputs; circuits of 50 to 200 gates on 8 to 28
qubits; images of 2 to 512 antennas; Hermitian systems of 1 to 128 rows; spectral estimates of 8 to
16384 points; shots, marginals and Pauli strings of states of 20 to 28 qubits; dense systems of
64 to 8192 equations.

``--sizes`` measures named sizes in their place: those of `benchmarks/sweep/named_sizes.toml`, or of
another file of that form. More of each result is checked then, and its rate stands beside that of
cuBLAS's real product, which is timed in turn with the calls.

Ours, through the public functions, and every installed library run in one process on the same
operands, in rows of calls behind a held stream, in turn, the host's time beside. Results
are checked against SciPy in fp64, large ones on a sample. For every ``--plans``-th case the
candidate plans of one precision are timed too. Products, Hermitian ones too, have those whose
estimate is below 1.5 times the least one, softmax has all, transforms have cuFFT and the best of
each kind, and gates have the kernels of their width. The regret is the time of the chosen plan over
the fastest one's. Kernels are compiled before anything is timed, by several processes.
``--part I/N`` measures each N-th case, so that N cards share a sweep: the rows of all parts are
those of the whole.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import asdict
from functools import partial
from pathlib import Path

from argand import Device
from argand.device import available_cores

from benchmarks.harness.measuring import chosen_device, release
from benchmarks.harness.rows import write_rows
from benchmarks.sweep.case import Case, Row
from benchmarks.sweep.checking import DeferredCheck
from benchmarks.sweep.compiling import WHOLE, Part, compile_calls, compile_plans, with_plans
from benchmarks.sweep.draws import SWEEPS, drawn
from benchmarks.sweep.given import NAMED
from benchmarks.sweep.measuring import Measurement, measured, with_accuracy, with_ratios
from benchmarks.sweep.regrets import PlanTimes, plan_rows, plan_times
from benchmarks.sweep.summary import summary
from workflow.accuracy import Accuracy
from workflow.threads import by_threads

_PLANS = 10
"""``--plans`` of drawn cases on a GPU, where the command does not say."""
_CHECKED_AT_ONCE = 8
"""Cases whose results are being checked while the next are measured."""


def main(argv: Sequence[str] | None = None) -> int:
    """Draw, measure and sum up; the exit status is 1 where a result of ours did not verify."""
    parser = _parser()
    arguments = parser.parse_args(argv)
    device = chosen_device(arguments.device)
    if arguments.plans is None:
        drawn_on_gpu = device.backend == "cuda" and arguments.sizes is None
        arguments.plans = _PLANS if drawn_on_gpu else 0
    elif arguments.plans and device.backend == "cpu":
        parser.error("--plans: candidate plans are those of a GPU, and this is a CPU")
    if arguments.only_plans and not arguments.plans:
        parser.error("--only-plans: no case has all plans")
    if arguments.seed is None:
        if arguments.sizes is None:
            parser.error("one of --seed, such as the day's date, and --sizes is needed")
        arguments.seed = 1
    given = arguments.what, arguments.cases, arguments.seed, arguments.sizes
    if arguments.cases < 1 or arguments.seed < 0:
        parser.error("--cases must be at least 1, and --seed at least 0")
    try:
        cases = drawn(*given)
    except (OSError, ValueError) as error:
        parser.error(f"--sizes: {error}")
    started = time.perf_counter()
    if device.backend == "cuda":
        if not arguments.only_plans:
            compile_calls(*given, arguments.part)
        print(f"{device}; kernels compiled in {time.perf_counter() - started:.0f} s", flush=True)
        if arguments.plans:
            found = compile_plans(*given, arguments.part, every=arguments.plans)
            print(f"candidate plans: {found}", flush=True)
    rows: list[Row] = []
    with by_threads(available_cores()):  # the checks on the host
        for some in _measured(arguments, cases, device):
            rows += some
            _write(arguments.csv, rows)  # so that a run that is killed keeps them
    print(*summary(rows), f"{time.perf_counter() - started:.0f} s in all", sep="\n", flush=True)
    return int(any(row.implementation == "argand" and not row.verified for row in rows))


def _parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    found.add_argument("what", choices=SWEEPS)
    found.add_argument("--cases", type=int, default=50, help="sizes to draw")
    found.add_argument("--seed", type=int, help="such as the day's date; of --sizes 1")
    found.add_argument(
        "--sizes", type=Path, nargs="?", const=NAMED, metavar="FILE",
        help=f"the cases of a TOML file in place of drawn ones, without FILE of {NAMED.name}",
    )  # fmt: skip
    found.add_argument(
        "--plans",
        type=int,
        help=f"all plans of every case of this number are timed, 0: of none; on a GPU {_PLANS}, "
        "of --sizes 0",
    )
    found.add_argument(
        "--only-plans",
        action="store_true",
        help="no libraries, and of a case with all plans no other precision",
    )
    found.add_argument(
        "--part",
        type=part_of_cases,
        default=WHOLE,
        help="I/N: each N-th case from case I on, 0 <= I < N, so that N cards share a sweep",
    )
    found.add_argument("--seconds", type=float, help="no case begins after this many")
    found.add_argument("--device", choices=["auto", "cpu", "cuda"], default="auto")
    found.add_argument("--csv", type=Path, help="where the rows go")
    return found


def part_of_cases(text: str) -> Part:
    """Return the slice of cases of part ``I/N``. Raises ArgumentTypeError for anything else."""
    first, _, count = text.partition("/")
    if not (first.isdecimal() and count.isdecimal() and int(first) < int(count)):
        raise argparse.ArgumentTypeError(f"part must be I/N with 0 <= I < N, got {text!r}")
    return int(first), None, int(count)


def _write(path: Path | None, rows: Sequence[Row]) -> None:
    """Write the rows, and those of candidate plans to a file of their own beside it."""
    if path is None:
        return
    plans = [row for row in rows if row.implementation == "plan"]
    for file, some in (
        (path, [row for row in rows if row.implementation != "plan"]),
        (path.with_suffix(f".plans{path.suffix}"), plans),
    ):
        if some:
            write_rows(file, [asdict(row) for row in some])


def _measured(
    arguments: argparse.Namespace, cases: Sequence[Case], device: Device
) -> Iterator[list[Row]]:
    """Yield the rows of each case."""
    seed = arguments.seed
    started = time.perf_counter()
    checked: deque[tuple[Future[Sequence[Accuracy]] | None, Callable[[], list[Row]]]] = deque()
    for number, case in list(enumerate(cases))[slice(*arguments.part)]:
        ours, peers = case.ours(device), case.peers(device)
        taken = with_plans(number, ours, arguments.plans)
        if arguments.only_plans:
            if taken is None:
                continue
            ours, peers, taken = [ours[taken]], [], 0
        if arguments.seconds is not None and time.perf_counter() - started > arguments.seconds:
            print(f"stopped after {number} of {len(cases)} cases: {arguments.seconds:.0f} s")
            break
        operands = case.operands(device, seed + number)
        assess = case.assessment(operands, device)
        times = measured(case, [*peers, *ours], operands, assess, device, seed)
        plans = None if taken is None else plan_times(case, ours[taken], operands)
        later = assess.submit() if isinstance(assess, DeferredCheck) else None
        checked.append((later, partial(_rows, number, case, times, later, taken, plans)))
        del operands, assess
        release(device)
        while checked and (len(checked) > _CHECKED_AT_ONCE or _ready(checked[0][0])):
            yield checked.popleft()[1]()
    for _, rows in checked:
        yield rows()


def _ready(later: Future[Sequence[Accuracy]] | None) -> bool:
    return later is None or later.done()


def _rows(
    number: int, case: Case, times: Sequence[Measurement],
    later: Future[Sequence[Accuracy]] | None, taken: int | None, plans: PlanTimes | None,
) -> list[Row]:  # fmt: skip
    """Return the rows of a case, when its results are checked."""
    found = with_ratios(with_accuracy(times, () if later is None else later.result()))
    rows = [row for row in found if row.implementation != "argand"]
    for place, row in enumerate(row for row in found if row.implementation == "argand"):
        rows += plan_rows(case, row, plans) if place == taken else [row]
    print(_line(number, rows), flush=True)
    return rows


def _line(number: int, rows: Sequence[Row]) -> str:
    ours = [row for row in rows if row.implementation == "argand"]
    cells = [
        f"{row.precision} {row.time_us:.1f} us" + (f" x{row.ratio:.2f}" if row.ratio else "")
        + (f" regret {row.regret:.2f}" if row.regret else "")
        if row.verified and row.time_us is not None else f"{row.precision} FAILED: {row.reason}"
        for row in ours
    ]  # fmt: skip
    return f"{number:4} {rows[0].operation} {rows[0].shape} {rows[0].kind}: " + ", ".join(cells)


if __name__ == "__main__":
    sys.exit(main())
