"""The pictures of the documentation that no command of wordsens leaves: python -m
benchmarks.pictures NAME FOLDER.

NAME is app (three of the page), check (MiniLM's cosines), limit (where d follows n), or paper (the
figures of the paper's quick scale, and the report of them); app and paper take pictures with
Chromium.
"""

import json
import math
import shutil
import subprocess
import sys
import warnings
from contextlib import contextmanager
from pathlib import Path

import wordsens as ws
from wordsens.theory.conditions import PredictionWarning

LAWS = {
    "d = 4 n": lambda n: 4 * n,
    "d = n": lambda n: n,
    "d = n / 4": lambda n: n / 4,
    "d = 2 sqrt(n) log n": lambda n: 2 * math.sqrt(n) * math.log(n),
    "d = sqrt(n) log(n) / 2": lambda n: math.sqrt(n) * math.log(n) / 2,
    "d = log(n)³": lambda n: math.log(n) ** 3,
}
LENGTHS = [20 * 4**k for k in range(7)]
WORDSENS = [sys.executable, "-m", "wordsens"]


@contextmanager
def chromium(height: int, scheme: str = "light"):
    """A headless browser, 1280 pixels wide."""
    from selenium.webdriver import Chrome, ChromeOptions
    from selenium.webdriver.chrome.service import Service

    options = ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        "--lang=en",
    ):
        options.add_argument(argument)
    driver = Chrome(options=options, service=Service(shutil.which("chromedriver")))
    size = {"width": 1280, "height": height, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    wanted = {"prefers-color-scheme": scheme, "prefers-reduced-motion": "reduce"}
    media = {"features": [{"name": name, "value": value} for name, value in wanted.items()]}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    driver.implicitly_wait(60)
    try:
        yield driver
    finally:
        driver.quit()


def app(folder: Path) -> None:
    """The first screen, the second, and the lines of attention on it."""
    server = subprocess.Popen(
        [*WORDSENS, "app", "--json", "--port", "0", "--quiet"],
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )
    try:
        assert server.stdout is not None
        address = json.loads(server.stdout.readline())["address"]
        with chromium(1000) as driver:
            driver.get(address)
            driver.find_element("css selector", "#main svg")
            driver.save_screenshot(str(folder / "app-two-texts.png"))
        for height in (700, 1600):
            with chromium(height) as driver:
                driver.get(f"{address.rstrip('/')}/why")
                lines = driver.find_element("css selector", ".lines")
                if height == 700:
                    driver.save_screenshot(str(folder / "app-text.png"))
                else:
                    lines.screenshot(str(folder / "app-lines.png"))
    finally:
        server.terminate()
        server.wait()


def check(folder: Path) -> None:
    """The cosines of MiniLM, with the threshold."""
    ws.check("minilm").plot().savefig(folder / "check.png", dpi=130)


def limit(folder: Path) -> None:
    """Predicted S of softmax attention, for a typical word of independent rows, against n under
    laws of d."""
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", PredictionWarning
        )  # most sizes are beyond those that were measured
        points = [
            (name, n, float(ws.theory.raf_sensitivity(n, round(law(n)), words=1)))
            for name, law in LAWS.items()
            for n in LENGTHS
        ]
    print("| d |", *(f"n = {n} |" for n in LENGTHS))
    print("| --- |" + " ---: |" * len(LENGTHS))
    for law in LAWS:
        print(f"| {law} |", *(f"{value:.2f} |" for name, _, value in points if name == law))
    columns = dict(zip(("law", "words n", "predicted S"), zip(*points, strict=True), strict=True))
    title = "Predicted S of softmax attention, by how d grows with n"
    options = {"x": "words n", "y": "predicted S", "colour": "law", "log": "xy", "title": title}
    figure = ws.plotting.lines(columns, **options)
    figure.savefig(folder / "limit.png", dpi=130)


def paper(folder: Path) -> None:
    """The paper's figure by its quick scale; the first screen of the report, and its first figure
    on a dark page."""
    command = [*WORDSENS, "paper", "sensitivity", "--scale", "quick", "--out", str(folder)]
    subprocess.run(command, check=True)
    subprocess.run([*WORDSENS, "report", str(folder)], check=True, stdout=subprocess.DEVNULL)
    address = (folder.absolute() / "report.html").as_uri()
    with chromium(720) as driver:
        driver.get(address)
        driver.save_screenshot(str(folder / "report-findings.png"))
    with chromium(620, "dark") as driver:
        driver.get(address)
        driver.execute_script("document.querySelector('figure').scrollIntoView()")
        driver.save_screenshot(str(folder / "report-figures.png"))


if __name__ == "__main__":
    {"app": app, "check": check, "limit": limit, "paper": paper}[sys.argv[1]](Path(sys.argv[2]))
