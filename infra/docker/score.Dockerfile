# The image of the Spark jobs: driver, executor on Kubernetes, standalone master and worker.
#   docker build -f infra/docker/score.Dockerfile -t gaixie-score:0.1.0 .
# Code and settings lie where the archive of `make dist` puts them: /opt/gaixie/jobs, /opt/gaixie/conf.

FROM python:3.11.14-slim-bookworm AS java
# Debian keeps only the newest build of a package, so that a pinned version fails within weeks.
# hadolint ignore=DL3008
RUN apt-get update -q \
    && apt-get install -y -q --no-install-recommends openjdk-17-jre-headless procps tini \
    && rm -rf /var/lib/apt/lists/*
ENV PATH=/opt/gaixie/bin:$PATH \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_NO_CACHE_DIR=1 \
    SPARK_HOME=/opt/gaixie/lib/python3.11/site-packages/pyspark \
    PYSPARK_PYTHON=/opt/gaixie/bin/python

# What pyproject.toml depends on, Spark with it, by SHA-256 (locks.sh): changes seldom.
FROM java AS packages
WORKDIR /src
COPY infra/docker/score.lock .
RUN python -m venv /opt/gaixie \
    && pip install --require-hashes --requirement score.lock

FROM packages AS build
COPY __init__.py py.typed setup.py pyproject.toml README.md LICENSE ./
COPY conf conf
COPY udfs udfs
COPY jobs jobs
RUN pip wheel --no-deps --wheel-dir /dist . \
    && touch nothing.py \
    && "$SPARK_HOME/bin/spark-submit" --master "local[1]" --properties-file conf/spark/s3a-jars.conf \
       --conf spark.jars.ivy=/ivy nothing.py

FROM java
COPY --from=packages /opt/gaixie /opt/gaixie
# The jars behind s3a://, for every Java of this image; no job fetches any.
COPY --from=build /ivy/jars /opt/gaixie/s3a-jars
RUN ln -s /opt/gaixie/s3a-jars/*.jar "$SPARK_HOME/jars/" \
    && useradd --uid 10001 --user-group --create-home gaixie \
    && install -d -o gaixie -g gaixie /var/gaixie
ENV GAIXIE_JARS=/opt/gaixie/s3a-jars \
    GAIXIE_CACHE_DIR=/var/gaixie
COPY --chmod=755 infra/docker/entrypoint.sh /opt/entrypoint.sh
# Where Spark looks for it before a pod with an executor goes.
COPY --chmod=755 infra/docker/decommission.sh /opt/decom.sh
RUN --mount=type=bind,from=build,source=/dist,target=/dist \
    pip install --no-deps /dist/*.whl \
    && ln -s lib/python3.11/site-packages/gaixie/jobs lib/python3.11/site-packages/gaixie/conf /opt/gaixie/
# Kernels for processors with AVX2: no container compiles any.
RUN python -m gaixie.udfs.spscore --ship
USER 10001:10001
WORKDIR /tmp
# Of a master or worker, compose.yaml asks the web page instead; Kubernetes ignores this line.
HEALTHCHECK --interval=5m --timeout=60s CMD ["python", "/opt/gaixie/jobs/score_corpus.py", "--help"]
ENTRYPOINT ["tini", "-g", "--", "/opt/entrypoint.sh"]
CMD ["python", "/opt/gaixie/jobs/score_corpus.py", "--help"]
