"""Pairs and texts that a tiny model can learn."""

ANIMALS = ("cat", "dog", "horse", "goat", "hen", "pig", "owl", "fox", "hare", "bee")
PLACES = ("barn", "yard", "house", "field")
PAIRS = [
    pair
    for animal in ANIMALS
    for place in PLACES
    for text in (f"The {animal} is in the {place} today.",)
    for pair in (
        ("negation", text, f"The {animal} is not in the {place} today.", False),
        ("order", text, f"Today the {animal} is in the {place}.", True),
    )
]
TEXTS = [f"The {animal} was in the {place} before noon. It can sleep there." for animal in ANIMALS for place in PLACES]
