"""What every operation runs on: compiling, launching, timing, files. Knows no operation."""
