/** The folder of a made-up model of a named shape, made if it is not there yet. */
export function madeUpModel(shape: string): Promise<string>;
