"""How a study is written down and what can be wrong with it."""
