"""S against n (paper, figures 2 and 3): cells of `sweeps.measurement`, their presets, series,
sentences and figures."""
