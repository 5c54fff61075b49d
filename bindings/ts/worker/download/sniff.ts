/** What servers send in place of a file, with status 200. */

/** Enough bytes to tell. */
export const headBytes = 64;

/** What the first bytes of a file show it to be instead, or undefined. */
export function looksLike(head: Uint8Array): string | undefined {
  const text = String.fromCharCode(...head.subarray(0, headBytes));
  // As the length of a safetensors header, the same eight bytes would be beyond all bounds.
  if (/^(?:\xef\xbb\xbf)?\s*<(?:!doctype|html|head|body|\?xml|!--)/i.test(text)) {
    return 'is an HTML page, not a file of a model';
  }
  if (text.startsWith('version https://git-lfs')) {
    return (
      'is a Git LFS pointer, not the file that it points to: fetch that, with "git lfs pull" or ' +
      "from the server's download URL"
    );
  }
  return undefined;
}
