"""An environment's file: what it may say of buffers, and that everything else is refused with what is required."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pipelines.engine.files.stored import NotOnStoreError, StorePath
from pipelines.flows.apart import MARGIN, MAX_BYTES, Apart
from pipelines.flows.errors import FlowError
from pipelines.jobs.environment.buffer_settings import Buffering
from pipelines.jobs.environment.errors import WrongUse
from pipelines.jobs.environment.settings import config_folder, flow_file, read_settings

if TYPE_CHECKING:
    from pipelines.jobs.environment.settings import Settings

ROOT = Path(__file__).parents[3]
PLAIN = "home: here\nengine: core\nmaster: local[2]\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a folder of settings that commands read."""
    monkeypatch.setenv("PULSELINE_CONFIG", str(tmp_path))
    monkeypatch.delenv("PULSELINE_ENVIRONMENT", raising=False)
    monkeypatch.delenv("PULSELINE_HOME", raising=False)
    return tmp_path


def settings(folder: Path, text: str) -> Settings:
    (folder / "local.yaml").write_text(text)
    return read_settings()


@pytest.mark.parametrize(
    ("environment", "home", "master"),
    [
        ("local", str(Path(".pulseline").absolute()), "local[*]"),
        ("cluster", "/var/lib/pulseline", "spark://spark-master:7077"),
        ("production", "s3://team-bucket/pulseline", "spark://spark-master:7077"),
    ],
)
def test_the_environments_of_the_checkout_are_had_by_name(
    monkeypatch: pytest.MonkeyPatch, environment: str, home: str, master: str
) -> None:
    monkeypatch.setenv("PULSELINE_CONFIG", str(ROOT / "config"))
    monkeypatch.setenv("PULSELINE_ENVIRONMENT", environment)
    monkeypatch.delenv("PULSELINE_HOME", raising=False)
    found = read_settings()

    assert (str(found.home), found.master, found.engine) == (home, master, "batch")
    assert ("spark.archives" in found.spark) == (environment == "production"), "all workers else have our packages"


def test_without_a_word_on_buffers_they_are_folders_of_the_run(folder: Path) -> None:
    found = settings(folder, PLAIN)

    assert (found.places, found.apart, found.max_bytes, found.margin) == ((), Apart.FOLDER, MAX_BYTES, MARGIN)


@pytest.mark.parametrize(("home", "stands"), [("50% done", True), ("a%zz", True), ("a%20b", False), ("a%4Ab", False)])
def test_a_home_whose_path_readers_would_take_for_another_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch, home: str, *, stands: bool
) -> None:
    monkeypatch.setenv("PULSELINE_HOME", str(folder / home))
    if stands:
        assert settings(folder, PLAIN).home == folder / home
    else:
        with pytest.raises(
            WrongUse, match=f"may look like a character of a URL .*{home}: give the folder another name"
        ):
            settings(folder, PLAIN)


def test_a_home_is_the_path_of_a_folder_and_begins_where_the_user_is_at_home(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for said in ('""', '"a\\0b"'):
        with pytest.raises(WrongUse, match="home must be the path of a folder; it is "):
            settings(folder, PLAIN.replace("home: here", f"home: {said}"))
    monkeypatch.setenv("HOME", str(folder))
    assert settings(folder, PLAIN.replace("home: here", "home: ~/runs")).home == folder / "runs"


def test_buffers_are_read(folder: Path) -> None:
    found = settings(folder, PLAIN + "buffers: {places: [/a, /b, /c], apart: device, max_bytes: 1000, margin: 2}\n")

    assert [str(place) for place in found.places] == ["/a", "/b", "/c"]
    assert (found.apart, found.max_bytes, found.margin) == (Apart.DEVICE, 1000, 2)


@pytest.mark.parametrize(
    ("text", "keep"),
    [
        ("", None),
        ("landed:\nbuffers:\n  places:\n", None),
        ("buffers: {places: []}\n", None),
        ("landed: {}\n", None),
        ("landed: {keep: forever}\n", None),
        ("landed: {keep: 30d}\n", 30 * 86_400_000_000),
        ("landed: {keep: 12h}\n", 12 * 3_600_000_000),
    ],
)
def test_how_long_landed_rows_are_kept_is_read(folder: Path, text: str, keep: int | None) -> None:
    assert settings(folder, PLAIN + text).keep_landed == keep


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (PLAIN + "buffers: {places: 5}\n", r":4: 1 places in `buffers` .*, expected a list of 3 folders, or none"),
        (
            PLAIN + "buffers:\n  places: [a, b]\n",
            r":5: 2 places in `buffers` .*, expected a list of 3 folders, or none",
        ),
        (
            PLAIN + "buffers: {places: [~, {}, [1]]}\n",
            r":4: nothing under `places` .*, expected a name or a list of names",
        ),
        (
            PLAIN + "buffers: {apart: divice}\n",
            r":4: `apart: divice` .*`folder`, `device`, `host`; did you mean `device`",
        ),
        (
            PLAIN + "buffers: {margin: 0}\n",
            r":4: `margin: 0` in `buffers` of the settings, expected a whole number above 0",
        ),
        (PLAIN + "buffers: {max_bytes: true}\n", r":4: `true` under `max_bytes` .*, expected a whole number"),
        (PLAIN + "buffers: {place: []}\n", r":4: unknown key `place` .*; did you mean `places`"),
        (PLAIN + "buffers: false\n", r":4: `false` under `buffers` in the settings, expected a mapping"),
        (PLAIN + "buffer: {}\n", r":4: unknown key `buffer` in the settings, .*; did you mean `buffers`"),
        (
            PLAIN + "landed: {keep: soon}\n",
            r":4: `keep: soon` in `landed` of the settings, expected a duration such as",
        ),
        (PLAIN + "landed: {keep: 30}\n", r":4: `keep: 30` .*, expected a duration such as 30d or 12h, or `forever`"),
        (PLAIN + "landed: {keep: 0d}\n", r":4: `keep: 0d` .*, expected a duration such as 30d or 12h, or `forever`"),
        (PLAIN + "landed: {keep: -1d}\n", r":4: `keep: -1d` .*, expected a duration such as 30d or 12h, or `forever`"),
        (PLAIN + "landed: {kept: 30d}\n", r":4: unknown key `kept` .*; did you mean `keep`"),
        (PLAIN + "landed: 30d\n", r":4: `30d` under `landed` in the settings, expected a mapping"),
        (PLAIN + "access: friends\n", r":4: `access: friends` .*, expected one of `owner`, `group`, `everyone`"),
        (
            PLAIN + "access: [owner]\n",
            r":4: a list of 1 under `access` .*, expected one of `owner`, `group`, `everyone`",
        ),
        (
            PLAIN + "spark: {executor.memory: 4g}\n",
            r":4: `executor.memory` in `spark` .*, such as `spark.executor.memory`",
        ),
        (PLAIN + "spark: {spark.master: a}\n", r":4: `spark.master` .*: `master:` names it"),
        (PLAIN + "engine: core\n", r":4: `engine` a second time"),
        ("home: [\n", r":2: no YAML"),
        ("just text\n", r":1: `just text` at the top, expected a mapping of settings"),
        ("engine: core\n", r":1: no `home` in the settings"),
    ],
)
def test_what_makes_no_sense_is_refused(folder: Path, text: str, said: str) -> None:
    with pytest.raises(FlowError, match=said):
        settings(folder, text)


def test_settings_of_spark_go_to_it_as_they_are_said(folder: Path) -> None:
    found = settings(folder, PLAIN + "spark:\n  spark.executor.memory: 4g\n  spark.executor.cores: 2\n")
    assert found.spark == {"spark.executor.memory": "4g", "spark.executor.cores": "2"}
    assert settings(folder, PLAIN + "spark:\n").spark == {}


def test_a_home_may_lie_in_an_object_store(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = settings(folder, PLAIN.replace("home: here", "home: S3://bucket/prefix/"))
    assert str(found.root("flights")) == "s3://bucket/prefix/flights/main"
    monkeypatch.setenv("PULSELINE_HOME", "az://other")
    assert str(settings(folder, PLAIN).home) == "az://other"
    assert isinstance(found.home, StorePath)
    assert not isinstance(found.spark_log, StorePath)


@pytest.mark.parametrize("home", ["s3://bucket/a/../b", "s3://bucket/./a", "s3://bucket/.."])
def test_a_prefix_goes_no_way_up(folder: Path, home: str) -> None:
    with pytest.raises(WrongUse, match=r"no part of a home's prefix in an object store may be `\.` or `\.\.`"):
        settings(folder, PLAIN.replace("home: here", f"home: '{home}'"))


@pytest.mark.parametrize(
    "home", ["s3://AKIAX:SECRET@bucket/x", "s3://bucket:9000/x", "s3://bucket/x?key=SECRET", "az://bucket/x#SECRET"]
)
def test_what_opens_a_store_is_refused_in_its_address_and_not_repeated(folder: Path, home: str) -> None:
    with pytest.raises(WrongUse, match="credentials and the endpoint go into the environment") as refused:
        settings(folder, PLAIN.replace("home: here", f"home: '{home}'"))
    assert "SECRET" not in str(refused.value)


@pytest.mark.parametrize(
    ("endpoint", "http", "said"),
    [
        ("", "", "must be an address such as https://host"),
        ("localhost:9000", "", "must be an address such as https://host"),
        ("127.0.0.1:9000", "", "must be an address such as https://host"),
        ("http://h:1/ x", "true", "must be an address such as https://host"),
        ("ftp://h", "", "must be an address such as https://host"),
        ("http://h:1", "", "set AWS_ALLOW_HTTP=true"),
        ("http://h:1", "true", ""),
        ("https://[::1]:9000/a", "", ""),
        (None, "", ""),
    ],
)
def test_an_endpoint_that_cannot_be_one_is_refused_before_anything_is_asked(
    folder: Path, monkeypatch: pytest.MonkeyPatch, endpoint: str | None, http: str, said: str
) -> None:
    monkeypatch.setenv("AWS_ALLOW_HTTP", http)
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    if endpoint is not None:
        monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    stored = PLAIN.replace("home: here", "home: s3://bucket/x")
    if not said:
        assert str(settings(folder, stored).home) == "s3://bucket/x"
        return
    with pytest.raises(WrongUse, match=said):
        settings(folder, stored)
    assert settings(folder, PLAIN).home.name == "here", "a home in a folder asks for no endpoint"


@pytest.mark.parametrize("secret", ["hush-hush\n", "hush hush", "hush-hush\u00e9"])
def test_a_secret_with_a_sign_that_none_has_is_told_by_its_variable_alone(
    folder: Path, monkeypatch: pytest.MonkeyPatch, secret: str
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", secret)
    with pytest.raises(WrongUse, match="AWS_SECRET_ACCESS_KEY must be of letters") as refused:
        settings(folder, PLAIN.replace("home: here", "home: s3://bucket/x"))
    assert "hush" not in str(refused.value)
    assert settings(folder, PLAIN).home.name == "here"


def test_spaces_around_an_address_are_nobodys_and_a_prefix_like_a_character_of_a_url_is_refused(folder: Path) -> None:
    assert str(settings(folder, PLAIN.replace("home: here", "home: ' s3://bucket/x '")).home) == "s3://bucket/x"
    with pytest.raises(WrongUse, match="choose another prefix"):
        settings(folder, PLAIN.replace("home: here", "home: s3://bucket/a%41"))


def test_a_command_that_failed_over_a_store_does_not_wait_for_what_hangs() -> None:
    code = (
        "import sys, threading, time\nthreading.Thread(target=time.sleep, args=(600,)).start()\n"
        "from pipelines.cli import main\nsys.argv = ['pulseline', 'status']\nmain()"
    )
    known = {**os.environ, "PULSELINE_HOME": "s3://"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=known, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, "or lie in an object store" in done.stderr) == (2, True)


@pytest.mark.parametrize("home", ["s3://", "s3:/bucket/x", "S3:/x", "s3:x/y", "hdfs://bucket/a", "abfss://a@b/c"])
def test_a_home_of_an_unknown_scheme_is_refused_and_makes_no_folder(
    folder: Path, home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(WrongUse, match="or lie in an object store"):
        settings(folder, PLAIN.replace("home: here", f"home: {home}"))
    monkeypatch.setenv("PULSELINE_HOME", home)
    with pytest.raises(WrongUse, match="or lie in an object store"):
        settings(folder, PLAIN)


def test_outside_of_a_checkout_its_own_settings_and_flows_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PULSELINE_CONFIG", raising=False)
    monkeypatch.chdir(tmp_path)
    assert config_folder() == ROOT / "config"
    assert flow_file(read_settings(), "flights").is_file()


def test_buffers_lie_in_no_store(folder: Path) -> None:
    with pytest.raises(NotOnStoreError, match="needs a home in a folder"):
        Buffering().require_apart(StorePath("s3://bucket/flow/main"))
    Buffering(places=tuple(folder / name for name in "abc")).require_apart(StorePath("s3://bucket/flow/main"))
    with pytest.raises(FlowError, match="an object store keeps copies of its own"):
        settings(folder, PLAIN + "buffers:\n  places: [a, b, 's3://bucket/c']\n")
