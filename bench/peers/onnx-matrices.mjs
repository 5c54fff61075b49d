// Matrices as onnxruntime-web takes them.

/** The rows of a matrix as columns. */
export function transpose(values, rows, columns) {
  const result = new Float32Array(values.length);
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      result[column * rows + row] = values[row * columns + column];
    }
  }
  return result;
}

/** Signed bytes with a scale for each column, for ONNX's MatMulInteger. */
export function int8Columns(values, rows, columns) {
  const scales = new Float32Array(columns);
  for (let i = 0; i < values.length; i++) {
    scales[i % columns] = Math.max(scales[i % columns], Math.abs(values[i]) / 127);
  }
  const inverses = scales.map(scale => (scale === 0 ? 0 : 1 / scale));
  const bytes = new Int8Array(rows * columns);
  for (let i = 0; i < values.length; i++) {
    // Rounding of the inverse may exceed the range by one.
    bytes[i] = Math.min(Math.max(Math.round(values[i] * inverses[i % columns]), -127), 127);
  }
  return { bytes, scales };
}
