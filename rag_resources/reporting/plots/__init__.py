"""Plots for people, by matplotlib; it is imported when something is drawn, for it takes its time.

How they look and what they are written as is `canvas`; the other modules say what is drawn.
"""
