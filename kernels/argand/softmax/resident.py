"""Threads of the rows that registers hold, by an estimate of their time. No GPU, no CuPy.

The constants are least squares of the times of 108 drawn cases on an H200, adjusted on 216 cases
(docs/experiments/2026-11-28-softmax-estimate.md).
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import product

from argand.device import Arch
from argand.multiprocessor import WARP
from argand.softmax.candidates import SoftmaxCandidate
from argand.softmax.formats import ELEMENT_BYTES
from argand.softmax.legality import value_registers
from argand.softmax.plan import RowPlan, SoftmaxForm, vector_for

_ROW_THREADS = (8, 16, *range(WARP, 256, WARP), *range(256, 512 + 1, 2 * WARP))
_CLUSTERS = (1, 2, 4)
_MIN_COLUMNS = 256
_BLOCK_BYTES = 512 * 64 * 4
"""Registers of the values of a block with 512 threads, half of a multiprocessor's."""
_LINE_BYTES = 128
"""Lanes that read less of a row at a time take a line of memory several times."""
_BYTES_A_CLOCK = 18.9
"""Bytes that a multiprocessor copies, read and written."""
_SCHEDULERS = 4
"""Schedulers of a multiprocessor, each of which issues an instruction a clock."""
_ROW_CLOCKS = 1360
"""Clocks of a block's row in which it copies nothing: latency, and the time that its threads wait
for each other."""
_CLUSTER_CLOCKS = 3270
"""The same for the threads of a cluster."""
_CLUSTER_LOSS = 0.068
"""Loss for each time that a cluster doubles: its blocks begin and end together."""
_WARP_INSTRUCTIONS = {False: 169, True: 320}
"""Instructions of a warp whatever it holds, by whether rows are unaligned."""
_VALUE_INSTRUCTIONS = {False: 22, True: 11.3}
"""Instructions of a warp for each value of a thread, by whether exponentials are approximate."""
_SHARPNESS = 10.0
"""Exponent of the mean of a row's clocks of issue and of copying: the larger, the sharper."""
_REGISTER_LOSS = 0.0009
"""Loss for each register of a thread's values, which it requests one after another."""
_HELD_LOSS = 0.0006 / 1024
"""Loss of packed rows whose results are as wide, for each byte that blocks of a multiprocessor hold
beyond `_HELD_BYTES`."""
_HELD_BYTES = 56 << 10
"""Bytes that keep memory busy."""
_ROWS_LOSS = 0.03
"""Loss of such rows where a block has several aligned ones: it ends with the slowest."""


def estimated_time(
    form: SoftmaxForm, plan: RowPlan, columns: int, blocks: float = math.inf
) -> float:
    """Return the time of a resident plan over that of a copy.

    The blocks of a multiprocessor share its memory's rate, as customers share a server: each takes
    it for a row, and then waits for others and for its own threads. The rate is lost while all
    wait, for which the fraction is Erlang's formula. A call begins with such a wait, and blocks are
    whole: ``blocks`` is how many rows each multiprocessor has of them on average.
    """
    read, written = ELEMENT_BYTES[form.input], ELEMENT_BYTES[form.written]
    moved = columns * (read + (written if form.operation != "logsumexp" else 0))
    copying = moved * plan.rows_a_block / plan.cluster / _BYTES_A_CLOCK
    of_values = plan.values * _VALUE_INSTRUCTIONS[form.approximate]
    of_warp = _WARP_INSTRUCTIONS[form.unaligned_rows] + of_values
    issuing = plan.block_threads // WARP * of_warp / _SCHEDULERS
    busy: float = (copying**_SHARPNESS + issuing**_SHARPNESS) ** (1 / _SHARPNESS)
    waiting = _ROW_CLOCKS if plan.cluster == 1 else _CLUSTER_CLOCKS
    all_wait = 1.0
    for count in range(1, plan.blocks + 1):
        all_wait *= waiting / busy
        all_wait /= count + all_wait
    later = max(0.0, 1 - plan.blocks / blocks)
    lost = 1 + later * all_wait / (1 - all_wait)
    uneven = 1.0 if blocks == math.inf else math.ceil(blocks) / blocks
    together = 1 - _CLUSTER_LOSS * (plan.cluster.bit_length() - 1)
    registers = value_registers(form, plan)
    steady = busy / copying * lost * uneven / together * (1 + _REGISTER_LOSS * registers)
    if form.packed and read == written and form.operation != "logsumexp":
        held = plan.blocks * plan.rows_a_block * columns * read
        if plan.cluster == 1 < plan.blocks:
            steady *= 1 + _HELD_LOSS * max(0, held - _HELD_BYTES)
        if plan.rows_a_block > 1 and not form.unaligned_rows:
            steady *= 1 + _ROWS_LOSS
    return steady + waiting / copying / blocks


def resident_candidate(
    form: SoftmaxForm, arch: Arch, rows: int, columns: int, sm_count: int
) -> SoftmaxCandidate | None:
    """Return the threads and blocks of least `estimated_time`, where no multiprocessor idles."""
    if rows < sm_count:
        return None
    times = {
        candidate: estimated_time(
            form, plan, columns, rows * plan.cluster / plan.rows_a_block / sm_count
        )
        for candidate, plan in _resident_plans(form, arch, columns)
    }
    return min(times, key=times.__getitem__, default=None)


@lru_cache(maxsize=256)
def _resident_plans(
    form: SoftmaxForm, arch: Arch, columns: int
) -> list[tuple[SoftmaxCandidate, RowPlan]]:
    """Return candidates and their plans.

    Short rows, those that are longer than a block holds, that are read by less than full accesses,
    or that are computed in fp64 have none: the estimate was not fitted to them.
    """
    access = form.vector * form.element_bytes
    full = form.vector == vector_for(form.input, form.written)
    if (
        form.compute_fp64
        or not full
        or not _MIN_COLUMNS < columns <= _BLOCK_BYTES // form.value_bytes
    ):
        return []
    found = []
    # A block alone on its multiprocessor has none that copies meanwhile. Exact exponentials of 16
    # bits take nearly as long as copying, and wide elements are requested eight accesses at a time.
    wide = ELEMENT_BYTES[form.input] > ELEMENT_BYTES["fp32"]
    for cluster, threads in product(_CLUSTERS, _ROW_THREADS):
        candidate = SoftmaxCandidate(threads, cluster)
        plan = candidate.plan(form, arch, columns) if threads * access >= _LINE_BYTES else None
        if plan is None:
            continue
        waits = wide or (form.half and not plan.packed(form))
        if not (waits and plan.blocks == 1):
            found.append((candidate, plan))
    return found
