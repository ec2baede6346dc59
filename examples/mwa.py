"""An image of the sky from the covariance of the MWA's 128 tiles.

`prepare` reads a UVH5 file (one baseline a row) and writes the 128 x 128 covariance R and the
weights w of a grid of directions; the study examples/mwa.yaml multiplies them; `image` closes the
form w R w^H from the product and draws it.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import h5py
import numpy as np
from argand import gemm
from argand.runtime.files import atomic_path

from workflow.arrays import antennas
from workflow.storage.products import read_product

PREPARED = Path("results/examples/mwa.h5")
PRODUCT = Path("results/products/mwa-beams.h5")
SIDE = 81
SPACING = 0.02
"""Directions of the image along one side, and their distance in direction cosines."""


def prepare(source: Path) -> None:
    """Write R, the weights and their directions (l, m)."""
    with h5py.File(source) as file:
        first, second = (file[f"Header/ant_{end}_array"][...] for end in (1, 2))
        uvw = file["Header/uvw_array"][...]
        visibility = file["Data/visdata"][:, 0, 0, 0]
        frequency = float(np.ravel(file["Header/freq_array"][...])[0])
    tiles, where = np.unique([first, second], return_inverse=True)
    i, j = where.reshape(2, -1)
    covariance = np.zeros((len(tiles), len(tiles)), complex)
    covariance[i, j] = visibility
    covariance[j, i] = np.where(i == j, visibility, visibility.conj())
    # A baseline is the difference of two positions: those relative to the first tile suffice.
    position = np.zeros((len(tiles), 3))
    position[j[i == 0]] = uvw[i == 0]
    cosines = SPACING * (np.arange(SIDE) - SIDE // 2)
    grid = np.stack(np.meshgrid(cosines, cosines, indexing="ij"), axis=-1).reshape(-1, 2)
    weights = antennas.phases(np.array([frequency]), position[:, :2], grid)[0].conj()
    with atomic_path(PREPARED) as temporary, h5py.File(temporary, "w") as file:
        file["covariance"], file["weights"] = covariance, weights
        file["directions"] = grid
    print(f"{PREPARED}: {len(tiles)} tiles, {len(grid)} directions at {frequency / 1e6:.2f} MHz")


def image(target: Path) -> None:
    """Draw the power in each direction, sum_t (w R)_t conj(w_t)."""
    import matplotlib.pyplot as plt

    beams = read_product(PRODUCT).data[0, 0]
    with h5py.File(PREPARED) as file:
        weights = file["weights"][...]
    power = np.array(
        [gemm(b[None], w[None], op_b="C", precision="fp64")[0, 0].real
         for b, w in zip(beams, weights, strict=True)]
    )  # fmt: skip
    edge = SPACING * (SIDE // 2 + 0.5)
    figure, axes = plt.subplots(figsize=(6, 5), layout="constrained")
    shown = axes.imshow(
        power.reshape(SIDE, SIDE).T,
        origin="lower",
        extent=(-edge, edge, -edge, edge),
        cmap="cividis",
    )
    axes.add_patch(plt.Circle((0, 0), 1, fill=False, linestyle=":"))
    axes.set(xlabel="direction cosine l", ylabel="direction cosine m", title="MWA, 128 tiles")
    figure.colorbar(shown, label="power of the beam (units of the visibilities)")
    with atomic_path(target) as temporary:
        figure.savefig(temporary, format=target.suffix[1:])
    print(target)


def main() -> None:
    """Run one of the two steps."""
    parser = argparse.ArgumentParser(description=__doc__)
    steps = parser.add_subparsers(dest="step", required=True)
    steps.add_parser("prepare").add_argument("source", type=Path)
    drawing = steps.add_parser("image")
    drawing.add_argument("target", type=Path, nargs="?", default=Path("results/examples/mwa.svg"))
    given = parser.parse_args()
    if given.step == "prepare":
        prepare(given.source)
    else:
        image(given.target)


if __name__ == "__main__":
    main()
