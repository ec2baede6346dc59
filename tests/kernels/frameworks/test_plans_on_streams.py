"""Plans of tensors follow the order of torch's streams, and are captured in its graphs."""

from __future__ import annotations

import gc
from typing import Any

import pytest

from tests.kernels.frameworks.plan_cases import PLANS, planned_case

torch = pytest.importorskip("torch", reason="torch is not installed")
pytestmark = pytest.mark.gpu


@pytest.fixture(params=PLANS)
def planned(request: pytest.FixtureRequest, gpu: Any) -> tuple[Any, Any, Any]:
    """A plan of tensors, its call and how to draw other tensors."""
    return planned_case(request.param, "cuda")


def test_plans_run_on_torchs_stream_and_in_its_graphs(planned: tuple[Any, Any, Any]) -> None:
    plan, call, arrays = planned
    given = arrays(3)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(50_000_000)
        late = [x.clone() for x in given]
        found = plan(*late)
    stream.synchronize()
    assert torch.equal(found, call(*given))
    # Programs of JAX's and graphs of torch's, which earlier tests left, end a capture within which
    # the collector drops them.
    gc.collect()
    graphs = []
    for _ in range(2):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            graphs.append((graph, plan(*given)))
    for x, other in zip(given, arrays(11), strict=True):
        x.copy_(other)
    streams = [torch.cuda.Stream() for _ in graphs]
    torch.cuda.synchronize()
    for _ in range(20):
        for (graph, _), at in zip(graphs, streams, strict=True):
            with torch.cuda.stream(at):
                graph.replay()
    torch.cuda.synchronize()
    expected = call(*given)
    for _, result in graphs:
        assert torch.equal(result, expected)


def test_calls_follow_what_a_busy_stream_does_before(planned: tuple[Any, Any, Any]) -> None:
    """Which is not CuPy's current one: also where the launch is a graph, and others go between."""
    plan, call, arrays = planned
    given, stream = arrays(3), torch.cuda.Stream()
    others = [arrays(seed) for seed in range(4, 10)]
    expected = [call(*other) for other in others]
    out, found = torch.empty_like(expected[0]), []
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for other in others:
            torch.cuda._sleep(5_000_000)
            for x, y in zip(given, other, strict=True):
                x.copy_(y)
            plan(*given, out=out)
            found.append(out.clone())
    stream.synchronize()
    for result, right in zip(found, expected, strict=True):
        assert torch.equal(result, right)
