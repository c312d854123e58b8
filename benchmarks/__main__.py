"""Name the benchmarks: python -m benchmarks. Each is run alone; `make numbers` renews the page."""

BENCHMARKS = {
    "search": "all words of a text, beside what one word costs by plain gradient ascent",
    "random_features": "random features on demand against dense matrices and autograd",
    "certificates": "upper bounds over attained values, by map, radius and length",
    "transformers": "transformers, trained and random, against a long search",
    "on_demand": "products with matrices that are never built",
    "sweeps": "the overhead of a sweep's cell, resumed and on workers",
    "evaluation": "check, explain and audit of an embedding model beside encoding its texts",
    "models": "which embedding model sees a word, of those that a package ships",
    "operations": "operations and waits a step of a search",
    "attack": "random problems attacked by code of its own",
    "theory": "predictions against measurements",
}


def main() -> None:
    """Print the names."""
    print("Benchmarks, each run by python -m benchmarks.NAME:\n")
    for name, what in BENCHMARKS.items():
        print(f"  {name:<16} {what}")


if __name__ == "__main__":
    main()
