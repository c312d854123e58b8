"""The texts that the page offers, all our own."""

EXAMPLES = {
    "A short review": "I did not love this film, but I would watch it again for her voice.",
    "A negation": "The second key does not open the door to the archive.",
    "Forty words": (
        "When the lights went out in the old theatre nobody moved, because everyone believed the silence was part of "
        "the play, and only when the actor laughed did we understand that he had simply forgotten how the story was "
        "supposed to end."
    ),
    "A notice": (
        "Guests may keep small dogs in the garden rooms, unless the house is full, and must tell the desk before nine "
        "in the evening."
    ),
    "Right to left": "הסרט לא היה רע, אבל הסוף היה ארוך מדי.",
}
"""By their names on the page; the first is there at the beginning."""

PAIR = ("I love her much", "I love her smile")
"""The pair of the paper's figure 1."""

OPPOSITES = ("The lift is not working today.", "The lift is working today.")
"""The first texts of the screen that explains a score."""
