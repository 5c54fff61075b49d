import { byId, make } from '../lib/dom.ts';
import { formatProbability, type TokenInfo, visibleText } from './token-info.ts';

const invitation =
  'The warmer its colour, the less likely a word was. Point at one, or go through them with the left and right arrow keys, to see what else might have come.';

/** What there is to know about the token that someone points at. */
export class TokenInspector {
  readonly #element = byId('token-detail', HTMLElement);

  constructor() {
    this.show(undefined);
  }

  show(token: TokenInfo | undefined, place = 0): void {
    if (!token) {
      this.#element.replaceChildren(make('p', { class: 'hint' }, invitation));
      return;
    }
    const { text, logprob } = token;
    const head = make(
      'p',
      {},
      `Token ${place + 1}: `,
      make('b', { class: 'token-text' }, visibleText(text)),
      ...(logprob === undefined ? [] : [`, probability ${formatProbability(logprob)}`]),
    );
    this.#element.replaceChildren(head, alternativesList(token));
  }
}

function alternativesList({ token, alternatives }: TokenInfo): HTMLElement {
  const likeliest = Math.exp(alternatives[0]?.logprob ?? 0);
  const items = alternatives.map(alternative => {
    const bar = make('span', { class: 'share', 'aria-hidden': 'true' });
    bar.style.width = `${(100 * Math.exp(alternative.logprob)) / likeliest}%`;
    return make(
      'li',
      { class: alternative.token === token ? 'drawn' : undefined },
      make('span', { class: 'token-text' }, visibleText(alternative.text)),
      make('span', { class: 'share-track' }, bar),
      make('span', { class: 'share-number' }, formatProbability(alternative.logprob)),
    );
  });
  return make('ol', { class: 'alternatives', 'aria-label': 'Likeliest tokens here' }, ...items);
}
