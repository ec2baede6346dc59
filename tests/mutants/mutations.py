"""The mutations: a place in a file, what is put there, and the tests that should see it."""

from __future__ import annotations

from dataclasses import dataclass

K, W = "tests/kernels/test_", "tests/workflow/test_"


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
        Mutation(name, f"{folder}/{file}", before, after, tuple(f"{test}.py" for test in tests))
        for name, file, before, after, tests in rows
    ]


_GEMM = (f"{K}numpy_backend_gemm", f"{K}numpy_gemm_range")
_SOFTMAX = (f"{K}numpy_softmax", f"{K}numpy_softmax_kinds")
_BUTTERFLY = (f"{K}numpy_butterflies", f"{K}dft_three_kernel")

KERNELS = _in(
    "kernels/argand",
    ("gemm: descale one side up", "gemm/cpu.py",
     "-(rows[block] + columns)", "-(rows[block] - columns)", _GEMM),
    ("gemm: transpose without conjugating", "gemm/cpu.py",
     'return np.conj(x) if op == "C" else x', "return x", _GEMM),
    ("gemm: lose the last k of a segment", "gemm/cpu.py",
     "k = slice(start, start + step)", "k = slice(start, max(start + step - 1, 1))", _GEMM),
    ("gemm: vectors with gaps go to BLAS as they lie", "gemm/cpu.py",
     "together = (along if rows == 1 else down) == item", "together = True", (f"{K}packing",)),
    ("gemm: out may be b", "gemm/cpu.py",
     "for x in (a, b)):", "for x in (a,)):", _GEMM),
    ("gemm: a packed operand is the caller's array", "gemm/cpu.py",
     'np.array(t, order="K") if np.may_share_memory(t, x) else t', "t", (f"{K}packing",)),
    ("gemm: split-K sums beyond the workspace", "gemm/heuristics.py",
     "if x.parts == 1 or _sums(x, sizes) <= room(x, precision, sizes, a, b)]", "]",
     (f"{K}gemm_choice",)),
    ("gemm: conjugated beside packed is read in place", "gemm/heuristics.py",
     " and not (self.conjugated and beside.packed)", "", (f"{K}gemm_choice",)),
    ("gemm: a scheduled tile's row of the last group", "gemm/sm90_scheduler.py",
     "height = min(self.rows - group * most, most)", "height = most", (f"{K}tile_division",)),
    ("gemm: partial tiles of a share that ends a tile", "gemm/sm90_scheduler.py",
     "return others - others // self.period(steps)", "return others", (f"{K}tile_division",)),
    ("softmax: a row of -inf shifts by it", "softmax/cpu.py",
     "shift = np.where(nothing, 0, tile_max)", "shift = tile_max", _SOFTMAX),
    ("softmax: far tiles in one step", "softmax/cpu.py",
     "far = reach < _FAR", "far = reach < 100 * _FAR", _SOFTMAX),
    ("softmax: overlapping out is written at once", "softmax/cpu.py",
     "_in_place(rows, target) or not np.may_share_memory(rows, target)", "True",
     (f"{K}overlapping_out",)),
    ("softmax: logsumexp forgets the scale", "softmax/cpu.py",
     "total = scale * running_max + np.log", "total = running_max + np.log", _SOFTMAX),
    ("dft: flipped sign of the odd part", "dft/cpu.py",
     "q.imag, -q.real  #", "q.imag, q.real  #", (f"{K}numpy_dft",)),
    ("dft: a stage divides by half", "dft/cpu.py",
     "return (length - 1).bit_length() if", "return (length - 1).bit_length() - 4 if",
     (f"{K}numpy_dft",)),
    ("dft: the sum of a row is not descaled", "dft/cpu_butterfly.py",
     "total * factor * undo + rest", "total * factor + rest", _BUTTERFLY),
    ("dft: wrong twiddle index", "dft/cpu_butterfly.py",
     "twiddles[b * k % size] if", "twiddles[b * (k + 1) % size] if", _BUTTERFLY),
    ("dft: three-kernel result is the conjugate", "dft/cpu_three_kernel.py",
     "return np.conj(_along(work, 1)", "return (_along(work, 1)", (f"{K}dft_three_kernel",)),
    ("gates: controls act where they are 0", "gates/cpu.py",
     "slice(1, 2) if axis in", "slice(0, 1) if axis in", (f"{K}gates",)),
    ("gates: targets in the wrong order", "gates/cpu.py",
     "for target in reversed(form.targets)]", "for target in form.targets]", (f"{K}gates",)),
    ("gates: an early return for a diagonal target", "gates/canonical.py",
     "if parts[0, 1].any() or parts[1, 0].any():", "if parts[0, 1].any():",
     (f"{K}gates", f"{K}gate_circuits")),
    ("rounding: ties away from even", "rounding.py",
     "np.uint32((1 << (dropped - 1)) - 1)", "np.uint32(1 << (dropped - 1))", (f"{K}rounding",)),
    ("rounding: an infinity decides a line's scale", "rounding.py",
     "    if not np.isfinite(largest).all():", "    if False:",
     (f"{K}rounding", f"{K}numpy_gemm_range", f"{K}numpy_backend_gemm")),
    ("rounding: the rest of an infinity", "rounding.py",
     "                rest[~np.isfinite(term)] = 0\n", "", (f"{K}rounding", *_GEMM)),
    ("files: no fsync of the file", "runtime/files.py",
     "        _sync(temporary)\n", "", (f"{K}atomic_files", f"{W}faults", f"{W}blame")),
    ("files: no fsync of the folder", "runtime/files.py",
     "        _sync(path.parent)\n", "", (f"{K}atomic_files", f"{W}faults", f"{W}blame")),
    ("files: a temporary file is left", "runtime/files.py",
     "temporary.unlink(missing_ok=True)", "pass", (f"{K}atomic_files", f"{W}faults")),
)  # fmt: skip

WORKFLOW = _in(
    "workflow",
    ("bounds: half the truncations", "accuracy/bounds.py",
     "return 2 * k + 2 * instructions", "return k + instructions", (f"{W}bounds",)),
    ("bounds: alpha mixes no parts", "accuracy/bounds.py",
     "(abs(alpha.real) + abs(alpha.imag)) / abs(alpha) if alpha else 1.0", "1.0",
     (f"{W}bounds", f"{W}product_accuracy")),
    ("bounds: no addend's roundings", "accuracy/bounds.py",
     "return max(product, roundings(ADDEND_ROUNDINGS, u) if beta else 0.0)", "return product",
     (f"{W}bounds", f"{W}product_accuracy")),
    ("bounds: a tail without its linear part", "accuracy/probabilistic.py",
     " + 2 * t / max(components, 1))", ")", (f"{W}bounds", f"{W}provable", f"{W}product_accuracy")),
    ("judgement: improbable is held to possible", "accuracy/judgement.py",
     "            error <= probable,", "            error <= worst,",
     (f"{W}product_accuracy", f"{W}provable", f"{W}freivalds")),
    ("judgement: NaN is within a bound", "accuracy/judgement.py",
     "self.require(value <= bound,", "self.require(not value > bound,",
     (f"{W}product_accuracy", f"{W}provable")),
    ("freivalds: one suspect is looked at", "accuracy/freivalds.py",
     "SUSPECTS = 16", "SUSPECTS = 0", (f"{W}freivalds",)),
    ("freivalds: a residual that is NaN passes", "accuracy/freivalds.py",
     "over[np.isnan(over)] = np.inf", "over[np.isnan(over)] = 0", (f"{W}freivalds",)),
    ("seal: summed chunks are counted from their start", "storage/seal.py",
     "position = offset + size", "position = offset", (f"{W}chunk_sums", f"{W}datasets")),
    ("chunk sums: the last chunk of an axis has none", "storage/chunk_sums.py",
     "tuple(-(-n // length) for n", "tuple(max(1, n // length) for n",
     (f"{W}chunk_sums", f"{W}chunks")),
    ("checked JSON: rows are not summed", "storage/checked_json.py",
     'if digest != _digest("".join(lines)):', "if False:", (f"{W}checked_json",)),
    ("shared lock: a forked child unlocks", "storage/shared_lock.py",
     "    for lock in _open_locks:\n        lock.close()",
     "    for lock in _open_locks:\n        lock.release()",
     (f"{W}shared_lock",)),
    ("slabs: an edge chunk keeps old bytes", "storage/slabs.py",
     "            buffer[: self._size] = 0\n", "            pass\n",
     (f"{W}slabs", f"{W}chunk_sums", f"{W}chunks")),
    ("slabs: a failed sync is swallowed", "storage/slabs.py",
     "            self._syncs.popleft().result()\n\n", "            self._syncs.popleft()\n\n",
     (f"{W}slabs", f"{W}blame", f"{W}streaming_faults")),
    ("staged: a broadcast axis is cut too", "storage/staged.py",
     "if axis in self._ranges and length == self._lengths[axis]", "if axis in self._ranges",
     (f"{W}shards", f"{W}selections")),
    ("shards: a stretch begins one entry early", "shards.py",
     "slice(self.index * length // self.count,",
     "slice(max(0, self.index * length // self.count - 1),",
     (f"{W}shards",)),
    ("run folder: a job of an earlier run goes on", "storage/run_folder.py",
     "if run.strip() != ours:", "if not run.strip():", (f"{W}run_folder",)),
    ("stream: what was written before no room is not waited for", "steps/stream.py",
     "                    while writes:\n                        writes.popleft().result()\n"
     "                    raise NoRoomError", "                    raise NoRoomError",
     (f"{W}stream_loop", f"{W}streaming")),
    ("stream: a slot is taken that is still in use", "steps/stream.py",
     "count = _READS + self.transfer.turns", "count = self.transfer.turns",
     (f"{W}stream_loop", f"{W}streaming")),
    ("stream: a failed write is swallowed", "steps/stream.py",
     "            while writes:\n                writes.popleft().result()\n        self.busy",
     "        self.busy", (f"{W}stream_loop", f"{W}streaming_faults")),
    ("pieces: the last piece goes past the end", "steps/pieces.py",
     "min(start + self.step, self.length)", "start + self.step", (f"{W}pieces",)),
    ("deliver: what was seen counts, not the limit", "steps/delivery.py",
     "record.error_limit <= case.tolerance", "record.rel_frobenius <= case.tolerance",
     (f"{W}provable", f"{W}products")),
    ("deliver: the slowest", "steps/delivery.py",
     "return min(good, key", "return max(good, key",
     (f"{W}products", f"{W}shards", f"{W}provable")),
    ("combine: shards of other implementations", "steps/combining.py",
     "if row.keys() != first.keys():", "if not row.keys() >= first.keys():", (f"{W}shards",)),
    ("lease: spare devices are kept", "steps/gpu_lease.py",
     "for _, lock in free[len(taken) :]:", "for _, lock in free[count:]:", (f"{W}gpu_lease",)),
    ("lease: an error of CUDA is any error", "steps/job_device.py",
     "            if lost is None:\n                raise\n", "", (f"{W}job_device",)),
)  # fmt: skip

MUTATIONS = [*KERNELS, *WORKFLOW]
