import type { Engine } from 'kvasm';
import type { App } from '../app.ts';
import { make } from '../lib/dom.ts';
import { explain, showExplanation } from '../lib/explain.ts';
import type { EngineSettings } from '../model/engine-settings.ts';
import type { ModelChoice } from '../model/model-picker.ts';
import { applyState } from '../state.ts';

export interface LessonText {
  readonly id: string;
  readonly title: string;
  /** Paragraphs that say what there is to see. */
  readonly intro: readonly string[];
}

/** What a lesson runs with. */
export interface LessonEngine {
  readonly settings: EngineSettings;
  readonly model?: ModelChoice;
}

/** What all lessons have: text, controls, a stage, and at the end a sentence on what came out. */
export class LessonFrame {
  readonly element: HTMLElement;
  /** For fields that the lesson has. */
  readonly #fields = make('div', { class: 'lesson-fields' });
  readonly #stage = make('div', { class: 'stage' });
  readonly #conclusion = make('p', { class: 'conclusion', role: 'status' });
  readonly #errors = make('div', { class: 'error', role: 'alert', hidden: true });
  readonly #form: HTMLFormElement;
  readonly #app: App;

  constructor(app: App, { id, title, intro }: LessonText) {
    this.#app = app;
    const run = make('button', { type: 'submit', class: 'primary', 'data-needs': 'idle' }, 'Run');
    const stop = make('button', { type: 'button', 'data-needs': 'job' }, 'Stop');
    stop.addEventListener('click', () => app.stop());
    for (const button of [run, stop]) applyState(button);
    this.#form = make(
      'form',
      { class: 'lesson-form' },
      this.#fields,
      make('div', { class: 'actions' }, run, stop),
    );
    this.#conclusion.hidden = true;
    this.element = make(
      'section',
      { class: 'panel lesson', id: `lesson-${id}`, 'aria-labelledby': `lesson-${id}-title` },
      make('h2', { id: `lesson-${id}-title` }, title),
      make('div', { class: 'lesson-intro' }, ...intro.map(text => make('p', {}, text))),
      this.#form,
      this.#errors,
      this.#conclusion,
      this.#stage,
    );
  }

  /** A choice among numbers or names, with the first of the values that is `initial` chosen. */
  select(
    label: string,
    values: readonly (readonly [value: string, text: string])[],
    initial: string,
  ): HTMLSelectElement {
    const id = `${this.element.id}-field-${this.#fields.childElementCount}`;
    const select = make(
      'select',
      { id },
      ...values.map(([value, text]) =>
        make('option', { value, selected: value === initial }, text),
      ),
    );
    this.#fields.append(make('div', { class: 'field' }, make('label', { for: id }, label), select));
    return select;
  }

  /** Puts what the lesson shows on the stage. */
  show(...elements: readonly HTMLElement[]): void {
    this.#stage.append(...elements);
  }

  /** @param work Returns the sentence on what came out. */
  onRun(
    engine: () => LessonEngine,
    work: (engine: Engine, signal: AbortSignal) => Promise<string>,
  ): void {
    this.onSubmit(async () => {
      const { settings, model } = engine();
      await this.job({ settings, ...(model ? { model } : {}) }, async (loaded, signal) => {
        this.conclude(await work(loaded, signal));
      });
    });
  }

  /** For lessons that need several engines, one after the other. */
  onSubmit(work: () => Promise<void>): void {
    this.#form.addEventListener('submit', event => {
      event.preventDefault();
      if (this.#app.busy) return;
      this.conclude('');
      work().catch(error => showExplanation(this.#errors, explain(error)));
    });
  }

  /** @returns Whether it came to its end. */
  async job(
    { settings, model }: LessonEngine,
    work: (engine: Engine, signal: AbortSignal) => Promise<void>,
  ): Promise<boolean> {
    const options = { settings, errors: this.#errors, ...(model ? { model } : {}) };
    const end = await this.#app.job(options, work);
    if (end === 'stopped') this.conclude('Stopped before its end.');
    return end === 'done';
  }

  conclude(text: string): void {
    this.#conclusion.hidden = text === '';
    this.#conclusion.textContent = text;
  }
}
