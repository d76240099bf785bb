"""Compiles kernels with Triton as far as scheduled HIVM: run by the interpreter that has Triton, `compiled.py KERNEL SIZE TIMES`.

Prints the processor seconds of each of so many compilations, its child processes' included, as JSON. What is behind HIVM needs
CANN: the compiler stops there, and it counts as done once the file that it keeps has flags in it.
"""

import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

TARGET = "Ascend910B2"
OPTIONS = (
    f"--target={TARGET}", "--enable-auto-multi-buffer=True", "--enable-auto-bind-sub-block=True",
    "--enable-hfusion-compile=true", "--enable-hivm-compile=true", "--enable-triton-kernel-compile=true",
)  # fmt: skip
"""What Triton's own last stage gives to `bishengir-compile`."""


def main(kernel: str, size: int, times: int) -> None:
    print(json.dumps([_seconds(kernel, size) for _ in range(times)]))


def _seconds(kernel: str, size: int) -> float:
    before = _processor()
    _to_hivm(_to_linalg(kernel, size))
    return _processor() - before


def _processor() -> float:
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(used.ru_utime + used.ru_stime for used in both)


def _to_linalg(kernel: str, size: int) -> str:
    """Triton's own stages, called one by one: nothing is taken from its cache, or asks for a device."""
    import kernels
    from triton._C.libtriton import ir
    from triton.backends.ascend import compiler
    from triton.backends.compiler import GPUTarget
    from triton.compiler.compiler import ASTSource, make_backend

    names, sizes = {"gemm": ("abc", "MNK"), "attention": ("qkvo", "S")}[kernel]
    backend = make_backend(GPUTarget("npu", TARGET, 0))
    source = ASTSource(getattr(kernels, kernel), dict.fromkeys(names, "*fp16"), dict.fromkeys(sizes, size))
    options = backend.parse_options({})
    metadata = {"hash": kernel, "target": backend.target, **vars(options)}
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    module = source.make_ir(options, backend.get_codegen_implementation(), backend.get_module_map(), context)
    linalg = compiler.ttir_to_linalg(compiler.make_ttir(module, metadata, options), metadata, options, named_ops=True)
    return compiler._parse_linalg_metadata(linalg, metadata)[0]


def _to_hivm(linalg: str) -> None:
    import ascendnpuir

    program = Path(ascendnpuir.__file__).parent / "bin" / "bishengir-compile"
    with tempfile.TemporaryDirectory() as folder:
        source, kept = Path(folder, "kernel.mlir"), Path(folder, "kept")
        source.write_text(linalg)
        kept.mkdir()
        command = [str(program), str(source), *OPTIONS, f"--save-temps={kept}", "-o", str(Path(folder, "kernel"))]
        done = subprocess.run(command, capture_output=True, text=True)
        found = list(kept.glob("*.hivm*.mlir"))
        if not found or "set_flag" not in found[0].read_text():
            sys.exit(f"bishengir-compile left no scheduled HIVM\n{done.stderr[-2000:]}")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
