"""Entry point of ``python -m polariscope``."""

from __future__ import annotations

import sys

from polariscope.cli import main

if __name__ == "__main__":
    sys.exit(main())
