"""The report in headless Chromium with the network off: nothing fails, every chart is drawn, hovering tells, text fits.

Skipped where there is no Chromium or no playwright; .ci/run installs both.
"""

import shutil
from pathlib import Path

import pytest

from planner.cli import run

ROOT = Path(__file__).resolve().parents[1]
PAGES = {path.parent.name: path for path in sorted((ROOT / "reports").glob("*/report.html"))}
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--disable-quic"),
)
SMALLEST_PX = 9.0
"""No text on the screen is smaller, whatever the width."""

LOOK = """(smallest) => {
    const small = [], outside = [];
    for (const text of document.querySelectorAll("figure svg text, p, td, th, li, figcaption, h1, h2, h3")) {
        const box = text.getBoundingClientRect();
        if (!box.width) continue;
        const matrix = text.ownerSVGElement ? text.getScreenCTM() : { a: 1, b: 0 };
        const size = parseFloat(getComputedStyle(text).fontSize) * Math.hypot(matrix.a, matrix.b);
        if (size < smallest) small.push(text.textContent + " " + size);
        if (text.ownerSVGElement && (box.left < 0 || box.right > innerWidth)) outside.push(text.textContent);
    }
    return [small, outside];
}"""

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install '.[browser]'")


def chromium():
    return next(
        (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
    )


pytestmark = pytest.mark.skipif(chromium() is None, reason="there is no Chromium on this machine")


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=chromium(), args=list(FLAGS))
        yield started
        started.close()


@pytest.fixture
def opened(browser):
    """A function that opens a report or a page offline; in the end nothing may have failed or asked for the network."""
    contexts, failures = [], []

    def open_page(name, width=1280, scheme="light", **more):
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True, **more
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: failures.append(message.text))
        page.on("pageerror", lambda error: failures.append(str(error)))
        page.on(
            "request", lambda request: failures.append(request.url) if not request.url.startswith("file:") else None
        )
        page.goto(PAGES.get(name, name).as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert failures == []


def test_there_are_reports_to_open():
    assert {"reference", "reference-slow-prefill", "reference-high-energy-prefill"} < set(PAGES)


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("name", PAGES)
def test_every_chart_is_drawn(opened, name, width):
    page = opened(name, width)
    figures = page.locator("figure")
    assert figures.count() >= 10
    for figure in figures.all():
        drawing = figure.locator("svg:visible")
        assert drawing.count() == 1, "one of the two drawings is shown"
        box = drawing.bounding_box()
        assert box["width"] > 200
        assert box["height"] > 50
        assert drawing.locator("path").count() > 2
        marks = drawing.locator("[role=graphics-symbol][aria-label*='\\a ']")
        assert marks.count() >= 1
        assert marks.first.bounding_box()["width"] > 0


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("name", PAGES)
def test_text_is_readable_and_fits(opened, name, width):
    """The page does not scroll sideways, no text is tiny after scaling, and no text of a chart leaves the window."""
    page = opened(name, width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    small, outside = page.evaluate(LOOK, SMALLEST_PX)
    assert small == []
    assert outside == []


@pytest.mark.parametrize("name", ["reference", "llama-70b-chat"])
def test_hovering_tells_what_a_point_is(opened, name):
    page = opened(name)
    tip = page.locator("#tip")
    assert not tip.is_visible()
    for figure in page.locator("figure").all():
        mark = figure.locator(".wide [role=graphics-symbol][aria-label*='\\a ']").last
        mark.scroll_into_view_if_needed()
        box = mark.bounding_box()
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        assert tip.is_visible()
        told = tip.inner_text().split("\n\n")
        assert mark.get_attribute("aria-label") in told
        assert "near" in (mark.get_attribute("class") or "")
        inside = tip.bounding_box()
        assert inside["x"] >= 0
        assert inside["x"] + inside["width"] <= 1280
        page.mouse.move(2, 2)
        assert not tip.is_visible()


def test_touching_tells_too(opened):
    page = opened("reference", 390, has_touch=True)
    mark = page.locator("#front .narrow [role=graphics-symbol][aria-label*='\\a ']").last
    mark.scroll_into_view_if_needed()
    box = mark.bounding_box()
    page.touchscreen.tap(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert mark.get_attribute("aria-label") in page.locator("#tip").inner_text()


def luminance(colour):
    parts = [int(part) / 255 for part in colour[4:-1].split(",")[:3]]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_in_light_and_dark(opened, scheme):
    """Contrast of at least 4.5 for text, of the page and of the figures, and of 2 for what is drawn."""
    page = opened("reference", scheme=scheme)
    paper = luminance(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert (paper > 0.9) == (scheme == "light")

    def contrasts(selector, style):
        script = f"all => [...new Set(all.map((one) => getComputedStyle(one).{style}))]"
        found = page.eval_on_selector_all(selector, script)
        lights = {colour: luminance(colour) for colour in found if colour.startswith("rgb(")}
        return {c: (max(light, paper) + 0.05) / (min(light, paper) + 0.05) for c, light in lights.items()}

    for selector, style in (("p, td, th, li, h1, h2, h3, figcaption, nav a", "color"), ("figure svg text", "fill")):
        found = contrasts(selector, style)
        assert found
        assert {colour: ratio for colour, ratio in found.items() if ratio < 4.5} == {}
    drawn = contrasts(".wide path[aria-label*='\\a ']", "fill")
    assert len(drawn) > 3
    assert {colour: ratio for colour, ratio in drawn.items() if ratio < 2.0} == {}


def test_it_prints(opened):
    """Every section is on paper, tooltips are not, and a page holds more than one figure."""
    page = opened("reference")
    page.mouse.move(640, 700)
    page.emulate_media(media="print")
    assert not page.locator("#tip").is_visible()
    assert not page.locator("nav").is_visible()
    for heading in page.locator("h2").all():
        assert heading.is_visible()
    pdf = page.pdf(format="A4", print_background=True)
    assert pdf.startswith(b"%PDF")
    assert 4 <= pdf.count(b"/Type /Page\n") + pdf.count(b"/Type /Page>") + pdf.count(b"/Type /Page ") <= 14


# --------------------------------------------------------------------------------------- two plans side by side


@pytest.fixture(scope="module")
def comparison(tmp_path_factory):
    """A page of a review of two plans that are under stress."""
    folder = tmp_path_factory.mktemp("review")
    for name, kw in (("before", "50"), ("after", "60")):
        assert run(["--budget-kw", kw, "--min-tps", "100", "--output", str(folder / name)]) == 0
    plans = [str(folder / name / "plan.json") for name in ("before", "after")]
    assert run(["review", *plans, "--output", str(folder)]) == 0
    return folder / "review.html"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
def test_a_comparison_is_drawn_and_fits(opened, comparison, width, scheme):
    page = opened(comparison, width, scheme)
    drawings = page.locator("figure svg:visible")
    assert drawings.count() == page.locator("figure").count() == 3
    for drawing in drawings.all():
        box = drawing.bounding_box()
        assert 200 < box["width"] <= width
        assert (
            drawing.locator("path[aria-label*='A: ']").count() == drawing.locator("path[aria-label*='B: ']").count() > 0
        )
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(LOOK, SMALLEST_PX) == [[], []]


def test_hovering_over_a_comparison_tells_whose_a_bar_is(opened, comparison):
    page = opened(comparison)
    bar = page.locator("#power .wide path[aria-label*='B: ']").first
    bar.scroll_into_view_if_needed()
    box = bar.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert bar.get_attribute("aria-label") in page.locator("#tip").inner_text()
