"""Times of calls on a GPU, and the limits of a device."""
