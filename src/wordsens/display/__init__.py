"""What results say, as data, and as pages, notebook cells and Markdown. Loads no torch."""
