/** Files that a person gives in a browser. */

/** The files of a drop event and of the folders in it, or undefined if this is no drop. To be called in the event. */
export function filesDropped(source: unknown): Promise<File[]> | undefined {
  if (typeof DataTransfer === 'undefined' || !(source instanceof DataTransfer)) return undefined;
  // Both at once: the transfer is empty after the first pause.
  const plain = Array.from(source.files);
  const entries = Array.from(source.items, item => item.webkitGetAsEntry());
  const folders = entries.filter(
    entry => entry?.isDirectory === true,
  ) as FileSystemDirectoryEntry[];
  const names = new Set(folders.map(folder => folder.name));
  // A dropped folder is among the plain files too, as one that cannot be read.
  const files = plain.filter(file => !names.has(file.name));
  return Promise.all(folders.map(filesOfEntry)).then(more => [...files, ...more.flat()]);
}

/** The files of a list, or right in a directory; undefined if this is neither. */
export function filesIn(source: unknown): Promise<File[]> | undefined {
  if (typeof source !== 'object' || source === null || ArrayBuffer.isView(source)) return undefined;
  if (isDirectory(source)) return filesOfDirectory(source);
  if (!(Symbol.iterator in source)) return undefined;
  const items = [...(source as Iterable<unknown>)];
  return Promise.resolve(items.filter(item => item instanceof File));
}

function isDirectory(source: object): source is FileSystemDirectoryHandle {
  return 'kind' in source && source.kind === 'directory' && 'values' in source;
}

async function filesOfDirectory(directory: FileSystemDirectoryHandle): Promise<File[]> {
  const files: File[] = [];
  for await (const handle of directory.values()) {
    if (handle.kind === 'file') files.push(await (handle as FileSystemFileHandle).getFile());
  }
  return files;
}

async function filesOfEntry(folder: FileSystemDirectoryEntry): Promise<File[]> {
  const reader = folder.createReader();
  const files: File[] = [];
  for (;;) {
    const entries = await new Promise<FileSystemEntry[]>((resolve, reject) =>
      reader.readEntries(resolve, reject),
    );
    // They come in batches, and an empty one is the end.
    if (entries.length === 0) return files;
    for (const entry of entries) {
      if (!entry.isFile) continue;
      const file = entry as FileSystemFileEntry;
      files.push(await new Promise<File>((resolve, reject) => file.file(resolve, reject)));
    }
  }
}
