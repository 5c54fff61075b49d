import { expect, it } from 'vitest';
import { toMarkdown } from '../../../web/src/benchmark/report.ts';

it('a report is a Markdown table below what it was measured on', () => {
  const setting = { model: 'M', engine: 'E', browser: 'B', processors: 2, date: '2026-01-02' };
  const measures = [
    { name: 'prefill', unit: 'tokens/s', samples: [100.4, 1234, 99.9] },
    { name: 'first token', unit: 'ms', samples: [2.345] },
    { name: 'not run yet', unit: 'ms', samples: [] },
  ] as const;
  expect(toMarkdown(measures, setting)).toBe(`- model: M
- kvasm: E
- browser: B; 2 processors; 2026-01-02

| | median | range | unit |
| --- | ---: | ---: | --- |
| prefill | 100 | 99.9 to 1234 | tokens/s |
| first token | 2.35 | 2.35 to 2.35 | ms |
`);
});
