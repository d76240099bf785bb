"""Which C++ name a kernel, its tensors and its loops get: their own, unless the text of a kernel cannot use it.

A kernel may be called `main` or `exp`, a tensor `new`: in C++ these are taken, so the text says `main_kernel`, `t_new`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from tile_eg.ir.passed import MOST_WHOLE
from tile_eg.ir.program import Program

_LANGUAGE = """alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t char8_t class compl
concept const const_cast consteval constexpr constinit continue co_await co_return co_yield decltype default delete do double
dynamic_cast else enum explicit export extern false float for friend goto if inline int long mutable namespace new noexcept not
not_eq nullptr operator or or_eq private protected public register reinterpret_cast requires return short signed sizeof static
static_assert static_cast struct switch template this thread_local throw true try typedef typeid typename union unsigned using
virtual void volatile wchar_t while xor xor_eq
NULL EOF NAN INFINITY HUGE_VAL BUFSIZ RAND_MAX CHAR_BIT assert errno stdin stdout stderr linux unix size_t std"""
_TYPES = """half bfloat16_t int4b_t fp8_e4m3fn_t fp8_e5m2_t fp8_e8m0_t fp4x2_e2m1_t fp4x2_e1m2_t int8_t int16_t int32_t int64_t
uint8_t uint16_t uint32_t uint64_t"""
_TEXT = """AscendC QuantMode_t GM_ADDR main pipe workspace block sub Min Max l1 l0a l0b l0c ub
stream blocks launch workspaceBytes aclError aclrtStream"""
_LIBRARY = """abort abs access acos acosh advance aligned_alloc
asin asinh atan atan2 atanh atexit atof atoi atol bcmp bcopy bsearch bzero
calloc cbrt ceil clearerr clock close connect copysign cos cosh ctime difftime div drem dup erf erfc exit exp exp10
exp2 expm1 fabs fclose fdim feof ferror fflush ffs fgetc fgets floor fma fmax fmin fmod fopen fork fputc fputs fread
free frexp fscanf fseek ftell fwrite gamma getc getenv gets gmtime hypot ilogb index isalpha isdigit isinf isnan
isspace j0 j1 jn kill labs ldexp ldiv lgamma link listen llabs llrint llround localtime log log10 log1p log2 logb
longjmp lrint lround malloc memchr memcmp memcpy memmove memset mktime modf nan nearbyint nextafter nice open pause
perror pipe pow pow10 printf putc putchar puts qsort raise rand random read realloc recv remainder remove remquo
rename rewind rindex rint round scalb scalbln scalbn scanf select send signal significand sin sincos sinh sleep
snprintf socket sprintf sqrt srand srandom sscanf step strcat strchr strcmp strcpy strcspn strlen strncpy strstr strtol
swab sync system tan tanh tgamma time times trunc ungetc unlink wait write y0 y1 yn"""

RESERVED = frozenset(f"{_LANGUAGE} {_TYPES} {_TEXT}".split())
_GLOBAL = RESERVED | frozenset(name + kind for name in _LIBRARY.split() for kind in ("", "f", "l"))
_MACRO = re.compile(r"__.*|_[A-Z].*|(EVENT_ID|PIPE_|KERNEL_|ASCEND|ACL|CFG_|U?INT\d+_)\w*")


def kernel_symbol(p: Program) -> str:
    """The name of the kernel's function: the kernel's own, or `NAME_kernel` where C or C++ has another use for it."""
    return f"{p.name}_kernel" if p.name in _GLOBAL or _MACRO.fullmatch(p.name) else p.name


def argument_names(p: Program) -> dict[str, str]:
    """The parameter of the kernel for each tensor."""
    return spelled((t.name for t in p.tensors), RESERVED)


def size_names(p: Program) -> dict[str, str]:
    """The parameter of the kernel for each size that is known at run time."""
    return spelled(p.sizes.names if p.sizes else (), {*RESERVED, *argument_names(p).values(), kernel_symbol(p)})


def number_names(p: Program) -> dict[str, str]:
    """The parameter of the kernel for each number that a launch passes."""
    return spelled(p.numbers, {*RESERVED, *argument_names(p).values(), *size_names(p).values(), kernel_symbol(p)})


def number_types(p: Program) -> list[str]:
    """The numbers that a launch passes, each with its type in C++."""
    return [f"{'int32_t' if n in p.wholes else 'float'} {word}" for n, word in number_names(p).items()]


def refused_numbers(p: Program) -> str:
    """The lines of a launch that refuse whole numbers which the kernel was not compiled for."""
    names = [word for n, word in number_names(p).items() if n in p.wholes]
    lines = (f"    if ({n} < 0 || {n} > {MOST_WHOLE}) return ACL_ERROR_INVALID_PARAM;\n" for n in names)
    return "".join(lines)


def spelled(names: Iterable[str], taken: Collection[str]) -> dict[str, str]:
    """Each of different names with one that C++ can use: its own, or with `t_` before it."""
    own = list(names)
    out: dict[str, str] = {}
    for name in own:
        word = name
        while word in taken or _MACRO.fullmatch(word) or (word != name and word in own):
            word = f"t_{word}"
        out[name] = word
    return out
