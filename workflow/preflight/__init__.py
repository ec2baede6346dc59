"""Before the first job of a study: it is checked, and what jobs need and repeat is found."""
