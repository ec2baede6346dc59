"""The keys that a study may have, their values, and the words for what is wrong with them."""
