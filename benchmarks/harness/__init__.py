"""What every benchmark beside peers shares: arguments, cases, clock, conditions, rows."""
