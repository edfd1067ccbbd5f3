"""The SparkApplication of infra/spark-operator, and the command of its driver's pod."""

import json
import os
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


APPLICATION = yaml.safe_load((FOLDER / "score-application.yaml").read_text("utf-8"))


def test_the_pods_of_the_application_are_valid():
    spec = APPLICATION["spec"]
    for name, container in (("driver", "spark-kubernetes-driver"), ("executor", "executor")):
        [one] = spec[name]["template"]["spec"]["containers"]
        assert one["name"] == container
        one = one | {"image": spec["image"]}  # the operator sets it
        pod = spec[name]["template"]["spec"] | {"containers": [one]}
        whole = {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": name}}
        whole["template"] = spec[name]["template"] | {"spec": pod}
        kubernetes_validate.validate(whole, kubernetes_validate.latest_version(), strict=True)


def test_its_arguments_are_those_of_the_job():
    spec = APPLICATION["spec"]
    known = usage(spec["mainApplicationFile"].removeprefix("local:///opt/gaixie/"))
    options = [word for word in spec["arguments"] if word.startswith("--")]
    assert {"--resume", "--take-over"} <= set(options)
    assert all(option in known for option in options)
    config = spec["arguments"][spec["arguments"].index("--config") + 1]
    assert Path(config).parent == Path(spec["driver"]["configMaps"][0]["path"])


@pytest.mark.spark
@pytest.mark.long
def test_the_driver_of_cluster_mode(tmp_path):
    """The pod's command must score from another folder; a local master stands for Kubernetes."""
    for name in ("conf", "tmp", "elsewhere"):
        (tmp_path / name).mkdir()
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
