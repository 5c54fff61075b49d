import type { AttentionWeights, Engine } from 'kvasm';
import type { App } from '../app.ts';
import { make } from '../lib/dom.ts';
import { formatInteger } from '../lib/format.ts';
import { visibleText } from '../playground/token-info.ts';
import { applyState } from '../state.ts';
import {
  type AttentionMap,
  strength,
  strongestKeys,
  visibility,
  weightAt,
} from './attention-map.ts';
import { HeatMap, type Place } from './heat-map.ts';

// More would be too small to be seen.
const mostTokens = 64;
const example =
  'Once upon a time there was a king who had a daughter, and the king said to his daughter';

/** What one head of one layer looks at. */
export class AttentionView {
  readonly #app: App;
  readonly #text = make(
    'textarea',
    { id: 'attention-text', rows: 2, spellcheck: 'false' },
    example,
  );
  readonly #window = selectOf('attention-window', [
    ['', 'all tokens'],
    ['4', '4 tokens'],
    ['8', '8 tokens'],
    ['16', '16 tokens'],
  ]);
  readonly #layer = selectOf('attention-layer', []);
  readonly #head = selectOf('attention-head', []);
  readonly #errors = make('div', { class: 'error', role: 'alert', hidden: true });
  readonly #detail = make('p', { class: 'heat-detail', 'aria-live': 'polite' });
  readonly #words = make('p', { class: 'heat-words' });
  readonly #stage = make('div', { class: 'stage', hidden: true });
  readonly #heatMap = new HeatMap(place => this.#showPlace(place));
  #answer: AttentionWeights | undefined;
  #shownWindow: number | undefined;
  #place: Place = { query: 0, key: 0 };

  /** @param playgroundText The text that the playground shows. */
  constructor(app: App, root: HTMLElement, playgroundText: () => string) {
    this.#app = app;
    const show = make('button', { type: 'submit', class: 'primary', 'data-needs': 'idle' }, 'Show');
    const take = make('button', { type: 'button' }, 'Take the playground’s text');
    take.addEventListener('click', () => {
      this.#text.value = playgroundText() || example;
    });
    applyState(show);
    const form = make(
      'form',
      { class: 'attention-form' },
      field('Text', this.#text),
      make(
        'div',
        { class: 'lesson-form' },
        field('Layer', this.#layer),
        field('Head', this.#head),
        field('Window', this.#window),
        make('div', { class: 'actions' }, show, take),
      ),
    );
    form.addEventListener('submit', event => {
      event.preventDefault();
      void this.#compute();
    });
    this.#head.addEventListener('change', () => this.#showHead());
    for (const select of [this.#layer, this.#window]) {
      select.addEventListener('change', () => {
        if (this.#answer) void this.#compute();
      });
    }
    this.#offer(1, 1);
    app.onEngine(engine => {
      if (engine) this.#offer(engine.info.config.nLayer, engine.info.config.nHead);
    });
    if (app.engine) this.#offer(app.engine.info.config.nLayer, app.engine.info.config.nHead);
    this.#stage.append(this.#words, this.#detail, makeLegend(), this.#heatMap.element);
    root.append(
      make(
        'section',
        { class: 'panel wide', 'aria-labelledby': 'attention-title' },
        make('h2', { id: 'attention-title' }, 'What a head looks at'),
        make(
          'div',
          { class: 'lesson-intro' },
          make(
            'p',
            {},
            'In each layer, each head lets every token give weights to the tokens before it, which sum to 1: how much of their values it takes over. Rows are the tokens that look, columns those they look at. Nothing is drawn by hand: a pass of its own over the text computes the weights, on this device.',
          ),
        ),
        form,
        this.#errors,
        this.#stage,
      ),
    );
  }

  async #compute(): Promise<void> {
    const window = this.#window.value === '' ? undefined : Number(this.#window.value);
    const { window: _, ...others } = this.#app.picker.settings();
    const settings = window === undefined ? others : { ...others, window };
    await this.#app.job({ settings, errors: this.#errors }, async engine => {
      const layer = Math.min(Number(this.#layer.value), engine.info.config.nLayer - 1);
      const ids = await firstIds(engine, this.#text.value);
      this.#answer = await engine.attention(ids, { layer });
      this.#shownWindow = engine.info.window;
      const last = this.#answer.tokens.length - 1;
      this.#place = { query: last, key: last };
      this.#stage.hidden = false;
      this.#showHead();
    });
  }

  #offer(layers: number, heads: number): void {
    fill(this.#layer, layers);
    fill(this.#head, heads);
  }

  #map(): AttentionMap | undefined {
    if (!this.#answer) return undefined;
    const { texts, weights, heads } = this.#answer;
    const size = texts.length ** 2;
    const head = Math.min(Number(this.#head.value), heads.length - 1);
    return {
      texts,
      weights: weights.subarray(head * size, (head + 1) * size),
      window: this.#shownWindow,
    };
  }

  #showHead(): void {
    const map = this.#map();
    if (!map) return;
    this.#heatMap.show(map, this.#place);
    this.#showPlace(this.#place);
  }

  #showPlace(place: Place): void {
    const map = this.#map();
    if (!map) return;
    this.#place = place;
    const { query, key } = place;
    const name = (index: number) => `“${visibleText(map.texts[index] ?? '')}”`;
    const seen = visibility(query, key, map.window);
    const about =
      seen === 'seen'
        ? `${name(query)} (token ${formatInteger(query + 1)}) gives ${percent(weightAt(map, query, key))} to ${name(key)} (token ${formatInteger(key + 1)}).`
        : seen === 'later'
          ? `${name(key)} comes after ${name(query)}, which cannot see it: the causal mask.`
          : `${name(key)} is out of the window of ${name(query)}.`;
    const most = strongestKeys(map, query, 3)
      .map(one => `${name(one.key)} ${percent(one.weight)}`)
      .join(', ');
    this.#detail.textContent = `${about} It looks most at ${most}.`;
    this.#words.replaceChildren(
      ...map.texts.map((text, index) => {
        const word = make('span', { class: index === query ? 'query' : undefined }, text);
        const strong = visibility(query, index, map.window) === 'seen';
        const share = strong ? strength(weightAt(map, query, index)) : 0;
        word.style.setProperty('--share', `${Math.round(share * 100)}%`);
        if (index > query) word.classList.add('later');
        return word;
      }),
    );
  }
}

/** The beginning of a text, as far as it is shown. */
async function firstIds(engine: Engine, text: string): Promise<Int32Array> {
  await using session = engine.session();
  await session.generate(text, { maxTokens: 0 }).result();
  return (await session.ids()).slice(0, mostTokens);
}

function percent(weight: number): string {
  return `${(100 * weight).toFixed(weight < 0.1 ? 1 : 0)} %`;
}

function field(label: string, control: HTMLElement): HTMLElement {
  return make('div', { class: 'field' }, make('label', { for: control.id }, label), control);
}

function selectOf(
  id: string,
  options: readonly (readonly [value: string, text: string])[],
): HTMLSelectElement {
  return make('select', { id }, ...options.map(([value, text]) => make('option', { value }, text)));
}

/** Numbers from 0, keeping the choice where it is still one. */
function fill(select: HTMLSelectElement, count: number): void {
  const chosen = Math.min(Number(select.value || 0), count - 1);
  select.replaceChildren(
    ...Array.from({ length: count }, (_, i) => make('option', { value: i }, String(i))),
  );
  select.value = String(chosen);
}

function makeLegend(): HTMLElement {
  const entries = [
    ['heat', 'weight from 0 to 1, small ones drawn stronger'],
    ['later', 'comes later: causal mask'],
    ['window', 'out of the window'],
  ] as const;
  return make(
    'ul',
    { class: 'legend', 'aria-label': 'Legend' },
    ...entries.map(([key, text]) =>
      make(
        'li',
        {},
        make('span', { class: `legend-key heat-key-${key}`, 'aria-hidden': 'true' }),
        text,
      ),
    ),
  );
}
