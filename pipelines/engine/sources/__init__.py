"""Where rows come from, recorded and live; a kind is a file, or a folder, and one entry where feeds are opened."""
