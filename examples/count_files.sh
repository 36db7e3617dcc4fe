#!/bin/sh
# An agent in shell: counts the files of a folder. The job's payload comes on standard input:
# {"folder": "/etc"}
set -eu

folder=$(sed -n 's/.*"folder": *"\([^"]*\)".*/\1/p')
if [ ! -d "$folder" ]; then
    echo "there is no folder '$folder'" >&2
    exit 1
fi
if ! df "$folder" >/dev/null 2>&1; then
    echo "$folder is not mounted just now" >&2
    exit 75
fi

echo "counting in $folder for $AGENT_CONSOLE_JOB_ID"
echo '{"agent_console": "progress", "percentage": 50, "message": "counting"}'
files=$(find "$folder" -type f 2>/dev/null | wc -l | tr -d ' ')
printf '{"agent_console": "result", "summary": "%s files", "result": {"files": %s}}\n' "$files" "$files"
