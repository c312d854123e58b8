"""The library's errors in the words of the command line: `max_words=510` is `--max-words 510`."""

import re

_NAMES = (
    "activation|data|dataset|depth|device|encoder|encoding|file|layer|limit|map|max_words|out|output|pool|radius|removal|sample|scale|scheduler|seed|slurm|starts|"
    "steps|temperature|text_column|threads|threshold|width|words_per_text|words|workers"
)


def in_options(message: str) -> str:
    """The message with every argument that an option stands for under the option's name.

    >>> in_options("`radius` (=0) must be positive; pass max_words=510 or less")
    '--radius (=0) must be positive; pass --max-words 510 or less'
    >>> in_options("`X` has one word")
    'the text has one word'
    """
    quoted = re.sub(rf"`({_NAMES})`", lambda found: _option(found[1]), message)
    given = re.sub(rf"\b({_NAMES})=(?=[\w'])", lambda found: f"{_option(found[1])} ", quoted)
    return re.sub(r"\btext_column\b", "--text-column", given).replace("`X`", "the text")


def _option(name: str) -> str:
    return "--" + {"words": "word"}.get(name, name).replace("_", "-")
