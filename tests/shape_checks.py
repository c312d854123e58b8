"""The checks of shapes and types of a function are built in its first call, and made in every call.

Imported before the package: the import hook of jaxtyping decorates its functions, as they are
defined, with what `jaxtyping.jaxtyped` is then. Building the checks of functions that no test of a
process calls took most of the time of importing the package.
"""

import functools
import inspect

import jaxtyping

_jaxtyped = jaxtyping.jaxtyped


def _decorator(*, typechecker):
    def decorated(function):
        if not inspect.isfunction(function):
            return _jaxtyped(function, typechecker=typechecker)
        checked = None

        @functools.wraps(function)
        def built_when_called(*args, **kwargs):
            nonlocal checked
            checked = checked or _jaxtyped(function, typechecker=typechecker)
            return checked(*args, **kwargs)

        return built_when_called

    return decorated


jaxtyping.jaxtyped = _decorator
