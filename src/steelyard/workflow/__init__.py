"""From files to answers: what Python and the command line share, one module per answer."""
