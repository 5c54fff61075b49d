import { filesDropped } from 'kvasm';

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
    listener((await filesDropped(dataTransfer)) ?? []);
  });
}
