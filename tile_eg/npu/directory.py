"""A directory with which another team builds and launches a kernel without tile_eg: texts, an example with its data, PyTorch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

from tile_eg.chips import Chip
from tile_eg.emit.any_size_host import text as cpp
from tile_eg.emit.names import argument_names, kernel_symbol, size_names
from tile_eg.ir.kernel import Tensor
from tile_eg.ir.program import Program
from tile_eg.ops.records import record

if TYPE_CHECKING:
    import numpy as np

    from tile_eg.ir.reference_bounds import Expected

TEMPLATES = Path(__file__).parent / "templates"
SIMULATED = "simulate.asc"
"""The file of a directory that holds kernel, host part and example, and runs in the simulator."""
TORCH = {
    "f16": "at::kHalf", "bf16": "at::kBFloat16", "f32": "at::kFloat", "i8": "at::kChar", "u8": "at::kByte", "i16": "at::kShort",
    "i32": "at::kInt", "i64": "at::kLong",
}  # fmt: skip
"""Element types that torch has, too."""


@record
class Directory:
    """A kernel with its texts. Where `program` has sizes that each launch tells, the example has their usual numbers."""

    program: Program
    source: str
    host: str
    chip: Chip

    @property
    def name(self) -> str:
        return kernel_symbol(self.program)

    @cached_property
    def sizes(self) -> dict[str, int]:
        """The sizes of a launch by their C++ names, with those of the example."""
        held = self.program.sizes
        return {size_names(self.program)[n]: v for n, v in held.usual} if held else {}

    def texts(self) -> dict[str, str]:
        """The files by name."""
        n, words = self.name, self._words()
        files = {f"{n}.h": "kernel.h", f"{n}_launch.cpp": "launch.cpp"}
        files |= {own: own for own in ("main.cpp", "CMakeLists.txt", "README.md")}
        files |= {f"{n}_torch.cpp": "torch.cpp"} if self.has_torch else {}
        made = {name: filled((TEMPLATES / own).read_text(encoding="utf-8"), words) for name, own in files.items()}
        launch = f'#include "{n}.asc"\n#define TILE_EG_ASC\n#include "{n}_launch.cpp"\n'
        title = "The kernel and its launch in one file"
        made[f"{n}_launch.asc"] = f"// {title}, for CANN 8.5 and newer. Written by tile_eg.\n{launch}"
        made[SIMULATED] = f'// The example as one file. Written by tile_eg.\n{launch}#include "main.cpp"\n'
        return {f"{n}.asc": self.source, f"{n}_host.h": self.host, **made}

    @property
    def has_torch(self) -> bool:
        """Whether torch has all of the kernel's element types, and tensors that it takes tell the device and all sizes."""
        tensors = self.program.tensors
        known = all(str(t.dtype) in TORCH for t in tensors) and self.sizes.keys() == self._told().keys()
        return known and any(not t.output or t.given for t in tensors)

    def _words(self) -> dict[str, str]:
        names, sizes = list(argument_names(self.program).values()), self.sizes
        parameters = ", ".join(f"int64_t {n}" for n in sizes)
        numbers = ", ".join(map(str, sizes.values()))
        words = {
            "NAME": self.name, "CHIP": self.chip.name, "ARCHITECTURE": self.chip.architecture, "SOC": f"Ascend{self.chip.name}",
            "SIZES": parameters or "void", "MORE_SIZES": f", {parameters}" if sizes else "",
            "CALLED": f"({', '.join(sizes)})" if sizes else "", "MORE_NAMES": f", {', '.join(sizes)}" if sizes else "",
            "NUMBERS": numbers, "MORE_NUMBERS": f", {numbers}" if sizes else "",
            "POINTERS": ", ".join(f"void* {n}" for n in names), "ARGUMENTS": ", ".join(names),
            "DEVICE": ", ".join(f"device[{i}]" for i in range(len(names))),
            "ROWS": "\n".join(map(self._row, self.program.tensors)),
            "TENSORS": "\n".join(f"//   {self._told_of(t)}" for t in self.program.tensors),
            "TENSORS_PART": "\n".join(["Its tensors, row-major and without gaps:", "",
                                       *(f"- {self._told_of(t)}" for t in self.program.tensors)]),
            "TORCH_ROW": "", "TORCH_PART": "",
        }  # fmt: skip
        return words | (self._torch_words() if self.has_torch else {})

    def _row(self, t: Tensor) -> str:
        """A tensor of the example. One that is added to begins with zeros, or with what it is given."""
        bytes, flags = t.dtype.bytes * prod(t.shape), [str(b).lower() for b in (t.output, self.begins_given(t))]
        return f'    {{"{t.name}", "{t.dtype}", {prod(t.shape)}, {bytes}, {", ".join(flags)}}},'

    def begins_given(self, t: Tensor) -> bool:
        """Whether a launch needs what the tensor holds."""
        return not t.output or t.given or t.name in self.program.added_to

    def _told_of(self, t: Tensor) -> str:
        added = t.name in self.program.added_to and not t.given
        written = "output, read too" if t.given else "output, added to: zero it first" if added else "output"
        role = written if t.output else "input"
        return f"{t.name}: {t.dtype}[{', '.join(self._shape(t))}], {role}"

    def _shape(self, t: Tensor) -> list[str]:
        """The dimensions of a tensor in C++, by the sizes where these decide."""
        held = self.program.sizes
        if held is None:
            return list(map(str, t.shape))
        return [cpp(e) for e in held.shapes[self.program.tensors.index(t)]]

    def _told(self) -> dict[str, str]:
        """The sizes that the shapes of inputs tell, each with where: "X.size(0)"."""
        found: dict[str, str] = {}
        names = argument_names(self.program)
        for t in self.program.tensors:
            if not t.output or t.given:
                found |= {d: f"{names[t.name]}.size({i})" for i, d in enumerate(self._shape(t)) if d in self.sizes}
        return found

    def _torch_words(self) -> dict[str, str]:
        names = argument_names(self.program)
        taken = [t for t in self.program.tensors if not t.output or t.given]
        made = [t for t in self.program.tensors if t.output and not t.given]
        parameters = ", ".join(f"const at::Tensor& {names[t.name]}" for t in taken)
        schema = ", ".join(f"Tensor{'(a!)' if t.output else ''} {names[t.name]}" for t in taken)
        returns = {0: "void", 1: "at::Tensor"}.get(len(made), f"std::tuple<{', '.join(['at::Tensor'] * len(made))}>")
        told = "".join(f"    const int64_t {n} = {where};\n" for n, where in self._told().items())
        given = ", ".join(names[t.name] for t in made)
        back = f"    return {given};" if len(made) == 1 else f"    return {{{given}}};" if made else "    return;"
        first = names[taken[0].name] if taken else ""
        new = [self._new(t, names[t.name], first) for t in made]
        checks = [f'    const at::Tensor {names[t.name]}_ = taken({names[t.name]}, "{t.name}", {TORCH[str(t.dtype)]}, '
                  f"{{{', '.join(self._shape(t))}}}, {first}.device());" for t in taken]  # fmt: skip
        pointers = ", ".join(f"{names[t.name]}{'_' if t in taken else ''}.data_ptr()" for t in self.program.tensors)
        sizes = ", ".join(self.sizes)
        more = f", {sizes}" if sizes else ""
        launch = [f"    const at::Tensor workspace = at::empty({{int64_t({self.name}_workspace({sizes}))}}, "
                  f"{first}.options().dtype(at::kByte));",
                  "    void* const stream = c10_npu::getCurrentNPUStream().stream();",
                  f"    const int code = {self.name}_launch(stream, {pointers}, workspace.data_ptr(){more});",
                  f'    TORCH_CHECK(code == 0, "launch {self.name}: ACL gives ", code);']  # fmt: skip
        written = [f"    if (!{names[t.name]}_.is_same({names[t.name]})) {names[t.name]}.copy_({names[t.name]}_);"
                   for t in taken if t.output]  # fmt: skip
        part = (f"\nWith `torch` and `torch_npu` there is a PyTorch operator: add `-DWITH_TORCH=ON`, and in Python\n\n```python\n"
                f'import torch, torch_npu\ntorch.ops.load_library("build/{self.name}_torch.so")\n'
                f"torch.ops.tile_eg.{self.name}({', '.join(names[t.name] for t in taken)})\n```\n")  # fmt: skip
        return {
            "RETURNS": returns, "PARAMETERS": parameters, "SCHEMA": schema,
            "BODY": f"    const c10::DeviceGuard guard({first}.device());\n{told}"
            + "\n".join([*checks, *new, *launch, *written, back]),
            "META": told + "\n".join([*new, back]),
            "SCHEMA_RETURNS": "Tensor" if len(made) == 1 else f"({', '.join(['Tensor'] * len(made))})",
            "TORCH_ROW": f"| `{self.name}_torch.cpp` | a PyTorch extension |\n", "TORCH_PART": part,
        }  # fmt: skip

    def _new(self, t: Tensor, name: str, first: str) -> str:
        kind = "zeros" if t.name in self.program.added_to else "empty"
        options = f"{first}.options().dtype({TORCH[str(t.dtype)]})"
        return f"    const at::Tensor {name} = at::{kind}({{{', '.join(self._shape(t))}}}, {options});"


def data_files(arrays: Mapping[str, np.ndarray], meant: Mapping[str, Expected], names: Sequence[str]) -> dict[str, bytes]:
    """The files of `data/`: what tensors begin with, and of each output what is meant and how far it may be from that."""
    import numpy as np

    found = {f"{name}.bin": np.ascontiguousarray(arrays[name]).tobytes() for name in names if name in arrays}
    for name, expected in meant.items():
        found[f"{name}.meant.bin"] = expected.value.astype(np.float64).tobytes()
        found[f"{name}.allowed.bin"] = np.broadcast_to(expected.allowed, expected.value.shape).astype(np.float64).tobytes()
    return found


def filled(text: str, words: Mapping[str, str]) -> str:
    """The template with its @WORDS@."""
    for word, value in words.items():
        text = text.replace(f"@{word}@", value)
    return text
