"""CANN's libraries as the real torch_npu wants them, on a machine without: `python -m tests.npu.torch_npu_libraries DIR`.

ACL's functions are the stand-in's where it has them; all others that torch_npu is linked against, or looks up, give 0.
"""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from tests.npu.cann import installed
from tile_eg.simulator.build import require_compiler

NEEDED = ("libhccl.so", "libacl_op_compiler.so", "libge_runner.so", "libgraph.so", "libacl_tdt_channel.so")
LOOKED_UP = re.compile(rb"\0(acl(?:rt|op|mdl|prof|tdt)?[A-Z][A-Za-z0-9]+)(?=\0)")
OURS = ("acl", "rt", "Hccl", "hccl", "Msprof", "aml", "ge")
"""How the names of CANN's functions begin."""


def symbols(file: Path, which: str) -> set[str]:
    done = subprocess.run(["nm", "-D", f"--{which}-only", str(file)], capture_output=True, text=True, check=True)
    return {line.split()[-1].partition("@")[0] for line in done.stdout.splitlines()}


def libraries(home: Path, package: Path) -> Path:
    """The folder of a stand-in's libraries, filled with what the package needs."""
    folder = installed(home) / "lib64"
    for part in ("runtime", "compiler", "opp"):
        (home / part).mkdir(exist_ok=True)
    (folder / "libascendcl.so").rename(folder / "libstandin.so")
    own = [*package.glob("lib/*.so"), *package.glob("_C*.so")]
    linked = {s for f in own for s in symbols(f, "undefined")}
    looked_up = {s.decode() for f in own for s in LOOKED_UP.findall(f.read_bytes())}
    missing = (linked | looked_up) - symbols(folder / "libstandin.so", "defined")
    named = sorted(s for s in missing if s.startswith(OURS))
    text = "".join(f"long {name}(void) {{ return 0; }}\n" for name in named)
    (folder / "others.c").write_text(text)
    build = [require_compiler(), "-shared", "-fPIC", "-w"]
    subprocess.run([*build, "-x", "c", str(folder / "others.c"), "-o", str(folder / "libothers.so")], check=True)
    both = ["-Wl,--no-as-needed", f"-L{folder}", "-l:libstandin.so", "-l:libothers.so", f"-Wl,-rpath,{folder}"]
    subprocess.run([*build, "-x", "c", "/dev/null", *both, "-o", str(folder / "libascendcl.so")], check=True)
    for name in NEEDED:
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to("libothers.so")
    return folder


if __name__ == "__main__":
    found = find_spec("torch_npu")
    assert found and found.submodule_search_locations, "torch_npu is not installed"
    print(libraries(Path(sys.argv[1]), Path(next(iter(found.submodule_search_locations)))))
