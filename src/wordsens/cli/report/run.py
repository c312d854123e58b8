"""The work of `wordsens report`: read the folders, write the file, say where it is."""

import webbrowser
from dataclasses import asdict

from wordsens import __version__
from wordsens.cli.report.options import ReportOptions
from wordsens.cli.terminal import notice, print_json, stdout
from wordsens.report.load import load_runs, readable
from wordsens.report.write import report_content, require_form, write_content


def run_report(options: ReportOptions) -> None:
    """Write the report, and print its path and what it found."""
    runs = load_runs(options.folders)
    path = options.path
    form = require_form(path)
    if not options.quiet:
        for line in (f"{run.name}: {file}" for run in runs for file in run.unread):
            notice(f"passed over: {line}")
    content = report_content(runs, pictures=form == "html")
    write_content(content, path)
    if options.as_json:
        document = {
            "command": "report",
            "version": __version__,
            "file": readable(path),
            "bytes": path.stat().st_size,
            "runs": [
                {
                    "name": run.name,
                    "folder": readable(run.folder),
                    "records": len(run.records),
                    "failed": len(run.failed),
                    "passed_over": list(run.unread),
                }
                for run in runs
            ],
            "findings": [{"of": name, **asdict(finding)} for name, found in content.found for finding in found],
        }
        print_json(document)
    else:
        for _, found in content.found:
            for finding in found:
                stdout().print(finding.sentence, markup=False)
        stdout().print(f"report  {readable(path)}", markup=False, soft_wrap=True)
    if options.show:
        webbrowser.open(path.absolute().as_uri())
