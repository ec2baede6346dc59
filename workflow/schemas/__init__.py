"""Generators from the models of a study: the JSON schema and the tables of its keys."""
