"""The mutations: a place in a file, what is put there, and the tests that should see it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

_TESTS = Path(__file__).resolve().parents[1]
_FILES = {
    path.stem.removeprefix("test_"): str(path.relative_to(_TESTS.parent))
    for path in _TESTS.rglob("test_*.py")
}
"""The file of each module of tests: its name is there once."""


@dataclass(frozen=True)
class Mutation:
    """One error: ``before``, which the file holds once, becomes ``after``."""

    name: str
    file: str
    before: str
    after: str
    tests: tuple[str, ...]


def _in(folder: str, *rows: tuple[str, str, str, str, tuple[str, ...]]) -> list[Mutation]:
    return [
        Mutation(name, f"{folder}/{file}", before, after, tuple(_FILES[test] for test in tests))
        for name, file, before, after, tests in rows
    ]


_GEMM = ("numpy_backend_gemm", "numpy_gemm_range")
_SOFTMAX = ("numpy_softmax", "numpy_softmax_kinds")
_BUTTERFLY = ("numpy_butterflies", "dft_three_kernel")

KERNELS = _in(
    "kernels/argand",
    ("gemm: descale one side up", "gemm/cpu.py",
     "-(rows[block] + columns)", "-(rows[block] - columns)", _GEMM),
    ("gemm: transpose without conjugating", "gemm/cpu.py",
     'return np.conj(x) if op == "C" else x', "return x", _GEMM),
    ("gemm: lose the last k before a spill", "gemm/cpu.py",
     "k = slice(start, start + step)", "k = slice(start, max(start + step - 1, 1))", _GEMM),
    ("gemm: vectors with gaps go to BLAS as they lie", "gemm/cpu.py",
     "together = (along if rows == 1 else down) == item", "together = True", ("packing",)),
    ("gemm: C is read after the product", "gemm/cpu.py",
     "    if addend is not None:\n        target += addend",
     "    if addend is not None:\n        target += problem.beta * c", _GEMM),
    ("gemm: a packed operand is the caller's array", "gemm/cpu.py",
     "_copied(t) if np.may_share_memory(t, x) else t", "t", ("packing",)),
    ("gemm: split-K slices beyond the workspace", "gemm/candidates.py",
     "slices_bytes(choice, question.sizes) <= slices_capacity(choice, question)", "True",
     ("gemm_choice",)),
    ("gemm: conjugated beside packed is read in place", "gemm/question.py",
     "(self.conjugated or self.exchanges_k)", "self.exchanges_k", ("gemm_choice",)),
    ("gemm: a scheduled tile's row of the last group", "gemm/sm90/scheduler.py",
     "height = min(self.rows - group * largest, largest)", "height = largest",
     ("tile_division",)),
    ("gemm: a partial tile of a block that ends where a tile does", "gemm/sm90/scheduler.py",
     "return others - others // self.aligned_period(num_k_tiles)", "return others",
     ("tile_division",)),
    ("softmax: a row of -inf shifts by it", "softmax/cpu.py",
     "shift = np.where(nothing, 0, tile_max)", "shift = tile_max", _SOFTMAX),
    ("softmax: far tiles in one step", "softmax/cpu.py",
     "far = below < _FAR", "far = below < 100 * _FAR", _SOFTMAX),
    ("softmax: overlapping out is written at once", "softmax/cpu.py",
     "_in_place(rows, target) or not np.may_share_memory(rows, target)", "True",
     ("overlapping_out",)),
    ("softmax: logsumexp forgets the scale", "softmax/cpu.py",
     "total = scale * running_max + np.log", "total = running_max + np.log", _SOFTMAX),
    ("dft: flipped sign of the odd part", "dft/cpu.py",
     "q.imag, -q.real  #", "q.imag, q.real  #", ("numpy_dft",)),
    ("dft: a stage divides by half", "dft/cpu.py",
     "return (length - 1).bit_length() if", "return (length - 1).bit_length() - 4 if",
     ("numpy_dft",)),
    ("dft: the sum of a row is not descaled", "dft/cpu_butterfly.py",
     "total * factor * undo + rest", "total * factor + rest", _BUTTERFLY),
    ("dft: wrong twiddle index", "dft/cpu_butterfly.py",
     "twiddles[b * k % size] if", "twiddles[b * (k + 1) % size] if", _BUTTERFLY),
    ("dft: three-kernel result is the conjugate", "dft/cpu_three_kernel.py",
     "return np.conj(along(work, 1)", "return (along(work, 1)", _BUTTERFLY),
    ("gates: controls act where they are 0", "gates/cpu.py",
     "slice(1, 2) if axis in", "slice(0, 1) if axis in", ("gates",)),
    ("gates: controls of a diagonal act where they are 0", "gates/cpu.py",
     "slice(1, 2) if control", "slice(0, 1) if control", ("gates",)),
    ("gates: targets in the wrong order", "gates/cpu.py",
     "for target in reversed(form.targets)]", "for target in form.targets]", ("gates",)),
    ("gates: an early return for a diagonal target", "gates/canonical.py",
     "occupied ^ (occupied >> width)", "occupied & ~(occupied >> width)",
     ("gates", "gate_circuits")),
    ("rounding: ties away from even", "rounding.py",
     "np.uint32((1 << (dropped - 1)) - 1)", "np.uint32(1 << (dropped - 1))", ("rounding",)),
    ("rounding: an infinity decides a line's scale", "rounding.py",
     "    if not np.isfinite(largest).all():", "    if False:",
     ("rounding", "numpy_gemm_range", "numpy_backend_gemm")),
    ("rounding: the rest of an infinity", "rounding.py",
     "                rest[~np.isfinite(term)] = 0\n", "", ("rounding", *_GEMM)),
    ("files: no fsync of the file", "runtime/files/whole_files.py",
     "        _sync(temporary)\n", "", ("files", "faults", "blame")),
    ("files: no fsync of the folder", "runtime/files/whole_files.py",
     "        _sync(path.parent)\n", "", ("files", "faults", "blame")),
    ("files: a temporary file is left", "runtime/files/whole_files.py",
     "temporary.unlink(missing_ok=True)", "pass", ("files", "faults")),
)  # fmt: skip

WORKFLOW = _in(
    "workflow",
    ("bounds: half the truncations", "accuracy/bounds.py",
     "return 2 * k + 2 * instructions", "return k + instructions", ("bounds",)),
    ("bounds: alpha mixes no parts", "accuracy/bounds.py",
     "(abs(alpha.real) + abs(alpha.imag)) / abs(alpha) if alpha else 1.0", "1.0",
     ("bounds", "matrix_product_accuracy")),
    ("bounds: no addend's roundings", "accuracy/bounds.py",
     "return max(product, roundings(ADDEND_ROUNDINGS, u) if beta else 0.0)", "return product",
     ("bounds", "matrix_product_accuracy")),
    ("bounds: an image loses nothing by its scale", "accuracy/image_bounds.py",
     "lost = 2 * antennas**2 * of_largest", "lost = 0.0", ("bounds",)),
    ("bounds: a tail without its linear part", "accuracy/probabilistic.py",
     " + 2 * t / max(components, 1))", ")", ("probable_sums",)),
    ("assessment: improbable is held to possible", "accuracy/assessment.py",
     "            error <= probable,", "            error <= worst,",
     ("assessment", "matrix_product_accuracy")),
    ("assessment: NaN is within a bound", "accuracy/assessment.py",
     "self.require(value <= bound,", "self.require(not value > bound,",
     ("assessment",)),
    ("freivalds: one suspect is checked", "accuracy/freivalds.py",
     "SUSPECTS = 16", "SUSPECTS = 0", ("freivalds",)),
    ("freivalds: 31 times the deviations", "accuracy/freivalds.py",
     "strength = math.sqrt(2 * math", "strength = 31 * math.sqrt(2 * math", ("freivalds",)),
    ("suspects: an addend is rounded for nothing", "accuracy/suspects.py",
     "(rounded * abs(reference.beta) + lost)", "lost", ("freivalds",)),
    ("grading: slopes do not count", "accuracy/grading.py",
     "(errors <= limits).all() and slopes[0] <= allowed", "(errors <= limits).all()",
     ("grading",)),
    ("streaming: what chunks share takes no room", "steps/streaming.py",
     "kept = shared + constants", "kept = constants", ("streaming",)),
    ("assessment: an error that is NaN passes", "accuracy/assessment.py",
     "found[np.isnan(found)] = np.inf", "found[np.isnan(found)] = 0", ("freivalds",)),
    ("seal: summed chunks are counted from their start", "storage/seal.py",
     "position = offset + size", "position = offset", ("chunk_sums", "datasets")),
    ("chunk sums: the last chunk of an axis has none", "storage/chunk_sums.py",
     "tuple(-(-n // length) for n", "tuple(max(1, n // length) for n",
     ("chunk_sums", "slabs")),
    ("checked JSON: rows are not summed", "storage/checked_json.py",
     'if digest != _digest("".join(lines)):', "if False:", ("checked_json",)),
    ("shared lock: a forked child unlocks", "storage/shared_lock.py",
     "    for lock in _open_locks:\n        lock.close()",
     "    for lock in _open_locks:\n        lock.release()",
     ("shared_lock",)),
    ("slabs: an edge chunk keeps old bytes", "storage/slabs.py",
     "            buffer[: self._size] = 0\n", "            pass\n",
     ("slabs", "chunk_sums")),
    ("slabs: a failed sync is swallowed", "storage/slabs.py",
     "            self._syncs.popleft().result()\n\n", "            self._syncs.popleft()\n\n",
     ("slabs", "blame", "chunk_loop")),
    ("staged: a broadcast axis is cut too", "storage/staged.py",
     "if axis in self._ranges and length == self._lengths[axis]", "if axis in self._ranges",
     ("shard_stretches", "selections")),
    ("shards: a stretch begins one entry early", "shards.py",
     "slice(self.index * length // self.count,",
     "slice(max(0, self.index * length // self.count - 1),",
     ("shards",)),
    ("run folder: a job of an earlier run goes on", "storage/run_folder.py",
     "if run.strip() != ours:", "if not run.strip():", ("run_folder",)),
    ("stream: what was written before no room is not waited for", "steps/chunk_loop.py",
     "                    while writes:\n                        writes.popleft().result()\n"
     "                    raise ChunkTooLargeError", "                    raise ChunkTooLargeError",
     ("chunk_loop", "streaming")),
    ("stream: a slot is taken that is still in use", "steps/chunk_loop.py",
     "count = _READS + self.transfer.most_pending", "count = self.transfer.most_pending",
     ("chunk_loop", "streaming")),
    ("stream: a failed write is swallowed", "steps/chunk_loop.py",
     "            while writes:\n                writes.popleft().result()\n        self.busy",
     "        self.busy", ("chunk_loop",)),
    ("pieces: the last piece goes past the end", "steps/pieces.py",
     "min(start + self.entries, self.length)", "start + self.entries", ("pieces",)),
    ("deliver: what was seen counts, not the limit", "steps/result_choice.py",
     "record.error_limit <= case.accepted_error", "record.rel_frobenius <= case.accepted_error",
     ("provable", "products")),
    ("deliver: the slowest", "steps/result_choice.py",
     "if clearly_faster(record, chosen):", "if not clearly_faster(record, chosen):",
     ("result_choice",)),
    ("combine: shards of other implementations", "steps/combining.py",
     "if row.keys() != first.keys():", "if not row.keys() >= first.keys():", ("shards",)),
    ("lease: spare devices are kept", "jobs/gpu_lease.py",
     "for _, lock in free[len(taken) :]:", "for _, lock in free[count:]:", ("gpu_lease",)),
    ("lease: an error of CUDA is any error", "jobs/job_device.py",
     "            if lost is None:\n                raise\n", "", ("job_device",)),
)  # fmt: skip

MUTATIONS = [*KERNELS, *WORKFLOW]
