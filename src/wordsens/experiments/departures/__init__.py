"""Cells of the published protocol and of the definition, switch by switch: what each departure does to S and Err."""
