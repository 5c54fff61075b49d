#include "formats/safetensors.h"
#include "fuzz/weights_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  kvasm::FuzzReader<kvasm::SafetensorsReader>(data, size);
  return 0;
}
