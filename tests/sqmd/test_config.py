"""The settings of sqmd: what counts, where it came from, and how mistakes are told."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqmd.config import Config, load, template, write_template
from sqmd.config_values import absolute
from sqmd.errors import ConfigError

pytestmark = pytest.mark.usefixtures("home")

DEFAULTS = {
    "paths.watch_dirs": "~/notes",
    "paths.db_path": "~/.sqmd/lancedb",
    "paths.model_cache_dir": "~/.sqmd/models",
    "embeddings.backend": "onnx",
    "embeddings.model": "companion",
    "embeddings.batch_size": "64",
    "embeddings.ollama_base_url": "http://localhost:11434",
    "chunking.max_tokens": "512",
    "chunking.min_chars": "50",
    "chunking.include_breadcrumb": "true",
    "chunking.overlap_tokens": "64",
    "search.default_top_k": "10",
    "search.rrf_k": "60",
    "search.rerank": "false",
    "search.rerank_model": "cross-encoder/ms-marco-MiniLM-L-6-v2",
    "search.rerank_top_n": "20",
    "watcher.enabled": "true",
    "watcher.debounce_ms": "3000",
    "watcher.extensions": ".md, .mdx",
    "watcher.ignore_patterns": "**/.git/**, **/node_modules/**, **/.obsidian/**",
    "watcher.poll": "false",
    "api.host": "127.0.0.1",
    "api.port": "7832",
    "api.api_key": "(not set)",
    "mcp.transport": "stdio",
    "mcp.sse_port": "7833",
}


def written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def refusal(text: str, tmp_path: Path) -> str:
    """What is said about a file with this text, without the file's name in front."""
    path = written(tmp_path / "c.yaml", text)
    with pytest.raises(ConfigError) as caught:
        load(path, {})
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(f"{path}:")
    return str(caught.value).removeprefix(f"{path}:")


def test_without_a_file_every_setting_is_its_default(home: Path) -> None:
    loaded = load(None, {})
    assert {name: value.replace(str(home), "~") for name, value, _ in loaded.rows()} == DEFAULTS
    assert set(loaded.origins.values()) == {"default"} and loaded.file is None
    assert loaded.config == Config()


def test_the_flag_beats_the_variable_beats_the_home_file_beats_the_one_here(home: Path, tmp_path: Path) -> None:
    here = written(tmp_path / "here/config.yaml", "api: {port: 4}")
    assert load(None, {}).config.api.port == 4
    in_home = written(home / ".sqmd/config.yaml", "api: {port: 3}")
    assert load(None, {}).file == in_home != here
    written(home / "by variable.yaml", "api: {port: 2}")
    environ = {"SQMD_CONFIG": "~/by variable.yaml"}
    assert load(None, environ).config.api.port == 2
    flagged = written(home / "flag.yaml", "\napi:\n  port: 1\n")
    loaded = load(Path("~/flag.yaml"), environ)
    assert loaded.config.api.port == 1
    assert loaded.origins["api.port"] == f"{flagged}:3"
    assert loaded.origins["api.host"] == "default"


def test_a_file_here_of_another_program_or_for_a_server_of_an_agent_does_not_count(tmp_path: Path) -> None:
    written(tmp_path / "here/config.yaml", "embeddings: {backend: ollama}")
    assert load(None, {}).config.embeddings.backend == "ollama"
    assert load(None, {}, here=False).file is None
    for other in ("baseURL: https://example.com/\ntitle: x\n", "- a\n- b\n", "{{ template }}: :", " search: {}\n", ""):
        written(tmp_path / "here/config.yaml", other)
        assert load(None, {}).file is None
    for ours in (
        "search:\n  rrf_q: 1",
        "\ufeffsearch: {rrf_q: 1}",
        "{search: {rrf_q: 1}}",
        "x: 1\n'api': {port: 1}",
        "mcp : [",
    ):
        written(tmp_path / "here/config.yaml", ours)
        with pytest.raises(ConfigError):
            load(None, {})


def test_files_are_not_mixed(home: Path, tmp_path: Path) -> None:
    written(tmp_path / "here/config.yaml", "api: {port: 4}")
    written(home / ".sqmd/config.yaml", "search: {rrf_k: 3}")
    assert load(None, {}).config.api.port == 7832


@pytest.mark.parametrize("environ", [{}, {"SQMD_CONFIG": "gone.yaml"}])
def test_a_file_that_somebody_names_has_to_be_there(environ: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=r"gone\.yaml: the configuration cannot be read"):
        load(None if environ else Path("gone.yaml"), environ)


def test_a_variable_beats_the_file_for_every_setting(tmp_path: Path) -> None:
    path = written(tmp_path / "c.yaml", template())
    environ = {
        "SQMD_PATHS__WATCH_DIRS": "~/a, /b,c\\,d",
        "SQMD_EMBEDDINGS__BATCH_SIZE": "7",
        "SQMD_SEARCH__RERANK": "True",
        "SQMD_WATCHER__ENABLED": "0",
        "SQMD_WATCHER__EXTENSIONS": ".TXT",
        "SQMD_DB_PATH": "~/database",
        "SQMD_API_PORT": "99",
        "SQMD_API__API_KEY": "k",
    }
    loaded = load(path, environ)
    config = loaded.config
    assert config.paths.watch_dirs == (Path.home() / "a", Path("/b").absolute(), Path.cwd() / "c,d")
    assert config.embeddings.batch_size == 7
    assert config.search.rerank is True and config.watcher.enabled is False
    assert config.watcher.extensions == (".txt",)
    assert config.paths.db_path == str(Path.home() / "database")
    assert (config.api.port, config.api.api_key) == (99, "k")
    assert loaded.origins["api.port"] == "SQMD_API_PORT"
    assert loaded.origins["paths.watch_dirs"] == "SQMD_PATHS__WATCH_DIRS"
    assert loaded.origins["api.host"].startswith(f"{path}:")


def test_the_short_name_of_a_variable_beats_the_long_one() -> None:
    assert load(None, {"SQMD_API_PORT": "1", "SQMD_API__PORT": "2"}).config.api.port == 1
    assert load(None, {"SQMD_API__PORT": "2"}).config.api.port == 2


def test_every_setting_has_a_variable(tmp_path: Path) -> None:
    for name in DEFAULTS:
        variable = "SQMD_" + name.upper().replace(".", "__")
        with pytest.raises(ConfigError, match=f"{variable} is a placeholder"):
            load(None, {variable: "${user_config.x}"})
        assert load(None, {variable: ""}).origins[name] == "default"


@pytest.mark.parametrize(
    ("environ", "said"),
    [
        ({"SQMD_API_PORT": "7832x"}, "SQMD_API_PORT: api.port must be a whole number from 0 to 65535."),
        ({"SQMD_SEARCH__RERANK": "maybe"}, "SQMD_SEARCH__RERANK: search.rerank must be true or false."),
        ({"SQMD_SEARCH__RRFK": "1"}, "SQMD_SEARCH__RRFK: there is no such setting; did you mean SQMD_SEARCH__RRF_K."),
        ({"SQMD_API_KEY": "s3cret"}, "SQMD_API_KEY: there is no such setting; did you mean SQMD_API__API_KEY."),
    ],
)
def test_a_variable_that_cannot_be_used_is_named_without_its_value(environ: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(None, environ)
    assert str(caught.value) == said


class _Watched(Mapping[str, str]):
    def __init__(self, values: dict[str, str]) -> None:
        self.values_, self.read = values, set[str]()

    def __getitem__(self, name: str) -> str:
        self.read.add(name)
        return self.values_[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.values_)

    def __len__(self) -> int:
        return len(self.values_)


def test_no_variable_without_our_prefix_is_read() -> None:
    environ = _Watched({"PATH": "/bin", "AWS_SECRET_ACCESS_KEY": "x", "SQMD_API_PORT": "1"})
    load(None, environ)
    assert "SQMD_API_PORT" in environ.read and all(name.startswith("SQMD_") for name in environ.read)


def test_paths_in_a_file_start_at_its_folder_and_tildes_are_expanded_everywhere(home: Path, tmp_path: Path) -> None:
    text = "paths: {watch_dirs: [notes, ~/n, ~], db_path: ../db, model_cache_dir: ~/m}"
    config = load(written(tmp_path / "folder/c.yaml", text), {}).config
    assert config.paths.watch_dirs == (tmp_path / "folder/notes", home / "n", home)
    assert config.paths.db_path == str(tmp_path / "db")
    assert config.paths.model_cache_dir == home / "m"


def test_a_database_in_an_object_store_keeps_its_uri(tmp_path: Path) -> None:
    path = written(tmp_path / "c.yaml", "paths: {db_path: 's3://bucket/~a/../b'}")
    assert load(path, {}).config.paths.db_path == "s3://bucket/~a/../b"
    assert load(None, {"SQMD_DB_PATH": "s3://b/c"}).config.paths.db_path == "s3://b/c"


def test_a_pattern_and_a_models_name_are_left_as_they_are(tmp_path: Path) -> None:
    path = written(tmp_path / "c.yaml", "watcher: {ignore_patterns: ['~*.md']}\nembeddings: {model: BAAI/bge-m3}")
    config = load(path, {}).config
    assert config.watcher.ignore_patterns == ("~*.md",) and config.embeddings.model == "BAAI/bge-m3"


def test_a_home_folder_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    said = refusal("paths:\n  db_path: ~nobody-of-this-name/x\n", tmp_path)
    assert said == "2: paths.db_path starts with a home folder that cannot be found."


def test_a_path_is_made_absolute_and_what_can_be_none_is_said(home: Path, tmp_path: Path) -> None:
    assert absolute("~/a/../b") == home / "b" and absolute(Path("a/./b")) == Path.cwd() / "a/b"
    assert absolute("../x", tmp_path / "a") == tmp_path / "x" and absolute("/x", tmp_path) == Path("/x").absolute()
    (tmp_path / "link").symlink_to(tmp_path)
    assert absolute(tmp_path / "link/a") == tmp_path / "link/a"
    for given_path in ("~nobody-of-this-name/x", "a\0b"):
        with pytest.raises(ValueError, match=r"^(starts with a home folder that cannot be found|holds a NUL)"):
            absolute(given_path)


@pytest.mark.skipif(os.name != "posix", reason="there the folder that a program is in stays")
def test_a_folder_that_is_gone_while_we_are_in_it_stops_nothing_but_what_starts_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path / "c.yaml", "paths: {watch_dirs: [notes]}")
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert load(path, {"SQMD_DB_PATH": "/db"}).config.paths.watch_dirs == (tmp_path / "notes",)
    with pytest.raises(ConfigError, match=r"^SQMD_DB_PATH: paths.db_path is relative, and the folder that we are in"):
        load(path, {"SQMD_DB_PATH": "db"})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("watcher:\n  ignore_patterns: [ok, '!']\n", "2: watcher.ignore_patterns must be a rule as in a .gitignore, "),
        ("watcher: {ignore_patterns: ['a[b']}\n", "1: watcher.ignore_patterns must be a rule as in a .gitignore, not"),
        ("watcher: {ignore_patterns: [1]}\n", "1: watcher.ignore_patterns must be a rule as in a .gitignore; a number"),
        ("watcher: {ignore_patterns: [' ']}\n", "1: watcher.ignore_patterns must be a rule as in a .gitignore."),
        ("embeddings: {ollama_base_url: 'http://me:pass/word@host'}\n", "1: embeddings.ollama_base_url must be a URL"),
        ("embeddings: {ollama_base_url: 'http://'}\n", "1: embeddings.ollama_base_url must be a URL that starts with"),
        ("embeddings: {ollama_base_url: 'http://[::1'}\n", "1: embeddings.ollama_base_url must be a URL that starts"),
        ("search:\n  rrfk: 5\n", "2: search.rrfk: there is no such setting; did you mean rrf_k."),
        ("serach:\n  rrf_k: 5\n", "1: serach: there is no such setting; did you mean search."),
        ("\n1: {a: b}\n", "2: 1: there is no such setting; there are paths, embeddings, chunking, search, "),
        ("search:\n  rrf_k: 5\n  rerank: no\n  rrf_k: 6\n", "4: search.rrf_k: it is set twice."),
        ("api: {port: 1}\nmcp: {}\napi: {port: 2}\n", "3: api: it is set twice."),
        ("mcp: {}\npaths:\n", "2: paths: the section is empty; give it keys, or take it away."),
        ("paths: [a]\n", "1: paths: there must be keys and values here, such as `key: value`."),
        ("just words\n", "1: there must be keys and values here"),
        ("api:\n  port: '80'\n", "2: api.port must be a whole number from 0 to 65535."),
        ("api:\n  port: true\n", "2: api.port must be a whole number from 0 to 65535, not true or false."),
        ("api:\n  port: 70000\n", "2: api.port must be a whole number from 0 to 65535."),
        ("api:\n  port:\n", "2: api.port is empty; it must be a whole number from 0 to 65535."),
        ("api:\n  api_key: 1234\n", "2: api.api_key must be text; a number needs quotes there."),
        ("search: {rerank: 1}\n", "1: search.rerank must be true or false; a number needs quotes there."),
        ("search: {default_top_k: [1]}\n", "1: search.default_top_k must be a whole number from 1 to 100, not a list."),
        ("paths: {watch_dirs: ~/notes}\n", "1: paths.watch_dirs must be a list, and each part of it a path."),
        ("paths:\n  watch_dirs: [a, 1]\n", "2: paths.watch_dirs must be a path; a number needs quotes there."),
        ("embeddings: {backend: torch}\n", "1: embeddings.backend must be one of onnx, ollama."),
        ("embeddings: {ollama_base_url: localhost}\n", "1: embeddings.ollama_base_url must be a URL that starts with"),
        ("watcher: {extensions: [md]}\n", "1: watcher.extensions must be an ending with its dot, such as .md."),
        ("chunking: {max_tokens: 64, overlap_tokens: 64}\n", "1: chunking.overlap_tokens must be less than chunking."),
        ("api:\n  port: [1\nmcp: {}\n", "3: mcp: this is no YAML: "),
        ("api:\n\tport: 1\n", "2: port: this is no YAML: found character '\\t'"),
        ("api: {port: 1}\n---\napi: {}\n", "2: api: this is no YAML: but found another document."),
        ("api:\n  host: 'a\x07'\n", "2: host: a character that YAML does not allow."),
        ("api: &a\n  port: *b\n", "2: port: this is no YAML: found undefined alias"),
        ("api:\n  <<: {port: 1}\n", "2: api.<<: there is no such setting"),
        ("? [a, b]\n: c\n", "1: a section: a key must be a word."),
        ("api: " + "[" * 5000, "1: this is nested too deeply for a configuration."),
        ("paths:\n  watch_dirs: &a [*a]\n", "2: paths.watch_dirs must be a path, not a list."),
        ("api:\n  port: !!int abc\n", "2: api.port is empty; it must be"),
        ("api:\n  port: !!python/object:os.system x\n", "2: api.port must be a whole number"),
    ],
)
def test_a_mistake_in_the_file_is_one_line_with_file_line_and_key(text: str, said: str, tmp_path: Path) -> None:
    assert refusal(text, tmp_path).startswith(said)


def test_a_file_that_is_no_text_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_bytes(b"api:\n  host: caf\xe9\n")
    with pytest.raises(ConfigError, match=r":2: the configuration is not UTF-8\.$"):
        load(path, {})
    path.write_bytes(b"\xef\xbb\xbfapi: {port: 5}\r\n")
    assert load(path, {}).config.api.port == 5
    path.write_bytes(b"#" * (2 << 20))
    with pytest.raises(ConfigError, match="too large"):
        load(path, {})
    with pytest.raises(ConfigError, match="cannot be read"):
        load(tmp_path, {})


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n", "search: {}\n"])
def test_an_empty_file_changes_nothing(text: str, tmp_path: Path) -> None:
    assert load(written(tmp_path / "c.yaml", text), {}).config == Config()


def test_a_small_chunk_alone_is_no_mistake(tmp_path: Path) -> None:
    config = load(written(tmp_path / "c.yaml", "chunking: {max_tokens: 32}"), {}).config
    assert config.chunking.max_tokens == 32


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused_in_one_line(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    try:
        load(path, {})
    except ConfigError as error:
        assert str(error).isprintable() and str(error).startswith(f"{path}:")


def test_the_template_holds_every_setting_at_its_default(tmp_path: Path) -> None:
    path = tmp_path / "new/folder/config.yaml"
    write_template(path)
    loaded = load(path, {})
    assert loaded.config == Config()
    assert all(origin.startswith(f"{path}:") for origin in loaded.origins.values())
    if os.name == "posix":
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_file_is_written_over_only_by_force(tmp_path: Path) -> None:
    path = written(tmp_path / "c.yaml", "api: {port: 1}\n" * 100)
    with pytest.raises(ConfigError, match="exists already; --force writes over it"):
        write_template(path)
    write_template(path, force=True)
    assert load(path, {}).config == Config()
    with pytest.raises(ConfigError, match="cannot be written"):
        write_template(path / "below a file")


def test_the_key_of_the_api_is_shown_nowhere(tmp_path: Path) -> None:
    loaded = load(written(tmp_path / "c.yaml", "api: {api_key: canary}"), {})
    assert loaded.config.api.api_key == "canary"
    assert ("api.api_key", "(set)") in [(name, value) for name, value, _ in loaded.rows()]
    assert "canary" not in repr(loaded) + str(list(loaded.rows()))


@pytest.mark.parametrize("login", ["me:canary@", "canary@", "me:can@canary@", ":canary@"])
def test_the_password_of_a_url_is_used_but_shown_nowhere(tmp_path: Path, login: str) -> None:
    text = f"embeddings: {{ollama_base_url: 'http://{login}host:1/x@y'}}\npaths: {{db_path: 's3://{login}bucket/a@b'}}"
    loaded = load(written(tmp_path / "c.yaml", text), {})
    assert loaded.config.embeddings.ollama_base_url == f"http://{login}host:1/x@y"
    shown = {name: value for name, value, _ in loaded.rows()}
    assert shown["embeddings.ollama_base_url"] == "http://host:1/x@y"
    assert shown["paths.db_path"] == "s3://bucket/a@b"
