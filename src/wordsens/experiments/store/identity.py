"""The name of a cell: a hash of everything that can change its value."""

import hashlib

SCHEMA_VERSION = 1
"""Raised when the meaning of a spec's key, or the way a cell is computed, changes: old records are then not reused."""


def hash_identity(identity: str) -> str:
    """The name in the store of the cell with that identity: SHA-256, the first 32 hexadecimal digits.

    >>> len(hash_identity("{}"))
    32
    """
    return hashlib.sha256(identity.encode()).hexdigest()[:32]
