"""Studies that mean harm: refused by their own error, within limits on time and memory."""

from __future__ import annotations

import os
from html.parser import HTMLParser
from pathlib import Path

import h5py
import numpy as np

from benchmarks.attack.campaign import Attempt, require
from benchmarks.attack.isolation import Outcome, isolated
from benchmarks.attack.studies import Run

_GEMM = "{kind: gemm, m: 4, n: 4, k: 4}"
_SECONDS, _MEMORY = 30.0, 1 << 30


def _aliases(merge: bool) -> str:
    """Return nine levels of nine aliases each."""
    begin, link = ("{x: 1}", "{{<<: [{}]}}") if merge else ("[x]", "[{}]")
    lines = [f"a0: &a0 {begin}"]
    lines += [f"a{i + 1}: &a{i + 1} {link.format(', '.join([f'*a{i}'] * 9))}" for i in range(9)]
    return "\n".join(lines)


def _workload(name: str = "x", case: str = _GEMM) -> str:
    return f"workloads: {{{name}: {case}}}"


REFUSED: tuple[str, ...] = (
    _aliases(merge=False), _aliases(merge=True),
    "workloads:\n " + "[" * 5000 + "]" * 5000, "workloads:\n " + "{a: " * 900 + "1" + "}" * 900,
    "seed: !!python/object/apply:os.system ['touch pwned']\n" + _workload(),
    "seed: !!python/object/new:subprocess.Popen [[touch, pwned]]\n" + _workload(),
    "seed: !!binary aGVsbG8=\n" + _workload(), "seed: .nan\n" + _workload(),
    "seed: -1\n" + _workload(), f"seed: {'9' * 5000}\n" + _workload(),
    "__use_yte__: true\n__definitions__: ['open(\"pwned\", \"w\")']\n" + _workload(),
    *(_workload(f'"{name}"') for name in ("../x", "/x", "..", "a/../../b", "a\\0b", "{x}", "~")),
    *(_workload(f'"{name}"') for name in ("<script>x</script>", "a b", "a\\u001b[2J", "x" * 300)),
    *(_workload(case=f"{{kind: gemm, m: {m}, n: 1, k: 1}}") for m in (".inf", "1e400", "-1", "0")),
    _workload(case="{kind: gemm, m: 1048576, n: 1048576, k: 1048576}"),
    _workload(case="{kind: softmax, rows: 1073741824, columns: 268435456}"),
    _workload(case=f"{{kind: gemm, m: {list(range(1, 2001))}, n: {list(range(1, 2001))}, k: 1}}"),
    _workload(case="{kind: gemm, input: {file: /dev/zero, a: a, b: b}}"),
    _workload(case="{kind: gemm, input: {file: /etc/passwd, a: a, b: b}}"),
    _workload(case="{kind: gemm, input: {file: pipe, a: a, b: b}}"),
    _workload(case="{kind: dft, length: 8, window: [kaiser, .nan]}"),
    _workload(case="{kind: statevector, circuit: {name: random, qubits: 34, depth: 10000}}"),
)  # fmt: skip
"""Studies that must not be accepted; the largest need more than this machine has."""
_PIECES = (
    "{", "}", "[", "]", ":", "- ", "&a ", "*a", "!!int ", "<<: ", "\t", "\0", "\x1b[31m", "|", ">",
    "%", "@", "`", "'", '"', "#", "\u2028", "é", "1e999", ".inf", "-.nan", "0x1F", "~", "? ",
)  # fmt: skip
_CHECK = """
from pathlib import Path
from workflow.preflight.check import check_study
from workflow.preflight.loading import load_study
check_study(load_study(Path("study.yaml")))
"""


def studies(attempt: Attempt) -> None:
    """Read one of `REFUSED`, then right studies with random pieces of YAML put into them."""
    text = REFUSED[attempt.number % len(REFUSED)]
    mutated = attempt.number >= len(REFUSED)
    if mutated:
        text = _mutated(attempt)
    (attempt.folder / "study.yaml").write_text(text, encoding="utf-8")
    os.mkfifo(attempt.folder / "pipe")
    found = isolated(lambda: _check(attempt.folder), memory=_MEMORY, seconds=_SECONDS)
    require(not (attempt.folder / "pwned").exists(), f"{text[:80]!r} ran what it says")
    _check_outcome(found, text, may_be_accepted=mutated)


def _check(folder: Path) -> str:
    os.chdir(folder)
    exec(_CHECK, {})
    return "accepted"


def _check_outcome(found: Outcome, text: str, *, may_be_accepted: bool) -> None:
    shown = text[:60] + ("..." if len(text) > 60 else "")
    if found.how == "returned":
        require(may_be_accepted, f"{shown!r} is accepted")
        return
    require(found.error.endswith("StudyError"), f"{shown!r}: {found}")
    printable = all(c.isprintable() or c == "\n" for c in found.text)
    require(printable, f"{shown!r}: the message has control characters")


def _mutated(attempt: Attempt) -> str:
    rng = attempt.rng
    source = str(rng.choice(["config/test.yaml", "config/config.yaml"]))
    text = (attempt.ground.root / source).read_text()
    for _ in range(int(rng.integers(1, 6))):
        place, gone = int(rng.integers(len(text))), int(rng.integers(0, 12))
        text = text[:place] + str(rng.choice(_PIECES)) + text[place + gone :]
    return text


class _Tags(HTMLParser):
    """Notes the elements of a page as a browser takes them."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.seen.add(tag)


MARK = "argandattack"
NAMES = (
    f"</script><{MARK}>", f"<{MARK}>", f"--><{MARK}>", f"'\"><{MARK}>", f"</title><{MARK}>",
)  # fmt: skip


def reports(attempt: Attempt) -> None:
    """Run a dataset whose name is HTML: no page of the results has it as an element."""
    name = NAMES[attempt.number % len(NAMES)]
    folder = attempt.folder
    with h5py.File(folder / "in.h5", "w") as file:
        file[name] = np.ones((4, 4), np.complex64)
    quoted = name.replace("'", "''")
    case = f"{{kind: gemm, input: {{file: in.h5, a: '{quoted}', b: '{quoted}'}}}}"
    study = f"device: cpu\nprecisions: [fp64]\nbaselines: none\nworkloads: {{x: {case}}}\n"
    (folder / "study.yaml").write_text(study)
    run = Run(attempt.ground.root, folder)
    if run.finish():
        require("StudyError" in run.said or "workloads." in run.said, f"{name}: {run.said[-300:]}")
        return
    report = Run(attempt.ground.root, folder, "--quiet", "all", "--report", "results/report.html")
    status = report.finish()
    require(status == 0, f"{name}: no report: {report.said[-300:]}")
    for page in (folder / "results").rglob("*.html"):
        tags = _Tags()
        tags.feed(page.read_text(errors="replace"))
        require(MARK not in tags.seen, f"{name} is an element of {page.name}")
