"""Makes the application of a service: its parts, and what all services share."""

import hmac
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from fastapi.staticfiles import StaticFiles
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException as AnyHTTPException

from gaixie.service.part import Part
from gaixie.service.settings import ServiceSettings

PAGE = Path(__file__).parent / "page"
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
BEARER = HTTPBearer(auto_error=False, description="a token, if the service has any")
ABOUT = """Judges Chinese paraphrases with SPScore-zh, and writes some.

If the service has tokens, all of /v1 except /v1/about needs `Authorization: Bearer TOKEN`. Every
error is `{"error": {"code": "…", "message": "one line"}}`; 429 and 503 may be sent again."""
CODES = {
    **{400: "bad_request", 401: "unauthorized", 404: "not_found", 405: "method_not_allowed"},
    **{413: "too_large", 422: "invalid", 429: "too_many", 500: "internal", 503: "unavailable"},
}
"""Maps each HTTP status to the code that programs read."""

ERRORS: dict[int | str, dict[str, Any]] = {
    "4XX": {"description": "the request is wrong, or one too many"},
    503: {"description": "not available now; Retry-After says when"},
}
"""For OpenAPI."""


def make_app(parts: Sequence[Part], settings: ServiceSettings) -> FastAPI:
    """Returns the application. Its parts start with it, and stop once every request is answered."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for part in parts:
                await part.start()
                stack.push_async_callback(part.stop)
            yield

    app = FastAPI(
        title="Gaixie 改写",
        description=ABOUT,
        version=version("gaixie"),
        lifespan=lifespan,
        docs_url=None,  # Swagger's page loads its scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,  # each path has one form
        responses=ERRORS,
    )
    for kind in (RequestValidationError, AnyHTTPException, Exception):
        app.add_exception_handler(kind, _refusal)
    checks = [Depends(_allowing(settings.tokens)), Depends(_no_key_twice)]
    for part in parts:
        app.include_router(part.router, tags=[part.name], dependencies=checks)
    app.add_middleware(_Frame, most=settings.max_body)

    @app.get("/v1/about", tags=["about"])
    def about() -> dict[str, Any]:
        """Says what this service can do, and its limits. Needs no token."""
        return {
            "version": app.version,
            "parts": {part.name: part.about() for part in parts},
            "token_needed": bool(settings.tokens),
            "limits": settings.model_dump(exclude={"tokens"}),
        }

    @app.get("/health", tags=["about"])
    @app.get("/ready", tags=["about"])
    def ready() -> dict[str, str]:
        """Says that this process answers: no request is answered before all is loaded."""
        return {"status": "ready"}

    @app.get("/", include_in_schema=False)
    def page() -> FileResponse:
        return FileResponse(PAGE / "index.html", headers={"Cache-Control": "no-cache"})

    app.mount("/page", StaticFiles(directory=PAGE), name="page")
    return app


def _allowing(tokens: dict[str, str]) -> Callable[..., None]:
    """Returns a dependency that raises 401 for a request without one of the tokens."""

    def check(bearer: Annotated[HTTPAuthorizationCredentials | None, Depends(BEARER)]) -> None:
        given = bearer.credentials if bearer else ""
        # Compares all tokens, so that the time reveals nothing.
        known = [hmac.compare_digest(token.encode(), given.encode()) for token in tokens.values()]
        if tokens and not any(known):
            needed = "a bearer token is needed" + "; this one is wrong" * bool(given)
            raise HTTPException(401, needed, {"WWW-Authenticate": "Bearer"})

    return check


async def _no_key_twice(request: Request) -> None:
    """Raises 422 for a JSON body with a key that stands twice in an object."""

    def check(members: list[tuple[str, Any]]) -> None:
        names = [name for name, _ in members]
        if len({*names}) < len(names):
            raise HTTPException(422, f"{max(names, key=names.count)}: the key stands twice")

    if hasattr(request, "_json"):  # it was read as JSON
        json.loads(await request.body(), object_pairs_hook=check)


def _refusal(request: Request, error: Exception) -> JSONResponse:
    """Answers an error in one form. The traceback of an unexpected one goes to the log alone."""
    status, message, headers = 500, "an error in the service; its log explains it", None
    if isinstance(error, RequestValidationError):
        status, message = 422, _fault(error.errors()[0])
    elif isinstance(error, AnyHTTPException):
        status, message, headers = error.status_code, str(error.detail), error.headers
        status = status if status in CODES else 400
        if message == "There was an error parsing the body":  # FastAPI's own words
            message = "the body is not JSON in UTF-8, or is nested too deep"
    # Field names come from the client: any characters, of any length.
    line = " ".join(message.encode("utf-8", "replace").decode().split())[:300]
    return JSONResponse({"error": {"code": CODES[status], "message": line}}, status, headers)


def _fault(error: Any) -> str:
    """Describes pydantic's error in one line: where, and what was expected. It quotes no text of
    the request.
    """
    what = error["msg"].removeprefix("Value error, ")
    place = ".".join(str(name) for name in error["loc"] if name != "body")
    if error["type"] in ("model_attributes_type", "missing") and not place:
        return "expected a JSON object, with Content-Type: application/json"
    if error["type"] == "json_invalid":
        return f"not JSON: {error['ctx']['error']}"
    line = f"{what[:1].lower()}{what[1:]}"
    return f"{place}: {line}" if place else line


class _Frame:
    """Adds HEADERS to every answer, and refuses a body of more bytes than most."""

    def __init__(self, app: Any, most: int):
        self.app, self.most = app, most

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        size = 0

        async def limited() -> Any:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > self.most:
                raise HTTPException(413, f"the body has more than {self.most:,} bytes")
            return message

        async def with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self.app(scope, limited, with_headers)
