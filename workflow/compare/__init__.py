"""Two runs beside each other: rows matched, times and errors as ratios, a verdict on each row."""
