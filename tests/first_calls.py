"""Shapes and types are checked in the first calls of a function in every test, not in the thousands of a search.

Imported before the package: the import hook of jaxtyping decorates its functions, as they are defined, with what
`jaxtyping.jaxtyped` is then. Checking every call took a third of the suite's time, and building the checks of functions
that no test of a process calls took most of the time of importing the package.
"""

import functools
import inspect
from itertools import count

import jaxtyping

CHECKED_CALLS = 5

_jaxtyped = jaxtyping.jaxtyped
_numbers = count(1)
_test = 0


def begin_test():
    """From here on the first calls are checked anew."""
    global _test
    _test = next(_numbers)


def _decorator(*, typechecker):
    def decorated(function):
        if not inspect.isfunction(function):
            return _jaxtyped(function, typechecker=typechecker)
        checked, test, left = None, 0, CHECKED_CALLS

        @functools.wraps(function)
        def counted(*args, **kwargs):
            nonlocal checked, test, left
            if test != _test:
                test, left = _test, CHECKED_CALLS
            if left == 0:
                return function(*args, **kwargs)
            left -= 1
            checked = checked or _jaxtyped(function, typechecker=typechecker)
            return checked(*args, **kwargs)

        return counted

    return decorated


jaxtyping.jaxtyped = _decorator
