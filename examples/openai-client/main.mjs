// Uses `npx kvasm serve` by OpenAI's client: node main.mjs [BASE-URL]
import OpenAI from 'openai';

const baseURL = process.argv[2] ?? 'http://127.0.0.1:8080/v1';
// The server asks for no key, but the client does.
const client = new OpenAI({ baseURL, apiKey: 'none' });

const { data } = await client.models.list();
const model = data[0].id;
console.log(`The model is ${model}.\n`);

const prompt = 'Once upon a time';
process.stdout.write(prompt);
const stream = await client.completions.create({ model, prompt, max_tokens: 60, stream: true });
for await (const { choices } of stream) process.stdout.write(choices[0].text);
console.log();
