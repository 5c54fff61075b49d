import type { KvDtype, ModelSource, WeightDtype } from 'kvasm';
import { byId, make } from '../lib/dom.ts';
import { formatBytes } from '../lib/format.ts';
import type { BundledModel } from './bundled-models.ts';
import { onFilesDropped } from './drop.ts';
import type { EngineSettings } from './engine-settings.ts';
import { LocalFiles } from './local-files.ts';

export interface ModelChoice {
  /** Tells one choice from another. */
  readonly key: string;
  readonly name: string;
  readonly source: ModelSource;
  /** Whether its weights are known to be random. */
  readonly random: boolean;
}

/** A choice that is not made yet, as a sentence that says what is missing. */
export interface MissingChoice {
  readonly missing: string;
}

/** Which model, and how it is loaded. */
export class ModelPicker {
  readonly #models: readonly BundledModel[];
  readonly #files = new LocalFiles();
  readonly #remoteId = byId('remote-id', HTMLInputElement);
  readonly #fileInput = byId('model-files', HTMLInputElement);
  readonly #toggle = byId('change-model', HTMLButtonElement);
  readonly #choices = byId('model-choices', HTMLElement);
  readonly #window = byId('window', HTMLInputElement);
  readonly #dtype = byId('weight-dtype', HTMLSelectElement);
  readonly #kvDtype = byId('kv-dtype', HTMLSelectElement);
  readonly #contextLength = byId('context-length', HTMLInputElement);

  /** @param models Those that lie beside the page. */
  constructor(models: readonly BundledModel[]) {
    this.#models = models;
    const offered = models.filter(model => !model.forLesson);
    byId('bundled-sources', HTMLElement).replaceWith(...offered.map(bundledChoice));
    byId('no-model-note', HTMLElement).hidden = offered.length > 0;
    byId('sources', HTMLElement).addEventListener('change', () => this.#showFields());
    this.#fileInput.addEventListener('change', () => this.#add(this.#fileInput.files ?? []));
    this.#toggle.addEventListener('click', () => this.open(this.#choices.hidden));
    onFilesDropped(files => {
      this.open(true);
      this.#select('files');
      this.#add(files);
    });
    const [first] = offered;
    this.#select(first ? bundledValue(first) : 'remote');
    this.open(first === undefined);
    this.#showSummary();
    byId('model-status', HTMLElement).textContent = first
      ? `${first.name}, ${formatBytes(first.bytes)}, comes with this page. It loads at the first run.`
      : 'No model is loaded yet.';
  }

  open(open: boolean): void {
    this.#choices.hidden = !open;
    this.#toggle.setAttribute('aria-expanded', String(open));
  }

  choice(): ModelChoice | MissingChoice {
    switch (this.#selected()) {
      case 'remote': {
        const id = this.#remoteId.value.trim();
        if (id === '') return { missing: 'Enter a hub id or the URL of a folder first.' };
        return { key: `remote:${id}`, name: id, source: id, random: false };
      }
      case 'files': {
        const { missing, modelFiles, version } = this.#files;
        if (missing !== undefined)
          return { missing: `Choose the model's files first: ${missing}.` };
        return { key: `files:${version}`, name: 'Your files', source: modelFiles, random: false };
      }
      default: {
        const model = this.#models.find(({ id }) => `bundled:${id}` === this.#selected());
        return model ? bundled(model) : { missing: 'Choose a model first.' };
      }
    }
  }

  /** The model beside the page that lessons about grouped heads compare with the first. */
  groupedPair(): readonly [plain: ModelChoice, grouped: ModelChoice] | undefined {
    const grouped = this.#models.find(model => model.forLesson);
    const plain = this.#models.find(model => !model.forLesson);
    return plain && grouped && [bundled(plain), bundled(grouped)];
  }

  settings(): EngineSettings {
    return {
      dtype: this.#dtype.value as WeightDtype,
      kvDtype: this.#kvDtype.value as KvDtype,
      ...(this.#window.value === '' ? {} : { window: this.#window.valueAsNumber }),
      ...(this.#contextLength.value === ''
        ? {}
        : { contextLength: this.#contextLength.valueAsNumber }),
    };
  }

  /** As the URL names the choice; undefined for the first of the page and for files, which no URL can name. */
  get name(): string | undefined {
    const selected = this.#selected();
    if (selected === 'remote') return this.#remoteId.value.trim() || undefined;
    const [first] = this.#models;
    if (selected === 'files' || (first && selected === bundledValue(first))) return undefined;
    return selected;
  }

  /** Chooses what the URL names. */
  set name(name: string | undefined) {
    if (!name) return;
    if (this.#models.some(model => bundledValue(model) === name)) {
      this.#select(name);
      return;
    }
    this.#select('remote');
    this.#remoteId.value = name;
    this.open(true);
  }

  #selected(): string | undefined {
    return document.querySelector<HTMLInputElement>('input[name="source"]:checked')?.value;
  }

  #select(value: string): void {
    for (const radio of document.querySelectorAll<HTMLInputElement>('input[name="source"]')) {
      radio.checked = radio.value === value;
    }
    this.#showFields();
  }

  #showFields(): void {
    const selected = this.#selected();
    byId('remote-fields', HTMLElement).hidden = selected !== 'remote';
    byId('files-fields', HTMLElement).hidden = selected !== 'files';
    const model = this.#models.find(one => bundledValue(one) === selected);
    byId('random-note', HTMLElement).hidden = model?.random !== true;
  }

  #add(files: Iterable<File>): void {
    this.#files.add(files);
    this.#showSummary();
  }

  #showSummary(): void {
    byId('files-summary', HTMLElement).textContent = this.#files.summary;
  }
}

function bundled({ id, name, folder, random }: BundledModel): ModelChoice {
  return { key: `bundled:${id}`, name, source: new URL(folder, document.baseURI), random };
}

function bundledValue({ id }: BundledModel): string {
  return `bundled:${id}`;
}

function bundledChoice(model: BundledModel): HTMLElement {
  return make(
    'label',
    { class: 'choice' },
    make('input', {
      type: 'radio',
      name: 'source',
      value: bundledValue(model),
      id: `source-${model.id}`,
    }),
    make('span', { class: 'choice-name' }, model.name),
    make('span', { class: 'choice-about' }, `Comes with this page, ${formatBytes(model.bytes)}`),
  );
}
