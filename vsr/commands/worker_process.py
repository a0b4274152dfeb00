"""A process that serves for a supervisor; see `vsr.workers`."""

import gc
import sys

if __name__ == "__main__":
    gc.disable()  # see `router_main`
    from vsr.compose.worker import run_worker

    run_worker(int(sys.argv[1]), int(sys.argv[2]))
