"""Answers failed requests in one JSON form: {"error": {"code", "message"}}."""

from __future__ import annotations

import math
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import Field
from starlette.exceptions import HTTPException

from gaixie.udfs.storage.settings import Strict

CODES = {
    **{400: "bad_request", 401: "unauthorized", 404: "not_found", 405: "method_not_allowed"},
    **{408: "too_slow", 413: "too_large", 415: "unsupported_media_type", 422: "invalid"},
    **{429: "too_many", 500: "internal", 503: "unavailable"},
}
"""Maps each HTTP status to the code that programs read."""


LONGEST = 300
"""The most characters of a message."""


class Fault(Strict):
    code: str = Field(examples=["too_large"], description="a code for programs")
    message: str = Field(
        examples=["1,001 pairs: at most 1,000 a request"], description="one line for people"
    )


class ErrorAnswer(Strict):
    """The answer to a request that fails."""

    error: Fault = Field(description="what is wrong")


ERRORS: dict[int | str, dict[str, Any]] = {
    "4XX": {"model": ErrorAnswer, "description": "the request is wrong, or one too many"},
    503: {"model": ErrorAnswer, "description": "not available now; Retry-After says when"},
}
"""For OpenAPI."""


class Refused(Exception):
    """A request that is answered with an error.

    retry_after: seconds after which the same request may succeed; None if it never will.
    """

    def __init__(self, status: int, message: str, retry_after: float | None = None):
        super().__init__(message)
        self.status, self.message, self.retry_after = status, message, retry_after

    def response(self) -> JSONResponse:
        headers = (
            {"Retry-After": str(max(1, math.ceil(self.retry_after)))} if self.retry_after else {}
        )
        if self.status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        if self.status in (408, 413):
            headers["Connection"] = "close"  # the request was not read to its end
        # Field names come from the client: any characters, of any length.
        line = " ".join(self.message.encode("utf-8", "replace").decode().split())
        body = {"error": {"code": CODES[self.status], "message": line[:LONGEST]}}
        return JSONResponse(body, self.status, headers)


def add_handlers(app: FastAPI) -> None:
    """Makes an app answer every error in this form."""

    @app.exception_handler(Refused)
    def _refused(request: Request, error: Refused) -> JSONResponse:
        return error.response()

    @app.exception_handler(RequestValidationError)
    def _invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        return Refused(422, fault(error.errors()[0])).response()

    @app.exception_handler(HTTPException)
    def _http(request: Request, error: HTTPException) -> JSONResponse:
        status = error.status_code
        message = {404: "no such path", 405: "this path does not accept this method"}.get(
            status, str(error.detail)
        )
        response = Refused(status if status in CODES else 400, message).response()
        response.headers.update(error.headers or {})
        return response

    @app.exception_handler(Exception)
    def _unexpected(request: Request, error: Exception) -> JSONResponse:
        """Answers 500. The traceback goes to the log, never to the client."""
        return Refused(500, "an error in the service; its log explains it").response()


def fault(error: Any) -> str:
    """Describes pydantic's error in one line: where, and what was expected. It quotes no text of
    the request.
    """
    where, what = error["loc"], error["msg"].removeprefix("Value error, ")
    place = ".".join(str(step) for step in where if step != "body")
    if error["type"] == "model_attributes_type" and not place:
        return "expected a JSON object, with Content-Type: application/json"
    if error["type"] == "json_invalid":
        return f"not JSON: {error['ctx']['error']}"
    line = f"{what[:1].lower()}{what[1:]}"
    return f"{place}: {line}" if place else line
