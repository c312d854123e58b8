"""Work off the event loop: a pool of processes, and what passes between them and the page."""
