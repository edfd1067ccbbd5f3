# The image of the service: the metric, and the paraphraser where GAIXIE_WRITER names its mounted folder.
#   docker build -f infra/docker/serve.Dockerfile -t gaixie-serve:0.1.0 .
#   docker run -p 127.0.0.1:8000:8000 -e GAIXIE_TOKENS=me=SECRET gaixie-serve:0.1.0

FROM python:3.11.14-slim-bookworm AS python
# Debian keeps only the newest build of a package, so that a pinned version fails within weeks.
# hadolint ignore=DL3008
RUN apt-get update -q \
    && apt-get install -y -q --no-install-recommends tini \
    && rm -rf /var/lib/apt/lists/*
ENV PATH=/opt/gaixie/bin:$PATH \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_NO_CACHE_DIR=1

# What pyproject.toml depends on but Spark, and the extras, by SHA-256 (locks.sh).
FROM python AS packages
ARG EXTRAS=serve
WORKDIR /src
COPY infra/docker/serve.lock infra/docker/serve,train.lock ./
RUN python -m venv /opt/gaixie \
    && pip install --require-hashes --requirement "$EXTRAS.lock"

FROM packages AS build
COPY __init__.py py.typed setup.py pyproject.toml README.md LICENSE ./
COPY conf conf
COPY udfs udfs
COPY jobs jobs
COPY research research
COPY service service
COPY training training
RUN pip wheel --no-deps --wheel-dir /dist .

FROM python
COPY --from=packages /opt/gaixie /opt/gaixie
RUN --mount=type=bind,from=build,source=/dist,target=/dist \
    useradd --uid 10001 --user-group --create-home gaixie \
    && install -d -o gaixie -g gaixie /var/gaixie \
    && pip install --no-deps /dist/*.whl
ENV GAIXIE_CACHE_DIR=/var/gaixie
# Kernels for processors with AVX2: no container compiles any.
RUN python -m gaixie.udfs.spscore --ship
USER 10001:10001
WORKDIR /tmp
EXPOSE 8000
# Kubernetes ignores this line and has probes of its own.
HEALTHCHECK --interval=30s --timeout=5s --start-period=120s CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/ready')"]
ENTRYPOINT ["tini", "-g", "--", "gaixie", "serve", "--host", "0.0.0.0"]
CMD ["--workers", "2"]
