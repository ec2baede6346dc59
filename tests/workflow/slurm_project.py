"""A study run through the Slurm of `mini_slurm`."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import signal
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import mini_slurm
import psutil
from shared_runs import repeatable
from snakemake_forks import run_snakemake, snakemake_command

WHY_NOT = mini_slurm.missing() or (
    "" if find_spec("snakemake_executor_plugin_slurm") else "envs/slurm.txt is not installed"
)
"""Why nothing can run through Slurm here; empty where it can."""
ASK_OFTEN = """
import sys
if "--workflow-profile" in sys.orig_argv:
    from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor
    RemoteExecutor.next_seconds_between_status_checks = property(
        lambda self: 1, lambda self, seconds: None
    )
"""
"""For ``sitecustomize``: Snakemake asks Slurm each second, in place of 10 s later each time."""


class Project:
    """A folder to run a study in, on one core of this machine or through Slurm.

    ``machine`` is Python that every process of the run begins with, ``names`` are those of the
    study and of the results.
    """

    def __init__(
        self, root: Path, folder: Path, environ: dict[str, str], study: str, machine: str = "",
        names: tuple[str, str] = ("study.yaml", "results"),
    ) -> None:  # fmt: skip
        self.root, self.folder, self.results = root, folder, folder / names[1]
        self._names = names
        inherited = filter(None, [environ.get("PYTHONPATH")])
        paths = os.pathsep.join([*map(str, (folder, root, root / "kernels")), *inherited])
        self.environ = {**environ, "PYTHONPATH": paths}
        self.started: list[subprocess.Popen[bytes]] = []
        if machine:
            (folder / "sitecustomize.py").write_text(machine)
        self.write(study)

    def write(self, study: str) -> None:
        """Give the project another study."""
        (self.folder / self._names[0]).write_text(study)

    def target(self, name: str) -> str:
        """A file of the results, as Snakemake knows it."""
        return f"{self._names[1]}/{name}"

    def flags(self, *flags: str) -> list[str]:
        snakefile = str(self.root / "Snakefile")
        return [
            "--snakefile", snakefile, "--config", f"study={self._names[0]}",
            f"out={self._names[1]}", "--directory", ".", *flags,
        ]  # fmt: skip

    def run(self, *flags: str, status: int = 0) -> str:
        """Run Snakemake on two cores of this machine to its end: what it said."""
        given = self.flags("--cores", "2", *flags)
        done = run_snakemake(given, self.folder, self.environ, self.root)
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout + done.stderr

    def start(self, *flags: str) -> subprocess.Popen[bytes]:
        command = snakemake_command(*self.flags(*flags))
        with (self.folder / "said").open("wb") as said:
            self.started.append(
                subprocess.Popen(
                    command, env=self.environ, cwd=self.folder, start_new_session=True,
                    stdout=said, stderr=said,
                )
            )  # fmt: skip
        return self.started[-1]

    def submit(self, *flags: str) -> subprocess.Popen[bytes]:
        """Start the study through Slurm, by the profile as it is but for waits and cores."""
        return self.start(
            "--workflow-profile", str(self.root / "profiles" / "slurm"),
            "--set-threads", "run=1", "growth_of_errors=1",
            "verify=1", "verify_shard=1",
            "--slurm-init-seconds-before-status-checks", "1", *flags,
        )  # fmt: skip

    def finish(self, process: subprocess.Popen[bytes], status: int = 0) -> str:
        """Wait for Snakemake's end: what it said."""
        process.wait(300)
        said = (self.folder / "said").read_text()
        assert process.returncode == status, said
        return said

    def end(self) -> None:
        """Kill what still runs."""
        (self.folder / "hold").unlink(missing_ok=True)
        for process in self.started:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        for left in psutil.process_iter():  # jobs whose Snakemake outlived a cancelled step
            with contextlib.suppress(psutil.Error):
                if Path(left.cwd()).is_relative_to(self.folder):
                    left.kill()

    def rows(self) -> list[dict[str, str]]:
        """The table of results without what was measured."""
        with (self.results / "tables" / "performance.csv").open() as file:
            return repeatable(csv.DictReader(file))

    def seen(self) -> list[dict[str, Any]]:
        """Lines that GPU jobs wrote when they asked a stand-in for their device."""
        file = self.folder / "seen.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()]

    def leases(self) -> list[dict[str, Any]]:
        """The lines of the lease log; none before the first lease."""
        log = self.results / "logs" / "gpu-leases.jsonl"
        return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
