"""The work on a study before its first job: reading and checking it, its needs and products."""
