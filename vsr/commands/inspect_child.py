"""The process that reads documents for the management API; see `config.inspection`."""

import gc

from vsr.config.inspection import run_child

if __name__ == "__main__":
    gc.disable()  # it ends before anything is worth collecting
    run_child()
