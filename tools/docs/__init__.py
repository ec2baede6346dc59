"""The tables of the pages, generated from code and from recorded measurements."""
