// Horizontal bars as an SVG: groups of them below each other, each group with a scale of its own.

import { digits } from './statistics.mjs';

const WIDTH = 720;
const LABEL_WIDTH = 190;
const VALUE_WIDTH = 130;
const BAR = 18;
const GAP = 6;
const ACCENT = '#3b6fb6';
const MUTED = '#a9b4c2';
const escapeXml = text => String(text).replace(/[&<>"]/g, letter => `&#${letter.codePointAt(0)};`);

const text = (x, y, content, attributes = '') =>
  `<text x="${x}" y="${y}" ${attributes}>${escapeXml(content)}</text>`;

/** A bar from 0 to the median, and a whisker over the range. */
function bar({ label, value, isMuted = false }, y, perUnit) {
  const width = Math.max(1, value.median * perUnit);
  const middle = y + BAR / 2;
  const [from, to] = [value.min, value.max].map(v => LABEL_WIDTH + v * perUnit);
  return [
    text(LABEL_WIDTH - 8, y + 13, label, 'text-anchor="end"'),
    `<rect x="${LABEL_WIDTH}" y="${y}" width="${width.toFixed(1)}" height="${BAR}" rx="2" fill="${isMuted ? MUTED : ACCENT}"/>`,
    `<path d="M${from.toFixed(1)} ${middle}H${to.toFixed(1)}" stroke="#1a1a1a" stroke-width="1.5"/>`,
    text((Math.max(to, LABEL_WIDTH + width) + 6).toFixed(1), y + 13, digits(value.median)),
  ];
}

/**
 * @param {string} title
 * @param {{ title: string, bars: { label: string, value: { median, min, max }, isMuted?: boolean }[] }[]} groups the title names the unit
 * @param {string[]} notes lines below
 */
export function barChart(title, groups, notes) {
  const parts = [text(12, 24, title, 'font-size="16" font-weight="bold"')];
  let y = 44;
  for (const group of groups) {
    parts.push(text(12, y + 13, group.title, 'font-weight="bold"'));
    y += BAR + GAP;
    const largest = Math.max(...group.bars.map(({ value }) => value.max));
    const perUnit = (WIDTH - LABEL_WIDTH - VALUE_WIDTH) / largest;
    for (const one of group.bars) {
      parts.push(...bar(one, y, perUnit));
      y += BAR + GAP;
    }
    y += 2 * GAP;
  }
  for (const note of notes) {
    parts.push(text(12, y + 10, note, 'font-size="11" fill="#555"'));
    y += 16;
  }
  const height = y + 12;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-label="${escapeXml(title)}" font-family="system-ui, sans-serif" font-size="13" fill="#1a1a1a">`,
    `<rect width="${WIDTH}" height="${height}" fill="#fff"/>`,
    ...parts,
    '</svg>',
    '',
  ].join('\n');
}
