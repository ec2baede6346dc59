"""Mistakes of a study outside its config: files, upstream workloads, the device."""

import re
from dataclasses import replace

import h5py
import numpy as np
import pytest
from argand.device import cpu

from tests.workflow.config.toy_kind import Toy, study
from workflow.config.mistakes import StudyError
from workflow.files.input_error import InputError
from workflow.preflight.check import check_study, checked_study, main
from workflow.preflight.loading import load_study
from workflow.preflight.needs_table import needs_table
from workflow.preflight.products_list import products_list
from workflow.workloads.base import KINDS


@pytest.fixture(autouse=True)
def toy(monkeypatch):
    monkeypatch.setitem(KINDS, "toy", Toy)


def keys(mistakes: list[str]) -> list[str]:
    """The subject of each mistake."""
    return [re.split("[: ]", text)[0] for text in mistakes]


class TestCheck:
    @pytest.fixture
    def path(self, tmp_path):
        with h5py.File(tmp_path / "in.h5", "w") as file:
            file["a"] = np.zeros((3, 4), np.complex64)
            file["cube"] = np.zeros((2, 3, 4), np.complex64)
        return tmp_path / "in.h5"

    @staticmethod
    def error_of(loaded) -> list[str]:
        with pytest.raises(StudyError) as raised:
            check_study(loaded)
        return str(raised.value).splitlines()

    def test_nothing_wrong(self, path):
        loaded = study(x={"input": {"file": str(path), "a": "/a"}}, y={"input": {"workload": "x"}})
        check_study(loaded)
        assert loaded.input_files("x") == (path,)
        assert loaded.input_files("y") == ()
        assert (loaded.upstream("x"), loaded.upstream("y")) == ((), ("x",))

    def test_files(self, path):
        loaded = study(
            gone={"input": {"file": str(path) + "x", "a": "/a"}},
            name={"input": {"file": str(path), "a": "/aa"}},
            rank={"input": {"file": str(path), "a": "/cube"}},
        )
        gone, name, rank = self.error_of(loaded)
        assert gone.startswith(f"workloads.gone.input.file: there is no file {path}x")
        assert name.endswith("has no dataset /aa; did you mean /a? (it has: /a, /cube)")
        assert name.startswith("workloads.name.input.a: ")
        assert rank.startswith("workloads.rank.input.a must have at least 1 and at most 2 axes")

    def test_auto_has_something_to_take_on_the_cpu(self):
        case = {"kind": "gemm", "m": 2, "n": 2, "k": 2}
        given = {"device": "cpu", "precisions": ["tf32"], "workloads": {"x": case}}
        assert self.error_of(load_study(given)) == [
            "workloads.x.precisions: must have one of ['fp64', 'fp32'] for precision: auto on the "
            "CPU, where the others are models of a GPU's, got ['tf32']"
        ]
        check_study(load_study({**given, "workloads": {"x": {**case, "precision": "tf32"}}}))
        check_study(load_study({**given, "precisions": ["tf32", "fp32"]}))

    def test_an_unknown_upstream(self):
        loaded = study(beams={}, x={"input": {"workload": "baems"}})
        assert self.error_of(loaded) == [
            "workloads.x.input.workload: must be one of ['beams'] (kind toy), got 'baems'; "
            "did you mean 'beams'?"
        ]

    def test_an_upstream_of_another_kind(self):
        loaded = load_study(
            {
                "workloads": {
                    "product": {"kind": "gemm", "m": 1, "n": 1, "k": 1},
                    "x": {"kind": "toy", "input": {"workload": "product"}},
                }
            }
        )
        assert self.error_of(loaded) == [
            "workloads.x.input.workload: must be another workload (kind toy), of which this study "
            "has none, got 'product'"
        ]

    def test_itself_and_in_a_circle(self):
        (message,) = self.error_of(study(x={"input": {"workload": "x"}}, y={}))
        assert message.startswith(
            "workloads.x.input.workload: must be one of ['y'] (kind toy), got "
        )
        (message,) = self.error_of(
            study(x={"input": {"workload": "y"}}, y={"input": {"workload": "x"}})
        )
        assert "these read each other's products: " in message

    def test_cuda_without_a_gpu(self, monkeypatch):
        monkeypatch.setattr("argand.device.gpus", list)
        loaded = study(settings={"device": "cuda"}, x={})
        assert self.error_of(loaded)[0].startswith("device: cuda was asked for, but no GPU answers")
        check_study(study(settings={"device": "auto"}, x={}))
        check_study(loaded, device_here=False)  # a cluster's submit host

    def test_on_the_command_line(self, monkeypatch, tmp_path, capsys):
        monkeypatch.setattr("argand.device.gpus", list)
        path = tmp_path / "study.yaml"
        path.write_text("device: cuda\nworkloads: {x: {kind: toy}}\n")
        monkeypatch.setattr("sys.argv", ["study", str(path)])
        assert main() == 1
        assert "no GPU answers" in capsys.readouterr().err
        monkeypatch.setattr("sys.argv", ["study", "--elsewhere", str(path)])
        main()
        said = capsys.readouterr().out.splitlines()
        size = r"\d[\d.]* (bytes|KiB)"
        assert re.match(rf"{path}: 1 workload \(x\), {size} of disk in results/study/, ", said[0])
        assert said[0].endswith(" free")
        head, _, *rows = said[2:7]
        assert head == "| workload | step | jobs | disk | memory of a job | time of a job |"
        assert rows[1].startswith("| x | run | 1 | ")

    def test_what_will_be_made_is_listed(self, tmp_path):
        """The list shows a wrong order of axes, or unit, before a job starts."""
        path = tmp_path / "v.h5"
        with h5py.File(path, "w") as file:
            file["v"], file["f"] = np.ones((40, 3, 2), np.complex64), np.array([152.0, 151.0])
            file["v"].attrs["units"] = "mV"
        source = {
            "file": str(path), "voltages": "v", "axes": ["time", "antenna", "channel"],
            "coordinates": {
                "frequency": {"dataset": "f", "units": "MHz"}, "antenna": ["a", "b", "c"],
                "time": {"start": 1, "step": 0.5, "units": "s since 2026-11-28"},
            },
        }  # fmt: skip
        workloads = {
            "vis": {"kind": "correlate", "integrate": 10, "input": source},
            "link": {"kind": "mimo", "receivers": 2, "transmitters": 1, "snr_db": [10, 20]},
            "many": {"kind": "dft", "length": 1 << 21},
            "welch": {
                "kind": "dft", "power": True, "length": 8, "average": "all", "segments": 3,
                "sample_rate_hz": 1e6,
            },
        }  # fmt: skip
        lines = products_list(load_study({"device": "cpu", "workloads": workloads})).splitlines()
        assert lines[0].startswith(
            "- vis: visibilities frequency 2 x integration 4 x input 3 x conjugated_input 3 mV^2; "
            "frequency 152 to 151 MHz; integration 3.25 to 18.25 s since 2026-11-28; "
        )
        assert lines[1].endswith("symbol 64; snr 10 to 20 dB")
        assert lines[2] == "- many: spectrum batch 1 x frequency 2097152"
        assert lines[3] == "- welch: power batch 1 x time 1 x frequency 8 1/Hz"
        many = study(**{f"x{number}": {} for number in range(60)})
        assert products_list(many).splitlines()[-1] == "- and 20 workloads more"

    def test_the_memory_of_a_timed_job_has_what_passes_through_the_cache(self, monkeypatch):
        """A small job on a CPU with a cache of 260 MiB was seen to take 500 to 610 MiB.

        One on an H200 took 500 to 577, with PyTorch as a peer 798.
        """
        processor = replace(cpu(), cache_bytes=260 << 20)
        monkeypatch.setattr("workflow.preflight.needs_table.cpu", lambda: processor)
        rows = {gpu: needs_table(study(x={}), gpu=gpu).splitlines()[3] for gpu in (False, True)}
        assert "| x | run | 1 | " in rows[False]
        assert "| 782 MiB |" in rows[False]
        assert "| 798 MiB |" in rows[True]

    def test_a_sweep_of_many_cases_has_a_table_of_its_largest(self):
        many = study(**{f"x{number}": {} for number in range(60)})
        lines = needs_table(many, gpu=False).splitlines()
        assert len(lines) == 2 + 40 * 5 + 2
        assert lines[-1] == "and 20 workloads with smaller files"

    def test_mistakes_of_the_config_and_of_files_are_reported_at_once(self, tmp_path, monkeypatch):
        path = tmp_path / "study.yaml"
        path.write_text(
            "device: cpu\nworkloads:\n  wrong: {kind: gemm, mm: 3}\n"
            "  absent: {kind: gemm, input: {file: absent.h5, a: a, b: b}}\n"
            "  late: {kind: dft, length: 4, batch: 2, precisions: [fp32], precision: fp64}\n"
            "  reads: {kind: softmax, input: {workload: wrong}}\n"
        )
        with pytest.raises(StudyError) as raised:
            checked_study(path)
        text = "\n".join(raised.value.mistakes)
        assert "workloads.wrong.mm: unknown key" in text
        assert "workloads.absent.input.file: there is no file" in text
        assert "workloads.late.precision: must be auto or one of" in text
        assert "workloads.reads" not in text, "what it reads is wrong, and that is said"

    def test_a_wrong_setting_hides_no_mistake_of_a_workload_or_a_file(self, tmp_path):
        path = tmp_path / "study.yaml"
        path.write_text(
            "device: cpu\nseed: -1\nprecisions: [fp65]\nworkloads:\n"
            "  wrong: {kind: gemm, m: 0, n: [2, 3], k: 2}\n"
            "  absent: {kind: gemm, input: {file: absent.h5, a: a, b: b}, precision: tf32}\n"
            "  orphan: {kind: softmax, input: {workload: nobody}}\n"
            "  first: {kind: gemm, input: {a: {workload: wrong-n2}, b: {workload: wrong-n2}}}\n"
            "  second: {kind: dft, axis: n, input: {samples: {workload: first}}}\n"
            "  huge: {kind: dft, length: 67108864, batch: 1048576, shards: 4096}\n"
        )
        with pytest.raises(StudyError) as raised:
            checked_study(path)
        assert keys(raised.value.mistakes) == [
            "seed", "precisions", "workloads.wrong.m", "workloads.orphan.input.workload",
            "workloads.absent.input.file", "workloads",
        ]  # fmt: skip

    def test_the_rest_of_a_study_is_held_to_the_disk_too(self, path):
        case = {"kind": "gemm", "input": {"file": str(path), "a": "/aa", "b": "/cube"}}
        huge = {"kind": "dft", "length": 1 << 26, "batch": 1 << 20}
        loaded = load_study({"device": "cpu", "workloads": {"x": case, "huge": huge}})
        name, *_, disk = self.error_of(loaded)
        assert name.startswith("workloads.x.input.a: ")
        assert disk.startswith("workloads: they need ")
        assert "huge" in disk

    @pytest.mark.parametrize(
        ("given", "wrong"),
        [
            ({"kind": "gemm", "a": "/aa", "b": "/bb"}, ["a", "b"]),
            ({"kind": "gemm", "a": "/a", "b": "/b", "file": "gone.h5"}, ["file"]),
            (
                {
                    "kind": "dft", "samples": "/a", "axes": ["time", "row"],
                    "coordinates": {"time": "/t_s", "row": [1.0], "colum": [2.0]},
                },
                ["coordinates.time", "coordinates.row", "coordinates.colum"],
            ),
            # Of an operand that is not there, what can be found of its coordinates without it.
            (
                {
                    "kind": "dft", "samples": "/aa", "axes": ["time", "row"],
                    "coordinates": {"time": "/t_s", "row": [1.0], "frequency": [1.0, 2.0]},
                },
                ["samples", "coordinates.time", "coordinates.frequency"],
            ),
            # So too of a sample rate.
            (
                {"kind": "gemm", "a": "/aa", "b": "/a", "sample_rate_hz": 1.0},
                ["a", "sample_rate_hz"],
            ),
            ({"kind": "correlate", "voltages": "/aa", "sample_rate_hz": 1.0}, ["voltages"]),
            (
                {
                    "kind": "correlate", "voltages": "/aa", "sample_rate_hz": 1.0,
                    "coordinates": {"time": {"step_s": 1.0}, "antenna": "/aa"},
                },
                ["voltages", "coordinates.antenna", "sample_rate_hz"],
            ),
        ],
    )  # fmt: skip
    def test_all_mistakes_of_one_input(self, path, given, wrong):
        kind = given.pop("kind")
        case = {"kind": kind, "input": {"file": str(path), **given}}
        case |= {"axis": "time"} if kind == "dft" else {}
        assert keys(self.error_of(load_study({"workloads": {"x": case}}))) == [
            f"workloads.x.input.{one}" for one in wrong
        ]

    def test_mistakes_of_all_studies_are_reported(self, tmp_path, monkeypatch, capsys):
        paths = []
        for number in range(2):
            paths.append(tmp_path / f"{number}.yaml")
            paths[-1].write_text("workloads: {x: {kind: none}}\n")
        monkeypatch.setattr("sys.argv", ["check", *map(str, paths)])
        assert main() == 1
        said = capsys.readouterr().err
        assert all(f"{path}:\n" in said for path in paths)

    def test_input_error_is_a_value_error(self):
        assert issubclass(InputError, ValueError)
