import { KvasmError } from '../errors.js';
import type { LoadProgress } from '../types.js';
import { loadFailed, type OpenFile, ReadAgain } from './files.js';
import type { ModelFolder } from './model-folder.js';
import type { LoadTracker } from './progress.js';

/** A load's way to its files. */
export interface Reader {
  readonly folder: ModelFolder;
  readonly tracker: LoadTracker;
  /** How often bytes that have changed while they were read are read anew. */
  readonly mostAgain: number;
}

/** A file that has to be there. @throws ModelError `load-failed` */
export async function requireFile(folder: ModelFolder, name: string): Promise<OpenFile> {
  const file = await folder.find(name);
  if ('missing' in file) throw loadFailed(file.label, `is not there (${file.missing})`);
  return file;
}

/**
 * Does something with files, and once more when it turns out that what was kept of one is of no use. Whatever is refused
 * is not kept.
 * @param use Calls `opened` with each file before it reads it.
 */
export async function withFiles<T>(
  { mostAgain }: Reader,
  use: (opened: (file: OpenFile) => OpenFile) => Promise<T>,
): Promise<T> {
  let hasForgotten = false;
  for (let again = 0; ; again++) {
    const files: OpenFile[] = [];
    try {
      return await use(file => {
        files.push(file);
        return file;
      });
    } catch (error) {
      if (error instanceof ReadAgain) {
        if (again >= mostAgain) throw error.failure;
        continue;
      }
      if (!isAboutAFile(error)) throw error;
      const wereKept = await Promise.all(files.map(file => file.forget()));
      if (!wereKept.includes(true) || hasForgotten) throw error;
      hasForgotten = true;
    }
  }
}

/** Not one that could not be read to its end, of which what came is as good as any. */
function isAboutAFile(error: unknown): boolean {
  if (!(error instanceof KvasmError)) return false;
  const codes = ['invalid-config', 'invalid-model', 'invalid-tokenizer', 'truncated'];
  return [...codes, 'unsupported', 'integrity'].includes(error.code);
}

/** The whole text of a small file. */
export async function readText(
  file: OpenFile,
  phase: LoadProgress['phase'],
  name: string,
  tracker: LoadTracker,
): Promise<string> {
  const progress = tracker.file(phase, name, file.size);
  const decoder = new TextDecoder();
  let text = '';
  for await (const chunk of file.chunks) {
    text += decoder.decode(chunk, { stream: true });
    progress.add(chunk.length);
  }
  progress.finish();
  return text + decoder.decode();
}
