import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { gpt2 } from './gpt2.js';
import { haveGpt2, needsGpt2, vectorPath } from './gpt2-vocab.js';

interface Vector {
  text: string;
  ids: number[];
}

function readVector(name: string): string {
  return haveGpt2 ? readFileSync(vectorPath(name), 'utf8') : '';
}

/** The cases of GPT-2's encoding; the file also holds other vocabularies'. */
function r50kVectors(): Vector[] {
  const pattern = /^EncodingName: r50k_base\nSample: (.*)\nEncoded: (\[.*\])$/gm;
  return [...readVector('r50k_base-cases.txt').matchAll(pattern)].map(match => ({
    text: match[1]!,
    ids: JSON.parse(match[2]!) as number[],
  }));
}

function llamaCppVectors(): Vector[] {
  const ids = readVector('ggml-vocab-gpt-2.gguf.out').split('\n');
  const texts = readVector('ggml-vocab-gpt-2.gguf.inp').split('\n__ggml_vocab_test__\n');
  return texts.slice(0, -1).map((text, i) => ({
    text,
    ids: (ids[i]!.match(/\d+/g) ?? []).map(Number),
  }));
}

describe.skipIf(!haveGpt2)(`the published vectors of GPT-2's vocabulary${needsGpt2}`, () => {
  const r50k = r50kVectors();
  const llamaCpp = llamaCppVectors();

  test('are all read', () => {
    expect([r50k.length, llamaCpp.length]).toEqual([64, 46]);
  });

  test.each(r50k)('r50k_base: $text', ({ text, ids }) => {
    expect([...gpt2().encode(text)]).toEqual(ids);
    expect(gpt2().decode(ids)).toBe(text);
  });

  test.each(llamaCpp)('llama.cpp: $text', ({ text, ids }) => {
    expect([...gpt2().encode(text)]).toEqual(ids);
    expect(gpt2().decode(ids)).toBe(text);
  });
});
