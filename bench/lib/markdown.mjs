/** A table of strings, padded to read well as text, too. The columns behind the first are aligned to the right. */
export function markdownTable(head, rows) {
  const widths = head.map((_, i) => Math.max(3, ...[head, ...rows].map(cells => cells[i].length)));
  const line = cells => `| ${cells.join(' | ')} |`;
  const padded = cells =>
    line(cells.map((cell, i) => (i === 0 ? cell.padEnd(widths[i]) : cell.padStart(widths[i]))));
  const rule = widths.map((n, i) => (i === 0 ? '-'.repeat(n) : `${'-'.repeat(n - 1)}:`));
  return [padded(head), line(rule), ...rows.map(padded)].join('\n');
}
