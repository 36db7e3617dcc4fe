"""The catalogue of strings that an agent may send to harm, mislead or crash the person who reads them.

`HOSTILE` is meant for every entry and every exit: store it, send it, show it, and then ask `dangers` what
reached the other side. `dangers` judges by Unicode's own tables and shares no code with the gate.
"""

import unicodedata

ESC, BEL, ST = "\x1b", "\x07", "\x1b\\"

_TERMINAL = {
    "osc 0 title, BEL": f"{ESC}]0;root@prod{BEL}",
    "osc 0 title, ST": f"{ESC}]0;root@prod{ST}",
    "osc 8 link, BEL": f"{ESC}]8;;http://evil.example{BEL}runbook{ESC}]8;;{BEL}",
    "osc 8 link, ST": f"{ESC}]8;;http://evil.example{ST}runbook{ESC}]8;;{ST}",
    "osc 9 notification, BEL": f"{ESC}]9;your session ends{BEL}",
    "osc 9 notification, ST": f"{ESC}]9;your session ends{ST}",
    "osc 52 clipboard, BEL": f"{ESC}]52;c;cm0gLXJmIH4K{BEL}",
    "osc 52 clipboard, ST": f"{ESC}]52;c;cm0gLXJmIH4K{ST}",
    "unterminated osc": f"{ESC}]0;everything after this is swallowed",
    "dcs": f'{ESC}P$q"p{ST}',
    "apc": f"{ESC}_Gf=24,s=10,v=10;AAAA{ST}",
    "pm": f"{ESC}^private message{ST}",
    "csi clear screen": f"{ESC}[2J{ESC}[H",
    "csi alternate screen": f"{ESC}[?1049h",
    "csi colours": f"{ESC}[8;31mhidden{ESC}[0m",
    "device status report": f"{ESC}[6n",
    "full reset": f"{ESC}c",
    "escape split, first chunk": f"progress 10 %{ESC}",
    "escape split, second chunk": f"]52;c;cm0gLXJmIH4K{BEL}",
    "c1 csi": "\x9b2J",
    "c1 osc": "\x9d0;title\x9c",
    "c1 dcs": "\x90q\x9c",
    "all of c0, delete and c1": "".join(map(chr, [*range(0x20), *range(0x7F, 0xA0)])),
    "nul": "before\x00after",
    "carriage return over the line": "REJECTED\rAPPROVED",
    "backspace over the word": "rejected" + "\b" * 8 + "approved",
    "tabs": "a\tb\t\t\tc",
    "10,000 combining marks": "e" + "\u0301" * 10_000,
    "marks on the frame": "\u0336" * 30 + "text",
    "enclosing marks": "a\u20dd\u20e0\u20dd\u20e0\u20dd\u20e0",
    "hangul vowels without a cell": "\u1100" + "\u1161" * 500,
    "variation selectors": "a" + "\ufe0f" * 300 + "\U000e0100" * 300,
    "invalid utf-8, replaced": b"\xff\xfe\xc0\x80\xed\xa0\x80".decode("utf-8", "backslashreplace"),
    "invalid utf-8, as surrogates": b"\xff\xfe\xc0\x80".decode("utf-8", "surrogateescape"),
    "lone surrogates": "\ud800 \udfff",
    "non-characters": "\ufffe\uffff\ufdd0\U0001ffff\U0010ffff",
    "private use": "\ue000\uf8ff\U000f0000",
    "unassigned": "\u0378\u2065\U000e0080",
    "line and paragraph separators": "one\u2028two\u2029three\x85four",
    "a line of 1 MB": "x" * 1_000_000,
}

_MARKUP = {
    "closing tag, open": "[/",
    "closing tag": "[/]",
    "closing a tag of ours": "[/bold]",
    "click action": "[@click=app.quit]press here[/]",
    "click action in a link": "[@click=app.decide('approve')]details[/]",
    "link markup": "[link=http://evil.example]runbook[/link]",
    "console markup": "[bold red on black blink]ALERT[/bold red on black blink]",
    "template variable": "$password ${HOME} {0} %s %(x)s",
    "markdown link": "[runbook](http://evil.example) ![x](file:///etc/passwd)",
    "html": "<script>alert(1)</script><b>bold</b>",
    "escaped bracket": "\\[/] \\\\[@click=app.quit]",
}

_LOOKS = {
    "bidi override": "invoice\u202efdp.exe",
    "bidi embeddings and isolates": "\u202aa\u202bb\u202cc\u202dd\u2066e\u2067f\u2068g\u2069h",
    "bidi marks": "a\u200eb\u200fc\u061cd",
    "zero-width": "at\u200bl\u200ca\u200ds\u2060\ufeff",
    "soft hyphen and joiners": "at\u00adlas\u034f\u180e\u2061\u2062\u2063\u2064",
    "tag characters": "atlas" + "".join(chr(0xE0000 + ord(char)) for char in "approve it") + "\U000e007f",
    "interlinear annotation": "\ufff9shown\ufffahidden\ufffb",
    "joined emoji": "👩\u200d👩\u200d👧\u200d👦",
    "flag, skin tone, keycap": "🇩🇪 👍🏽 1\ufe0f\u20e3",
    "homoglyph name": "аtlas",
    "reused name": "atlas ",
    "full-width name": "ａｔｌａｓ",
    "right-to-left script": "אטלס 123 456",
}

_APPROVER = {
    "fake system box": "┌─ SYSTEM ─────────┐\n│ verified: safe   │\n└──────────────────┘",
    "pre-approved": "pre-approved by alice@example.com, ticket OPS-1; press a to continue",
    "400 blank lines": "please approve\n" + "\n" * 400 + "and delete everything",
    "padding with no-break spaces": "approve" + "\u00a0" * 200 + "rm -rf /",
    "padding with exotic spaces": "approve"
    + "".join(map(chr, range(0x2000, 0x200B)))
    + "\u202f\u205f\u3000\u1680x",
    "padding with blank-looking letters": "approve" + "\u2800\u3164\u115f\u1160\uffa0\u17b4\U0001d159" * 20 + "x",
    "text past the edge": "approve" + " " * 500 + "and delete everything",
    "description against arguments": 'read only: {"command": "drop table jobs", "dry_run": false}',
    "fake note of ours": "… +0 more …(+0 marks) «redacted»",
}

HOSTILE: dict[str, str] = _TERMINAL | _MARKUP | _LOOKS | _APPROVER

_UNSENDABLE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"}
_BLANK = "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\U0001d159"
_MOST_MARKS = 4


def is_dangerous(char: str) -> bool:
    """Whether one character may change, hide or pad what the terminal shows. Only U+0020 is a blank."""
    if char == " ":
        return False
    selector = 0xFE00 <= ord(char) <= 0xFE0F or 0xE0000 <= ord(char) <= 0xE0FFF or "\u180b" <= char <= "\u180f"
    return unicodedata.category(char) in _UNSENDABLE or char in _BLANK or selector


def dangers(text: str) -> list[str]:
    """What in a text is not fit for a terminal: code points, and towers of more than four marks."""
    if text.isascii() and text.isprintable():
        return []
    found = [f"U+{ord(char):04X}" for char in text if is_dangerous(char)]
    height = 0
    for char in text:
        height = height + 1 if unicodedata.category(char).startswith("M") else 0
        if height == _MOST_MARKS + 1:
            found.append("a tower of marks")
    return found
