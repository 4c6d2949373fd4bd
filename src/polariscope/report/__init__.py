"""Reports: first a record is computed, then it is drawn.

The package bears the name of its function, so it can be called: ``polariscope.report("runs/first")`` works
whether or not the package has been imported before.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class _CallablePackage(ModuleType):
    def __call__(self, *arguments: Any, **options: Any) -> Any:
        from polariscope.report.report import report

        return report(*arguments, **options)


sys.modules[__name__].__class__ = _CallablePackage
