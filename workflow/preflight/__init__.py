"""What is done with a study before its first job: reading, checking, what it needs and makes."""
