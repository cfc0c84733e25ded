"""Words for what the numbers mean, and numbers as people read them."""

from __future__ import annotations

import math

LOSSES = {
    "brier": "Brier loss",
    "log": "log loss",
    "spherical": "spherical loss",
    "confidence": "confidence loss",
    "zero-one": "zero-one loss",
    "squared": "squared loss",
    "pinball": "pinball loss",
    "expectile": "expectile loss",
}
LOSS_MEANING = {
    "brier": "squared error of the stated probabilities, summed over outcomes (0 to 2)",
    "log": "minus the logarithm of the probability given to what happened, in nats",
    "spherical": "minus the probability given to what happened, divided by the "
    "length of the stated distribution",
    "confidence": "squared error of the stated confidence minus accuracy",
    "zero-one": "share of wrong answers",
    "squared": "squared error of the stated mean",
    "pinball": "pinball loss of the stated quantile",
    "expectile": "asymmetric squared error of the stated expectile",
}
_BELIEFS = {
    "mean": "on average {reference} is as confident as it is right",
    "confidence": "answers that {reference} gives with 70 % confidence are right 70 % "
    "of the time, and so at every confidence",
    "answer-confidence": "{reference} is right 70 % of the time when it gives an "
    "answer with 70 % confidence, for each answer and at every confidence",
    "distribution": "all probabilities that {reference} states are right on average "
    "wherever it states them, not only those of its answers",
    "point": "what {reference} states is right on average wherever it states it",
}
_CAPPED = ", and no other outcome is likelier than its answer"


METRICS = {
    "accuracy": "accuracy",
    "ece": "ECE",
    "brier_top": "top-label Brier",
    "brier": "Brier loss",
    "log_loss": "log loss",
    "confidence_loss": "confidence loss",
    "squared_loss": "squared loss",
    "pinball_loss": "pinball loss",
    "expectile_loss": "expectile loss",
    "zero_one_loss": "zero-one loss",
    "calibration_error": "calibration error",
}
"""Metrics of the table, in its order; the others can be selected."""


def metric_title(name: str) -> str:
    """A metric as the page calls it."""
    return METRICS.get(name, name.replace("_", " "))


def loss_title(loss: str) -> str:
    """A loss as the page calls it."""
    return LOSSES.get(loss, f"{loss} loss")


def capitalised(text: str) -> str:
    """The text with a capital letter; the rest stays."""
    return text[:1].upper() + text[1:]


def belief(rung: str, caps: bool, reference: str) -> str:
    """What a rung believes of the reference, in plain words."""
    told = _BELIEFS[rung].format(reference=reference)
    return told + (_CAPPED if caps else "")


def rung_title(rung: str, caps: bool) -> str:
    """The rung as the ladder calls it."""
    return f"{rung} with caps" if caps else rung


def number(value: float, digits: int = 3) -> str:
    """A number with so many significant digits, as prose shows it.

    >>> number(0.0200), number(0.031415), number(-1e-5), number(1.0)
    ('0.02', '0.0314', '−0.00001', '1')
    """
    text = aligned(value, digits)
    return text.rstrip("0").rstrip(".") if "." in text else text


def aligned(value: float, digits: int = 3) -> str:
    """The same with its last zeros, as columns show it; never as a power of ten."""
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if abs(value) < 5e-8:
        return "0"
    places = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:.{min(places, 8)}f}".replace("-", "−")


def percent(share: float, digits: int = 0) -> str:
    """A share; what is not zero is not shown as zero."""
    if math.isnan(share):
        return "–"
    if 0 < share < 0.5 * 10.0 ** (-2 - digits):
        return f"below {10.0**-digits:g} %"
    return f"{100 * share:.{digits}f} %"


def count(value: int) -> str:
    """A whole number with thousands apart."""
    return f"{value:,}"


def one_line(text: object, most: int = 120) -> str:
    """Any name on one line, printable and not endless."""
    flat = " ".join(str(text).split())
    shown = "".join(char if char.isprintable() else "�" for char in flat)
    return shown if len(shown) <= most else shown[: most - 1] + "…"
