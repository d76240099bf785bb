"""The launcher as Python calls it: kernels loaded once each process and device, launches, and for those without torch, memory."""

from __future__ import annotations

import ctypes
import threading
from functools import cache
from pathlib import Path
from typing import Any

from tile_eg.errors import TileError
from tile_eg.npu.build import launcher
from tile_eg.npu.cann import Cann, find_cann
from tile_eg.npu.codes import OUT_OF_MEMORY, meaning

MAGIC = {"AIC_ONLY": 0x41494343, "AIV_ONLY": 0x41415246, "MIX": 0x43554245}
"""ACL_RT_BINARY_MAGIC_ELF_CUBE_CORE, .._VECTOR_CORE and .._AICORE of acl_rt.h."""
MOST_LEFT = 1 << 28
"""Bytes that wait to be given back, before somebody waits for the kernels that may use them."""
_I, _N, _P = ctypes.c_int32, ctypes.c_size_t, ctypes.c_void_p
_ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "init": (), "devices": (ctypes.POINTER(ctypes.c_uint32),), "soc": (_I, ctypes.POINTER(ctypes.c_char_p)),
    "load": (_I, ctypes.c_char_p, _N, ctypes.c_uint32, ctypes.POINTER(_P)),
    "function": (_I, _P, ctypes.c_char_p, ctypes.POINTER(_P)), "sync": (_I, ctypes.POINTER(ctypes.c_uint64)),
    "launch": (_I, _P, ctypes.c_uint32, _P, ctypes.c_char_p, _N), "malloc": (_I, _N, ctypes.POINTER(_P)), "free": (_I, _P),
    "upload": (_I, _P, _P, _N), "download": (_I, _P, _P, _N), "fill": (_I, _P, ctypes.c_int32, _N, _P),
    "stream": (_I, ctypes.POINTER(_P)), "wait": (_I, _P), "event": (_I, ctypes.POINTER(_P)), "record": (_I, _P, _P),
    "elapsed": (_I, ctypes.POINTER(ctypes.c_float), _P, _P), "forget": (_I, _P),
}  # fmt: skip


class Launcher:
    """What `launcher.cpp` offers. A step that ACL refuses is a TileError that names it."""

    def __init__(self, cann: Cann) -> None:
        self.cann, self.lock = cann, threading.Lock()
        self.loaded: dict[tuple[Path, str, int], int] = {}
        self.binaries: dict[tuple[Path, int], int] = {}
        self.left: dict[int, list[int]] = {}
        self.left_bytes: dict[int, int] = {}
        self.streams: dict[int, int] = {}
        library = _opened(launcher(cann))
        self.calls = {name: getattr(library, f"tile_eg_{name}") for name in _ARGUMENTS}
        for name, arguments in _ARGUMENTS.items():
            self.calls[name].argtypes = arguments
        self.said = library.tile_eg_said
        self.said.restype = ctypes.c_char_p
        self.step("init", "start ACL")

    def step(self, name: str, what: str, *arguments: Any) -> None:
        """One call; `what` says in messages what it was to do."""
        if code := self.calls[name](*arguments):
            raise self.refused(what, code)

    def refused(self, what: str, code: int) -> TileError:
        """The error for a step to which ACL gave a code."""
        said = (self.said() or b"").decode(errors="replace").strip()
        notes = tuple((line, None) for line in said.splitlines()[:6])
        help = "free what is held there (del, torch.npu.empty_cache()), or take smaller sizes" if code in OUT_OF_MEMORY else ""
        return TileError(f"{what}: ACL gives {code}: {meaning(code)}", help=help, notes=notes)

    def _told(self, name: str, what: str, kind: Any, *arguments: Any) -> Any:
        """What a step leaves where its last argument points."""
        found = kind()
        self.step(name, what, *arguments, ctypes.byref(found))
        return found.value

    def soc(self, device: int) -> str:
        """The name of a device's chip, "Ascend910B2"."""
        return str((self._told("soc", f"ask for the chip of device {device}", ctypes.c_char_p, device) or b"").decode())

    def devices(self) -> int:
        """How many devices there are."""
        return int(self._told("devices", "count the devices", ctypes.c_uint32))

    def function(self, file: Path, kernel: str, kind: str, device: int) -> int:
        """A kernel of an object, ready to be launched on a device; loaded once."""
        key = (file, kernel, device)
        with self.lock:
            if key not in self.loaded:
                binary = self._binary(file, kind, device)
                what = f"find kernel {kernel} in what was loaded"
                self.loaded[key] = self._told("function", what, _P, device, binary, kernel.encode())
            return self.loaded[key]

    def _binary(self, file: Path, kind: str, device: int) -> int:
        key = (file, device)
        if key not in self.binaries:
            data = file.read_bytes()
            magic = MAGIC["MIX" if kind.startswith("MIX") else kind]
            self.binaries[key] = self._told("load", f"load {file.name} on device {device}", _P, device, data, len(data), magic)
        return self.binaries[key]

    def sync_address(self, device: int) -> int:
        """Where the cores of a device meet, which a mixed kernel takes first."""
        return int(self._told("sync", "ask where the cores meet", ctypes.c_uint64, device))

    def malloc(self, device: int, bytes: int) -> int:
        """The address of so many bytes of the device's memory."""
        if self.left_bytes.get(device, 0) > MOST_LEFT:
            self.wait(device)
        return int(self._told("malloc", f"take {bytes} bytes on device {device}", _P, device, max(bytes, 1)))

    def leave(self, device: int, address: int, bytes: int) -> None:
        """Gives memory back once what was put on the default stream is done."""
        self.left.setdefault(device, []).append(address)
        self.left_bytes[device] = self.left_bytes.get(device, 0) + bytes

    def wait(self, device: int, stream: int | None = None) -> None:
        """Waits for a stream, the default one where none is named. TileError where a kernel failed on it."""
        if stream is not None:
            self.step("wait", "wait for the stream", device, stream)
            return
        left, bytes = self.left.pop(device, []), self.left_bytes.pop(device, 0)  # of kernels until now
        try:
            self.step("wait", "wait for the stream", device, None)
        except TileError:  # kernels may still use it
            self.left.setdefault(device, []).extend(left)
            self.left_bytes[device] = self.left_bytes.get(device, 0) + bytes
            raise
        for address in left:
            self.calls["free"](device, address)

    def stream(self, device: int) -> int:
        """A stream of the launcher's own, one for each device: there are not many, and none is given back."""
        with self.lock:
            if device not in self.streams:
                self.streams[device] = int(self._told("stream", "make a stream", _P, device))
            return self.streams[device]

    def event(self, device: int) -> int:
        return int(self._told("event", "make an event", _P, device))

    def elapsed(self, device: int, first: int, last: int) -> float:
        """Microseconds between two events that have happened."""
        found = ctypes.c_float()
        self.step("elapsed", "read the time between two events", device, ctypes.byref(found), first, last)
        return found.value * 1000


def _opened(file: Path) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(str(file))
    except OSError as error:
        help = "the driver's libraries belong to the driver package; source CANN's set_env.sh, which puts them on LD_LIBRARY_PATH"
        raise TileError(f"open the launcher: {error}", help=help) from None


@cache
def the_launcher() -> Launcher:
    """The launcher of this process. TileError without CANN, or where it cannot be built or opened."""
    return Launcher(find_cann())
