"""The search. Read `objective`, `plan` and `maximize` first, then `ascent` with `climb`, or
`krylov`."""
