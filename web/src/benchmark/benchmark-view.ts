import type { Engine } from 'kvasm';
import type { App } from '../app.ts';
import { BarTable } from '../charts/bar-table.ts';
import { storyIds } from '../lessons/texts.ts';
import { make } from '../lib/dom.ts';
import { applyState } from '../state.ts';
import { formatNumber, type Measure, type Setting, summarise, toMarkdown } from './report.ts';
import { type Trial, trials } from './trials.ts';

const rounds = 3;
const promptTokens = 192;
// What the longest run adds to the prompt.
const room = 8;

/** Measures the engine on this device. */
export class BenchmarkView {
  readonly #app: App;
  readonly #rates = new BarTable('Tokens per second: more is better');
  readonly #times = new BarTable('Milliseconds: less is better');
  readonly #errors = make('div', { class: 'error', role: 'alert', hidden: true });
  readonly #progress = make('p', { role: 'status' });
  readonly #table = make('table', { class: 'figures-table', hidden: true });
  readonly #report = make('textarea', { id: 'benchmark-report', rows: 13, readonly: true });
  readonly #copy = make('button', { type: 'button' }, 'Copy as Markdown');
  readonly #results = make('div', { class: 'stage', hidden: true });

  constructor(app: App, root: HTMLElement) {
    this.#app = app;
    const run = make(
      'button',
      { type: 'submit', class: 'primary', 'data-needs': 'idle' },
      'Run the benchmark',
    );
    const stop = make('button', { type: 'button', 'data-needs': 'job' }, 'Stop');
    stop.addEventListener('click', () => app.stop());
    for (const button of [run, stop]) applyState(button);
    const form = make('form', {}, make('div', { class: 'actions' }, run, stop));
    form.addEventListener('submit', event => {
      event.preventDefault();
      void this.#run();
    });
    this.#copy.addEventListener('click', () => void this.#copyReport());
    this.#results.append(
      this.#rates.element,
      this.#times.element,
      this.#table,
      make(
        'details',
        { class: 'more' },
        make('summary', {}, 'As Markdown'),
        make('label', { class: 'unseen', for: 'benchmark-report' }, 'Report as Markdown'),
        this.#report,
      ),
      make('div', { class: 'actions' }, this.#copy),
    );
    root.append(
      make(
        'section',
        { class: 'panel wide', 'aria-labelledby': 'benchmark-title' },
        make('h2', { id: 'benchmark-title' }, 'How fast is it here?'),
        make(
          'div',
          { class: 'lesson-intro' },
          make(
            'p',
            {},
            `Runs the chosen model on this device, ${rounds} rounds of each trial in turns, so that what disturbs one disturbs all. Shown are the medians and the ranges. The results stay here, too, unless you copy them.`,
          ),
        ),
        form,
        this.#errors,
        this.#progress,
        this.#results,
      ),
    );
  }

  async #run(): Promise<void> {
    const settings = this.#app.picker.settings();
    const end = await this.#app.job({ settings, errors: this.#errors }, async (engine, signal) => {
      const prompt = await storyIds(
        engine,
        Math.min(promptTokens, engine.info.contextLength - room),
      );
      const samples = new Map<Trial, number[]>(trials.map(trial => [trial, []]));
      this.#results.hidden = false;
      for (let round = 0; round < rounds; round++) {
        for (const trial of trials) {
          this.#progress.textContent = `Round ${round + 1} of ${rounds}: ${trial.name}.`;
          samples.get(trial)?.push(await trial.run(engine, prompt, signal));
          signal.throwIfAborted();
          this.#show(
            trials.map(({ name, unit }, i) => ({
              name: name === 'prefill' ? `${name}, ${prompt.length} tokens` : name,
              unit,
              samples: samples.get(trials[i] ?? trial) ?? [],
            })),
            engine,
          );
        }
      }
    });
    if (end === 'done') this.#progress.textContent = 'Done.';
    if (end === 'stopped')
      this.#progress.textContent = 'Stopped: what was measured until then is below.';
    if (end === 'failed') this.#progress.textContent = '';
  }

  #show(measures: readonly Measure[], engine: Engine): void {
    const known = measures.filter(({ samples }) => samples.length > 0);
    for (const [table, unit] of [
      [this.#rates, 'tokens/s'],
      [this.#times, 'ms'],
    ] as const) {
      table.show(
        known
          .filter(measure => measure.unit === unit)
          .map(({ name, samples }) => {
            const { median } = summarise(samples);
            return {
              label: name,
              value: median,
              text: `${formatNumber(median)} ${unit}`,
              colour: 0,
            };
          }),
      );
    }
    this.#table.hidden = false;
    this.#table.replaceChildren(...rowsOf(known));
    this.#report.value = toMarkdown(known, this.#setting(engine));
    this.#copy.textContent = 'Copy as Markdown';
  }

  #setting({ info }: Engine): Setting {
    const { nLayer, nEmbd, vocabSize } = info.config;
    const name = this.#app.modelName ?? 'unknown';
    return {
      model: `${name} (${nLayer} layers, width ${nEmbd}, ${vocabSize} token ids)`,
      engine: `${info.variant}, threads: ${info.threads}, weights ${info.dtype}, keys and values ${info.kvDtype}`,
      browser: navigator.userAgent,
      processors: navigator.hardwareConcurrency,
      date: new Date().toISOString().slice(0, 10),
    };
  }

  async #copyReport(): Promise<void> {
    try {
      await navigator.clipboard.writeText(this.#report.value);
      this.#copy.textContent = 'Copied';
    } catch {
      // The browser keeps the clipboard: the text is there to be copied by hand.
      this.#report.closest('details')?.setAttribute('open', '');
      this.#report.focus();
      this.#report.select();
      this.#copy.textContent = 'Selected above: copy it by hand';
    }
  }
}

function rowsOf(measures: readonly Measure[]): HTMLElement[] {
  const head = ['', 'Median', 'Least', 'Most'].map(text => make('th', { scope: 'col' }, text));
  const rows = measures.map(({ name, unit, samples }) => {
    const { median, least, most } = summarise(samples);
    const numbers = [median, least, most].map(value =>
      make('td', { class: 'number' }, formatNumber(value)),
    );
    return make('tr', {}, make('th', { scope: 'row' }, `${name}, ${unit}`), ...numbers);
  });
  // An empty header cell would be read out as nothing.
  head[0]?.append(make('span', { class: 'unseen' }, 'Trial'));
  return [
    make('caption', {}, 'Medians and ranges'),
    make('thead', {}, make('tr', {}, ...head)),
    make('tbody', {}, ...rows),
  ];
}
