"""Rates of an H200's L2, which the models of both families share. Needs no GPU and no CuPy."""

TOGETHER_BYTES, APART_BYTES = 10e12, 7e12
"""Bytes a second that L2 gives all multiprocessors together: of tiles that are at the same k, whose
loads of the same lines it serves at once, and of others. Those are tiles at different k, of a k
that a cluster or the blocks of stream-K cut, and operands whose lines are not multiples of its
sectors, 32 bytes."""
