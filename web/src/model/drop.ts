/** Takes files that are dropped anywhere on the page, and the files of dropped folders. */
export function onFilesDropped(listener: (files: File[]) => void): void {
  document.addEventListener('dragover', event => {
    if (!event.dataTransfer?.types.includes('Files')) return;
    // Without this the browser would leave the page to show the file.
    event.preventDefault();
    document.body.classList.add('dropping');
  });
  document.addEventListener('dragleave', event => {
    if (event.relatedTarget === null) document.body.classList.remove('dropping');
  });
  document.addEventListener('drop', async event => {
    const { dataTransfer } = event;
    if (!dataTransfer?.types.includes('Files')) return;
    event.preventDefault();
    document.body.classList.remove('dropping');
    listener(await filesOf(dataTransfer));
  });
}

async function filesOf(transfer: DataTransfer): Promise<File[]> {
  // Both at once: the transfer is empty after the first pause.
  const plain = [...transfer.files];
  const folders = [...transfer.items]
    .map(item => item.webkitGetAsEntry())
    .filter(entry => entry?.isDirectory === true) as FileSystemDirectoryEntry[];
  if (folders.length === 0) return plain;
  const inFolders = await Promise.all(folders.map(filesIn));
  const names = new Set(folders.map(folder => folder.name));
  // A dropped folder is among the plain files too, as one that cannot be read.
  return [...plain.filter(file => !names.has(file.name)), ...inFolders.flat()];
}

async function filesIn(folder: FileSystemDirectoryEntry): Promise<File[]> {
  const reader = folder.createReader();
  const files: File[] = [];
  for (;;) {
    const entries = await new Promise<FileSystemEntry[]>((resolve, reject) =>
      reader.readEntries(resolve, reject),
    );
    // They come in batches, and an empty one is the end.
    if (entries.length === 0) return files;
    for (const entry of entries) {
      if (entry.isFile) files.push(await fileOf(entry as FileSystemFileEntry));
    }
  }
}

function fileOf(entry: FileSystemFileEntry): Promise<File> {
  return new Promise((resolve, reject) => entry.file(resolve, reject));
}
