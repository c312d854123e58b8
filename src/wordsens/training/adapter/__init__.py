"""A small adapter on a frozen encoder that makes flipped meanings show."""
