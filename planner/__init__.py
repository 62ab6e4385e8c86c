"""phaseplan: which phase of speculative decoding runs on which hardware, under a power budget and a service target."""

__version__ = "0.1.0"
