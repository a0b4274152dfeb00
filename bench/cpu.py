"""CPU time, waiting time and memory of a process and its descendants, read from the kernel."""

import os
import time
from pathlib import Path

_CPUCLOCK_SCHED = 2  # linux/posix-timers.h: the clock counts the scheduler's nanoseconds


def family(pid: int) -> list[int]:
    """Return `pid` and all its living descendants."""
    members = [pid]
    for member in members:  # grows while it is walked
        for children in Path(f"/proc/{member}/task").glob("*/children"):
            try:
                members.extend(int(child) for child in children.read_text().split())
            except OSError:  # the task has ended meanwhile
                continue
    return members


def cpu_ns(pid: int) -> int:
    """Return the CPU time used so far by `pid` and its descendants.

    `/proc/PID/stat` counts in ticks of 10 ms, too coarse for a few hundred stream chunks. The
    process CPU clock is the same account in nanoseconds.
    Source: clock_getcpuclockid(3) and the kernel's MAKE_PROCESS_CPUCLOCK.
    """
    total = 0
    for member in family(pid):
        try:
            total += time.clock_gettime_ns((~member << 3) | _CPUCLOCK_SCHED)
        except OSError:  # ended meanwhile
            continue
    return total


def waiting_ns(pid: int) -> int:
    """Return how long the threads of `pid` and its descendants were ready but not running.

    Source: kernel documentation, "Scheduler statistics", /proc/PID/schedstat.
    """
    total = 0
    for member in family(pid):
        for statistics in Path(f"/proc/{member}/task").glob("*/schedstat"):
            try:
                total += int(statistics.read_text().split()[1])
            except OSError:  # ended meanwhile
                continue
    return total


def rss_bytes(pid: int) -> int:
    """Return the resident memory of `pid` and its descendants (shared pages count each time)."""
    page_bytes = os.sysconf("SC_PAGE_SIZE")
    total = 0
    for member in family(pid):
        try:
            total += int(Path(f"/proc/{member}/statm").read_text().split()[1]) * page_bytes
        except OSError:  # ended meanwhile
            continue
    return total
