import { KvasmError, type KvasmErrorCode } from 'kvasm';

/** What went wrong: first what a person can do about it, then what the engine says. */
export interface Explanation {
  readonly sentence: string;
  readonly detail: string;
}

export function explain(error: unknown): Explanation {
  if (error instanceof KvasmError) {
    return { sentence: sentenceFor(error.code), detail: error.message };
  }
  return {
    sentence: 'The page has met something that it was not made for. Reload it and try once more.',
    detail: String(error),
  };
}

export function showExplanation(element: HTMLElement, { sentence, detail }: Explanation): void {
  const paragraphs = [sentence, detail]
    .filter(text => text !== '')
    .map((text, index) => {
      const paragraph = document.createElement('p');
      paragraph.className = index === 0 ? 'error-sentence' : 'error-detail';
      paragraph.textContent = text;
      return paragraph;
    });
  element.replaceChildren(...paragraphs);
  element.hidden = false;
}

export function hideExplanation(element: HTMLElement): void {
  element.hidden = true;
  element.replaceChildren();
}

function sentenceFor(code: KvasmErrorCode): string {
  switch (code) {
    case 'invalid-argument':
      return 'Something that was entered cannot be used. Change it and try again.';
    case 'invalid-config':
      return 'The config.json does not describe a GPT-2. Choose a GPT-2 model.';
    case 'invalid-model':
      return 'The weights do not fit the model, or the file is damaged. Get the files anew, all from one place.';
    case 'truncated':
      return 'The weights end too early. Get the file once more, and let the download finish.';
    case 'invalid-tokenizer':
      return 'The tokenizer is missing or damaged. The model needs a tokenizer.json, or a vocab.json and a merges.txt.';
    case 'unsupported':
      return 'The model asks for something that kvasm does not do. Choose another GPT-2.';
    case 'load-failed':
      return (
        'A file of the model could not be loaded. Check the name and your connection. Private models ' +
        'are out of reach, and another site must let this page read its files (CORS).'
      );
    case 'integrity':
      return 'A file has arrived damaged, or is another than it should be. Load the model again.';
    case 'out-of-memory':
      return 'The memory does not suffice for this model. Close other tabs, or choose a smaller one.';
    case 'context-full':
      return 'The prompt is longer than the model can read. Shorten it.';
    case 'non-finite':
      return 'The model has computed what is no number. Its weights are probably damaged; get them anew.';
    case 'busy':
      return 'The conversation is still being continued. Wait until that is done, or stop it.';
    case 'internal':
      return 'kvasm has made a mistake of its own. Try again; if it happens once more, report it.';
    case 'disposed':
      return 'The model was unloaded. Load it again to go on.';
    case 'crashed':
      return 'The engine has crashed. Load the model again; if that fails too, choose a smaller one.';
  }
}
