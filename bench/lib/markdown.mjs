/** A table of strings; the columns behind the first are aligned to the right. */
export function markdownTable(head, rows) {
  const line = cells => `| ${cells.join(' | ')} |`;
  const rule = head.map((_, i) => (i === 0 ? '---' : '--:'));
  return [head, rule, ...rows].map(line).join('\n');
}
