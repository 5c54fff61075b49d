import type { ModelSource } from 'kvasm';
import type { BundledModel } from './bundled-models.ts';
import { byId } from './dom.ts';
import { onFilesDropped } from './drop.ts';
import { formatBytes } from './format.ts';
import { LocalFiles } from './local-files.ts';

export interface ModelChoice {
  readonly name: string;
  readonly source: ModelSource;
  /** Whether its weights are known to be random. */
  readonly random: boolean;
}

/** A choice that is not made yet, as a sentence that says what is missing. */
export interface MissingChoice {
  readonly missing: string;
}

export class ModelPicker {
  readonly #models: readonly BundledModel[];
  readonly #files = new LocalFiles();
  readonly #remoteId = byId('remote-id', HTMLInputElement);
  readonly #fileInput = byId('model-files', HTMLInputElement);

  constructor(models: readonly BundledModel[]) {
    this.#models = models;
    byId('bundled-sources', HTMLElement).replaceWith(...models.map(bundledChoice));
    byId('no-model-note', HTMLElement).hidden = models.length > 0;
    byId('sources', HTMLElement).addEventListener('change', () => this.#showFields());
    this.#fileInput.addEventListener('change', () => this.#add(this.#fileInput.files ?? []));
    onFilesDropped(files => {
      this.#select('files');
      this.#add(files);
    });
    this.#select(models[0] ? bundledValue(models[0]) : 'remote');
    this.#showSummary();
  }

  choice(): ModelChoice | MissingChoice {
    switch (this.#selected()) {
      case 'remote': {
        const id = this.#remoteId.value.trim();
        if (id === '') return { missing: 'Enter a hub id or the URL of a folder first.' };
        return { name: id, source: id, random: false };
      }
      case 'files': {
        const { missing, modelFiles } = this.#files;
        if (missing !== undefined)
          return { missing: `Choose the model's files first: ${missing}.` };
        return { name: 'Your files', source: modelFiles, random: false };
      }
      default: {
        const model = this.#bundled();
        if (!model) return { missing: 'Choose a model first.' };
        const { name, folder, random } = model;
        return { name, source: new URL(folder, document.baseURI), random };
      }
    }
  }

  #selected(): string | undefined {
    return document.querySelector<HTMLInputElement>('input[name="source"]:checked')?.value;
  }

  #bundled(): BundledModel | undefined {
    return this.#models.find(model => bundledValue(model) === this.#selected());
  }

  #select(value: string): void {
    for (const radio of document.querySelectorAll<HTMLInputElement>('input[name="source"]')) {
      radio.checked = radio.value === value;
    }
    this.#showFields();
  }

  #showFields(): void {
    byId('remote-fields', HTMLElement).hidden = this.#selected() !== 'remote';
    byId('files-fields', HTMLElement).hidden = this.#selected() !== 'files';
    byId('random-note', HTMLElement).hidden = this.#bundled()?.random !== true;
  }

  #add(files: Iterable<File>): void {
    this.#files.add(files);
    this.#showSummary();
  }

  #showSummary(): void {
    byId('files-summary', HTMLElement).textContent = this.#files.summary;
  }
}

function bundledValue({ id }: BundledModel): string {
  return `bundled:${id}`;
}

function bundledChoice(model: BundledModel): HTMLElement {
  const radio = document.createElement('input');
  radio.type = 'radio';
  radio.name = 'source';
  radio.value = bundledValue(model);
  radio.id = `source-${model.id}`;
  const label = document.createElement('label');
  label.className = 'choice';
  label.append(
    radio,
    span('choice-name', `${model.name} (bundled)`),
    span('choice-about', formatBytes(model.bytes)),
  );
  return label;
}

function span(className: string, text: string): HTMLElement {
  const element = document.createElement('span');
  element.className = className;
  element.textContent = text;
  return element;
}
