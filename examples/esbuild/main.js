// esbuild bundles scripts, but moves no workers and no WebAssembly: the build copies the package's dist/ folder, too.
import { Engine } from 'kvasm';

const model = new URLSearchParams(location.search).get('model') ?? 'openai-community/gpt2';
const story = document.querySelector('#story');

try {
  const engine = await Engine.load(model, { workerUrl: './kvasm/worker.js' });
  for await (const { text } of engine.generate(story.textContent, { maxTokens: 60 })) {
    story.append(text);
  }
  await engine.dispose();
  story.dataset.done = 'yes';
} catch (error) {
  story.textContent = error.message;
}
