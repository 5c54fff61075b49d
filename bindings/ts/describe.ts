/** A value as an error message shows it: short, and unlike any value of another type. */
export function describe(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return JSON.stringify(value.length > 60 ? `${value.slice(0, 60)}…` : value);
    case 'bigint':
      return `${value}n`;
    case 'function':
      return 'a function';
    case 'object':
      if (value === null) return 'null';
      return Array.isArray(value) ? 'an array' : `an object (${typeName(value)})`;
    default:
      return String(value);
  }
}

function typeName(value: object): string {
  return Object.prototype.toString.call(value).slice('[object '.length, -1);
}

/** The name among `names` that takes the fewest edits, whatever the case, and `_` and `-` left out. */
export function closestName(typed: string, names: readonly string[]): string {
  const plain = (name: string) => name.toLowerCase().replace(/[_-]/g, '');
  let best = '';
  let fewest = Number.POSITIVE_INFINITY;
  for (const name of names) {
    const edits = editDistance(plain(typed), plain(name));
    if (edits < fewest) {
      fewest = edits;
      best = name;
    }
  }
  return best;
}

/** Levenshtein's distance, in O(a.length * b.length). */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const substituted = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(substituted, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
