"""The package as it is installed: complete, importable under one name only, cheap to import."""

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import layoutproof
from layoutproof import _HOME
from tests.shares import one_in
from tests.tree import FACE, PACKAGE_DIR, PROJECT, ROOMS, ROOT, code_files, file, material_files

SETUPTOOLS = PROJECT["tool"]["setuptools"]


def packages_in_the_tree() -> set[str]:
    """Every package by its import name, found by the files that are there."""
    found = {"layoutproof"}
    for room in ROOMS:
        for init in (ROOT / room).rglob("__init__.py"):
            found.add(".".join(("layoutproof", *init.parent.relative_to(ROOT).parts)))
    return found


def shipped_names() -> set[str]:
    """Every file as the wheel must name it."""
    files = [*code_files(), *material_files(), FACE / "py.typed"]
    return {f"layoutproof/{path.relative_to(FACE if path.is_relative_to(FACE) else ROOT).as_posix()}" for path in files}


def run_python(*arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run this Python anew; without PYTHON* variables, so that only what is installed counts."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return subprocess.run(
        [sys.executable, *arguments], cwd=cwd, env=environment, capture_output=True, text=True, timeout=240, check=False
    )


def test_every_package_is_listed() -> None:
    """The list of packages in pyproject.toml is exactly what the tree holds."""
    assert set(SETUPTOOLS["packages"]) == packages_in_the_tree()
    assert len(SETUPTOOLS["packages"]) == len(set(SETUPTOOLS["packages"]))


def test_no_package_imports_its_own_face() -> None:
    """No module imports a name from the `__init__` of a package that contains it, which would be a hidden cycle."""
    offenders = [
        f"{file(path).name}: from {module} import {name}"
        for path in code_files()
        if path.parent != FACE
        for module, name in file(path).imports
        if (folder := ROOT.joinpath(*module.split(".")[1:])) in path.parents
        and not (folder / f"{name}.py").is_file()
        and not (folder / name / "__init__.py").is_file()
    ]
    assert offenders == []


def test_every_folder_of_code_is_a_package() -> None:
    """No Python file lies in a folder without `__init__.py`, where the list of packages would miss it."""
    assert [path for path in code_files() if not (path.parent / "__init__.py").is_file()] == []


def test_links_agree_with_the_map() -> None:
    """Each link under src/layoutproof is relative and leads to the folder that package-dir names."""
    for name, folder in PACKAGE_DIR.items():
        link = ROOT / "src" / name.replace(".", "/")
        assert link.resolve() == (ROOT / folder).resolve()
        if name != "layoutproof":
            assert link.is_symlink()
            assert link.readlink() == Path("..", "..", folder)
    links = {path.name for path in FACE.iterdir() if path.is_symlink()}
    assert links == set(ROOMS)


def test_tools_know_every_room() -> None:
    """Type checkers, the style checker and the import contracts name every room."""
    tools = PROJECT["tool"]
    assert set(tools["pyright"]["include"]) == {"src/layoutproof", "tests"} | {
        f"src/layoutproof/{room}" for room in ROOMS
    }
    assert tools["mypy"]["exclude"][0] == f"^({'|'.join(sorted(ROOMS))})/"
    assert set(tools["ruff"]["lint"]["flake8-tidy-imports"]["banned-api"]) == set(ROOMS)
    layers = tools["importlinter"]["contracts"][0]
    assert layers["exhaustive"]
    assert set(ROOMS) <= {part.strip(" ()") for layer in layers["layers"] for part in layer.split("|")}


@pytest.mark.parametrize("room", ROOMS)
def test_bare_import_is_refused(room: str) -> None:
    """A room imported under its bare name, which would double every class in it, fails and says what to write
    instead.
    """
    result = run_python("-c", f"import {room}")
    assert result.returncode == 1
    assert f"write 'import layoutproof.{room}'" in result.stderr


def test_import_is_lazy() -> None:
    """Importing the package loads no solver, no numpy, no drawing and no command-line library."""
    heavy = ("z3", "islpy", "numpy", "ml_dtypes", "matplotlib", "click", "rich")
    result = run_python(
        "-c", f"import sys, layoutproof; dir(layoutproof); print([m for m in {heavy!r} if m in sys.modules])"
    )
    assert (result.stdout, result.stderr) == ("[]\n", "")


def test_ir_loads_no_solver() -> None:
    """The whole of ir loads without a solver."""
    modules = [
        ".".join(("layoutproof", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")
        for path in code_files()
        if path.is_relative_to(ROOT / "ir")
    ]
    result = run_python(
        "-c", f"import sys, {', '.join(modules)}; print([m for m in ('z3', 'islpy') if m in sys.modules])"
    )
    assert (result.stdout, result.stderr) == ("[]\n", "")


@pytest.mark.parametrize("name", layoutproof.__all__)
def test_public_name_loads(name: str) -> None:
    """Every public name can be had from the package."""
    assert getattr(layoutproof, name) is not None
    assert name in dir(layoutproof)


def test_unknown_name_is_an_attribute_error() -> None:
    """A name that the package does not have gives the usual error."""
    with pytest.raises(AttributeError, match="no attribute 'no_such_name'"):
        _ = layoutproof.no_such_name  # type: ignore[attr-defined]  # the error is what is tested


def test_type_checkers_see_the_same_names() -> None:
    """The imports that type checkers read and the table that runs name the same objects of the same modules."""
    seen = {name: module for module, name in file(FACE / "__init__.py").imports}
    assert seen == _HOME
    assert sorted([*_HOME, "__version__"]) == layoutproof.__all__


def test_versions_agree() -> None:
    """The version in the code, in pyproject.toml and in what is installed are one."""
    assert layoutproof.__version__ == PROJECT["project"]["version"] == importlib.metadata.version("layoutproof")


def test_changelog_speaks_of_this_version() -> None:
    """The changelog has a section for the present version."""
    assert f"## {layoutproof.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


@one_in(7)
def test_distributions_hold_all_code(tmp_path: Path) -> None:
    """The sdist, and the wheel built from it, hold every source file; the wheel imports from where it lies."""
    copy = tmp_path / "copy"
    skipped = shutil.ignore_patterns(".*", "build", "dist", "*.egg-info", "__pycache__", "tests")
    shutil.copytree(ROOT, copy, symlinks=True, ignore=skipped)
    built = run_python("-m", "build", "--no-isolation", "--outdir", str(tmp_path / "dist"), str(copy))
    assert built.returncode == 0, built.stdout + built.stderr
    (sdist,) = (tmp_path / "dist").glob("*.tar.gz")
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    with tarfile.open(sdist) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    assert {path.relative_to(ROOT).as_posix() for path in code_files()} <= inside
    assert {"LICENSE", "README.md", "pyproject.toml"} <= inside
    with zipfile.ZipFile(wheel) as archive:
        everything = {name for name in archive.namelist() if ".dist-info/" not in name}
    names = {name for name in everything if ".data/" not in name}
    assert names == shipped_names()
    assert {name.partition(".data/")[2] for name in everything - names} == {"data/share/man/man1/layoutproof.1"}
    tried = run_python(
        "-I", "-c", f"import sys; sys.path.insert(0, {str(wheel)!r}); import layoutproof.ir as ir; print(ir.__file__)"
    )
    assert tried.stdout.startswith(str(wheel)), tried.stderr


def test_a_folder_of_the_same_name_does_not_hide_the_package(tmp_path: Path) -> None:
    """A script beside a clone that is called `layoutproof` imports the package and not the clone's folder: where the
    source folder is on the path, as every install of the Makefile puts it there.
    """
    (tmp_path / "layoutproof" / "ir").mkdir(parents=True)
    script = tmp_path / "script.py"
    script.write_text("import layoutproof.ir.index_map; print(layoutproof.__version__)\n")
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run([sys.executable, str(script)], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == f"{layoutproof.__version__}\n"
    recipes = (ROOT / "Makefile").read_text()
    assert recipes.count("pip install") == recipes.count("layoutproof-source.pth") == 1


def test_the_container_is_made_of_what_is_there() -> None:
    """The Dockerfile installs extras that exist from a context with all code, and does not run as root."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    instructions = [line.split(None, 1) for line in text.replace("\\\n", " ").splitlines() if line[:1].isupper()]
    words = [word for word, _ in instructions]
    assert words[0] == "FROM" and words.index("USER") > max(at for at, word in enumerate(words) if word == "RUN")
    ((_, extras),) = re.findall(r'pip install .*"(/source)\[([a-z,]+)\]"', text)
    assert set(extras.split(",")) <= set(PROJECT["project"]["optional-dependencies"])
    assert dict(instructions)["COPY"] == ". /source" and dict(instructions)["ENTRYPOINT"] == '["layoutproof"]'
    left_out = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    kept = [
        *PROJECT["tool"]["setuptools"]["package-dir"].values(),
        "pyproject.toml",
        "README.md",
        "LICENSE",
        "docs/man",
    ]
    assert not any(name.split("/")[0] in left_out or name in left_out for name in kept)
