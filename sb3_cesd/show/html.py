"""Elements of a self-contained HTML page."""

import base64
import io
from collections.abc import Iterable, Sequence
from html import escape

import numpy as np
from matplotlib.figure import Figure
from PIL import Image

from sb3_cesd.show.video import even_columns

#: Content security policy: load nothing, run nothing
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
STYLE = """
:root { color-scheme: light dark; --line: #8886; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1400px; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.2rem; margin-top: 2rem; }
img { max-width: 100%; height: auto; }
.figure img { background: white; }
table { margin: .6rem 0; border-collapse: collapse; display: block; overflow-x: auto; }
th, td { border-bottom: 1px solid var(--line); padding: .2rem .7rem; text-align: right; white-space: nowrap; }
th { white-space: normal; vertical-align: bottom; }
td.text, th.text { text-align: left; }
td.text:last-child { white-space: normal; min-width: 9rem; }
pre { border: 1px solid var(--line); padding: .6rem; overflow-x: auto; }
.films { display: grid; grid-template-columns: repeat(var(--columns), minmax(0, 1fr)); gap: .6rem; }
@media (max-width: 700px) { .films { grid-template-columns: repeat(2, minmax(0, 1fr)); } }
.films figure { margin: 0; border-top: 4px solid; padding-top: .3rem; } .films img { width: 100%; }
figcaption { font-size: .85rem; }
.models { display: grid; gap: 1.5rem; } .models > section { min-width: 0; }
@media (min-width: 900px) { .models { grid-auto-flow: column; grid-auto-columns: minmax(0, 1fr); } }
"""
#: Quality of animated images, from 0 to 100
QUALITY = 60
#: Minimum number of columns, which limits the width of a few films
MIN_COLUMNS = 4


def document(title: str, body: str, mark: str = "") -> str:
    """
    Return a page with some content.

    :param title: title of the page, plain text
    :param body: HTML
    :param mark: text by which a program recognises the page, which is not shown
    :return: HTML of the whole page, in UTF-8
    """
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{escape(title)}</title>\n'
        f'<meta name="sb3_cesd" content="{escape(mark)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">\n'
        f"<style>{STYLE}</style>\n</head>\n<body>\n<h1>{escape(title)}</h1>\n{body}\n</body>\n</html>\n"
    )


def figure_image(figure: Figure, description: str) -> str:
    """
    Embed a figure of Matplotlib.

    :param figure: the figure
    :param description: what it shows, plain text
    :return: HTML
    """
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=100)
    return f'<div class="figure">{_image("png", buffer.getvalue(), description)}</div>'


def moving_image(frames: Sequence[np.ndarray], fps: float, description: str) -> str:
    """
    Embed an animated WebP image.

    :param frames: images, each of shape ``(height, width, 3)``
    :param fps: images per second
    :param description: what it shows, plain text
    :return: HTML
    """
    buffer = io.BytesIO()
    first, *others = (Image.fromarray(frame) for frame in frames)
    options = {"save_all": True, "append_images": others, "duration": round(1000 / fps), "loop": 0, "quality": QUALITY}
    first.save(buffer, format="WEBP", **options)
    return _image("webp", buffer.getvalue(), description)


def films(frames: Sequence[Sequence[np.ndarray]], captions: Sequence[str], colors: Sequence[str], fps: float) -> str:
    """
    Embed films of skills side by side.

    :param frames: images of each skill; the last one is repeated if there are fewer, so that all films restart together
    :param captions: text below each film, plain text
    :param colors: color of each skill
    :param fps: images per second
    :return: HTML
    """
    longest = max(map(len, frames))
    cells = []
    for of_skill, caption, color in zip(frames, captions, colors, strict=True):
        padded = [*of_skill, *[of_skill[-1]] * (longest - len(of_skill))]
        image = moving_image(padded, fps, caption)
        cells.append(f'<figure style="border-color: {color}">{image}<figcaption>{escape(caption)}</figcaption></figure>')
    return f'<div class="films" style="--columns: {max(even_columns(len(cells)), MIN_COLUMNS)}">{"".join(cells)}</div>'


def table(header: Sequence[str], rows: Iterable[Sequence[str]], text_columns: Sequence[int] = (0,)) -> str:
    """
    Return a table.

    :param header: names of the columns, plain text
    :param rows: cells, plain text
    :param text_columns: left-aligned columns
    :return: HTML
    """

    def row(cells: Sequence[str], tag: str) -> str:
        kinds = [' class="text"' if column in text_columns else "" for column in range(len(cells))]
        return f"<tr>{''.join(f'<{tag}{kind}>{escape(text)}</{tag}>' for text, kind in zip(cells, kinds, strict=True))}</tr>"

    return f"<table><thead>{row(header, 'th')}</thead><tbody>{''.join(row(cells, 'td') for cells in rows)}</tbody></table>"


def _image(kind: str, content: bytes, description: str) -> str:
    data = base64.b64encode(content).decode()
    return f'<img src="data:image/{kind};base64,{data}" alt="{escape(description)}">'
