"""The theory as one PDF that can be cited: `python docs/theory_pdf.py OUT.pdf`; `make theory-pdf` does it."""

import shutil
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import wordsens
from wordsens.report.pdf import print_file

DOCS = Path(__file__).parent
CHAPTERS = (
    "notation",
    "theory/theorems",
    "theory/attention",
    "theory/certificates-attention",
    "theory/certificates-dense",
    "theory/on-demand-gaussians",
    "theory/predictions",
    "theory/sharp",
    "theory/generalization",
    "theory/control",
)
STYLE = """
@page { size: A4; margin: 22mm 20mm; @bottom-center { content: counter(page); font: 8.5pt serif; } }
body { font: 10pt/1.42 "Source Serif 4", "DejaVu Serif", serif; color: #111; }
.sphinxsidebar, .related, .footer, .headerlink { display: none; }
.body, .document, .bodywrapper { margin: 0; padding: 0; max-width: none; }
h1 { font-size: 19pt; } h2 { font-size: 15pt; } h3 { font-size: 12pt; } h4 { font-size: 10.5pt; }
.toctree-wrapper > * { break-before: page; }
h1, h2, h3, h4 { break-after: avoid; line-height: 1.2; }
pre, code { font: 8pt/1.35 "DejaVu Sans Mono", monospace; } pre { white-space: pre-wrap; break-inside: avoid; }
table { width: 100%; border-collapse: collapse; font-size: 8.5pt; margin: 6pt 0; } tr, img { break-inside: avoid; }
td, th { border: .4pt solid #999; padding: 2pt 5pt; vertical-align: top; text-align: left; }
img { max-width: 100%; } a { color: inherit; text-decoration: none; }
mjx-container[display="true"] { break-inside: avoid; }
"""


def heading(chapter: str) -> str:
    """A chapter's own title."""
    return (DOCS / f"{chapter}.md").read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")


def title() -> str:
    """The first page: what this is, of which version, and how to cite it."""
    today = datetime.now(UTC).date()
    contents = "\n".join(f"{at}. [{heading(chapter)}]({chapter}.md)" for at, chapter in enumerate(CHAPTERS, 1))
    return f"""# Word sensitivity: theorems, certificates, predictions

The wordsens authors · version {wordsens.__version__} · {today}

The mathematics behind wordsens {wordsens.__version__}: the five theorems of Bombari and Mondelli (ICML 2024), as far as
they are known to us, what this project proves beside them, and what it predicts. A statement is called proved,
certified, predicted or conjecture; figures that were measured name the command that measures them.

{contents}

```text
@techreport{{wordsens-theory,
  author      = {{{{The wordsens authors}}}},
  title       = {{Word sensitivity: theorems, certificates, predictions}},
  institution = {{wordsens}},
  number      = {{{wordsens.__version__}}},
  year        = {{{today.year}}},
}}
```

```{{toctree}}
:numbered: 2
:maxdepth: 2

{chr(10).join(CHAPTERS)}
```
"""


def one_page(source: Path, built: Path) -> Path:
    """All chapters as one page of HTML."""
    (source / "theory").mkdir(parents=True)
    for chapter in CHAPTERS:
        shutil.copyfile(DOCS / f"{chapter}.md", source / f"{chapter}.md")
    shutil.copytree(DOCS / "images", source / "images")
    (source / "index.md").write_text(title(), encoding="utf-8")
    (source / "_static").mkdir()
    (source / "_static" / "print.css").write_text(STYLE, encoding="utf-8")
    settings = {
        "html_theme": "basic",
        "html_title": f"Word sensitivity: theorems, certificates, predictions (wordsens {wordsens.__version__})",
        "html_static_path": str(source / "_static"),
        "html_css_files": "print.css",
        "suppress_warnings": "myst.xref_missing",  # what links to pages of the site stays as text
    }
    command = [sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning", "-b", "singlehtml", "-c", str(DOCS)]
    command += [part for name, value in settings.items() for part in ("-D", f"{name}={value}")]
    subprocess.run([*command, str(source), str(built)], check=True)
    return built / "index.html"


def main(out: Path) -> None:
    """Write the PDF."""
    with tempfile.TemporaryDirectory() as folder:
        page = one_page(Path(folder) / "source", Path(folder) / "built")
        # The formulas are set by a script, which takes its time.
        print_file(page, out, "--virtual-time-budget=60000", "--generate-pdf-document-outline")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
