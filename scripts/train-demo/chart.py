"""The loss curve as an SVG, in both colour schemes."""

from __future__ import annotations

WIDTH, HEIGHT = 720, 360
LEFT, RIGHT, TOP, BOTTOM = 64, 150, 20, 48
STYLE = """<style>
text { font: 13px system-ui, sans-serif; fill: #333 }
.grid { stroke: #ddd } .held { stroke: #0b66c3; fill: none; stroke-width: 2 }
.train { stroke: #c2571a; fill: none; stroke-width: 2 }
.base { stroke: #777; stroke-dasharray: 6 4; stroke-width: 1.5 }
@media (prefers-color-scheme: dark) {
text { fill: #ddd } .grid { stroke: #444 } .held { stroke: #6fb3ff } .train { stroke: #ff9e64 }
.base { stroke: #aaa } }
</style>"""


def loss_curve(epochs: list[float], held: list[float], trained: list[float],
               baseline: float) -> str:
    """Bits per byte over epochs: held-out, training (with dropout), the 5-gram baseline."""
    values = [*held, *trained, baseline]
    low = int(min(values) * 10) / 10
    high = min(max(values), low + 0.9)
    right = epochs[-1]

    def x(epoch: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * epoch / right

    def y(value: float) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (high - min(value, high)) / (high - low)

    def line(points: list[float], kind: str) -> str:
        path = " ".join(f"{x(e):.1f},{y(v):.1f}" for e, v in zip(epochs, points))
        return f'<polyline class="{kind}" points="{path}"/>'

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
             f'aria-label="Bits per byte over epochs: held-out ends at {held[-1]:.3f}, '
             f'the 5-gram baseline is {baseline:.3f}">', STYLE]
    tick = low
    while tick <= high + 1e-9:
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(tick):.1f}" '
                     f'y2="{y(tick):.1f}"/><text x="{LEFT - 8}" y="{y(tick) + 4:.1f}" '
                     f'text-anchor="end">{tick:.1f}</text>')
        tick += 0.1
    step = max(1, round(right / 8))
    for epoch in range(0, int(right) + 1, step):
        parts.append(f'<text x="{x(epoch):.1f}" y="{HEIGHT - BOTTOM + 20}" '
                     f'text-anchor="middle">{epoch}</text>')
    parts.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 6}" '
                 'text-anchor="middle">epochs</text>')
    parts.append(f'<text transform="translate(16 {(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)" '
                 'text-anchor="middle">bits per byte</text>')
    parts.append(f'<line class="base" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(baseline):.1f}" '
                 f'y2="{y(baseline):.1f}"/>')
    parts += [line(trained, "train"), line(held, "held")]
    # Labels at the lines' ends, moved apart where they would touch.
    labels = sorted([(y(baseline), f"5-gram {baseline:.3f}"),
                     (y(held[-1]), f"held-out {held[-1]:.3f}"),
                     (y(trained[-1]), f"training {trained[-1]:.3f}")])
    place = 0.0
    for height, text in labels:
        place = max(height, place + 16)
        parts.append(f'<text x="{WIDTH - RIGHT + 8}" y="{place + 4:.1f}">{text}</text>')
    return "\n".join([*parts, "</svg>", ""])
