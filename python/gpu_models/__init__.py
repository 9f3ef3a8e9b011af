"""`./gpu-models`: every model of the catalogue, once, on the GPU of this machine. `__main__.py` says how."""
