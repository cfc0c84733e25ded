"""From the oracle's worlds to the package's inputs, and back."""

from __future__ import annotations

import warnings

import numpy as np

import trueup
from oracle import Floats, Kind, World, report_losses
from trueup.core.losses import Deployment
from trueup.core.pairing import parse_reports
from trueup.core.reports import Reports
from trueup.maps.lookup import match


def reports(world: World, kind: Kind, stated: Floats, level: float | None) -> object:
    """One side of a world as the package's users would pass it."""
    outcomes = list(range(world.n_outcomes))
    if world.values is not None:
        outcomes = world.values.tolist()
    if kind == "distribution":
        return stated
    if kind == "answer-confidence":
        answers = [outcomes[int(index)] for index in stated[:, 0]]
        return trueup.AnswerConfidence(
            answer=answers, confidence=stated[:, 1], outcomes=outcomes
        )
    if kind == "mode":
        named = [outcomes[int(index)] for index in stated]
        return trueup.PointReport(value=named, outcomes=outcomes, property="mode")
    return trueup.PointReport(
        value=stated, outcomes=outcomes, property=kind, level=level
    )


def primary_of(world: World) -> object:
    return reports(world, world.primary_kind, world.primary, world.primary_level)


def reference_of(world: World) -> object:
    return reports(world, world.reference_kind, world.reference, world.reference_level)


def arguments(world: World) -> dict[str, object]:
    """Keyword arguments of the front door that describe the world."""
    is_point = world.trust == "point"
    return {
        "loss": world.loss,
        "trust": None if is_point else world.trust,
        "caps": world.caps if world.trust == "answer-confidence" else None,
        "reference_error": world.reference_error,
    }


def joint_of(world: World) -> trueup.JointTable:
    return trueup.JointTable.from_counts(
        primary_of(world),
        reference_of(world),
        counts=world.weights,
        groups=world.groups,
    )


def projected(world: World) -> trueup.Projection:
    """Project a world; a gap beyond the tolerance would be an error here."""
    return trueup.project(joint_of(world), **arguments(world))


def fitted(world: World) -> trueup.ReportMap:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", trueup.TrueupWarning)
        return trueup.fit(
            primary_of(world),
            reference_of(world),
            groups=world.groups,
            sample_weight=world.weights,
            **arguments(world),
            cells="exact",
        )


def deployed_losses(world: World, atoms: Reports, deployment: Deployment) -> Floats:
    """(N, K) losses of what is deployed on each row; rows without mass keep theirs.

    Loss vectors are recomputed by the oracle where a report is deployed.
    """
    found = match(parse_reports(primary_of(world), "primary", None), atoms)
    own = report_losses(world, world.primary)
    return np.where(found.is_exact[:, None], deployment.losses[found.index], own)


def as_array(applied: object) -> Floats:
    """What a map returned, in the oracle's layout."""
    if isinstance(applied, np.ndarray):
        return applied
    if isinstance(applied, trueup.AnswerConfidence):
        return applied.keys()
    return applied.value
