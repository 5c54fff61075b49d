// Writes a story together with you, line by line: node chat.mjs [DIRECTORY, URL or hub id]
// The session keeps what was computed, so that each turn costs only what is new. A line "undo" takes back the last turn.
import { createInterface } from 'node:readline';
import { Engine } from 'kvasm';

const engine = await Engine.load(process.argv[2] ?? 'openai-community/gpt2');
const story = engine.session();
const turns = [];
console.log('How does the story begin?');

for await (const line of createInterface({ input: process.stdin })) {
  if (line === 'undo') {
    if (turns.length > 0) await story.truncate(turns.pop());
    console.log(`(back to token ${(await story.ids()).length})`);
    continue;
  }
  turns.push((await story.ids()).length);
  const prompt = turns.length > 1 ? ` ${line}` : line;
  const generation = story.generate(prompt, { maxTokens: 40, temperature: 0.8, overflow: 'shift' });
  for await (const { text } of generation) process.stdout.write(text);
  const { usage } = await generation.result();
  console.log(`\n(${usage.cached} of ${usage.prompt} tokens were computed before)`);
}
await engine.dispose();
