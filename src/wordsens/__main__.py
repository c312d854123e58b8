"""`python -m wordsens`: the command line."""

import sys

from wordsens.cli import main

sys.exit(main())
