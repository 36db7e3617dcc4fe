"""Make the generated pages anew: `python -m tests.docs.write`."""

from tests.docs import api_reference, rule_list


def main() -> None:
    api_reference.PAGE.write_text(api_reference.api_reference(), encoding="utf-8")
    rule_list.PAGE.write_text(rule_list.made_anew(), encoding="utf-8")


if __name__ == "__main__":
    main()
