"""Reads the fairy-tale corpus and turns it into clean paragraphs.

The source files are plain-text editions: hard-wrapped lines, blank lines
between paragraphs, a front matter (credits, dedication, preface, contents) and
some editors' notes.  What is left after cleaning is a list of stories, each a
list of paragraphs of one line, with straight quotes and no italics marks.

The held-out split takes runs of consecutive paragraphs, spread over every
book, so that no paragraph is both trained and tested on.
"""

from __future__ import annotations

import pathlib
import random
import re
from dataclasses import dataclass, field

# Where the narrative starts and (for some) ends: a paragraph that begins with
# the string, the n-th of that kind.  Everything before is front matter, and
# everything from the end mark on is notes of the editor.
BODY: dict[str, tuple[str, int, str | None]] = {
    "alice-s-adventures-in-wonderland": ("CHAPTER I.", 1, "THE END"),
    "andersen-s-fairy-tales": ("THE EMPEROR'S NEW CLOTHES", 1, None),
    "black-beauty": ("01 My Early Home", 1, None),
    "english-fairy-tales": ("TOM TIT TOT", 1, "NOTES AND REFERENCES"),
    "grimms": ("THE GOLDEN BIRD", 1, "Reformatted line"),
    "heidi": ("CHAPTER I.", 1, "by Johanna Spyri"),
    "peter-pan": ("Chapter 1 PETER BREAKS", 2, "THE END"),
    "the-blue-fairy-book": ("THE BRONZE RING", 1, None),
    "the-brown-fairy-book": ("What the Rose did to the Cypress", 1, None),
    "the-crimson-fairy-book": ("Lovely Ilonka", 1, None),
    "the-green-fairy-book": ("THE BLUE BIRD", 1, None),
    "the-jungle-book": ("Mowgli", 1, None),
    "the-orange-fairy-book": ("The Story of the Hero Makoma", 1, "by Andrew Lang"),
    "the-pink-fairy-book": ("The Cat's Elopement", 1, None),
    "the-red-fairy-book": ("THE TWELVE DANCING PRINCESSES", 1, None),
    "the-secret-garden": ("CHAPTER I", 1, "THE END"),
    "the-violet-fairy-book": ("A TALE OF THE TONTLAWALD", 1, None),
    "the-wind-in-the-willows": ("I. THE RIVER BANK", 1, None),
    "the-wonderful-wizard-of-oz": ("1. The Cyclone", 1, None),
    "the-yellow-fairy-book": ("THE CAT AND THE MOUSE IN PARTNERSHIP", 1, None),
}

# Words that begin with an apostrophe which is not an opening quote.
_ELIDED = r"(?:tis|twas|twere|twill|em|un|ee|bout|cause|way|gainst|neath)\b"


@dataclass
class Story:
    """One story or chapter: `paragraphs` in reading order, one line each."""

    book: str
    title: str
    paragraphs: list[str] = field(default_factory=list)


def unify_characters(text: str) -> str:
    """Straight quotes, two-hyphen dashes, no italics marks, single spaces."""
    for old, new in (("\u201c", '"'), ("\u201d", '"'), ("\u2019", "'"),
                     ("\u2014", "--"), ("\u0153", "oe"), ("\r", "")):
        text = text.replace(old, new)
    text = re.sub(r"--+", "--", text)
    text = re.sub(r"^\* .*$", "", text, flags=re.MULTILINE)  # a footnote's text
    text = re.sub(r"\[\*+\]|\*+", "", text)
    return text.replace("_", "")


def drop_notes(paragraph: str) -> str:
    """Removes footnote marks and bracketed remarks of the editors."""
    paragraph = re.sub(r"\s?\[(?:\*|\d+|Footnote[^\]]*|Note[^\]]*)\]?", "", paragraph)
    paragraph = re.sub(r"\s?\(\d+\)\s?", " ", paragraph)
    paragraph = re.sub(r"\s\[[^\]]{1,120}\]", "", paragraph)
    return paragraph.replace("[", "(").replace("]", ")")


def unify_dialogue(paragraph: str) -> str:
    """Writes speech in double quotes where the edition has single ones.

    Half of the books quote speech with single marks, half with double ones; a
    small model learns one convention far better than two.  U+2018 is always an
    opening mark; a straight mark opens before a letter and after a space, and
    closes after punctuation.  Marks inside words stay apostrophes.
    """
    swap = str.maketrans({'"': "\x00"})
    text = paragraph.translate(swap)
    text = text.replace("\u2018", "\x01")
    text = re.sub(rf"(?:(?<=^)|(?<=[\s(\x00-]))'(?!{_ELIDED})(?=\w)", "\x01", text,
                  flags=re.IGNORECASE)
    # A closing mark follows punctuation, or a word when one is open and no
    # letter comes after it.
    text = re.sub(r"(?<=[.,;:!?)-])'(?=[\s,;:.!?)\x00-]|$)", "\x02", text)
    out: list[str] = []
    is_open = False
    for i, ch in enumerate(text):
        if ch == "\x01":
            out.append('"')
            is_open = True
        elif ch == "\x02":
            out.append('"')
            is_open = False
        elif ch == "'" and is_open and (i + 1 == len(text) or not text[i + 1].isalnum()) \
                and i > 0 and text[i - 1] != "s":
            out.append('"')
            is_open = False
        else:
            out.append("'" if ch == "\x00" else ch)
    return "".join(out)


def _quotes_speech_singly(text: str) -> bool:
    """True if the edition marks speech with single quotes."""
    single = len(re.findall(r"(?:^|\s)['\u2018](?=\w)", text))
    double = len(re.findall(r'(?:^|\s)["\u201c](?=\w)', text))
    return single > double


def _is_heading(lines: list[str], contents: str) -> bool:
    """True for a paragraph that is a title and not narrative; `contents` is the
    key (see _title_key) of the front matter."""
    text = " ".join(line.strip() for line in lines)
    if len(text) > 90:
        return False
    if len(lines) == 1 and len(_title_key(text)) >= 6 and _title_key(text) in contents \
            and not text.endswith((".", ",", ";", ":")):
        return True
    letters = re.sub(r"[^A-Za-z]", "", text)
    if letters and letters.isupper() and (len(letters) > 3 or re.fullmatch(r"[IVXL]+\.?", text)) \
            and not re.search(r"[.!?\"]$", text):
        return True
    if re.match(r"(?i:chapter|part)\s+(?:\d+|[IVXL]+)\b", text):
        return True
    return bool(re.match(r"(?:[IVXL]+\.|\d+\.?)\s+[A-Z]", text)) and not text.endswith((",", ";"))


def _title_key(text: str) -> str:
    text = re.sub(r"^\s*(?:[IVXL]+\.|\d+\.?)\s+", "", text)
    return re.sub(r"[^a-z]", "", text.lower())


def _paragraphs(book: str, text: str) -> list[list[str]]:
    """Splits a book into paragraphs, each a list of its source lines."""
    if book == "grimms":  # this edition has one paragraph a line
        return [[line] for line in text.split("\n") if line.strip()]
    return [[line for line in block.split("\n") if line.strip()]
            for block in re.split(r"\n\s*\n", text) if block.strip()]


def _is_verse(lines: list[str]) -> bool:
    """True if the paragraph's line breaks mean something."""
    return len(lines) > 1 and all(line.startswith("  ") or len(line) < 56 for line in lines) \
        and sum(len(line.strip()) for line in lines) / len(lines) < 48


def read_book(path: pathlib.Path) -> list[Story]:
    """Reads one file into stories of clean paragraphs."""
    book = path.stem
    raw = unify_characters(path.read_text(encoding="utf-8"))
    singly = _quotes_speech_singly(raw)
    start, nth, end = BODY[book]
    paragraphs = _paragraphs(book, raw)
    first = [i for i, lines in enumerate(paragraphs)
             if re.sub(r"\s+", " ", lines[0].replace("\u2018", "'")).strip().startswith(start)
             and len(lines) < 4 or (book == "grimms" and lines[0].startswith(start))][nth - 1]
    contents = _title_key(" ".join(" ".join(lines) for lines in paragraphs[:first]))
    stories = [Story(book, start)]
    for lines in paragraphs[first:]:
        text = " ".join(line.strip() for line in lines)
        if end and text.startswith(end):
            break
        if _is_heading(lines, contents):
            if re.fullmatch(r"[IVXL]+\.?", text):  # a part of the story goes on
                continue
            if stories[-1].paragraphs:
                stories.append(Story(book, text))
            continue
        if not re.search(r"[a-z]{2}", text):  # rows of stars and the like
            continue
        joined = ("\n" if _is_verse(lines) else " ").join(line.strip() for line in lines)
        joined = drop_notes(joined)
        joined = unify_dialogue(joined) if singly else joined.replace("\u2018", "'")
        joined = re.sub(r"[ \t]+", " ", joined).strip()
        if joined:
            stories[-1].paragraphs.append(joined)
    for story in stories:
        while story.paragraphs and _is_source_note(story.paragraphs[-1]):
            story.paragraphs.pop()
        while story.paragraphs and (_is_source_note(story.paragraphs[0])
                                    or story.paragraphs[0].startswith(start)):
            story.paragraphs.pop(0)
        if story.paragraphs:  # "ONCE upon a time" at the head of a story
            story.paragraphs[0] = re.sub(r"^([A-Z])([A-Z]+)\b", lambda m: m[1] + m[2].lower(),
                                         story.paragraphs[0])
    return [story for story in stories if story.paragraphs]


def _is_source_note(paragraph: str) -> bool:
    """True for a story's last line if it only says where the story was found."""
    if paragraph.startswith(("(From", "From", "(Adapted", "Adapted", "(Translated",
                             "Translated from", "Bibliotheque", "A North American Indian story",
                             "Asbjornsen", "La bonne", "Le Rameau", "Story from Hainaut",
                             "Charles Deulin", "Cabinet des")):
        return len(paragraph) < 200
    if len(paragraph) > 60 or '"' in paragraph[1:-2].replace('("', "") and paragraph[0] != "(":
        return False
    if paragraph.startswith("("):
        return paragraph.endswith(")")
    words = re.findall(r"[\w']+", paragraph)
    small = {"de", "et", "par", "the", "la", "le", "of", "by", "d'Aulnoy"}
    return '"' not in paragraph and all(w[0].isupper() or w in small for w in words)


def read_corpus(folder: pathlib.Path) -> list[Story]:
    """All stories of all known books, in a fixed order."""
    missing = [book for book in BODY if not (folder / f"{book}.txt").is_file()]
    if missing:
        raise SystemExit(f"{folder}: no {missing[0]}.txt ({len(missing)} books missing)")
    return [story for book in sorted(BODY) for story in read_book(folder / f"{book}.txt")]


def split_held_out(stories: list[Story], fraction: float = 0.04, run_bytes: int = 6000,
                   seed: int = 1) -> tuple[list[list[str]], list[list[str]]]:
    """Splits into training and held-out documents (lists of paragraphs).

    Held-out documents are runs of about `run_bytes` of consecutive paragraphs,
    about `fraction` of every book.  A paragraph whose text also occurs in
    training (a refrain, a repeated verse) is left out of the held-out set.
    """
    rng = random.Random(seed)
    train: list[list[str]] = []
    held: list[list[str]] = []
    for book in sorted({story.book for story in stories}):
        own = [story for story in stories if story.book == book]
        runs: list[tuple[int, int, int]] = []  # story, first paragraph, one past the last
        for s, story in enumerate(own):
            first, size = 0, 0
            for p, text in enumerate(story.paragraphs):
                size += len(text.encode()) + 2
                if size >= run_bytes:
                    runs.append((s, first, p + 1))
                    first, size = p + 1, 0
        size = sum(len("\n\n".join(story.paragraphs)) for story in own)
        count = max(1, round(fraction * size / run_bytes))
        chosen = set()
        for k in range(min(count, len(runs))):  # stratified: one from each stretch of the book
            low, high = k * len(runs) // count, (k + 1) * len(runs) // count
            chosen.add(runs[rng.randrange(low, max(low + 1, high))])
        taken = {(s, p) for s, a, b in chosen for p in range(a, b)}
        for s, a, b in sorted(chosen):
            held.append(own[s].paragraphs[a:b])
        for s, story in enumerate(own):
            rest = [text for p, text in enumerate(story.paragraphs) if (s, p) not in taken]
            if rest:
                train.append(rest)
    seen = {text for document in train for text in document}
    held = [[text for text in document if text not in seen] for document in held]
    return train, [document for document in held if document]
