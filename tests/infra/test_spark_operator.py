"""The SparkApplication of infra/spark-operator, and the command of its driver's pod."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import kubernetes_validate
import pytest
import yaml
from servers import SPARK_HOME
from usage import usage

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "infra/spark-operator"
ENTRYPOINT = ROOT / "infra/docker/entrypoint.sh"


@pytest.fixture(scope="module")
def objects() -> dict[tuple[str, str], dict]:
    """Returns the objects that kustomize makes from the folder."""
    if (kubectl := shutil.which("kubectl")) is None:
        pytest.skip("kubectl is not installed")
    line = [kubectl, "kustomize", str(FOLDER)]
    done = subprocess.run(line, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return {(o["kind"], o["metadata"]["name"]): o for o in yaml.safe_load_all(done.stdout)}


def test_the_application_takes_the_place_of_the_cron_job(objects):
    application = objects["SparkApplication", "gaixie-score"]
    assert ("CronJob", "gaixie-score") not in objects
    assert ("CronJob", "gaixie-release") in objects
    spec = application["spec"]
    [settings] = spec["driver"]["configMaps"]
    assert ("ConfigMap", settings["name"]) in objects
    assert settings["name"] != "gaixie-score"  # kustomize must add its hash here too
    for name, container in (("driver", "spark-kubernetes-driver"), ("executor", "executor")):
        pod = spec[name]["template"]["spec"]
        assert ("ServiceAccount", spec[name]["serviceAccount"]) in objects
        [one] = pod["containers"]
        assert one["name"] == container
        assert ("ConfigMap", one["envFrom"][0]["configMapRef"]["name"]) in objects
        one["image"] = spec["image"]  # the operator sets it
        whole = {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": name}}
        whole["template"] = spec[name]["template"]
        kubernetes_validate.validate(whole, kubernetes_validate.latest_version(), strict=True)


def test_its_arguments_are_those_of_the_job(objects):
    spec = objects["SparkApplication", "gaixie-score"]["spec"]
    path = spec["mainApplicationFile"].removeprefix("local:///opt/gaixie/")
    known = usage(path)
    options = [word for word in spec["arguments"] if word.startswith("--")]
    assert {"--resume", "--take-over"} <= set(options)
    assert all(option in known for option in options)
    config = spec["arguments"][spec["arguments"].index("--config") + 1]
    assert Path(config).parent == Path(spec["driver"]["configMaps"][0]["path"])


PLATFORM = """
rootLogger.level = info
rootLogger.appenderRef.stderr.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = of the platform: %p %m%n
"""


@pytest.mark.spark
@pytest.mark.long
def test_the_driver_of_cluster_mode(tmp_path):
    """The pod's command must score from another folder and keep the platform's log settings.

    In cluster mode the driver starts without the submitter's working folder. A local master stands
    for Kubernetes.
    """
    for name in ("conf", "tmp", "elsewhere"):
        (tmp_path / name).mkdir()
    (tmp_path / "conf/log4j2.properties").write_text(PLATFORM)
    settings = {
        "spark.master": "local[1]",
        "spark.kubernetes.submitInDriver": "true",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
    }
    properties = tmp_path / "conf/spark.properties"
    properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    given = os.environ | {
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_CONF_DIR": str(tmp_path / "conf"),
        "SPARK_DRIVER_BIND_ADDRESS": "127.0.0.1",
        "SPARK_HOME": str(SPARK_HOME),
        "TMPDIR": str(tmp_path / "tmp"),
    }
    line = ["sh", ENTRYPOINT, "driver", "--properties-file", properties]
    line += ["--class", "org.apache.spark.deploy.PythonRunner"]
    line += [f"local://{ROOT}/jobs/score_corpus.py", "--input", ROOT / "examples/pairs.jsonl"]
    line += ["--origin-column", "origin", "--output", tmp_path / "out", "--run-id", "r"]
    words = [str(word) for word in line]
    cwd = tmp_path / "elsewhere"
    done = subprocess.run(words, env=given, cwd=cwd, capture_output=True, text=True)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said[-3000:]
    manifest = json.loads((tmp_path / "out/runs/r/manifest.json").read_text("utf-8"))
    assert sum(rows["scored"] for rows in manifest["rows"].values()) == 288
    assert said.count("of the platform: INFO") > 50
    assert "of the platform: INFO Successfully stopped SparkContext" in said  # logged to the end
