"""Around the step of a job: its devices, its log and its progress, never what it computes."""
