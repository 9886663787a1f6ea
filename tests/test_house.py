"""The manners of the house, as far as a machine can see them: sizes, docstrings, and tests that cannot be skipped.

Each test looks at every file and names all that offend: a test for each pair of the two would be seven thousand of
them.
"""

import re
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.tree import ROOT, File, all_files, code_files, file, files_of_tests, material_files, name_of

MOST_FILES = 696
MOST_IN_FOLDER = 25
LONGEST_FILE = 450
LONGEST_FUNCTION = 70
LONGEST_README = 150
GENERATED = "lowering/schedule/primitives.py"
MEDIAN_FUNCTION = 12

MISWORDED = (
    "as asked, nothing planned",
    "believes",
    "caller's word",
    "ends with the value that it had",
    "every observable cell",
    "extra instance",
    "finds a value",
    "float licence",
    "hold what they owe",
    "holds only of nothing",
    "keeps its cells",
    "made-up data",
    "nobody",
    "onto the box",
    "owed padding",
    "re-la(?:id|ys)",
    "said of",
    "the seeds? `",
    "unless said",
    "what it comes to",
    "whoever",
)
"""Phrases for which there is a standard term."""


def files() -> Iterator[File]:
    return (file(path) for path in all_files())


def complain(offenders: Iterable[str], rule: str) -> None:
    """Fail and name them all, if there are any."""
    found = list(offenders)
    assert found == [], "\n".join([rule, *found])


def test_files_are_short() -> None:
    """Every file that is written by hand fits the limit."""
    lengths = ((seen.name, len(seen.text.splitlines())) for seen in files() if seen.name != GENERATED)
    complain(
        (f"{name}: {lines} lines" for name, lines in lengths if lines > LONGEST_FILE),
        f"a file has {LONGEST_FILE} lines at most",
    )


def test_the_readme_is_short() -> None:
    """What a newcomer reads first fits in five minutes; the rest stands in the documentation."""
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= LONGEST_README


def test_folders_are_small() -> None:
    """No folder of the product has too many files, and neither has the product."""
    folders = Counter(name_of(path.parent) for path in code_files())
    assert folders.total() <= MOST_FILES
    complain(
        (f"{name}: {count} files" for name, count in folders.items() if count > MOST_IN_FOLDER),
        f"a folder has {MOST_IN_FOLDER} files of code at most",
    )


def test_files_say_why_they_exist() -> None:
    """Every file begins with a docstring of a few words at least."""
    complain(
        (seen.name for seen in files() if len((seen.docstring or "").split()) < 4), "a file begins with a docstring"
    )


def test_functions_are_short() -> None:
    """No function is longer than the limit."""
    long = (f"{f.place}: {f.length} lines" for seen in files() for f in seen.functions if f.length > LONGEST_FUNCTION)
    complain(long, f"a function has {LONGEST_FUNCTION} lines at most")


def test_functions_are_mostly_short() -> None:
    """Half of all shipped functions fit in a few lines."""
    lengths = sorted(function.length for path in code_files() for function in file(path).functions)
    assert lengths[len(lengths) // 2] <= MEDIAN_FUNCTION


def test_every_test_says_what_it_holds() -> None:
    """Every test has a docstring that is one sentence, so that the list of tests reads as a specification."""
    tests = [
        function for path in files_of_tests() for function in file(path).functions if function.name.startswith("test_")
    ]
    assert tests != []
    complain((test.place for test in tests if test.docstring is None), "a test has a docstring")
    complain(
        (test.place for test in tests if not (test.docstring or "").rstrip().endswith(".")),
        "a docstring ends its sentence",
    )


def test_no_test_is_skipped() -> None:
    """No test is skipped or expected to fail: a case that does not work is mended or not claimed."""
    complain((way for path in files_of_tests() for way in file(path).ways_out), "no test is skipped")


def test_suppressions_give_a_reason() -> None:
    """A switched-off check names the check and, after another `#`, the reason."""
    complain((found for path in all_files() for found in unexplained(path)), "say why")


def unexplained(path: Path) -> Iterator[str]:
    """The comments of a file that switch a check off without a word."""
    if not re.search(r"#\s*(type:\s*ignore|noqa|pyright:)", file(path).text):
        return
    with tokenize.open(path) as source:
        comments = [
            (t.start[0], t.string) for t in tokenize.generate_tokens(source.readline) if t.type == tokenize.COMMENT
        ]
    for line, comment in comments:
        if re.match(r"#\s*(type:\s*ignore|noqa|pyright:)", comment) and not re.fullmatch(
            r"#[^#]*[\[:] ?[\w, -]+\]?  # \w.*", comment
        ):
            yield f"{name_of(path)}:{line}: {comment}"


def test_standard_terms() -> None:
    """The README, the documentation and the strings of the product use standard terms."""
    wrong = re.compile(rf"\b(?:{'|'.join(MISWORDED)})", re.IGNORECASE)
    written = (page for page in (ROOT / "docs").rglob("*.md") if not {"codes", "_build"} & set(page.parts))
    pages = [ROOT / "README.md", *written, *(p for p in material_files() if p.suffix == ".md")]
    texts = [(name_of(path), path.read_text(encoding="utf-8")) for path in pages]
    texts += [(f"{file(path).name}:{line}", text) for path in code_files() for line, text in file(path).strings]
    found = [(m[0].lower(), place) for place, text in texts for m in wrong.finditer(" ".join(text.split()))]
    complain((f"{place}: {phrase}" for phrase, place in found), "a text uses standard terms")


def test_no_star_imports() -> None:
    """Nothing is imported by star."""
    complain((place for seen in files() for place in seen.star_imports), "nothing is imported by star")


def test_no_path_of_one_machine() -> None:
    """No file names a folder that exists only on somebody's machine."""
    homes = "|".join(("root", "home", "Users", "work"))
    paths = [*all_files(), *sorted(ROOT.glob("*.md")), ROOT / "Makefile"]
    texts = ((name_of(path), path.read_text(encoding="utf-8")) for path in paths)
    found = (
        f"{name}: {place}" for name, text in texts for place in re.findall(rf"(?<![\w.}}/])/(?:{homes})/\w+", text)
    )
    complain(found, "no file names a folder of one machine")
