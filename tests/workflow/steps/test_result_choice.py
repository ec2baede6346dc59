"""The precision that `auto` delivers, from times of a simulated machine, idle and under load."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import pytest
from argand.device import cpu

from workflow.measuring.spread import WIDEST
from workflow.measuring.timing import measure_in_turn
from workflow.preflight.loading import load_study
from workflow.records import Record
from workflow.steps.result_choice import CLEARLY, DeliveryError, choices, choose, clearly_faster
from workflow.workloads.base import Workload

ERRORS = {"fp64": 1e-16, "fp32": 1e-7, "3xtf32": 2e-7, "3xfp16": 2e-7, "tf32": 3e-4, "bf16": 3e-3}


def workload(**keys: object) -> Workload:
    case = {"kind": "gemm", "m": 2, "n": 2, "k": 2, **keys}
    return load_study({"workloads": {"w": case}}).workload("w")


def record(
    precision: str,
    time: float,
    width: float = 0.02,
    *,
    backend: str = "cuda",
    verified: bool = True,
) -> Record:
    error = ERRORS.get(precision, 1e-9)
    return Record(
        workload="w", kind="gemm", implementation="argand", precision=precision, algorithm="x",
        device="d", backend=backend, rel_frobenius=error, error_limit=error, time_us_p50=time,
        time_us_low=time * (1 - width / 2), time_us_high=time * (1 + width / 2),
        settled=width <= WIDEST,
        verdict="verified" if verified else "suspect", verified=verified,
        reason="" if verified else "suspect",
    )  # fmt: skip


def test_the_fastest_within_the_tolerance() -> None:
    found = [record("fp64", 9), record("fp32", 6), record("3xfp16", 3), record("tf32", 1)]
    assert choose(workload(), found).precision == "3xfp16"
    assert choose(workload(tolerance=1e-2), found).precision == "tf32"
    assert choose(workload(tolerance=1e-12), found).precision == "fp64"
    assert choose(workload(), [*found[:2], record("3xfp16", 3, verified=False)]).precision == "fp32"


def test_a_peers_result_is_no_product() -> None:
    peer = replace(record("tf32", 1), implementation="cupy")
    assert choose(workload(tolerance=1e-2), [record("fp32", 6), peer]).implementation == "argand"
    with pytest.raises(DeliveryError, match="nothing was computed"):
        choose(workload(tolerance=1e-2), [peer])


@pytest.mark.parametrize(
    ("accurate", "other"),
    [("fp32", "6xint8"), ("7xint8", "fp32"), ("fp64", "14xint8"), ("15xint8", "fp64")],
)
def test_exact_integers_stand_among_precisions_by_what_they_lose(accurate: str, other: str) -> None:
    """The more accurate one is taken at equal times, whatever the order, else the faster one."""
    found = [record(accurate, 6), record(other, 6)]
    assert choose(workload(tolerance=1e-2), found).precision == accurate
    assert choose(workload(tolerance=1e-2), found[::-1]).precision == accurate
    assert choose(workload(tolerance=1e-2), [found[0], record(other, 1)]).precision == other


def test_of_a_study_the_products_and_the_reasons_for_none() -> None:
    found = [record("fp32", 6), record("3xfp16", 3), record("bf16", 1)]
    one, other = workload(), workload(tolerance=1e-12)
    assert choices([one], found) == ({"w": "3xfp16"}, {})
    delivered, failures = choices([other], found)
    assert delivered == {}
    assert "is not to be had" in failures["w"]
    assert "Give a tolerance of 1e-07 or more, or measure a more accurate" in failures["w"]


def test_a_tolerance_that_nothing_of_the_cpu_has_is_named_before_its_models() -> None:
    models = [record("3xtf32", 6, backend="cpu"), record("bf16", 1, backend="cpu")]
    own = replace(record("fp32", 6, backend="cpu"), error_limit=2.811e-7)
    with pytest.raises(DeliveryError, match=r"Give a tolerance of 2\.9e-07 or more, or measure"):
        choose(workload(tolerance=1e-12), [own, *models])
    with pytest.raises(DeliveryError, match="models of a GPU's: measure one of them too"):
        choose(workload(tolerance=1e-2), models)


def test_of_equal_times_the_more_accurate() -> None:
    """Where intervals overlap, and where they do not but a machine under load would let them."""
    assert choose(workload(), [record("3xfp16", 4.9), record("fp32", 5.0)]).precision == "fp32"
    assert choose(workload(), [record("fp32", 5.0), record("3xfp16", 4.6)]).precision == "fp32"
    assert choose(workload(), [record("3xfp16", 5.0), record("3xtf32", 5.0)]).precision == "3xtf32"


def test_unsettled_times_are_compared_by_their_lower_ends() -> None:
    """Their intervals overlap: 2.4 to 8.8 and 1.2 to 2.8."""
    slow = replace(record("fp64", 3), time_us_low=2.4, time_us_high=8.8, settled=False)
    fast = replace(record("fp32", 1.5), time_us_low=1.2, time_us_high=2.8, settled=False)
    assert choose(workload(), [slow, fast]).precision == "fp32"
    near = replace(fast, time_us_low=2.3)
    assert choose(workload(), [slow, near]).precision == "fp64"
    # Of long calls on the CPU, where load may have made them so, fp32 counts as faster.
    found = [replace(one, backend="cpu", time_us_p50=9e3) for one in (slow, near)]
    assert choose(workload(), found).precision == "fp32"
    # A GPU is not delayed by other programs, so its long calls are compared as short ones.
    found = [replace(one, time_us_p50=9e3) for one in (slow, near)]
    assert choose(workload(), found).precision == "fp64"


def test_settled_times_whose_intervals_overlap_choose_the_more_accurate() -> None:
    slow, fast = record("fp64", 3), record("fp32", 2)
    assert choose(workload(), [slow, fast]).precision == "fp32"
    wide = replace(fast, time_us_high=slow.time_us_low)
    assert choose(workload(), [slow, wide]).precision == "fp64"


def test_two_steps_that_are_each_too_small_may_be_one() -> None:
    found = [record("fp64", 1.08), record("fp32", 1.0), record("3xfp16", 0.95)]
    assert 1.08 / 1.0 < CLEARLY <= 1.08 / 0.95
    assert choose(workload(), found).precision == "3xfp16"


def test_on_the_cpu_no_model_is_a_product() -> None:
    found = [record("fp32", 6, backend="cpu"), record("3xtf32", 1, backend="cpu")]
    assert choose(workload(), found).precision == "fp32"
    assert choose(workload(precision="3xtf32"), found).precision == "3xtf32"  # by its name
    with pytest.raises(DeliveryError, match="auto takes fp64 and fp32 alone"):
        choose(workload(), found[1:])


def test_streamed_results_have_no_interval() -> None:
    fast, slow = (
        Record(
            workload="w", kind="gemm", implementation="argand", precision="fp32", algorithm="x",
            device="d", time_us_p50=time,
        )
        for time in (1.0, 2.0)
    )  # fmt: skip
    assert clearly_faster(fast, slow)
    assert not clearly_faster(slow, fast)


Takes = Callable[[float], float]


def idle(rng: random.Random) -> Takes:
    """A call takes one percent more or less."""
    return lambda seconds: seconds * rng.uniform(0.99, 1.01)


def burners(rng: random.Random, others: int) -> Takes:
    """Other programs have the cores in turn with ours, each for some four milliseconds at a time.

    The state, ours or the other's, goes on from call to call.
    """
    left = [rng.uniform(0, 0.004)]

    def takes(seconds: float) -> float:
        passed, expected = 0.0, seconds * rng.uniform(0.97, 1.1)
        while expected > left[0]:
            expected -= left[0]
            passed += left[0] + others * rng.uniform(0.003, 0.005)
            left[0] = rng.uniform(0.003, 0.005)
        left[0] -= expected
        return passed + expected

    return takes


def slowing(rng: random.Random) -> Takes:
    """A clock that loses a third while all is timed."""
    done = [0.0]

    def takes(seconds: float) -> float:
        done[0] += seconds
        return seconds * rng.uniform(0.98, 1.02) * (1 + min(done[0], 1.0) / 2)

    return takes


def delivered(times: Mapping[str, float], takes: Takes) -> str:
    """The precision that `auto` takes where the precisions' calls take so long on a machine."""
    now = [0.0]

    def call(seconds: float) -> Callable[[], None]:
        def made() -> None:
            now[0] += takes(seconds)

        return made

    tasks = [[call(seconds)] for seconds in times.values()]
    found = measure_in_turn(tasks, cpu(), clock=lambda: now[0])
    records = []
    for precision, timing in zip(times, found, strict=True):
        records.append(
            replace(
                record(precision, timing.time_us_p50, backend="cpu"),
                time_us_low=timing.time_us_low,
                time_us_high=timing.time_us_high,
                settled=timing.settled,
            )
        )
    return choose(workload(), records).precision


@pytest.mark.parametrize(
    ("seconds", "ratio", "expected"),
    [
        *itertools.product((2e-5, 1e-3, 6e-3, 4e-2), (2.0, 1.5), ("fp32",)),
        # As fast as each other are calls that take Python's time alone, which is short.
        (2e-5, 1.0, "fp64"),
        (1e-4, 1.0, "fp64"),
    ],
)
def test_ten_runs_idle_and_under_load_deliver_the_same(
    seconds: float, ratio: float, expected: str
) -> None:
    times = {"fp64": seconds * ratio, "fp32": seconds, "3xtf32": 3 * seconds, "bf16": seconds / 9}
    kinds = (idle, partial(burners, others=1), partial(burners, others=3), slowing)
    machines = [make(random.Random(n)) for make in kinds for n in range(10)]
    assert [delivered(times, takes) for takes in machines] == [expected] * 40
