"""Requests generated from /openapi.json, for every part, must never cause a server error."""

import json
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from services import scored_examples, whole_app

EXAMPLES = 12
CHECKS = ("not_a_server_error", "status_code_conformance")
CHECKS += ("content_type_conformance", "response_schema_conformance")
PATHS = ("/v1/paraphrase", "/v1/run/pairs", "/v1/run/histograms", "/v1/run/pair/{pair_id}")
PATHS += ("/v1/run/export", "/v1/score", "/v1/score-table", "/v1/about")


@pytest.fixture(scope="module")
def app(tmp_path_factory, known_writer):
    folder = tmp_path_factory.mktemp("service")
    return whole_app(folder, scored_examples(), known_writer, max_texts=3)


@pytest.mark.parametrize("mode", ["positive", "negative"])
@pytest.mark.parametrize("path", PATHS)
def test_requests_that_nobody_thought_of(app, service, path, mode):
    import schemathesis  # takes seconds, which every other test process saves
    from schemathesis import GenerationMode, checks

    schema = schemathesis.openapi.from_dict(app.openapi())
    [operation] = [one.ok() for one in schema.get_all_operations() if one.ok().path == path]
    statuses = set()

    @settings(max_examples=EXAMPLES, database=None, suppress_health_check=[*HealthCheck])
    @given(operation.as_strategy(GenerationMode(mode)))
    def ask(case):
        response = case.call(base_url=service.url)
        statuses.add(response.status_code)
        case.validate_response(response, checks=[getattr(checks, name) for name in CHECKS])

    try:
        ask()
    except Unsatisfiable:
        assert mode == "negative"  # no wrong request is possible here
        return
    assert max(statuses) < 500
    if mode == "positive" and path.startswith("/v1/run") and "{" not in path:
        assert 200 in statuses


def test_every_route_field_and_parameter_is_described(app):
    document = app.openapi()
    own: list[tuple[str, str, dict]] = []
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            own.append((path, method, operation))
            own += [(path, one["name"], one) for one in operation.get("parameters", ())]
            assert "4XX" in operation["responses"]
    for name, schema in document["components"]["schemas"].items():
        if name not in ("Changes", "Segment"):
            own += [(name, *field) for field in schema.get("properties", {}).items()]
    assert len(own) > 90
    assert [one[:2] for one in own if not one[2].get("description")] == []
    text = json.dumps(document)
    assert "HTTPValidationError" not in text
    assert not re.search(r'"https?://', text)  # nothing loads from another host
