"""Plots by matplotlib, which is slow to import and therefore imported only when something is drawn.

Their look and their file formats are in `canvas`; the other modules say what is drawn.
"""
