"""What is generated about the project, which is no part of it."""
