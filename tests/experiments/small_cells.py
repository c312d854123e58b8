"""Keys of one small cell of every kind."""

CELLS = {
    "sensitivity": {"map": "raf", "n": 3, "d": 4, "text": "gaussian", "steps": 2},
    "generalization": {
        "map": "raf",
        "n": 3,
        "d": 4,
        "texts": 4,
        "text": "gaussian",
        "labels": "linear",
        "held_out": 2,
        "starts": 1,
        "steps": 2,
        "generations": 0,
    },
    "attention": {"first": "a good film", "second": "a bad film"},
    "audit": {"model": "minilm", "text": {"content": "a good film"}, "words_per_text": 1, "starts": 1},
    "departures": {"map": "raf", "n": 6, "d": 8, "text": "reviews", "search": "quick"},
    "correlations": {"map": "raf", "n": 4, "d": 6, "text": "gaussian", "search": "quick"},
    "several-words": {"map": "rf", "n": 4, "d": 6, "text": "gaussian", "search": "quick", "count": 2},
    "control": {
        "task": "one-word",
        "n": 5,
        "d": 6,
        "steps": 3,
        "training": 16,
        "texts": 1,
        "words": 1,
        "control": "hold",
        "target": 0.5,
    },
    "dry-run": {"draw": 3, "work": 1},
}
