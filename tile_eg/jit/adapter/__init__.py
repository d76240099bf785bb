"""TileLang's `jit.adapter`, of which nothing is here: no library is built and loaded."""

from tile_eg.jit.refused import names_of

WAY = "call the kernel: it runs in the simulator; kernel.get_kernel_source() and get_host_source() are the texts for CANN"
__getattr__ = names_of("tile_eg.jit.adapter", {}, WAY)
