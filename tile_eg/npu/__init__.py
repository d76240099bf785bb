"""From the emitted text to a launch on an NPU: CANN is found, compiles the text once, and ACL launches it.

Nothing here is imported before a call has NPU tensors, or a command asks for it. What touches the device is `launcher.cpp`.
"""
