"""Prompts: the paper's to the letter, templates of one's own, orders of options."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trueup.elicit import Question, Template, get_template
from trueup.elicit.prompts import Prompt, option_orders, prompt_hash
from trueup.errors import InvalidInputError, UnknownNameError

QUESTION = Question("q", "What {is} it?", ("one", "two {x}"), "world_religions", 1)


def test_the_base_prompt_is_the_papers():
    assert get_template("paper-base").render(QUESTION) == Prompt(
        text=(
            "The following is a multiple-choice question about world religions.\n"
            "\n"
            "Question: What {is} it?\n"
            "A. one\n"
            "B. two {x}\n"
            "\n"
            "Answer:"
        )
    )


def test_the_instruct_prompts_are_the_papers():
    template = get_template("paper-instruct")
    first = template.render(QUESTION)
    second = template.render_answer(first, QUESTION, "It is {one}. Surely")

    assert first == Prompt(
        messages=(
            (
                "system",
                "The following is a multiple-choice question about world religions.",
            ),
            ("user", "Question: What {is} it?\nA. one\nB. two {x}"),
        )
    )
    assert second.messages == first.messages
    assert second.prefill == (
        "It is {one}. Surely. So the final answer is (answer with an option letter):"
    )
    assert second.turn == "So the final answer is (answer with an option letter):"


def test_without_a_subject_nothing_is_said_about_it():
    question = Question("q", "What?", ("one", "two"))
    text = get_template("paper-base").render(question).text

    assert text.startswith("The following is a multiple-choice question.\n")


def test_options_are_shown_in_the_order_asked_for():
    text = get_template("paper-base").render(QUESTION, (1, 0)).text

    assert "A. two {x}\nB. one\n" in text


def test_templates_come_from_files(tmp_path):
    (tmp_path / "mine.toml").write_text(
        'style = "base"\nuser = "{question}\\n{options}\\n{{letter}}:"\n'
    )
    (tmp_path / "mine.json").write_text(
        '{"name": "other", "style": "instruct", "user": "{question}", '
        '"answer": "{reasoning} Hence"}'
    )
    mine = get_template(str(tmp_path / "mine.toml"))
    other = get_template(str(tmp_path / "mine.json"))

    assert mine.name == "mine"
    assert mine.render(QUESTION).text == "What {is} it?\nA. one\nB. two {x}\n{letter}:"
    assert other.name == "other"
    assert other.render(QUESTION).messages == (("user", "What {is} it?"),)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('style = "base"\nuser = "Answer: "', "white space"),
        ('style = "instruct"\nuser = "Answer:"', "no text after which"),
        ('style = "base"\nuser = "{question.id}"', "place in a template"),
        ('style = "base"\nuser = "{answer}:"', "place in a template"),
        ('style = "base"\nuser = "{question"', "braces"),
        ('style = "chat"\nuser = "x"', "unknown style"),
        ('user = "x"', "does not say 'style'"),
        ('style = "base"\nuser = "x"\nmore = 1', "field of a template"),
        ("style =", "cannot be read"),
    ],
)
def test_a_wrong_template_is_refused(tmp_path, content, said):
    (tmp_path / "mine.toml").write_text(content)

    with pytest.raises((InvalidInputError, UnknownNameError), match=said):
        get_template(str(tmp_path / "mine.toml"))


def test_unknown_and_absent_templates_are_refused():
    with pytest.raises(UnknownNameError, match="Did you mean 'paper-base'"):
        get_template("paper-bse")
    with pytest.raises(InvalidInputError, match="cannot be read"):
        get_template("nowhere.toml")


def test_the_hash_of_a_prompt_tells_templates_questions_and_orders_apart():
    base = get_template("paper-base")
    same = Template("other", "base", base.user)
    other = Question("q", "Why?", ("one", "two"))
    hashes = [
        prompt_hash(base, base.render(QUESTION)),
        prompt_hash(base, base.render(QUESTION, (1, 0))),
        prompt_hash(base, base.render(other)),
        prompt_hash(same, same.render(QUESTION)),
    ]

    assert len(set(hashes)) == 4
    assert hashes[0] == prompt_hash(base, base.render(QUESTION))


@given(st.integers(2, 26), st.integers(0, 5), st.integers(1, 30))
def test_every_order_shows_every_option_once(n_options, seed, n_orders):
    question = Question("q", "?", tuple(map(str, range(n_options))))
    for kind in ("given", "cyclic", "shuffled"):
        for order in option_orders(question, kind, n_orders, seed):
            assert sorted(order) == list(range(n_options))


@given(st.integers(2, 26))
def test_cyclic_orders_put_every_option_everywhere(n_options):
    question = Question("q", "?", tuple(map(str, range(n_options))))
    orders = option_orders(question, "cyclic")
    places = Counter((k, place) for order in orders for place, k in enumerate(order))

    assert len(orders) == n_options
    assert set(places.values()) == {1}
    assert len(places) == n_options**2


def test_shuffled_orders_depend_on_the_seed_and_the_item_only():
    question = Question("q", "?", tuple("abcdefgh"))
    other = Question("r", "?", tuple("abcdefgh"))

    assert option_orders(question, "shuffled", 3, 1) == option_orders(
        question, "shuffled", 3, 1
    )
    assert option_orders(question, "shuffled", 3, 1) != option_orders(
        question, "shuffled", 3, 2
    )
    assert option_orders(question, "shuffled", 3) != option_orders(other, "shuffled", 3)
    with pytest.raises(UnknownNameError):
        option_orders(question, "random")
    with pytest.raises(InvalidInputError):
        option_orders(question, "shuffled", 0)
