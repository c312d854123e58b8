"""Does a model that just learned a text notice one changed word (paper, figure 4)?"""
