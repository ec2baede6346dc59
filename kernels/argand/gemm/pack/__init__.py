"""Operands packed in planes, of one call or for many: the public call, plans, launches."""
