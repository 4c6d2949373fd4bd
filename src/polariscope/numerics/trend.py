"""Whether a curve has come to rest."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

SHARE = 0.02
"""Part of the whole fall that still counts as falling, when it happens in the last quarter."""


def is_still_falling(values: Sequence[float]) -> bool:
    """Whether a curve fell in its last quarter: by more than 2 % of all it fell, and by more than its noise.

    With the means :math:`m_3, m_4` of the third and the last quarter of the values, the first value :math:`v_0` and
    the standard error :math:`s` of :math:`m_3 - m_4`, it is falling if :math:`m_3 - m_4 > 0.02\\,|v_0 - m_4|` and
    :math:`m_3 - m_4 > 2 s`. Quarters of a single value have no standard error. Fewer than two values never fall.

    :param values: what was measured, in order.

    >>> is_still_falling([8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0]), is_still_falling([8.0, 2.0, 1.0, 1.0, 1.0, 1.0])
    (True, False)
    """
    curve = np.asarray(values, dtype=np.float64)
    if len(curve) < 2 or not np.isfinite(curve).all():
        return False
    quarter = max(1, len(curve) // 4)
    third, last = curve[-2 * quarter : -quarter], curve[-quarter:]
    fall = float(third.mean() - last.mean())
    error = float(np.sqrt((third.var(ddof=1) + last.var(ddof=1)) / quarter)) if quarter > 1 else 0.0
    return bool(fall > SHARE * abs(curve[0] - last.mean()) and fall > 2 * error)
