"""The tasks of the workers, one file each; they load torch, which the page's own process never does."""
