"""The command ``argand``: studies, tuning, and what this machine would use."""
