"""The charts of the report: facts become shapes here, and `templates/chart.svg` writes the shapes.

Each chart is drawn twice, for a wide and for a narrow screen, so that its words stay readable on a phone. Nothing is
sampled at random: the same facts give the same shapes.
"""
