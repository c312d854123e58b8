"""The page to try: a server of screens, and worker processes that measure for them."""
