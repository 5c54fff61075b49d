// Without isolation a page has no threads: the service worker brings it from the second visit on, so the first reloads.
import { Engine } from './kvasm/index.js';

const model = new URLSearchParams(location.search).get('model') ?? 'openai-community/gpt2';
const story = document.querySelector('#story');
const isolation = document.querySelector('#isolation');

if (!crossOriginIsolated && !sessionStorage.reloaded) {
  sessionStorage.reloaded = 'yes';
  await navigator.serviceWorker.register('./service-worker.js');
  await navigator.serviceWorker.ready;
  location.reload();
} else {
  await write();
}

async function write() {
  isolation.textContent = crossOriginIsolated ? 'isolated' : 'not isolated';
  try {
    const engine = await Engine.load(model);
    isolation.append(`, ${engine.info.threads} thread(s)`);
    for await (const { text } of engine.generate(story.textContent, { maxTokens: 60 })) {
      story.append(text);
    }
    await engine.dispose();
    story.dataset.done = 'yes';
  } catch (error) {
    story.textContent = error.message;
  }
}
