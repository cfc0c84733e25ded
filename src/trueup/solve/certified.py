"""What a projection proves about the reports that replace the primary's."""

from __future__ import annotations

from dataclasses import dataclass

from trueup._validate import Floats
from trueup.core.losses import Deployment
from trueup.solve.certificate import Certificate
from trueup.solve.conic import Start
from trueup.solve.fewer_outcomes import FewerOutcomes
from trueup.solve.rounding import Witness


@dataclass(frozen=True, slots=True, eq=False)
class CertifiedReports:
    """What replaces each distinct primary report, with everything that proves it."""

    certificate: Certificate
    multipliers: Floats
    """(moment rows,) the multipliers the certificate was computed with."""
    solved: tuple[Deployment, Witness]
    """What was found in the outcomes of the problem that was solved."""
    fewer: FewerOutcomes | None = None
    """How the outcomes of that problem are the real ones, where it had fewer."""
    start: Start | None = None
    """Where a similar projection may begin."""

    @property
    def deployment(self) -> Deployment:
        """What replaces each report; made on demand where outcomes are many."""
        deployed, _ = self.solved
        return deployed if self.fewer is None else self.fewer.widened(deployed)

    @property
    def witness(self) -> Witness:
        """Admissible outcome rates and distributions; made on demand like that."""
        _, witness = self.solved
        return witness if self.fewer is None else self.fewer.witness(witness)

    @property
    def distributions(self) -> Floats:
        """(primary reports, K) compatible distributions h."""
        return self.witness.distributions
