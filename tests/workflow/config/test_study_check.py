"""What is wrong with a study outside its config: files, upstream workloads, the device."""

import h5py
import numpy as np
import pytest
from toy_kind import Toy, study

from workflow.config.check import check_study, main
from workflow.config.loading import load_study
from workflow.config.mistakes import StudyError
from workflow.storage.inputs import InputError
from workflow.workloads import KINDS


@pytest.fixture(autouse=True)
def toy(monkeypatch):
    monkeypatch.setitem(KINDS, "toy", Toy)


class TestCheck:
    @pytest.fixture
    def path(self, tmp_path):
        with h5py.File(tmp_path / "in.h5", "w") as file:
            file["a"] = np.zeros((3, 4), np.complex64)
            file["cube"] = np.zeros((2, 3, 4), np.complex64)
        return tmp_path / "in.h5"

    @staticmethod
    def told(loaded) -> list[str]:
        with pytest.raises(StudyError) as told:
            check_study(loaded)
        return str(told.value).splitlines()

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
        gone, name, rank = self.told(loaded)
        assert gone.startswith(f"workloads.gone.input.file: there is no file {path}x")
        assert name.endswith("has no dataset /aa; did you mean /a? (it has: /a, /cube)")
        assert name.startswith("workloads.name.input.a: ")
        assert rank.startswith("workloads.rank.input.a must have at least 1 and at most 2 axes")

    def test_auto_has_something_to_take_on_the_cpu(self):
        case = {"kind": "gemm", "m": 2, "n": 2, "k": 2}
        given = {"device": "cpu", "precisions": ["tf32"], "workloads": {"x": case}}
        assert self.told(load_study(given)) == [
            "workloads.x.precisions: must have one of ['fp64', 'fp32'] for precision: auto on the "
            "CPU, where the others are models of a GPU's, got ['tf32']"
        ]
        check_study(load_study({**given, "workloads": {"x": {**case, "precision": "tf32"}}}))
        check_study(load_study({**given, "precisions": ["tf32", "fp32"]}))

    def test_an_unknown_upstream(self):
        loaded = study(beams={}, x={"input": {"workload": "baems"}})
        assert self.told(loaded) == [
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
        assert self.told(loaded) == [
            "workloads.x.input.workload: must be one of [] (kind toy), got 'product'"
        ]

    def test_itself_and_in_a_circle(self):
        (told,) = self.told(study(x={"input": {"workload": "x"}}, y={}))
        assert told.startswith("workloads.x.input.workload: must be one of ['y'] (kind toy), got ")
        (told,) = self.told(study(x={"input": {"workload": "y"}}, y={"input": {"workload": "x"}}))
        assert "these read each other's products: " in told

    def test_cuda_without_a_gpu(self, monkeypatch):
        monkeypatch.setattr("argand.device.gpus", list)
        loaded = study(settings={"device": "cuda"}, x={})
        assert self.told(loaded)[0].startswith("device: cuda was asked for, but no GPU answers")
        check_study(study(settings={"device": "auto"}, x={}))
        check_study(loaded, device_here=False)  # a cluster's submit host

    def test_on_the_command_line(self, monkeypatch, tmp_path, capsys):
        monkeypatch.setattr("argand.device.gpus", list)
        path = tmp_path / "study.yaml"
        path.write_text("device: cuda\nworkloads: {x: {kind: toy}}\n")
        monkeypatch.setattr("sys.argv", ["study", str(path)])
        with pytest.raises(SystemExit, match="no GPU answers"):
            main()
        monkeypatch.setattr("sys.argv", ["study", "--elsewhere", str(path)])
        main()
        assert capsys.readouterr().out == f"{path}: 1 workloads (x), 896 bytes of disk\n"

    def test_input_error_is_a_value_error(self):
        assert issubclass(InputError, ValueError)
