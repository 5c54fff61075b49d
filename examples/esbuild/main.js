// esbuild emits no workers and no WebAssembly, so the ones inside the bundle are used: one thread, plain SIMD.
import { Engine } from 'kvasm';

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
