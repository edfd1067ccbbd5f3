"""An OpenAI-compatible endpoint in its own process, with faults that depend on the prompt.

  python llm_server.py LOG SCRIPT

Prints its port. SCRIPT is JSON: for each text that a prompt may contain, a list of behaviours, one
per request; after the list ends, answers are normal. A prompt ends with an empty line and the
sentence. LOG gets a line for each answer before it is sent: its sentence.
"""

import json
import os
import subprocess
import sys
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

PREFIX = "换句话说，"
REFUSAL = "抱歉，我无法协助改写这个句子。"
ERRORS = {
    "unauthorized": (401, "invalid_api_key"),
    "missing": (404, "model_not_found"),
    "poor": (429, "insufficient_quota"),
    "429": (429, "rate_limit_exceeded"),
    "500": (500, "server_error"),
    "filtered": (400, "content_filter"),
    "rejected": (400, "invalid_request"),
}


class Server:
    """The server process, as a test sees it."""

    def __init__(self, folder: Path, script: dict[str, list[str]] | None = None):
        self.log = folder / "answered.txt"
        self.log.touch()
        (folder / "script.json").write_text(json.dumps(script or {}), "utf-8")
        line = [sys.executable, __file__, str(self.log), str(folder / "script.json")]
        self.process = subprocess.Popen(line, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout
        self.url = f"http://127.0.0.1:{int(self.process.stdout.readline())}/v1"

    def answered(self) -> list[str]:
        """Returns the sentences that were answered, in order."""
        return self.log.read_text("utf-8").splitlines()

    def stop(self) -> None:
        self.process.kill()
        self.process.communicate()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    script: dict[str, list[str]]
    log: int
    seen: ClassVar[Counter[str]] = Counter()
    lock = threading.Lock()

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        prompt = body["messages"][-1]["content"]
        kind = self._behaviour(prompt)
        if kind in ERRORS:
            status, code = ERRORS[kind]
            message = f"no, {self.headers['Authorization']}"  # some servers repeat the key
            self._send(status, {"error": {"message": message, "code": code}})
        elif kind == "slow":
            self.connection.recv(1)  # until the client hangs up
            self.close_connection = True
        else:
            self._answer(kind, prompt, body)

    def _behaviour(self, prompt: str) -> str:
        with self.lock:
            for text, kinds in self.script.items():
                if text in prompt:
                    self.seen[text] += 1
                    number = self.seen[text] - 1
                    return kinds[number] if number < len(kinds) else "well"
        return "well"

    def _answer(self, kind: str, prompt: str, body: dict[str, Any]) -> None:
        asked = prompt.rpartition("\n\n")[2]
        text = f"{PREFIX}{asked}"
        texts = {"refused": REFUSAL, "empty": "", "lines": f"{text}\n{text}", "copied": asked}
        texts |= {"english": "The same in English, at some length."}
        texts |= {"reworded": asked.replace("因此", "所以")}
        text = texts.get(kind, text)
        ending = {"cut off": "length", "withheld": "content_filter"}.get(kind, "stop")
        assert len(text) <= body.get("max_tokens", 10**9), f"{len(text)} tokens, asked for {body}"
        os.write(self.log, f"{asked}\n".encode())
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "message": message, "finish_reason": ending}
        answer = {"id": "1", "object": "chat.completion", "created": 1, "model": body["model"]}
        used = {"prompt_tokens": len(prompt), "completion_tokens": len(text)}
        usage = used | {"total_tokens": len(prompt) + len(text)}
        self._send(200, answer | {"choices": [choice], "usage": usage}, kind)

    def _send(self, status: int, value: Any, kind: str = "") -> None:
        data = b"{no JSON" if kind == "json" else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        if status == 429:
            self.send_header("Retry-After", "0.01")
        self.end_headers()
        if kind == "cut":
            data = data[: len(data) // 2]
            self.close_connection = True
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


if __name__ == "__main__":
    Handler.log = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND)
    Handler.script = json.loads(Path(sys.argv[2]).read_text("utf-8"))
    # With the default of five, a busy machine refuses some simultaneous connections.
    ThreadingHTTPServer.request_queue_size = 128
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_port, flush=True)
    server.serve_forever()
