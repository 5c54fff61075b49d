import { readFile } from 'node:fs/promises';
import { expect, it } from 'vitest';

import { errorFor, type KvasmErrorCode } from '../../bindings/ts/errors.js';

it('the guide lists every error code with its class', async () => {
  const read = (path: string) => readFile(new URL(`../../${path}`, import.meta.url), 'utf8');
  const source = await read('bindings/ts/errors.ts');
  const codes = [...source.matchAll(/^ {2}\| '([a-z-]+)';?$/gm)].map(match => match[1] ?? '');
  expect(codes).toContain('invalid-argument');
  expect(codes).toContain('crashed');
  const table = await read('docs/guide/errors.md');
  const rows = [...table.matchAll(/^\| `([a-z-]+)` \| (\w+) \|/gm)];
  const listed = rows.map(([, code = '', name = '']) => [code, name]);
  const expected = codes.map(code => [code, errorFor(code as KvasmErrorCode, '').name]);
  expect(listed.sort()).toEqual(expected.sort());
});
