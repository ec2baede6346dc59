"""Every kind: staging, all precisions, peers, products, pictures."""

import contextlib
import json
import warnings
from dataclasses import replace

import numpy as np
import pytest
from argand import PRECISIONS
from argand.device import cpu

from benchmarks.peers import study_names
from tests.kernels.precisions import SOFTMAX
from tests.verdicts import is_right
from workflow.workloads import KINDS, workload_of

CIRCUIT = {"name": "random", "qubits": 7, "depth": 6, "seed": 2}
OTHER_PRODUCTS = (
    ("beamforming", {"detect": "power", "integrate": 31}),
    ("beamforming", {"detect": "stokes", "integrate": 31}),
    ("correlate", {"form": "triangle"}),
    ("dft", {"length": 64, "power": True, "segments": 16}),
    ("statevector", {"circuit": CIRCUIT, "probabilities": [0, 1]}),
    ("statevector", {"circuit": CIRCUIT, "observables": ["ZZIIIZZ", "XYIZIIX"]}),
    ("statevector", {"circuit": CIRCUIT, "shots": 3000}),
)
"""Keys that give a kind's product other axes."""
every_product = pytest.mark.parametrize(
    ("name", "changes"), [*((one, {}) for one in sorted(KINDS)), *OTHER_PRODUCTS], ids=str
)


def workload(kind, name="w", seed=7, **changes):
    case = KINDS[kind].case_type.model_validate({"kind": kind, **KINDS[kind].small, **changes})
    return workload_of(name, case, seed)


def result_of(implementation, staged):
    return implementation.compute(implementation.prepare(staged.operands))


@pytest.fixture(params=sorted(KINDS))
def kind(request):
    return request.param


def test_staging_depends_on_seed_and_name_alone(kind):
    first = workload(kind).stage()
    workload(kind, name="other").stage()
    again = workload(kind).stage()
    assert first.operands.keys() == again.operands.keys()
    assert all(
        np.array_equal(first.operands[name], again.operands[name]) for name in first.operands
    )
    for changed in (workload(kind, seed=8).stage(), workload(kind, name="other").stage()):
        assert any(
            not np.array_equal(first.operands[name], changed.operands[name])
            for name in first.operands
        )


def test_staged_axes_fit_and_provenance_is_json(kind):
    staged = workload(kind).stage()
    assert staged.axes.keys() == staged.operands.keys()
    for name, data in staged.operands.items():
        assert len(staged.axes[name]) == data.ndim
        assert data.flags.c_contiguous
    assert json.loads(json.dumps(staged.attributes))["seed"] == 7


@pytest.mark.parametrize("precision", PRECISIONS)
def test_every_precision_verifies_and_a_wrong_element_does_not(kind, precision):
    one = workload(kind)
    staged, row = one.stage(), PRECISIONS[precision]
    if kind == "softmax" and precision not in SOFTMAX:
        with pytest.raises(ValueError, match="precision of a softmax must be one of"):
            result_of(one.argand(staged, row, cpu()), staged)
        return
    result = result_of(one.argand(staged, row, cpu()), staged)
    assert result.dtype == (row.output if result.dtype.kind == "c" else row.real_output)
    reference = one.reference(staged)
    found = one.assess(staged, reference, result, row, "cpu")
    assert is_right(found, precision), found.reason
    assert found.rel_frobenius is not None
    assert found.rel_frobenius <= max(0.05, 2 * row.u)
    # An element that is off by more than the largest one is wrong at any precision.
    result.reshape(-1)[-1] += 4 * np.abs(result).max()
    assert not one.assess(staged, reference, result, row, "cpu").verified


def test_operands_are_left_as_they_were(kind):
    one = workload(kind)
    staged = one.stage()
    implementation = one.argand(staged, PRECISIONS["fp32"], cpu())
    given = implementation.prepare(staged.operands)
    kept = {name: data.copy() for name, data in given.items()}
    first = implementation.compute(given)
    assert np.array_equal(first, implementation.compute(given))
    assert all(np.array_equal(kept[name], given[name]) for name in kept)


@every_product
def test_peers_verify_at_their_own_precision(name, changes):
    one = workload(name, **changes)
    staged = one.stage()
    reference = one.reference(staged)
    found = one.baselines(staged, cpu())
    assert {peer.precision.name for peer in found} >= {"fp32", "fp64"}
    for peer in found:
        result = result_of(peer, staged)
        # SciPy and NumPy do no worse than dense products at the same precision.
        given = one.as_computed(staged, peer.plan_words)
        accuracy = one.assess(given, reference, result, peer.precision, "cpu")
        assert accuracy.verified, (peer.name, accuracy.reason)


def test_peers_by_name(kind):
    one = workload(kind, baselines="none")
    staged = one.stage()
    assert one.baselines(staged, cpu()) == []
    name = workload(kind).baselines(staged, cpu())[0].name
    assert {p.name for p in workload(kind, baselines=[name]).baselines(staged, cpu())} == {name}
    with pytest.raises(ValueError, match=r"baselines must be one of \[.*\] here, got 'cuda-x'"):
        workload(kind, baselines=["cuda-x"]).baselines(staged, cpu())


def test_a_study_names_peers_of_all_its_kinds(kind):
    one = workload(kind)
    staged = one.stage()
    own = {peer.name for peer in one.baselines(staged, cpu())}
    found, refused = set(), set()
    for name in study_names():
        with contextlib.suppress(ValueError):
            found |= {
                peer.name for peer in workload(kind, baselines=[name]).baselines(staged, cpu())
            }
            continue
        refused.add(name)
    assert found == own, "those of other kinds are passed over"
    assert refused, "those of a GPU are not here"


def test_shape_counts_bytes_in_the_precision_of_the_memory(kind):
    one = workload(kind)
    staged = one.stage()
    single, double = (one.shape(staged, PRECISIONS[name]) for name in ("bf16", "fp64"))
    assert double.bytes_moved == 2 * single.bytes_moved > 0
    assert double.flops == single.flops > 0


def test_product_names_its_axes_and_can_be_drawn(kind):
    import matplotlib.figure

    one = workload(kind)
    staged = one.stage()
    product = one.product(staged, result_of(one.argand(staged, PRECISIONS["fp32"], cpu()), staged))
    assert len(product.axes) == product.data.ndim
    for axis, coordinate in product.coordinates.items():
        for one_axis, length in zip(coordinate.of(axis), coordinate.values.shape, strict=True):
            if one_axis in product.axes:
                assert length == product.data.shape[product.axes.index(one_axis)]
    axes = matplotlib.figure.Figure().subplots()
    one.picture(product, axes)
    assert axes.get_xlabel()
    assert axes.get_ylabel()
    axes.figure.draw_without_rendering()


def test_a_product_of_nan_alone_can_be_drawn(kind, tmp_path):
    """As of data without a finite value, which ``allow_unproven`` makes a product."""
    from workflow.figures.study import product_figure

    one = workload(kind)
    staged = one.stage()
    result = result_of(one.argand(staged, PRECISIONS["fp32"], cpu()), staged)
    product = one.product(staged, result)
    product = replace(product, data=np.full_like(product.data, np.nan))
    with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
        product_figure(one.picture, product).savefig(tmp_path / "picture.svg")


@every_product
def test_product_file_opens_again_and_in_xarray(name, changes, tmp_path):
    from workflow.storage.certificates import CERTIFICATE_KEYS
    from workflow.storage.products import read_product, write_product

    xarray = pytest.importorskip("xarray")
    one = workload(name, **changes)
    staged = one.stage()
    product = one.product(staged, result_of(one.argand(staged, PRECISIONS["fp32"], cpu()), staged))
    certificate = dict.fromkeys(CERTIFICATE_KEYS, "") | {"verdict": "verified"}
    write_product(tmp_path / "p.h5", product, certificate, workload="w", kind=name)
    again = read_product(tmp_path / "p.h5")
    assert np.array_equal(product.data, again.data)
    assert again.axes == product.axes
    with xarray.open_dataset(tmp_path / "p.h5") as shown:
        found = shown[product.name]
        assert found.dims == product.axes
        np.testing.assert_array_equal(found.values, product.data)
        for key, coordinate in product.coordinates.items():
            assert shown[key].dims == coordinate.of(key)
            np.testing.assert_array_equal(shown[key].values, coordinate.values)
            assert shown[key].attrs.get("units", "") == coordinate.units


def test_case_survives_json(kind):
    case = workload(kind).case
    given = case.model_dump(mode="json", exclude_unset=True)
    assert KINDS[kind].case_type.model_validate(json.loads(json.dumps(given))) == case


@pytest.mark.parametrize("geometry", ["linear", "planar"])
def test_beams_are_drawn_for_both_geometries(geometry):
    import matplotlib.figure

    one = workload("beamforming", array={"geometry": geometry})
    staged = one.stage()
    result = result_of(one.argand(staged, PRECISIONS["fp32"], cpu()), staged)
    axes = matplotlib.figure.Figure().subplots()
    one.picture(one.product(staged, result), axes)
    labels = {"linear": "direction cosine l (east)", "planar": "l (east)"}
    assert axes.get_xlabel() == labels[geometry]
    axes.figure.draw_without_rendering()


def test_every_field_is_described(kind):
    def fields(schema):
        for definition in [schema, *schema.get("$defs", {}).values()]:
            yield from definition.get("properties", {}).items()

    missing = [
        name
        for name, field in fields(KINDS[kind].case_type.model_json_schema())
        if "description" not in field and name != "kind"
    ]
    assert missing == []
