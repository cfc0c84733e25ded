"""The store: whatever was answered stays, whenever the writer dies."""

from __future__ import annotations

import json

import pytest

from trueup.elicit.backends.base import Request
from trueup.elicit.store import Store
from trueup.errors import ElicitationError

REQUESTS = [Request("http://here", {"prompt": f"{n} – é\n"}) for n in range(3)]


def _filled(path):
    with Store(path) as store:
        for n, request in enumerate(REQUESTS):
            store.put(request, {"n": n, "text": "a\nb\u2028c"})
    return path.read_bytes()


def test_what_was_put_is_there_again(tmp_path):
    _filled(tmp_path / "s.jsonl")

    with Store(tmp_path / "s.jsonl") as store:
        assert len(store) == 3
        assert store.get(REQUESTS[1]) == {"n": 1, "text": "a\nb\u2028c"}
        assert store.get(Request("http://there", REQUESTS[1].body)) is None


def test_a_line_cut_off_anywhere_costs_that_line_only(tmp_path):
    path = tmp_path / "s.jsonl"
    whole = _filled(path)
    start = whole.rstrip(b"\n").rindex(b"\n") + 1
    for end in range(start, len(whole)):
        path.write_bytes(whole[:end])
        with Store(path) as store:
            assert len(store) == 2
            assert store.n_damaged == (end > start)
            assert store.get(REQUESTS[2]) is None
            store.put(REQUESTS[2], {"again": True})
        with Store(path) as store:
            assert store.get(REQUESTS[2]) == {"again": True}
            assert store.get(REQUESTS[0]) == {"n": 0, "text": "a\nb\u2028c"}
            assert len(store) == 3


def test_a_store_only_grows(tmp_path):
    path = tmp_path / "s.jsonl"
    before = _filled(path)
    with Store(path) as store:
        store.put(Request("http://here", {"prompt": "new"}), {})

    assert path.read_bytes().startswith(before)


def test_foreign_lines_are_passed_over(tmp_path):
    path = tmp_path / "s.jsonl"
    _filled(path)
    with path.open("a") as file:
        file.write('not json\n[1]\n{"key": "no reply"}\n\n')

    with Store(path) as store:
        assert len(store) == 3
        assert store.n_damaged == 3


def test_one_process_writes_at_a_time(tmp_path):
    with (
        Store(tmp_path / "s.jsonl"),
        pytest.raises(ElicitationError, match="another run"),
    ):
        Store(tmp_path / "s.jsonl")


def test_a_store_that_cannot_be_opened_is_told(tmp_path):
    with pytest.raises(ElicitationError, match="cannot be opened"):
        Store(tmp_path / "nowhere" / "s.jsonl")


def test_the_key_of_a_request_depends_on_all_of_it_and_not_on_the_order():
    one = Request("http://here", {"a": 1, "b": [1, 2]})

    assert one.key == Request("http://here", {"b": [1, 2], "a": 1}).key
    assert one.key != Request("http://here", {"a": 1, "b": [2, 1]}).key
    assert one.key != Request("http://there", {"a": 1, "b": [1, 2]}).key


def test_a_record_holds_request_and_reply(tmp_path):
    _filled(tmp_path / "s.jsonl")
    first = json.loads((tmp_path / "s.jsonl").read_text().splitlines()[0])

    assert set(first) == {"key", "where", "body", "reply"}
    assert first["body"] == {"prompt": "0 – é\n"}
