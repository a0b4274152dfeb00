"""What a large document costs: bytes to snapshot, CPU seconds per stage.

`python -m bench.document [--times 5]` prints medians for 1,000 models and 10,000 client keys.
"""

import argparse
import time
from statistics import median

from vsr.config.compile.snapshot import compile_snapshot
from vsr.config.load import load
from vsr.config.report import Report
from vsr.config.serving import Gateway, check_serving
from vsr.config.source import collector_at_rest
from vsr.config.structure import structure
from vsr.config.validate.document import validate

_MODELS = 1_000
_KEYS = 10_000


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.document", description=__doc__)
    parser.add_argument("--times", type=int, default=5)
    times = parser.parse_args().times
    data = large_document().encode()
    with collector_at_rest():
        runs = [_run(data) for _ in range(times)]
    print(
        f"{_MODELS:,} models, {_KEYS:,} client keys, {len(data) / 1e6:.1f} MB; medians of {times}"
    )
    for stage in runs[0]:
        print(f"{stage:10} {median(run[stage] for run in runs) * 1000:7.0f} ms")
    total = median(sum(run.values()) for run in runs)
    print(f"{'together':10} {total * 1000:7.0f} ms  (must: at most 1,000)")


def large_document() -> str:
    """Return a document of a thousand models, as many decisions, and ten thousand client keys."""
    lines = ["version: v0.3", "listeners:", "  - name: public", "    address: 127.0.0.1"]
    lines += ["    port: 8899", "    api_keys:"]
    lines += [f"      - key-{at:05}-0123456789abcdef" for at in range(_KEYS)]
    lines += ["providers:", "  defaults: {model: model-0}", "  models:"]
    for at in range(_MODELS):
        lines += [
            f"    - name: model-{at}",
            f"      provider_model_id: vendor/model-{at}",
            "      pricing: {prompt_per_1m: 0.5, completion_per_1m: 1.5}",
            "      reliability: {connect_timeout: 2s, total_timeout: 60s, idle_timeout: 20s}",
            "      backend_refs:",
            f'        - {{name: a, endpoint: "10.{at // 256}.{at % 256}.1:8000", weight: 2}}',
            f'        - {{name: b, endpoint: "10.{at // 256}.{at % 256}.2:8000"}}',
        ]
    lines += ["routing:", "  modelCards:"]
    lines += [f"    - {{name: model-{at}, context_window_size: 32768}}" for at in range(_MODELS)]
    lines += ["  signals:", "    keywords:"]
    for at in range(_MODELS):
        lines.append(f"      - {{name: word-{at}, operator: OR, keywords: [w{at}, x{at}]}}")
    lines.append("  decisions:")
    for at in range(_MODELS):
        lines += [
            f"    - name: decision-{at}",
            f"      rules: {{type: keyword, name: word-{at}}}",
            f"      modelRefs: [{{model: model-{at}}}]",
        ]
    return "\n".join(lines) + "\n"


def _run(data: bytes) -> dict[str, float]:
    """Return the CPU seconds of each stage."""
    report = Report("bench.yaml")
    started = time.process_time()
    loaded = load(data, {}, report)
    if loaded is None:
        raise SystemExit(str(report.rejection()))
    report.lines = loaded.lines
    read = time.process_time()
    document = structure(loaded.values, report)
    structured = time.process_time()
    validate(document, report)
    validated = time.process_time()
    check_serving(document, {}, report, gateway=Gateway.STANDALONE)
    checked = time.process_time()
    if report.has_problems():
        raise SystemExit(str(report.rejection()))
    compile_snapshot(document, sha256=loaded.sha256, environ={}, files={})
    compiled = time.process_time()
    return {
        "load": read - started,
        "structure": structured - read,
        "validate": validated - structured,
        "serving": checked - validated,
        "compile": compiled - checked,
    }


if __name__ == "__main__":
    main()
