"""Servers on loopback for the tests: scripted ones, and llama.cpp's own."""

from __future__ import annotations

import hashlib
import json
import math
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Answer:
    """What a scripted server sends back."""

    content: object = None
    status: int = 200
    headers: dict = field(default_factory=dict)
    delay: float = 0.0
    cut: int | None = None
    """Close the connection after so many bytes."""


class ScriptedServer:
    """Answers what a function of the route, the body and the headers says.

    Requests are kept in order, with the moment at which they came.
    """

    def __init__(self, script):
        self.script = script
        self.requests = []
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}
        )

    @property
    def address(self):
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def asked(self, route):
        """Bodies that were sent to a route."""
        return [body for where, body, _, _ in self.requests if where == route]

    def moments(self, route):
        return [moment for where, _, _, moment in self.requests if where == route]

    def _answer(self, route, body, headers):
        with self._lock:
            self.requests.append((route, body, headers, time.monotonic()))
        answer = self.script(route, body, headers)
        return answer if isinstance(answer, Answer) else Answer(answer)

    def _handler(self):
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                self._reply({})

            def do_POST(self):
                length = int(self.headers.get("Content-Length", 0))
                self._reply(json.loads(self.rfile.read(length)))

            def _reply(self, body):
                answer = outer._answer(self.path, body, dict(self.headers))
                time.sleep(answer.delay)
                content = answer.content
                raw = content if isinstance(content, bytes) else _dumped(content)
                try:
                    self._send(answer, raw)
                except (BrokenPipeError, ConnectionResetError):
                    self.close_connection = True

            def _send(self, answer, raw):
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw if answer.cut is None else raw[: answer.cut])
                self.close_connection = answer.cut is not None

            def log_message(self, *_):
                pass

        return Handler


def _dumped(content):
    return json.dumps(content).encode()


def models(owner="llamacpp", name="m"):
    return {"object": "list", "data": [{"id": name, "owned_by": owner}]}


NOT_FOUND = Answer({"error": {"message": "no such route"}}, status=404)


def chat_shape(logprobs, text=" A"):
    """A completion as llama.cpp sends it."""
    listed = [
        {"id": n, "token": token, "bytes": list(token.encode()), "logprob": value}
        for n, (token, value) in enumerate(logprobs.items())
    ]
    content = [{**listed[0], "top_logprobs": listed}] if listed else []
    choice = {"text": text, "index": 0, "finish_reason": "length"}
    return {"choices": [{**choice, "logprobs": {"content": content}}]}


def legacy_shape(logprobs, text=" A"):
    """A completion as OpenAI and vLLM send it."""
    listed = {"tokens": [text], "token_logprobs": [-1.0], "top_logprobs": [logprobs]}
    return {"choices": [{"text": text, "finish_reason": "length", "logprobs": listed}]}


def chat_reply(text, logprobs=None, **message):
    content = {"role": "assistant", "content": text, **message}
    choice = {"index": 0, "message": content, "finish_reason": "stop"}
    if logprobs is not None:
        choice["logprobs"] = chat_shape(logprobs)["choices"][0]["logprobs"]
    return {"choices": [choice]}


def drawn_logprobs(text, letters="ABCDE"):
    """Log-probabilities that depend on a text and on nothing else."""
    digest = hashlib.sha256(text.encode()).digest()
    weights = [1 + digest[k] for k in range(len(letters) + 1)]
    total = sum(weights)
    names = [*(f" {letter}" for letter in letters), " the"]
    return {
        name: math.log(weight / total)
        for name, weight in zip(names, weights, strict=True)
    }


def like_llama_cpp(route, body, headers):
    """A well-behaved server with made-up probabilities."""
    if route == "/v1/models":
        return models()
    if route == "/apply-template":
        said = "".join(f"<{m['role']}>{m['content']}" for m in body["messages"])
        return {"prompt": f"{said}<assistant>"}
    if route == "/v1/completions":
        return chat_shape(drawn_logprobs(body["prompt"]))
    if route == "/v1/chat/completions":
        said = body["messages"][-1]["content"]
        return chat_reply(f"I think about {said[10:40]}")
    return NOT_FOUND
