"""Clocks and sensors: the times of calls, and the state of the machine while they are taken."""
