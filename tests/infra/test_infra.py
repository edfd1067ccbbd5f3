"""The files of infra/ must be valid by the tools of their formats, and match the jobs' options."""

import os
import re
import shutil
import sys
from pathlib import Path

import kubernetes_validate
import pytest
import yaml
from packaging.utils import canonicalize_name
from shared import ROOT
from usage import output_of, usage

INFRA = ROOT / "infra"
ENTRYPOINT = INFRA / "docker/entrypoint.sh"
BIN = Path(sys.executable).parent
SCRIPTS = [*INFRA.glob("*.sh"), *INFRA.glob("*/*.sh")]
NO_MANIFESTS = {INFRA / f"kubernetes/{name}.yaml" for name in ("kustomization", "score", "train")}
MANIFESTS = sorted({*INFRA.glob("kubernetes/*.yaml")} - NO_MANIFESTS)


def tool(name: str) -> Path:
    found = shutil.which(name, path=f"{BIN}{os.pathsep}{os.environ['PATH']}")
    if found is None:
        pytest.skip(f"{name} is not installed")
    return Path(found)


def load(path: Path) -> list[dict]:
    return [one for one in yaml.safe_load_all(path.read_text("utf-8")) if one]


OBJECTS = {(o["kind"], o["metadata"]["name"]): o for path in MANIFESTS for o in load(path)}


# Docker


@pytest.mark.parametrize("path", sorted(INFRA.glob("docker/*.Dockerfile")), ids=lambda p: p.stem)
def test_dockerfile(path):
    output_of(tool("hadolint"), path)
    text = path.read_text("utf-8")
    for image in re.findall(r"^FROM (\S+:\S+)", text, re.MULTILINE):
        assert re.search(r":\d+\.\d+\.\d+-", image), f"{image}: no full version"
    assert re.findall(r"^USER (.+)", text, re.MULTILINE)[-1] == "10001:10001"
    ignored = path.with_name(f"{path.name}.dockerignore").read_text("utf-8").splitlines()
    sources = re.findall(r"^COPY (?!--from)(?:--\S+ )*(.+) \S+$", text, re.MULTILINE)
    for source in " ".join(sources).split():
        assert any(source.startswith(line[1:]) for line in ignored if line.startswith("!")), source


def test_compose_file():
    schema = ("--builtin-schema", "vendor.compose-spec")
    output_of(tool("check-jsonschema"), *schema, INFRA / "compose.yaml")
    for name, service in load(INFRA / "compose.yaml")[0]["services"].items():
        assert {"mem_limit", "healthcheck"} <= service.keys(), name


@pytest.fixture
def stub(tmp_path) -> Path:
    """Returns a folder for commands that only print their words, each on a line."""
    (tmp_path / "bin").mkdir()
    for name in ("java", "spark-submit"):
        path = tmp_path / "bin" / name
        path.write_text('#!/bin/sh\nfor word in "$@"; do echo "$word"; done\n')
        path.chmod(0o755)
    return tmp_path / "bin"


def test_entrypoint_starts_an_executor(stub):
    names = "EXECUTOR_ID EXECUTOR_POD_IP EXECUTOR_POD_NAME DRIVER_URL APPLICATION_ID"
    given = {f"SPARK_{name}": f"of {name}" for name in f"{names} RESOURCE_PROFILE_ID".split()}
    given |= {"SPARK_JAVA_OPT_0": "-Dx=1", "SPARK_JAVA_OPT_1": "-Da=b c", "SPARK_HOME": "/spark"}
    given |= {"SPARK_EXECUTOR_MEMORY": "3072m", "SPARK_EXECUTOR_CORES": "4"}
    given["PATH"] = f"{stub}:{os.defpath}"
    words = output_of("sh", ENTRYPOINT, "executor", env=given).splitlines()
    assert words[:4] == ["-Dx=1", "-Da=b c", "-Xms3072m", "-Xmx3072m"]
    backend = words.index("org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend")
    assert words[4:backend] == ["-cp", "/spark/conf:/spark/jars/*"]
    options = dict(zip(words[backend + 1 :: 2], words[backend + 2 :: 2], strict=True))
    assert options["--podName"] == "of EXECUTOR_POD_NAME"
    assert len(options) == 7
    assert output_of("sh", ENTRYPOINT, "echo", "a b", env=given) == "a b\n"


def test_entrypoint_starts_a_driver(stub):
    given = {"PATH": os.defpath, "SPARK_HOME": str(stub.parent)}
    given["SPARK_DRIVER_BIND_ADDRESS"] = "1.2.3.4"
    words = output_of("sh", ENTRYPOINT, "driver", "--class", "a b", env=given).splitlines()
    assert words[:2] == ["--deploy-mode", "client"]
    assert "spark.driver.bindAddress=1.2.3.4" in words
    assert words[-2:] == ["--class", "a b"]


# Kubernetes


def test_manifests():
    for thing in OBJECTS.values():
        kubernetes_validate.validate(thing, kubernetes_validate.latest_version(), strict=True)


def pod_of(thing: dict) -> dict:
    spec = thing["spec"]
    if thing["kind"] == "CronJob":
        spec = spec["jobTemplate"]["spec"]
    return spec if thing["kind"] == "Pod" else spec["template"]["spec"]


WITH_PODS = ("CronJob", "Job", "Pod", "Deployment")
PODS = {name: pod_of(o) for (kind, name), o in OBJECTS.items() if kind in WITH_PODS}


@pytest.mark.parametrize("name", PODS)
def test_pod_is_limited_and_refers_to_what_there_is(name):
    pod = PODS[name]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    kustomization = load(INFRA / "kubernetes" / "kustomization.yaml")[0]
    maps = {one["name"] for one in kustomization["configMapGenerator"]}
    secrets = 0
    for container in pod["containers"]:
        security = container["securityContext"]
        assert security["allowPrivilegeEscalation"] is False
        assert security["readOnlyRootFilesystem"] is True
        assert security["capabilities"] == {"drop": ["ALL"]}
        assert {"requests", "limits"} <= set(container["resources"])
        mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
        assert {*mounts} == {volume["name"] for volume in pod["volumes"]}
        assert "/tmp" in mounts.values()
        for one in container.get("env", ()):
            reference = one.get("valueFrom", {}).get("secretKeyRef")
            assert reference or not re.search("KEY|SECRET|TOKEN|PASSWORD", one["name"])
            if reference:
                secrets += 1
                assert reference["key"] in OBJECTS["Secret", reference["name"]]["stringData"]
        assert {one["configMapRef"]["name"] for one in container.get("envFrom", ())} <= maps
    assert secrets == (1 if name == "gaixie-serve" else 2)  # its tokens, or a pair of keys
    for volume in pod["volumes"]:
        if "configMap" in volume:
            assert volume["configMap"]["name"] in maps
        if "persistentVolumeClaim" in volume:
            claim = volume["persistentVolumeClaim"]["claimName"]
            assert ("PersistentVolumeClaim", claim) in OBJECTS
    if "serviceAccountName" in pod:
        assert ("ServiceAccount", pod["serviceAccountName"]) in OBJECTS


@pytest.mark.parametrize(
    ("image", "extras"), [("score", "spark"), ("serve", "serve"), ("serve,train", "serve,train")]
)
def test_images_install_by_hash_what_was_tested(image, extras):
    """Every requirement must be locked with SHA-256 to the tested version; infra/docker/locks.sh
    can be forgotten."""
    pattern = r"^([\w.-]+)==(\S+)(?: ; [^\\]*)? \\\n((?: +--hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)"
    text = (INFRA / f"docker/{image}.lock").read_text("utf-8")
    assert re.sub(pattern, "", text, flags=re.MULTILINE) == ""
    locked = {name: version for name, version, _ in re.findall(pattern, text, re.MULTILINE)}
    line = [sys.executable, INFRA / "docker" / "requirements.py", extras, "--without"]
    wanted = output_of(*line, "deepspeed", cwd=ROOT).splitlines()
    names = {canonicalize_name(re.match(r"[\w.-]+", one)[0]) for one in wanted}
    assert names <= locked.keys()
    tested = re.findall(r"^([\w.-]+)==(\S+)", (INFRA / "constraints.txt").read_text(), re.M)
    for name, version in tested:
        if (name := canonicalize_name(name)) in names:
            assert locked[name] == version


def test_score_job_resumes_the_day_it_was_planned_for(stub):
    """A late or repeated job must use the planned day as its run id, or it would start another."""
    driver = PODS["gaixie-score"]["containers"][0]
    given = {"PATH": f"{stub}:{os.environ['PATH']}", "ROOT": "s3a://b/gaixie"}
    given |= {"AWS_REGION": "r"} | {one["name"]: one["name"] for one in driver["env"]}
    given["JOB_NAME"] = "gaixie-score-29863815"  # 2026-10-12 02:15 UTC
    words = output_of(*driver["command"], *driver["args"], env=given).splitlines()
    assert words[words.index("--run-id") + 1] == "20261012"
    assert "--resume" in words
    mounts = {one["name"]: one["mountPath"] for one in driver["volumeMounts"]}
    assert f"spark.kubernetes.executor.podTemplateFile={mounts['settings']}/executor.yaml" in words


def test_score_settings_are_valid():
    from gaixie.jobs.scoring.settings import load_settings

    assert len(load_settings(str(INFRA / "kubernetes" / "score.yaml"), {}, []).inputs) == 2


APPLICATION = load(INFRA / "spark-operator/score-application.yaml")[0]["spec"]


@pytest.mark.parametrize(
    ("name", "container"), [("driver", "spark-kubernetes-driver"), ("executor", "executor")]
)
def test_pods_of_the_spark_operator(name, container):
    pod = APPLICATION[name]["template"]["spec"]
    [one] = pod["containers"]
    assert one["name"] == container
    one = one | {"image": APPLICATION["image"]}  # the operator sets it
    whole = {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": name}}
    whole["template"] = APPLICATION[name]["template"] | {"spec": pod | {"containers": [one]}}
    kubernetes_validate.validate(whole, kubernetes_validate.latest_version(), strict=True)


def test_arguments_of_the_spark_operator_are_those_of_the_job():
    known = usage(APPLICATION["mainApplicationFile"].removeprefix("local:///opt/gaixie/"))
    words = APPLICATION["arguments"]
    options = {word for word in words if word.startswith("--")}
    assert {"--resume", "--take-over"} <= options
    assert all(option in known for option in options)
    mounted = Path(APPLICATION["driver"]["configMaps"][0]["path"])
    assert Path(words[words.index("--config") + 1]).parent == mounted


def test_train_settings_are_valid():
    from gaixie.training.settings import load_settings

    settings = load_settings(str(INFRA / "kubernetes" / "train.yaml"), [])
    container = PODS["gaixie-train"]["containers"][0]
    mounts = [one["mountPath"] for one in container["volumeMounts"]]
    assert str(Path(settings.output).parent) in mounts
    accelerate = load(ROOT / "conf/accelerate/several_gpus.yaml")[0]
    gpus = container["resources"]["limits"]["nvidia.com/gpu"]
    assert accelerate["num_processes"] == int(gpus)
    assert settings.batch.pairs % int(gpus) == 0


# All of it


def test_shell_scripts():
    for path in SCRIPTS:
        output_of("sh", "-n", path)
    output_of(tool("shellcheck"), *SCRIPTS)


def job_calls() -> dict[str, set[str]]:
    """Returns the options that infra/ gives to each of our scripts."""
    calls: dict[str, set[str]] = {}
    pattern = r"((?:jobs|training|service|research)[/.]\w+)(?:\.py)?((?: [^\n`|;&#\]]+)?)"
    for path in (p for p in INFRA.rglob("*") if p.is_file() and p.suffix != ".pyc"):
        text = path.read_text("utf-8").replace("\\\n", " ")
        text = re.sub(r"\n\s+- (?=\S)", " ", text)  # YAML lists have one word per line
        for job, rest in re.findall(pattern, text):
            script = f"{job.replace('.', '/')}.py"
            if (ROOT / script).exists():
                calls.setdefault(script, set()).update(re.findall(r"--[a-z][a-z-]*", rest))
    return calls


CALLS = job_calls()
MARKS = {job: [pytest.mark.torch] for job in CALLS if job.startswith("training")}


@pytest.mark.parametrize("job", [pytest.param(j, marks=MARKS.get(j, ())) for j in sorted(CALLS)])
def test_jobs_have_the_options_that_infra_gives_them(job):
    help_text = usage(job)
    for command in re.findall(r"^    (\w+)(?:  |$)", help_text, re.MULTILINE):
        help_text += usage(job, command)
    assert CALLS[job] <= {*re.findall(r"--[a-z][a-z-]*", help_text)}
