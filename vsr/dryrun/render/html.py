"""A run as one HTML page that needs nothing else."""

from html import escape

from vsr.dryrun.record import Record
from vsr.dryrun.render.svg import render_svg
from vsr.dryrun.render.text import render_text

_PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{title}</title>
<style>
body {{ font: 15px system-ui, sans-serif; margin: 2rem; color: #222; max-width: 1100px }}
pre {{ font: 13px ui-monospace, monospace; background: #f6f7f9; padding: 1rem; overflow-x: auto }}
svg {{ max-width: 100%; height: auto; border: 1px solid #ddd }}
</style>
</head>
<body>
<h1>{title}</h1>
{picture}
<h2>Report</h2>
<pre>{report}</pre>
<h2>Answer</h2>
<pre>{body}</pre>
</body>
</html>
"""


def render_html(record: Record) -> str:
    """Return the page: the picture, the report, the answer's body."""
    return _PAGE.format(
        title=escape(f"Dry run of {record.graph}, seed {record.seed}"),
        picture=render_svg(record).rstrip(),
        report=escape(render_text(record).rstrip()),
        body=escape(record.answer.body),
    )
