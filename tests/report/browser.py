"""Headless Chromium that opens pages, and its own log of what they asked for and said."""

import json
from pathlib import Path

# A page that takes longer hangs.
SECONDS = 60

AXE = Path(__file__).parent / "axe" / "axe.min.js"


class Browser:
    """One Chromium for many pages.

    Args:
        chromium, driver: where they are.
    """

    def __init__(self, chromium, driver):
        from selenium.webdriver import Chrome, ChromeOptions
        from selenium.webdriver.chrome.service import Service

        options = ChromeOptions()
        options.binary_location = chromium
        for one in (
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--lang=en",
        ):
            options.add_argument(one)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = Chrome(options=options, service=Service(driver))
        self.driver.set_page_load_timeout(SECONDS)
        self.driver.set_script_timeout(SECONDS)

    def close(self):
        """End the browser that this opened."""
        self.driver.quit()

    def open(self, path, *, width=1280, scheme="light", scripts=True):
        """Open a file or an address at a width, in a colour scheme, with what was logged before
        forgotten."""
        self.resize(width=width, scheme=scheme)
        self.command("Emulation.setScriptExecutionDisabled", {"value": not scripts})
        self.log("browser")
        self.log("performance")
        self.driver.get(path if str(path).startswith("http") else Path(path).as_uri())

    def resize(self, *, width=1280, scheme="light", forced=False):
        """Show the page that is open at a width, in a colour scheme, or in a reader's own
        colours."""
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
        wanted = {"prefers-color-scheme": scheme, "prefers-reduced-motion": "reduce"}
        wanted |= {"forced-colors": "active" if forced else "none"}
        media = {"features": [{"name": name, "value": value} for name, value in wanted.items()]}
        self.command("Emulation.setDeviceMetricsOverride", size)
        self.command("Emulation.setEmulatedMedia", media)

    def command(self, name, arguments):
        """A command of Chromium's own protocol."""
        return self.driver.execute_cdp_cmd(name, arguments)

    def log(self, name):
        """What was logged since the log was last read."""
        return self.driver.get_log(name)

    def requests(self):
        """The addresses of all that was asked for since the page was opened, besides the page and
        its own data."""
        events = [json.loads(entry["message"])["message"] for entry in self.log("performance")]
        asked = [
            event["params"]["request"]["url"]
            for event in events
            if event["method"] == "Network.requestWillBeSent"
        ]
        return [
            address
            for address in asked
            if address != self.driver.current_url and not address.startswith("data:")
        ]

    def messages(self):
        """Everything that stands in the console."""
        return [entry["message"] for entry in self.log("browser")]

    def run(self, script, *arguments):
        """The value of a script in the page."""
        return self.driver.execute_script(script, *arguments)

    def serious(self):
        """What axe finds wrong in the page, and the first element of each."""
        self.run(AXE.read_text(encoding="utf-8"))
        found = self.driver.execute_async_script(
            "axe.run().then((result) => arguments[0](result.violations))"
        )
        return [
            (one["id"], one["nodes"][0]["html"])
            for one in found
            if one["impact"] in ("serious", "critical")
        ]

    def ready_after(self):
        """Milliseconds from the start of the page to the moment at which all of it can be used."""
        (moment,) = self.run(
            "return performance.getEntriesByName('wordsens-ready').map((entry) => entry.startTime)"
        )
        return moment

    def find(self, selector):
        """The elements of a selector."""
        return self.driver.find_elements("css selector", selector)

    def press(self, *keys):
        """Press keys where the focus is."""
        from selenium.webdriver import ActionChains

        ActionChains(self.driver).send_keys(*keys).perform()

    def point_at(self, element):
        """Move the pointer over an element."""
        from selenium.webdriver import ActionChains

        self.run("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", element)
        ActionChains(self.driver).move_to_element(element).perform()
