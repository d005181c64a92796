"""Takes the manifest, one model and its licence into the wheel and the sdist, after checking every hash.

Not part of the package. Runs where only hatchling is installed, hence the standard library and the manifest's own
reader, loaded from its file. In a checkout the model lies in the folder above, in an sdist beside this file.
"""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

LICENCE = "LICENSE-MODEL.txt"


class ModelFiles(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return  # a checkout reads the model where it lies
        root = Path(self.root)
        reader = _reader(root)
        home = root if (root / reader.NAME).exists() else root.parent
        raw = (home / reader.NAME).read_bytes()
        files = {each.id: {f"model/{each.id}/{file.path}": file for file in each.files} for each in reader.parse(raw)}
        chosen = next((each for each in files if all((home / path).is_file() for path in files[each])), None)
        if chosen is None:
            raise FileNotFoundError(f"{home / 'model'} holds no whole model: run scripts/fetch_model.py first.")
        for path, file in files[chosen].items():
            _check(home / path, file.sha256)
        paths = [reader.NAME, LICENCE, *files[chosen]]
        build_data["force_include"].update({str(home / path): path for path in paths})
        self.app.display_info(f"With the model {chosen}, as {reader.NAME} pins it.")


def _check(path: Path, sha256: bytes) -> None:
    with path.open("rb") as content:
        if hashlib.file_digest(content, "sha256").digest() != sha256:
            raise ValueError(f"{path} is not the file that the manifest pins, and is not built in.")


def _reader(root: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("squirrel_model_manifest", root / "manifest.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up there
    spec.loader.exec_module(module)
    return module
