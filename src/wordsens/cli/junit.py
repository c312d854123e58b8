"""Requirements as JUnit XML, for a CI system."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree

_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write_junit(path: str, suite: str, classname: str, cases: Mapping[str, Sequence[str]]) -> None:
    """One test case a requirement, with what fails it."""
    failed = sum(map(bool, cases.values()))
    written = ElementTree.Element("testsuite", name=_clean(suite), tests=str(len(cases)), failures=str(failed))
    for name, failures in cases.items():
        case = ElementTree.SubElement(written, "testcase", classname=classname, name=_clean(name))
        if failures:
            ElementTree.SubElement(case, "failure", message=_clean("; ".join(failures)))
    ElementTree.ElementTree(written).write(Path(path).expanduser(), encoding="utf-8", xml_declaration=True)


def _clean(text: str) -> str:
    """The text without characters that XML cannot hold."""
    return _NOT_IN_XML.sub("", text)
