// Streams a story to the terminal: node generate.mjs [DIRECTORY, URL or hub id]
import { Engine } from 'kvasm';

const engine = await Engine.load(process.argv[2] ?? 'openai-community/gpt2');
const prompt = 'Once upon a time';
process.stdout.write(prompt);
const generation = engine.generate(prompt, { maxTokens: 60, temperature: 0.8, topP: 0.95 });
for await (const { text } of generation) process.stdout.write(text);
const { usage, timings } = await generation.result();
console.log(`\n\n${usage.completion} tokens, ${timings.tokensPerSecond?.toFixed(1)} a second`);
await engine.dispose();
