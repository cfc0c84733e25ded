"""What can be said about two predictors without labels.

The package can be called: ``trueup.audit(primary, reference)`` is
:func:`trueup.audit.audit.audit`, and works whether or not parts of the package were
imported before.

Examples
--------
The reference always says 0.5; the primary says 0.1 on half of the items and 0.7 on the
others, 0.4 on average. Both cannot be right:

>>> import trueup
>>> a = trueup.audit([.1, .7], [.5, .5])
>>> a.verdict
'contradiction'
>>> print(f"{a.break_even_reference_error:.4f} {a.min_ece:.4f} {a.arbitrage.value:.4f}")
0.1000 0.1000 0.1111
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trueup._packages import lazy_names, make_callable

if TYPE_CHECKING:
    from trueup.audit.arbitrage import Arbitrage
    from trueup.audit.contracts import ArbitrageContract, Contracts
    from trueup.audit.guarantees import GuaranteeCurve, OtherLosses, Rungs
    from trueup.audit.imperfect import ImperfectBound, ReferenceMoments
    from trueup.audit.mutual import Nearest
    from trueup.audit.picture import Figure
    from trueup.audit.result import Audit

__all__ = [
    "Arbitrage",
    "ArbitrageContract",
    "Audit",
    "Contracts",
    "Figure",
    "GuaranteeCurve",
    "ImperfectBound",
    "Nearest",
    "OtherLosses",
    "ReferenceMoments",
    "Rungs",
]

_HOMES = {
    "Arbitrage": "trueup.audit.arbitrage",
    "ArbitrageContract": "trueup.audit.contracts",
    "Audit": "trueup.audit.result",
    "Contracts": "trueup.audit.contracts",
    "Figure": "trueup.audit.picture",
    "GuaranteeCurve": "trueup.audit.guarantees",
    "ImperfectBound": "trueup.audit.imperfect",
    "Nearest": "trueup.audit.mutual",
    "OtherLosses": "trueup.audit.guarantees",
    "ReferenceMoments": "trueup.audit.imperfect",
    "Rungs": "trueup.audit.guarantees",
}


__getattr__ = lazy_names(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted(__all__)


make_callable(__name__, "trueup.audit.audit", "audit")
