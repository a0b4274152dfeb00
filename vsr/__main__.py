"""`python -m vsr` is the command `vllm-sr`."""

from vsr.cli import main

main(prog_name="vllm-sr")
