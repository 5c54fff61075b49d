import { byId, make } from '../lib/dom.ts';
import { FramePainter } from '../lib/frame.ts';
import { likelihoodStep, type TokenInfo } from './token-info.ts';
import { TokenInspector } from './token-inspector.ts';

// Closer to the end than this counts as reading along.
const followWithin = 40;

/** The prompt and what follows it. Text goes in as it comes, and is seen, token by token, from the next paint on. */
export class TextView {
  readonly #region = byId('output', HTMLElement);
  readonly #prompt = byId('output-prompt', HTMLElement);
  readonly #completion = byId('output-completion', HTMLElement);
  readonly #inspector = new TokenInspector();
  readonly #painter = new FramePainter(() => this.#paint());
  /** The text that waits to be painted. Not laid out, as that would take a frame for each token. */
  readonly #waiting = make('span', { hidden: true });
  #tokens: TokenInfo[] = [];
  #spans: HTMLElement[] = [];
  #text = '';
  #pointed: number | undefined;
  #following = true;

  constructor() {
    // Once it is laid out anyway, so that asking for the height costs nothing.
    new ResizeObserver(() => this.#follow()).observe(byId('output-text', HTMLElement));
    this.#region.addEventListener('scroll', () => {
      const { scrollHeight, scrollTop, clientHeight } = this.#region;
      this.#following = scrollHeight - scrollTop - clientHeight < followWithin;
    });
    this.#completion.addEventListener('pointerover', event => this.#onPointer(event));
    this.#completion.addEventListener('click', event => this.#onPointer(event));
    this.#region.addEventListener('keydown', event => this.#onKey(event));
  }

  /** The prompt and the text after it. */
  get whole(): string {
    return (this.#prompt.textContent ?? '') + this.#text;
  }

  start(prompt: string): void {
    byId('output-empty', HTMLElement).hidden = true;
    byId('output-text', HTMLElement).hidden = false;
    this.#prompt.textContent = prompt;
    this.#completion.replaceChildren(this.#waiting);
    this.#tokens = [];
    this.#spans = [];
    this.#text = '';
    this.#point(undefined);
    this.resume();
  }

  /** More is to come after what is there. */
  resume(): void {
    // A screen reader then reads the text when it is whole, and not a syllable at a time.
    this.#completion.setAttribute('aria-busy', 'true');
    this.#following = true;
    this.#follow();
    this.#comeIntoView();
  }

  append(token: TokenInfo): void {
    this.#tokens.push(token);
    this.#text += token.text;
    this.#waiting.append(token.text);
    this.#painter.request();
  }

  /** What the end adds to the last token: the rest of a character that was cut off. */
  appendTail(text: string): void {
    this.#painter.now();
    this.#text += text;
    this.#waiting.before(text);
  }

  end(): void {
    this.#painter.now();
    this.#completion.setAttribute('aria-busy', 'false');
  }

  #paint(): void {
    const spans = this.#tokens.slice(this.#spans.length).map(makeSpan);
    this.#spans.push(...spans);
    this.#waiting.replaceChildren();
    this.#waiting.before(...spans);
  }

  #follow(): void {
    if (this.#following) this.#region.scrollTop = this.#region.scrollHeight;
  }

  #onPointer(event: Event): void {
    const index = this.#spans.indexOf(event.target as HTMLElement);
    if (index >= 0) this.#point(index);
  }

  #onKey(event: KeyboardEvent): void {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step === undefined || this.#spans.length === 0) return;
    event.preventDefault();
    const to = this.#pointed === undefined ? 0 : this.#pointed + step;
    this.#point(Math.min(Math.max(to, 0), this.#spans.length - 1));
    this.#spans[this.#pointed ?? 0]?.scrollIntoView({ block: 'nearest' });
  }

  #point(index: number | undefined): void {
    if (this.#pointed !== undefined) this.#spans[this.#pointed]?.classList.remove('pointed');
    this.#pointed = index;
    if (index === undefined) this.#inspector.show(undefined);
    else this.#inspector.show(this.#tokens[index], index);
    if (index !== undefined) this.#spans[index]?.classList.add('pointed');
  }

  /** On a phone the text is far below what was just tapped. */
  #comeIntoView(): void {
    if (this.#region.getBoundingClientRect().bottom <= innerHeight) return;
    byId('text-panel', HTMLElement).scrollIntoView({ block: 'start' });
  }
}

function makeSpan({ text, logprob }: TokenInfo): HTMLElement {
  const likelihood = logprob === undefined ? undefined : likelihoodStep(logprob);
  return make('span', { class: 'token', 'data-likelihood': likelihood }, text);
}
