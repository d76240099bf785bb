"""What ACL's error codes mean, in words (acl_base_rt.h, error_codes/rt_error_codes.h of CANN)."""

from __future__ import annotations

CODES = {
    100000: "a parameter is invalid",
    100001: "ACL is not initialised",
    100003: "a file is invalid",
    100026: "the data type is not supported",
    100029: "the kernel is not in the binary",
    107000: "a parameter is invalid",
    107001: "there is no device of this number",
    107002: "the thread has no device",
    107003: "the stream is not of the current device, or was destroyed",
    107005: "the stream is not in the model",
    107008: "an address is not aligned",
    107015: "no callback is registered to the stream",
    107016: "the memory is of a wrong kind",
    107017: "a handle (stream, event or kernel) is no longer valid",
    107019: "waiting took too long",
    107020: "a task took too long",
    107022: "the tasks of the device are aborted",
    107023: "the stream is aborted",
    107025: "streams that are captured were not joined",
    107027: "the stream is being captured",
    107030: "the stream is being captured, and this cannot be",
    107042: "the kernel is not in the binary",
    107044: "the kernel's handle is not valid",
    200000: "there is not enough memory",
    200001: "this version of ACL does not offer it",
    200002: "the device is invalid",
    200005: "a handle is invalid",
    200006: "this chip does not offer it",
    207000: "this chip, or its driver, does not offer it",
    207001: "the device has not enough free memory",
    207003: "a cube core computed a number that overflows",
    207004: "there is no device",
    207005: "a resource cannot be had",
    207006: "this user may not use the device",
    207007: "there are no more events",
    207008: "there are no more streams",
    207016: "a vector core computed a number that overflows",
    207018: "the device has not enough free memory",
    207020: "the driver did not answer in time",
    500000: "ACL failed inside",
    500003: "the runtime failed",
    500004: "the driver failed",
    507000: "the runtime failed inside",
    507002: "the stream holds too many tasks",
    507008: "the chip is not the one that the driver expects",
    507010: "the device does not answer",
    507011: "a task of the stream failed",
    507014: "the kernel did not end in time on a cube core",
    507015: "the kernel failed on a cube core (an address out of bounds, or an instruction that is not allowed)",
    507016: "the kernel trapped on a cube core",
    507027: "the kernel is not in the binary",
    507028: "a kernel of this name is loaded already",
    507032: "too many kernels are loaded",
    507034: "the kernel did not end in time on a vector core",
    507035: "the kernel failed on a vector core (an address out of bounds, or an instruction that is not allowed)",
    507036: "the kernel trapped on a vector core",
    507046: "the stream did not end in time",
    507053: "the device's memory is damaged",
    507899: "the driver failed inside",
}
_KINDS = {
    1: "a call was not as ACL wants it",
    2: "the device lacks something",
    3: "a limit is exceeded",
    5: "something failed below ACL",
}
"""By the first digit of a code."""
OUT_OF_MEMORY = frozenset({200000, 207001, 207005, 207018})


def meaning(code: int) -> str:
    """What a code means; what kind it is, where nothing more is known of it."""
    return CODES.get(code) or _KINDS.get(code // 100000, "nothing is known of this code")
