import { type Engine, EngineClosedError } from 'kvasm';
import { fetchBundledModels } from './bundled-models.ts';
import { CacheView } from './cache-view.ts';
import { byId } from './dom.ts';
import { explain, hideExplanation, showExplanation } from './explain.ts';
import { LoadView } from './load-view.ts';
import { MemoryMeter } from './memory-meter.ts';
import { ModelPicker } from './model-picker.ts';
import { ModelSession } from './model-session.ts';
import { RunView } from './run-view.ts';
import { type RunSettings, SamplingControls } from './sampling-controls.ts';
import { pageState, showState } from './state.ts';
import { TextView } from './text-view.ts';

const session = new ModelSession();
const loadView = new LoadView();
const controls = new SamplingControls();
const textView = new TextView();
const runView = new RunView();
const cacheView = new CacheView();
const runError = byId('run-error', HTMLElement);
const noiseBadge = byId('noise-badge', HTMLElement);
const picker = new ModelPicker(await fetchBundledModels());
let running: AbortController | undefined;

byId('model-form', HTMLFormElement).addEventListener('submit', event => {
  event.preventDefault();
  void load();
});
byId('abort-load', HTMLButtonElement).addEventListener('click', () => session.abort());
byId('unload', HTMLButtonElement).addEventListener('click', () => void unload());
byId('run-form', HTMLFormElement).addEventListener('submit', event => {
  event.preventDefault();
  // Also comes by key, where a disabled button does not stand in the way.
  if (pageState() === 'ready' || pageState() === 'empty') void generate();
});
byId('stop', HTMLButtonElement).addEventListener('click', () => running?.abort());
showState('empty');

async function load(): Promise<Engine | undefined> {
  const choice = picker.choice();
  if ('missing' in choice) {
    loadView.refused({ sentence: choice.missing, detail: '' });
    return undefined;
  }
  showState('loading');
  cacheView.clear();
  noiseBadge.hidden = true;
  loadView.start(choice.name);
  try {
    const engine = await session.load(choice, progress => loadView.progress(progress));
    if (engine) {
      cacheView.showModel(engine.info.config, await engine.memory());
      loadView.ready(choice.name, engine.info);
      noiseBadge.hidden = !choice.random;
    } else {
      loadView.aborted();
    }
  } catch (error) {
    await session.unload();
    loadView.failed(explain(error));
  }
  showState(session.engine ? 'ready' : 'empty');
  return session.engine;
}

async function unload(): Promise<void> {
  await session.unload();
  cacheView.clear();
  loadView.unloaded();
  noiseBadge.hidden = true;
  showState('empty');
}

async function generate(): Promise<void> {
  hideExplanation(runError);
  // Read first: what is changed during a load that comes in between was not asked for.
  const settings = controls.read();
  const engine = session.engine ?? (await load());
  if (!engine) return;
  running = new AbortController();
  showState('generating');
  try {
    await run(engine, settings, running.signal);
  } catch (error) {
    if (running.signal.aborted) {
      runView.stopped();
    } else {
      runView.failed();
      showExplanation(runError, explain(error));
      if (error instanceof EngineClosedError) await unload();
    }
  }
  running = undefined;
  showState(session.engine ? 'ready' : 'empty');
}

async function run(engine: Engine, settings: RunSettings, signal: AbortSignal): Promise<void> {
  const { prompt, options } = settings;
  const meter = new MemoryMeter(engine, report => cacheView.update(report));
  textView.start(prompt);
  runView.start(options.seed);
  cacheView.startRun(options.cache);
  let text: string | undefined;
  try {
    const generation = engine.generate(prompt, { ...options, signal });
    for await (const chunk of generation) {
      textView.append(chunk.text);
      runView.token();
      meter.poll();
    }
    const result = await generation.result();
    text = result.text;
    cacheView.update(result.memory);
    runView.finished(result, options.maxTokens);
  } finally {
    meter.stop();
    textView.end(text);
    cacheView.endRun();
  }
}
