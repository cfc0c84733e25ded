"""write_report(): a summary as HTML, Markdown or JSON, by the file's suffix."""

from __future__ import annotations

import json
import os
from pathlib import Path

from trueup.errors import ExistingFileError, InvalidInputError, UnknownNameError
from trueup.maps._files import write_atomically
from trueup.report.summary import ReportSummary

FORMATS = ("html", "json", "markdown")
_SUFFIXES = {
    ".html": "html",
    ".htm": "html",
    ".md": "markdown",
    ".markdown": "markdown",
    ".json": "json",
}


def render(summary: ReportSummary, form: str = "html") -> str:
    """A report as text.

    Parameters
    ----------
    summary
        What :func:`summarise` returned.
    form
        ``"html"`` (one page that works offline), ``"markdown"`` or ``"json"``.

    Examples
    --------
    >>> import trueup
    >>> from trueup.report import render, summarise
    >>> fitted = trueup.fit([0.1, 0.7], [0.5, 0.5], cells="exact")
    >>> text = render(summarise(fitted, [0.1, 0.7], [0.5, 0.5]), "markdown")
    >>> print(text.splitlines()[0])
    # primary against reference
    """
    if form == "html":
        from trueup.report.html import html_page  # noqa: PLC0415 - needs the extra

        return html_page(summary)
    if form == "markdown":
        from trueup.report.markdown import markdown_page  # noqa: PLC0415

        return markdown_page(summary)
    if form == "json":
        content = summary.to_dict()
        return json.dumps(content, indent=1, allow_nan=False, ensure_ascii=False) + "\n"
    raise UnknownNameError.of("form", form, FORMATS)


def write_report(
    summary: ReportSummary, path: str | os.PathLike[str], *, force: bool = False
) -> None:
    """Write a report; the suffix says whether as HTML, Markdown or JSON.

    The file appears in one step or not at all, and replaces another only if asked to.

    Parameters
    ----------
    summary
        What :func:`summarise` returned.
    path
        Ends in ``.html``, ``.md`` or ``.json``.
    force
        Whether an existing file may be replaced.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import trueup
    >>> from trueup.report import summarise, write_report
    >>> fitted = trueup.fit([0.1, 0.7], [0.5, 0.5], cells="exact")
    >>> summary = summarise(fitted, [0.1, 0.7], [0.5, 0.5])
    >>> with TemporaryDirectory() as folder:
    ...     write_report(summary, Path(folder, "report.json"))
    ...     sorted(one.name for one in Path(folder).iterdir())
    ['report.json']
    """
    form = check_target(path, force=force)
    write_atomically(path, render(summary, form))


def check_target(path: str | os.PathLike[str], *, force: bool = False) -> str:
    """The form a path asks for, before any work is done; an error if it cannot be.

    Examples
    --------
    >>> check_target("report.md")
    'markdown'
    """
    target = Path(path)
    form = _SUFFIXES.get(target.suffix.lower())
    if form is None:
        message = (
            f"{os.fspath(path)} must end in .html, .md or .json: the suffix says how "
            "the report is written."
        )
        raise InvalidInputError(message)
    if target.exists() and not target.is_dir() and not force:
        raise ExistingFileError.of(os.fspath(path))
    return form
