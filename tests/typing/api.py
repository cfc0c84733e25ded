"""Uses of the public interface that a type checker must accept."""

import numpy as np

import trueup

fitted: trueup.ReportMap = trueup.fit(
    np.array([0.1, 0.7]), [0.5, 0.5], loss="log", trust="distribution", caps=None
)
guaranteed: float = fitted.certificate.guaranteed_improvement
sentence: str = fitted.certificate.assumption
joint: trueup.JointTable = trueup.JointTable.from_counts([0.1], [0.5], counts=[3])
projection: trueup.Projection = trueup.project(joint, reference_error=0.1)
fitted.save("map.json")
again: trueup.ReportMap = trueup.load("map.json")
stepped = trueup.fit([0.1], [0.5], cells=trueup.Step(0.01))
if fitted.randomised is not None:
    drawn = fitted.randomised.apply([0.1], rng=np.random.default_rng(0))
