"""Functions of torch that repeated calls use, as names of a module.

A call finds those sooner than attributes of an object.
"""

from __future__ import annotations

import torch

from argand.frameworks.torch_internals import INTERNALS

raw_stream = INTERNALS.raw_stream
is_capturing = INTERNALS.is_capturing
are_followed = INTERNALS.are_followed
pass_unseen = INTERNALS.pass_unseen
check_of = INTERNALS.check_of
note_written = INTERNALS.note_written
is_compiling = torch.compiler.is_compiling
is_traced = torch.compiler.is_dynamo_compiling
is_grad_enabled = torch.is_grad_enabled
empty_like = torch.empty_like
