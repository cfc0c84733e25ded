"""From the oracle's worlds to audits, and from an audit's pairs back to rows."""

from __future__ import annotations

import warnings

import numpy as np

import trueup
from bridge import arguments, primary_of, reference_of
from trueup.audit.audit import audit
from trueup.core.pairing import parse_reports
from trueup.maps.lookup import match


def audited(world, **changes):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", trueup.TrueupWarning)
        return audit(
            primary_of(world),
            reference_of(world),
            groups=world.groups,
            sample_weight=world.weights,
            **arguments(world) | changes,
        )


def scale_of(world):
    """Errors are in units of the outcome where that is a number."""
    return 1 + np.abs(world.numbers).max()


def truth_of(found, world, rates):
    """(rows, K) the rates of an audit's pairs; uniform where a row has no weight."""
    joint = found.joint
    first = match(parse_reports(primary_of(world), "p", None), joint.primary)
    second = match(parse_reports(reference_of(world), "q", None), joint.reference)
    groups = np.zeros(world.n_rows) if world.groups is None else world.groups
    names = joint.groups or (0,)
    known = {
        (i, j, names[g]): place
        for place, (i, j, g) in enumerate(
            zip(
                joint.primary_index.tolist(),
                joint.reference_index.tolist(),
                joint.group_index.tolist(),
                strict=True,
            )
        )
    }
    truth = np.full((world.n_rows, world.n_outcomes), 1 / world.n_outcomes)
    for row in np.flatnonzero(world.weights > 0):
        key = (first.index[row], second.index[row], groups[row])
        truth[row] = rates[known[key]]
    return truth
