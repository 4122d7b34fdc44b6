"""The overview as a page, in a browser."""

from __future__ import annotations

import pytest

from browser import Browser
from portfolio import ENVIRONMENT, Portfolio, fill

WHITE, DARK = (0xFF, 0xFF, 0xFF), (0x14, 0x18, 0x1F)  # the grounds of base.html


@pytest.fixture
def browser(needs_tool, tmp_path):
    return Browser(needs_tool("chromium"), tmp_path)


@pytest.fixture
def page(cli, key_records):
    fill(Portfolio(cli.home / "state", key_records[2048].partition("p=")[2]), 100)
    environment = ENVIRONMENT | {"DKIMCTL_STATE_DIR": str(cli.home / "state")}
    done = cli("overview", "--html", "overview.html", env=environment)
    assert (done.status, done.out) == (1, ""), "some keys are urgent"
    assert "dkimctl: wrote overview.html" in done.err
    return cli.home / "overview.html"


def test_the_page_is_shown_light_and_dark_as_the_system_prefers(browser, page):
    light, dark = (browser.look(page, dark=dark) for dark in (False, True))
    assert (light.background, dark.background) == (WHITE, DARK)
    assert (light.complaints, dark.complaints) == ([], [])


def test_the_browser_complains_where_a_page_has_a_script(browser, page):
    page.write_text(page.read_text().replace("</body>", "<script>1</script></body>"))
    [complaint] = browser.look(page).complaints
    assert "Content Security Policy" in complaint


def test_the_page_can_be_printed(browser, page, tmp_path):
    browser.print_pdf(page, tmp_path / "page.pdf")
    assert (tmp_path / "page.pdf").read_bytes().startswith(b"%PDF")
