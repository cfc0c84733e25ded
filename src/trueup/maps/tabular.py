"""Fitting maps that list every report: exact cells and the paper's grid."""

from __future__ import annotations

from dataclasses import replace

from trueup.core.cells import Cells
from trueup.core.joint import JointTable
from trueup.core.reports import Reports
from trueup.maps.report_map import Draw, FittedOn, ReportMap
from trueup.maps.request import Request
from trueup.maps.rules import Table
from trueup.solve.certified import CertifiedReports
from trueup.solve.projection import Projection, project


def fit_table(
    primary: Reports, reference: Reports, request: Request, cells: Cells
) -> ReportMap:
    """Project the joint table, taken as the population."""
    request.refuse_for(cells.name)
    joint = JointTable.from_reports(
        primary,
        reference,
        counts=request.sample_weight,
        groups=request.groups,
        counted_as="sample_weight",
    )
    joint = replace(joint, n_items=len(primary))
    projection = project(
        joint,
        loss=request.loss,
        trust=request.trust,
        caps=request.caps,
        reference_error=request.reference_error,
    )
    drawn = projection.randomised
    return ReportMap(
        rule=_table(projection),
        loss=projection.loss.name,
        cells=cells,
        floor=request.floor,
        certificate=request.annotated(projection.certificate),
        fitted_on=FittedOn.of(
            joint, joint.n_items, len(joint.groups), request.n_normalised
        ),
        _draw=None if drawn is None else _draw(drawn),
        _draw_certificate=None
        if drawn is None
        else request.annotated(drawn.certificate),
    )


def _table(projection: Projection) -> Table:
    better = projection.deployed.deployment.reports
    if better is None:  # only a draw has no reports, and draws are never deployed
        message = "the deployed map draws answers"
        raise AssertionError(message)
    return Table(projection.joint.primary, better, projection.deployed.distributions)


def _draw(drawn: CertifiedReports) -> Draw | None:
    weights = drawn.deployment.weights
    if weights is None:  # nothing can be gained, so nothing is drawn
        return None
    return Draw(weights, drawn.deployment.confidence, drawn.distributions)
