"""A peer: an image by NumPy, the weights of a channel in memory and two products."""

from benchmarks.peers._image import image_peer

PEER = image_peer("numpy", "cpu")
