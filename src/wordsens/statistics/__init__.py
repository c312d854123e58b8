"""Statistics of two samples: how far they lie apart, with intervals, and whether that has changed."""
