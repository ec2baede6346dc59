"""Arrays of other libraries in, the same arrays out; each is imported by a call that has them."""
