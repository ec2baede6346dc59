"""A peer: detected beams by NumPy, all beams in memory, then their squares and sums."""

from benchmarks.peers._beam_power import beam_power_peer

PEER = beam_power_peer("numpy", "cpu")
