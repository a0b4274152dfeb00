"""The flags of commands that ask a management API."""

import click
import pytest

from vsr.commands.api_flags import Target, read_api

CONTEXT, PARAMETER = click.Context(click.Command("x")), click.Option(["--x"])


def test_url_of_the_api_has_a_default(monkeypatch: pytest.MonkeyPatch) -> None:
    """Moved by the launcher's offset."""
    monkeypatch.delenv("VLLM_SR_PORT_OFFSET", raising=False)
    assert read_api(CONTEXT, PARAMETER, None) == Target("http://127.0.0.1:8080")
    monkeypatch.setenv("VLLM_SR_PORT_OFFSET", "100")
    assert read_api(CONTEXT, PARAMETER, None).url == "http://127.0.0.1:8180"
    assert read_api(CONTEXT, PARAMETER, "https://router:9000/").url == "https://router:9000"


@pytest.mark.parametrize(
    "url",
    [
        "127.0.0.1:8080",
        "ftp://x",
        "http://",
        "http://u:p@x",
        "http://x:0",
        "http://x:70000",
        "http://x?y",
        "http://x#y",
    ],
)
def test_url_must_be_one(url: str) -> None:
    """Without credentials: processes are listed with their flags."""
    with pytest.raises(click.BadParameter):
        read_api(CONTEXT, PARAMETER, url)
