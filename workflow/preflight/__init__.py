"""What precedes the first job of a study: its check, needs of jobs, and what is done again."""
