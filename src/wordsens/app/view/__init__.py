"""The parts of the screens, in the look of the report."""
