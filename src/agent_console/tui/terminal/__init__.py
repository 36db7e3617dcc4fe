"""What stands between Textual and the terminal.

`terminal_app.TerminalApp` is the app to derive from, `restore.run_restoring` the way to run it, and
`skeleton.write_skeleton` what to call before anything heavy is imported. Nothing is imported here, so that the
skeleton stays light.
"""
