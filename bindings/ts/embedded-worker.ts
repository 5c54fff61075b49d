/**
 * The Worker's script with its WebAssembly inside, as a text; undefined in a package that was built without WebAssembly.
 * scripts/lib/embed-worker.mjs writes the compiled module anew.
 */
export const script: string | undefined = undefined;
