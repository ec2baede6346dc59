"""Arrays of other libraries in, the same arrays out, by calls and by plans of calls.

Each library is imported by a call that has its arrays.
"""
