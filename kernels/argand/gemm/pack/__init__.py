"""Operands in planes, packed in a call of a product or for many calls.

`api` is `argand.pack`, which returns a `packed` operand; on a GPU `gpu` makes it. `launch` has the
launches of packing, by the plans of `plan` in `tiles`, compiled from `source`.
"""
