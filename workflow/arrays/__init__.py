"""Antenna arrays: where antennas stand, the waves that reach them, the power of their beams."""
