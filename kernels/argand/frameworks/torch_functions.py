"""Functions of torch that repeated calls use, as names of a module.

A call finds those sooner than attributes of an object.
"""

from __future__ import annotations

import torch

from argand.frameworks.torch_internals import INTERNALS

raw_stream = INTERNALS.raw_stream
is_capturing = INTERNALS.is_capturing
are_followed = INTERNALS.are_followed
check_of = INTERNALS.check_of
note_written = INTERNALS.note_written
is_compiling = torch.compiler.is_compiling
is_grad_enabled = torch.is_grad_enabled
data_ptr = torch.Tensor.data_ptr
empty_like = torch.empty_like
