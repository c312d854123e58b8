"""Cells of similarity where one word matters: is a flipped meaning less alike than the same one in another word?"""
