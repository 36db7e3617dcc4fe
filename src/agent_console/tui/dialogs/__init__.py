"""Dialogs: each names the thing it acts on, and its safe answer is the one that needs no care."""
