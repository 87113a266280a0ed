"""Entry point of `python -m antecede`."""

import sys

from antecede.cli import main

sys.exit(main())
