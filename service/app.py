"""Makes the application of a service: its parts, and what all services share."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from fastapi import Depends, FastAPI, Response
from fastapi.responses import FileResponse, HTMLResponse
from fastapi.security import HTTPBearer
from fastapi.staticfiles import StaticFiles
from starlette.middleware.cors import CORSMiddleware

from gaixie.service import telemetry
from gaixie.service.guard import Guard, Receive, Send
from gaixie.service.part import Part
from gaixie.service.reference import reference
from gaixie.service.refusals import ERRORS, Refused, add_handlers
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
LIMITS = {"max_body", "max_pairs", "max_rows", "max_texts", "max_explained"}
LIMITS |= {"min_characters", "max_characters"}
"""Settings that GET /v1/about shows."""
BEARER = HTTPBearer(auto_error=False, description="a token, if the service has any")
"""For OpenAPI only: Guard checks the token."""
ABOUT = """Judges Chinese paraphrases with SPScore-zh, and writes some if a model is loaded.

If the service has tokens, all of /v1 except /v1/about needs `Authorization: Bearer TOKEN`. Every
error is `{"error": {"code": "…", "message": "one line"}}`; 429 and 503 say in `Retry-After` when to
try again. Requests may be repeated: scores are the same again, and so are paraphrases
drawn with a seed."""


def make_app(parts: Sequence[Part], settings: ServiceSettings) -> FastAPI:
    """Returns the application. Its parts start with it, and stop once every request is answered."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for part in parts:
                await part.start()
                stack.push_async_callback(part.stop)
            app.state.started = True
            yield
            app.state.started = False

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
    app.state.started = False
    add_handlers(app)
    for part in parts:
        app.include_router(part.router, tags=[part.name], dependencies=[Depends(BEARER)])
    _add_common(app, parts, settings)
    if all(part.name != "paraphrase" for part in parts):
        _add_no_model(app)
    app.add_middleware(Guard, settings=settings)
    if settings.cors:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.cors,
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization", "Content-Type"],
        )
    app.add_middleware(_Headers)
    return app


def _add_common(app: FastAPI, parts: Sequence[Part], settings: ServiceSettings) -> None:
    @app.get("/v1/about", tags=["about"])
    def about() -> dict[str, Any]:
        """Says what this service can do, and its limits. Needs no token."""
        return {
            "version": app.version,
            "parts": {part.name: part.about() for part in parts},
            "token_needed": bool(settings.tokens),
            "limits": settings.model_dump(include=LIMITS),
        }

    @app.get("/health", tags=["about"])
    def health() -> dict[str, str]:
        """Says that this process is alive."""
        return {"status": "alive"}

    @app.get("/ready", tags=["about"])
    def ready() -> dict[str, str]:
        """Says whether it can answer: everything is loaded, and it is not shutting down."""
        if not app.state.started or not all(part.ready() for part in parts):
            raise Refused(503, "not ready", retry_after=1)
        return {"status": "ready"}

    @app.get("/metrics", tags=["about"], response_class=Response)
    def metrics() -> Response:
        """Returns the counters of all processes of this service, for Prometheus."""
        text, kind = telemetry.exposition()
        return Response(text, media_type=kind)

    @app.get("/docs", include_in_schema=False)
    def docs() -> HTMLResponse:
        return HTMLResponse(reference(app.openapi()))

    @app.get("/", include_in_schema=False)
    def page() -> FileResponse:
        return FileResponse(PAGE / "index.html", headers={"Cache-Control": "no-cache"})

    @app.get("/favicon.ico", include_in_schema=False)
    def icon() -> FileResponse:
        return FileResponse(PAGE / "icon.svg")

    app.mount("/page", StaticFiles(directory=PAGE), name="page")


def _add_no_model(app: FastAPI) -> None:
    def no_model() -> None:
        raise Refused(
            404, "this service has no model that writes; gaixie serve starts a service with one"
        )

    app.post("/v1/paraphrase", include_in_schema=False)(no_model)
    app.get("/v1/models", include_in_schema=False)(no_model)


class _Headers:
    """Adds HEADERS to every response."""

    def __init__(self, app: Any):
        self.app = app

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        async def with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                there = {name for name, _ in message.get("headers", ())}
                own = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
                added = [(name, value) for name, value in own if name not in there]
                message["headers"] = [*message.get("headers", ()), *added]
            await send(message)

        await self.app(scope, receive, with_headers)
