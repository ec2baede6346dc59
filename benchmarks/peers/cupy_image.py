"""A peer: an image by CuPy, the weights of a channel in memory and two products."""

from benchmarks.peers._image import image_peer

PEER = image_peer("cupy", "cuda")
