"""Answers failed requests in one JSON form: {"error": {"code", "message"}}."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import Field
from starlette.exceptions import HTTPException as StarletteHTTPException

from gaixie.udfs.storage.settings import Strict

CODES = {
    **{400: "bad_request", 401: "unauthorized", 404: "not_found", 405: "method_not_allowed"},
    **{413: "too_large", 422: "invalid", 429: "too_many", 500: "internal", 503: "unavailable"},
}
"""Maps each HTTP status to the code that programs read."""
LONGEST = 300
"""The most characters of a message."""


class Fault(Strict):
    code: str = Field(examples=["too_large"], description="a code for programs")
    message: str = Field(description="one line for people")


class ErrorAnswer(Strict):
    """The answer to a request that fails."""

    error: Fault = Field(description="what is wrong")


ERRORS: dict[int | str, dict[str, Any]] = {
    "4XX": {"model": ErrorAnswer, "description": "the request is wrong, or one too many"},
    503: {"model": ErrorAnswer, "description": "not available now; Retry-After says when"},
}
"""For OpenAPI."""


class Gone(Exception):
    """The client has left, so nobody reads the answer."""


def busy(status: int, message: str) -> HTTPException:
    """Returns the error of a request that may succeed a second later."""
    return HTTPException(status, message, {"Retry-After": "1"})


def add_handlers(app: FastAPI) -> None:
    """Makes an app answer every error in this form."""

    @app.exception_handler(RequestValidationError)
    def _invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        return _answer(422, _fault(error.errors()[0]))

    @app.exception_handler(StarletteHTTPException)
    def _refused(request: Request, error: StarletteHTTPException) -> JSONResponse:
        status = error.status_code if error.status_code in CODES else 400
        return _answer(status, str(error.detail), error.headers)

    @app.exception_handler(Gone)
    def _gone(request: Request, error: Gone) -> JSONResponse:
        return _answer(503, "the client has left")

    @app.exception_handler(Exception)
    def _unexpected(request: Request, error: Exception) -> JSONResponse:
        """Answers 500. The traceback goes to the log, never to the client."""
        return _answer(500, "an error in the service; its log explains it")


def _answer(status: int, message: str, headers: Any = None) -> JSONResponse:
    # Field names come from the client: any characters, of any length.
    line = " ".join(message.encode("utf-8", "replace").decode().split())[:LONGEST]
    return JSONResponse({"error": {"code": CODES[status], "message": line}}, status, headers)


def _fault(error: Any) -> str:
    """Describes pydantic's error in one line: where, and what was expected. It quotes no text of
    the request.
    """
    where, what = error["loc"], error["msg"].removeprefix("Value error, ")
    place = ".".join(str(name) for name in where if name != "body")
    if error["type"] == "model_attributes_type" and not place:
        return "expected a JSON object, with Content-Type: application/json"
    if error["type"] == "json_invalid":
        return f"not JSON: {error['ctx']['error']}"
    line = f"{what[:1].lower()}{what[1:]}"
    return f"{place}: {line}" if place else line
