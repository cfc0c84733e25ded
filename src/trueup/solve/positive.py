"""Log loss needs positive reports: an error that says which are not."""

from __future__ import annotations

import numpy as np

from trueup._validate import Floats
from trueup.core.joint import JointTable
from trueup.core.reports import Distributions
from trueup.errors import InvalidReportError


def check_positive(joint: JointTable) -> None:
    """Refuse a table whose primary rules an outcome out."""
    primary = joint.primary
    if isinstance(primary, Distributions) and (primary.probabilities == 0).any():
        raise zero_under_log_loss(primary.probabilities, "the table's primary")


def zero_under_log_loss(probabilities: Floats, name: str) -> InvalidReportError:
    """The error for reports that rule an outcome out under log loss."""
    rows, columns = np.nonzero(probabilities == 0)
    shown = ", ".join(f"{row:,}" for row in np.unique(rows)[:5])
    more = ", ..." if len(np.unique(rows)) > 5 else ""
    return InvalidReportError.rows(
        name,
        "with an exact zero, whose log loss is infinite",
        bad=len(np.unique(rows)),
        total=len(probabilities),
        first=f"outcome {columns[0]} at row {rows[0]:,} (rows {shown}{more})",
        hint="use another loss, or floor=1e-4 to replace every report r by "
        "(1 - K floor) r + floor; the certificate is then against that primary",
    )
