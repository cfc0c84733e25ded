"""audit(): everything that two predictors reveal about each other without labels."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup import _validate
from trueup._validate import Floats
from trueup.audit._render import Shown, Table, json_number, number, percent
from trueup.audit.arbitrage import Arbitrage, find_arbitrage
from trueup.audit.guarantees import (
    GuaranteeCurve,
    OtherLosses,
    Rungs,
    certified_optimum,
    guarantee_curve,
    other_losses,
    rung_guarantee,
)
from trueup.audit.imperfect import (
    ImperfectBound,
    ReferenceMoments,
    imperfect_bound,
    reference_moments,
)
from trueup.audit.mutual import BreakEven, Nearest, nearest_pair, pair_break_even
from trueup.audit.pair import Pair
from trueup.audit.picture import Figure, make_figure
from trueup.core.cells import Cells, Step, get_cells
from trueup.core.joint import JointTable, paired_reports
from trueup.core.losses import LogLoss, get_loss
from trueup.core.moments import RUNGS, Trust, choose_trust
from trueup.core.reports import Distributions, PointReport
from trueup.errors import DoubtfulInputWarning, InvalidInputError, TrueupWarning
from trueup.solve.problem import ProjectionProblem
from trueup.solve.projection import (
    POPULATION,
    Projection,
    project,
    zero_under_log_loss,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

NOT_CALIBRATED = (
    "This does not mean that the primary is calibrated: an overconfident but "
    "well-informed primary often passes."
)
