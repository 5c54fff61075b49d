/// <reference lib="esnext.disposable" preserve="true" />

// Where the symbol is missing, compilers that lower `await using` look for this one.
export const asyncDispose: typeof Symbol.asyncDispose =
  Symbol.asyncDispose ?? (Symbol.for('Symbol.asyncDispose') as typeof Symbol.asyncDispose);
