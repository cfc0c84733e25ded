"""Reports out of a language model: questions in, option probabilities out.

The package can be called: ``trueup.elicit(questions, backend, store=path)`` is
:func:`trueup.elicit.runner.elicit`.

Examples
--------
>>> import trueup.elicit
>>> question = trueup.elicit.Question("q1", "Which is a fruit?", ("stone", "pear"))
>>> print(trueup.elicit.get_template("paper-base").render(question).text)
The following is a multiple-choice question.
<BLANKLINE>
Question: Which is a fruit?
A. stone
B. pear
<BLANKLINE>
Answer:
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trueup._packages import lazy_names, make_callable

if TYPE_CHECKING:
    from trueup.elicit.asking import ItemReport, Unread
    from trueup.elicit.backends.embedded import EmbeddedBackend
    from trueup.elicit.backends.http import HttpBackend
    from trueup.elicit.backends.transformers import TransformersBackend
    from trueup.elicit.formats import read_questions
    from trueup.elicit.output import Elicited
    from trueup.elicit.prompts import TEMPLATES, Template, get_template
    from trueup.elicit.questions import Question
    from trueup.elicit.runner import elicit
    from trueup.elicit.sending import Patience

__all__ = [
    "TEMPLATES",
    "Elicited",
    "EmbeddedBackend",
    "HttpBackend",
    "ItemReport",
    "Patience",
    "Question",
    "Template",
    "TransformersBackend",
    "Unread",
    "elicit",
    "get_template",
    "read_questions",
]

_HOMES = {
    "TEMPLATES": "trueup.elicit.prompts",
    "Elicited": "trueup.elicit.output",
    "EmbeddedBackend": "trueup.elicit.backends.embedded",
    "HttpBackend": "trueup.elicit.backends.http",
    "ItemReport": "trueup.elicit.asking",
    "Patience": "trueup.elicit.sending",
    "Question": "trueup.elicit.questions",
    "Template": "trueup.elicit.prompts",
    "TransformersBackend": "trueup.elicit.backends.transformers",
    "Unread": "trueup.elicit.asking",
    "elicit": "trueup.elicit.runner",
    "get_template": "trueup.elicit.prompts",
    "read_questions": "trueup.elicit.formats",
}

__getattr__ = lazy_names(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted(__all__)


make_callable(__name__, "trueup.elicit.runner", "elicit")
