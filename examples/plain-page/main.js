// The package's dist/ folder, copied beside this page as kvasm/. A CDN's address does as well:
// https://cdn.jsdelivr.net/npm/kvasm@0.1.0/dist/index.js
import { Engine } from './kvasm/index.js';

const model = new URLSearchParams(location.search).get('model') ?? 'openai-community/gpt2';
const story = document.querySelector('#story');

try {
  const engine = await Engine.load(model);
  for await (const { text } of engine.generate(story.textContent, { maxTokens: 60 })) {
    story.append(text);
  }
  await engine.dispose();
  story.dataset.done = 'yes';
} catch (error) {
  story.textContent = error.message;
}
