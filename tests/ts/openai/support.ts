import { createOpenAI, type OpenAIOptions } from '../../../bindings/ts/openai/index.js';
import type { FakeOptions } from '../fake-wasm-module.js';
import { type Fixture, loadFake } from '../harness.js';

/** An API over an engine of letters. */
export async function loadApi(options: FakeOptions = {}, openAIOptions: OpenAIOptions = {}) {
  const fixture: Fixture = await loadFake(options);
  return { ...fixture, api: createOpenAI(fixture.engine, openAIOptions) };
}

/** Draws the bytes of a text after a prompt of one token a byte, and then the end-of-text token. */
export function says(prompt: string, text: string): FakeOptions {
  const bytes = [...new TextEncoder().encode(text)];
  const start = new TextEncoder().encode(prompt).length;
  return { nextToken: ids => bytes[ids.length - start] ?? 256 };
}

export async function collectAll<Chunk>(chunks: AsyncIterable<Chunk>): Promise<Chunk[]> {
  const all: Chunk[] = [];
  for await (const chunk of chunks) all.push(chunk);
  return all;
}
