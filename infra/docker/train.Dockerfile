# The image of training: CUDA, PyTorch, accelerate, DeepSpeed.
#   docker build -f infra/docker/train.Dockerfile -t gaixie-train:0.1.0 .
#   docker run --gpus all --shm-size 16g gaixie-train:0.1.0 \
#     accelerate launch training/curriculum.py --config conf/curriculum.yaml

FROM nvidia/cuda:13.0.1-runtime-ubuntu24.04 AS python
# Ubuntu keeps only the newest build of a package, so that a pinned version fails within weeks.
# hadolint ignore=DL3008
RUN apt-get update -q \
    && apt-get install -y -q --no-install-recommends python3.12 python3.12-venv tini \
    && rm -rf /var/lib/apt/lists/*
ENV PATH=/opt/gaixie/bin:$PATH \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_NO_CACHE_DIR=1

FROM python AS packages
WORKDIR /src
# Without compiled operators DeepSpeed needs no CUDA compiler: ZeRO runs with PyTorch's optimisers.
ENV DS_BUILD_OPS=0
COPY infra/docker/train.lock .
# PyTorch first: DeepSpeed's own build imports it.
RUN python3.12 -m venv /opt/gaixie \
    && pip install --require-hashes --requirement train.lock \
    && pip install --no-build-isolation deepspeed==0.19.8

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
WORKDIR /opt/gaixie
COPY conf conf
COPY training training
ENV DS_BUILD_OPS=0 \
    GAIXIE_CACHE_DIR=/var/gaixie \
    HF_HOME=/var/gaixie/huggingface
USER 10001:10001
HEALTHCHECK --interval=5m --timeout=60s CMD ["python", "-c", "import torch; torch.cuda.init()"]
ENTRYPOINT ["tini", "-g", "--"]
CMD ["accelerate", "launch", "training/curriculum.py", "--config", "conf/curriculum.yaml"]
