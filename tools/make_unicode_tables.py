#!/usr/bin/env python3
"""Writes artel/data/text/unicode_tables.cc from Python's Unicode database.

Run: python3 tools/make_unicode_tables.py > artel/data/text/unicode_tables.cc
"""
import unicodedata

SURROGATES = range(0xD800, 0xE000)
HANGUL = range(0xAC00, 0xD7A4)  # decomposed by arithmetic


def ranges(belongs):
    found = []
    for code in range(0x110000):
        if code in SURROGATES or not belongs(chr(code)):
            continue
        if found and found[-1][1] == code - 1:
            found[-1][1] = code
        else:
            found.append([code, code])
    return found


def folded(character):
    """Lower case without accents."""
    plain = unicodedata.normalize("NFD", character.lower())
    return "".join(c for c in plain if unicodedata.category(c) != "Mn")


def foldings():
    for code in range(0x110000):
        if code in SURROGATES or code in HANGUL:
            continue
        result = folded(chr(code))
        if result != chr(code) and 0 < len(result) <= 2:  # some musical signs would be longer
            yield code, *map(ord, result.ljust(2, "\0"))


def table(kind, name, rows):
    items = ["{" + ", ".join(f"0x{value:x}" if value else "0" for value in row) + "}," for row in rows]
    print(f"\nconst std::array<{kind}, {len(items)}> {name} = {{{{")
    line = "   "
    for item in items:
        if len(line) + 1 + len(item) > 100:
            print(line)
            line = "   "
        line += " " + item
    print(line + "\n}};")


def category(letter):
    return lambda c: unicodedata.category(c).startswith(letter)


print(f"""// Made by tools/make_unicode_tables.py from Unicode {unicodedata.unidata_version}; not to be edited.
#include "artel/data/text/unicode_tables.h"

// clang-format off
namespace artel::data::unicode {{""")
table("Range", "kLetters", ranges(category("L")))
table("Range", "kNumbers", ranges(category("N")))
table("Range", "kPunctuation", ranges(category("P")))
table("Range", "kAccents", ranges(lambda c: unicodedata.category(c) == "Mn"))
table("Range", "kControls", ranges(lambda c: unicodedata.category(c) in ("Cc", "Cf", "Co")))
table("Folding", "kFoldings", foldings())
print("\n}  // namespace artel::data::unicode")
