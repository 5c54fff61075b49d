import { errorFor, type KvasmErrorCode } from '../errors.js';
import { modelFileNames } from '../model-files.js';
import type { WasmStatus } from '../wasm-module.js';

/** Throws the error that a status stands for, if it stands for one. */
export function checkStatus({ code, message }: WasmStatus, label?: string): void {
  if (code === '') return;
  // The codes of the two sides are one list.
  const located = label === undefined ? message : locate(label, message);
  throw errorFor(code as KvasmErrorCode, located);
}

/** Says where the file is that a message is about, in place of its name. */
export function locate(label: string, message: string): string {
  const name = modelFileNames.find(candidate => message.startsWith(`${candidate}: `));
  return `${label}: ${name === undefined ? message : message.slice(name.length + 2)}`;
}
