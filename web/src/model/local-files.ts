import { isModelFile, type ModelFiles, missingModelFiles } from 'kvasm';

/** The files that a person has chosen or dropped so far; a model may come in several goes. */
export class LocalFiles {
  readonly #files = new Map<string, File>();
  #ignored: string[] = [];
  /** Counts the changes. */
  version = 0;

  add(files: Iterable<File>): void {
    this.#ignored = [];
    this.version++;
    for (const file of files) {
      if (isModelFile(file.name)) this.#files.set(file.name, file);
      else this.#ignored.push(file.name);
    }
  }

  get modelFiles(): ModelFiles {
    return Object.fromEntries(this.#files);
  }

  /** What is missing, or undefined when nothing is. */
  get missing(): string | undefined {
    const missing = missingModelFiles(this.#files.keys());
    return missing.length === 0 ? undefined : missing.join(', ');
  }

  /** One line for the person who chooses. */
  get summary(): string {
    const parts: string[] = [];
    if (this.#files.size > 0) parts.push(`Chosen: ${someOf([...this.#files.keys()])}.`);
    if (this.missing !== undefined) parts.push(`Still needed: ${this.missing}.`);
    if (this.#ignored.length > 0) parts.push(`Not used: ${someOf(this.#ignored)}.`);
    return parts.join(' ');
  }
}

function someOf(names: readonly string[]): string {
  const shown = names.slice(0, 5).join(', ');
  return names.length > 5 ? `${shown} and ${names.length - 5} more` : shown;
}
