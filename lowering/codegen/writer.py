"""The parts of generated text: indented lines, legal and unique names, and helper functions."""

from __future__ import annotations

import keyword as python_keyword
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

WIDTH = 120
# Where a line may be broken, from the loosest operator to the tightest; then behind commas and behind the assignment.
_LOOSEST_FIRST = (r"[?:]", r"\|\|", r"&&", r"(?:==|!=|<=|>=|<|>)", r"(?:[-+&|^]|<<|>>)", r"[*/%]")
_BREAKS = (
    *(re.compile(f" (?={operator} )") for operator in _LOOSEST_FIRST),
    re.compile(r"(?<=,) "),
    re.compile(r"(?<== )"),
)


def wrapped(text: str, width: int) -> list[str]:
    """A statement in pieces of at most `width` where it can be: broken where fewest brackets are open, then at the
    loosest operator.
    """
    pieces: list[str] = []
    while len(text) > width and not text.startswith(("/*", "LP_")):
        places = [
            (_depth(text, m.start()), rank, -m.start())
            for rank, pattern in enumerate(_BREAKS)
            for m in pattern.finditer(text)
        ]
        fitting = [place for place in places if width // 4 <= -place[2] <= width]
        if not fitting:
            break
        place = -min(fitting)[2]
        pieces.append(text[:place].rstrip())
        text = text[place:].lstrip()
    return [*pieces, text]


def _depth(text: str, place: int) -> int:
    """How many brackets are open at `place`."""
    before = text[:place]
    return sum(before.count(c) for c in "([") - sum(before.count(c) for c in ")]")


def inside_comment(text: str) -> str:
    """`text` on one line, without comment delimiters."""
    return " ".join(text.replace("*/", "* /").replace("/*", "/ *").split())


def comment(text: str) -> str:
    """`/* text */`."""
    return f"/* {inside_comment(text)} */"


class Writer:
    """Collects lines at a current depth of nesting. `spell` writes each in the words of the language, where it is not
    C.
    """

    def __init__(self, indent: str = "    ", depth: int = 0, spell: Callable[[str], str] = str) -> None:
        self._lines: list[str] = []
        self._spell = spell
        self._indent = indent
        self._depth = depth

    def line(self, text: str = "") -> None:
        """Add one line at the current depth, wrapped where it is long; a preprocessor line is not indented."""
        if not text or text.startswith("#"):
            self._lines.append(text)
            return
        first, *rest = wrapped(self._spell(text), max(WIDTH - len(self._indent) * self._depth, WIDTH // 2))
        self._lines.append(self._indent * self._depth + first)
        self._lines += [self._indent * (self._depth + 2) + part for part in rest]

    @contextmanager
    def nested(self, head: str, tail: str = "}") -> Iterator[None]:
        """`head {`, the lines added inside one step deeper, `tail`."""
        self.line(f"{head} {{" if head else "{")
        self._depth += 1
        yield
        self._depth -= 1
        if tail:
            self.line(tail)

    def text(self) -> str:
        """All lines, each ended by a newline."""
        return "".join(f"{line}\n" for line in self._lines)


_KEYWORDS = """
auto break case char const continue default do double else enum extern float for goto if inline int long register
restrict return short signed sizeof static struct switch typedef union unsigned void volatile while _Alignas _Alignof
_Atomic _Bool _Complex _Generic _Imaginary _Noreturn _Static_assert _Thread_local alignas alignof bool constexpr false
nullptr static_assert thread_local true typeof typeof_unqual and and_eq asm bitand bitor catch class compl concept
delete explicit export friend mutable namespace new not not_eq operator or or_eq private protected public template
this throw try typeid typename using virtual wchar_t xor xor_eq
"""
_LIBRARY = """
errno assert main size_t ptrdiff_t uintptr_t intptr_t linux unix i386 int8_t int16_t int32_t int64_t uint8_t uint16_t
uint32_t uint64_t signbit isfinite remove rename signal printf puts read write open close time clock error lane
math_errhandling signgam uint ulong ushort environ lldiv a64l abort abs aligned_alloc alloca arc4random arc4random_buf
arc4random_uniform at_quick_exit atexit atof atoi atol atoll bcmp bcopy bsearch bzero calloc clearenv div drand48
drand48_r ecvt ecvt_r erand48 erand48_r exit explicit_bzero fcvt fcvt_r ffs ffsl ffsll free gcvt getenv getloadavg
getsubopt index initstate initstate_r jrand48 jrand48_r l64a labs lcong48 lcong48_r ldiv lgamma_r lgammaf_r lgammal_r
llabs lrand48 lrand48_r malloc mblen mbstowcs mbtowc memccpy memchr memcmp memcpy memmove memset mkdtemp mkstemp
mkstemps mktemp mrand48 mrand48_r nrand48 nrand48_r on_exit posix_memalign pselect putenv qecvt qecvt_r qfcvt qfcvt_r
qgcvt qsort quick_exit rand rand_r random random_r realloc reallocarray realpath rindex rpmatch seed48 seed48_r select
setenv setstate setstate_r srand srand48 srand48_r srandom srandom_r stpcpy stpncpy strcasecmp strcasecmp_l strcat
strchr strcmp strcoll strcoll_l strcpy strcspn strdup strerror strerror_l strerror_r strlen strncasecmp strncasecmp_l
strncat strncmp strncpy strndup strnlen strpbrk strrchr strsep strsignal strspn strstr strtod strtof strtok strtok_r
strtol strtold strtoll strtoq strtoul strtoull strtouq strxfrm strxfrm_l system unsetenv valloc wcstombs wctomb
"""
# Each has a form for float and one for long double.
_MATH = """
acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh drem erf erfc exp exp2 expm1 fabs fdim finite floor
fma fmax fmin fmod frexp gamma hypot ilogb isinf isnan j0 j1 jn ldexp lgamma llrint llround log log10 log1p log2 logb
lrint lround modf nan nearbyint nextafter nexttoward pow remainder remquo rint round scalb scalbln scalbn significand
sin sinh sqrt tan tanh tgamma trunc y0 y1 yn
"""
_FORMS = frozenset(f"{name}{form}" for name in _MATH.split() for form in ("", "f", "l"))
RESERVED = frozenset(_KEYWORDS.split()) | frozenset(_LIBRARY.split()) | _FORMS
# Headers, of any compiler and in any of its modes, may have a macro of such a name, or a type.
_LIKE_A_MACRO = re.compile(r"[A-Z][A-Z0-9_]{2,}")
_LIKE_A_TYPE = re.compile(r"\w+_t")


def sanitise(name: str) -> str:
    """`name` as a C identifier: other characters become `_`, letters outside ASCII their code point. None looks like a
    macro.
    """
    text = re.sub(r"[^0-9A-Za-z_]", lambda m: "_" if m[0] in "._-: " else f"_u{ord(m[0]):x}", name)
    if (
        not text
        or text[0].isdigit()
        or text.startswith(("__", "lp_", "LP_"))
        or re.match(r"_[A-Z]", text)
        or _LIKE_A_MACRO.fullmatch(text)
    ):
        text = f"v_{text.lstrip('_')}"
    return text


def entry_name(name: str, reserved: frozenset[str] = RESERVED) -> str:
    """The name of the C function for a program function: `name`, with `_kernel` appended where C or its library may
    have that name.
    """
    text = sanitise(name)
    return (
        f"{text}_kernel" if text in reserved or _LIKE_A_TYPE.fullmatch(text) or python_keyword.iskeyword(name) else text
    )


class Names:
    """The identifiers of all open blocks. A name is taken until its block is closed, a reserved one always."""

    def __init__(self, taken: tuple[str, ...] = (), reserved: frozenset[str] = RESERVED) -> None:
        self._blocks: list[set[str]] = [set(taken)]
        self._reserved = reserved

    @contextmanager
    def block(self) -> Iterator[None]:
        """A C block: names declared in it are released afterwards."""
        self._blocks.append(set())
        yield
        self._blocks.pop()

    def declare(self, wanted: str) -> str:
        """A free identifier like `wanted`, taken in the innermost block."""
        base = sanitise(wanted)
        name, number = base, 0
        while name in self._reserved or any(name in block for block in self._blocks):
            number += 1
            name = f"{base}_{number}"
        self._blocks[-1].add(name)
        return name


@dataclass(frozen=True, slots=True)
class Helper:
    """C text, complete with its comment, and the names of the helpers that it needs."""

    text: str
    needs: tuple[str, ...] = ()
