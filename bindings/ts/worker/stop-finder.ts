/** One string to be found (Knuth, Morris and Pratt 1977). */
class StopString {
  readonly #text: string;
  /** By a number of matched units: the most that stay matched when the next one does not fit. */
  readonly #fallback: number[];
  /** How many of its units the text ends with, the most if there are several. */
  matched = 0;

  constructor(text: string) {
    this.#text = text;
    this.#fallback = [0, 0];
    for (let i = 1; i < text.length; i++) {
      this.#fallback.push(this.#advance(this.#fallback[i] ?? 0, text.charCodeAt(i)));
    }
  }

  get length(): number {
    return this.#text.length;
  }

  /** Takes the text's next UTF-16 unit. @returns Whether the text now ends with the string. */
  push(unit: number): boolean {
    this.matched = this.#advance(this.matched, unit);
    return this.matched === this.length;
  }

  #advance(matched: number, unit: number): number {
    let length = matched;
    while (length > 0 && this.#text.charCodeAt(length) !== unit) {
      length = this.#fallback[length] ?? 0;
    }
    return this.#text.charCodeAt(length) === unit ? length + 1 : 0;
  }
}

/**
 * Finds the first of several strings in a text that comes in pieces. The first is the one that ends first; of those that
 * end together, the longest. So what is found does not depend on where the pieces end.
 */
export class StopFinder {
  readonly #stops: readonly StopString[];
  #length = 0;

  /** @param stops None of them empty. */
  constructor(stops: readonly string[]) {
    this.#stops = stops.map(stop => new StopString(stop));
  }

  /** How many UTF-16 units at the end of the text may be the beginning of one of the strings. */
  get pending(): number {
    return this.#stops.reduce((most, { matched }) => Math.max(most, matched), 0);
  }

  /** @returns Where in the whole text the string that was found begins; the finder is then spent. */
  push(piece: string): number | undefined {
    for (let i = 0; i < piece.length; i++) {
      this.#length++;
      let longest = 0;
      for (const stop of this.#stops) {
        if (stop.push(piece.charCodeAt(i))) longest = Math.max(longest, stop.length);
      }
      if (longest > 0) return this.#length - longest;
    }
    return undefined;
  }
}
