// Streams a story into the page. ?model=URL-or-hub-id picks another model.
import { Engine } from 'kvasm';

const model = new URLSearchParams(location.search).get('model') ?? 'openai-community/gpt2';
const [form] = document.forms;
const status = document.querySelector('#status');
const story = document.querySelector('#story');
let engine;

form.addEventListener('submit', async event => {
  event.preventDefault();
  const prompt = new FormData(form).get('prompt');
  form.inert = true;
  try {
    engine ??= await Engine.load(model, { onProgress: showProgress });
    story.textContent = prompt;
    const generation = engine.generate(prompt, { maxTokens: 60, temperature: 0.8, topP: 0.95 });
    for await (const { text } of generation) story.append(text);
    const { usage } = await generation.result();
    status.textContent = `${usage.completion} tokens`;
  } catch (error) {
    status.textContent = error.message;
  } finally {
    form.inert = false;
  }
});

function showProgress({ phase, loaded, total }) {
  const share = total ? ` ${Math.round((100 * loaded) / total)} %` : '';
  status.textContent = `Loading: ${phase}${share}`;
}
